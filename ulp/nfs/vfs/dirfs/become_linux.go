package dirfs

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// A process is what the process is, and what its threads become again after they have
// acted for a caller.
//
// Linux keeps identities per thread. A goroutine that acts for a caller is locked to its
// thread for that time, so no other goroutine ever runs with that identity, and no thread
// that the runtime starts inherits it. All system calls here must be those of package unix,
// which act on one thread; those of package syscall change all threads.
type process struct {
	uid, gid int // for access to files
	groups   []int
	own      [2]unix.CapUserData
	none     [2]unix.CapUserData // own without effective capabilities
	dropped  bool                // own lacks effective capabilities that are permitted
}

// errBecome says that a thread could not take a caller's identity.
var errBecome = errors.New("the process can't act as that user")

// newProcess returns what the process is. It returns nil if its threads can't act for
// others, which takes CAP_SETUID and CAP_SETGID.
func newProcess() *process {
	p := new(process)
	header := capHeader()
	err := unix.Capget(&header, &p.own[0])
	if err != nil {
		return nil
	}
	p.none = p.own
	for i := range p.own {
		p.none[i].Effective = 0
		p.dropped = p.dropped || p.own[i].Permitted&^p.own[i].Effective != 0
	}
	p.uid, p.gid = fsIDs()
	if p.groups, err = unix.Getgroups(); err != nil {
		return nil
	}
	slices.Sort(p.groups)
	// A user namespace may not have all users. Any that it has but our own will do.
	for _, id := range []uint32{65534, 1, 1000} {
		if int(id) == p.uid || int(id) == p.gid {
			continue
		}
		// A list that differs from ours, so that the right to set it is needed.
		probe := vfs.Caller{UID: id, GID: id, Groups: []uint32{id}}
		if p.as(&probe, func() error { return nil }) == nil {
			return p
		}
	}
	return nil
}

func capHeader() unix.CapUserHeader {
	return unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
}

// fsIDs returns the user and the group of this thread for access to files.
func fsIDs() (uid, gid int) {
	uid, _ = unix.SetfsuidRetUid(-1) // no such user: changes nothing, and never fails
	gid, _ = unix.SetfsgidRetGid(-1)
	return uid, gid
}

// is reports whether a caller has all the rights that the process has, and makes what the
// process would make.
func (p *process) is(c *vfs.Caller) bool {
	return int(c.UID) == p.uid && int(c.GID) == p.gid && p.uid == 0
}

// as calls do on a thread that has the identity of c. For any user but root, that thread
// has no capabilities meanwhile: neither those that override permissions, nor that to use
// more than a quota or the blocks reserved for root. do must not hand work to other
// goroutines.
func (p *process) as(c *vfs.Caller, do func() error) (err error) {
	if p.is(c) {
		return do()
	}
	groups := make([]int, 0, len(c.Groups))
	for _, g := range c.Groups {
		groups = append(groups, int(g))
	}
	slices.Sort(groups)
	regroup := !slices.Equal(groups, p.groups)
	runtime.LockOSThread()
	if regroup {
		if err := unix.Setgroups(groups); err != nil { // it has changed nothing
			runtime.UnlockOSThread()
			return cantBecome(c, fmt.Errorf("setgroups: %w", err))
		}
	}
	// Deferred, so that a panic does not leave the identity to whoever recovers it.
	defer func() {
		// A goroutine that can't get its identity back stays locked to the thread. So
		// the thread serves nobody else, and ends with the goroutine.
		if back := p.restore(regroup); back != nil {
			err = errors.Join(fmt.Errorf("%w: the thread that acted for a caller keeps the caller's rights: %w", vfs.ErrIO, back), err)
			return
		}
		runtime.UnlockOSThread()
	}()
	if err := p.become(c); err != nil {
		return cantBecome(c, err)
	}
	return do()
}

func cantBecome(c *vfs.Caller, err error) error {
	return fmt.Errorf("%w: %w %d, group %d: %w", vfs.ErrAccess, errBecome, c.UID, c.GID, err)
}

// become gives this thread the identity of c, but for the groups.
func (p *process) become(c *vfs.Caller) error {
	// These two say nothing when they fail, as for users that a namespace does not have.
	_, _ = unix.SetfsgidRetGid(int(c.GID))
	_, _ = unix.SetfsuidRetUid(int(c.UID))
	if c.UID != 0 {
		header := capHeader()
		if err := unix.Capset(&header, &p.none[0]); err != nil {
			return fmt.Errorf("capset: %w", err)
		}
	}
	if uid, gid := fsIDs(); uint32(uid) != c.UID || uint32(gid) != c.GID {
		return fmt.Errorf("setfsuid and setfsgid: it is user %d and group %d", uid, gid)
	}
	return nil
}

// restore gives this thread the identity of the process again.
func (p *process) restore(regroup bool) error {
	header := capHeader()
	if err := unix.Capset(&header, &p.own[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	_, _ = unix.SetfsuidRetUid(p.uid)
	_, _ = unix.SetfsgidRetGid(p.gid)
	if uid, gid := fsIDs(); uid != p.uid || gid != p.gid {
		return fmt.Errorf("setfsuid and setfsgid: it is user %d and group %d", uid, gid)
	}
	if p.dropped { // the return to user 0 has made them effective
		if err := unix.Capset(&header, &p.own[0]); err != nil {
			return fmt.Errorf("capset: %w", err)
		}
	}
	if regroup {
		if err := unix.Setgroups(p.groups); err != nil {
			return fmt.Errorf("setgroups: %w", err)
		}
	}
	return nil
}
