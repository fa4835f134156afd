package rnic_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"urnic/internal/test/simnet"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// words returns n words of memory as bytes, aligned for atomics.
func words(n int) ([]uint64, []byte) {
	w := make([]uint64, n)
	return w, unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n)
}

// "RDMA operations [...] MUST be Completed [...] in the order submitted": RFC
// 5040 §5.5 rule 15, whatever their kinds and however the network cuts them.
func TestCompletionsFollowTheOrderSubmitted(t *testing.T) {
	const n = 400
	faults := rnictest.Faults{ShortReads: true, ShortWrites: true, Latency: time.Millisecond, Jitter: time.Millisecond}
	for seed := range uint64(4) {
		faults.Seed = seed
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			rng := rand.New(rand.NewPCG(seed, 1))
			_, mem := words(1024)
			target := p.B.Register(t, mem, everyRight)
			local := p.A.Register(t, make([]byte, 8192), everyRight)
			var want, wantAtB []uint64
			for id := range uint64(n) {
				length := rng.IntN(3000)
				wr := rnic.SendWR{ID: id, SGL: []rnic.SGE{local.SGE(rng.IntN(4000), length)}, Remote: target.Remote(rng.IntN(4000))}
				switch wr.Op = []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpWriteImmediate, rnic.OpRead, rnic.OpImmediate, rnic.OpFetchAdd, rnic.OpCmpSwap}[rng.IntN(7)]; wr.Op {
				case rnic.OpImmediate:
					wr.SGL = nil
				case rnic.OpFetchAdd, rnic.OpCmpSwap:
					wr.SGL, wr.Remote = nil, target.Remote(8*rng.IntN(500))
				}
				switch wr.Op {
				case rnic.OpSend, rnic.OpImmediate, rnic.OpWriteImmediate:
					p.B.Recv(t, rnic.RecvWR{ID: id, SGL: []rnic.SGE{p.B.Register(t, make([]byte, 3000), rnic.LocalWrite).SGE(0, 3000)}})
					wantAtB = append(wantAtB, id)
				}
				if rng.IntN(3) == 0 {
					wr.Flags = rnic.FlagUnsignaled
				} else {
					want = append(want, id)
				}
				for p.A.QP.PostSend(wr) != nil { // the queue is full
					time.Sleep(time.Millisecond)
				}
				if rng.IntN(50) == 0 {
					time.Sleep(5 * time.Millisecond)
				}
			}
			if err := p.A.QP.Disconnect(t.Context()); err != nil { // when all are complete
				t.Fatal(err)
			}
			for _, side := range []struct {
				name string
				cq   *rnic.CQ
				want []uint64
			}{{"A", p.A.SendCQ, want}, {"B", p.B.RecvCQ, wantAtB}} {
				wcs := make([]rnic.WC, 2*n)
				var got []uint64
				for _, wc := range wcs[:side.cq.Poll(wcs)] {
					if err := wc.Err(); err != nil {
						t.Fatal(err)
					}
					got = append(got, wc.ID)
				}
				if !slices.Equal(got, side.want) {
					t.Errorf("seed %d: completions of %s: %v; want %v", seed, side.name, got, side.want)
				}
			}
		}, rnictest.Options{AB: faults, BA: faults})
	}
}

// A request that asks for no completion gives its place up all the same.
func TestUnsignaledRequestsLeaveNoCompletion(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ, MaxSendWR: 4}), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{})
		p.Link(t, a, b)
		_, mem := words(1)
		target, sink := p.B.Register(t, mem, everyRight), p.A.Register(t, make([]byte, 8), rnic.LocalWrite)
		for range 50 {
			postSend(t, a,
				rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled | rnic.FlagInline, Inline: []byte{1}, Remote: target.Remote(0)},
				rnic.SendWR{Op: rnic.OpRead, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: target.Remote(0)},
				rnic.SendWR{Op: rnic.OpFetchAdd, Flags: rnic.FlagUnsignaled, Remote: target.Remote(0), Atomic: rnic.Atomic{Add: 256}},
				rnic.SendWR{Op: rnic.OpLocalInvalidate, Flags: rnic.FlagUnsignaled, Invalidate: p.A.Register(t, mem, 0).STag()},
			)
			synctest.Wait()
		}
		wantEmpty(t, p.A.SendCQ)
		postSend(t, a, rnic.SendWR{ID: 7, Op: rnic.OpFetchAdd, Remote: target.Remote(0)})
		if wc := rnictest.Want(t, p.A.SendCQ, 7); wc.Original != 50*256+1 {
			t.Errorf("the target holds %d", wc.Original)
		}
	})
}

