package rnic_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A world is a network in memory with devices and peers on it, inside a bubble.
// When its test ends, all devices are closed, and must hold nothing any more.
type world struct {
	testing.TB
	simnet.Network
	lower rnic.LowerLayer // in place of MPA over Network, or nil
}

// inWorld runs f in a bubble: over a network that can only be waited at, over one that can
// be polled, where a program that waits receives for itself, and over a lower layer that
// changes the order of segments, unless the test is in overMPA.
func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	for _, polls := range []bool{false, true} {
		t.Run(networks[polls], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(&world{TB: t, Network: simnet.Network{Polls: polls}}) })
		})
	}
	reordered(t, func(t *testing.T, lower rnic.LowerLayer) {
		synctest.Test(t, func(t *testing.T) { f(&world{TB: t, lower: lower}) })
	})
}

// networks are the names of the kinds of network, by whether they can be polled.
var networks = map[bool]string{false: "waits", true: "polls"}

// onBoth is rnictest.Run over all that inWorld runs over.
func onBoth(t *testing.T, f func(t *testing.T, p *rnictest.Pair), options ...rnictest.Options) {
	t.Helper()
	for _, polls := range []bool{false, true} {
		var o rnictest.Options
		if len(options) > 0 {
			o = options[0]
		}
		o.Polls = polls
		t.Run(networks[polls], func(t *testing.T) { rnictest.Run(t, f, o) })
	}
	reordered(t, func(t *testing.T, lower rnic.LowerLayer) {
		var o rnictest.Options
		if len(options) > 0 {
			o = options[0]
		}
		o.LowerLayer = lower
		rnictest.Run(t, f, o)
	})
}

// side opens a device with one of everything.
func (w *world) side(change ...func(cfg *rnic.Config, attr *rnic.QPAttr)) *rnictest.Side {
	w.Helper()
	if w.lower != nil {
		change = slices.Insert(slices.Clone(change), 0, func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.LowerLayer = w.lower })
	}
	return openSide(w, &w.Network, change...)
}

func openSide(t testing.TB, network rnic.Network, change ...func(cfg *rnic.Config, attr *rnic.QPAttr)) *rnictest.Side {
	t.Helper()
	cfg, attr := rnic.Config{Network: network}, rnic.QPAttr{}
	for _, c := range change {
		c(&cfg, &attr)
	}
	d, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("closing the device: %v", err)
		}
		wantHeld(t, d, pd.Limits{})
	})
	p, err := d.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	return newQP(t, d, p, attr)
}

// newQP returns a queue pair of a domain with completion queues of its own.
func newQP(t testing.TB, d *rnic.Device, p *rnic.PD, attr rnic.QPAttr) *rnictest.Side {
	t.Helper()
	s := &rnictest.Side{Device: d, PD: p, SendCQ: attr.SendCQ, RecvCQ: attr.RecvCQ}
	var err error
	for _, cq := range []**rnic.CQ{&s.SendCQ, &s.RecvCQ} {
		if *cq != nil {
			continue
		}
		if *cq, err = d.CreateCQ(rnic.CQAttr{Entries: 1024}); err != nil {
			t.Fatal(err)
		}
	}
	attr.SendCQ, attr.RecvCQ = s.SendCQ, s.RecvCQ
	if s.QP, err = p.CreateQP(attr); err != nil {
		t.Fatal(err)
	}
	return s
}

// wantHeld checks what a device holds, by resource.
func wantHeld(t testing.TB, d *rnic.Device, want pd.Limits) {
	t.Helper()
	for r := range pd.Resource(pd.NumResources) {
		if got := d.Held(r); got != want[r] {
			t.Errorf("the device holds %d %v; want %d", got, r, want[r])
		}
	}
}

// held returns what a device holds, by resource.
func held(d *rnic.Device) (l pd.Limits) {
	for r := range l {
		l[r] = d.Held(pd.Resource(r))
	}
	return l
}

