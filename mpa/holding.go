package mpa

import (
	"sync/atomic"
	"time"
)

// MaxBuffers is how many bytes of buffers a connection holds at most: an intake, an
// arena, and two arenas with what the stream has not accepted of the ULP's memory.
const MaxBuffers = intakeSize + 3*arenaSize

// A holding is the buffers that one direction of a connection keeps while it waits
// for the peer, and since when. Only its direction changes it.
type holding struct {
	tell  func(octets int) // or nil, see SetKeeper
	told  int              // bytes reported to tell so far
	mark  uint64           // how far the direction was when the stall began
	since atomic.Int64     // when that was, in ns; 0: it does not stall
}

// hold notes that so many bytes are kept from now on.
func (h *holding) hold(octets int) {
	if d := octets - h.told; d != 0 && h.tell != nil {
		h.told = octets
		h.tell(d)
	}
}

// stalls notes that the direction waits for the peer, and how far it is. It is the
// same stall as the last time unless the direction has made a step since.
func (h *holding) stalls(at, step uint64) {
	if h.tell != nil && (h.since.Load() == 0 || at-h.mark >= step) {
		h.mark = at
		h.since.Store(time.Now().UnixNano())
	}
}

// moves notes that the direction waits no longer.
func (h *holding) moves() {
	if h.since.Load() != 0 {
		h.since.Store(0)
	}
}

// SetKeeper sets tell, which the connection calls with each change of the number of
// bytes of buffers that it keeps while it waits for its peer: to send the rest of an
// FPDU, or to take what was posted. The sender and the receiver may call tell
// concurrently. It must be quick, and must not call methods of the connection. Call
// SetKeeper before the connection is used.
func (c *Conn) SetKeeper(tell func(octets int)) { c.in.tell, c.out.tell = tell, tell }

// Stalled returns since when the connection has kept buffers for a peer that makes
// no progress: it neither continues an FPDU that it has begun, nor takes a batch of
// what was posted. It returns the zero Time if there are none. It may be called from
// any goroutine.
func (c *Conn) Stalled() time.Time {
	in, out := c.in.since.Load(), c.out.since.Load()
	switch {
	case in == 0:
		in = out
	case out != 0:
		in = min(in, out)
	}
	if in == 0 {
		return time.Time{}
	}
	return time.Unix(0, in)
}

// Free releases all buffers of a connection that is closed and no longer in use,
// neither for sending nor for receiving.
func (c *Conn) Free() {
	c.enter()
	c.in.drop()
	c.leave()
	c.out.free()
}

// keep notes that the intake keeps its buffer until the peer continues.
func (in *intake) keep() {
	in.hold(intakeSize)
	in.stalls(in.order, 1)
}

// settle ends a flush: it copies what was the ULP's memory, and notes what is kept
// until the stream accepts it.
func (b *batch) settle() {
	b.keep()
	if b.octets == 0 {
		b.moves()
	} else {
		b.stalls(b.accepted, batchLimit)
	}
	b.hold(b.size())
}

// size returns how many bytes of arenas the batch has.
func (b *batch) size() int {
	n := len(b.kept)
	if b.arena != nil {
		n++
	}
	return n * arenaSize
}

// free releases all arenas, with their contents.
func (b *batch) free() {
	for _, k := range b.kept {
		arenas.Put(k.arena)
	}
	b.kept, b.pieces, b.foreign, b.fpdus, b.written, b.used, b.octets, b.open = nil, nil, nil, nil, 0, 0, 0, false
	b.done()
	b.moves()
	b.hold(0)
}
