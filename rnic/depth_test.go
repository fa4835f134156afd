package rnic_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// However many Reads and atomics are posted, no more than ORD are outstanding
// (RFC 5040 §6.1), and ORD is no more than the peer's IRD.
func TestReadsInFlightStayWithinTheDepth(t *testing.T) {
	for _, tt := range []struct{ ord, ird, want int }{{1, 1, 1}, {3, 16, 3}, {16, 2, 2}, {rnic.MaxDepth, rnic.MaxDepth, rnic.MaxDepth}} {
		r := new(tracer)
		outstanding, most := 0, 0
		r.onSee = func(m rnic.Trace) {
			switch m.Op {
			case rdmap.OpReadRequest, rdmap.OpAtomicRequest:
				outstanding++
			case rdmap.OpReadResponse, rdmap.OpAtomicResponse:
				outstanding--
			}
			most = max(most, outstanding)
		}
		o := r.options("A", rnictest.Options{AB: rnictest.Faults{Latency: time.Second}, BA: rnictest.Faults{Latency: time.Second}})
		o.Conn = func(side string, param *rnic.ConnParam) {
			if param.ORD = tt.ord; side == "B" {
				param.IRD = tt.ird
			}
		}
		o.QP = func(_ string, attr *rnic.QPAttr) { attr.MaxSendWR = 1000 }
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			const n = 400
			_, mem := words(n)
			target, sink := p.B.Register(t, mem, everyRight), p.A.Register(t, make([]byte, 8*n), rnic.LocalWrite)
			for i := range n {
				wr := rnic.SendWR{ID: uint64(i), Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(8*i, 8)}, Remote: target.Remote(8 * i)}
				if i%3 == 0 {
					wr.Op = rnic.OpFetchAdd
				}
				p.A.Send(t, wr)
			}
			for i := range n {
				rnictest.Want(t, p.A.SendCQ, uint64(i))
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if most != tt.want || outstanding != 0 {
				t.Errorf("ORD %d, IRD %d: up to %d were outstanding; want %d", tt.ord, tt.ird, most, tt.want)
			}
		}, o)
	}
}

// draft-hilland-rddp-verbs §8.2.2 rule 18.
func TestReadWithoutDepthIsAnError(t *testing.T) {
	for _, op := range []rnic.Opcode{rnic.OpRead, rnic.OpReadInvalidate, rnic.OpFetchAdd, rnic.OpCmpSwap} {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			sink := p.A.Register(t, make([]byte, 8), rnic.LocalWrite)
			p.A.Send(t, rnic.SendWR{ID: 1, Op: op, SGL: []rnic.SGE{sink.SGE(0, 8)}}, rnic.SendWR{ID: 2, Op: rnic.OpSend})
			wantStatus(t, p.A.SendCQ, 1, rnic.StatusNoReadResources)
			wantStatus(t, p.A.SendCQ, 2, rnic.StatusFlushed)
			wantTerminate(t, p.B.Device, rdmap.CodeLocalCatastrophic)
		}, rnictest.Options{Conn: func(_ string, param *rnic.ConnParam) { param.ORD = -1 }})
	}
}

// "DDP/RDMAP Streams that do not share Partial Mutual Trust do not share RDMA
// Read Request Queue resources": RFC 5040 §8.1.2 rule 7. A peer that has filled
// its queue keeps nobody else from reading, and each queue is counted.
func TestReadQueueIsNotSharedBetweenStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth = 4
		// On the first connection an answer is long on its way, and no two fit in.
		network := &simnet.Network{Options: func(n int) simnet.Options {
			if n == 0 {
				return simnet.Options{BA: simnet.Faults{Latency: time.Second}, Buffer: 1000}
			}
			return simnet.Options{}
		}}
		limits := pd.Limits{pd.InboundReads: 3*depth - 1}
		a, b := newLab(t, rnic.Config{Network: network}), newLab(t, rnic.Config{Network: network, Limits: limits})
		pa, pb := a.domain(), b.domain()
		pair := &rnictest.Pair{A: &rnictest.Side{Device: a.dev}, B: &rnictest.Side{Device: b.dev}}
		param := rnic.ConnParam{IRD: depth, ORD: depth}
		connect := func() (*rnic.QP, *rnic.CQ, error) {
			cq := a.cq(rnic.CQAttr{})
			q := a.qpOn(pa, cq)
			return q, cq, pair.TryLink(q, b.qp(pb, rnic.QPAttr{}), param, param)
		}
		greedy, greedyCQ, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		modest, modestCQ, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		if n := b.dev.Held(pd.InboundReads); n != 2*depth {
			t.Errorf("%d entries are held for two streams; want %d each", n, depth)
		}
		_, _, err = connect()
		wantLimit(t, "third stream", err, pd.InboundReads)

		mem := pattern(10_000, 8)
		src := b.region(pb, mem, everyRight)
		got := make([]byte, len(mem))
		sink, other := a.region(pa, got, rnic.LocalWrite), a.region(pa, make([]byte, len(mem)), rnic.LocalWrite)
		begin := time.Now()
		for i := range 2 * depth {
			postSend(t, greedy, rnic.SendWR{ID: uint64(i), Op: rnic.OpRead, SGL: []rnic.SGE{other.SGE(0, len(got))}, Remote: src.Remote(0)})
		}
		synctest.Wait()
		for i := range 3 * depth {
			postSend(t, modest, rnic.SendWR{ID: uint64(i), Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, len(got))}, Remote: src.Remote(0)})
		}
		for i := range 3 * depth {
			rnictest.Want(t, modestCQ, uint64(i))
		}
		if waited := time.Since(begin); waited != 0 || !bytes.Equal(got, mem) {
			t.Errorf("the Reads of one stream waited %v for those of another", waited)
		}
		wantEmpty(t, greedyCQ)
		for i := range 2 * depth {
			rnictest.Want(t, greedyCQ, uint64(i))
		}
		for _, q := range []*rnic.QP{greedy, modest} {
			if err := q.Disconnect(context.Background()); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := b.dev.Held(pd.InboundReads); n != 0 {
			t.Errorf("%d entries are held for no stream", n)
		}
	})
}

