package rpcrdma_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

// flight starts so many calls, and returns the XIDs of those that come, in their order.
func (r *raw) flight(n int) (xids []uint32) {
	r.t.Helper()
	for range n {
		h, _, _ := r.recv()
		xids = append(xids, h.XID)
	}
	return xids
}

// quiet waits until the requester has nothing more to send: it answers what is to
// come behind everything else, which is a message that it discards.
func (r *raw) quiet(c *rpcrdma.Conn) {
	r.t.Helper()
	r.send([]byte{1, 2, 3})
	for c.Stats().Received < r.sent {
		select {
		case <-c.Done():
			r.t.Fatal(c.Err())
		default:
		}
	}
	r.silent()
}

// RFC 8166 §3.3.3: "a Requester MUST NOT assume more than one credit is available and MUST
// receive a valid reply from the Responder carrying the actual number of available credits,
// prior to sending its next request"; §3.3.1: "A Requester MUST NOT send unacknowledged
// requests in excess of the Responder's granted credit limit", which may rise and fall.
func TestRequesterKeepsToItsCredits(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{Credits: 16})
	var calls []*pendingCall
	for range 100 {
		calls = append(calls, start(t.Context(), conn, nil))
	}
	xids := r.flight(1)
	r.quiet(conn)
	if conn.Limit() != 1 {
		t.Errorf("the limit is %d at first", conn.Limit())
	}
	answered := 0
	answer := func(granted int) {
		r.reply(xids[0], uint32(granted))
		xids = xids[1:]
		answered++
	}
	for _, c := range []struct{ granted, limit int }{{4, 4}, {8, 8}, {1000, 16}, {3, 3}, {0, 1}, {1 << 30, 16}, {2, 2}} {
		// The next reply grants so many: what it makes room for comes, and no more.
		answer(c.granted)
		xids = append(xids, r.flight(max(0, c.limit-len(xids)))...)
		r.quiet(conn)
		if conn.Limit() != c.limit {
			t.Errorf("%d are granted: the limit is %d, not %d", c.granted, conn.Limit(), c.limit)
		}
		for len(xids) > c.limit { // those that were sent before
			answer(c.granted)
			r.quiet(conn)
		}
	}
	conn.SetCredits(1)
	answer(16)
	r.quiet(conn)
	conn.SetCredits(16)
	for ; answered < len(calls); answer(1) {
		if len(xids) == 0 {
			xids = r.flight(1)
		}
	}
	for _, p := range calls {
		<-p.over
		if p.err != nil {
			t.Fatal(p.err)
		}
	}
}

// Who comes first is served first.
func TestCallersWaitTheirTurn(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
	first := start(t.Context(), conn, nil)
	held := r.flight(1)[0]
	var calls []*pendingCall
	for i := range 20 {
		calls = append(calls, start(t.Context(), conn, nil))
		waitFor(t, func() bool { return conn.Waiting() == i+1 })
	}
	ctx, cancel := context.WithCancel(t.Context())
	canceled := start(ctx, conn, nil)
	waitFor(t, func() bool { return conn.Waiting() == 21 })
	cancel()
	if <-canceled.over; !errors.Is(canceled.err, context.Canceled) {
		t.Errorf("a call that is canceled while it waits: %v", canceled.err)
	}
	for _, p := range append([]*pendingCall{first}, calls...) {
		if held != p.r.XID {
			t.Fatalf("call %d comes; want %d", held, p.r.XID)
		}
		r.reply(held, 1)
		if <-p.over; p.err != nil {
			t.Fatal(p.err)
		}
		if p != calls[len(calls)-1] {
			held = r.flight(1)[0]
		}
	}
}

// RFC 8166 §3.3.1: "The granted value MUST NOT be zero"; "The Responder MUST ensure that an
// increase in receive resources is effected before the next RPC Reply message is sent".
func TestResponderAdjustsItsGrant(t *testing.T) {
	srv, address := serve(t, newService(t), rpcrdma.Config{Credits: 16})
	r := rawDial(t, address, rawPrivate)
	for _, n := range []int{16, 4, 1, 0, -5, 8, 16, 100, 2} {
		srv.SetCredits(n)
		want := uint32(min(max(1, n), 16))
		for range 3 {
			if h := r.null(); h.Credits != want {
				t.Fatalf("%d are granted; want %d", h.Credits, want)
			}
		}
		// As many as are granted can be sent at once.
		for range want {
			r.send(callMessage(header(xids.Add(1), nil), procNull, nil))
		}
		r.flight(int(want))
	}
}

// A requester that has more calls in flight than it was granted has its connection ended.
func TestRequesterThatExceedsItsCreditsIsCutOff(t *testing.T) {
	s := newService(t)
	srv, address := serve(t, s, rpcrdma.Config{Credits: 4})
	r := rawDial(t, address, rawPrivate)
	r.null()
	for range 4 {
		r.send(callMessage(header(xids.Add(1), nil), procBlock, nil))
	}
	for range 4 {
		<-s.started
	}
	peer := srv.Peers()[0]
	r.send(callMessage(header(xids.Add(1), nil), procNull, nil))
	if _ = r.ended(); !errors.Is(peer.Err(), rpcrdma.ErrCredits) {
		t.Errorf("the connection has ended for %v", peer.Err())
	}
	<-peer.Done()
	if n := s.calls.Load(); n != 5 {
		t.Errorf("%d calls were carried out", n)
	}
}

// After a grant has fallen, what was granted before may still come.
func TestGrantFallsOnlyAsTheRequesterHearsOfIt(t *testing.T) {
	s := newService(t)
	srv, address := serve(t, s, rpcrdma.Config{Credits: 8})
	r := rawDial(t, address, rawPrivate)
	r.null()
	srv.SetCredits(1)
	for range 8 {
		r.send(callMessage(header(xids.Add(1), nil), procBlock, nil))
	}
	for range 8 {
		<-s.started
	}
	close(s.release)
	for range 8 {
		if h, _, _ := r.recv(); h.Credits != 1 {
			t.Errorf("%d are granted", h.Credits)
		}
	}
	s.release = make(chan struct{})
	r.send(callMessage(header(xids.Add(1), nil), procBlock, nil))
	<-s.started
	r.send(callMessage(header(xids.Add(1), nil), procNull, nil))
	_ = r.ended()
}

// Many callers of a small server.
func TestManyCallersShareAConnection(t *testing.T) {
	s := newService(t)
	_, address := serve(t, s, rpcrdma.Config{Credits: 5})
	conn := dial(t, address, rpcrdma.Config{})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for k := range 20 {
				roundTrip(t, conn, nil, slices.Repeat([]int{100 * i * k}, 1+k%3)...)
			}
		})
	}
	wg.Wait()
	if peak := s.peak.Load(); peak > 5 {
		t.Errorf("%d calls were carried out at once", peak)
	}
	if l := conn.Limit(); l != 5 {
		t.Errorf("the limit is %d", l)
	}
	var _ oncrpc.Conn = conn
}
