package rnic

import "urnic/stag"

// Hold keeps the memory of a region open, as a placement in progress does, until
// release: an invalidation of the region waits for that long. From outside, the
// moment can't be met.
func Hold(r *MR) (release func(), err error) {
	pin, err := r.pd.dev.memory.Acquire(r.STag(), stag.Scope{Domain: r.pd.domain}, 0, r.Base(), 1)
	return pin.Release, err
}
