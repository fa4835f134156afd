package vfs

import (
	"context"
	"time"
)

// MaxHandle is how many bytes a handle has at most: those of an NFSv3 file handle (RFC
// 1813 §2.4) without what the server puts in front of it.
const MaxHandle = 48

// A Handle names a file of an FS for as long as the file exists, whatever its name
// becomes, and no other file ever. Those of an FS that survives the process survive it
// too. Clients may send any bytes as one.
type Handle string

// A Type is what a file is, with the numbers of RFC 1813's ftype3.
type Type uint32

// The types of files.
const (
	Regular     Type = 1
	Directory   Type = 2
	BlockDevice Type = 3
	CharDevice  Type = 4
	Symlink     Type = 5
	Socket      Type = 6
	FIFO        Type = 7
)

// An Attr is what is known of a file.
type Attr struct {
	Type         Type
	Mode         uint32 // the twelve bits of permissions
	Links        uint32
	UID, GID     uint32
	Size         uint64 // bytes
	Used         uint64 // bytes of storage
	Major, Minor uint32 // of a device
	FileID       uint64 // unique within the FS
	Atime        time.Time
	Mtime        time.Time
	Ctime        time.Time // changes with each change of content or attributes

	// ACL says that the file has an access control list, with which the bits of Mode for
	// group and others do not say who may do what. An FS that sets Features.Callers
	// need not fill it in.
	ACL bool
}

// A SetAttr says what is to change; nil leaves it as it is.
type SetAttr struct {
	Mode     *uint32
	UID, GID *uint32
	Size     *uint64 // truncates, or extends with zeros
	Atime    *time.Time
	Mtime    *time.Time

	// Now says that the times, where they are given, are the present time: whoever may
	// write the file may set those, not only its owner.
	Now bool
}

// An Entry is what a directory lists.
type Entry struct {
	Name   string
	FileID uint64
	Cookie uint64 // what to list on from; not 0, 1 or 2
	Handle Handle
	Attr   *Attr // nil if it could not be had
}

// A Stat is what is known of a whole filesystem, in bytes and files.
type Stat struct {
	TotalBytes, FreeBytes, AvailBytes uint64
	TotalFiles, FreeFiles, AvailFiles uint64
}

// Features says what an FS can do.
type Features struct {
	MaxFileSize uint64        // bytes
	TimeDelta   time.Duration // the resolution of times
	MaxName     int           // bytes of a name
	MaxLinks    uint32
	ReadOnly    bool
	HardLinks   bool
	Symlinks    bool
	SetTime     bool
	SetMode     bool
	SetOwner    bool // files can be given to any user and group
	FoldsCase   bool // takes names for the same that differ in case

	// Callers says that the FS itself grants or refuses what the caller of a context
	// asks for (see WithCaller), and that it is a Checker.
	Callers bool
}

