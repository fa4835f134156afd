package rnic_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"urnic/internal/door"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// splits makes a queue pair that takes Reads with several sinks.
func splits(_ *rnic.Config, attr *rnic.QPAttr) { attr.SplitReads, attr.MaxSGE = true, 8 }

// splitReader is withReader with SplitReads, and an ORD.
func splitReader(t *testing.T, ord int, f func(r *reader)) {
	t.Helper()
	inWorld(t, func(w *world) {
		r := &reader{world: w, s: w.side(splits)}
		var connected <-chan error
		r.h, connected = w.responder(r.s, rnic.ConnParam{ORD: ord})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		r.sink = r.s.Register(w, make([]byte, 1000), rnic.LocalWrite)
		f(r)
	})
}

// sinks names n pieces of 10 bytes from the place of an ID on, 20 bytes apart.
func (r *reader) sinks(id uint64, n int) (sgl []rnic.SGE) {
	for i := range n {
		sgl = append(sgl, r.sink.SGE(int(id)*100+20*i, 10))
	}
	return sgl
}

// readInto posts a Read into several sinks.
func (r *reader) readInto(id uint64, flags rnic.Flags, sinks ...rnic.SGE) {
	r.Helper()
	r.s.Send(r, rnic.SendWR{ID: id, Op: rnic.OpRead, Flags: flags, SGL: sinks, Remote: rnic.Remote{STag: 0x100, TO: id << 20}})
}

// asks wants the Read Request of part i of a Read with sinks of 10 bytes.
func (r *reader) asks(id uint64, i int) rdmap.ReadRequest {
	r.Helper()
	req, err := rdmap.ParseReadRequest(r.h.want(rdmap.OpReadRequest).Payload)
	want := rdmap.ReadRequest{
		SinkSTag: r.sink.STag(), SinkTO: r.sink.Base() + id*100 + 20*uint64(i), Size: 10, SrcSTag: 0x100, SrcTO: id<<20 + 10*uint64(i),
	}
	if err != nil || req != want {
		r.Errorf("Read Request %+v, %v; want %+v", req, err, want)
	}
	return req
}

// answer sends the response to a Read Request.
func (r *reader) answer(req rdmap.ReadRequest) {
	r.Helper()
	r.h.send(taggedSeg(rdmap.OpReadResponse, req.SinkSTag, req.SinkTO, make([]byte, req.Size)))
}

// "An RDMA Read Request Message [...] one Data Sink Buffer" (RFC 5040 §4.4): each sink
// has a Read Request, and all of them have one completion.
func TestSplitReadCompletesOnce(t *testing.T) {
	for _, flags := range []rnic.Flags{0, rnic.FlagUnsignaled} {
		splitReader(t, 16, func(r *reader) {
			r.readInto(1, flags, r.sinks(1, 3)...)
			r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpSend})
			var asked []rdmap.ReadRequest
			for i := range 3 {
				asked = append(asked, r.asks(1, i))
			}
			r.h.want(rdmap.OpSend)
			for _, req := range asked {
				wantCompletions(r, r.s.SendCQ)
				r.answer(req)
				synctest.Wait()
			}
			wcs := drain(r.s.SendCQ)
			if flags == 0 {
				if len(wcs) != 2 || wcs[0].ID != 1 || wcs[0].Op != rnic.OpRead || wcs[0].ByteLen != 30 {
					t.Fatalf("%+v; want one completion of 30 bytes, then that of the Send", wcs)
				}
				wcs = wcs[1:]
			}
			if len(wcs) != 1 || wcs[0].ID != 2 {
				t.Errorf("%+v; want that of the Send", wcs)
			}
		})
	}
}

// Each part takes one of ORD's places; the parts that have none wait, and so does what
// is behind them.
func TestSplitReadKeepsORD(t *testing.T) {
	for _, ord := range []int{1, 2, 3} {
		splitReader(t, ord, func(r *reader) {
			r.readInto(1, 0, r.sinks(1, 5)...)
			r.readInto(2, 0, r.sinks(2, 2)...)
			r.s.Send(r, rnic.SendWR{ID: 3, Op: rnic.OpSend})
			var asked []rdmap.ReadRequest
			for i := range 7 {
				if i >= ord {
					r.h.quiet()
					wantCompletions(r, r.s.SendCQ)
					r.answer(asked[i-ord])
				}
				if i < 5 {
					asked = append(asked, r.asks(1, i))
				} else {
					asked = append(asked, r.asks(2, i-5))
				}
				if i == 4+ord { // the first Read is in
					wantCompletions(r, r.s.SendCQ, result{1, ok})
				}
			}
			r.h.want(rdmap.OpSend)
			for _, req := range asked[7-ord:] {
				r.answer(req)
			}
			synctest.Wait()
			if wcs := drain(r.s.SendCQ); wcs[len(wcs)-1].ID != 3 {
				t.Errorf("%+v", wcs)
			}
		})
	}
}

