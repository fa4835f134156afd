package nfs

import (
	"errors"
	"io/fs"
	"os"
)

// What a client may say besides a server's nfs3.Status.
var (
	// ErrLoop says that a path has too many symbolic links.
	ErrLoop = errors.New("nfs: too many symbolic links")
	// ErrServer says that what a server has answered can't be.
	ErrServer = errors.New("nfs: the server's answer makes no sense")
	// ErrName says that a server's directory has a name that none can have.
	ErrName = errors.New("nfs: the server lists a name that no file can have")
	// ErrEntries says that a directory seems to have no end.
	ErrEntries = errors.New("nfs: the directory has too many entries")
	// ErrDepth says that directories lie in each other too deeply.
	ErrDepth = errors.New("nfs: too many directories in each other")
)

// pathError returns what is said of one path.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// linkError returns what is said of two.
func linkError(op, from, to string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: from, New: to, Err: err}
}
