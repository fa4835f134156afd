package nfsd

import (
	"slices"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/oncrpc"
)

// Nobody is whom the server takes a caller for of whom it does not know, or does not
// believe, who that is.
const Nobody = 65534

// A Squash says whom an export takes for somebody else: its anonymous user.
type Squash uint8

// Whom an export takes for its anonymous user. Callers without a credential are that in
// any case.
const (
	SquashRoot Squash = iota // the superuser, and the group 0
	SquashNone               // nobody
	SquashAll                // everybody
)

func (s Squash) String() string {
	switch s {
	case SquashNone:
		return "none"
	case SquashAll:
		return "all"
	case SquashRoot:
	}
	return "root"
}

// A cred is whom the server takes a caller for.
type cred struct {
	uid, gid uint32
	groups   []uint32 // of the call, or a copy
}

// cred returns whom the export takes a caller for.
func (x *export) cred(sys *oncrpc.Sys) cred {
	if sys == nil || x.Squash == SquashAll {
		return cred{uid: x.AnonUID, gid: x.AnonGID}
	}
	c := cred{uid: sys.UID, gid: sys.GID, groups: sys.Groups}
	if x.Squash == SquashNone {
		return c
	}
	if c.uid == 0 {
		c.uid = x.AnonUID
	}
	if c.gid == 0 {
		c.gid = x.AnonGID
	}
	if slices.Contains(c.groups, 0) {
		c.groups = slices.Clone(c.groups)
		for i, g := range c.groups {
			if g == 0 {
				c.groups[i] = x.AnonGID
			}
		}
	}
	return c
}

// Bits of the mode of a file.
const (
	modeRead  = 4
	modeWrite = 2
	modeExec  = 1 // of a directory: to search it

	modeSticky = 0o1000
	modeSetGID = 0o2000
	modeSetUID = 0o4000
	modeAll    = 0o7777
)

func (c *cred) root() bool { return c.uid == 0 }

// in reports whether the caller is in a group.
func (c *cred) in(gid uint32) bool { return c.gid == gid || slices.Contains(c.groups, gid) }

// owns reports whether the caller may do what the owner of a file may.
func (c *cred) owns(a *vfs.Attr) bool { return c.root() || c.uid == a.UID }

// may reports whether the mode of a file allows the caller all that want has.
func (c *cred) may(a *vfs.Attr, want uint32) bool {
	mode := a.Mode
	switch {
	case c.root():
		return want&modeExec == 0 || a.Type == vfs.Directory || mode&0o111 != 0
	case c.uid == a.UID:
		mode >>= 6
	case c.in(a.GID):
		mode >>= 3
	}
	return mode&want == want
}

// mayRead reports whether READ is allowed: to the owner, who may have opened the file
// before its mode changed, and to those who may execute it, because that is how it is
// paged in (RFC 1813 §4.4).
func (c *cred) mayRead(a *vfs.Attr) bool {
	return c.owns(a) || c.may(a, modeRead) || c.may(a, modeExec)
}

// mayWrite reports whether WRITE is allowed, or to change the size, as for READ.
func (c *cred) mayWrite(a *vfs.Attr) bool { return c.owns(a) || c.may(a, modeWrite) }

// sticks reports whether the caller must not remove or rename a file in a directory that
// the caller may write: only owners may, of the one or the other, if it is sticky.
func (c *cred) sticks(dir, file *vfs.Attr) bool {
	return dir.Mode&modeSticky != 0 && !c.owns(dir) && !c.owns(file)
}

// unprivileged returns a mode without what would let others act as owner or group with
// content, or an owner, that was not there when it was set.
func unprivileged(mode uint32) uint32 {
	mode &^= modeSetUID
	if mode&0o010 != 0 { // without, it stands for mandatory locks
		mode &^= modeSetGID
	}
	return mode
}
