package perf

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"urnic/rnic"
)

// A group is what one side has of a case: queue pairs, with a part of two
// regions for each. All data that a queue pair moves lie in one place, over and
// over, so that they stay in the cache if they fit.
type group struct {
	setup
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
	g := &group{setup: s, initiator: initiator, active: initiator || both, peerActive: !initiator || both}
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
		g.source, g.sourceMR, err = g.memory(rnic.RemoteRead)
	}
	if err == nil && (s.Op != OpRead && g.peerActive || s.Op == OpRead && g.active) {
		g.sink, g.sinkMR, err = g.memory(rnic.LocalWrite | rnic.RemoteWrite | rnic.RemoteAtomic)
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
func (g *group) memory(access rnic.Access) ([]byte, *rnic.MR, error) {
	n := g.stride() * g.QPs
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
// round, and what is received is cleared.
func (g *group) prepare(r round) {
	for i := range g.ends {
		if g.source != nil {
			fill(g.part(g.source, i), seedOf(r.Seed, g.initiator, i))
		}
		switch {
		case g.sink == nil:
		case g.Op == OpAtomic:
			atomic.StoreUint64(g.target(i), 0)
		default:
			clear(g.part(g.sink, i))
		}
	}
}

// verify checks after a round what the other side has sent, and how often.
func (g *group) verify(r round, totals []uint64) error {
	if g.sink == nil {
		return nil
	}
	for i := range g.ends {
		if g.Op == OpAtomic {
			if n := atomic.LoadUint64(g.target(i)); n != totals[i] {
				return fmt.Errorf("the data are damaged: %d atomics of queue pair %d add up to %d", totals[i], i, n)
			}
			continue
		}
		if err := compare(g.part(g.sink, i), seedOf(r.Seed, !g.initiator, i), i); err != nil {
			return err
		}
	}
	return nil
}

// part returns the memory of queue pair i in a region.
func (g *group) part(mem []byte, i int) []byte { return mem[i*g.stride():][:g.Size] }

// target returns the number that the atomics of queue pair i change.
func (g *group) target(i int) *uint64 {
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(g.part(g.sink, i))))
}

// seedOf returns the seed of what one side sends on one queue pair.
func seedOf(seed uint64, initiator bool, qp int) uint64 {
	if initiator {
		seed = ^seed
	}
	seed += uint64(qp) << 32
	return mix(&seed)
}
