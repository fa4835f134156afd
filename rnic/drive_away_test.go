package rnic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// All time in these tests is that of a bubble (rnictest.Run), in which it passes only while
// everybody waits.

// Who keeps coming back is waited for as long as others may have their processor, and
// who stays away time and again is not.
func TestWhoKeepsPollingIsWaitedForLonger(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		const slice, longest = 4 * time.Millisecond, 10 * time.Millisecond
		freed(t, p.B.QP, p.B.RecvCQ)
		time.Sleep(slice)
		wantReceiver(t, p.B.QP, "goroutine")

		freed(t, p.B.QP, p.B.RecvCQ)
		var wcs [1]rnic.WC
		for start := time.Now(); time.Since(start) < 10*longest; time.Sleep(20 * time.Microsecond) {
			p.B.RecvCQ.Poll(wcs[:])
		}
		for range 10 {
			time.Sleep(slice)
			wantReceiver(t, p.B.QP, "nobody")
			p.B.RecvCQ.Poll(wcs[:])
		}
		time.Sleep(2 * longest)
		wantReceiver(t, p.B.QP, "goroutine")

		for range 8 {
			freed(t, p.B.QP, p.B.RecvCQ)
			time.Sleep(2 * longest)
		}
		freed(t, p.B.QP, p.B.RecvCQ)
		time.Sleep(400 * time.Microsecond)
		wantReceiver(t, p.B.QP, "goroutine")
	}, polled)
}

// A program that polls is not away while it transmits what it posts.
func TestWhoTransmitsIsNotAway(t *testing.T) {
	sent := 0
	var b *rnic.QP
	options := polled
	options.Device = func(name string, cfg *rnic.Config) {
		if name == "B" {
			cfg.Trace = func(tr rnic.Trace) {
				if tr.Sent && b != nil {
					sent++
					time.Sleep(5 * time.Millisecond)
					wantReceiver(t, b, "nobody")
				}
			}
		}
	}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		p.A.Recv(t, receives(1, 1)...)
		freed(t, p.B.QP, p.B.RecvCQ)
		spin(p.B.RecvCQ)
		b = p.B.QP
		p.B.Send(t, empties(1, 1, 0)...)
		if sent != 1 {
			t.Errorf("%d messages were sent meanwhile", sent)
		}
		time.Sleep(5 * time.Millisecond)
		wantReceiver(t, b, "goroutine")
	}, options)
}

// A program that has polled for several connections, and waits now, hears of what comes
// at once.
func TestWhoWaitsAfterPollingForManyIsNotWaitedFor(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ}), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{RecvCQ: p.B.RecvCQ})
		p.Link(t, a, b)
		freed(t, b, p.B.RecvCQ)
		var wcs [1]rnic.WC
		for start := time.Now(); time.Since(start) < 100*time.Millisecond; time.Sleep(20 * time.Microsecond) {
			p.B.RecvCQ.Poll(wcs[:])
		}
		wantReceiver(t, b, "nobody")
		if err := b.PostRecv(receives(1, 1)...); err != nil {
			t.Fatal(err)
		}
		w := waits(t.Context(), p.B.RecvCQ)
		synctest.Wait()
		start := time.Now()
		postSend(t, a, empties(1, 1, 0)...)
		w.want(t, 1)
		if d := time.Since(start); d > 0 {
			t.Errorf("the message came after %v", d)
		}
	}, polled)
}

// Await leaves the completion for Poll.
func TestAwaitTakesNoCompletion(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		awaited := make(chan error, 1)
		go func() { awaited <- door.Await(t.Context(), p.B.RecvCQ) }()
		synctest.Wait()
		if len(awaited) > 0 {
			t.Fatal("it has not waited")
		}
		p.B.Recv(t, receives(7, 1)...)
		p.A.Send(t, empties(7, 1, 0)...)
		for range 2 {
			if err := <-awaited; err != nil {
				t.Fatal(err)
			}
			awaited <- door.Await(t.Context(), p.B.RecvCQ)
		}
		var wcs [2]rnic.WC
		if n := p.B.RecvCQ.Poll(wcs[:]); n != 1 || wcs[0].ID != 7 {
			t.Errorf("%d completions, %+v", n, wcs[0])
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := door.Await(ctx, p.B.RecvCQ); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, new(*rnic.OpError)) {
			t.Errorf("nothing comes: %v", err)
		}
	})
}
