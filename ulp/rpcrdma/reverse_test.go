package rpcrdma_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// RFC 8167: both sides make calls on one connection, at the same time, some with the same
// XIDs.
func TestBothSidesMakeCalls(t *testing.T) {
	server, client := newService(t), newService(t)
	peers := make(chan *rpcrdma.Peer, 1)
	_, address := serve(t, server, rpcrdma.Config{ReverseCredits: 4, Connected: func(p *rpcrdma.Peer) { peers <- p }})
	conn := dial(t, address, rpcrdma.Config{Reverse: client, ReverseCredits: 2})
	peer := <-peers
	roundTrip(t, conn, nil, 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 20 {
				roundTrip(t, peer, nil, 100, i, 1000)
			}
		})
		wg.Go(func() {
			for i := range 20 {
				roundTrip(t, conn, nil, 100, i, 10_000)
			}
		})
	}
	wg.Wait()
	if n := client.peak.Load(); n > 2 {
		t.Errorf("%d calls were in flight in the reverse direction; 2 credits were granted (RFC 8167 §4.1)", n)
	}
	if peer.Limit() != 2 || conn.Limit() != rpcrdma.DefaultCredits {
		t.Errorf("limits of %d and %d: they are counted separately (RFC 8167 §4.1)", peer.Limit(), conn.Limit())
	}
	if peer.Netid() != "rdma" || peer.LocalAddr().String() != conn.RemoteAddr().String() || peer.RemoteAddr().String() != conn.LocalAddr().String() {
		t.Errorf("%s, %v, %v", peer.Netid(), peer.LocalAddr(), peer.RemoteAddr())
	}
	if s := peer.Stats(); s.Served == 0 || s.Received <= s.Served {
		t.Errorf("%+v", s)
	}
	// "they can be no larger than what can be sent inline" (RFC 8167 §5.3)
	for name, change := range map[string]func(r *oncrpc.Request){
		"a call":  func(r *oncrpc.Request) { r.Call.Bulk(make([]byte, 5000)) },
		"a reply": func(r *oncrpc.Request) { r.ReplyMost = 5000 },
		"a sink":  func(r *oncrpc.Request) { r.Sinks = [][]byte{make([]byte, 5000)} },
	} {
		if p := start(t.Context(), peer, change); true {
			if <-p.over; !errors.Is(p.err, rpcrdma.ErrTooLong) {
				t.Errorf("%s that is too long: %v", name, p.err)
			}
		}
	}
	if err := peer.Close(); err != nil || !errors.Is(peer.Err(), rpcrdma.ErrClosed) {
		t.Errorf("%v; it has ended for %v", err, peer.Err())
	}
	<-peer.Done()
	<-conn.Done()
	start(t.Context(), peer, nil).wantLost(t, nil)
}

// A call may be answered after one in the other direction, with the same XID.
func TestServiceCallsBack(t *testing.T) {
	client := newService(t)
	_, address := serve(t, serviceFunc(func(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
		d := x.Call.Decoder()
		var c oncrpc.Call
		if err := c.Decode(d); err != nil {
			return err
		}
		back, _ := call(procNull)
		back.XID = c.XID
		back.Call.Reset()
		if err := (&oncrpc.Call{XID: c.XID, Program: 0x20000000, Version: 1}).Encode(back.Call); err != nil {
			return err
		}
		m, err := rpcrdma.PeerOf(ctx).Do(ctx, back)
		if err != nil {
			return err
		}
		m.Release()
		return (&oncrpc.Reply{XID: c.XID}).Encode(reply)
	}), rpcrdma.Config{ReverseCredits: 1})
	conn := dial(t, address, rpcrdma.Config{Reverse: client})
	for range 10 {
		p := start(t.Context(), conn, nil)
		if <-p.over; p.err != nil {
			t.Fatal(p.err)
		}
		p.m.Release()
	}
	if n := client.calls.Load(); n != 10 {
		t.Errorf("%d calls have come back", n)
	}
	if rpcrdma.PeerOf(t.Context()) != nil {
		t.Error("a context of no call has a peer")
	}
}

