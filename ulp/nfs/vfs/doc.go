// Package vfs is what an NFS server exports: an FS is a tree of files that are named by
// handles, which outlive names, connections and, where the files do, processes.
//
// Packages dirfs (a directory of the machine), memfs (a tree in memory) and billyfs (any
// filesystem of go-billy) implement it; package nfsd serves it.
package vfs
