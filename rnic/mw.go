package rnic

import (
	"errors"
	"sync"

	"urnic/stag"
)

// WindowType is the type of a memory window.
type WindowType uint8

// The types. Type 1 windows belong to the protection domain, get their keys
// from the RNIC, and may be bound repeatedly. Type 2 windows belong to the
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
	p.dev.put(p.dev.windows, w)
	return w, nil
}

// made reports whether AllocMW has made the window.
func (w *MW) made() bool { return w != nil && w.entry != nil }

// STag returns the STag that is valid, or was the last valid one.
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

// Stats returns counters of the accesses through the STag.
func (w *MW) Stats() stag.Stats {
	if !w.made() {
		return stag.Stats{}
	}
	return w.entry.Stats()
}

// Close deallocates the window, bound or not. When it returns, nothing accesses
// the memory through its STag any more. It fails only if AllocMW has not made
// the window.
func (w *MW) Close() error {
	if !w.made() {
		return notMade("deallocate", "MW")
	}
	w.closing.Lock()
	defer w.closing.Unlock()
	_ = w.entry.Deregister() // which only a region can refuse, for its windows
	w.pd.dev.remove(w.pd.dev.windows, w)
	return nil
}

// A Bind has the parameters of OpBindWindow.
type Bind struct {
	MW     *MW
	MR     *MR
	Addr   uint64 // TO within the region
	Length uint64 // bytes; 0 unbinds a type 1 window
	Access Access // remote rights
	Key    uint8  // of a type 2 window, which must differ from the last one

	drawn bool // Key is that of a type 1 window; otherwise it is chosen when the window is bound
}

// drawKey returns b with the key that its window, of type 1, is to have then.
func (b Bind) drawKey() Bind {
	if b.MW.made() {
		b.Key, b.drawn = b.MW.entry.DrawKey(), true
	}
	return b
}

// check refuses invalid parameters, before the request is posted.
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
	s := stag.Binding{Base: b.Addr, Len: b.Length, Access: b.Access, Key: b.Key, Drawn: b.drawn, By: by}
	if b.MR != nil {
		s.Region = b.MR.entry
	}
	return s
}
