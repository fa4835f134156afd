package work

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/rx"
)

// admit has calls carried out, and returns how many of them by the caller.
func admit(t *testing.T, p *Pool, n int) (own int) {
	t.Helper()
	for range n {
		c := newCall(0)
		j, _, ok := p.Admit(1, c)
		if !ok {
			t.Fatal("a call is refused")
		}
		if j != nil {
			own++
			j.Run()
		}
		<-c.ended
		synctest.Wait() // until its worker is free
	}
	return own
}

func TestBriefCallsAreCarriedOutByWhoOffersThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes time.Duration
		p := newPool(t, rx.Service{ID: 1, Workers: 2, Handler: rx.HandlerFunc(func(context.Context, rx.ServerCall) error {
			time.Sleep(takes)
			return nil
		})})
		if n := admit(t, p, 100); n != 100 {
			t.Errorf("%d of 100 brief calls", n)
		}
		takes = short + 1
		if n := admit(t, p, 1+firstPause); n != 1 {
			t.Errorf("%d calls before the first pause is over", n)
		}
		if n := admit(t, p, 1+2*firstPause); n != 1 {
			t.Errorf("%d calls before the second, which is longer", n)
		}
		admit(t, p, 4*mostPause)
		if n := admit(t, p, 10*(1+mostPause)); n != 10 {
			t.Errorf("%d long calls of %d; want one between pauses", n, 10*(1+mostPause))
		}
		takes = short
		admit(t, p, mostPause)
		if n := admit(t, p, 1000); n != 1000 {
			t.Errorf("%d of 1000 brief calls after long ones", n)
		}
		if got, want := p.Stats(), (Stats{Idle: 2}); got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
	})
}

func TestCallThatIsAdmittedTakesAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := 0
		p := newPool(t, rx.Service{ID: 1, Workers: 1, Queue: 1, Busy: -77, Handler: rx.HandlerFunc(func(context.Context, rx.ServerCall) error {
			served++
			return nil
		})})
		first, second := newCall(1), newCall(2)
		j, _, ok := p.Admit(1, first)
		if j == nil || !ok {
			t.Fatal("the first call is not the caller's")
		}
		if other, _, ok := p.Admit(1, second); other != nil || !ok {
			t.Fatal("the second call does not wait")
		}
		if _, code, ok := p.Admit(1, newCall(3)); ok || code != -77 {
			t.Errorf("the third call: %d, %t", code, ok)
		}
		if got, want := p.Stats(), (Stats{Serving: 1, Waiting: 1, Waited: 1, Busy: 1}); got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
		j.Run()
		p.Wait()
		if served != 2 {
			t.Errorf("%d calls were served", served)
		}
	})
}

func TestJobMayGoToAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, rx.Service{ID: 1, Handler: rx.HandlerFunc(func(context.Context, rx.ServerCall) error { return nil })})
		c := newCall(1)
		j, _, _ := p.Admit(1, c)
		j.Go()
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
		p.Wait()
	})
}

func TestHandlerThatEndsItsGoroutineFreesItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, rx.Service{ID: 1, Workers: 1, Handler: rx.HandlerFunc(func(context.Context, rx.ServerCall) error {
			runtime.Goexit()
			return nil
		})})
		for i := range 4 {
			c := newCall(i)
			if i%2 == 0 {
				p.Offer(1, c)
			} else if j, _, _ := p.Admit(1, c); j != nil {
				go j.Run()
			}
			<-c.ended
			synctest.Wait()
		}
		p.Wait()
		if got := p.Stats(); got.Serving != 0 {
			t.Errorf("%+v", got)
		}
	})
}
