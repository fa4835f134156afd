package rpcrdma_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// The test program's procedures. Arguments and results are bulks behind a count.
const (
	procNull  = 0
	procEcho  = 1 // results in the stream: the arguments' bulks
	procBulks = 2 // results: the arguments' bulks, as bulks
	procRead  = 3 // arguments: lengths; results: bulks of such lengths
	procBlock = 4 // returns when the context ends, or when released
)

// A service carries out the test program.
type service struct {
	t         testing.TB
	most      int // bytes of a bulk
	calls     atomic.Int64
	running   atomic.Int64
	peak      atomic.Int64
	release   chan struct{}
	started   chan struct{} // gets a value when procBlock begins, if there is room
	heap      bool          // bulks don't come from Exchange.Bulk
	mu        sync.Mutex
	exchanges []exchange
	moved     []int // how many bulks were moved, of each call
}

type exchange struct{ netid, local, remote string }

func newService(t testing.TB) *service {
	return &service{t: t, most: 64 << 20, release: make(chan struct{}), started: make(chan struct{}, 1000)}
}

func (s *service) Serve(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	s.calls.Add(1)
	n := s.running.Add(1)
	defer s.running.Add(-1)
	for peak := s.peak.Load(); n > peak && !s.peak.CompareAndSwap(peak, n); peak = s.peak.Load() {
	}
	s.mu.Lock()
	s.exchanges = append(s.exchanges, exchange{x.Netid, fmt.Sprint(x.Local), fmt.Sprint(x.Remote)})
	s.moved = append(s.moved, len(x.Call.Moved))
	s.mu.Unlock()
	d := x.Call.Decoder()
	var c oncrpc.Call
	if err := c.Decode(d); err != nil {
		return oncrpc.ErrNoReply
	}
	r := oncrpc.Reply{XID: c.XID}
	var bulks [][]byte
	switch c.Procedure {
	case procNull:
	case procEcho, procBulks:
		for range d.Uint32() {
			p := d.Bulk(s.most)
			if d.Err() != nil {
				break
			}
			bulks = append(bulks, p)
		}
	case procRead:
		for range d.Uint32() {
			n := d.Uint32()
			if d.Err() != nil {
				break
			}
			var p []byte
			if s.heap {
				p = make([]byte, n)
			} else {
				p = x.Bulk(int(n))
			}
			fill(p, c.XID)
			bulks = append(bulks, p)
		}
	case procBlock:
		s.started <- struct{}{}
		select {
		case <-s.release:
		case <-ctx.Done():
			return oncrpc.ErrNoReply
		}
	default:
		r.Err = &oncrpc.AcceptedError{Stat: oncrpc.ProcedureUnavailable}
	}
	if d.End() != nil {
		r.Err = &oncrpc.AcceptedError{Stat: oncrpc.GarbageArguments}
	}
	if err := r.Encode(reply); err != nil {
		return err
	}
	if r.Err != nil {
		return nil
	}
	if c.Procedure == procNull || c.Procedure == procBlock {
		return nil
	}
	reply.Uint32(uint32(len(bulks)))
	for _, p := range bulks {
		if c.Procedure == procEcho {
			reply.Opaque(p)
		} else {
			reply.Bulk(p)
		}
	}
	return nil
}

// fill makes bytes that a number says.
func fill(p []byte, seed uint32) {
	x := seed*2654435761 + 1
	for i := range p {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		p[i] = byte(x)
	}
}

func filled(n int, seed uint32) []byte {
	p := make([]byte, n)
	fill(p, seed)
	return p
}

var xids atomic.Uint32

// call begins a call of the test program.
func call(proc uint32) (*oncrpc.Request, *xdr.Encoder) {
	r := &oncrpc.Request{XID: xids.Add(1), Call: new(xdr.Encoder), ReplyMost: 200}
	_ = (&oncrpc.Call{XID: r.XID, Program: 0x20000000, Version: 1, Procedure: proc}).Encode(r.Call) // without a credential nothing can be too long
	return r, r.Call
}

// headerLen is how long the header of an RPC reply is that accepts.
const headerLen = 24

// open returns a device.
func open(t testing.TB, name string, change ...func(*rnic.Config)) *rnic.Device {
	t.Helper()
	cfg := rnic.Config{Name: name}
	for _, f := range change {
		f(&cfg)
	}
	dev, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

func listen(t testing.TB, dev *rnic.Device) *rnic.Listener {
	t.Helper()
	l, err := dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serve starts a server, and returns it with its address.
func serve(t testing.TB, s oncrpc.Service, cfg rpcrdma.Config) (*rpcrdma.Server, string) {
	t.Helper()
	l := listen(t, open(t, "server"))
	srv, err := rpcrdma.NewServer(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- srv.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error("close:", err)
		}
		if err := <-over; err != nil {
			t.Error("serve:", err)
		}
	})
	return srv, l.Addr().String()
}

func dial(t testing.TB, address string, cfg rpcrdma.Config) *rpcrdma.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := rpcrdma.Dial(ctx, open(t, "client"), address, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// results decodes a reply of the test program.
func results(t testing.TB, r *oncrpc.Request, m *oncrpc.Message) [][]byte {
	t.Helper()
	d := m.Decoder()
	var h oncrpc.Reply
	if err := errors.Join(h.Decode(d), h.Err); err != nil {
		t.Fatal(err)
	}
	if h.XID != r.XID {
		t.Fatalf("the reply is to call %d, not %d", h.XID, r.XID)
	}
	if d.Left() == 0 {
		return nil
	}
	var bulks [][]byte
	for range d.Uint32() {
		bulks = append(bulks, d.Bulk(64<<20))
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	return bulks
}

// roundTrip makes a call whose arguments and results are bulks of such lengths.
func roundTrip(t testing.TB, c oncrpc.Conn, change func(r *oncrpc.Request), lengths ...int) {
	t.Helper()
	r, e := call(procBulks)
	e.Uint32(uint32(len(lengths)))
	var data [][]byte
	r.ReplyMost = headerLen + 4 + 4*len(lengths)
	for i, n := range lengths {
		data = append(data, filled(n, r.XID+uint32(i)))
		e.Bulk(data[i])
		r.Sinks = append(r.Sinks, make([]byte, n))
	}
	if change != nil {
		change(r)
	}
	m, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatalf("%v octets: %v", lengths, err)
	}
	got := results(t, r, m)
	if len(got) != len(data) {
		t.Fatalf("%d results; want %d", len(got), len(data))
	}
	for i := range data {
		if !bytes.Equal(got[i], data[i]) {
			t.Errorf("%v octets: result %d, of %d octets, is not what it should be", lengths, i, len(got[i]))
		}
	}
	m.Release()
}

// waitFor waits until something holds of which nobody tells.
func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to pass")
		}
	}
}
