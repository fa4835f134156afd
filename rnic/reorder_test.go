package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A holding is a lower layer that holds one segment of each connection it accepts back, and
// passes all others on.
type holding struct {
	rnictest.Reordering
	order uint64 // of the segment
	conns []*holdingConn
}

func (h *holding) Listen(ctx context.Context, address string) (rnic.LLPListener, error) {
	l, err := h.Reordering.Listen(ctx, address)
	return holdingListener{l, h}, err
}

type holdingListener struct {
	rnic.LLPListener
	h *holding
}

func (l holdingListener) Accept() (rnic.LLPArrival, error) {
	a, err := l.LLPListener.Accept()
	return holdingArrival{a, l.h}, err
}

type holdingArrival struct {
	rnic.LLPArrival
	h *holding
}

func (a holdingArrival) Receive(ctx context.Context) (rnic.LLPRequest, error) {
	r, err := a.LLPArrival.Receive(ctx)
	return holdingRequest{r, a.h}, err
}

type holdingRequest struct {
	rnic.LLPRequest
	h *holding
}

func (r holdingRequest) Accept(ctx context.Context, o rnic.Offer) (rnic.LLPConn, error) {
	c, err := r.LLPRequest.Accept(ctx, o)
	held := &holdingConn{LLPConn: c, order: r.h.order}
	r.h.conns = append(r.h.conns, held)
	return held, err
}

type holdingConn struct {
	rnic.LLPConn
	order    uint64
	segment  []byte
	released atomic.Bool
}

// release has the segment passed on.
func (c *holdingConn) release() {
	c.released.Store(true)
	c.Interrupt()
}

func (c *holdingConn) Receive(place func(segment []byte, order uint64) error) error {
	err := c.LLPConn.Receive(func(segment []byte, order uint64) error {
		if order == c.order && !c.released.Load() {
			c.segment = bytes.Clone(segment)
			return nil
		}
		return place(segment, order)
	})
	if errors.Is(err, rnic.ErrInterrupted) && c.segment != nil && c.released.Load() {
		segment := c.segment
		c.segment = nil
		return place(segment, c.order)
	}
	return err
}

// What a lower layer brings early is placed at once, whatever is missing before it, and
// delivered and completed in the sender's order only (RFC 5041 §5.3, §5.4).
func TestPlacementIsOutOfOrderAndCompletionIsNot(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			lower := &holding{Reordering: rnictest.Reordering{MULPDU: 200}}
			p := rnictest.Connect(t, rnictest.Options{LowerLayer: lower})
			from, to := p.A.QP, p.B
			post := func(wr rnic.RecvWR) { to.Recv(t, wr) }
			conn := lower.conns[0]
			if shared {
				srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
				post = func(wr rnic.RecvWR) { fill(t, srq, wr) }
				to = newQP(t, p.B.Device, p.B.PD, rnic.QPAttr{SRQ: srq})
				other := newQP(t, p.A.Device, p.A.PD, rnic.QPAttr{})
				p.Link(t, other.QP, to.QP)
				from, conn = other.QP, lower.conns[1]
			}
			written, received := make([]byte, 1000), [3][]byte{}
			sink := p.B.Register(t, written, rnic.LocalWrite|rnic.RemoteWrite)
			for i := range received {
				received[i] = make([]byte, 300)
				post(rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{p.B.Register(t, received[i], rnic.LocalWrite).SGE(0, 300)}})
			}
			data := pattern(1000, 7)
			src := p.A.Register(t, data, rnic.RemoteRead|rnic.LocalWrite)
			if err := from.PostSend(
				rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 1000)}, Remote: sink.Remote(0)},
				rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, 300)}},
				rnic.SendWR{ID: 3, Op: rnic.OpSend}, // nothing of which is placed
				rnic.SendWR{ID: 4, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(300, 200)}},
			); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			first := 200 - 14 // of the Write, the segment that is missing
			if !bytes.Equal(written[:first], make([]byte, first)) || !bytes.Equal(written[first:], data[first:]) {
				t.Errorf("shared %v: the Write is placed other than but for its first segment", shared)
			}
			if !bytes.Equal(received[0], data[:300]) || !bytes.Equal(received[2][:200], data[300:500]) {
				t.Errorf("shared %v: the Sends behind it are not placed", shared)
			}
			wantEmpty(t, to.RecvCQ)
			conn.release()
			synctest.Wait()
			if !bytes.Equal(written, data) {
				t.Errorf("shared %v: the Write is not whole", shared)
			}
			var got []uint64
			for _, wc := range drain(to.RecvCQ) {
				if got = append(got, wc.ID); wc.Status != rnic.StatusSuccess || wc.ByteLen != []uint32{300, 0, 200}[len(got)-1] {
					t.Errorf("shared %v: %+v", shared, wc)
				}
			}
			if !slices.Equal(got, []uint64{0, 1, 2}) {
				t.Errorf("shared %v: receives %d have completed; want 0, 1 and 2", shared, got)
			}
		})
	}
}