// connect connects two sides; a initiates.
func (w *world) connect(a, b *rnictest.Side, params ...rnic.ConnParam) {
	w.Helper()
	if errA, errB := w.tryConnect(a, b, params...); errA != nil || errB != nil {
		w.Fatalf("connect: %v; accept: %v", errA, errB)
	}
}

// tryConnect returns the errors of the two sides. The first parameters are those
// of a, the second those of b.
func (w *world) tryConnect(a, b *rnictest.Side, params ...rnic.ConnParam) (errA, errB error) {
	w.Helper()
	params = append(params, rnic.ConnParam{}, rnic.ConnParam{})
	l, accepted := w.accept(b, params[1])
	errA = a.QP.Connect(context.Background(), l.Addr().String(), params[0])
	if errA != nil {
		_ = l.Close()
	}
	errB = <-accepted
	if err := l.Close(); err != nil {
		w.Error(err)
	}
	return errA, errB
}

// accept makes a side listen and accept one connection.
func (w *world) accept(s *rnictest.Side, p rnic.ConnParam) (*rnic.Listener, <-chan error) {
	w.Helper()
	l, err := s.Device.Listen(context.Background(), ":0")
	if err != nil {
		w.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			err = r.Accept(context.Background(), s.QP, p)
		}
		accepted <- err
	}()
	return l, accepted
}

// eventsOf returns the types of the events that a device has raised since the
// last look.
func eventsOf(d *rnic.Device) (types []rnic.EventType) {
	synctest.Wait()
	for {
		e, ok := d.PollEvent()
		if !ok {
			return types
		}
		types = append(types, e.Type)
	}
}

// wantEvents checks which events a device has raised since the last look.
func wantEvents(t testing.TB, d *rnic.Device, want ...rnic.EventType) {
	t.Helper()
	if got := eventsOf(d); !slices.Equal(got, want) {
		t.Errorf("events %v; want %v", got, want)
	}
}

// unattended is longer than a link is without a receiver after its program has
// stayed away.
const unattended = time.Millisecond

// wantState checks the state of a queue pair once all has come to rest.
func wantState(t testing.TB, q *rnic.QP, want rnic.State) {
	t.Helper()
	synctest.Wait()
	if q.State() != want { // nobody may have received yet
		time.Sleep(unattended)
		synctest.Wait()
	}
	if got := q.State(); got != want {
		t.Errorf("the queue pair is in state %v (%v); want %v", got, q.Err(), want)
	}
}

// drain returns all completions of a queue.
func drain(cq *rnic.CQ) (all []rnic.WC) {
	synctest.Wait()
	var wcs [64]rnic.WC
	for {
		n := cq.Poll(wcs[:])
		if n == 0 {
			return all
		}
		all = append(all, wcs[:n]...)
	}
}

// A result is what of a completion most tests look at.
type result struct {
	id     uint64
	status rnic.Status
}

// wantCompletions checks the completions that are in a queue.
func wantCompletions(t testing.TB, cq *rnic.CQ, want ...result) {
	t.Helper()
	var got []result
	for _, wc := range drain(cq) {
		got = append(got, result{wc.ID, wc.Status})
		if (wc.Cause != nil) != (wc.Status != rnic.StatusSuccess && wc.Status != rnic.StatusFlushed) {
			t.Errorf("completion %d, %v, has cause %v", wc.ID, wc.Status, wc.Cause)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("completions %v; want %v", got, want)
	}
}

// termCode returns the code of an error that this side found, or that the peer's
// Terminate told.
func termCode(err error) (code rdmap.TermCode, byPeer bool) {
	if peerErr, ok := errors.AsType[*rdmap.PeerError](err); ok {
		return peerErr.Terminate.Code, true
	}
	if e, ok := errors.AsType[*rdmap.Error](err); ok {
		return e.Code, false
	}
	return 0xFFFF, false
}
