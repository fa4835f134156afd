package wake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A One keeps one wake-up for who comes next, and wakes one of those who wait.
func TestOneWakesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewOne()
		w.Wake()
		w.Wake() // one is enough: who is woken looks for more
		if err := w.Wait(t.Context(), nil); err != nil {
			t.Error(err)
		}
		woken := make(chan error, 2)
		done := make(chan struct{})
		for range 2 {
			go func() { woken <- w.Wait(t.Context(), done) }()
		}
		synctest.Wait()
		if len(woken) != 0 {
			t.Error("a wake-up counts twice")
		}
		w.Wake()
		synctest.Wait()
		if len(woken) != 1 {
			t.Errorf("%d are awake; want 1", len(woken))
		}
		close(done)
		synctest.Wait()
		if len(woken) != 2 || <-woken != nil || <-woken != nil {
			t.Error("the end of done ends the wait")
		}
	})
}

func TestBellWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bell
		b.Ring() // nobody hears it
		first, second := b.Heard(), b.Heard()
		select {
		case <-first:
			t.Error("the bell has rung before")
		default:
		}
		b.Ring()
		if err := errors.Join(Await(t.Context(), first, nil), Await(t.Context(), second, nil)); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		cancel(why)
		if err := Await(ctx, b.Heard(), nil); !errors.Is(err, why) {
			t.Errorf("%v; want the cause", err)
		}
	})
}