// Inline data are the queue's own as soon as the call returns.
func TestInlineDataMayBeReusedAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ, MaxInline: rnic.MaxInline}), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{RecvCQ: p.B.RecvCQ})
		mem, written := make([]byte, 3*rnic.MaxInline), make([]byte, rnic.MaxInline)
		mr, target := p.B.Register(t, mem, rnic.LocalWrite), p.B.Register(t, written, everyRight)
		data := make([]byte, rnic.MaxInline)
		for i := range 3 { // there is no stream yet, so that all of it leaves later
			if err := b.PostRecv(rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{mr.SGE(i*rnic.MaxInline, rnic.MaxInline)}}); err != nil {
				t.Fatal(err)
			}
			copy(data, pattern(len(data), byte(i)))
			postSend(t, a, rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: data[:len(data)-i]})
		}
		copy(data, pattern(len(data), 9))
		postSend(t, a, rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagInline, Inline: data, Remote: target.Remote(0)})
		clear(data)
		p.Link(t, a, b)
		for i := range 3 {
			wc := rnictest.Want(t, p.B.RecvCQ, uint64(i))
			n := rnic.MaxInline - i
			if int(wc.ByteLen) != n || !bytes.Equal(mem[i*rnic.MaxInline:][:n], pattern(rnic.MaxInline, byte(i))[:n]) {
				t.Errorf("message %d arrived changed", i)
			}
		}
		synctest.Wait()
		if !bytes.Equal(written, pattern(rnic.MaxInline, 9)) {
			t.Error("the Write arrived changed")
		}
	})
}

// A tracer notes what a side sends and receives.
type tracer struct {
	mu    sync.Mutex
	seen  []rnic.Trace
	onSee func(rnic.Trace)
}

func (r *tracer) options(side string, o rnictest.Options) rnictest.Options {
	o.Device = func(name string, cfg *rnic.Config) {
		if name == side {
			cfg.Trace = func(t rnic.Trace) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.seen = append(r.seen, t)
				if r.onSee != nil {
					r.onSee(t)
				}
			}
		}
	}
	return o
}

// forget forgets what was seen: another run begins.
func (r *tracer) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

// messages returns what was seen, in order: "->" and "<-" with the message.
func (r *tracer) messages() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s []string
	for _, t := range r.seen {
		dir := "<- "
		if t.Sent {
			dir = "-> "
		}
		s = append(s, dir+t.Op.String())
	}
	return s
}

// "A ULP that wants [...] uses the Read Fence": RFC 5040 §5.5 rule 12.
func TestReadFenceHoldsBackUntilReadsAreComplete(t *testing.T) {
	latency := rnictest.Options{AB: rnictest.Faults{Latency: time.Second}, BA: rnictest.Faults{Latency: time.Second}}
	for _, kind := range []struct {
		op       rnic.Opcode
		request  rdmap.Opcode
		response rdmap.Opcode
	}{
		{rnic.OpRead, rdmap.OpReadRequest, rdmap.OpReadResponse},
		{rnic.OpFetchAdd, rdmap.OpAtomicRequest, rdmap.OpAtomicResponse},
	} {
		for _, fence := range []rnic.Flags{0, rnic.FlagReadFence, rnic.FlagLocalFence} {
			r := new(tracer)
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				r.forget()
				_, mem := words(1)
				target, sink := p.B.Register(t, mem, everyRight), p.A.Register(t, make([]byte, 8), rnic.LocalWrite)
				p.B.Recv(t, receives(1, 1)...)
				read := rnic.SendWR{ID: 1, Op: kind.op, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: target.Remote(0)}
				p.A.Send(t, read, read, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: fence})
				for _, id := range []uint64{1, 1, 2} {
					rnictest.Want(t, p.A.SendCQ, id)
				}
				request, response, send := "-> "+kind.request.String(), "<- "+kind.response.String(), "-> "+rdmap.OpSend.String()
				want := []string{request, request, response, response, send}
				if fence == 0 {
					want = []string{request, request, send, response, response}
				}
				if got := r.messages(); !slices.Equal(got, want) {
					t.Errorf("fence %d: %v; want %v", fence, got, want)
				}
			}, r.options("A", latency))
		}
	}
}

