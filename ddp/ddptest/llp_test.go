package ddptest_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/ddp/ddptest"
)

var _ ddp.LLP = (*ddptest.LLP)(nil)

// post posts and flushes segments.
func post(t *testing.T, l *ddptest.LLP, segments ...string) {
	t.Helper()
	for _, s := range segments {
		if ok, err := l.Post([]byte(s[:1]), [][]byte{[]byte(s[1:])}, false); !ok || err != nil {
			t.Fatalf("Post = %v, %v", ok, err)
		}
	}
	if done, err := l.Flush(true); !done || err != nil {
		t.Fatalf("Flush = %v, %v", done, err)
	}
}

// receive receives n segments and returns them with their order.
func receive(t *testing.T, l *ddptest.LLP, n int) (got []string) {
	t.Helper()
	for range n {
		if err := l.Receive(func(b []byte, order uint64) error {
			got = append(got, fmt.Sprintf("%d:%s", order, b))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func TestSegmentsKeepOrderAndBoundaries(t *testing.T) {
	a, b := ddptest.Pair(ddptest.Options{})
	post(t, a, "one", "two", "x")
	post(t, b, "back")
	if got := receive(t, b, 3); !slices.Equal(got, []string{"0:one", "1:two", "2:x"}) {
		t.Errorf("received %q", got)
	}
	if got := receive(t, a, 1); !slices.Equal(got, []string{"0:back"}) {
		t.Errorf("received %q", got)
	}
}

func TestReorderingFollowsTheSeed(t *testing.T) {
	run := func(seed uint64) []string {
		a, b := ddptest.Pair(ddptest.Options{Seed: seed, Reorder: 4})
		post(t, a, "aa", "bb", "cc", "dd", "ee", "ff")
		if n := b.Waiting(); n != 6 {
			t.Errorf("%d segments wait; want 6", n)
		}
		return receive(t, b, 6)
	}
	inOrder := []string{"0:aa", "1:bb", "2:cc", "3:dd", "4:ee", "5:ff"}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		got := run(seed)
		if !slices.Equal(got, run(seed)) {
			t.Errorf("seed %d gives two orders", seed)
		}
		seen[fmt.Sprint(got)] = true
		if slices.Sort(got); !slices.Equal(got, inOrder) {
			t.Errorf("seed %d: received %q", seed, got)
		}
	}
	if len(seen) < 10 {
		t.Errorf("20 seeds give only %d orders", len(seen))
	}
}

func TestRoomAndCounts(t *testing.T) {
	a, b := ddptest.Pair(ddptest.Options{Room: 2, MULPDU: 200})
	header := []byte("header")
	for i := range 3 {
		if ok, err := a.Post(header, nil, true); ok != (i < 2) || err != nil {
			t.Errorf("Post %d = %v, %v", i, ok, err)
		}
	}
	copy(header, "------") // it is copied
	if a.Posted() != 2 || a.Accepted() != 0 || b.Waiting() != 0 {
		t.Errorf("before Flush: %d posted, %d accepted, %d arrived", a.Posted(), a.Accepted(), b.Waiting())
	}
	if done, err := a.Flush(false); !done || err != nil {
		t.Errorf("Flush = %v, %v", done, err)
	}
	if a.Posted() != 2 || a.Accepted() != 2 {
		t.Errorf("after Flush: %d posted, %d accepted", a.Posted(), a.Accepted())
	}
	if got := receive(t, b, 2); !slices.Equal(got, []string{"0:header", "1:header"}) {
		t.Errorf("received %q", got)
	}
	if a.MULPDU() != 200 {
		t.Errorf("MULPDU is %d", a.MULPDU())
	}
	if a.SetMULPDU(300); a.MULPDU() != 300 || b.MULPDU() != 200 {
		t.Errorf("then MULPDU is %d here and %d there", a.MULPDU(), b.MULPDU())
	}
}

func TestGracefulEndComesBehindTheData(t *testing.T) {
	a, b := ddptest.Pair(ddptest.Options{})
	post(t, a, "data")
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, b, 1); !slices.Equal(got, []string{"0:data"}) {
		t.Errorf("received %q", got)
	}
	if err := b.Receive(nil); !errors.Is(err, io.EOF) {
		t.Errorf("Receive = %v; want the end", err)
	}
	if done, err := a.Flush(true); !done || err != nil {
		t.Errorf("Flush of nothing = %v, %v", done, err)
	}
	if _, err := a.Post([]byte("late"), nil, false); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Flush(true); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Flush behind the end = %v; want %v", err, io.ErrClosedPipe)
	}
	post(t, b, "back") // the other half is open
	if got := receive(t, a, 1); !slices.Equal(got, []string{"0:back"}) {
		t.Errorf("received %q", got)
	}
}

func TestInjectedSegmentHasAnyOrder(t *testing.T) {
	a, b := ddptest.Pair(ddptest.Options{})
	data := []byte("data")
	a.Inject(data, 77)
	copy(data, "----")
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	a.Inject([]byte("late"), 3)
	if got := receive(t, b, 2); !slices.Equal(got, []string{"77:data", "3:late"}) {
		t.Errorf("received %q", got)
	}
}

func TestTeardownEndsWhatIsWaiting(t *testing.T) {
	for name, tt := range map[string]struct {
		end          func(a *ddptest.LLP) error
		here, there  error
		discardThere error
	}{
		"Close":      {(*ddptest.LLP).Close, io.ErrClosedPipe, io.EOF, nil},
		"Abort":      {(*ddptest.LLP).Abort, ddptest.ErrAborted, ddptest.ErrAborted, ddptest.ErrAborted},
		"CloseWrite": {(*ddptest.LLP).CloseWrite, nil, io.EOF, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := ddptest.Pair(ddptest.Options{})
				here, there := make(chan error, 1), make(chan error, 1)
				go func() { here <- a.Receive(nil) }()
				go func() { there <- b.Receive(nil) }()
				synctest.Wait()
				if err := tt.end(a); err != nil {
					t.Fatal(err)
				}
				if err := <-there; !errors.Is(err, tt.there) {
					t.Errorf("over there, Receive = %v; want %v", err, tt.there)
				}
				if err := b.Discard(); !errors.Is(err, tt.discardThere) {
					t.Errorf("over there, Discard = %v; want %v", err, tt.discardThere)
				}
				if tt.here == nil {
					synctest.Wait()
					select {
					case err := <-here:
						t.Errorf("the other half has ended with %v", err)
					default:
					}
					if err := a.Close(); err != nil {
						t.Fatal(err)
					}
					tt.here = io.ErrClosedPipe
				}
				if err := <-here; !errors.Is(err, tt.here) {
					t.Errorf("here, Receive = %v; want %v", err, tt.here)
				}
				if _, err := b.Flush(true); name != "CloseWrite" && !errors.Is(err, tt.here) {
					t.Errorf("over there, Flush = %v; want %v", err, tt.here)
				}
			})
		})
	}
}

