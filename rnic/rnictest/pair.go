// Package rnictest connects two emulated RNICs in memory, for tests of programs
// that use verbs:
//
//	func TestEcho(t *testing.T) {
//		rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
//			…p.A.QP and p.B.QP are connected…
//		})
//	}
//
// Run puts the test into a testing/synctest bubble: time is fake, so timeouts
// of minutes pass at once, and a goroutine left behind fails the test.
// [Connect] does the same without a bubble, for benchmarks and for tests that
// already have one.
//
// [Faults] make the network between the two misbehave: the connection is cut,
// stalls, delivers a flipped bit, is slow, or splits reads and writes. Numbers
// give the positions, or a seed chooses them ([RandomFaults]), so a test that
// fails can be repeated. A [Reordering] replaces network and MPA, and changes
// the order of segments.
package rnictest

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/rnic"
)

// Options has the options of a Pair. The zero Options is right for most tests.
type Options struct {
	// AB and BA are the faults of the bytes from A to B and from B to A.
	AB, BA Faults
	// MSS is the segment size of the network in bytes, which determines the
	// size of FPDUs; 0 stands for mpa.DefaultEMSS.
	MSS int
	// Polls makes the network one that can be polled, like TCP on Linux. A
	// program that waits for completions then receives in its own goroutine,
	// and it may take up to 20 ms until goroutines of the RNIC take over;
	// synctest.Wait does not wait for that.
	Polls bool
	// LowerLayer, if not nil, replaces the network, its faults and MPA: see
	// Reordering.
	LowerLayer rnic.LowerLayer

	// Device, QP and Conn change the configuration of either side before it is
	// used; they may be nil.
	Device func(side string, cfg *rnic.Config)
	QP     func(side string, attr *rnic.QPAttr)
	Conn   func(side string, param *rnic.ConnParam)
}

// A Side is one end of a connection, with the objects of a program. The
// completion queues hold 1024 entries.
type Side struct {
	Name           string // "A" or "B"
	Device         *rnic.Device
	PD             *rnic.PD
	SendCQ, RecvCQ *rnic.CQ
	QP             *rnic.QP
}

// A Pair is two connected sides. A has initiated the connection.
type Pair struct {
	A, B *Side

	address string // at which B listens; "" for one on loopback
}

// Link connects two more queue pairs: a of side A initiates, b of side B
// accepts. It also works for pairs that a test has built from two devices on
// TCP.
func (p *Pair) Link(t testing.TB, a, b *rnic.QP) {
	t.Helper()
	if err := p.TryLink(a, b, rnic.ConnParam{}, rnic.ConnParam{}); err != nil {
		t.Fatal(err)
	}
}

// TryLink is like Link, for tests in which start-up may fail: it returns the
// joined errors of the two sides.
func (p *Pair) TryLink(a, b *rnic.QP, pa, pb rnic.ConnParam) error {
	ctx := context.Background()
	l, err := p.B.Device.Listen(ctx, cmp.Or(p.address, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Accept(ctx, b, pb)
		}
		accepted <- err
	}()
	err = a.Connect(ctx, l.Addr().String(), pa)
	if err != nil {
		_ = l.Close() // the other side gives up as well
	}
	err = errors.Join(err, <-accepted)
	_ = l.Close()
	return err
}

// Run runs f with a connected pair, on a fake clock.
func Run(t *testing.T, f func(t *testing.T, p *Pair), options ...Options) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, Connect(t, options...)) })
}

// Connect returns a connected pair. The devices are closed when the test ends.
func Connect(t testing.TB, options ...Options) *Pair {
	t.Helper()
	p, err := connect(t, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TryConnect is like Connect, for tests in which start-up may fail: it returns
// the joined errors of the two sides. It always returns the pair.
func TryConnect(t testing.TB, options ...Options) (*Pair, error) {
	t.Helper()
	return connect(t, options...)
}

func connect(t testing.TB, options ...Options) (*Pair, error) {
	t.Helper()
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	if o.MSS == 0 {
		o.MSS = mpa.DefaultEMSS
	}
	network := &simnet.Network{Options: func(int) simnet.Options {
		return simnet.Options{AB: simnet.Faults(o.AB), BA: simnet.Faults(o.BA), MSS: o.MSS, Polls: o.Polls}
	}}
	p := &Pair{A: newSide(t, "A", network, &o), B: newSide(t, "B", network, &o), address: "192.0.2.2:7174"}
	return p, p.TryLink(p.A.QP, p.B.QP, o.param("A"), o.param("B"))
}

func (o *Options) param(side string) rnic.ConnParam {
	var p rnic.ConnParam
	if o.Conn != nil {
		o.Conn(side, &p)
	}
	return p
}

// newSide opens a device with one of everything.
func newSide(t testing.TB, name string, network rnic.Network, o *Options) *Side {
	t.Helper()
	cfg := rnic.Config{Name: name, Network: network, LowerLayer: o.LowerLayer}
	if o.Device != nil {
		o.Device(name, &cfg)
	}
	s := &Side{Name: name}
	var err error
	check := func(e error) {
		if t.Helper(); e != nil {
			t.Fatal(e)
		}
	}
	s.Device, err = rnic.Open(cfg)
	check(err)
	t.Cleanup(func() {
		if err := s.Device.Close(); err != nil {
			t.Errorf("device %s: %v", name, err)
		}
	})
	s.PD, err = s.Device.AllocPD()
	check(err)
	s.SendCQ, err = s.Device.CreateCQ(rnic.CQAttr{Entries: 1024})
	check(err)
	s.RecvCQ, err = s.Device.CreateCQ(rnic.CQAttr{Entries: 1024})
	check(err)
	attr := rnic.QPAttr{SendCQ: s.SendCQ, RecvCQ: s.RecvCQ}
	if o.QP != nil {
		o.QP(name, &attr)
	}
	s.QP, err = s.PD.CreateQP(attr)
	check(err)
	return s
}

// Register registers memory of the side with the given rights.
func (s *Side) Register(t testing.TB, mem []byte, access rnic.Access) *rnic.MR {
	t.Helper()
	mr, err := s.PD.Register(mem, access)
	if err != nil {
		t.Fatal(err)
	}
	return mr
}

// Send posts requests to the side's queue pair.
func (s *Side) Send(t testing.TB, wrs ...rnic.SendWR) {
	t.Helper()
	if err := s.QP.PostSend(wrs...); err != nil {
		t.Fatal(err)
	}
}

// Recv posts receives to the side's queue pair.
func (s *Side) Recv(t testing.TB, wrs ...rnic.RecvWR) {
	t.Helper()
	if err := s.QP.PostRecv(wrs...); err != nil {
		t.Fatal(err)
	}
}

// Next waits for the next completion in cq, which may be in error.
func Next(t testing.TB, cq *rnic.CQ) rnic.WC {
	t.Helper()
	var wcs [1]rnic.WC
	if _, err := cq.Wait(context.Background(), wcs[:]); err != nil {
		t.Fatal(err)
	}
	return wcs[0]
}

// Want waits for the next completion in cq, which must be a success of the
// request with that ID.
func Want(t testing.TB, cq *rnic.CQ, id uint64) rnic.WC {
	t.Helper()
	wc := Next(t, cq)
	if err := wc.Err(); err != nil {
		t.Fatal(err)
	}
	if wc.ID != id {
		t.Fatalf("completion of request %d (%v); want %d", wc.ID, wc.Op, id)
	}
	return wc
}
