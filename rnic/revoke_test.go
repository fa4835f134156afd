package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// "MUST ensure that the network interface can no longer modify an Advertised
// Buffer after the ULP revokes remote access rights for an STag": RFC 5040
// §8.1.1 rule 6. The peer writes at full speed meanwhile; the race detector
// sees to it that no byte is placed while they are compared.
func TestRegionIsUntouchedAfterDeregistration(t *testing.T) {
	const size = 256 << 10
	// Each way to revoke returns when it is done.
	ways := []struct {
		name   string
		revoke func(t *testing.T, q *rnic.QP, mr *rnic.MR, cq *rnic.CQ)
	}{
		{"deregistration", func(t *testing.T, _ *rnic.QP, mr *rnic.MR, _ *rnic.CQ) {
			if err := mr.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"local invalidation", func(t *testing.T, q *rnic.QP, mr *rnic.MR, cq *rnic.CQ) {
			postSend(t, q, rnic.SendWR{ID: 1, Op: rnic.OpLocalInvalidate, Invalidate: mr.STag()})
			rnictest.Want(t, cq, 1)
		}},
		{"close of the queue pair", func(t *testing.T, q *rnic.QP, _ *rnic.MR, _ *rnic.CQ) {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"reset of the connection", func(_ *testing.T, q *rnic.QP, _ *rnic.MR, _ *rnic.CQ) { q.Abort() }},
	}
	for i := range 2 * len(ways) {
		way, pieces := ways[i/2], i%2 > 0
		t.Run(fmt.Sprintf("%s, in pieces %v", way.name, pieces), func(t *testing.T) {
			leakcheck.Check(t)
			p := overTCP(t, "127.0.0.1:0")
			if pieces {
				p = inPieces(t, uint64(i))
			}
			src := make([][]byte, 2)
			var from [2]*rnic.MR
			for i := range src {
				src[i] = bytes.Repeat([]byte{byte(i + 1)}, size)
				from[i] = p.A.Register(t, src[i], 0)
			}
			for range 10 {
				a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{}), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{SendCQ: p.B.SendCQ})
				p.Link(t, a, b)
				mem := make([]byte, size)
				mr := p.B.Register(t, mem, rnic.LocalWrite|rnic.RemoteWrite)
				target := mr.Remote(0)
				done := make(chan struct{})
				go func() { // writes ones and twos by turns until the stream ends
					defer close(done)
					for i := 0; ; i++ {
						err := a.PostSend(rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{from[i%2].SGE(0, size)}, Remote: target})
						switch {
						case err == nil:
						case errors.Is(err, rnic.ErrQueueFull):
							runtime.Gosched()
						case errors.As(err, new(*rnic.StateError)):
							return
						default:
							t.Error(err)
							return
						}
					}
				}()
				for mr.Stats().OctetsIn < 2*size {
					runtime.Gosched()
				}
				way.revoke(t, b, mr, p.B.SendCQ)
				after := bytes.Clone(mem)
				if mr.Valid() {
					for range 1000 { // there is no stream that could end
						runtime.Gosched()
					}
				}
				<-done
				if !bytes.Equal(mem, after) {
					t.Fatal("the memory changed after the call had returned")
				}
				for _, q := range []*rnic.QP{a, b} {
					if err := q.Close(); err != nil {
						t.Error(err)
					}
				}
				if err := mr.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The peer's Send with Invalidate revokes as well: when the receive has
// completed, nothing of what other streams of the peer write arrives.
func TestRegionIsUntouchedAfterThePeerInvalidatesIt(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mem := make([]byte, 100_000)
		mr := labOf(t, p.B).scoped(p.B.QP, mem, 0, p.B.QP)
		ones, twos := p.A.Register(t, bytes.Repeat([]byte{1}, len(mem)), 0), p.A.Register(t, bytes.Repeat([]byte{2}, len(mem)), 0)
		p.B.Recv(t, receives(1, 1)...)
		p.A.Send(t,
			rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{ones.SGE(0, len(mem))}, Remote: mr.Remote(0)},
			rnic.SendWR{Op: rnic.OpSendInvalidate, Invalidate: mr.STag()},
			rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{twos.SGE(0, len(mem))}, Remote: mr.Remote(0)},
		)
		wc := rnictest.Want(t, p.B.RecvCQ, 1)
		if wc.Invalidated != mr.STag() || mr.Valid() {
			t.Errorf("%+v; valid: %v", wc, mr.Valid())
		}
		wantTerminate(t, p.A.Device, 0x1100)
		if !bytes.Equal(mem, bytes.Repeat([]byte{1}, len(mem))) {
			t.Error("the memory is not as the first Write left it")
		}
		_, err := p.B.Device.WaitEvent(context.Background())
		if err != nil || !errors.As(p.B.QP.Err(), new(*stag.AccessError)) {
			t.Errorf("%v; %v", err, p.B.QP.Err())
		}
	})
}

// What was posted may not be out when its region is closed. The memory is the
// program's again all the same: what the peer gets is what was there before.
func TestMemoryOfARequestIsReadNoMoreOnceItsRegionIsClosed(t *testing.T) {
	for size, want := range map[int]rnic.Status{100_000: ok, 3_000_000: rnic.StatusLocalProtection} {
		inWorld(t, func(w *world) {
			w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000, MSS: 60_000} }
			s := w.side()
			h, connected := w.responder(s, rnic.ConnParam{})
			if err := <-connected; err != nil {
				w.Fatal(err)
			}
			mem := bytes.Repeat([]byte{1}, size)
			mr := s.Register(w, mem, 0)
			s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, len(mem))}, Remote: rnic.Remote{STag: 1}})
			synctest.Wait() // the peer reads nothing
			if err := mr.Close(); err != nil {
				w.Fatal(err)
			}
			clear(mem)
			for got := 0; got < size; {
				seg, err := h.next()
				if err != nil || opcodeOf(seg) == rdmap.OpTerminate { // the rest can't be had any more
					break
				}
				got += len(seg.Payload)
				if bytes.IndexByte(seg.Payload, 0) >= 0 {
					w.Fatal("the peer got what was written after the region was closed")
				}
			}
			h.close()
			wantCompletions(w, s.SendCQ, result{1, want})
		})
	}
}

// A request that waits for the memory of others does not wait for itself.
func TestLocalInvalidateBehindAWriteOfTheSameRegion(t *testing.T) {
	for _, room := range []int{1000, 70_000, 1 << 20} {
		inWorld(t, func(w *world) {
			w.Options = func(int) simnet.Options { return simnet.Options{Buffer: room, MSS: 60_000} }
			a, b := w.side(), w.side()
			w.connect(a, b)
			src := a.Register(w, bytes.Repeat([]byte{1}, 200_000), 0)
			sink := make([]byte, 200_000)
			dst := b.Register(w, sink, rnic.LocalWrite|rnic.RemoteWrite)
			a.Send(w,
				rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, len(sink))}, Remote: dst.Remote(0)},
				rnic.SendWR{ID: 2, Op: rnic.OpLocalInvalidate, Invalidate: src.STag()})
			rnictest.Want(w, a.SendCQ, 1)
			rnictest.Want(w, a.SendCQ, 2)
			synctest.Wait()
			if bytes.IndexByte(sink, 0) >= 0 {
				w.Error("the Write is not whole")
			}
		})
	}
}
