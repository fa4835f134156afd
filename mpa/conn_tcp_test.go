package mpa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urnic/internal/test/hang"
)

// loopbacks are where TCP listens in these tests.
var loopbacks = []string{"127.0.0.1:0", "[::1]:0"}

// listen listens for TCP connections.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("no loopback at %s: %v", address, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// sockets returns the two ends of a TCP connection.
func sockets(t testing.TB, address string) (dialled, accepted *net.TCPConn) {
	t.Helper()
	l := listen(t, address)
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// overTCP runs f with both ends of a connection over loopback, and closes them if f hangs.
func overTCP(t *testing.T, initiator, responder Config, f func(t *testing.T, ini, res *Conn)) {
	t.Helper()
	for _, address := range loopbacks {
		t.Run(address, func(t *testing.T) {
			a, b := sockets(t, address)
			defer hang.Guard(t, func() {
				_ = a.Close()
				_ = b.Close()
			})()
			ini, res := connect(t, a, b, initiator, responder)
			f(t, ini, res)
			_ = ini.Close()
			_ = res.Close()
		})
	}
}

func TestOverTCPInBothDirectionsAtOnce(t *testing.T) {
	for _, markers := range []bool{false, true} {
		cfg := Config{Markers: markers}
		overTCP(t, cfg, cfg, func(t *testing.T, ini, res *Conn) {
			if m := ini.MULPDU(); m < 500 || m > MaxMULPDU {
				t.Errorf("MULPDU %d", m)
			}
			ulpdus, _ := fpduStream(3, false, false, 300, 30_000)
			var wg sync.WaitGroup
			wg.Go(func() { send(t, ini, ulpdus...) })
			wg.Go(func() { send(t, res, ulpdus...) }) // waits for the Initiator's first FPDU
			for _, c := range []*Conn{ini, res} {
				wg.Go(func() {
					for i, u := range receive(t, c, len(ulpdus)) {
						if !bytes.Equal(u, ulpdus[i]) {
							t.Errorf("ULPDU %d: %d octets; want %d", i, len(u), len(ulpdus[i]))
						}
					}
				})
			}
			wg.Wait()
			for _, c := range []*Conn{ini, res} {
				if c.Posted() != c.Accepted() {
					t.Errorf("%d octets posted, %d accepted", c.Posted(), c.Accepted())
				}
			}
			// Graceful on both sides.
			for _, c := range []*Conn{ini, res} {
				if err := c.CloseWrite(); err != nil {
					t.Error(err)
				}
			}
			for _, c := range []*Conn{ini, res} {
				if err := c.Receive(ignore); !errors.Is(err, io.EOF) {
					t.Errorf("after the peer's end: %v", err)
				}
			}
		})
	}
}

func TestOverTCPASlowReceiverHoldsTheSenderBack(t *testing.T) {
	overTCP(t, Config{}, Config{}, func(t *testing.T, ini, res *Conn) {
		ulpdu := make([]byte, 60_000)
		posted := 0
		for full := false; !full; { // until neither stream nor batch take more
			ok, err := ini.Post(nil, [][]byte{ulpdu}, true)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				posted++
				continue
			}
			done, err := ini.Flush(false)
			if err != nil {
				t.Fatal(err)
			}
			if !done {
				ok, _ := ini.Post(nil, [][]byte{ulpdu}, true)
				full = !ok
				if ok {
					posted++
				}
			}
		}
		if ini.Accepted() >= ini.Posted() {
			t.Errorf("all of %d octets were accepted", ini.Posted())
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				done, err := ini.Flush(true)
				if err != nil {
					t.Error(err)
				}
				if done || err != nil {
					return
				}
			}
		})
		if got := receive(t, res, posted); len(got) != posted {
			t.Errorf("%d ULPDUs came; want %d", len(got), posted)
		}
		wg.Wait()
	})
}

func TestOverTCPAResetReachesReceiverAndSender(t *testing.T) {
	overTCP(t, Config{}, Config{}, func(t *testing.T, ini, res *Conn) {
		errs := make(chan error, 2)
		go func() {
			var err error
			for err == nil {
				err = ini.Receive(ignore)
			}
			errs <- err
		}()
		go func() {
			var err error
			for err == nil {
				_, _ = ini.Post(nil, [][]byte{make([]byte, 60_000)}, true)
				_, err = ini.Flush(true)
			}
			errs <- err
		}()
		if err := res.Receive(ignore); err != nil {
			t.Fatal(err)
		}
		if err := res.Abort(); err != nil {
			t.Error(err)
		}
		for range 2 {
			err := <-errs
			wantCode(t, "reset", err, CodeConnectionLost)
			if errors.Is(err, net.ErrClosed) {
				t.Errorf("reset: %v", err)
			}
		}
	})
}

func TestOverTCPCloseEndsReceiveAndFlush(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			overTCP(t, Config{}, Config{}, func(t *testing.T, ini, _ *Conn) {
				errs := make(chan error, 2)
				go func() { errs <- ini.Receive(ignore) }()
				go func() {
					for {
						_, _ = ini.Post(nil, [][]byte{make([]byte, 60_000)}, true)
						if _, err := ini.Flush(true); err != nil {
							errs <- err
							return
						}
					}
				}()
				if err := end(ini); err != nil {
					t.Error(err)
				}
				for range 2 {
					err := <-errs
					wantCode(t, name, err, CodeConnectionLost)
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("%s: %v; want net.ErrClosed", name, err)
					}
				}
			})
		})
	}
}

