package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// listen makes a side listen.
func (w *world) listen(s *rnictest.Side) *rnic.Listener {
	w.Helper()
	l, err := s.Device.Listen(context.Background(), ":0")
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// serve accepts each request of a listener with a queue pair of its own.
func (w *world) serve(s *rnictest.Side, l *rnic.Listener) (accepted func() []*rnictest.Side) {
	var mu sync.Mutex
	var all []*rnictest.Side
	go func() {
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			q := newQP(w, s.Device, s.PD, rnic.QPAttr{})
			if r.Accept(context.Background(), q.QP, rnic.ConnParam{}) == nil {
				mu.Lock()
				all = append(all, q)
				mu.Unlock()
			}
		}
	}()
	return func() []*rnictest.Side {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestRequestsOfAClosedListenerAreDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l := w.listen(s)
		var peers []*peer
		for i := range 5 {
			h := w.dial(l.Addr().String())
			if i > 0 { // the first one says nothing
				h.frame(&plainRequest)
			}
			peers = append(peers, h)
		}
		synctest.Wait()
		taken, err := l.Accept(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if n := s.Device.Held(pd.HalfOpen); n != 1 {
			w.Errorf("%d half-open connections; want the one that says nothing", n)
		}
		if err := l.Close(); err != nil {
			w.Error(err)
		}
		if n := s.Device.Held(pd.HalfOpen); n != 0 {
			w.Errorf("%d half-open connections after Close", n)
		}
		// That one can still be answered.
		if err := taken.Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
		open := 0
		for _, h := range peers {
			_ = h.conn.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := h.conn.Read(make([]byte, 1)); err == nil {
				open++
			} else if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				w.Errorf("a peer whose request was dropped reads: %v", err)
			}
		}
		if open != 1 {
			w.Errorf("%d requests were answered; want 1", open)
		}
		if s.Device.Held(pd.HalfOpen) != 0 || s.Device.Held(pd.Listeners) != 0 {
			w.Errorf("the device holds %v", held(s.Device))
		}
	})
}

func TestListenerClosesWhileAConnectionWaitsForItsTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.HalfOpen: 1} })
		l := w.listen(s)
		var peers []*peer
		for range 5 {
			peers = append(peers, w.dial(l.Addr().String()))
		}
		synctest.Wait()
		start := time.Now()
		if err := l.Close(); err != nil {
			w.Error(err)
		}
		for _, h := range peers {
			if _, err := h.conn.Read(make([]byte, 1)); err == nil {
				w.Error("a peer of a closed listener reads something")
			}
		}
		if d := time.Since(start); d != 0 {
			w.Errorf("it took %v", d)
		}
	})
}

func TestRejectedConnectionStaysOpenUntilThePeerCloses(t *testing.T) {
	// "leaving the TCP connection open": RFC 5044 §7.1.2 rule 2. But not forever.
	for name, end := range map[string]func(s *rnictest.Side, h *peer) time.Duration{
		"it closes":     func(_ *rnictest.Side, h *peer) time.Duration { h.close(); return 0 },
		"it resets":     func(_ *rnictest.Side, h *peer) time.Duration { h.reset(); return 0 },
		"it never does": func(*rnictest.Side, *peer) time.Duration { return rnic.DefaultCloseTimeout },
		"it sends for ever": func(_ *rnictest.Side, h *peer) time.Duration {
			go func() {
				for {
					if _, err := h.conn.Write(make([]byte, 1000)); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
			return rnic.DefaultCloseTimeout
		},
		"the device closes": func(s *rnictest.Side, _ *peer) time.Duration { _ = s.Device.Close(); return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits[pd.HalfOpen] = 1 })
				l := w.listen(s)
				defer l.Close()
				reject := func() *peer {
					h := w.ask(l)
					if err := w.request(l).Reject(w.Context(), []byte("no")); err != nil {
						w.Error(err)
					}
					if f := h.readFrame(); !f.Rejected || string(f.PrivateData) != "no" {
						w.Errorf("Reply %v", &f)
					}
					return h
				}
				h := reject()
				h.quiet()
				time.Sleep(end(s, h))
				synctest.Wait()
				if _, err := h.conn.Write([]byte("x")); err == nil {
					w.Error("the connection is still open")
				}
				if name != "the device closes" {
					reject().open() // there is room for another one
				}
			})
		})
	}
}

func TestListenerClosesOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l := w.listen(s)
		waiting := make(chan error, 1)
		go func() {
			_, err := l.Accept(context.Background())
			waiting <- err
		}()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := l.Close(); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		if err := <-waiting; !errors.Is(err, rnic.ErrClosed) {
			w.Errorf("an Accept that waits: %v; want ErrClosed", err)
		}
		if _, err := l.Accept(w.Context()); !errors.Is(err, rnic.ErrClosed) {
			w.Errorf("Accept: %v; want ErrClosed", err)
		}
		if n := s.Device.Held(pd.Listeners); n != 0 {
			w.Errorf("%d listeners are held", n)
		}
		if err := s.QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{}); !errors.Is(err, syscall.ECONNREFUSED) {
			w.Errorf("Connect: %v; want ECONNREFUSED", err)
		}
	})
}

func TestAcceptEndsWithItsContext(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l := w.listen(s)
		defer l.Close()
		if l.Device() != s.Device {
			w.Errorf("the listener says that it is of %p, not %p", l.Device(), s.Device)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("%v; want the context's error", err)
		}
	})
}

func TestListenFails(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.Listeners: 2} })
		l := w.listen(s)
		if _, err := s.Device.Listen(w.Context(), l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
			w.Errorf("an address in use: %v", err)
		}
		w.listen(s)
		var limit *pd.LimitError
		if _, err := s.Device.Listen(w.Context(), ":0"); !errors.As(err, &limit) || limit.Resource != pd.Listeners {
			w.Errorf("one too many: %v; want a LimitError", err)
		}
		if err := l.Close(); err != nil {
			w.Error(err)
		}
		w.listen(s)
		if err := s.Device.Close(); err != nil {
			w.Error(err)
		}
		if _, err := s.Device.Listen(w.Context(), ":0"); !errors.Is(err, rnic.ErrClosed) {
			w.Errorf("a closed device: %v", err)
		}
	})
}

func TestIdleListenersTakeNoneOfTheHalfOpenConnections(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.HalfOpen: 1} })
		for range 3 {
			w.listen(s)
		}
		l := w.listen(s)
		w.serve(s, l)
		if err := w.side().QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
	})
}

func TestSilentPeerIsDroppedAfterTheTimeLimit(t *testing.T) {
	var request []byte
	f := plainRequest
	f.PrivateData = []byte("hello")
	request, _ = f.AppendBinary(nil)
	for n := range len(request) { // bytes that it says before it falls silent
		inWorld(t, func(w *world) {
			s := w.side()
			l := w.listen(s)
			defer l.Close()
			h := w.dial(l.Addr().String())
			h.write(request[:n])
			start := time.Now()
			h.wantEnd(io.EOF)
			if d := time.Since(start); d != mpa.DefaultRequestTimeout {
				w.Errorf("%d octets of a Request: dropped after %v", n, d)
			}
			synctest.Wait()
			if s.Device.Held(pd.HalfOpen) != 0 || s.Device.Counters().Failed != 1 {
				w.Errorf("%d octets of a Request: %d half open, %+v", n, s.Device.Held(pd.HalfOpen), s.Device.Counters())
			}
		})
	}
}

func TestPeerThatDiesInItsRequestLeavesNothing(t *testing.T) {
	f := plainRequest
	f.PrivateData = []byte("hello")
	request, _ := f.AppendBinary(nil)
	for name, die := range map[string]func(h *peer){"close": (*peer).close, "reset": (*peer).reset} {
		t.Run(name, func(t *testing.T) {
			for n := range len(request) {
				inWorld(t, func(w *world) {
					s := w.side()
					l := w.listen(s)
					defer l.Close()
					h := w.dial(l.Addr().String())
					h.write(request[:n])
					die(h)
					if s.Device.Held(pd.HalfOpen) != 0 {
						w.Errorf("%d octets of a Request: something is held", n)
					}
				})
			}
		})
	}
}

func TestInitiatorIsPatientWithTheReplyOnlySoLong(t *testing.T) {
	for n := range mpa.FrameHeaderLen + mpa.EnhancedLen {
		inWorld(t, func(w *world) {
			s := w.side()
			h, req, connected := w.asked(s, rnic.ConnParam{})
			reply := plainReply(&req)
			b, _ := reply.AppendBinary(nil)
			start := time.Now()
			h.write(b[:n])
			var e *mpa.Error
			if err := <-connected; !errors.As(err, &e) || e.Code != mpa.CodeConnectionLost {
				w.Errorf("%d octets of a Reply: %v", n, err)
			}
			if d := time.Since(start); d != mpa.DefaultReplyTimeout {
				w.Errorf("%d octets of a Reply: given up after %v", n, d)
			}
			wantState(w, s.QP, rnic.Idle)
		})
	}
}

