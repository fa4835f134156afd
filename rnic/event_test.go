package rnic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/door"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// raise makes a device report n events: of an empty SRQ whose limit is armed.
func (l lab) raise(s *rnic.SRQ, n int) {
	l.Helper()
	for range n {
		if err := s.ArmLimit(1); err != nil {
			l.Fatal(err)
		}
	}
}

func TestEventsAreFetchedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		p := l.domain()
		first, second := l.srq(p, rnic.SRQAttr{}), l.srq(p, rnic.SRQAttr{})
		wantNoEvent(t, l.dev)
		l.raise(first, 1)
		l.raise(second, 2)
		for _, want := range []*rnic.SRQ{first, second} {
			if ev := nextEvent(t, l.dev, rnic.EventSRQLimit); ev.SRQ != want || ev.Lost != 0 {
				t.Errorf("%+v", ev)
			}
		}
		if ev, ok := l.dev.PollEvent(); !ok || ev.SRQ != second {
			t.Errorf("%+v, %v", ev, ok)
		}
		wantNoEvent(t, l.dev)

		got := make(chan rnic.Event)
		go func() {
			ev, err := l.dev.WaitEvent(context.Background())
			if err != nil {
				t.Error(err)
			}
			got <- ev
		}()
		synctest.Wait()
		l.raise(first, 1)
		if ev := <-got; ev.SRQ != first {
			t.Errorf("waited for %v", ev)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.dev.WaitEvent(ctx)
		wantRefused(t, "wait", err, context.DeadlineExceeded)
	})
}

// Nobody need fetch events: the oldest are dropped, and the next one tells.
func TestEventsThatNobodyFetchesAreCounted(t *testing.T) {
	l := newLab(t, rnic.Config{})
	kept := l.dev.Attr().Events
	p := l.domain()
	early, late := l.srq(p, rnic.SRQAttr{}), l.srq(p, rnic.SRQAttr{})
	l.raise(early, 10)
	l.raise(late, kept)
	for i := range kept {
		ev, ok := l.dev.PollEvent()
		want := uint64(0)
		if i == 0 {
			want = 10
		}
		if !ok || ev.SRQ != late || ev.Lost != want {
			t.Fatalf("event %d: %+v, %v; want %d lost", i, ev, ok, want)
		}
	}
	wantNoEvent(t, l.dev)
	l.raise(early, 1)
	if ev := nextEvent(t, l.dev, rnic.EventSRQLimit); ev.Lost != 0 {
		t.Errorf("losses are told twice: %+v", ev)
	}
}

func TestEventsOutliveTheirDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		srq := l.srq(l.domain(), rnic.SRQAttr{})
		l.raise(srq, 2)
		if err := l.dev.Close(); err != nil {
			t.Fatal(err)
		}
		nextEvent(t, l.dev, rnic.EventSRQLimit)
		if _, ok := l.dev.PollEvent(); !ok {
			t.Error("an event is gone")
		}
		_, err := l.dev.WaitEvent(context.Background())
		wantRefused(t, "wait", err, rnic.ErrClosed)
		fd, err := l.dev.EventFD()
		wantRefused(t, "descriptor", err, rnic.ErrClosed)
		if fd != -1 { // 0 is the standard input
			t.Errorf("the descriptor of a closed device is %d", fd)
		}
	})
	synctest.Test(t, func(t *testing.T) { // who waits is woken
		l := newLab(t, rnic.Config{})
		waited := make(chan error)
		go func() {
			_, err := l.dev.WaitEvent(context.Background())
			waited <- err
		}()
		synctest.Wait()
		if err := l.dev.Close(); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, "wait", <-waited, rnic.ErrClosed)
	})
}

