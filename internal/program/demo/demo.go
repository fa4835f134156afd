package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urnic/rnic"
)

// A Step is one thing that the demonstration shows.
type Step struct {
	Name string
	run  func(ctx context.Context, d *demo) error
	mpa  bool // it is of MPA over TCP
}

// Steps are all there are, in order.
var Steps = []Step{
	{Name: "connect with private data, IRD/ORD and CRC32c", run: connect},
	{Name: "Send, Send with SE", run: sends},
	{Name: "Send with Invalidate, with SE and Invalidate", run: invalidates},
	{Name: "RDMA Write, gathered from three places", run: write},
	{Name: "RDMA Read, eight in flight", run: reads},
	{Name: "RDMA Write with Immediate, Immediate Data, also with SE", run: immediates},
	{Name: "atomics: FetchAdd, masked FetchAdd, CmpSwap", run: atomics},
	{Name: "fast registration, Read with Local Invalidate", run: fastRegister},
	{Name: "memory windows of type 1 and 2, local invalidation", run: windows},
	{Name: "inline, unsignaled and fenced requests", run: flags},
	{Name: "zero-length Send, Write and Read", run: empties},
	{Name: "1 MiB by Write, Read and Send", run: large},
	{Name: "disconnect gracefully", run: disconnect},
	{Name: "peer-to-peer set-up with each RTR indication", run: peerToPeer, mpa: true},
	{Name: "markers in both directions", run: markers, mpa: true},
	{Name: "MPA revision 1", run: revision1, mpa: true},
	{Name: "shared receive queue with its limit event", run: shared},
	{Name: "reject a connection with private data", run: reject},
	{Name: "protection error: Terminate, flushed requests, events", run: terminate},
}

// A Result is what a step came to.
type Result struct {
	Name    string
	Checked int   // bytes that were compared with what they had to be
	Err     error // why it failed, if it has
}

// Options says where the demonstration shows itself.
type Options struct {
	Step   func(Result) // is called after each step, if not nil
	Config rnic.Config  // of device A, which may record and trace; its name is set here
	// Peer is the lower layer of device B, of the same kind as that of A in Config; nil is MPA over TCP. Steps that are
	// of MPA are left out over another one.
	Peer rnic.LowerLayer
}

// patience is how long a step may take: what is lost is not waited for.
const patience = time.Minute

// Run runs the steps until one fails. It returns that error, with the name of
// the step.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{}
	o.Config.Name = "A"
	if d.a, err = newDevice(o.Config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.a.Close()) }()
	if d.b, err = newDevice(rnic.Config{Name: "B", LowerLayer: o.Peer}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.b.Close()) }()
	for _, s := range Steps {
		if s.mpa && o.Peer != nil {
			continue
		}
		before := d.checked
		err := s.within(ctx, patience, d)
		if o.Step != nil {
			o.Step(Result{s.Name, d.checked - before, err})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// within runs a step that may take so long.
func (s *Step) within(ctx context.Context, d time.Duration, of *demo) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, fmt.Errorf("it was not done within %v", d))
	defer cancel()
	err := ctx.Err() // a step that need not wait would not notice
	if err == nil {
		err = s.run(ctx, of)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// A demo is two devices with a connection between them.
type demo struct {
	a, b    *device
	checked int // bytes compared
}

// A device is an rnic.Device with a protection domain.
type device struct {
	*rnic.Device
	pd *rnic.PD
	*end
}

// An end is one end of a connection: a queue pair with its completion queues.
type end struct {
	qp             *rnic.QP
	sendCQ, recvCQ *rnic.CQ
	id             uint64
}

func newDevice(cfg rnic.Config) (*device, error) {
	dev, err := rnic.Open(cfg)
	if err != nil {
		return nil, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &device{Device: dev, pd: pd}, nil
}

func (d *device) newEnd(attr rnic.QPAttr) (e *end, err error) {
	e = &end{}
	for _, cq := range []**rnic.CQ{&e.sendCQ, &e.recvCQ} {
		if *cq, err = d.CreateCQ(rnic.CQAttr{Entries: 64}); err != nil {
			return nil, err
		}
	}
	attr.SendCQ, attr.RecvCQ = e.sendCQ, e.recvCQ
	e.qp, err = d.pd.CreateQP(attr)
	return e, err
}

// link connects a new queue pair of A, as initiator, to a new one of B.
func (d *demo) link(ctx context.Context, attrB rnic.QPAttr, a, b rnic.ConnParam) (err error) {
	if d.a.end, err = d.a.newEnd(rnic.QPAttr{}); err != nil {
		return err
	}
	if d.b.end, err = d.b.newEnd(attrB); err != nil {
		return err
	}
	l, err := d.b.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Accept(ctx, d.b.qp, b)
		}
		accepted <- err
	}()
	err = d.a.qp.Connect(ctx, l.Addr().String(), a)
	return errors.Join(err, <-accepted, l.Close())
}

// part closes the connection of link and gives its queue pairs up.
func (d *demo) part(ctx context.Context) error {
	err := d.a.qp.Disconnect(ctx)
	return errors.Join(err, d.a.drop(), d.b.drop())
}

func (d *device) drop() error {
	return errors.Join(d.qp.Close(), d.sendCQ.Close(), d.recvCQ.Close())
}

// post posts a request and returns its ID.
func (e *end) post(wr rnic.SendWR) (uint64, error) {
	e.id++
	wr.ID = e.id
	return wr.ID, e.qp.PostSend(wr)
}

// do posts a request and waits for its completion.
func (e *end) do(ctx context.Context, wr rnic.SendWR) (rnic.WC, error) {
	id, err := e.post(wr)
	if err != nil {
		return rnic.WC{}, err
	}
	return e.want(ctx, e.sendCQ, id)
}

// want waits for the next completion, which must be a success of that request.
func (e *end) want(ctx context.Context, cq *rnic.CQ, id uint64) (rnic.WC, error) {
	var wcs [1]rnic.WC
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		return rnic.WC{}, err
	}
	wc := wcs[0]
	if err := wc.Err(); err != nil {
		return wc, err
	}
	if wc.ID != id {
		return wc, fmt.Errorf("request %d completed where %d was due", wc.ID, id)
	}
	return wc, nil
}

// recv posts a receive of n bytes.
func (d *device) recv(n int) (buf []byte, id uint64, err error) {
	buf, mr, err := d.memory(n, rnic.LocalWrite)
	if err != nil {
		return nil, 0, err
	}
	d.id++
	return buf, d.id, d.qp.PostRecv(rnic.RecvWR{ID: d.id, SGL: []rnic.SGE{mr.SGE(0, n)}})
}

// memory registers n fresh bytes, and at least one.
func (d *device) memory(n int, access rnic.Access) ([]byte, *rnic.MR, error) {
	mem := make([]byte, max(n, 1))
	mr, err := d.pd.Register(mem, access)
	return mem[:n], mr, err
}

// data registers bytes that are easy to tell apart.
func (d *device) data(n int, seed byte) ([]byte, *rnic.MR, error) {
	mem := make([]byte, max(n, 1))
	for i := range mem {
		mem[i] = byte(i)*5 ^ byte(i>>8) ^ seed
	}
	mr, err := d.pd.Register(mem, 0)
	return mem[:n], mr, err
}

// compare checks that what arrived is what was sent.
func (d *demo) compare(what string, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes arrived of %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d is 0x%02x, not 0x%02x", what, i, got[i], want[i])
		}
	}
	d.checked += len(want)
	return nil
}