func TestResponderIsPatientWithTheRTROnlySoLong(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend})
		h := w.peerOf(s, rnic.ConnParam{}, enhanced(mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRAll, ORD: 1}))
		start := time.Now()
		h.wantReset()
		if d := time.Since(start); d != mpa.DefaultFirstFPDUTimeout {
			w.Errorf("given up after %v", d)
		}
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventLost)
		wantCompletions(w, s.SendCQ, result{1, flushed})
	})
}

func TestGarbageOnThePortIsDroppedAtOnce(t *testing.T) {
	f := plainRequest
	good, _ := f.AppendBinary(nil)
	reply := mpa.Frame{Reply: true, Revision: 1}
	replyB, _ := reply.AppendBinary(nil)
	changed := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 2000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	for name, b := range map[string][]byte{
		"HTTP":              []byte("GET / HTTP/1.1\r\n\r\n"),
		"noise":             noise,
		"zeros":             make([]byte, 600),
		"a Reply":           replyB,
		"revision 3":        changed(17, 3),
		"long private data": changed(18, 0xFF),
		"S without a block": append(changed(16, 0x50)[:17], 2, 0, 3, 1, 2, 3),
		"early data":        append(bytes.Clone(good), 0),
		"early FPDU":        append(bytes.Clone(good), make([]byte, 24)...),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				l := w.listen(s)
				defer l.Close()
				h := w.dial(l.Addr().String())
				start := time.Now()
				h.write(b)
				if _, err := h.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
					w.Errorf("the peer reads: %v; want nothing but the end", err)
				}
				synctest.Wait()
				if d := time.Since(start); d != 0 || s.Device.Held(pd.HalfOpen) != 0 || s.Device.Counters().Failed != 1 {
					w.Errorf("after %v: %d half open, %+v", d, s.Device.Held(pd.HalfOpen), s.Device.Counters())
				}
			})
		})
	}
}

func TestUnansweredRequestEndsWithItsDevice(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l := w.listen(s)
		h := w.dial(l.Addr().String())
		h.frame(&plainRequest)
		r, err := l.Accept(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		start := time.Now()
		if err := s.Device.Close(); err != nil {
			w.Error(err)
		}
		h.wantEnd(io.EOF)
		if d := time.Since(start); d >= rnic.DefaultAnswerTimeout {
			w.Errorf("the request has ended after %v, when the time to answer it had", d)
		}
		for verb, err := range map[string]error{"Accept": r.Accept(w.Context(), s.QP, rnic.ConnParam{}), "Reject": r.Reject(w.Context(), nil)} {
			if err == nil {
				w.Errorf("%s after the device was closed succeeded", verb)
			}
		}
		if err := r.Close(); err != nil {
			w.Error(err)
		}
	})
}

// shaky is a network whose listeners fail now and then.
type shaky struct {
	rnic.Network
	failures int
}

type shakyListener struct {
	net.Listener
	left *int
}

func (n *shaky) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := n.Network.Listen(ctx, address)
	return &shakyListener{l, &n.failures}, err
}

func (l *shakyListener) Accept() (net.Conn, error) {
	if *l.left > 0 {
		*l.left--
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}

func TestListenerOutlivesErrorsOfTheNetwork(t *testing.T) {
	inWorld(t, func(w *world) {
		network := &shaky{&w.Network, 12}
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = network })
		start := time.Now()
		w.connect(w.side(), s)
		if d := time.Since(start); d < 100*time.Millisecond || d > time.Second {
			w.Errorf("twelve errors delayed it by %v", d)
		}
		network.failures = 1 << 30
		l := w.listen(s)
		if err := l.Close(); err != nil { // in the pause between two
			w.Error(err)
		}
	})
}

func TestListenerLeavesNothingOverTCP(t *testing.T) {
	leakcheck.Check(t)
	d, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for i := range 10 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if f, _ := plainRequest.AppendBinary(nil); i%2 == 0 {
			if _, err := c.Write(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := l.Accept(context.Background()); err != nil { // and leave it
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range conns {
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("a connection of a closed device reads %d octets, %v", n, err)
		}
		_ = c.Close()
	}
	wantHeld(t, d, pd.Limits{})
}

func TestManyConnectAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.HalfOpen: 4} })
		l := w.listen(s)
		accepted := w.serve(s, l)
		const n = 100
		errs := make(chan error, n)
		for range n {
			a := w.side()
			go func() { errs <- a.QP.Connect(context.Background(), l.Addr().String(), rnic.ConnParam{}) }()
		}
		for range n {
			if err := <-errs; err != nil {
				w.Error(err)
			}
		}
		synctest.Wait()
		if got := len(accepted()); got != n || fmt.Sprint(s.Device.Counters().Accepted) != fmt.Sprint(n) {
			w.Errorf("%d connections were accepted; want %d", got, n)
		}
	})
}