func TestOverTCPADiscardLetsTheTerminateArrive(t *testing.T) {
	overTCP(t, Config{}, Config{}, func(t *testing.T, ini, res *Conn) {
		send(t, ini, []byte("first"))
		receive(t, res, 1)
		var wg sync.WaitGroup
		wg.Go(func() { // sends on and on, until the Terminate is in
			junk := make([]byte, 60_000)
			got := false
			wg.Go(func() {
				for {
					if _, err := ini.Post(nil, [][]byte{junk}, true); err != nil {
						t.Error(err)
						return
					}
					if _, err := ini.Flush(true); err != nil {
						return
					}
				}
			})
			for {
				if err := ini.Receive(each(func(u []byte, _ uint64) { got = string(u) == "terminate" })); err != nil {
					if !got || !errors.Is(err, io.EOF) {
						t.Errorf("Terminate received: %v, then %v", got, err)
					}
					_ = ini.Close()
					return
				}
			}
		})
		send(t, res, []byte("terminate"))
		if err := res.CloseWrite(); err != nil {
			t.Error(err)
		}
		if err := res.Discard(); err != nil && !errors.Is(err, net.ErrClosed) {
			var e *Error // the peer has closed with our bytes unread, perhaps
			if !errors.As(err, &e) || e.Code != CodeConnectionLost {
				t.Error(err)
			}
		}
		_ = res.Close()
		wg.Wait()
	})
}

func TestStartupOverTCP(t *testing.T) {
	for _, address := range loopbacks {
		t.Run(address, func(t *testing.T) {
			t.Run("a silent peer", func(t *testing.T) {
				for _, start := range []func(context.Context, net.Conn, Config) <-chan started{initiates, responds} {
					a, b := sockets(t, address)
					limit := Config{RequestTimeout: 10 * time.Millisecond, ReplyTimeout: 10 * time.Millisecond}
					s := <-start(t.Context(), a, limit)
					wantCode(t, "silence", s.err, CodeConnectionLost)
					if !errors.Is(s.err, os.ErrDeadlineExceeded) {
						t.Error(s.err)
					}
					_ = b.Close()
				}
			})
			t.Run("a cancelled context", func(t *testing.T) {
				for _, start := range []func(context.Context, net.Conn, Config) <-chan started{initiates, responds} {
					a, b := sockets(t, address)
					ctx, cancel := context.WithCancel(t.Context())
					done := start(ctx, a, Config{})
					cancel()
					if s := <-done; !errors.Is(s.err, context.Canceled) {
						t.Error(s.err)
					}
					_ = b.Close()
				}
			})
			t.Run("a fall-back", func(t *testing.T) {
				l := listen(t, address)
				var wg sync.WaitGroup
				wg.Go(func() {
					for range 2 {
						conn, err := l.Accept()
						if err != nil {
							t.Error(err)
							return
						}
						if s := <-responds(t.Context(), conn, Config{Revision: 1}); s.conn != nil {
							_ = s.conn.Discard()
							_ = s.conn.Close()
						}
					}
				})
				var d net.Dialer
				c, err := Dial(t.Context(), func(ctx context.Context) (net.Conn, error) {
					return d.DialContext(ctx, "tcp", l.Addr().String())
				}, Config{})
				if err != nil {
					t.Fatal(err)
				}
				if c.Params().Revision != 1 || c.RemoteAddr().String() != l.Addr().String() {
					t.Errorf("revision %d with %v", c.Params().Revision, c.RemoteAddr())
				}
				_ = c.Close()
				wg.Wait()
			})
			t.Run("a rejection", func(t *testing.T) {
				a, b := sockets(t, address)
				done := initiates(t.Context(), a, Config{})
				req, err := ReceiveRequest(t.Context(), b, Config{})
				if err != nil {
					t.Fatal(err)
				}
				if err := req.Reject(t.Context(), []byte("no")); err != nil {
					t.Fatal(err)
				}
				var rejected *RejectedError
				if s := <-done; !errors.As(s.err, &rejected) {
					t.Fatal(s.err)
				}
				if _, err := fmt.Fprint(a, "open"); err != nil {
					t.Error(err)
				}
				got := make([]byte, 4)
				if _, err := io.ReadFull(b, got); err != nil || string(got) != "open" {
					t.Errorf("%q, %v", got, err)
				}
				_ = a.Close()
				_ = b.Close()
			})
		})
	}
}

func TestOverTCPTheReceiverHoldsNoBufferWhileItWaits(t *testing.T) {
	overTCP(t, Config{}, Config{}, func(t *testing.T, ini, res *Conn) {
		var held atomic.Int32
		looked := make(chan struct{}, 1)
		get, unget := res.in.get, res.in.unget
		res.in.get = func() []byte {
			held.Add(1)
			return get()
		}
		res.in.unget = func() {
			unget()
			held.Add(-1)
			select {
			case looked <- struct{}{}:
			default:
			}
		}
		done := make(chan error)
		go func() { done <- res.Receive(ignore) }()
		<-looked
		if n := held.Load(); n != 0 {
			t.Errorf("%d buffers are held while nothing is there", n)
		}
		send(t, ini, []byte("wake up"))
		if err := <-done; err != nil || held.Load() != 1 {
			t.Errorf("%v; %d buffers held after a read", err, held.Load())
		}
	})
}
