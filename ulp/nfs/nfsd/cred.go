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
	SquashRoot   Squash = iota // the superuser, and the group 0
	SquashNone                 // nobody
	SquashAll                  // everybody
	SquashOthers               // everybody but Export.User, and the group 0
)

func (s Squash) String() string {
	switch s {
	case SquashNone:
		return "none"
	case SquashAll:
		return "all"
	case SquashOthers:
		return "others"
	case SquashRoot:
	}
	return "root"
}

// A cred is whom the server takes a caller for.
type cred struct {
	uid, gid uint32
	groups   []uint32 // of the call, or a copy

	// Who is somebody else than the caller: these make no privileged programs.
	squashed, squashedGroup bool
}

// cred returns whom the export takes a caller for. It returns nfs3.ErrAcces if it takes no
// such calls of the caller's connection.
func (x *export) cred(c *call) (cred, error) {
	sys, err := x.claim(c)
	if err != nil {
		return cred{}, err
	}
	return x.squash(sys), nil
}

func (x *export) squash(sys *oncrpc.Sys) cred {
	if sys == nil || x.Squash == SquashAll || x.Squash == SquashOthers && sys.UID != x.User {
		return cred{uid: x.AnonUID, gid: x.AnonGID, squashed: true, squashedGroup: true}
	}
	c := cred{uid: sys.UID, gid: sys.GID, groups: sys.Groups}
	if x.Squash == SquashNone {
		return c
	}
	if c.uid == 0 && x.Squash != SquashOthers {
		c.uid, c.squashed = x.AnonUID, true
	}
	if c.gid == 0 {
		c.gid, c.squashedGroup = x.AnonGID, true
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

// grant returns a mode that the caller may give a file: without the bits that would let
// others act as somebody who the caller is not. It keeps those that a directory has.
func (c *cred) grant(mode uint32, dir *vfs.Attr) uint32 {
	lost := uint32(0)
	if c.squashed {
		lost |= modeSetUID | modeSetGID
	}
	if c.squashedGroup {
		lost |= modeSetGID
	}
	if dir != nil && dir.Type == vfs.Directory {
		lost &^= dir.Mode
	}
	return mode &^ lost
}

// in reports whether the caller is in a group.
func (c *cred) in(gid uint32) bool { return c.gid == gid || slices.Contains(c.groups, gid) }

// owns reports whether the caller may do what the owner of a file may.
func (c *cred) owns(a *vfs.Attr) bool { return c.root() || c.uid == a.UID }

// may reports whether the mode of a file allows the caller all that want has. Where there is
// an access control list, the mode's bits for the group are the most that anybody in the
// list may do, and not what the group may. So nobody but the owner may do anything then.
func (c *cred) may(a *vfs.Attr, want uint32) bool {
	mode := a.Mode
	switch {
	case c.root():
		return want&modeExec == 0 || a.Type == vfs.Directory || mode&0o111 != 0
	case c.uid == a.UID:
		mode >>= 6
	case a.ACL:
		return false
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