// An FS is a tree of files that is named by handles. All of it may be called by many
// goroutines at once. It checks no permissions, which is the business of who serves it,
// unless Features.Callers is set. Then it checks those of the caller that a context has,
// as POSIX says, and fails with ErrAccess or ErrNotOwner. GetAttr, ReadLink and Stat need
// none. Beyond POSIX, the owner of a file may read and write it whatever its mode says,
// and who may execute it may read it (RFC 1813 §4.4).
//
// Names are single components: not empty, not "." or "..", without '/' and NUL. An FS
// refuses others with ErrInvalid all the same (see [CheckName]), and those longer than
// Features says with ErrNameTooLong. It follows no symbolic link, and reaches nothing
// outside of its tree.
//
// Errors wrap one of this package's Err values. Those that have a NotExist or the like in
// package io/fs wrap that too. What is changed fails with ErrReadOnly if Features says
// that nothing can be. What is called with a context that is over may return its error.
type FS interface {
	Features() Features
	// Root returns the handle of the tree's root. It works after Close too.
	Root() Handle

	// GetAttr returns ErrStale for a handle that names nothing (any more), here and
	// everywhere.
	GetAttr(ctx context.Context, h Handle) (Attr, error)
	// SetAttr changes all that is asked for or, as far as it can, nothing. The size of
	// anything but a regular file can't be set: ErrInvalid.
	SetAttr(ctx context.Context, h Handle, s SetAttr) (Attr, error)
	// Lookup finds a name in a directory; ".." is allowed here, and that of the root is
	// the root. A dir that is none is ErrNotDirectory, here and everywhere.
	Lookup(ctx context.Context, dir Handle, name string) (Handle, Attr, error)
	// ReadLink returns the target of a symbolic link, and ErrInvalid for other files.
	ReadLink(ctx context.Context, h Handle) (string, error)

	// Read fills p from offset off on. It returns less only at the end of the file,
	// and end if nothing is behind what it has read. Only regular files can be read,
	// written and committed: others are ErrInvalid.
	Read(ctx context.Context, h Handle, p []byte, off uint64) (n int, end bool, err error)
	// Write writes all of p at offset off. If sync is set, the data and the file's
	// attributes are on stable storage when it returns (RFC 1813 §3.3.7). What would lie
	// beyond Features.MaxFileSize is ErrTooBig. After another error, some of p may have
	// been written.
	Write(ctx context.Context, h Handle, p []byte, off uint64, sync bool) error
	// Commit brings what was written to stable storage: n bytes from off on, or, if n
	// is 0, all from off on. If it fails, or a Write with sync or a SetAttr does, data
	// that earlier calls have written may be lost. At least one call returns that error;
	// later ones need not.
	Commit(ctx context.Context, h Handle, off, n uint64) error

	// Create makes a regular file, and fails with ErrExist if the name is taken. What s
	// leaves out, the FS chooses: here and in the next three, that is mode 0644 or, of a
	// directory, 0755, and an owner of its own. The new name is on stable storage when
	// it returns, as are all changes of names below. That symbolic links have modes and
	// times of one's own choice is not promised.
	Create(ctx context.Context, dir Handle, name string, s SetAttr) (Handle, Attr, error)
	Mkdir(ctx context.Context, dir Handle, name string, s SetAttr) (Handle, Attr, error)
	Symlink(ctx context.Context, dir Handle, name, target string, s SetAttr) (Handle, Attr, error)
	// Mknod makes a device, a socket or a FIFO. Other types are ErrInvalid.
	Mknod(ctx context.Context, dir Handle, name string, t Type, major, minor uint32, s SetAttr) (Handle, Attr, error)
	// Remove removes a name of anything but a directory (ErrIsDirectory), Rmdir an empty
	// directory (ErrNotEmpty, ErrNotDirectory). With its last name, a file is gone.
	Remove(ctx context.Context, dir Handle, name string) error
	Rmdir(ctx context.Context, dir Handle, name string) error
	// Rename gives a file another name, in one step, and replaces what has the new name
	// if both are directories and that is empty, or neither is one: otherwise it returns
	// ErrExist (RFC 1813 §3.3.14). If both names are the same file's, it does nothing. A
	// directory can't come to lie within itself: ErrInvalid.
	Rename(ctx context.Context, from Handle, name string, to Handle, newName string) error
	// Link gives a file one more name. Directories can have none: ErrInvalid.
	Link(ctx context.Context, h Handle, dir Handle, name string) (Attr, error)

	// ReadDir lists entries behind that with the cookie, 0 for the first, as long as
	// add takes them; "." and ".." are not among them. Handle and Attr are filled in
	// only if plus is set. Names that stay in the directory while it is listed are
	// listed once, whatever else is added or removed. end says that nothing is behind
	// what add took. add may call the FS. A cookie that no listing can have given is
	// ErrBadCookie, as far as the FS can tell.
	ReadDir(ctx context.Context, dir Handle, cookie uint64, plus bool, add func(Entry) bool) (end bool, err error)

	Stat(ctx context.Context, h Handle) (Stat, error)
	// Close releases all that the FS holds. Later calls fail with ErrClosed.
	Close() error
}

// A LossCounter is an FS that knows when it may have lost data that was written and not
// committed: because a call failed, or with no call in progress. Others are assumed to have
// lost some whenever a call fails with an error that is not a plain refusal.
type LossCounter interface {
	// Losses returns how often that was. A call that returns after a loss counts it.
	Losses() uint64
}

// A Lender is an FS that has its data in memory, and can lend it.
type Lender interface {
	// Lend is Read of n bytes that copies nothing.
	Lend(ctx context.Context, h Handle, n int, off uint64) (l Loan, end bool, err error)
}

// A Loan is data of a file as it was when it was lent: whatever becomes of the file, it
// does not change.
type Loan interface {
	// Pieces returns the data, one piece after the other. Nobody may change it.
	Pieces() [][]byte
	// Return gives the loan back. It is called once, when nobody looks at the data any
	// more.
	Return()
}
