// Package ddptest has a lower layer in memory for tests of DDP and of what runs
// on it. It can hand segments over in another order than they were sent, which
// MPA over TCP never does, but RFC 5041 §3 rule 5 allows.
package ddptest

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
)

// Options says how a Pair behaves. The zero Options is in order and roomy.
type Options struct {
	MULPDU  int    // octets; 0: 1442
	Seed    uint64 // of the order of reception
	Reorder int    // how many segments of those that have arrived are chosen from; 0 or 1: in order
	Room    int    // segments posted but not flushed; 0: 64
}

// An LLP is one end of a Pair. It implements ddp.LLP.
type LLP struct {
	out, in *pipe
	room    int

	mu       sync.Mutex
	mulpdu   int
	posted   []segment
	count    uint64 // posted since the beginning
	accepted uint64
	rng      *rand.Rand
	reorder  int
}

// A pipe carries the segments of one direction.
type pipe struct {
	mu       sync.Mutex
	changed  chan struct{}
	segments []segment
	ended    bool
	err      error
}

type segment struct {
	data  []byte
	order uint64
}

// ErrAborted is what a stream fails with that either end has aborted.
var ErrAborted = errors.New("ddptest: the stream was aborted")

// Pair returns the two ends of a stream.
func Pair(o Options) (a, b *LLP) {
	ab, ba := &pipe{changed: make(chan struct{})}, &pipe{changed: make(chan struct{})}
	end := func(out, in *pipe, n uint64) *LLP {
		l := &LLP{out: out, in: in, room: o.Room, mulpdu: o.MULPDU, reorder: o.Reorder, rng: rand.New(rand.NewPCG(o.Seed, n))}
		if l.room == 0 {
			l.room = 64
		}
		if l.mulpdu == 0 {
			l.mulpdu = 1442
		}
		return l
	}
	return end(ab, ba, 1), end(ba, ab, 2)
}

func (p *pipe) update(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// MULPDU implements ddp.LLP.
func (l *LLP) MULPDU() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mulpdu
}

// SetMULPDU changes what MULPDU returns from now on.
func (l *LLP) SetMULPDU(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mulpdu = n
}

// Post implements ddp.LLP.
func (l *LLP) Post(header []byte, payload [][]byte, _ bool) (bool, error) {
	if len(l.posted) == l.room {
		return false, nil
	}
	data := slices.Clone(header)
	for _, p := range payload {
		data = append(data, p...)
	}
	l.posted = append(l.posted, segment{data, l.count})
	l.count++
	return true, nil
}

// Flush implements ddp.LLP. There is always room.
func (l *LLP) Flush(bool) (bool, error) {
	var err error
	l.out.update(func() {
		switch {
		case l.out.err != nil:
			err = l.out.err
		case l.out.ended && len(l.posted) > 0:
			err = io.ErrClosedPipe
		default:
			l.out.segments = append(l.out.segments, l.posted...)
		}
	})
	if err != nil {
		return false, err
	}
	l.posted, l.accepted = nil, l.count
	return true, nil
}

// Posted implements ddp.LLP; the unit is the segment.
func (l *LLP) Posted() uint64 { return l.count }

// Accepted implements ddp.LLP.
func (l *LLP) Accepted() uint64 { return l.accepted }

// Receive implements ddp.LLP. It passes one segment a call.
func (l *LLP) Receive(place func(segment []byte, order uint64)) error {
	for {
		some, changed, err := l.next(place)
		if some || err != nil {
			return err
		}
		<-changed
	}
}

// TryReceive implements ddp.LLP. It passes one segment a call.
func (l *LLP) TryReceive(place func(segment []byte, order uint64)) (bool, error) {
	some, _, err := l.next(place)
	return some, err
}

// next passes a segment, if there is one. Else changed tells when there may be.
func (l *LLP) next(place func(segment []byte, order uint64)) (some bool, changed <-chan struct{}, err error) {
	l.in.mu.Lock()
	n := len(l.in.segments)
	if l.in.err != nil || n == 0 {
		defer l.in.mu.Unlock()
		if l.in.err == nil && l.in.ended {
			return false, nil, io.EOF
		}
		return false, l.in.changed, l.in.err
	}
	i := 0
	if l.reorder > 1 {
		i = l.rng.IntN(min(n, l.reorder))
	}
	s := l.in.segments[i]
	l.in.segments = slices.Delete(l.in.segments, i, i+1)
	l.in.mu.Unlock()
	place(s.data, s.order)
	return true, nil, nil
}

// Waiting returns how many segments have arrived and are not received yet.
func (l *LLP) Waiting() int {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	return len(l.in.segments)
}

// Inject hands the peer a segment as if it had been sent, with an order of the
// caller's choice, even after the stream was ended.
func (l *LLP) Inject(data []byte, order uint64) {
	l.out.update(func() { l.out.segments = append(l.out.segments, segment{slices.Clone(data), order}) })
}

// Discard implements ddp.LLP.
func (l *LLP) Discard() error {
	for {
		if err := l.Receive(func([]byte, uint64) {}); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// CloseWrite implements ddp.LLP.
func (l *LLP) CloseWrite() error {
	l.out.update(func() { l.out.ended = true })
	return nil
}

// Close implements ddp.LLP.
func (l *LLP) Close() error {
	l.out.update(func() { l.out.ended = true })
	l.in.update(func() { l.in.err = io.ErrClosedPipe })
	return nil
}

// Abort implements ddp.LLP.
func (l *LLP) Abort() error {
	for _, p := range []*pipe{l.out, l.in} {
		p.update(func() { p.err = ErrAborted })
	}
	return nil
}
