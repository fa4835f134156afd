package stag

import (
	"crypto/rand"
	"encoding/binary"
)

// keys is how many keys there are.
const keys = 256

// A Binding is the part of a region that a window opens, and its rights.
type Binding struct {
	Region *Entry
	Base   uint64 // TO within the region where the window begins; the window's own TOs too
	Len    uint64 // bytes; 0 unbinds a type 1 window
	Access Access // remote rights only
	Key    uint8  // of a type 2 window, to differ from its last one
	Drawn  bool   // Key is a type 1 window's key from DrawKey; else the RNIC chooses it now
	By     Scope  // the stream that binds
}

// Bind binds a window to part of a region and returns its STag. A type 1 window
// belongs to the domain and may be bound again at any time; its old STag is
// closed first. A type 2 window must be invalid, and belongs to the stream that
// binds it. It returns a *RegisterError if window, region, range, rights or key
// don't allow it.
func (e *Entry) Bind(b Binding) (STag, error) {
	e.turn.Lock()
	defer e.turn.Unlock()
	t := e.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := e.mayBind(b); err != nil {
		return 0, err
	}
	if b.Len != 0 {
		b.Region.windows++ // now, so that the region stays valid while the lock is open
	}
	if e.state == valid { // type 1 only
		e.close()
	}
	if b.Len == 0 {
		return Make(e.index, e.lastKey), nil
	}
	key, stream := b.Key, b.By.Stream
	if e.kind == Window1 {
		stream = 0
		if !b.Drawn {
			key = e.nextKey()
		}
	}
	r := b.Region
	off := b.Base - r.base
	e.region = r
	e.validate(Memory{Mem: r.mem[off : off+b.Len : off+b.Len], Base: b.Base, Access: b.Access, Stream: stream}, key)
	return Make(e.index, key), nil
}

// DrawKey returns the key that a type 1 window will have when it is bound next, so
// that its STag is known before. See Binding.
func (e *Entry) DrawKey() uint8 {
	e.turn.Lock()
	defer e.turn.Unlock()
	return e.nextKey()
}

// nextKey chooses the key of a type 1 window: one that can't be derived from those
// before it (RFC 5040 §8.1.1 rule 8), and that is repeated only when all others
// have been used (RFC 5042 §6.1.1). The caller holds turn.
func (e *Entry) nextKey() uint8 {
	if e.keys == nil {
		var random [2 * keys]byte
		_, _ = rand.Read(random[:]) // never fails
		e.keys = new([keys]uint8)
		for i := range e.keys { // the next key moves to any earlier position, and what is there moves to the end
			at := int(binary.NativeEndian.Uint16(random[2*i:])) % (i + 1)
			e.keys[i], e.keys[at] = e.keys[at], uint8(i)
		}
	}
	k := e.keys[e.keyAt]
	e.keyAt++
	return k
}

// mayBind checks a binding under turn and mu. The region can't become invalid
// meanwhile, as that takes mu too.
func (e *Entry) mayBind(b Binding) error {
	fail := func(rule, reason string) error {
		return &RegisterError{Rule: rule, Reason: reason, STag: Make(e.index, e.lastKey)}
	}
	r := b.Region
	switch {
	case e.kind == Region:
		return fail("invalid window", "a memory region can't be bound")
	case e.state == gone:
		return fail("invalid window", "it has been deallocated")
	case e.domain != b.By.Domain:
		return fail("protection domain", "window and stream belong to different ones")
	case e.kind == Window2 && e.state != invalid:
		return fail("STag not in invalid state", "invalidate the type 2 window first")
	case e.kind == Window2 && b.Len == 0:
		return fail("length", "a type 2 window is unbound by invalidating it")
	case e.kind == Window2 && b.Key == e.lastKey:
		return fail("key", "the window's last STag had the same key: choose another")
	case b.Len == 0:
		return nil
	case r == nil || r.kind != Region || r.table != e.table || r.state != valid:
		return fail("invalid region", "there is no valid memory region to bind to")
	case r.domain != e.domain:
		return fail("protection domain", "window and region belong to different ones")
	case r.access&BindWindow == 0:
		return fail("access rights", "the region does not allow windows")
	case r.base == 0:
		return fail("virtual address", "windows can't be bound to a zero-based region")
	case b.Access&^(remoteAccess|RemoteInvalidate) != 0: // no right at all is allowed, as in ibv_bind_mw(3)
		return fail("access rights", "a window grants remote read, write or atomic access, nothing else")
	case b.Access&(RemoteWrite|RemoteAtomic) != 0 && r.access&LocalWrite == 0:
		return fail("access rights", "remote write and atomic access want a region with local write access")
	case b.Base < r.base || b.Base-r.base > uint64(len(r.mem)) || b.Len > uint64(len(r.mem))-(b.Base-r.base):
		return fail("base and bounds", "the window would reach beyond the region")
	}
	return nil
}
