package machine

// places hold the packets of one direction of a call by their sequence numbers, from
// base on. They have slots for what is there, not for a whole window.
type places[T any] struct {
	base  uint32 // sequence number of the first slot
	n     int    // slots in use; some may be empty
	head  int
	slots []T // a power of two
}

// end is the sequence number behind the last slot.
func (r *places[T]) end() uint32 { return r.base + uint32(r.n) }

// has reports whether there is a slot for seq.
func (r *places[T]) has(seq uint32) bool { return seq-r.base < uint32(r.n) }

// at returns the slot of seq, which must exist.
func (r *places[T]) at(seq uint32) *T {
	return &r.slots[(r.head+int(seq-r.base))&(len(r.slots)-1)]
}

// extend adds slots up to seq, which is less than a window behind base.
func (r *places[T]) extend(seq uint32) {
	need := int(seq-r.base) + 1
	if need > len(r.slots) {
		size := max(4, len(r.slots))
		for size < need {
			size *= 2
		}
		slots := make([]T, size)
		for i := range r.n {
			slots[i] = r.slots[(r.head+i)&(len(r.slots)-1)]
		}
		r.slots, r.head = slots, 0
	}
	r.n = max(r.n, need)
}

// drop removes the first slot.
func (r *places[T]) drop() {
	var none T
	r.slots[r.head] = none
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.base++
	r.n--
	if r.n == 0 && len(r.slots) > 64 {
		r.slots, r.head = nil, 0
	}
}