// A fence holds its request back until all sinks have their data. It holds no part of
// its own request back.
func TestFenceWaitsForAllOfASplitRead(t *testing.T) {
	splitReader(t, 16, func(r *reader) {
		r.readInto(1, 0, r.sinks(1, 2)...)
		r.readInto(2, rnic.FlagReadFence, r.sinks(2, 2)...)
		first, second := r.asks(1, 0), r.asks(1, 1)
		r.answer(first)
		r.h.quiet()
		r.answer(second)
		first, second = r.asks(2, 0), r.asks(2, 1)
		r.s.Send(r, rnic.SendWR{ID: 3, Op: rnic.OpSend, Flags: rnic.FlagLocalFence})
		r.answer(first)
		r.h.quiet()
		r.answer(second)
		r.h.want(rdmap.OpSend)
		synctest.Wait()
		wantCompletions(r, r.s.SendCQ, result{1, ok}, result{2, ok}, result{3, ok})
	})
}

// A queue that is stopped finishes a Read that has begun, with all of its parts, and is
// drained then.
func TestStoppedQueueFinishesASplitRead(t *testing.T) {
	splitReader(t, 1, func(r *reader) {
		r.readInto(1, 0, r.sinks(1, 2)...)
		r.readInto(2, 0, r.sinks(2, 2)...)
		first := r.asks(1, 0)
		if err := door.StopSending(r.s.QP); err != nil {
			t.Fatal(err)
		}
		r.answer(first)
		second := r.asks(1, 1)
		if n := drainedEvents(r.s.Device); n != 0 {
			t.Error("the queue is drained in the middle of a Read")
		}
		r.answer(second)
		r.h.quiet()
		if n := drainedEvents(r.s.Device); n != 1 {
			t.Errorf("%d events say that the queue is drained; want 1", n)
		}
		wantCompletions(r, r.s.SendCQ, result{1, ok})
	})
}

// Whichever part the peer or its data end the stream for, the request fails, once.
func TestSplitReadIsBlamedOnce(t *testing.T) {
	for _, ord := range []int{1, 16} {
		for part := range 3 {
			splitReader(t, ord, func(r *reader) {
				r.readInto(1, rnic.FlagUnsignaled, r.sinks(1, 3)...)
				r.readInto(2, 0, r.sinks(2, 2)...)
				var asked []rdmap.ReadRequest
				for i := range 3 {
					if ord == 16 || i <= part {
						asked = append(asked, r.asks(1, i))
					}
					if i < part {
						r.answer(asked[i])
					}
				}
				if ord == 16 {
					r.asks(2, 0)
					r.asks(2, 1)
				}
				r.h.send(terminateSeg(ofRead(rdmap.CodeBaseBounds, uint32(part+1), asked[part])))
				r.h.wantEnd(io.EOF)
				r.h.close()
				wantCompletions(r, r.s.SendCQ, result{1, rnic.StatusRemoteTermination}, result{2, flushed})
			})
		}
	}
	splitReader(t, 1, func(r *reader) { // a sink that goes while the Read is outstanding
		gone := r.s.Register(r, make([]byte, 10), rnic.LocalWrite)
		sinks := append(r.sinks(1, 1), gone.SGE(0, 10))
		r.readInto(1, 0, sinks...)
		r.readInto(2, 0, r.sinks(2, 2)...)
		r.answer(r.asks(1, 0))
		req, err := rdmap.ParseReadRequest(r.h.want(rdmap.OpReadRequest).Payload)
		if err != nil {
			t.Fatal(err)
		}
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		r.answer(req)
		r.h.terminate()
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, rnic.StatusLocalProtection}, result{2, flushed})
	})
}

// The peer counts Read Requests and Atomic Requests, and names an atomic by that number:
// each part that is answered, or still to be, counts as one.
func TestAtomicBehindASplitReadIsBlamed(t *testing.T) {
	for answered := range 3 {
		splitReader(t, 16, func(r *reader) {
			r.readInto(1, 0, r.sinks(1, 3)...)
			asked := []rdmap.ReadRequest{r.asks(1, 0), r.asks(1, 1), r.asks(1, 2)}
			r.atomic(2)
			msn := r.atomic(3)
			for _, req := range asked[:answered] {
				r.answer(req)
			}
			seg := atomicSeg(rdmap.AtomicRequest{})
			seg.Untagged.Control, seg.Untagged.MSN = seg.Control, msn
			header, _ := seg.Untagged.AppendBinary(nil)
			r.h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeInvalidSTag, HdrCt: 0xC0, SegmentLen: 70, DDPHeader: header}))
			r.h.close()
			wantCompletions(r, r.s.SendCQ, result{1, flushed}, result{2, flushed}, result{3, rnic.StatusRemoteTermination})
		})
	}
}

