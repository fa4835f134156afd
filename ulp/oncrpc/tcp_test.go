package oncrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// A peer is the other end of a connection, at which a test is the server.
type peer struct {
	*simnet.Conn
	r *oncrpc.RecordReader
}

// connected returns a connection, of which so many bytes may be on their way, and the
// other end.
func connected(t *testing.T, cfg oncrpc.TCPConfig, octets int) (*oncrpc.TCPConn, *peer) {
	t.Helper()
	a, b := simnet.Pipe(simnet.Options{Buffer: octets})
	c := oncrpc.NewTCPConn(a, cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		_ = b.Close() // perhaps for the second time
	})
	return c, &peer{b, oncrpc.NewRecordReader(b, 1<<30)}
}

// next returns the next call.
func (p *peer) next(t *testing.T) []byte {
	t.Helper()
	call, err := p.r.Next(nil)
	if err != nil {
		t.Error(err)
	}
	return call
}

// reply replies to a call with data.
func (p *peer) reply(t *testing.T, xid uint32, data []byte) {
	t.Helper()
	var e xdr.Encoder
	if err := (&oncrpc.Reply{XID: xid}).Encode(&e); err != nil {
		t.Fatal(err)
	}
	e.Fixed(data)
	if err := oncrpc.WriteRecord(p, &e); err != nil {
		t.Error(err)
	}
}

// request is a call with data by reference.
func request(xid uint32, data []byte) *oncrpc.Request {
	r := &oncrpc.Request{XID: xid, Call: new(xdr.Encoder), ReplyMost: 1 << 20}
	c := head(xid, 1)
	_ = c.Encode(r.Call) // without a credential nothing can be too long
	r.Call.Bulk(data)
	return r
}

// A result is what Do has returned.
type result struct {
	m   *oncrpc.Message
	err error
}

// do makes a call, whose result it sends.
func do(ctx context.Context, c *oncrpc.TCPConn, r *oncrpc.Request) <-chan result {
	to := make(chan result, 1)
	go func() {
		m, err := c.Do(ctx, r)
		to <- result{m, err}
	}()
	return to
}

func isLost(err error) bool {
	var lost *oncrpc.LostError
	return errors.As(err, &lost) && lost.Error() != ""
}

func TestRepliesFindTheirCallsInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{}, 0)
		var results []<-chan result
		for xid := range uint32(10) {
			results = append(results, do(t.Context(), c, request(xid, nil)))
		}
		for range results {
			p.next(t)
		}
		for xid := range slices.Backward(results) {
			p.reply(t, uint32(xid), bytes.Repeat([]byte{byte(xid)}, xid*30_000))
		}
		for xid, to := range results {
			r := <-to
			if r.err != nil || len(r.m.Stream) != 24+xid*30_000 || xid > 0 && r.m.Stream[24] != byte(xid) {
				t.Errorf("call %d: %+v", xid, r)
			}
			r.m.Release()
		}
	})
}

func TestCallThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{}, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := c.Do(ctx, request(1, nil)); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if _, err := c.Do(ctx, request(9, nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without time: %v", err)
		}
		p.reply(t, 1, nil) // too late
		to := do(t.Context(), c, request(2, nil))
		synctest.Wait()
		p.reply(t, 2, nil)
		if r := <-to; r.err != nil || c.Strays() != 1 {
			t.Errorf("the next call: %v, %d strays", r.err, c.Strays())
		}
	})
}

// A reply that has come when its call is given up, even before all of that was sent, is
// that call's, and no other one's.
func TestReplyThatHasComeWhenItsCallIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{}, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		first := do(ctx, c, request(1, make([]byte, 8000)))
		time.Sleep(time.Second)
		p.reply(t, 1, nil)
		synctest.Wait()
		cancel()
		r := <-first
		if r.err != nil {
			t.Fatal(r.err)
		}
		r.m.Release()
		next := do(t.Context(), c, request(2, nil))
		p.next(t)
		p.next(t)
		p.reply(t, 2, nil)
		r = <-next
		if r.err != nil {
			t.Fatal(r.err)
		}
		if xid, _, _ := oncrpc.Peek(r.m.Stream); xid != 2 {
			t.Errorf("call 2 got the reply to %d", xid)
		}
	})
}

