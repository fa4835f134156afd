package rnic

import (
	"fmt"

	"urnic/stag"
)

// An SGE names a piece of registered memory of this side.
type SGE struct {
	Addr   uint64    // TO of the first byte: an address, or from 0 in a zero-based region
	Length uint32    // bytes
	LKey   stag.STag // of a memory region
}

// A Remote names memory of the peer, as the peer has advertised it.
type Remote struct {
	STag stag.STag
	TO   uint64
}

// checkSGL checks an SGL and returns its length in bytes. If strict, it accepts
// only memory that is open now. Else a request that is still in the queue may
// make a region valid.
func checkSGL(lease *stag.Lease, sgl []SGE, limit int, table *stag.Table, scope stag.Scope, need stag.Access, strict bool) (uint64, error) {
	total, err := measureSGL(sgl, limit)
	if err != nil {
		return 0, err
	}
	for i, e := range sgl {
		if e.Length == 0 {
			continue // "no STag check at all" for nothing
		}
		if err := lease.Check(table, e.LKey, scope, need, e.Addr, uint64(e.Length)); err != nil {
			if !strict && !table.Valid(e.LKey) && table.Exists(e.LKey) {
				continue
			}
			return 0, fmt.Errorf("SGE %d: %w", i, err)
		}
	}
	return total, nil
}

// measureSGL returns the length of an SGL in bytes, without checking its
// memory.
func measureSGL(sgl []SGE, limit int) (uint64, error) {
	if len(sgl) > limit {
		return 0, fmt.Errorf("SGL of %d entries: the queue takes %d", len(sgl), limit)
	}
	total := uint64(0)
	for i := range sgl {
		total += uint64(sgl[i].Length)
	}
	if total > MaxMessage {
		return 0, fmt.Errorf("SGL of %d octets: a message has at most %d", total, uint64(MaxMessage))
	}
	return total, nil
}
