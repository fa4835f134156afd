package rnic

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"urnic/internal/memcheck"
	"urnic/stag"
)

// Access is a set of rights to a memory region or window; see package stag for
// the single ones.
type Access = stag.Access

// The rights.
const (
	LocalWrite       = stag.LocalWrite
	RemoteRead       = stag.RemoteRead
	RemoteWrite      = stag.RemoteWrite
	RemoteAtomic     = stag.RemoteAtomic
	BindWindow       = stag.BindWindow
	RemoteInvalidate = stag.RemoteInvalidate
)

// Memory says what a region covers: a Go slice, or memory that Go does not own,
// and from which TO on it counts.
type Memory struct {
	Slice []byte // Go memory; or
	// Pointer and Length name memory that stays where it is until the region is
	// deregistered or invalidated: mapped, or of C. Where the system tells,
	// which is on Linux, it is refused unless the process may read all of it,
	// and write it if the rights want that (RFC 5041 §8.3.2 rule 4).
	Pointer unsafe.Pointer
	Length  int

	// ZeroBased counts TOs from 0. Else they count from Base, or, if that is
	// zero, they are addresses.
	ZeroBased bool
	Base      uint64
}

// verify refuses memory that the process has no right to. A slice is memory of
// Go, or the affair of whoever made it.
func (m *Memory) verify(access Access) error {
	if m.Pointer == nil || m.Length <= 0 {
		return nil // region sees to that
	}
	write := access&(LocalWrite|RemoteWrite|RemoteAtomic) != 0
	if err := memcheck.Check(uintptr(m.Pointer), uint64(m.Length), write); err != nil {
		return &stag.RegisterError{Rule: "right to the buffer", Reason: err.Error()}
	}
	return nil
}

// region returns m, which verify has passed, as package stag wants it.
func (m *Memory) region() (mem []byte, base uint64, err error) {
	mem = m.Slice
	switch {
	case m.Pointer != nil && mem != nil:
		return nil, 0, &stag.RegisterError{Rule: "memory", Reason: "give a slice or a pointer, not both"}
	case m.Pointer == nil && m.Length != 0:
		return nil, 0, &stag.RegisterError{Rule: "memory", Reason: "a length is given, but no pointer"}
	case m.Length < 0:
		return nil, 0, &stag.RegisterError{Rule: "length", Reason: "it is negative"}
	case m.Pointer != nil:
		mem = unsafe.Slice((*byte)(m.Pointer), m.Length)
	}
	switch {
	case m.ZeroBased && m.Base != 0:
		return nil, 0, &stag.RegisterError{Rule: "virtual address", Reason: "a zero-based region has no other base"}
	case m.ZeroBased:
	case m.Base != 0:
		base = m.Base
	default:
		base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	}
	return mem, base, nil
}

// An MR is a memory region.
type MR struct {
	pd      *PD
	entry   *stag.Entry
	closing sync.Mutex // held by Close
}

// Register opens Go memory under a new STag; TOs are addresses. The memory must
// not be used by others while the RNIC uses it: see the package documentation.
// It returns an *OpError that wraps a *stag.RegisterError or a *pd.LimitError.
func (p *PD) Register(mem []byte, access Access) (*MR, error) {
	return p.RegisterMemory(Memory{Slice: mem}, access, nil)
}

// RegisterMemory opens any memory under a new STag. If qp is not nil, only its
// stream can use the STag (RFC 5041 §8.2). The errors are those of Register.
func (p *PD) RegisterMemory(m Memory, access Access, qp *QP) (*MR, error) {
	if !p.made() {
		return nil, notMade("register", "PD")
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail("register", err)
	}
	defer p.dev.end()
	if err := m.verify(access); err != nil {
		return nil, p.fail("register", err)
	}
	mem, base, err := m.region()
	if err != nil {
		return nil, p.fail("register", err)
	}
	s := stag.Memory{Mem: mem, Base: base, Access: access}
	if qp != nil {
		if qp.pd != p {
			return nil, p.fail("register", fmt.Errorf("QP %d belongs to another protection domain", qp.Num()))
		}
		s.Stream = qp.scope().Stream
	}
	entry, err := p.dev.memory.Register(p.domain, s)
	return p.newMR(entry, "register", err)
}