// A Read is flushed once, however far it has come.
func TestSplitReadIsFlushedOnce(t *testing.T) {
	for answered := range 3 {
		splitReader(t, 1, func(r *reader) {
			r.readInto(1, 0, r.sinks(1, 3)...)
			r.readInto(2, rnic.FlagUnsignaled, r.sinks(2, 3)...)
			for i := range answered {
				r.answer(r.asks(1, i))
			}
			r.asks(1, answered)
			r.s.QP.Abort()
			wantCompletions(r, r.s.SendCQ, result{1, flushed}, result{2, flushed})
		})
	}
}

// A sink without room takes no part in a Read, and its STag is not looked at.
func TestSinksWithoutRoomAreNotAskedFor(t *testing.T) {
	none := rnic.SGE{Addr: 5, LKey: 0x1234_5678}
	for n := range 4 {
		splitReader(t, 16, func(r *reader) {
			sinks := []rnic.SGE{none}
			for _, sink := range r.sinks(1, n) {
				sinks = append(sinks, sink, none)
			}
			r.readInto(1, 0, sinks...)
			if n == 0 { // a Read of nothing is one all the same
				seg := r.h.want(rdmap.OpReadRequest)
				req, err := rdmap.ParseReadRequest(seg.Payload)
				if err != nil || req.Size != 0 {
					t.Errorf("Read Request %+v, %v; want one of nothing", req, err)
				}
				r.answer(req)
			}
			for i := range n {
				r.answer(r.asks(1, i))
			}
			r.h.quiet()
			if wcs := drain(r.s.SendCQ); len(wcs) != 1 || wcs[0].Status != ok || int(wcs[0].ByteLen) != 10*n {
				t.Errorf("%+v; want one completion of %d bytes", wcs, 10*n)
			}
		})
	}
}

// The peer does not count Sends among its Read and Atomic Requests.
func TestAtomicBehindASendIsBlamed(t *testing.T) {
	withReader(t, func(r *reader) {
		r.read(1)
		r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpSend})
		r.h.want(rdmap.OpSend)
		r.atomic(3)
		msn := r.atomic(4)
		seg := atomicSeg(rdmap.AtomicRequest{})
		seg.Untagged.Control, seg.Untagged.MSN = seg.Control, msn
		header, _ := seg.Untagged.AppendBinary(nil)
		r.h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeInvalidSTag, HdrCt: 0xC0, SegmentLen: 70, DDPHeader: header}))
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, flushed}, result{2, flushed}, result{3, flushed}, result{4, rnic.StatusRemoteTermination})
	})
}

// What SplitReads takes is one request of the queue; without it, a Read has one sink.
func TestSplitReadsAreTakenWhereAskedFor(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, cq := l.domain(), l.cq(rnic.CQAttr{})
	mr := l.region(p, make([]byte, 64), everyRight)
	sgl := make([]rnic.SGE, 8)
	for i := range sgl {
		sgl[i] = mr.SGE(8*i, 8)
	}
	q := l.qp(p, rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 2, MaxSGE: 8, SplitReads: true})
	read := rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: sgl}
	postSend(t, q, read)
	var wr *rnic.WRError
	if err := q.PostSend(read, read); !errors.As(err, &wr) || wr.Index != 1 || !errors.Is(err, rnic.ErrQueueFull) {
		t.Errorf("beyond the queue's depth: %v", err)
	}
	if n := door.Outstanding(q); n != 2 {
		t.Errorf("%d requests are outstanding; want 2", n)
	}
	q = l.qp(p, rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSGE: 7, SplitReads: true})
	wantRefused(t, "too many sinks", q.PostSend(read), nil, "8 entries: the queue takes 7")
	read.SGL = sgl[:2]
	read.Op = rnic.OpReadInvalidate
	wantRefused(t, "with Invalidate", q.PostSend(read), nil, "2 entries: the queue takes 1")
	read.Op = rnic.OpRead
	wantRefused(t, "without SplitReads", l.qp(p, rnic.QPAttr{SendCQ: cq, RecvCQ: cq}).PostSend(read), nil, "2 entries: the queue takes 1")
}

// The data of a Read are those of one Read of all, cut at the sinks.
func TestSplitReadScatters(t *testing.T) {
	options := rnictest.Options{QP: func(_ string, attr *rnic.QPAttr) { attr.MaxSGE, attr.SplitReads = rnic.MaxSGE, true }}
	for seed := range uint64(20) {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			rng := rand.New(rand.NewPCG(seed, 4))
			n := 1 + rng.IntN(90_000)
			data := pattern(n, byte(seed))
			src := p.B.Register(t, data, rnic.RemoteRead)
			dst := scatter(t, rng, p.A, n, 1+rng.IntN(rnic.MaxSGE), nil)
			p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: dst.sgl, Remote: src.Remote(0)})
			if wc := rnictest.Want(t, p.A.SendCQ, 1); int(wc.ByteLen) != n {
				t.Errorf("seed %d: %d bytes read of %d", seed, wc.ByteLen, n)
			}
			if !bytes.Equal(dst.joined(t), data) {
				t.Errorf("seed %d: %d bytes arrived changed", seed, n)
			}
		}, options)
	}
}
