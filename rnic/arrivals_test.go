package rnic_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
)

// soon is within what an honest peer gets through, whatever others do.
const soon = 100 * time.Millisecond

// A stranger is what somebody does with connections that are of no use to a listener.
type stranger func(ctx context.Context, h *peer)

// strangers are the ways to waste a place. All of them come again when the connection
// is closed.
var strangers = map[string]stranger{
	"says nothing": func(ctx context.Context, h *peer) { h.gone(ctx) },
	"says a part":  func(ctx context.Context, h *peer) { h.begin(1); h.gone(ctx) },
	"says it slowly": func(ctx context.Context, h *peer) {
		for i := 0; h.alive(ctx); i++ {
			h.begin(i % 8)
			time.Sleep(time.Millisecond)
		}
	},
}

// begin sends n bytes of a Request, if it still can.
func (h *peer) begin(n int) {
	b, _ := plainRequest.AppendBinary(nil)
	_, _ = h.conn.Write(b[:n])
}

// gone waits until the connection is closed, or the context ends.
func (h *peer) gone(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = h.conn.Close() })
	defer stop()
	_, _ = io.Copy(io.Discard, h.conn)
}

// alive reports whether the connection is not closed, and the context not over.
func (h *peer) alive(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	_ = h.conn.SetReadDeadline(time.Now())
	_, err := h.conn.Read(make([]byte, 1))
	return isTimeout(err)
}

// besiege has n strangers hold connections to an address until the test ends. Those
// that are closed come again at once, if again says so.
func (w *world) besiege(address string, n int, again bool, do stranger) {
	ctx, cancel := context.WithCancel(w.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := w.Dial(ctx, address)
				if err != nil {
					return
				}
				do(ctx, &peer{TB: w, conn: c})
				_ = c.Close()
				if !again {
					<-ctx.Done()
				}
			}
		})
	}
	w.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

func TestStrangersHoldUpNobody(t *testing.T) {
	for name, do := range strangers {
		for _, again := range []bool{false, true} {
			t.Run(map[bool]string{false: name, true: name + " again and again"}[again], func(t *testing.T) {
				inWorld(t, func(w *world) {
					s := w.side()
					besieged, other := w.listen(s), w.listen(s)
					w.serve(s, besieged)
					w.serve(s, other)
					w.besiege(besieged.Addr().String(), 400, again, do)
					for _, wait := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} { // early, and when it has gone on for a while
						time.Sleep(wait)
						for _, l := range []*rnic.Listener{besieged, other} {
							start := time.Now()
							if err := w.side().QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{}); err != nil {
								w.Error(err)
							}
							if d := time.Since(start); d > soon {
								w.Errorf("after %v: it took %v; want %v at most", wait, d, soon)
							}
							if n := s.Device.Held(pd.HalfOpen); n > 256 {
								w.Errorf("%d half-open connections", n)
							}
						}
					}
				})
			})
		}
	}
}

// Who comes from elsewhere keeps its place, however long its Request takes and whatever
// others do.
func TestStrangersPushOutTheirOwn(t *testing.T) {
	const limit = 16
	for name, do := range strangers {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				honest := net.IPv4(192, 0, 2, 77)
				w.Options = func(n int) (o simnet.Options) {
					if n == 0 {
						o.Host = honest
					}
					return o
				}
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.HalfOpen: limit} })
				l := w.listen(s)
				h := w.dial(l.Addr().String())
				time.Sleep(soon) // it is the oldest by far
				w.besiege(l.Addr().String(), 4*limit, true, do)
				b, _ := plainRequest.AppendBinary(nil)
				for i := range b {
					time.Sleep(soon)
					h.write(b[i : i+1])
				}
				if r := w.request(l); r.RemoteAddr().(*net.TCPAddr).IP.Equal(honest) {
					_ = r.Close()
				} else {
					w.Errorf("a request of %v", r.RemoteAddr())
				}
			})
		})
	}
}

func TestOldestArrivalMakesRoom(t *testing.T) {
	const limit = 3
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.HalfOpen: limit} })
		ls := []*rnic.Listener{w.listen(s), w.listen(s)}
		var peers []*peer
		for i := range 2 * limit {
			peers = append(peers, w.dial(ls[i%2].Addr().String()))
			time.Sleep(soon)
			for j, h := range peers {
				if j <= i-limit {
					h.wantEnd(io.EOF)
				} else {
					h.open()
				}
			}
		}
		if c := s.Device.Counters(); c.Failed != limit {
			w.Errorf("%+v; want %d start-ups that failed", c, limit)
		}
		// Those who are left have kept their right to speak.
		for _, h := range peers[limit:] {
			_ = h.conn.SetReadDeadline(time.Time{})
			h.frame(&plainRequest)
		}
		for i := range limit {
			if err := w.request(ls[(limit+i)%2]).Close(); err != nil {
				w.Error(err)
			}
		}
	})
}

// A peer has a moment for its Request even if all others come at the same time.
func TestArrivalHasAMomentForItsRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.HalfOpen: 2} })
		l := w.listen(s)
		h := w.dial(l.Addr().String())
		w.besiege(l.Addr().String(), 20, true, strangers["says nothing"])
		b, _ := plainRequest.AppendBinary(nil)
		h.write(b[:7])
		time.Sleep(4 * time.Millisecond)
		h.write(b[7:])
		if err := w.request(l).Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
		h.readFrame()
	})
}

