package rdsstress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urnic/ulp/rds"
)

// Options say how a run is carried out. The zero value is usable.
type Options struct {
	// Transport is the index of the node's transport.
	Transport int
	// Requests ends the run of the active side once so many were answered; 0: the parameters'
	// time does, or the context.
	Requests uint64
	// Timeout bounds how long the other side may take to begin, to send its first answer, and to answer what is under
	// way at the end (30 s).
	Timeout time.Duration
	// Every is how often Interval is called (1 s).
	Every time.Duration
	// Interval, if not nil, is told what has happened since the last call, from the first
	// answer on.
	Interval func(Sample)
	// Started, if not nil, is called when both sides are ready.
	Started func()
	// Outlier, if not nil, is called for each request whose acknowledgement has taken longer than
	// OutlierTime, by several goroutines at a time. The task receives nothing meanwhile.
	OutlierTime time.Duration
	Outlier     func(took time.Duration, from, to uint16) // ports
}

// A run is a run in progress.
type run struct {
	c     *Control
	node  *rds.Node
	o     Options
	ctx   context.Context
	fail  context.CancelCauseFunc
	tasks []*task

	workers  sync.WaitGroup
	stats    stats
	more     atomic.Bool  // requests may be sent
	held     atomic.Bool  // but not yet: see hold
	pending  atomic.Int64 // requests and RDMA Reads outstanding
	answers  atomic.Uint64
	answered chan struct{} // closed by the first message that comes
	first    sync.Once
	enough   chan struct{} // closed when Options.Requests were answered
	idle     chan struct{} // told when nothing is outstanding any more
	ended    chan struct{} // closed when the other side's direction of the control connection has ended
	why      error         // nil: in order; read after ended is closed
}