// RFC 8167 §5.3: "If a reverse-direction requester provides a non-empty chunk list to a
// Responder that does not support chunks, the Responder MUST reply with an RDMA_ERROR
// message with rdma_err field set to ERR_CHUNK."
func TestReverseCallsWithChunksAreRefused(t *testing.T) {
	client := newService(t)
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{Reverse: client, ReverseCredits: 3})
	r.serveCall(start(t.Context(), conn, nil), nil) // who has dialed speaks first (RFC 5044 §7.1.2 rule 4)
	nowhere := []rpcrdma.Segment{{Handle: 0xbad00, Length: 100}}
	for name, change := range map[string]func(h *rpcrdma.Header){
		"a Read chunk":        func(h *rpcrdma.Header) { h.Read = at(callLen, nowhere...) },
		"a Write chunk":       func(h *rpcrdma.Header) { h.Write = [][]rpcrdma.Segment{nowhere} },
		"a Reply chunk":       func(h *rpcrdma.Header) { h.HasReply, h.Reply = true, nowhere },
		"a Position-Zero one": func(h *rpcrdma.Header) { h.Proc, h.Read = rpcrdma.NoMsg, at(0, nowhere...) },
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			h := header(77, change)
			if h.Proc == rpcrdma.NoMsg {
				r.send(octets(h))
			} else {
				r.send(callMessage(h, procNull, nil))
			}
			r.wantError(77, 1, rpcrdma.ErrChunk)
			if h := r.null(); h.Credits != 3 {
				t.Errorf("%d credits are granted in the reverse direction", h.Credits)
			}
		})
	}
	r.t = t
	// Credits are kept to there as well (RFC 8167 §4.1).
	for range 3 {
		r.send(callMessage(header(xids.Add(1), nil), procBlock, nil))
	}
	for range 3 {
		<-client.started
	}
	r.send(callMessage(header(xids.Add(1), nil), procNull, nil))
	_ = r.ended()
	<-conn.Done()
	if err := conn.Err(); !errors.Is(err, rpcrdma.ErrCredits) {
		t.Errorf("the connection has ended for %v", err)
	}
}

// RFC 8166 §4.5, in the reverse direction: an RDMA_ERROR completes the call that has its
// XID.
func TestReverseCallIsRefused(t *testing.T) {
	peers := make(chan *rpcrdma.Peer, 1)
	_, address := serve(t, newService(t), rpcrdma.Config{ReverseCredits: 2, Connected: func(p *rpcrdma.Peer) { peers <- p }})
	r := rawDial(t, address, rawPrivate)
	r.null()
	p := start(t.Context(), <-peers, nil)
	h, _, _ := r.recv()
	if h.Credits != 2 {
		t.Errorf("%d credits are asked for", h.Credits)
	}
	r.null()
	r.send(octets(header(h.XID, func(h *rpcrdma.Header) { h.Proc, h.Err = rpcrdma.Error, rpcrdma.ErrChunk })))
	var refused *rpcrdma.RefusedError
	if <-p.over; !errors.As(p.err, &refused) || refused.Code != rpcrdma.ErrChunk {
		t.Errorf("the call ends with %v", p.err)
	}
	r.null()
}

func TestServerWithoutReverseCreditsMakesNoCalls(t *testing.T) {
	peers := make(chan *rpcrdma.Peer, 1)
	_, address := serve(t, newService(t), rpcrdma.Config{Connected: func(p *rpcrdma.Peer) { peers <- p }})
	r := rawDial(t, address, rawPrivate)
	peer := <-peers
	if p := start(t.Context(), peer, nil); true {
		if <-p.over; !errors.Is(p.err, rpcrdma.ErrNoReverse) || peer.Limit() != 0 {
			t.Errorf("got %v, with a limit of %d", p.err, peer.Limit())
		}
	}
	r.send(replyMessage(header(3, nil)))
	r.null()
	waitFor(t, func() bool { return peer.Stats().Discarded == 1 })
}