// An operation is Complete when its message is Delivered, and not before: a
// Read and an atomic when their responses are (RFC 5040 §5.5 rules 19 and 20,
// RFC 7306 §5.4 rule 7), whose bytes are in the sink then, and not before (rule
// 1).
func TestReadCompletesWhenItsResponseIsDelivered(t *testing.T) {
	whenComplete(t, rnic.OpRead)
}

func TestAtomicCompletesWhenItsResponseIsDelivered(t *testing.T) {
	whenComplete(t, rnic.OpFetchAdd)
	whenComplete(t, rnic.OpCmpSwap)
}

func whenComplete(t *testing.T, op rnic.Opcode) {
	const there, back = 3 * time.Second, 5 * time.Second
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		w, mem := words(1)
		w[0] = 0x0102_0304_0506_0708
		before := bytes.Clone(mem)
		target := p.B.Register(t, mem, everyRight)
		old := []byte("untouched")
		got := bytes.Clone(old)
		sink := p.A.Register(t, got, rnic.LocalWrite)
		p.A.Send(t, rnic.SendWR{ID: 1, Op: op, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: target.Remote(0), Atomic: rnic.Atomic{Compare: 1}})
		time.Sleep(there + back - 1)
		wantEmpty(t, p.A.SendCQ)
		if s := sink.Stats(); s.Accesses != 0 {
			t.Errorf("%v: the sink was used before the response was there: %+v", op, s)
		}
		begin := time.Now()
		rnictest.Want(t, p.A.SendCQ, 1)
		if waited := time.Since(begin); waited != 1 {
			t.Errorf("%v: complete %v after the response was there", op, waited-1)
		}
		if !bytes.Equal(got[:8], before) || got[8] != old[8] {
			t.Errorf("%v: the sink holds %x; want %x", op, got, before)
		}
	}, rnictest.Options{AB: rnictest.Faults{Latency: there}, BA: rnictest.Faults{Latency: back}})
}

// "Send or RDMA Write operations [...] MUST NOT be considered Complete [...]
// until [...] DDP [...] complete": when the LLP has taken all of their bytes
// (RFC 5040 §5.5 rule 14, RFC 5041 §5.4).
func TestSendCompletesOnlyWhenDDPHasCompletedIt(t *testing.T) {
	const size = 2 * simnetBuffer // of which the network takes a half at once
	for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite} {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			src, dst := p.A.Register(t, make([]byte, size), 0), p.B.Register(t, make([]byte, size), everyRight)
			p.B.Recv(t, rnic.RecvWR{SGL: []rnic.SGE{dst.SGE(0, size)}}, rnic.RecvWR{SGL: []rnic.SGE{dst.SGE(0, size)}})
			begin := time.Now()
			p.A.Send(t, rnic.SendWR{ID: 1, Op: op, SGL: []rnic.SGE{src.SGE(0, 1000)}, Remote: dst.Remote(0)})
			rnictest.Want(t, p.A.SendCQ, 1)
			if waited := time.Since(begin); waited != 0 {
				t.Errorf("%v: complete %v after the LLP had it", op, waited)
			}
			p.A.Send(t, rnic.SendWR{ID: 2, Op: op, SGL: []rnic.SGE{src.SGE(0, size)}, Remote: dst.Remote(0)})
			time.Sleep(time.Second - 1)
			wantEmpty(t, p.A.SendCQ)
			rnictest.Want(t, p.A.SendCQ, 2)
			if waited := time.Since(begin); waited < 2*time.Second || waited > 3*time.Second {
				t.Errorf("%v: complete after %v", op, waited)
			}
		}, rnictest.Options{AB: rnictest.Faults{Latency: time.Second}})
	}
}
