package rdsstress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"urnic/ulp/rds"
)

// A task has a socket, and a flow to each task of the other side. One goroutine receives. Whoever has something to
// send sends it, until the socket refuses; then a goroutine of the flow waits.
type task struct {
	r      *run
	socket *rds.Socket
	flows  []*flow
}

// A flow sends to one task of the other side.
type flow struct {
	t  *task
	to rds.Addr

	mu sync.Mutex // guards pair
	pair
	// With RDMA. Of a slot, who sends and who receives take turns; busy is guarded by mu.
	regions *regions // nil: there is none

	tx      sync.Mutex // of whoever sends
	out     *outgoing  // a message that the socket has not taken; under tx
	dirty   atomic.Bool
	refused atomic.Bool
	retry   chan struct{} // tells the goroutine that waits
}

// outgoing is a message that is being sent.
type outgoing struct {
	h Header
	rds.Message
	op *rds.Operation // that precedes it, or nil
}

func newFlow(t *task, other int, contents []byte) *flow {
	c := t.r.c
	f := &flow{
		t: t, retry: make(chan struct{}, 1),
		to: rds.Addr{Host: c.Peer, Port: c.Params.Port + 1 + uint16(other), TOS: c.Params.TOS},
	}
	task := int(t.socket.Addr().Port - c.Params.Port - 1)
	f.pair = *newPair(&c.Params, addr(c.Local), addr(c.Peer), task, other, contents)
	if c.Params.RDMASize > 0 {
		f.regions = newRegions(&c.Params)
	}
	return f
}

func (t *task) start() {
	workers := &t.r.workers
	workers.Go(t.receive)
	for _, f := range t.flows {
		workers.Go(f.wait)
	}
	for _, f := range t.flows {
		f.kick()
	}
}

// receive takes messages until the run ends.
func (t *task) receive() {
	for {
		msg, err := t.socket.Receive(t.r.ctx)
		if err != nil {
			t.r.fail(fmt.Errorf("rdsstress: receiving: %w", err))
			return
		}
		i := int(msg.Addr.Port) - int(t.r.c.Params.Port) - 1
		if i < 0 || i >= len(t.flows) || msg.Addr.Host != t.r.c.Peer {
			continue // a stranger's
		}
		f := t.flows[i]
		if err := f.arrived(msg); err != nil {
			t.r.fail(fmt.Errorf("rdsstress: %w", err))
			return
		}
		f.kick()
	}
}

// arrived judges a message, and counts it.
func (f *flow) arrived(msg *rds.Message) error {
	r := f.t.r
	now := time.Now()
	f.mu.Lock()
	h, begun, err := f.pair.arrived(msg.Data, uint64(msg.Cookie))
	if err == nil && h.Op == Ack && h.RDMAOp != NoRDMA {
		err = f.used(&h) // before the slot is used again
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	r.first.Do(func() { r.stats.begin(); close(r.answered) })
	r.stats.received(h.Op, len(msg.Data))
	if h.Op == Request {
		return nil
	}
	took := now.Sub(begun)
	r.stats.answered(took)
	if r.o.Outlier != nil && took > r.o.OutlierTime {
		r.o.Outlier(took, f.t.socket.Addr().Port, f.to.Port)
	}
	if r.answers.Add(1) == r.o.Requests {
		close(r.enough)
	}
	r.over()
	return nil
}

// kick sends what there is. If somebody sends already, that one looks again.
func (f *flow) kick() {
	f.dirty.Store(true)
	for !f.refused.Load() && f.dirty.Load() && f.tx.TryLock() {
		f.transmit(false)
		f.tx.Unlock()
	}
}

// wait sends what the socket has refused.
func (f *flow) wait() {
	for {
		select {
		case <-f.retry:
		case <-f.t.r.ctx.Done():
			return
		}
		f.tx.Lock()
		f.transmit(true)
		f.refused.Store(false)
		f.tx.Unlock()
		if f.dirty.Load() {
			f.kick()
		}
	}
}

// transmit sends until there is nothing left. The caller has tx.
func (f *flow) transmit(wait bool) {
	f.dirty.Store(false)
	r := f.t.r
	for r.ctx.Err() == nil && f.compose() {
		options := []rds.SendOption{rds.Via(r.o.Transport)}
		if !wait {
			options = append(options, rds.NoWait())
		}
		out := f.out
		if out.op != nil {
			options = append(options, rds.With(out.op))
		}
		begun := time.Now()
		_, err := f.t.socket.Send(r.ctx, &out.Message, options...)
		switch {
		case err == nil:
			r.stats.sent(out.h.Op, len(out.Data), time.Since(begun))
			if out.op != nil {
				r.workers.Go(func() { f.operated(out.h, out.op) })
			}
			f.out = nil
		case !wait && (errors.Is(err, rds.ErrCongested) || errors.Is(err, rds.ErrBufferFull)):
			f.refused.Store(true)
			f.retry <- struct{}{} // there is room: the goroutine has taken the last one
			return
		default:
			if !errors.Is(err, context.Canceled) {
				r.fail(fmt.Errorf("rdsstress: sending to %v: %w", f.to, err))
			}
			return
		}
	}
}

// compose takes the next message from the pair, if the last one is sent.
func (f *flow) compose() bool {
	if f.out != nil {
		return true
	}
	r := f.t.r
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.pair.compose(time.Now(), r.more.Load() && !r.held.Load(), f.blocked)
	if h.Op == 0 {
		return false
	}
	if h.Op == Request {
		r.pending.Add(1)
	}
	f.out = &outgoing{h: h, Message: rds.Message{Addr: f.to, Data: f.encode(&h)}}
	switch {
	case h.RDMAOp == NoRDMA:
	case h.Op == Ack:
		f.out.op = f.operate(&h)
		if h.RDMAOp == Read {
			r.pending.Add(1) // what is read is compared before the run ends
		}
	default:
		cookie, err := f.offer(&h)
		if err != nil {
			r.fail(fmt.Errorf("rdsstress: %w", err))
			return false
		}
		f.out.Cookie = cookie
		f.asked[h.Index].Key = uint64(cookie)
	}
	return true
}

// blocked reports whether an operation of a slot is in progress.
func (f *flow) blocked(slot uint32) bool { return f.regions != nil && f.regions.busy[slot] }
