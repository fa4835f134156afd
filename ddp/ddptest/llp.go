// Package ddptest has a lower layer in memory for tests of DDP and of what runs
// on it. It can hand segments over in another order than they were sent, which
// MPA over TCP never does, but RFC 5041 §3 rule 5 allows.
package ddptest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"urnic/internal/host/memfault"
)

// Options says how a Pair behaves. The zero Options is in order and roomy.
type Options struct {
	MULPDU  int    // bytes; 0: 1442
	Seed    uint64 // of the order of reception
	Reorder int    // how many segments of those that have arrived are chosen from; 0 or 1: in order
	Room    int    // segments posted but not flushed; 0: 64
	Flight  int    // bytes that were flushed and not received, after which Flush waits; 0: no limit
}

// An LLP is one end of a Pair. It implements ddp.LLP.
type LLP struct {
	out, in *pipe
	room    int
	flight  int

	mu       sync.Mutex
	mulpdu   int
	posted   []segment
	count    uint64 // posted since the beginning
	accepted uint64
	rng      *rand.Rand
	reorder  int
	kept     bool // place has not taken the first segment of in
	moved    bool // a segment was passed before one that was sent earlier; for Reordered
}

// A pipe carries the segments of one direction.
type pipe struct {
	mu          sync.Mutex
	changed     chan struct{}
	segments    []segment
	ended       bool
	err         error
	octets      int  // in segments
	limited     bool // how many there may be
	interrupted bool // what waits for segments, once
}

type segment struct {
	data  []byte
	order uint64
}

// ErrAborted is what a stream fails with that either end has aborted.
var ErrAborted = fmt.Errorf("ddptest: the stream was aborted: %w", syscall.ECONNRESET)

// ErrInterrupted says that Interrupt was called.
var ErrInterrupted = errors.New("ddptest: the wait was interrupted")

// Pair returns the two ends of a stream.
func Pair(o Options) (a, b *LLP) {
	ab, ba := &pipe{changed: make(chan struct{}), limited: o.Flight > 0}, &pipe{changed: make(chan struct{}), limited: o.Flight > 0}
	end := func(out, in *pipe, n uint64) *LLP {
		l := &LLP{out: out, in: in, room: o.Room, flight: o.Flight, mulpdu: o.MULPDU, reorder: o.Reorder, rng: rand.New(rand.NewPCG(o.Seed, n))}
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
	p.change()
}

// change tells those who wait. The caller holds mu.
func (p *pipe) change() {
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
		n := len(data)
		data = append(data, make([]byte, len(p))...)
		if err := memfault.Copy(data[n:], p); err != nil {
			return false, err
		}
	}
	l.posted = append(l.posted, segment{data, l.count})
	l.count++
	return true, nil
}

// Flush implements ddp.LLP.
func (l *LLP) Flush(wait bool) (bool, error) {
	for before := l.accepted; ; {
		changed, err := l.flush()
		if done := len(l.posted) == 0; err != nil || done || !wait || l.accepted > before {
			return done, err
		}
		<-changed
	}
}

// flush moves on what there is room for, at least one segment if nothing is on its way. The
// channel tells when there may be more.
func (l *LLP) flush() (changed <-chan struct{}, err error) {
	moved := false
	p := l.out
	p.mu.Lock()
	defer func() {
		if moved {
			p.change()
			changed = p.changed
		}
		p.mu.Unlock()
	}()
	switch {
	case p.err != nil:
		return nil, p.err
	case p.ended && len(l.posted) > 0:
		return nil, io.ErrClosedPipe
	}
	for len(l.posted) > 0 {
		if n := len(l.posted[0].data); l.flight > 0 && p.octets > 0 && p.octets+n > l.flight {
			return p.changed, nil
		}
		p.octets += len(l.posted[0].data)
		p.segments = append(p.segments, l.posted[0])
		l.posted = l.posted[1:]
		l.accepted++
		moved = true
	}
	return p.changed, nil
}

// Posted implements ddp.LLP; the unit is the segment.
func (l *LLP) Posted() uint64 { return l.count }

// Accepted implements ddp.LLP.
func (l *LLP) Accepted() uint64 { return l.accepted }

// Receive implements ddp.LLP. It passes one segment a call. After a call of Interrupt, it
// returns ErrInterrupted in place of waiting.
func (l *LLP) Receive(place func(segment []byte, order uint64) error) error {
	for {
		some, changed, err := l.next(place)
		if some || err != nil {
			return err
		}
		if err := l.wait(changed); err != nil {
			return err
		}
	}
}

// wait waits for a change, or for Interrupt.
func (l *LLP) wait(changed <-chan struct{}) error {
	l.in.mu.Lock()
	now := l.in.changed
	interrupted := l.in.interrupted
	l.in.interrupted = false
	l.in.mu.Unlock()
	switch {
	case interrupted:
		return ErrInterrupted
	case now != changed: // it is there already
		return nil
	}
	<-changed
	return nil
}

// Await waits until there is something for Receive or TryReceive, if only an error, or until
// Interrupt is called: it returns ErrInterrupted then.
func (l *LLP) Await() error {
	for {
		l.in.mu.Lock()
		there, changed := len(l.in.segments) > 0 || l.in.err != nil || l.in.ended, l.in.changed
		l.in.mu.Unlock()
		if there {
			return nil
		}
		if err := l.wait(changed); err != nil {
			return err
		}
	}
}

// Interrupt makes the Receive or Await that waits now return with ErrInterrupted, or if none
// does, the next one that would wait.
func (l *LLP) Interrupt() { l.in.update(func() { l.in.interrupted = true }) }

// Reordered reports whether a segment has been passed to place before one that was sent
// earlier. The receiver may call it.
func (l *LLP) Reordered() bool { return l.moved }

// TryReceive implements ddp.LLP. It passes one segment a call.
func (l *LLP) TryReceive(place func(segment []byte, order uint64) error) (bool, error) {
	some, _, err := l.next(place)
	return some, err
}

// next passes a segment, if there is one. Else changed tells when there may be.
func (l *LLP) next(place func(segment []byte, order uint64) error) (some bool, changed <-chan struct{}, err error) {
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
	if l.reorder > 1 && !l.kept {
		i = l.rng.IntN(min(n, l.reorder))
	}
	s := l.in.segments[i]
	l.in.segments = slices.Delete(l.in.segments, i, i+1)
	l.in.mu.Unlock()
	l.moved = l.moved || i > 0
	err = place(s.data, s.order)
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if l.kept = err != nil; l.kept {
		l.in.segments = slices.Insert(l.in.segments, 0, s)
		return false, nil, err
	}
	if l.in.octets -= len(s.data); l.in.limited {
		l.in.change() // there is room
	}
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
	l.out.update(func() {
		l.out.octets += len(data)
		l.out.segments = append(l.out.segments, segment{slices.Clone(data), order})
	})
}

// Discard implements ddp.LLP.
func (l *LLP) Discard() error {
	for {
		switch err := l.Receive(func([]byte, uint64) error { return nil }); {
		case err == nil, errors.Is(err, ErrInterrupted):
		case errors.Is(err, io.EOF):
			return nil
		default:
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
