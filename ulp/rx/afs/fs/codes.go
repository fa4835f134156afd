package fs

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// Codes are the abort codes of the interface.
var Codes = rpc.NewCodes("fs", afs.Volumes)

const firstUniversal = 0x2f6df00 // AFS's own numbers for Unix errors: EPERM is the first

// What a file server aborts calls with, besides afs.Volumes, where a client's system has numbers
// of its own for errors.
var (
	ErrNoEntry      = Codes.Define(firstUniversal+0x01, "UAENOENT", "no such file or directory")
	ErrAccess       = Codes.Define(firstUniversal+0x0c, "UAEACCES", "access is denied")
	ErrExists       = Codes.Define(firstUniversal+0x10, "UAEEXIST", "the name is taken")
	ErrCrossDevice  = Codes.Define(firstUniversal+0x11, "UAEXDEV", "in another directory or volume")
	ErrNotDirectory = Codes.Define(firstUniversal+0x13, "UAENOTDIR", "not a directory")
	ErrIsDirectory  = Codes.Define(firstUniversal+0x14, "UAEISDIR", "a directory")
	ErrInvalid      = Codes.Define(firstUniversal+0x15, "UAEINVAL", "an invalid argument")
	ErrTooLarge     = Codes.Define(firstUniversal+0x1a, "UAEFBIG", "the file is too large")
	ErrReadOnly     = Codes.Define(firstUniversal+0x1d, "UAEROFS", "the volume is read-only")
	ErrNotEmpty     = Codes.Define(firstUniversal+0x26, "UAENOTEMPTY", "the directory is not empty")
	ErrLocked       = Codes.Define(firstUniversal+0x28, "UAEWOULDBLOCK", "somebody else has a lock")
)
