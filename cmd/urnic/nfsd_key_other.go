//go:build !unix

package main

import (
	"io/fs"
	"os"
)

func openKey(path string) (*os.File, error) { return os.Open(path) }

// Here the directory's access control list says who may read the key: that of the user's
// own configuration says nobody else.

func ownFile(fs.FileInfo) bool { return true }

func readByOthers(fs.FileInfo) bool { return false }

func ownDirectory(fs.FileInfo) bool { return true }
