package perf

import (
	"errors"
	"slices"
	"sync/atomic"
	"unsafe"

	"urnic/rnic"
)

// A group is what one side has of a case: queue pairs, with a part of two
// regions for each. What a queue pair sends begins a few words further on with each
// message (variant), so that no message is like the one before; it stays in the cache
// if it fits. places says where it arrives.
type group struct {
	setup
	places     places
	seed       uint64 // of this round
	initiator  bool
	active     bool // this side posts requests
	peerActive bool // the other one does

	pd           *rnic.PD
	source, sink []byte
	sourceMR     *rnic.MR
	sinkMR       *rnic.MR
	peer         memories
	ends         []*end
	closers      []func() error
}

// pingPong reports whether the two sides send by turns.
func (s *setup) pingPong() bool { return s.Test == TestLatency && s.delivers() }

// delivers reports whether the other side takes part in each request.
func (s *setup) delivers() bool { return s.Op != OpRead && s.Op != OpAtomic }

// receives reports whether each request takes a receive of the other side.
func (s *setup) receives() bool {
	return s.Op == OpSend || s.Op == OpWriteImm || s.pingPong()
}

// newGroup makes what a side needs for a case. Close gives it up.
func newGroup(dev *rnic.Device, s setup, initiator bool) (_ *group, err error) {
	both := s.Bidir || s.pingPong()
	g := &group{setup: s, places: s.places(), initiator: initiator, active: initiator || both, peerActive: !initiator || both}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	g.closers = append(g.closers, g.pd.Close)
	if s.Idle {
		return g, g.makeIdle(dev)
	}
	if s.Test == TestConnect {
		return g, nil
	}
	if s.delivers() && g.active || s.Op == OpRead && g.peerActive {
		g.source, g.sourceMR, err = g.memory(g.sourceStride(), rnic.RemoteRead)
	}
	if err == nil && (s.Op != OpRead && g.peerActive || s.Op == OpRead && g.active) {
		g.sink, g.sinkMR, err = g.memory(g.sinkStride(), rnic.LocalWrite|rnic.RemoteWrite|rnic.RemoteAtomic)
	}
	if err != nil {
		return nil, err
	}
	for i := range s.QPs {
		e, err := newEnd(g, i)
		if err != nil {
			return nil, err
		}
		g.ends = append(g.ends, e)
	}
	return g, nil
}

// memory returns a region with a part for each queue pair.
func (g *group) memory(stride int, access rnic.Access) ([]byte, *rnic.MR, error) {
	n := stride * g.QPs
	words := make([]uint64, n/8) // aligned for atomics
	mem := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
	mr, err := g.pd.Register(mem, access)
	if err != nil {
		return nil, nil, err
	}
	g.closers = append(g.closers, mr.Close)
	return mem, mr, nil
}

// makeIdle makes queue pairs that only are there, as a program with many of
// them would have them: with short queues and one completion queue for all.
func (g *group) makeIdle(dev *rnic.Device) error {
	cq, err := dev.CreateCQ(rnic.CQAttr{})
	if err != nil {
		return err
	}
	g.closers = append(g.closers, cq.Close)
	for range g.QPs {
		qp, err := g.pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: idleDepth, MaxRecvWR: idleDepth})
		if err != nil {
			return err
		}
		g.closers = append(g.closers, qp.Close)
		g.ends = append(g.ends, &end{g: g, qp: qp, cq: cq})
	}
	return nil
}

// idleDepth is how many requests the queues of an idle queue pair hold.
const idleDepth = 16

func (g *group) close() error {
	var errs []error
	for _, c := range slices.Backward(g.closers) {
		errs = append(errs, c())
	}
	g.closers = nil
	return errors.Join(errs...)
}

// memories tells the other side where to read and write.
func (g *group) memories() *memories {
	return &memories{Source: remoteOf(g.sourceMR), Sink: remoteOf(g.sinkMR)}
}

// prepare gets all ends ready for a round: what is sent has the pattern of this
// round, and nothing of that is where it has to arrive.
func (g *group) prepare(r round) {
	g.seed = r.Seed
	for i := range g.ends {
		if g.source != nil {
			fill(g.sourcePart(i), seedOf(r.Seed, g.initiator, i))
		}
		switch {
		case g.sink == nil:
		case g.Op == OpAtomic:
			atomic.StoreUint64(g.target(i), 0)
		default:
			part, seed := g.sinkPart(i), seedOf(r.Seed, !g.initiator, i)
			clear(part)
			for n := range g.places.count {
				part[n*g.places.step] = ^wordAt(seed, variant(uint64(n)))[0]
			}
		}
	}
}

// arrived reports whether message n of queue pair i is at some place: by its first word,
// which says nothing of the others.
func (g *group) arrived(i, place int, n uint64) bool {
	return begins(g.at(i, place), seedOf(g.seed, !g.initiator, i), variant(n))
}

// verify checks all of the last message that has come to queue pair i, of which n have.
func (g *group) verify(i, place int, n uint64) error {
	if n == 0 || g.sink == nil || g.Op == OpAtomic {
		return nil
	}
	return compare(g.at(i, place), seedOf(g.seed, !g.initiator, i), variant(n-1), i)
}

// added returns what the atomics of queue pair i add up to, each of which adds 1.
func (g *group) added(i int) uint64 { return atomic.LoadUint64(g.target(i)) }

// sourcePart returns the memory of queue pair i that is sent.
func (g *group) sourcePart(i int) []byte {
	n := g.sourceStride()
	return g.source[i*n:][:n]
}

// sinkPart returns that in which messages arrive.
func (g *group) sinkPart(i int) []byte {
	n := g.sinkStride()
	return g.sink[i*n:][:n]
}

// at returns a message's place.
func (g *group) at(i, place int) []byte { return g.sinkPart(i)[place:][:g.Size] }

// target returns the number that the atomics of queue pair i change.
func (g *group) target(i int) *uint64 {
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(g.sinkPart(i))))
}

// seedOf returns the seed of what one side sends on one queue pair.
func seedOf(seed uint64, initiator bool, qp int) uint64 {
	if initiator {
		seed = ^seed
	}
	seed += uint64(qp) << 32
	return mix(&seed)
}
