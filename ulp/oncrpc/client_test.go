package oncrpc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// A script is a connection whose calls a test answers, or not.
type script struct {
	do   func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error)
	once sync.Once
	done chan struct{}
}

func newScript(do func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error)) *script {
	return &script{do: do, done: make(chan struct{})}
}

func (s *script) Do(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
	return s.do(ctx, r)
}
func (s *script) Limit() int            { return 1 }
func (s *script) Done() <-chan struct{} { return s.done }
func (s *script) Close() error          { s.once.Do(func() { close(s.done) }); return nil }

// success answers any call without results.
func success(_ context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
	var e xdr.Encoder
	err := (&oncrpc.Reply{XID: r.XID}).Encode(&e)
	return &oncrpc.Message{Stream: e.AppendTo(nil)}, err
}

// until does not answer before the connection or the context ends.
func until(s **script) func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
	return func(ctx context.Context, _ *oncrpc.Request) (*oncrpc.Message, error) {
		select {
		case <-(*s).done:
			return nil, &oncrpc.LostError{Err: errCut}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var errCut = errors.New("cut")

// lost loses any call.
func lost(context.Context, *oncrpc.Request) (*oncrpc.Message, error) {
	return nil, &oncrpc.LostError{Err: errCut}
}

// always dials the same connection.
func always(s *script) oncrpc.Dial {
	return func(context.Context) (oncrpc.Conn, error) { return s, nil }
}

func TestCallsInFlightHaveXIDsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var held []uint32
		release := make(chan struct{})
		c := newClient(t, always(newScript(func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
			mu.Lock()
			held = append(held, r.XID)
			mu.Unlock()
			<-release
			return success(ctx, r)
		})), oncrpc.ClientConfig{})
		var calls sync.WaitGroup
		for _, from := range []uint32{^uint32(0), 10, 5, ^uint32(0)} { // so that they meet
			c.SetXID(from - 3)
			for range 8 {
				calls.Go(func() {
					if err := c.Call(t.Context(), call(0)); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		close(release)
		calls.Wait()
		slices.Sort(held)
		if n := len(slices.Compact(slices.Clone(held))); len(held) != 32 || n != 32 {
			t.Errorf("%d calls had %d XIDs", len(held), n)
		}
		c.SetXID(held[0] - 1)
		if err := c.Call(t.Context(), call(0)); err != nil || held[len(held)-1] != held[0] {
			t.Errorf("an XID whose call is over was not used again: %v", err)
		}
	})
}

func TestXIDsBeginAnywhere(t *testing.T) {
	seen := make(map[uint32]bool)
	for range 8 {
		c := newClient(t, always(newScript(func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
			seen[r.XID] = true
			return success(ctx, r)
		})), oncrpc.ClientConfig{})
		if err := c.Call(t.Context(), call(0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 7 {
		t.Errorf("8 clients began with %d XIDs", len(seen))
	}
}

func TestCallGoesOnOnTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type sent struct {
			conn int
			xid  uint32
			call string
		}
		var all []sent
		dials := 0
		c := newClient(t, func(context.Context) (oncrpc.Conn, error) {
			dials++
			n := dials
			return newScript(func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
				all = append(all, sent{n, r.XID, string(r.Call.AppendTo(nil))})
				if n < 3 {
					return lost(ctx, r)
				}
				return success(ctx, r)
			}), nil
		}, oncrpc.ClientConfig{})
		if err := c.Call(t.Context(), call(0)); err != nil {
			t.Fatal(err)
		}
		if len(all) != 3 || all[2].conn != 3 || all[0].xid != all[2].xid || all[0].call != all[1].call || all[0].call != all[2].call {
			t.Errorf("%+v", all)
		}
	})
}

func TestPausesBetweenDialsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		refused := errors.New("refused")
		cfg := oncrpc.ClientConfig{Dials: 8, Backoff: 100 * time.Millisecond, BackoffMost: time.Second}
		c := newClient(t, func(context.Context) (oncrpc.Conn, error) {
			at = append(at, time.Since(begin))
			return nil, refused
		}, cfg)
		if err := c.Call(t.Context(), call(0)); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if len(at) != 8 || at[0] != 0 {
			t.Fatalf("dials at %v", at)
		}
		for i, want := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
			if pause := at[i+1] - at[i]; pause > want*time.Millisecond || pause < want*time.Millisecond*2/3 {
				t.Errorf("pause %d is %v; want up to %d ms", i, pause, want)
			}
		}
		// Somebody else's call later waits no longer than the pause has left.
		time.Sleep(time.Minute)
		again := time.Since(begin)
		if err := c.Call(t.Context(), call(0)); !errors.Is(err, refused) || at[8] != again {
			t.Errorf("dialled at %v, not %v: %v", at[8], again, err)
		}
	})
}

// A server that takes each connection, and loses it, is not dialed all the time; one that
// has replied is dialed at once.
func TestConnectionsThatBringNothingCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		good := 5
		c := newClient(t, func(context.Context) (oncrpc.Conn, error) {
			at = append(at, time.Now())
			n := len(at)
			calls := 0
			return newScript(func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
				if calls++; n < good || calls > 1 {
					return lost(ctx, r)
				}
				return success(ctx, r)
			}), nil
		}, oncrpc.ClientConfig{})
		for range 2 {
			if err := c.Call(t.Context(), call(0)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range at[1:] {
			pause := at[i+1].Sub(at[i])
			if i+1 < good && pause < 60*time.Millisecond<<i || i+1 >= good && pause != 0 {
				t.Errorf("the pause behind dial %d was %v", i+1, pause)
			}
		}
		if len(at) != 6 {
			t.Errorf("%d dials", len(at))
		}
	})
}

func TestCallWaitsForAConnectionUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		dials := 0
		c := newClient(t, func(context.Context) (oncrpc.Conn, error) { dials++; return nil, refused }, oncrpc.ClientConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		err := c.Call(ctx, call(0))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, refused) || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		synctest.Wait()
		before := dials
		time.Sleep(time.Hour)
		if dials != before {
			t.Errorf("%d dials when nobody wants a connection", dials-before)
		}
		if err := c.Call(ctx, call(0)); !errors.Is(err, context.DeadlineExceeded) || dials != before {
			t.Errorf("without time: %v, %d dials", err, dials-before)
		}
	})
}

func TestDialIsGivenUpWithTheLastCallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gaveUp, dials atomic.Int32
		c := newClient(t, func(ctx context.Context) (oncrpc.Conn, error) {
			if dials.Add(1) > 1 {
				return newScript(success), nil
			}
			<-ctx.Done()
			gaveUp.Add(1)
			return nil, ctx.Err()
		}, oncrpc.ClientConfig{DialTimeout: time.Hour})
		var calls sync.WaitGroup
		for i := range 2 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				defer cancel()
				if err := c.Call(ctx, call(0)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if gaveUp.Load() != 0 || dials.Load() != 1 {
			t.Errorf("there were %d dials, %d given up while a call waits", dials.Load(), gaveUp.Load())
		}
		calls.Wait()
		synctest.Wait()
		if gaveUp.Load() != 1 {
			t.Errorf("%d dials were given up", gaveUp.Load())
		}
		if err := c.Call(t.Context(), call(0)); err != nil {
			t.Error(err)
		}
	})
}

func TestConnectionThatComesTooLateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(success)
		c := newClient(t, func(ctx context.Context) (oncrpc.Conn, error) { <-ctx.Done(); return s, nil }, oncrpc.ClientConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Call(ctx, call(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		<-s.done
	})
}

func TestDialTakesOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := newClient(t, func(ctx context.Context) (oncrpc.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, oncrpc.ClientConfig{Dials: 1, DialTimeout: 3 * time.Second})
		if err := c.Call(t.Context(), call(0)); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

func TestCallIsSentOnlySoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c := newClient(t, func(context.Context) (oncrpc.Conn, error) {
			return newScript(func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) { sent++; return lost(ctx, r) }), nil
		}, oncrpc.ClientConfig{Sends: 3})
		if err := c.Call(t.Context(), call(0)); !errors.Is(err, errCut) || sent != 3 {
			t.Errorf("sent %d times: %v", sent, err)
		}
	})
}

func TestConnectionOnWhichNoReplyComesIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first *script
		first = newScript(until(&first))
		dials := 0
		c := newClient(t, func(context.Context) (oncrpc.Conn, error) {
			if dials++; dials == 1 {
				return first, nil
			}
			return newScript(success), nil
		}, oncrpc.ClientConfig{Patience: time.Minute})
		begin := time.Now()
		if err := c.Call(t.Context(), call(0)); err != nil || dials != 2 || time.Since(begin) < time.Minute {
			t.Errorf("after %v and %d dials: %v", time.Since(begin), dials, err)
		}
		<-first.done
		var second *script
		second = newScript(until(&second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c = newClient(t, always(second), oncrpc.ClientConfig{Patience: time.Minute})
		if err := c.Call(ctx, call(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that is impatient itself: %v", err)
		}
		select {
		case <-second.done:
			t.Error("a connection was given up with a call that was impatient itself")
		default:
		}
	})
}

func TestCloseEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flying *script
		flying = newScript(until(&flying))
		waiting := func(ctx context.Context) (oncrpc.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		pausing := func(context.Context) (oncrpc.Conn, error) { return nil, errCut }
		for name, dial := range map[string]oncrpc.Dial{"in flight": always(flying), "dialling": waiting, "between dials": pausing} {
			c := oncrpc.NewClient(dial, oncrpc.ClientConfig{})
			ended := make(chan error)
			go func() { ended <- c.Call(t.Context(), call(0)) }()
			synctest.Wait()
			for range 2 {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := <-ended; !errors.Is(err, oncrpc.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
			if err := c.Call(t.Context(), call(0)); !errors.Is(err, oncrpc.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		<-flying.done
	})
}

func TestConnectionThatHasEndedIsNotUsed(t *testing.T) {
	dials := 0
	var last *script
	c := newClient(t, func(context.Context) (oncrpc.Conn, error) {
		dials++
		last = newScript(success)
		return last, nil
	}, oncrpc.ClientConfig{})
	for i := range 3 {
		if err := c.Call(t.Context(), call(0)); err != nil || dials != i+1 {
			t.Fatalf("call %d: %d dials, %v", i, dials, err)
		}
		_ = last.Close()
	}
}

func TestRepliesThatAreNone(t *testing.T) {
	word := func(words ...uint32) func(context.Context, *oncrpc.Request) (*oncrpc.Message, error) {
		return func(_ context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
			var e xdr.Encoder
			for _, w := range append([]uint32{r.XID}, words...) {
				e.Uint32(w)
			}
			return &oncrpc.Message{Stream: e.AppendTo(nil)}, nil
		}
	}
	final := errors.New("of this call alone")
	for name, c := range map[string]struct {
		do   func(context.Context, *oncrpc.Request) (*oncrpc.Message, error)
		want string
	}{
		"too short":       {word(1), "too early"},
		"a call":          {word(0), "not that type"},
		"a status":        {word(1, 2), "no value"},
		"another call's":  {func(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) { r.XID++; return success(ctx, r) }, "is to call"},
		"a final failure": {func(context.Context, *oncrpc.Request) (*oncrpc.Message, error) { return nil, final }, final.Error()},
	} {
		client := newClient(t, always(newScript(c.do)), oncrpc.ClientConfig{})
		if err := client.Call(t.Context(), call(0)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
	client := newClient(t, func(context.Context) (oncrpc.Conn, error) { return nil, nil }, oncrpc.ClientConfig{Dials: 1})
	if err := client.Call(t.Context(), call(0)); err == nil {
		t.Error("no connection and no error: no error")
	}
}