// Each end that a stream can come to through the network raises its event, which
// names the queue pair and the reason (draft-hilland-rddp-verbs §9.5.3).
func TestEndOfAStreamRaisesAnEvent(t *testing.T) {
	const size = 100_000
	for _, tt := range []struct {
		name   string
		ab     rnictest.Faults
		end    func(t *testing.T, p *rnictest.Pair)
		atA    rnic.EventType
		atB    rnic.EventType
		code   rdmap.TermCode // of B's error, if it has one
		reason bool           // whether the events have one
	}{
		{name: "graceful close", atA: rnic.EventCloseComplete, atB: rnic.EventCloseComplete, end: func(t *testing.T, p *rnictest.Pair) {
			if err := p.A.QP.Disconnect(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{name: "reset", atB: rnic.EventLost, reason: true, end: func(_ *testing.T, p *rnictest.Pair) { p.A.QP.Abort() }},
		{name: "network cut", ab: rnictest.Faults{CutAt: size / 2}, atA: rnic.EventLost, atB: rnic.EventLost, reason: true},
		{
			name: "octet corrupted", ab: rnictest.Faults{CorruptAt: size / 2},
			atA: rnic.EventTerminateReceived, atB: rnic.EventIntegrity, code: 0x2002, reason: true,
		},
		{name: "no receive", atA: rnic.EventTerminateReceived, atB: rnic.EventRemoteOperation, code: 0x1202, reason: true, end: func(t *testing.T, p *rnictest.Pair) {
			p.A.Send(t, empties(1, 1, 0)...)
		}},
		{name: "STag 1", atA: rnic.EventTerminateReceived, atB: rnic.EventProtection, code: 0x1100, reason: true, end: func(t *testing.T, p *rnictest.Pair) {
			p.A.Send(t, rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagInline, Inline: []byte{1}, Remote: rnic.Remote{STag: 1}})
		}},
		{name: "Terminate", atB: rnic.EventTerminateReceived, reason: true, end: func(t *testing.T, p *rnictest.Pair) {
			if err := p.A.QP.Terminate(t.Context()); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				if tt.end == nil {
					src, dst := p.A.Register(t, make([]byte, size), 0), p.B.Register(t, make([]byte, size), everyRight)
					p.A.Send(t, rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, size)}, Remote: dst.Remote(0)})
				} else {
					tt.end(t, p)
				}
				for _, s := range []struct {
					*rnictest.Side
					want rnic.EventType
				}{{p.A, tt.atA}, {p.B, tt.atB}} {
					if s.want != 0 {
						ev := nextEvent(t, s.Device, s.want)
						if ev.QP != s.QP || ev.CQ != nil || ev.SRQ != nil || (ev.Err != nil) != tt.reason {
							t.Errorf("side %s: %+v", s.Name, ev)
						}
						if tt.reason && !errors.Is(s.QP.Err(), ev.Err) {
							t.Errorf("side %s: the event says %v, the queue pair %v", s.Name, ev.Err, s.QP.Err())
						}
						if e := (*rdmap.Error)(nil); tt.code != 0 && s.Side == p.B && (!errors.As(ev.Err, &e) || e.Code != tt.code) {
							t.Errorf("B: %v; want code %v", ev.Err, tt.code)
						}
					}
					synctest.Wait()
					wantNoEvent(t, s.Device)
				}
			}, rnictest.Options{AB: tt.ab})
		})
	}
}

func TestEventsAreShownInOneLine(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	q, cq, srq := l.qp(p, rnic.QPAttr{}), l.cq(rnic.CQAttr{}), l.srq(p, rnic.SRQAttr{})
	for _, tt := range []struct {
		ev   rnic.Event
		want string
	}{
		{rnic.Event{Type: rnic.EventCloseComplete, QP: q}, fmt.Sprintf("LLP close complete (QP %d)", q.Num())},
		{rnic.Event{Type: rnic.EventCQOverflow, CQ: cq, Err: rnic.ErrOverflow}, fmt.Sprintf("CQ overflow (CQ %d): %v", cq.Num(), rnic.ErrOverflow)},
		{rnic.Event{Type: rnic.EventSRQLimit, SRQ: srq}, fmt.Sprintf("SRQ limit reached (SRQ %d)", srq.Num())},
		{rnic.Event{Type: rnic.EventSRQShare, QP: q, SRQ: srq}, fmt.Sprintf("SRQ share exceeded (QP %d)", q.Num())},
		{rnic.Event{}, "event 0"},
		{rnic.Event{Type: 99}, "event 99"},
		{rnic.Event{Type: door.EventSQDrained + 1}, "event 14"},
	} {
		if got := tt.ev.String(); got != tt.want {
			t.Errorf("%q; want %q", got, tt.want)
		}
	}
	for typ := rnic.EventCloseComplete; typ <= door.EventSQDrained; typ++ {
		if s := typ.String(); s == "" || strings.HasPrefix(s, "event ") {
			t.Errorf("event type %d has no name", typ)
		}
	}
}