// Only the Local Fence makes an invalidation wait for what is before it
// (draft-hilland-rddp-verbs §8.2).
func TestLocalFenceHoldsBackUntilAllIsComplete(t *testing.T) {
	latency := rnictest.Options{AB: rnictest.Faults{Latency: time.Second}, BA: rnictest.Faults{Latency: time.Second}}
	for fence, held := range map[rnic.Flags]bool{0: false, rnic.FlagReadFence: true, rnic.FlagLocalFence: true} {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			target, sink := p.B.Register(t, make([]byte, 8), everyRight), p.A.Register(t, make([]byte, 8), rnic.LocalWrite)
			other := p.A.Register(t, make([]byte, 8), 0)
			p.A.Send(t,
				rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: target.Remote(0)},
				rnic.SendWR{ID: 2, Op: rnic.OpLocalInvalidate, Flags: fence, Invalidate: other.STag()},
			)
			time.Sleep(2*time.Second - 1)
			if other.Valid() != held {
				t.Errorf("fence %d: held back: %v", fence, other.Valid())
			}
			wantEmpty(t, p.A.SendCQ) // what is done already completes in its turn
			rnictest.Want(t, p.A.SendCQ, 1)
			rnictest.Want(t, p.A.SendCQ, 2)
			if other.Valid() {
				t.Error("still valid")
			}
		}, latency)
	}
	// A Write is complete when the LLP has it, which a Read Fence does not await.
	small := rnictest.Options{AB: rnictest.Faults{Latency: time.Second}}
	for fence, held := range map[rnic.Flags]bool{rnic.FlagReadFence: false, rnic.FlagLocalFence: true} {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			const size = simnetBuffer + 1000
			target, local := p.B.Register(t, make([]byte, size), everyRight), p.A.Register(t, make([]byte, size), 0)
			fill := rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{local.SGE(0, size)}, Remote: target.Remote(0)}
			p.B.Recv(t, receives(1, 1)...)
			p.A.Send(t, fill, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: fence | rnic.FlagInline, Inline: []byte{}})
			synctest.Wait()
			if got := p.A.QP.Counters().Sent[rdmap.OpSend].Messages == 0; got != held {
				t.Errorf("fence %d: held back: %v", fence, got)
			}
			rnictest.Want(t, p.A.SendCQ, 1)
			rnictest.Want(t, p.A.SendCQ, 2)
		}, small)
	}
}

// simnetBuffer is how many bytes the network in memory holds in one direction.
const simnetBuffer = simnet.DefaultBuffer

// The Immediate Data of a Write come behind all of its bytes.
func TestImmediateDataFollowTheWrite(t *testing.T) {
	faults := rnictest.Faults{Seed: 3, ShortReads: true, ShortWrites: true, Jitter: time.Millisecond}
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const rounds, size = 20, 10_000
		mem := make([]byte, rounds*size)
		target := p.B.Register(t, mem, everyRight)
		p.B.Recv(t, receives(0, rounds)...)
		go func() {
			src := p.A.Register(t, pattern(rounds*size, 6), 0)
			for i := range rounds {
				p.A.Send(t, rnic.SendWR{Op: rnic.OpWriteImmediate, SGL: []rnic.SGE{src.SGE(i*size, size)}, Remote: target.Remote(i * size), Immediate: [8]byte{7: byte(i)}})
			}
		}()
		want := pattern(rounds*size, 6)
		for i := range rounds {
			wc := rnictest.Want(t, p.B.RecvCQ, uint64(i))
			if wc.Immediate != [8]byte{7: byte(i)} || wc.Op != rnic.OpRecvImmediate || wc.ByteLen != 8 {
				t.Errorf("%+v", wc)
			}
			if got := mem[i*size : (i+1)*size]; !bytes.Equal(got, want[i*size:(i+1)*size]) {
				t.Errorf("Write %d was not there when its Immediate Data were", i)
			}
			rnictest.Want(t, p.A.SendCQ, 0) // one completion for both messages
		}
		synctest.Wait()
		wantEmpty(t, p.A.SendCQ)
	}, rnictest.Options{AB: faults, BA: faults})
}