// AllocMR returns a region that is not valid yet, for at most maxLen octets, to
// be made valid by a work request with OpFastRegister.
func (p *PD) AllocMR(maxLen uint64) (*MR, error) {
	if !p.made() {
		return nil, notMade("allocate MR", "PD")
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail("allocate MR", err)
	}
	defer p.dev.end()
	entry, err := p.dev.memory.Allocate(p.domain, maxLen)
	return p.newMR(entry, "allocate MR", err)
}

func (p *PD) newMR(entry *stag.Entry, op string, err error) (*MR, error) {
	if err != nil {
		return nil, p.fail(op, err)
	}
	mr := &MR{pd: p, entry: entry}
	put(p.dev, p.dev.regions, closer(mr))
	return mr, nil
}

// made reports whether the region comes from a verb.
func (m *MR) made() bool { return m != nil && m.entry != nil }

// STag returns the STag that is valid now, or was so last. It serves local SGEs
// as well as the peer.
func (m *MR) STag() stag.STag {
	if !m.made() {
		return 0
	}
	return m.entry.STag()
}

// Valid reports whether the STag opens memory.
func (m *MR) Valid() bool { return m.made() && m.entry.Valid() }

// Base returns the TO of the first octet, Len how many there are; zero while
// the region is not valid.
func (m *MR) Base() uint64 {
	if !m.made() {
		return 0
	}
	return m.entry.Base()
}

// Len returns how many octets the region covers.
func (m *MR) Len() uint64 {
	if !m.made() {
		return 0
	}
	return m.entry.Len()
}

// Access returns the rights to the region; none while it is not valid.
func (m *MR) Access() Access {
	if !m.made() {
		return 0
	}
	return m.entry.Access()
}

// Stats counts what went through the STag.
func (m *MR) Stats() stag.Stats {
	if !m.made() {
		return stag.Stats{}
	}
	return m.entry.Stats()
}

// SGE names n octets of the region from offset off. A range outside the region
// is refused when the SGE is posted.
func (m *MR) SGE(off, n int) SGE {
	if off < 0 || n < 0 || uint64(n) > math.MaxUint32 { // no SGE can say that
		return SGE{Addr: math.MaxUint64, Length: math.MaxUint32, LKey: m.STag()}
	}
	return SGE{Addr: m.Base() + uint64(off), Length: uint32(n), LKey: m.STag()}
}

// Remote names the octet at offset off of the region, for the peer.
func (m *MR) Remote(off int) Remote { return Remote{STag: m.STag(), TO: m.Base() + uint64(off)} }

func (m *MR) fail(op string, err error) error {
	return &OpError{Op: op, Object: "MR " + m.STag().String(), Err: err}
}

// Close deregisters the region. When it returns, nothing changes the memory any
// more through its STag. It returns an *OpError that wraps ErrBusy while windows
// are bound to it.
func (m *MR) Close() error {
	if !m.made() {
		return notMade("deregister", "MR")
	}
	m.closing.Lock()
	defer m.closing.Unlock()
	if err := m.entry.Deregister(); err != nil {
		return m.fail("deregister", fmt.Errorf("%w: %w", ErrBusy, err))
	}
	remove(m.pd.dev, m.pd.dev.regions, closer(m))
	return nil
}

// A FastRegister says how OpFastRegister makes a region valid: with an STag of
// the region's index and a key of the consumer, which must differ from the last
// one.
type FastRegister struct {
	MR     *MR
	Memory Memory
	Access Access
	Key    uint8
}

// WindowType is the type of a memory window.
type WindowType uint8

