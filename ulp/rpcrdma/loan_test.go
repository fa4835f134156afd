package rpcrdma_test

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// A bank lends the results of its calls, in pieces of several lengths, and counts the loans.
type bank struct {
	data    []byte
	lent    atomic.Int64  // and not returned
	loans   atomic.Int64  // ever
	hold    chan struct{} // if not nil, until it is closed no call ends
	holding chan struct{} // gets a value for each call that waits
	noReply bool
}

// Return implements oncrpc.Loan.
func (b *bank) Return() { b.lent.Add(-1) }

func (b *bank) Serve(_ context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	d := x.Call.Decoder()
	var c oncrpc.Call
	if err := c.Decode(d); err != nil {
		return err
	}
	x.Borrow(b)
	b.lent.Add(1)
	b.loans.Add(1)
	if b.hold != nil {
		b.holding <- struct{}{}
		<-b.hold
	}
	if b.noReply {
		return oncrpc.ErrNoReply
	}
	if err := (&oncrpc.Reply{XID: c.XID}).Encode(reply); err != nil {
		return err
	}
	var pieces [][]byte
	rest := b.data
	for n := 1; len(rest) > 0; n = n*3 + 1 {
		pieces = append(pieces, rest[:min(n, len(rest))])
		rest = rest[min(n, len(rest)):]
	}
	reply.Bulk(pieces...)
	reply.Uint32(42)
	return nil
}

// Results in several pieces arrive whole, however they travel, and what they are made of
// is returned when they have.
func TestBorrowedResults(t *testing.T) {
	for name, tc := range map[string]struct {
		octets int
		whole  bool
		most   int
	}{
		"nothing":          {},
		"inline":           {octets: 1001},
		"in a Write chunk": {octets: 100_003},
		"in a Reply chunk": {octets: 100_002, whole: true},
		"in both":          {octets: 5001, most: 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bank{data: filled(tc.octets, 1)}
			_, address := serve(t, b, rpcrdma.Config{MaxSegment: 10_001})
			conn := dial(t, address, rpcrdma.Config{MaxSegment: 10_001})
			for range 3 {
				r, _ := call(procRead)
				r.Sinks, r.Whole = [][]byte{make([]byte, tc.octets)}, tc.whole
				r.ReplyMost += tc.most
				m, err := conn.Do(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				d := m.Decoder()
				var reply oncrpc.Reply
				if err := reply.Decode(d); err != nil {
					t.Fatal(err)
				}
				if got := d.Bulk(1 << 20); !bytes.Equal(got, b.data) || d.Uint32() != 42 || d.End() != nil {
					t.Errorf("%d octets: %v", len(got), d.Err())
				}
				m.Release()
			}
			waitFor(t, func() bool { return b.lent.Load() == 0 })
			if n := b.loans.Load(); n != 3 {
				t.Errorf("there were %d loans", n)
			}
		})
	}
}

// What was borrowed is returned whatever becomes of the call: it gets no reply, one that
// does not fit, or its connection ends before the reply is sent, or while it is.
func TestBorrowedMemoryIsReturned(t *testing.T) {
	t.Run("without a reply", func(t *testing.T) {
		b := &bank{noReply: true}
		_, address := serve(t, b, rpcrdma.Config{})
		r := rawDial(t, address, rawPrivate)
		r.send(callMessage(header(1, nil), procRead, nil))
		waitFor(t, func() bool { return b.loans.Load() == 1 && b.lent.Load() == 0 })
	})
	t.Run("does not fit", func(t *testing.T) {
		b := &bank{data: filled(9000, 1)}
		_, address := serve(t, b, rpcrdma.Config{})
		r := rawDial(t, address, rawPrivate)
		r.send(callMessage(header(1, nil), procRead, nil))
		if h, _, _ := r.recv(); h.Proc != rpcrdma.Error || h.Err != rpcrdma.ErrChunk {
			t.Errorf("%+v", h)
		}
		waitFor(t, func() bool { return b.lent.Load() == 0 })
	})
	t.Run("the connection ends before", func(t *testing.T) {
		b := &bank{data: filled(9000, 1), hold: make(chan struct{}), holding: make(chan struct{}, 1)}
		_, address := serve(t, b, rpcrdma.Config{})
		r := rawDial(t, address, rawPrivate)
		sink := r.writable(make([]byte, 9000))
		r.send(callMessage(header(1, func(h *rpcrdma.Header) { h.Write = [][]rpcrdma.Segment{sink} }), procRead, nil))
		<-b.holding
		r.qp.Abort()
		close(b.hold)
		waitFor(t, func() bool { return b.lent.Load() == 0 })
	})
	t.Run("the connection ends meanwhile", func(t *testing.T) {
		b := &bank{data: filled(16<<20, 1)} // more than fits into what is on its way
		_, address := serve(t, b, rpcrdma.Config{})
		r := rawDial(t, address, rawPrivate)
		sinks := r.writable(make([]byte, 16<<20))
		sinks[0].Handle ^= 1 << 20 // none of the peer's
		chunks := [][]rpcrdma.Segment{slices.Clone(sinks)}
		r.send(callMessage(header(1, func(h *rpcrdma.Header) { h.Write = chunks }), procRead, nil))
		waitFor(t, func() bool { return b.loans.Load() == 1 && b.lent.Load() == 0 })
	})
}