// scarce is a network in which only so many accepted connections can be open.
type scarce struct {
	*simnet.Network
	left atomic.Int64
	hits atomic.Int64
}

func (n *scarce) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := n.Network.Listen(ctx, address)
	return &scarceListener{l, n}, err
}

type scarceListener struct {
	net.Listener
	n *scarce
}

func (l *scarceListener) Accept() (net.Conn, error) {
	if l.n.left.Load() <= 0 {
		l.n.hits.Add(1)
		return nil, &net.OpError{Op: "accept", Net: "sim", Err: syscall.EMFILE}
	}
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.n.left.Add(-1)
	return &scarceConn{Conn: c.(*simnet.Conn), n: l.n}, nil
}

type scarceConn struct {
	*simnet.Conn
	n    *scarce
	once sync.Once
}

func (c *scarceConn) Close() error {
	c.once.Do(func() { c.n.left.Add(1) })
	return c.Conn.Close()
}

// Where descriptors run out before places do, silent connections give theirs up.
func TestStrangersDoNotKeepTheLastDescriptors(t *testing.T) {
	inWorld(t, func(w *world) {
		network := &scarce{Network: &w.Network}
		network.left.Store(10)
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = network })
		l := w.listen(s)
		w.serve(s, l)
		w.besiege(l.Addr().String(), 40, false, strangers["says nothing"])
		time.Sleep(time.Second)
		start := time.Now()
		if err := w.side().QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
		if d := time.Since(start); d > soon {
			w.Errorf("it took %v; want %v at most", d, soon)
		}
		if n := network.hits.Load(); n == 0 || n > 1000 {
			w.Errorf("%d accepts failed; want some, and no spinning", n)
		}
	})
}

// Requests that the program has not taken yet are of all hosts: one that asks often
// does not fill the queue for others.
func TestOneHostDoesNotFillTheQueueOfRequests(t *testing.T) {
	const places = 128
	inWorld(t, func(w *world) {
		host := net.IPv4(192, 0, 2, 50)
		w.Options = func(int) simnet.Options { return simnet.Options{Host: host} }
		s := w.side()
		l := w.listen(s)
		var greedy []*peer
		for range places {
			greedy = append(greedy, w.ask(l))
			synctest.Wait()
		}
		host = net.IPv4(192, 0, 2, 51)
		for i := range 10 {
			modest := w.ask(l)
			synctest.Wait()
			modest.open()
			greedy[places-1-i].wantClosed("the youngest of the host that has most")
		}
		host = net.IPv4(192, 0, 2, 50)
		late := w.ask(l)
		synctest.Wait()
		late.wantClosed("one more of the host that has most")
		if c := s.Device.Counters(); c.Dropped != 11 {
			w.Errorf("%+v; want 11 requests dropped", c)
		}
		modest := 0
		for range places {
			r := w.request(l)
			if r.RemoteAddr().(*net.TCPAddr).IP.Equal(net.IPv4(192, 0, 2, 51)) {
				modest++
			}
			if err := r.Close(); err != nil {
				w.Error(err)
			}
		}
		if modest != 10 {
			w.Errorf("%d requests of the modest host are in the queue; want 10", modest)
		}
		wantNoRequest(w, l)
	})
}

// IPv6 addresses of one network count as one host, IPv4 addresses in whatever form as
// what they are.
func TestHostsOfOneNetworkCountAsOne(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "2001:db8::1", false},
	} {
		inWorld(t, func(w *world) {
			host := net.ParseIP(tt.a)
			w.Options = func(int) simnet.Options { return simnet.Options{Host: host} }
			s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.HalfOpen: 3} })
			l := w.listen(s)
			first := w.dial(l.Addr().String())
			host = net.ParseIP(tt.b)
			second := w.dial(l.Addr().String())
			w.dial(l.Addr().String())
			time.Sleep(soon)
			host = net.ParseIP("198.51.100.1")
			w.dial(l.Addr().String())
			time.Sleep(soon)
			gone, stays := first, second
			if !tt.same { // the second host has two
				gone, stays = second, first
			}
			gone.wantClosed(tt.a + " beside " + tt.b)
			stays.open()
		})
	}
}

// The same over sockets. No time limit would free a place here.
func TestSilentConnectionsHoldUpNobodyOverTCP(t *testing.T) {
	leakcheck.Check(t)
	s := openSide(t, nil, func(cfg *rnic.Config, _ *rnic.QPAttr) {
		cfg.MPA = mpa.Config{RequestTimeout: 1000 * time.Hour, ReplyTimeout: 1000 * time.Hour}
	})
	var ls []*rnic.Listener
	for range 2 {
		l, err := s.Device.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ls = append(ls, l)
	}
	for range 400 {
		c, err := net.Dial("tcp", ls[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for i, l := range append(ls, ls...) {
		accepted := make(chan error, 1)
		q := newQP(t, s.Device, s.PD, rnic.QPAttr{})
		go func() {
			r, err := l.Accept(context.Background())
			if err == nil {
				err = r.Accept(context.Background(), q.QP, rnic.ConnParam{})
			}
			accepted <- err
		}()
		a := openSide(t, nil, func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.MPA.ReplyTimeout = 1000 * time.Hour })
		if err := errors.Join(a.QP.Connect(t.Context(), l.Addr().String(), rnic.ConnParam{}), <-accepted); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if n := s.Device.Held(pd.HalfOpen); n > 256 {
		t.Errorf("%d half-open connections", n)
	}
}