func TestDiscardDropsUntilTheEnd(t *testing.T) {
	a, b := ddptest.Pair(ddptest.Options{})
	post(t, a, "one", "two")
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := b.Discard(); err != nil || b.Waiting() != 0 {
		t.Errorf("Discard = %v; %d segments wait", err, b.Waiting())
	}
}

// A segment that place does not take comes again, first, whatever the order of the rest.
func TestSegmentThatIsNotTakenComesAgainFirst(t *testing.T) {
	a, b := ddptest.Pair(ddptest.Options{Seed: 5, Reorder: 4})
	post(t, a, "aa", "bb", "cc", "dd")
	later := errors.New("later")
	var first string
	for i := range 5 {
		var some bool
		var err error
		refuse := func(seg []byte, _ uint64) error {
			if i > 0 && string(seg) != first {
				t.Errorf("%q came after %q, which was not taken", seg, first)
			}
			first = string(seg)
			return later
		}
		if i%2 == 0 {
			err = b.Receive(refuse)
		} else {
			some, err = b.TryReceive(refuse)
		}
		if some || err != later || b.Waiting() != 4 { //nolint:errorlint // as it is
			t.Fatalf("%v, %v; %d segments wait", some, err, b.Waiting())
		}
	}
	if got := receive(t, b, 4); !strings.HasSuffix(got[0], first) || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 4 {
		t.Errorf("received %q; want %q first", got, first)
	}
}

func TestFlushWaitsWhileTooMuchIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ddptest.Pair(ddptest.Options{Flight: 10})
		for range 3 {
			if ok, err := a.Post(make([]byte, 6), nil, false); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		for want := range uint64(3) {
			if done, err := a.Flush(false); done != (want == 2) || err != nil || a.Accepted() != want+1 {
				t.Errorf("Flush = %v, %v; %d of %d accepted", done, err, a.Accepted(), a.Posted())
			}
			receive(t, b, 1)
		}
		_, _ = a.Post(make([]byte, 11), nil, false) // longer than all there may be
		_, _ = a.Post(make([]byte, 1), nil, false)
		if _, err := a.Flush(false); err != nil || a.Accepted() != 4 {
			t.Errorf("%v; %d accepted", err, a.Accepted())
		}
		done := make(chan error)
		go func() {
			_, err := a.Flush(true)
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Flush has not waited: %v", err)
		default:
		}
		receive(t, b, 1)
		if err := <-done; err != nil || a.Accepted() != 5 {
			t.Errorf("%v; %d accepted", err, a.Accepted())
		}
	})
}

func TestInterruptEndsOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ddptest.Pair(ddptest.Options{})
		for name, wait := range map[string]func() error{"Await": b.Await, "Receive": func() error { return b.Receive(nil) }} {
			b.Interrupt() // before the wait
			if err := wait(); !errors.Is(err, ddptest.ErrInterrupted) {
				t.Errorf("%s = %v", name, err)
			}
			done := make(chan error)
			go func() { done <- wait() }()
			synctest.Wait()
			b.Interrupt() // during it
			if err := <-done; !errors.Is(err, ddptest.ErrInterrupted) {
				t.Errorf("%s = %v", name, err)
			}
		}
		post(t, a, "data")
		b.Interrupt() // who finds something does not wait
		if err := b.Await(); err != nil {
			t.Error(err)
		}
		if got := receive(t, b, 1); !slices.Equal(got, []string{"0:data"}) {
			t.Errorf("received %q", got)
		}
		if err := b.Await(); !errors.Is(err, ddptest.ErrInterrupted) {
			t.Errorf("Await = %v", err)
		}
	})
}
