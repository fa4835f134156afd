//go:build unix

package pathfs

import (
	"errors"
	"syscall"

	"urnic/ulp/nfs/vfs"
)

// errno knows the system's errors that package io/fs has no words for.
func errno(err error) error {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return nil
	}
	return map[syscall.Errno]error{
		syscall.ENOTDIR: vfs.ErrNotDirectory, syscall.EISDIR: vfs.ErrIsDirectory,
		syscall.ENOTEMPTY: vfs.ErrNotEmpty, syscall.EINVAL: vfs.ErrInvalid,
		syscall.ENAMETOOLONG: vfs.ErrNameTooLong, syscall.EFBIG: vfs.ErrTooBig,
		syscall.ENOSPC: vfs.ErrNoSpace, syscall.EDQUOT: vfs.ErrQuota, syscall.EROFS: vfs.ErrReadOnly,
		syscall.EMLINK: vfs.ErrTooManyLinks, syscall.EXDEV: vfs.ErrCrossDevice,
	}[no]
}
