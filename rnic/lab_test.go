package rnic_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A lab makes objects of a device, all of which must come into being.
type lab struct {
	testing.TB
	dev *rnic.Device
}

// newLab opens a device, and closes it when the test ends.
func newLab(t testing.TB, cfg rnic.Config) lab {
	t.Helper()
	d, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab{t, d}
}

// made returns v, unless it could not be made.
func made[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (l lab) domain() *rnic.PD {
	l.Helper()
	p, err := l.dev.AllocPD()
	return made(l, p, err)
}

func (l lab) cq(attr rnic.CQAttr) *rnic.CQ {
	l.Helper()
	c, err := l.dev.CreateCQ(attr)
	return made(l, c, err)
}

func (l lab) channel() *rnic.CompletionChannel {
	l.Helper()
	c, err := l.dev.CreateCompletionChannel()
	return made(l, c, err)
}

// qp makes a queue pair; completion queues that attr does not name are made too.
func (l lab) qp(p *rnic.PD, attr rnic.QPAttr) *rnic.QP {
	l.Helper()
	for _, c := range []**rnic.CQ{&attr.SendCQ, &attr.RecvCQ} {
		if *c == nil {
			*c = l.cq(rnic.CQAttr{})
		}
	}
	q, err := p.CreateQP(attr)
	return made(l, q, err)
}

func (l lab) srq(p *rnic.PD, attr rnic.SRQAttr) *rnic.SRQ {
	l.Helper()
	s, err := p.CreateSRQ(attr)
	return made(l, s, err)
}

func (l lab) region(p *rnic.PD, mem []byte, access rnic.Access) *rnic.MR {
	l.Helper()
	mr, err := p.Register(mem, access)
	return made(l, mr, err)
}

func (l lab) window(p *rnic.PD, typ rnic.WindowType) *rnic.MW {
	l.Helper()
	w, err := p.AllocMW(typ)
	return made(l, w, err)
}

// labOf returns the device of a side.
func labOf(t testing.TB, s *rnictest.Side) lab { return lab{t, s.Device} }

// wantRefused checks that err is an *OpError that wraps a cause, if there is one
// to name, and says the words.
func wantRefused(t testing.TB, what string, err, cause error, words ...string) {
	t.Helper()
	var op *rnic.OpError
	switch {
	case err == nil:
		t.Errorf("%s: no error", what)
	case !errors.As(err, &op) || op.Op == "" || op.Object == "":
		t.Errorf("%s: %T without operation and object: %v", what, err, err)
	case cause != nil && !errors.Is(err, cause):
		t.Errorf("%s: %v; want one that wraps %v", what, err, cause)
	default:
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want one that says %q", what, err, w)
			}
		}
	}
}

// wantLimit checks that err names the resource that was not to be had.
func wantLimit(t testing.TB, what string, err error, r pd.Resource) {
	t.Helper()
	var limit *pd.LimitError
	if !errors.As(err, &limit) || limit.Resource != r {
		t.Errorf("%s: %v; want the limit of %v", what, err, r)
	}
}

// nextEvent waits for the next asynchronous event, which must be of that type.
func nextEvent(t testing.TB, d *rnic.Device, want rnic.EventType) rnic.Event {
	t.Helper()
	ev, err := d.WaitEvent(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if ev.Type != want {
		t.Fatalf("event: %v; want %v", ev, want)
	}
	return ev
}

// wantTerminate waits for the event that the peer has sent a Terminate with that
// code.
func wantTerminate(t testing.TB, d *rnic.Device, code rdmap.TermCode) {
	t.Helper()
	if ev := nextEvent(t, d, rnic.EventTerminateReceived); ev.Terminate == nil || ev.Terminate.Code != code {
		t.Errorf("%v; want %v", ev, code)
	}
}

// wantNoEvent checks that nothing has been reported that nobody fetched.
func wantNoEvent(t testing.TB, d *rnic.Device) {
	t.Helper()
	if ev, ok := d.PollEvent(); ok {
		t.Errorf("unexpected event: %v", ev)
	}
}

// wantStatus waits for the next completion, which must be of that request and
// with that status.
func wantStatus(t testing.TB, cq *rnic.CQ, id uint64, status rnic.Status) rnic.WC {
	t.Helper()
	wc := rnictest.Next(t, cq)
	if wc.ID != id || wc.Status != status {
		t.Errorf("completion of request %d: %v (%v); want %d: %v", wc.ID, wc.Status, wc.Cause, id, status)
	}
	return wc
}

// wantEmpty checks that a completion queue is empty.
func wantEmpty(t testing.TB, cq *rnic.CQ) {
	t.Helper()
	var wcs [1]rnic.WC
	if n := cq.Poll(wcs[:]); n != 0 {
		t.Errorf("a completion that nobody expected: %+v", wcs[0])
	}
}

// open sends the message without which a Responder may not send (RFC 5044 §7.1.2
// rule 4): a Write of nothing, which the peer's ULP does not see.
func open(t testing.TB, q *rnic.QP) {
	t.Helper()
	if err := q.PostSend(rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled}); err != nil {
		t.Fatal(err)
	}
}

// receives returns receives without a buffer, with IDs from first on.
func receives(first, n int) []rnic.RecvWR {
	wrs := make([]rnic.RecvWR, n)
	for i := range wrs {
		wrs[i].ID = uint64(first + i)
	}
	return wrs
}

// empties returns Sends of nothing, with IDs from first on.
func empties(first, n int, flags rnic.Flags) []rnic.SendWR {
	wrs := make([]rnic.SendWR, n)
	for i := range wrs {
		wrs[i] = rnic.SendWR{ID: uint64(first + i), Op: rnic.OpSend, Flags: flags}
	}
	return wrs
}