// The types. Type 1 windows belong to the protection domain, get their keys
// from the RNIC, and may be bound again and again. Type 2 windows belong to the
// stream that binds them, have the consumer's key, and must be invalidated
// before they are bound anew.
const (
	Type1 WindowType = iota + 1
	Type2
)

// An MW is a memory window.
type MW struct {
	pd      *PD
	typ     WindowType
	entry   *stag.Entry
	closing sync.Mutex // held by Close
}

// AllocMW returns a window that is not bound.
func (p *PD) AllocMW(t WindowType) (*MW, error) {
	const op = "allocate MW"
	if !p.made() {
		return nil, notMade(op, "PD")
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail(op, err)
	}
	defer p.dev.end()
	kinds := map[WindowType]stag.Kind{Type1: stag.Window1, Type2: stag.Window2}
	entry, err := p.dev.memory.AllocateWindow(p.domain, kinds[t])
	if err != nil {
		return nil, p.fail(op, err)
	}
	w := &MW{pd: p, typ: t, entry: entry}
	put(p.dev, p.dev.windows, closer(w))
	return w, nil
}

// made reports whether AllocMW has made the window.
func (w *MW) made() bool { return w != nil && w.entry != nil }

// STag returns the STag that is valid now, or was so last.
func (w *MW) STag() stag.STag {
	if !w.made() {
		return 0
	}
	return w.entry.STag()
}

// Valid reports whether the window is bound.
func (w *MW) Valid() bool { return w.made() && w.entry.Valid() }

// Type returns the window's type.
func (w *MW) Type() WindowType {
	if !w.made() {
		return 0
	}
	return w.typ
}

// Access returns the peer's rights to the window; none while it is not bound.
func (w *MW) Access() Access {
	if !w.made() {
		return 0
	}
	return w.entry.Access()
}

// Stats counts what went through the STag.
func (w *MW) Stats() stag.Stats {
	if !w.made() {
		return stag.Stats{}
	}
	return w.entry.Stats()
}

// Close deallocates the window, bound or not. When it returns, nothing changes
// the memory any more through its STag. It fails only if AllocMW has not made the
// window.
func (w *MW) Close() error {
	if !w.made() {
		return notMade("deallocate", "MW")
	}
	w.closing.Lock()
	defer w.closing.Unlock()
	_ = w.entry.Deregister() // which only a region can refuse, for its windows
	remove(w.pd.dev, w.pd.dev.windows, closer(w))
	return nil
}

// DrawKey chooses the key that a type 1 window is to have when it is bound next, for
// who must know the STag before that: it goes into Bind.Key. Binds of the window
// must be posted in the order in which their keys are drawn.
func (w *MW) DrawKey() uint8 {
	if !w.made() {
		return 0
	}
	return w.entry.DrawKey()
}

// A Bind says how OpBindWindow binds a window.
type Bind struct {
	MW     *MW
	MR     *MR
	Addr   uint64 // TO within the region
	Length uint64 // octets; 0 unbinds a type 1 window
	Access Access // remote rights
	Key    uint8  // of a type 2 window, which must differ from the last one; with Drawn also of a type 1 window
	Drawn  bool   // MW.DrawKey has given the key of a type 1 window; else it is drawn when the window is bound
}

// check refuses what can't be meant, before the request is posted.
func (b *Bind) check(p *PD) error {
	switch {
	case b.MW == nil:
		return errors.New("no window is given")
	case b.MW.pd != p || b.MR != nil && b.MR.pd != p:
		return errors.New("queue pair, region and window must be of one protection domain")
	case b.MR == nil && b.Length > 0:
		return errors.New("no region is given")
	}
	return nil
}

func (b *Bind) binding(by stag.Scope) stag.Binding {
	s := stag.Binding{Base: b.Addr, Len: b.Length, Access: b.Access, Key: b.Key, Drawn: b.Drawn, By: by}
	if b.MR != nil {
		s.Region = b.MR.entry
	}
	return s
}
