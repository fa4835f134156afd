package rnic_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// exchange has A send one message of each kind, and returns how many of each
// there were on the way from A to B, and back.
func exchange(t *testing.T, p *rnictest.Pair) (there, back map[rdmap.Opcode]rdmap.Count) {
	t.Helper()
	_, mem := words(100)
	target, word := p.B.Register(t, mem, everyRight), p.B.Register(t, mem[:8], everyRight)
	local := p.A.Register(t, make([]byte, 800), rnic.LocalWrite)
	once := labOf(t, p.B).scoped(p.B.QP, make([]byte, 8), 0, p.B.QP)
	buf := p.B.Register(t, make([]byte, 800), rnic.LocalWrite)
	for range 6 {
		p.B.Recv(t, rnic.RecvWR{SGL: []rnic.SGE{buf.SGE(0, 800)}})
	}
	p.A.Send(t,
		rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{local.SGE(0, 100)}},
		rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagSolicited, SGL: []rnic.SGE{local.SGE(0, 11)}},
		rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{local.SGE(0, 500)}, Remote: target.Remote(8)},
		rnic.SendWR{Op: rnic.OpWriteImmediate, SGL: []rnic.SGE{local.SGE(0, 300)}, Remote: target.Remote(16)},
		rnic.SendWR{Op: rnic.OpImmediate, Flags: rnic.FlagSolicited},
		rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{local.SGE(0, 700)}, Remote: target.Remote(24)},
		rnic.SendWR{Op: rnic.OpFetchAdd, Remote: word.Remote(0)},
		rnic.SendWR{Op: rnic.OpSendInvalidate, Invalidate: once.STag()},
	)
	for range 8 {
		rnictest.Want(t, p.A.SendCQ, 0)
	}
	for range 5 {
		rnictest.Want(t, p.B.RecvCQ, 0)
	}
	want := stag.Stats{Accesses: 3, OctetsIn: 500 + 300, OctetsOut: 700}
	if s := target.Stats(); s != want {
		t.Errorf("the STag counts %+v; want %+v", s, want)
	}
	if s, want := word.Stats(), (stag.Stats{Accesses: 1, OctetsIn: 8}); s != want {
		t.Errorf("the STag of the atomic counts %+v; want %+v", s, want)
	}
	there = map[rdmap.Opcode]rdmap.Count{
		rdmap.OpSend: {Messages: 1, Octets: 100}, rdmap.OpSendSE: {Messages: 1, Octets: 11}, rdmap.OpSendInvalidate: {Messages: 1},
		rdmap.OpWrite: {Messages: 2, Octets: 800}, rdmap.OpImmediate: {Messages: 1, Octets: 8}, rdmap.OpImmediateSE: {Messages: 1, Octets: 8},
		rdmap.OpReadRequest: {Messages: 1, Octets: rdmap.ReadRequestLen}, rdmap.OpAtomicRequest: {Messages: 1, Octets: rdmap.AtomicRequestLen},
	}
	back = map[rdmap.Opcode]rdmap.Count{
		rdmap.OpReadResponse: {Messages: 1, Octets: 700}, rdmap.OpAtomicResponse: {Messages: 1, Octets: rdmap.AtomicResponseLen},
	}
	return there, back
}

// wantCounts compares counters with what was sent and received, times n.
func wantCounts(t *testing.T, what string, got rdmap.Stats, sent, received map[rdmap.Opcode]rdmap.Count, n uint64) {
	t.Helper()
	for op := range rdmap.Opcode(len(got.Sent)) {
		for dir, c := range map[string][2]rdmap.Count{"sent": {got.Sent[op], sent[op]}, "received": {got.Received[op], received[op]}} {
			want := rdmap.Count{Messages: n * c[1].Messages, Octets: n * c[1].Octets}
			if c[0] != want {
				t.Errorf("%s: %v %s: %+v; want %+v", what, op, dir, c[0], want)
			}
		}
	}
}

func TestCountersCountEachMessage(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		there, back := exchange(t, p)
		synctest.Wait()
		wantCounts(t, "A's queue pair", p.A.QP.Counters(), there, back, 1)
		wantCounts(t, "B's queue pair", p.B.QP.Counters(), back, there, 1)
		// They outlive the stream, and the queue pair too.
		if err := p.A.QP.Disconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var wcs [8]rnic.WC
		p.B.RecvCQ.Poll(wcs[:]) // the flushed receive
		for _, q := range []*rnic.QP{p.A.QP, p.B.QP} {
			if err := q.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		p.Link(t, p.A.QP, p.B.QP)
		exchange(t, p)
		synctest.Wait()
		wantCounts(t, "A's second stream", p.A.QP.Counters(), there, back, 2)
		wantCounts(t, "B's second stream", p.B.QP.Counters(), back, there, 2)
		wantCounts(t, "device A", p.A.Device.Counters().Messages, there, back, 2)
		for _, q := range []*rnic.QP{p.A.QP, p.B.QP} {
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
		}
		wantCounts(t, "device A without queue pairs", p.A.Device.Counters().Messages, there, back, 2)
		wantCounts(t, "device B without queue pairs", p.B.Device.Counters().Messages, back, there, 2)
		wantCounts(t, "closed queue pair", p.A.QP.Counters(), there, back, 2)
	})
}

func TestDeviceCountsConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		a, b := labOf(t, p.A), labOf(t, p.B)
		p.Link(t, a.qp(p.A.PD, rnic.QPAttr{}), b.qp(p.B.PD, rnic.QPAttr{}))
		p.A.QP.Abort()
		synctest.Wait()
		l, err := p.B.Device.Listen(t.Context(), "192.0.2.2:7174")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			r, err := l.Accept(t.Context())
			if err == nil {
				err = r.Reject(t.Context(), []byte("no"))
			}
			if err != nil {
				t.Error(err)
			}
		}()
		q := a.qp(p.A.PD, rnic.QPAttr{})
		if err := q.Connect(t.Context(), "192.0.2.2:7174", rnic.ConnParam{}); err == nil {
			t.Error("connected although rejected")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := q.Connect(t.Context(), "192.0.2.2:7174", rnic.ConnParam{}); err == nil {
			t.Error("connected although nobody listens")
		}
		synctest.Wait()
		got := p.A.Device.Counters()
		if got.Connected != 2 || got.Accepted != 0 || got.Rejected != 0 || got.Failed != 2 || got.Lost != 1 {
			t.Errorf("A: %+v", got)
		}
		got = p.B.Device.Counters()
		if got.Connected != 0 || got.Accepted != 2 || got.Rejected != 1 || got.Failed != 0 || got.Lost != 1 {
			t.Errorf("B: %+v", got)
		}
	})
}

// The trace hook of either side sees each message, with the stream it belongs to.
func TestTraceSeesEachMessageOnBothSides(t *testing.T) {
	a, b := new(tracer), new(tracer)
	both := a.options("A", rnictest.Options{})
	atA := both.Device
	atB := b.options("B", rnictest.Options{}).Device
	both.Device = func(side string, cfg *rnic.Config) {
		cfg.Name = "device " + side
		atA(side, cfg)
		atB(side, cfg)
	}
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		a.forget()
		b.forget()
		exchange(t, p)
		synctest.Wait()
		for _, s := range []struct {
			*rnictest.Side
			*tracer
		}{{p.A, a}, {p.B, b}} {
			for _, m := range s.seen {
				if m.Device != "device "+s.Name || m.QPN != s.QP.Num() {
					t.Errorf("side %s sees %+v", s.Name, m)
				}
			}
		}
		// What one side has sent, the other one has received, in the same order.
		sentBy := func(r *tracer, sent bool) []string {
			var s []string
			for _, m := range r.seen {
				if m.Sent == sent {
					s = append(s, fmt.Sprintf("%v %d octets STag %v TO 0x%x MSN %d", m.Op, m.Length, m.STag, m.TO, m.MSN))
				}
			}
			return s
		}
		if s, r := sentBy(a, true), sentBy(b, false); !slices.Equal(s, r) || len(s) != 9 {
			t.Errorf("A sent %d messages:\n%q\nB received %d:\n%q", len(s), s, len(r), r)
		}
		if s, r := sentBy(b, true), sentBy(a, false); !slices.Equal(s, r) || len(s) != 2 {
			t.Errorf("B sent %d messages:\n%q\nA received %d:\n%q", len(s), s, len(r), r)
		}
	}, both)
}

// A queue pair that is being closed is counted once at each moment.
func TestCountersStayExactWhileQueuePairsClose(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const pairs = 100
		var all []*rnic.QP
		for range pairs {
			a, b := newQP(t, p.A.Device, p.A.PD, rnic.QPAttr{}), newQP(t, p.B.Device, p.B.PD, rnic.QPAttr{})
			p.Link(t, a.QP, b.QP)
			a.Send(t, rnic.SendWR{Op: rnic.OpWrite})
			all = append(all, a.QP)
		}
		synctest.Wait()
		var closed atomic.Bool
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for over := false; !over; {
					over = closed.Load()
					if n := p.A.Device.Counters().Messages.Sent[rdmap.OpWrite].Messages; n != pairs {
						t.Errorf("%d Writes are counted; want %d", n, pairs)
						return
					}
				}
			})
		}
		for _, q := range all {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
		closed.Store(true)
		wg.Wait()
	})
}
