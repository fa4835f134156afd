package nfs3

import (
	"errors"
	"fmt"
	"io/fs"
)

// A Status is the outcome of an NFS procedure, nfsstat3 of RFC 1813 §2.6. All but OK are
// errors.
type Status uint32

// The statuses.
const (
	OK             Status = 0
	ErrPerm        Status = 1
	ErrNoEnt       Status = 2
	ErrIO          Status = 5
	ErrNXIO        Status = 6
	ErrAcces       Status = 13
	ErrExist       Status = 17
	ErrXDev        Status = 18
	ErrNoDev       Status = 19
	ErrNotDir      Status = 20
	ErrIsDir       Status = 21
	ErrInval       Status = 22
	ErrFBig        Status = 27
	ErrNoSpc       Status = 28
	ErrROFS        Status = 30
	ErrMLink       Status = 31
	ErrNameTooLong Status = 63
	ErrNotEmpty    Status = 66
	ErrDQuot       Status = 69
	ErrStale       Status = 70
	ErrRemote      Status = 71
	ErrBadHandle   Status = 10001
	ErrNotSync     Status = 10002
	ErrBadCookie   Status = 10003
	ErrNotSupp     Status = 10004
	ErrTooSmall    Status = 10005
	ErrServerFault Status = 10006
	ErrBadType     Status = 10007
	ErrJukebox     Status = 10008
)

var statuses = map[Status]struct{ name, text string }{
	OK:             {"NFS3_OK", "success"},
	ErrPerm:        {"NFS3ERR_PERM", "only the owner or the superuser may do that"},
	ErrNoEnt:       {"NFS3ERR_NOENT", "no such file or directory"},
	ErrIO:          {"NFS3ERR_IO", "input or output failed on the server"},
	ErrNXIO:        {"NFS3ERR_NXIO", "no such device or address"},
	ErrAcces:       {"NFS3ERR_ACCES", "permission denied"},
	ErrExist:       {"NFS3ERR_EXIST", "the file exists"},
	ErrXDev:        {"NFS3ERR_XDEV", "on another filesystem"},
	ErrNoDev:       {"NFS3ERR_NODEV", "no such device"},
	ErrNotDir:      {"NFS3ERR_NOTDIR", "not a directory"},
	ErrIsDir:       {"NFS3ERR_ISDIR", "a directory"},
	ErrInval:       {"NFS3ERR_INVAL", "invalid argument"},
	ErrFBig:        {"NFS3ERR_FBIG", "the file would be too large"},
	ErrNoSpc:       {"NFS3ERR_NOSPC", "no space is left on the server"},
	ErrROFS:        {"NFS3ERR_ROFS", "the filesystem is read-only"},
	ErrMLink:       {"NFS3ERR_MLINK", "too many hard links"},
	ErrNameTooLong: {"NFS3ERR_NAMETOOLONG", "the name is too long"},
	ErrNotEmpty:    {"NFS3ERR_NOTEMPTY", "the directory is not empty"},
	ErrDQuot:       {"NFS3ERR_DQUOT", "the quota is used up"},
	ErrStale:       {"NFS3ERR_STALE", "the file is no more: look it up again"},
	ErrRemote:      {"NFS3ERR_REMOTE", "the file is not on the server"},
	ErrBadHandle:   {"NFS3ERR_BADHANDLE", "no handle of this server"},
	ErrNotSync:     {"NFS3ERR_NOT_SYNC", "the file has changed meanwhile"},
	ErrBadCookie:   {"NFS3ERR_BAD_COOKIE", "the directory has changed meanwhile: list it from the start"},
	ErrNotSupp:     {"NFS3ERR_NOTSUPP", "the server can't do that"},
	ErrTooSmall:    {"NFS3ERR_TOOSMALL", "there is too little room for the answer"},
	ErrServerFault: {"NFS3ERR_SERVERFAULT", "the server has failed"},
	ErrBadType:     {"NFS3ERR_BADTYPE", "the server can't make files of that type"},
	ErrJukebox:     {"NFS3ERR_JUKEBOX", "not now: try again later"},
}

// String returns the RFC's name, such as "NFS3ERR_NOENT".
func (s Status) String() string {
	if t, ok := statuses[s]; ok {
		return t.name
	}
	return fmt.Sprintf("nfsstat3 %d", uint32(s))
}

func (s Status) Error() string {
	if t, ok := statuses[s]; ok {
		return "nfs: " + t.text + " (" + t.name + ")"
	}
	return "nfs: " + s.String()
}

// Err returns the status as an error, nil for OK.
func (s Status) Err() error {
	if s == OK {
		return nil
	}
	return s
}

// Is makes errors.Is find the errors of package io/fs, and errors.ErrUnsupported.
func (s Status) Is(target error) bool {
	switch s {
	case ErrPerm, ErrAcces:
		return target == fs.ErrPermission
	case ErrNoEnt:
		return target == fs.ErrNotExist
	case ErrExist, ErrNotEmpty:
		return target == fs.ErrExist
	case ErrInval:
		return target == fs.ErrInvalid
	case ErrNotSupp:
		return target == errors.ErrUnsupported
	default:
		return false
	}
}
