package nfsd

import (
	"context"
	"errors"
	"io/fs"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// statuses says what a client gets for an error of a filesystem: the first that fits.
var statuses = [...]struct {
	err    error
	status nfs3.Status
}{
	{vfs.ErrNotExist, nfs3.ErrNoEnt},
	{vfs.ErrExist, nfs3.ErrExist},
	{vfs.ErrStale, nfs3.ErrStale},
	{vfs.ErrAccess, nfs3.ErrAcces},
	{vfs.ErrNotOwner, nfs3.ErrPerm},
	{vfs.ErrNotDirectory, nfs3.ErrNotDir},
	{vfs.ErrIsDirectory, nfs3.ErrIsDir},
	{vfs.ErrNotEmpty, nfs3.ErrNotEmpty},
	{vfs.ErrInvalid, nfs3.ErrInval},
	{vfs.ErrNameTooLong, nfs3.ErrNameTooLong},
	{vfs.ErrTooBig, nfs3.ErrFBig},
	{vfs.ErrNoSpace, nfs3.ErrNoSpc},
	{vfs.ErrQuota, nfs3.ErrDQuot},
	{vfs.ErrReadOnly, nfs3.ErrROFS},
	{vfs.ErrTooManyLinks, nfs3.ErrMLink},
	{vfs.ErrCrossDevice, nfs3.ErrXDev},
	{vfs.ErrNotSupported, nfs3.ErrNotSupp},
	{vfs.ErrBadCookie, nfs3.ErrBadCookie},
	{vfs.ErrNoDevice, nfs3.ErrNXIO},
	{vfs.ErrIO, nfs3.ErrIO},
	{fs.ErrNotExist, nfs3.ErrNoEnt},
	{fs.ErrExist, nfs3.ErrExist},
	{fs.ErrPermission, nfs3.ErrAcces},
	{fs.ErrInvalid, nfs3.ErrInval},
	{vfs.ErrTryLater, nfs3.ErrJukebox},
	{vfs.ErrClosed, nfs3.ErrJukebox},
	{context.Canceled, nfs3.ErrJukebox}, // the server stops: the next one will do it
	{context.DeadlineExceeded, nfs3.ErrJukebox},
}

// status returns what a client gets for an error. What no filesystem may return is the
// server's fault.
func status(err error) nfs3.Status {
	if err == nil {
		return nfs3.OK
	}
	if s, ok := errors.AsType[nfs3.Status](err); ok {
		return s
	}
	for _, t := range statuses {
		if errors.Is(err, t.err) {
			return t.status
		}
	}
	return nfs3.ErrServerFault
}
