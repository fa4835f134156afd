package work

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"

	"urnic/ulp/rx"
	"urnic/ulp/rx/secure"
)

type call struct {
	io.ReadWriter
	number int
	ended  chan error
}

func newCall(n int) *call                { return &call{number: n, ended: make(chan error, 1)} }
func (c *call) Context() context.Context { return context.Background() }
func (c *call) Finish(err error)         { c.ended <- err }
func (*call) Caller() (c secure.Caller)  { return c }
func (*call) Peer() (a netip.AddrPort)   { return a }
func (*call) Service() uint16            { return 1 }

func newPool(t *testing.T, s rx.Service) *Pool {
	t.Helper()
	all, err := rx.CheckServices([]rx.Service{s})
	if err != nil {
		t.Fatal(err)
	}
	return New(all, slog.New(slog.DiscardHandler))
}

func TestWorkersAndQueueAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		running, most := 0, 0
		var order []int
		p := newPool(t, rx.Service{ID: 1, Workers: 2, Queue: 3, Busy: -77, Handler: rx.HandlerFunc(func(_ context.Context, c rx.ServerCall) error {
			running++
			most = max(most, running)
			<-let
			running--
			order = append(order, c.(*call).number)
			return nil
		})})
		calls := make([]*call, 6)
		for i := range calls {
			calls[i] = newCall(i)
			code, ok := p.Offer(1, calls[i])
			if want := i < 5; ok != want {
				t.Fatalf("call %d: taken is %t", i, ok)
			} else if !ok && code != -77 {
				t.Errorf("the code is %d", code)
			}
			synctest.Wait()
		}
		if got, want := p.Stats(), (Stats{Serving: 2, Waiting: 3, Waited: 3, Busy: 1}); got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
		for range 5 {
			let <- struct{}{}
			synctest.Wait()
		}
		p.Wait()
		if most != 2 {
			t.Errorf("%d calls at once", most)
		}
		if len(order) != 5 || order[4] != 4 || order[3] != 3 || order[2] != 2 {
			t.Errorf("the order is %v", order)
		}
		if got, want := p.Stats(), (Stats{Waited: 3, Idle: 2, Busy: 1}); got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
	})
}

func TestPanicEndsItsCallOnly(t *testing.T) {
	p := newPool(t, rx.Service{ID: 1, Workers: 1, Handler: rx.HandlerFunc(func(_ context.Context, c rx.ServerCall) error {
		if c.(*call).number == 0 {
			panic("oh")
		}
		return nil
	})})
	first, second := newCall(0), newCall(1)
	p.Offer(1, first)
	p.Offer(1, second)
	if err := <-first.ended; !errors.As(err, new(*PanicError)) || rx.AbortCode(err) != rx.UserAbort {
		t.Errorf("the call that panicked ended with %v", err)
	}
	if err := <-second.ended; err != nil {
		t.Error(err)
	}
	if n := p.Stats().Panics; n != 1 {
		t.Errorf("%d panics", n)
	}
}

func TestClosedPoolTakesNothing(t *testing.T) {
	p := newPool(t, rx.Service{ID: 1, Handler: rx.HandlerFunc(func(context.Context, rx.ServerCall) error { return nil })})
	if _, ok := p.Offer(2, newCall(0)); ok {
		t.Error("a service that there is not was served")
	}
	p.Close()
	if _, ok := p.Offer(1, newCall(0)); ok {
		t.Error("a call was served after Close")
	}
	p.Wait()
}

func TestQueueKeepsItsOrderWhenItIsLong(t *testing.T) {
	l := &lane{}
	next := 0
	for i := range 1000 {
		l.push(newCall(i))
		if i%3 != 0 {
			if n := l.pop().(*call).number; n != next {
				t.Fatalf("%d came in place of %d", n, next)
			}
			next++
		}
	}
	if len(l.queue)-l.head != 1000-next || len(l.queue) > 1000 {
		t.Errorf("%d in %d", len(l.queue)-l.head, len(l.queue))
	}
}
