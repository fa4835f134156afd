package vfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// What an FS may say, as RFC 1813 §2.6 has it.
var (
	ErrStale        = errors.New("no such file any more")
	ErrNotExist     = fmt.Errorf("no such name: %w", fs.ErrNotExist)
	ErrExist        = fmt.Errorf("the name is taken: %w", fs.ErrExist)
	ErrNotOwner     = fmt.Errorf("only the owner may do that: %w", fs.ErrPermission)
	ErrAccess       = fmt.Errorf("access denied: %w", fs.ErrPermission)
	ErrNotDirectory = errors.New("not a directory")
	ErrIsDirectory  = errors.New("a directory")
	ErrNotEmpty     = errors.New("the directory is not empty")
	ErrInvalid      = fmt.Errorf("no such argument is possible: %w", fs.ErrInvalid)
	ErrNameTooLong  = errors.New("the name is too long")
	ErrTooBig       = errors.New("the file would be too large")
	ErrNoSpace      = errors.New("no space is left")
	ErrQuota        = errors.New("the quota is used up")
	ErrReadOnly     = errors.New("the filesystem is read-only")
	ErrTooManyLinks = errors.New("too many links")
	ErrCrossDevice  = errors.New("on another filesystem")
	ErrNotSupported = errors.New("the filesystem can't do that")
	ErrBadCookie    = errors.New("no such place in the directory")
	ErrIO           = errors.New("input or output failed")
	ErrClosed       = fmt.Errorf("the filesystem is no longer served: %w", fs.ErrClosed)
	ErrNoDevice     = errors.New("no such device")
	ErrTryLater     = errors.New("not now: try again later")
)