// Once Do has returned, the caller's memory is its own, whatever of the call has been
// sent; and the calls of others continue.
func TestCallThatIsGivenUpWhileItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{}, 1000)
		data := bytes.Repeat([]byte("precious"), 1000)
		want := request(1, bytes.Clone(data)).Call.AppendTo(nil)
		ctx, cancel := context.WithCancel(t.Context())
		first := do(ctx, c, request(1, data))
		time.Sleep(time.Second)
		behind := do(ctx, c, request(2, data)) // has not begun
		next := do(t.Context(), c, request(3, nil))
		synctest.Wait()
		begin := time.Now()
		cancel()
		if r := <-first; !errors.Is(r.err, context.Canceled) || time.Since(begin) != 0 {
			t.Errorf("after %v: %v", time.Since(begin), r.err)
		}
		if r := <-behind; !errors.Is(r.err, context.Canceled) {
			t.Errorf("the one behind: %v", r.err)
		}
		clear(data)
		synctest.Wait()
		if got := p.next(t); !bytes.Equal(got, want) {
			t.Error("the call was sent with what its memory held when it was given up")
		}
		if got, want := p.next(t), request(3, nil).Call.AppendTo(nil); !bytes.Equal(got, want) {
			t.Errorf("the next call came as %x, not %x", got, want)
		}
		p.reply(t, 3, nil)
		if r := <-next; r.err != nil {
			t.Errorf("the next call: %v", r.err)
		}
	})
}

func TestCloseWhileTheRestOfACallIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connected(t, oncrpc.TCPConfig{}, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(ctx, request(1, make([]byte, 8000))); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		begin := time.Now()
		if err := c.Close(); err != nil || time.Since(begin) != 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if _, err := c.Do(t.Context(), request(2, nil)); !isLost(err) || !errors.Is(err, oncrpc.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestCallThatIsGivenUpBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe() // has no bytes on their way
		c := oncrpc.NewTCPConn(a, oncrpc.TCPConfig{})
		defer c.Close()
		defer b.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(ctx, request(1, nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		to := do(t.Context(), c, request(2, nil))
		call, err := oncrpc.NewRecordReader(b, 1000).Next(nil)
		if xid, _, _ := oncrpc.Peek(call); err != nil || xid != 2 {
			t.Errorf("call %d came, %v", xid, err)
		}
		b.Close()
		if r := <-to; !isLost(r.err) {
			t.Error(r.err)
		}
	})
}

func TestServerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, ctx := range map[string]func() (context.Context, context.CancelFunc){
			"a call that waits for ever":  func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
			"a call that has more time":   func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Hour) },
			"a call that was given up":    func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) },
			"a call that just has no end": func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
		} {
			c, _ := connected(t, oncrpc.TCPConfig{Stall: time.Minute}, 1000)
			ctx, cancel := ctx()
			begin := time.Now()
			first := do(ctx, c, request(1, make([]byte, 8000)))
			second := do(t.Context(), c, request(2, nil))
			<-c.Done()
			if took := time.Since(begin); took < time.Minute || took > 2*time.Minute+time.Second {
				t.Errorf("%s: the connection has ended after %v", name, took)
			}
			if r := <-first; !isLost(r.err) && !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, r.err)
			}
			if r := <-second; !isLost(r.err) {
				t.Errorf("%s: the next: %v", name, r.err)
			}
			cancel()
		}
	})
}

func TestServerThatTakesAllSlowlyIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{Stall: time.Minute}, 100)
		to := do(t.Context(), c, request(1, make([]byte, 4000)))
		got := 0
		for got < 4+44+4000 {
			time.Sleep(50 * time.Second)
			n, err := p.Read(make([]byte, 100))
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
		p.reply(t, 1, nil)
		if r := <-to; r.err != nil {
			t.Error(r.err)
		}
	})
}

func TestCallsInFlightAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{Limit: 2}, 0)
		if c.Limit() != 2 {
			t.Errorf("the limit is %d", c.Limit())
		}
		first, second := do(t.Context(), c, request(1, nil)), do(t.Context(), c, request(2, nil))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		third, fourth, fifth := do(ctx, c, request(3, nil)), do(t.Context(), c, request(4, nil)), do(t.Context(), c, request(5, nil))
		if r := <-third; !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("the third: %v", r.err)
		}
		p.next(t)
		p.next(t)
		p.reply(t, 1, nil)
		if r := <-first; r.err != nil {
			t.Error(r.err)
		}
		xid, _, _ := oncrpc.Peek(p.next(t))
		if xid != 4 && xid != 5 {
			t.Errorf("call %d came", xid)
		}
		synctest.Wait()
		p.Close()
		for _, to := range []<-chan result{second, fourth, fifth} {
			if r := <-to; !isLost(r.err) {
				t.Error(r.err)
			}
		}
		if _, err := c.Do(t.Context(), request(6, nil)); !isLost(err) {
			t.Errorf("when it has ended: %v", err)
		}
	})
}

func TestXIDInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{}, 0)
		to := do(t.Context(), c, request(1, nil))
		synctest.Wait()
		if _, err := c.Do(t.Context(), request(1, nil)); !errors.Is(err, oncrpc.ErrXIDInUse) {
			t.Error(err)
		}
		p.reply(t, 1, nil)
		if r := <-to; r.err != nil {
			t.Error(r.err)
		}
	})
}

func TestMessagesThatAreNoReplyToACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, oncrpc.TCPConfig{RecordMost: 1000}, 0)
		to := do(t.Context(), c, request(1, nil))
		synctest.Wait()
		for _, words := range [][]uint32{{}, {1}, {1, 0, 2}, {1, 2}, {2, 1, 0}} { // too short twice, a call, no type, no call
			var e xdr.Encoder
			for _, w := range words {
				e.Uint32(w)
			}
			if err := oncrpc.WriteRecord(p, &e); err != nil {
				t.Fatal(err)
			}
		}
		p.reply(t, 1, nil)
		if r := <-to; r.err != nil || c.Strays() != 5 {
			t.Errorf("%v, %d strays", r.err, c.Strays())
		}
		to = do(t.Context(), c, request(2, nil))
		synctest.Wait()
		var long xdr.Encoder
		long.Fixed(make([]byte, 1004))
		_ = oncrpc.WriteRecord(p, &long) // the client may close the connection when it has read the length
		if r := <-to; !isLost(r.err) || !errors.Is(r.err, oncrpc.ErrRecordLong) {
			t.Errorf("a record that is too long: %v", r.err)
		}
	})
}

func TestDialTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	c, err := oncrpc.DialTCP(t.Context(), addr, oncrpc.TCPConfig{Dialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.Close()
	<-c.Done() // was never accepted
	if _, err := oncrpc.DialTCP(t.Context(), addr, oncrpc.TCPConfig{}); err == nil {
		t.Error("connected to nobody")
	}
	if conn, err := oncrpc.OverTCP(addr, oncrpc.TCPConfig{})(t.Context()); err == nil || conn != nil {
		t.Errorf("connected to nobody: %v, %v", conn, err)
	}
}

// Each reply is what its own call makes it, however the connections behave and break.
func TestManyCallersOverConnectionsThatBreak(t *testing.T) {
	s := newService(t, oncrpc.ServerConfig{})
	var network simnet.Network
	network.Options = func(n int) simnet.Options {
		o := simnet.Options{AB: simnet.Faults{Seed: uint64(n), ShortReads: true, ShortWrites: true}, BA: simnet.Faults{Seed: uint64(n) + 99, ShortReads: true, ShortWrites: true}}
		if n < 20 {
			o.AB.CutAt, o.BA.CutAt = int64(n+1)*9_000, int64(20-n)*11_000
		}
		return o
	}
	l, err := network.Listen(t.Context(), ":2049")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.ServeTCP(t.Context(), l) }()
	dials := 0
	c := newClient(t, func(ctx context.Context) (oncrpc.Conn, error) {
		dials++
		conn, err := network.Dial(ctx, "server:2049")
		if err != nil {
			return nil, err
		}
		return oncrpc.NewTCPConn(conn, oncrpc.TCPConfig{Limit: 7}), nil
	}, oncrpc.ClientConfig{Backoff: time.Microsecond, BackoffMost: time.Millisecond})
	var calls sync.WaitGroup
	for caller := range 16 {
		calls.Go(func() {
			for i := range 40 {
				want := fmt.Sprintf("%d %d %s", caller, i, bytes.Repeat([]byte{byte('a' + i%20)}, i*97))
				if got, err := echo(t.Context(), c, want); err != nil || got != want {
					t.Errorf("caller %d, call %d: %d octets, %v", caller, i, len(got), err)
				}
				v := call(procCount)
				v.Args = func(e *xdr.Encoder) { e.Opaque([]byte(want)) }
				v.Results = func(d *xdr.Decoder) error { d.Uint32(); return d.Err() }
				if err := c.Call(t.Context(), v); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	if n := s.count.Load(); n != 16*40 {
		t.Errorf("what was to be done %d times was done %d times", 16*40, n)
	}
	if dials < 10 {
		t.Errorf("there were only %d connections", dials)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-served
}
