package cm

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// from returns an address of host n.
func from(n byte) net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, n), Port: 7174} }

// wantGone checks which of the arrivals were told to go.
func wantGone(t *testing.T, all []*Arrival, gone ...int) {
	t.Helper()
	synctest.Wait()
	want := make([]bool, len(all))
	for _, i := range gone {
		want[i] = true
	}
	for i, v := range all {
		if got := v.Context.Err() != nil; got != want[i] {
			t.Errorf("arrival %d was told to go: %v; want %v", i, got, want[i])
		}
	}
}

// newcomer enters in the background.
func newcomer(t *testing.T, a *Arrivals, host byte) <-chan *Arrival {
	entered := make(chan *Arrival, 1)
	go func() { entered <- a.Enter(t.Context(), from(host)) }()
	return entered
}

// A connection whose Request is in does not count any more for its host.
func TestHostIsNotBlamedForArrivalsThatHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Arrivals{Limit: 4}
		quick, slow := []*Arrival{}, []*Arrival{}
		for range 3 {
			quick = append(quick, a.Enter(t.Context(), from(1)))
		}
		for _, v := range quick[1:] {
			a.Leave(v)
		}
		for range 3 {
			slow = append(slow, a.Enter(t.Context(), from(2)))
		}
		time.Sleep(2 * sureTime)
		entered := newcomer(t, a, 3)
		wantGone(t, []*Arrival{quick[0], slow[0], slow[1], slow[2]}, 1)
		a.Leave(slow[0])
		a.Leave(<-entered)
	})
}

// One newcomer takes one place, however many have left before.
func TestNewcomerTakesOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Arrivals{Limit: 3}
		for range 5 {
			a.Leave(a.Enter(t.Context(), from(1)))
		}
		var all []*Arrival
		for range a.Limit {
			all = append(all, a.Enter(t.Context(), from(1)))
		}
		time.Sleep(2 * sureTime)
		entered := newcomer(t, a, 2)
		wantGone(t, all, 0)
		a.Leave(all[0])
		all = append(all[1:], <-entered)
		entered = newcomer(t, a, 2)
		wantGone(t, all, 0)
		a.Leave(all[0])
		a.Leave(<-entered)
	})
}

// Where all have come at the same time, a newcomer waits until the oldest has had its
// time, and no longer.
func TestNewcomerWaitsUntilTheOldestHasHadItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Arrivals{Limit: 2}
		all := []*Arrival{a.Enter(t.Context(), from(1)), a.Enter(t.Context(), from(1))}
		entered := newcomer(t, a, 2)
		time.Sleep(sureTime - time.Nanosecond)
		wantGone(t, all)
		time.Sleep(time.Nanosecond)
		wantGone(t, all, 0)
		a.Leave(all[0])
		a.Leave(<-entered)
		a.Leave(all[1])
	})
}

// An arrival that has left is nothing to the listener any more, whose context would
// keep it else.
func TestContextOfAnArrivalEndsWhenItLeaves(t *testing.T) {
	a := &Arrivals{Limit: 1}
	v := a.Enter(t.Context(), from(1))
	a.Leave(v)
	if v.Context.Err() == nil {
		t.Error("its context has not ended")
	}
}

// While an arrival that was told to go has not gone, those who wait for its place sleep:
// else time would not pass here.
func TestWaitingForAPlaceTakesNoProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Arrivals{Limit: 1}
		v := a.Enter(t.Context(), from(1))
		time.Sleep(2 * sureTime)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		entered := make(chan *Arrival, 1)
		go func() { entered <- a.Enter(ctx, from(2)) }()
		time.Sleep(time.Hour)
		wantGone(t, []*Arrival{v}, 0)
		if len(entered) > 0 {
			t.Error("there are two in one place")
		}
		a.Leave(v)
		a.Leave(<-entered)
	})
}
