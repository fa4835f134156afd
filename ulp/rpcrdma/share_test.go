package rpcrdma

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// Who waits ends with its context, with what it waits for, or gets it, also if all of that
// comes at once.
func TestSharesEndWithEverythingAtOnce(t *testing.T) {
	errEnd := errors.New("the end")
	for round := range 200 {
		s := share{limit: 10}
		ctx, cancel := context.WithCancel(t.Context())
		if err := s.take(ctx, 10); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				switch err := s.take(ctx, n+1); {
				case err == nil:
					s.give(n + 1)
				case !errors.Is(err, errEnd) && !errors.Is(err, context.Canceled):
					t.Error(err)
				}
			})
		}
		for s.waiting() != 8 {
			runtime.Gosched()
		}
		if round%2 == 0 {
			wg.Go(func() { s.give(10) })
		}
		cancel()
		s.close(errEnd)
		wg.Wait()
		if err := s.take(t.Context(), 1); !errors.Is(err, errEnd) || s.used != 10*(round%2) || s.waiting() != 0 {
			t.Fatalf("%v, %d are used, %d wait", err, s.used, s.waiting())
		}
	}
}

// A waiter that gives up makes room for those behind it, which may want less.
func TestSharesServeThoseBehindOneThatGivesUp(t *testing.T) {
	s := share{limit: 10}
	if err := s.take(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	big, small := make(chan error, 1), make(chan error, 1)
	go func() { big <- s.take(ctx, 8) }()
	for s.waiting() != 1 {
		runtime.Gosched()
	}
	go func() { small <- s.take(t.Context(), 4) }()
	for s.waiting() != 2 {
		runtime.Gosched()
	}
	cancel()
	if err := <-big; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-small; err != nil {
		t.Error(err)
	}
	if s.used != 10 {
		t.Errorf("%d are used", s.used)
	}
}