// Run carries the run out, over a node with the address Local, and closes the control
// connection. It ends when the parameters' time is over, when Options.Requests were
// answered, when the other side ends it, or when the context ends, which is not an error. The result reports what has
// happened up to an error, too.
func (c *Control) Run(ctx context.Context, node *rds.Node, o Options) (*Result, error) {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	r := &run{
		c: c, node: node, o: o,
		answered: make(chan struct{}), enough: make(chan struct{}), idle: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	r.stats.init(node)
	err := r.bind()
	if err == nil {
		err = c.ready(ctx, o.Timeout)
	}
	if err == nil {
		err = r.carryOut(ctx)
	}
	for _, t := range r.tasks {
		err = errors.Join(err, t.socket.Close())
	}
	return r.result(), errors.Join(err, c.conn.Close())
}

// bind makes the tasks with their sockets.
func (r *run) bind() error {
	p := &r.c.Params
	var contents []byte
	if p.On(Verify) {
		contents = pattern(int(max(p.RequestSize, p.AckSize)) - HeaderLen)
	}
	// As the original has it, there is room for all that may be outstanding, both ways.
	room := 2 * uint64(p.Tasks) * uint64(p.Depth) * (uint64(p.RequestSize) + uint64(p.AckSize))
	buffer := int(min(max(room, 2<<20), 64<<20))
	receive := min(buffer, r.node.Info(0).Memory.PeerLimit) // a larger one would never be full
	for i := range int(p.Tasks) {
		s, err := r.node.Bind(p.Port+1+uint16(i), rds.SendBuffer(buffer), rds.ReceiveBuffer(receive))
		if err != nil {
			return fmt.Errorf("port %d of task %d: %w", int(p.Port)+1+i, i, err)
		}
		t := &task{r: r, socket: s}
		for j := range int(p.Tasks) {
			t.flows = append(t.flows, newFlow(t, j, contents))
		}
		r.tasks = append(r.tasks, t)
	}
	return nil
}

// addr returns an address as headers have it.
func addr(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	return netip.Addr{}
}

// carryOut lets the tasks send and receive until the end.
func (r *run) carryOut(ctx context.Context) error {
	r.ctx, r.fail = context.WithCancelCause(context.WithoutCancel(ctx))
	r.more.Store(r.c.Active || !r.c.Params.On(Simplex))
	if r.o.Started != nil {
		r.o.Started()
	}
	r.hold()
	r.workers.Go(r.watch)
	for _, t := range r.tasks {
		t.start()
	}
	err := r.wait(ctx)
	r.fail(nil)
	_ = r.c.conn.SetDeadline(time.Unix(1, 0)) // so that watch ends
	r.workers.Wait()
	return err
}

// hold lets the passive side wait with its requests for the first message of the active one, for a second at most. Over TCP,
// one side alone may dial. Else both sides would dial at once, and RDS would close one of the two connections, perhaps when
// it has carried messages.
func (r *run) hold() {
	if r.c.Active || r.node.Info(0).Transports[r.o.Transport] == "tcp" {
		return
	}
	r.held.Store(true)
	r.workers.Go(func() {
		late := time.NewTimer(time.Second)
		defer late.Stop()
		select {
		case <-r.answered:
		case <-late.C:
		case <-r.ctx.Done():
			return
		}
		r.held.Store(false)
		for _, t := range r.tasks {
			for _, f := range t.flows {
				f.kick()
			}
		}
	})
}

// watch waits for the end of the other side's direction of the control connection, or, as
// the passive side, for a byte.
func (r *run) watch() {
	defer close(r.ended)
	var b [64]byte
	for {
		_, err := r.c.conn.Read(b[:])
		switch {
		case err == nil && r.c.Active:
			continue // the passive side says that it is still there
		case err != nil && !errors.Is(err, io.EOF):
			r.why = err
		}
		return
	}
}

// wait waits for the end, and brings it about in order.
func (r *run) wait(ctx context.Context) error {
	if r.c.Active {
		if err := r.measure(ctx); err != nil {
			return err
		}
		return r.finishActive()
	}
	return r.waitPassive(ctx)
}

// measure waits until an active side has done enough.
func (r *run) measure(ctx context.Context) error {
	timeout := time.NewTimer(r.o.Timeout)
	defer timeout.Stop()
	select {
	case <-r.answered:
	case <-timeout.C:
		return fmt.Errorf("rdsstress: %v has answered no request within %v: check that RDS works between %v and %v", r.c.Peer, r.o.Timeout, r.c.Local, r.c.Peer)
	case <-ctx.Done():
		return nil
	case <-r.ended:
		return r.early()
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
	var over <-chan time.Time
	if s := r.c.Params.Seconds; s > 0 {
		timer := time.NewTimer(time.Duration(s) * time.Second)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(r.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.sample()
			continue
		case <-over:
		case <-r.enough:
		case <-ctx.Done():
		case <-r.ended:
			return r.early()
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
		r.stats.freeze()
		return nil
	}
}

// early is the error of a run that the passive side has ended.
func (r *run) early() error {
	if r.why == nil {
		return fmt.Errorf("rdsstress: %v has ended the run: see what it has printed", r.c.Peer)
	}
	return fmt.Errorf("rdsstress: the control connection is lost: %w", r.why)
}

// finishActive waits for what is outstanding, has the passive side end, and continues
// answering it until it has.
func (r *run) finishActive() error {
	timeout := time.NewTimer(r.o.Timeout)
	defer timeout.Stop()
	r.more.Store(false)
	if err := r.drain(timeout.C, r.ended); err != nil {
		return err
	}
	if err := r.c.hangUp(); err != nil {
		return fmt.Errorf("rdsstress: the control connection: %w", err)
	}
	select {
	case <-r.ended: // the original may reset the connection
		return r.drain(timeout.C, nil) // RDMA Reads for its last requests
	case <-timeout.C:
		return fmt.Errorf("rdsstress: %v does not end within %v", r.c.Peer, r.o.Timeout)
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// drain waits until nothing is outstanding.
func (r *run) drain(timeout <-chan time.Time, ended <-chan struct{}) error {
	for r.pending.Load() > 0 {
		select {
		case <-r.idle:
		case <-timeout:
			return fmt.Errorf("rdsstress: %d requests were not answered within %v", r.pending.Load(), r.o.Timeout)
		case <-ended:
			return r.early()
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// waitPassive waits until the active side ends the run, and for what is outstanding.
func (r *run) waitPassive(ctx context.Context) error {
	tick := time.NewTicker(r.o.Every)
	defer tick.Stop()
	begun := r.answered
	for over := false; !over; {
		select {
		case <-begun:
			begun = nil
			tick.Reset(r.o.Every)
		case <-tick.C:
			if begun == nil {
				r.sample()
			}
		case <-ctx.Done():
			return nil
		case <-r.ended: // however it has
			over = true
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	r.stats.freeze()
	r.more.Store(false)
	// An active side of this package answers as long as the connection is open. The
	// original does not, and has closed it.
	still := time.NewTicker(50 * time.Millisecond)
	defer still.Stop()
	timeout := time.NewTimer(r.o.Timeout)
	defer timeout.Stop()
	for r.pending.Load() > 0 {
		select {
		case <-r.idle:
		case <-still.C:
			if r.c.stillThere() != nil {
				return nil
			}
		case <-timeout.C:
			return fmt.Errorf("rdsstress: %d requests were not answered within %v", r.pending.Load(), r.o.Timeout)
		case <-ctx.Done():
			return nil
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// over says that a request or an RDMA Read is not outstanding any more.
func (r *run) over() {
	if r.pending.Add(-1) == 0 {
		select {
		case r.idle <- struct{}{}:
		default:
		}
	}
}

func (r *run) sample() {
	s := r.stats.sample()
	s.Tasks = int(r.c.Params.Tasks)
	if r.o.Interval != nil {
		r.o.Interval(s)
	}
}
