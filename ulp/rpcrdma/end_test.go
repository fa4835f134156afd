package rpcrdma_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// wantLost wants a call to end as its connection does.
func (p *pendingCall) wantLost(t testing.TB, cause error) {
	t.Helper()
	<-p.over
	var lost *oncrpc.LostError
	if !errors.As(p.err, &lost) || lost.Err == nil || cause != nil && !errors.Is(p.err, cause) {
		t.Errorf("the call ends with %v", p.err)
	}
}

func TestCallsAreLostWithTheirConnection(t *testing.T) {
	for name, end := range map[string]func(r *raw, c *rpcrdma.Conn){
		"reset":      func(r *raw, _ *rpcrdma.Conn) { r.qp.Abort() },
		"closed":     func(r *raw, _ *rpcrdma.Conn) { go func() { _ = r.qp.Disconnect(context.Background()) }() },
		"terminated": func(r *raw, _ *rpcrdma.Conn) { _ = r.qp.Terminate(context.Background()) },
		"ended here": func(_ *raw, c *rpcrdma.Conn) { go func() { _ = c.Close() }() },
		"too long a message": func(r *raw, _ *rpcrdma.Conn) {
			p := make([]byte, 5000)
			_ = r.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{r.register(p, 0).SGE(0, len(p))}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
			var calls []*pendingCall
			for i := range 20 { // one is sent, the others wait
				calls = append(calls, start(t.Context(), conn, func(q *oncrpc.Request) {
					withBulks(q, make([]byte, 5000*(i%2)))
					q.Sinks = [][]byte{make([]byte, 5000)}
				}))
			}
			r.flight(1)
			r.quiet(conn)
			end(r, conn)
			for _, p := range calls {
				p.wantLost(t, nil)
			}
			<-conn.Done()
			if conn.Err() == nil {
				t.Error("the connection does not say why it has ended")
			}
			start(t.Context(), conn, nil).wantLost(t, conn.Err())
			for range 2 {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A call that is given up keeps its credit until its reply comes, which nobody gets
// (RFC 8166 §3.3.1).
func TestLateRepliesAreDropped(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
	r.serveCall(start(t.Context(), conn, nil), func(h *rpcrdma.Header) { h.Credits = 2 })
	ctx, cancel := context.WithCancel(t.Context())
	var calls []*pendingCall
	for range 2 {
		calls = append(calls, start(ctx, conn, nil))
	}
	xids := r.flight(2)
	cancel()
	for _, p := range calls {
		if <-p.over; !errors.Is(p.err, context.Canceled) {
			t.Errorf("the call ends with %v", p.err)
		}
	}
	next := start(t.Context(), conn, nil)
	r.quiet(conn)
	next.waits(t)
	for i, xid := range xids {
		r.reply(xid, 2)
		if i == 0 {
			r.serveCall(next, func(h *rpcrdma.Header) { h.Credits = 2 })
		}
	}
	waitFor(t, func() bool { return conn.Stats().Late == 2 })
	r.reply(xids[0], 2) // once more
	r.quiet(conn)
	r.serveCall(start(t.Context(), conn, nil), nil)
	gone, stop := context.WithCancelCause(t.Context())
	why := errors.New("why")
	stop(why)
	if p := start(gone, conn, nil); true {
		if <-p.over; !errors.Is(p.err, why) {
			t.Errorf("a call that is canceled before it begins ends with %v", p.err)
		}
	}
}

func TestServerLetsCallsEndBeforeItDoes(t *testing.T) {
	s := newService(t)
	srv, address := serve(t, s, rpcrdma.Config{})
	conn := dial(t, address, rpcrdma.Config{})
	roundTrip(t, conn, nil, 10)
	block, _ := call(procBlock)
	p := start(t.Context(), conn, func(q *oncrpc.Request) { *q = *block })
	<-s.started
	over := make(chan error, 1)
	go func() { over <- srv.Shutdown(context.Background()) }()
	waitFor(t, func() bool { return rpcrdma.Draining(srv) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, _ := call(procNull)
	m, err := conn.Do(ctx, r)
	m.Release()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that comes now ends with %v", err)
	}
	select {
	case err := <-over:
		t.Fatal("the server has ended while a call is carried out:", err)
	default:
	}
	p.waits(t)
	close(s.release)
	if <-p.over; p.err != nil {
		t.Errorf("the call ends with %v", p.err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	<-conn.Done()
	if n := len(srv.Peers()); n != 0 {
		t.Errorf("there are %d connections", n)
	}
	if err := srv.Serve(t.Context(), nil); err != nil {
		t.Errorf("serving after the end: %v", err)
	}
}

func TestServerThatIsClosedEndsCalls(t *testing.T) {
	s := newService(t)
	srv, address := serve(t, s, rpcrdma.Config{})
	conn := dial(t, address, rpcrdma.Config{})
	r, _ := call(procBlock)
	p := start(t.Context(), conn, func(q *oncrpc.Request) { *q = *r })
	<-s.started
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the shutdown ends with %v", err)
	}
	p.wantLost(t, nil)
}

func TestServeEndsWithItsContext(t *testing.T) {
	l := listen(t, open(t, "server"))
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- rpcrdma.Serve(ctx, l, newService(t), rpcrdma.Config{}) }()
	conn := dial(t, l.Addr().String(), rpcrdma.Config{})
	roundTrip(t, conn, nil, 5000)
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-conn.Done()
	if err := rpcrdma.Serve(t.Context(), l, newService(t), rpcrdma.Config{Credits: -1}); err == nil {
		t.Error("a configuration of less than no credits is taken")
	}
}

func TestServerHasOnlySoManyConnections(t *testing.T) {
	srv, address := serve(t, newService(t), rpcrdma.Config{MaxConnections: 2})
	one, two := dial(t, address, rpcrdma.Config{}), dial(t, address, rpcrdma.Config{})
	roundTrip(t, one, nil, 1)
	roundTrip(t, two, nil, 1)
	if c, err := rpcrdma.Dial(t.Context(), open(t, "third"), address, rpcrdma.Config{}); err == nil {
		t.Error("a third connection is accepted")
		_ = c.Close()
	}
	_ = one.Close()
	waitFor(t, func() bool { return len(srv.Peers()) == 1 })
	roundTrip(t, dial(t, address, rpcrdma.Config{}), nil, 1)
}

func TestDialFails(t *testing.T) {
	dev := open(t, "client")
	address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), loopback.Port(t)).String()
	if _, err := rpcrdma.Dial(t.Context(), dev, address, rpcrdma.Config{}); err == nil {
		t.Error("nobody listens, and there is a connection")
	}
	if _, err := rpcrdma.Dial(t.Context(), dev, address, rpcrdma.Config{Credits: 1 << 20}); err == nil {
		t.Error("a million credits can be had")
	}
	for name, change := range map[string]func(c *rnic.Config){
		"no domains":        func(c *rnic.Config) { c.Limits[0] = 1 },
		"short queues":      func(c *rnic.Config) { c.MaxWR = 8 },
		"completion queues": func(c *rnic.Config) { c.MaxCQE = 16 },
	} {
		small := open(t, name, change)
		if name == "no domains" {
			if _, err := small.AllocPD(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := rpcrdma.Dial(t.Context(), small, address, rpcrdma.Config{}); err == nil {
			t.Errorf("%s: there is a connection", name)
		}
	}
}

func TestConfigsThatCannotBeCarriedOutAreRefused(t *testing.T) {
	for name, cfg := range map[string]rpcrdma.Config{
		"credits":           {Credits: -1},
		"reverse credits":   {ReverseCredits: 1 << 20},
		"a Send size":       {Send: 1000},
		"a Receive size":    {Receive: 1 << 20},
		"an odd size":       {Receive: 4097},
		"a segment":         {MaxSegment: -1},
		"a message":         {MaxMessage: -1},
		"pulled":            {MaxPulled: 1, MaxMessage: 2},
		"pulled of all":     {MaxPulledAll: 1, MaxMessage: 2},
		"connections":       {MaxConnections: -1},
		"each host":         {PerHost: -1},
		"limits":            {Limits: rpcrdma.Limits{Segments: -1}},
		"registration":      {Registration: 17},
		"patience":          {Patience: -1},
		"a time for pulled": {StallTimeout: -1},
	} {
		if _, err := rpcrdma.NewServer(newService(t), cfg); err == nil {
			t.Errorf("%s: the configuration is taken", name)
		}
	}
}

// What peers may make a responder hold is bounded: calls wait for memory.
func TestReadChunksWaitForRoom(t *testing.T) {
	for name, cfg := range map[string]rpcrdma.Config{
		"of a connection": {MaxMessage: 10_000, MaxPulled: 15_000},
		"of a server":     {MaxMessage: 10_000, MaxPulledAll: 15_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			_, address := serve(t, s, cfg)
			r := rawDial(t, address, rawPrivate)
			r.null()
			data := filled(9000, 1)
			for i := range 3 {
				r.send(callMessage(header(uint32(i+1), func(h *rpcrdma.Header) { h.Read = at(callLen, r.readable(data)...) }), procBlock, nil))
			}
			for i := range 3 {
				<-s.started
				r.null() // others are not held up
				if n := s.running.Load(); n != 1 {
					t.Errorf("%d calls are carried out", n)
				}
				s.release <- struct{}{}
				if h, _, _ := r.recv(); h.XID == 0 || h.Proc != rpcrdma.Msg {
					t.Errorf("reply %d is %+v", i, h)
				}
			}
		})
	}
}

// One host gets a part of what there is for the Read chunks of all, however often it connects.
func TestReadChunksOfAHostWaitForRoom(t *testing.T) {
	s := newService(t)
	_, address := serve(t, s, rpcrdma.Config{MaxMessage: 10_000, MaxPulled: 10_000, MaxPulledAll: 40_000})
	const conns = 3
	for range conns {
		r := rawDial(t, address, rawPrivate)
		r.null()
		data := filled(9000, 1)
		r.send(callMessage(header(1, func(h *rpcrdma.Header) { h.Read = at(callLen, r.readable(data)...) }), procBlock, nil))
	}
	other := rawDial(t, address, rawPrivate)
	for range conns {
		<-s.started
		other.null() // calls without chunks are not held up
		if n := s.running.Load(); n != 1 {
			t.Errorf("%d calls are carried out", n)
		}
		s.release <- struct{}{}
	}
}

// A call that waits for much memory is not overtaken by those that want less.
func TestLargeCallsAreNotOvertaken(t *testing.T) {
	s := newService(t)
	srv, address := serve(t, s, rpcrdma.Config{MaxMessage: 10_000, MaxPulled: 15_000})
	r := rawDial(t, address, rawPrivate)
	r.null()
	peer := srv.Peers()[0]
	send := func(xid uint32, n int) {
		data := make([]byte, n)
		r.send(callMessage(header(xid, func(h *rpcrdma.Header) { h.Read = at(callLen, r.readable(data)...) }), procBlock, nil))
	}
	send(1, 9000)
	<-s.started
	send(2, 9000)
	waitFor(t, func() bool { return peer.Waiting() == 1 })
	send(3, 100)
	waitFor(t, func() bool { return peer.Waiting() == 2 })
	r.null()
	if n := s.running.Load(); n != 1 {
		t.Errorf("%d calls are carried out", n)
	}
	close(s.release)
	r.flight(3)
}

func TestNewConnectionsGetTheCreditsThatAreSet(t *testing.T) {
	srv, address := serve(t, newService(t), rpcrdma.Config{})
	srv.SetCredits(3)
	r := rawDial(t, address, rawPrivate)
	waitFor(t, func() bool { return len(srv.Peers()) == 1 })
	if h := r.null(); h.Credits != 3 {
		t.Errorf("%d are granted", h.Credits)
	}
}

func TestStringsOfTheirValues(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{rpcrdma.RegisterFast.String(), "fast"},
		{rpcrdma.RegisterEach.String(), "each"},
		{rpcrdma.RegisterPool.String(), "pool"},
		{rpcrdma.Registration(9).String(), "registration 9"},
	} {
		if c.got != c.want {
			t.Errorf("got %q; want %q", c.got, c.want)
		}
	}
}

// RFC 8166 §9: the network identifiers.
func TestNetidTellsTheAddressFamily(t *testing.T) {
	for address, want := range map[string]string{"127.0.0.1:0": "rdma", "[::1]:0": "rdma6"} {
		t.Run(want, func(t *testing.T) {
			l, err := open(t, "server").Listen(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			s := newService(t)
			srv, err := rpcrdma.NewServer(s, rpcrdma.Config{})
			if err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			go func() { over <- srv.Serve(context.Background(), l) }()
			conn := dial(t, l.Addr().String(), rpcrdma.Config{})
			roundTrip(t, conn, nil, 1)
			if conn.Netid() != want || s.exchanges[0] != (exchange{want, conn.RemoteAddr().String(), conn.LocalAddr().String()}) {
				t.Errorf("%s, %+v", conn.Netid(), s.exchanges)
			}
			if call, reply := conn.Inline(); call != 4096 || reply != 4096 {
				t.Errorf("inline thresholds %d and %d", call, reply)
			}
			if err := errors.Join(srv.Close(), <-over); err != nil {
				t.Error(err)
			}
		})
	}
}

// Data of replies may lie anywhere: in what Exchange.Bulk returns, in the call's own
// memory, in the heap.
func TestRepliesMayReferToTheirCalls(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	data := filled(900, 1)
	sink := make([]byte, 900)
	r.send(bulksCall(header(9, func(h *rpcrdma.Header) { h.Write = [][]rpcrdma.Segment{r.writable(sink)} }), nil, data))
	_, stream, _ := r.recv()
	if got := bulksIn(t, stream, xdr.Moved{Position: xdr.Next, Data: sink}); !bytes.Equal(got[0], data) {
		t.Errorf("got %q", got)
	}
}
