package rnic

import (
	"fmt"
	"math"
	"sync"

	"urnic/stag"
)

// An MR is a memory region.
type MR struct {
	pd      *PD
	entry   *stag.Entry
	closing sync.Mutex // held by Close
}

// made reports whether the region comes from a verb.
func (m *MR) made() bool { return m != nil && m.entry != nil }

// STag returns the STag that is valid, or was the last valid one. It is for
// local SGEs as well as for the peer.
func (m *MR) STag() stag.STag {
	if !m.made() {
		return 0
	}
	return m.entry.STag()
}

// Valid reports whether the STag opens memory.
func (m *MR) Valid() bool { return m.made() && m.entry.Valid() }

// Base returns the TO of the first byte; zero while the region is not valid.
func (m *MR) Base() uint64 {
	if !m.made() {
		return 0
	}
	return m.entry.Base()
}

// Len returns how many bytes the region covers; zero while the region is not
// valid.
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

// Stats returns counters of the accesses through the STag.
func (m *MR) Stats() stag.Stats {
	if !m.made() {
		return stag.Stats{}
	}
	return m.entry.Stats()
}

// SGE returns an SGE for n bytes of the region from offset off. A range outside
// the region is refused when the SGE is posted.
func (m *MR) SGE(off, n int) SGE {
	if off < 0 || n < 0 || uint64(n) > math.MaxUint32 { // no SGE can say that
		return SGE{Addr: math.MaxUint64, Length: math.MaxUint32, LKey: m.STag()}
	}
	return SGE{Addr: m.Base() + uint64(off), Length: uint32(n), LKey: m.STag()}
}

// Remote returns the name of the byte at offset off of the region, for the
// peer.
func (m *MR) Remote(off int) Remote { return Remote{STag: m.STag(), TO: m.Base() + uint64(off)} }

func (m *MR) fail(op string, err error) error {
	return &OpError{Op: op, Object: "MR " + m.STag().String(), Err: err}
}

// Close deregisters the region. When it returns, nothing accesses the memory
// through its STag any more. It returns an *OpError that wraps ErrBusy while
// windows are bound to it.
func (m *MR) Close() error {
	if !m.made() {
		return notMade("deregister", "MR")
	}
	m.closing.Lock()
	defer m.closing.Unlock()
	if err := m.entry.Deregister(); err != nil {
		return m.fail("deregister", fmt.Errorf("%w: %w", ErrBusy, err))
	}
	m.pd.dev.remove(m.pd.dev.regions, m)
	return nil
}

// A FastRegister has the parameters of OpFastRegister, which makes a region
// valid. The STag consists of the region's index and a key of the consumer,
// which must differ from the last one.
type FastRegister struct {
	MR     *MR
	Memory Memory
	Access Access
	Key    uint8
}
