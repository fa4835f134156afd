package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"urnic/internal/test/cutnet"
	"urnic/internal/test/leakcheck"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// Each direction is full of Reads, Writes and Sends of all lengths at the same
// time; each byte that was read must be the one that is there.
func TestReadsInBothDirectionsBringTheRightOctets(t *testing.T) {
	networks := map[string]func(t *testing.T, seed uint64) *rnictest.Pair{
		"TCP":           func(t *testing.T, _ uint64) *rnictest.Pair { return overTCP(t, "127.0.0.1:0") },
		"TCP in pieces": func(t *testing.T, seed uint64) *rnictest.Pair { return inPieces(t, seed) },
	}
	for name, network := range networks {
		t.Run(name, func(t *testing.T) {
			leakcheck.Check(t)
			for seed := range uint64(3) {
				p := network(t, seed)
				var wg sync.WaitGroup
				for i, way := range [][2]*rnictest.Side{{p.A, p.B}, {p.B, p.A}} {
					w := newComparer(t, seed, byte(i), way[0], way[1])
					wg.Go(w.run)
				}
				wg.Wait()
			}
		})
	}
}

// A comparer reads from memory of the other side that does not change, into one
// sink for each request, and writes into memory that nobody reads.
type comparer struct {
	t              *testing.T
	rng            *rand.Rand
	s              *rnictest.Side
	there          []byte
	from, to, into *rnic.MR
	sink           []byte
	src            *rnic.MR
}

const (
	readMemory = 1 << 18
	readSlots  = 16
	readMost   = 60_000
)

func newComparer(t *testing.T, seed uint64, n byte, s, peer *rnictest.Side) *comparer {
	r := &comparer{t: t, rng: rand.New(rand.NewPCG(seed, uint64(n))), s: s, there: pattern(readMemory, n), sink: make([]byte, readSlots*readMost)}
	r.from = peer.Register(t, r.there, rnic.RemoteRead)
	r.to = peer.Register(t, make([]byte, readMemory), everyRight)
	r.into = s.Register(t, r.sink, rnic.LocalWrite)
	r.src = s.Register(t, pattern(readMemory, 9), 0)
	return r
}

func (r *comparer) run() {
	type read struct{ slot, from, length int }
	under := map[uint64]read{}
	var wcs [4]rnic.WC
	id, free := uint64(0), make([]int, readSlots)
	for i := range free {
		free[i] = i
	}
	for done := 0; done < 400; {
		for len(free) > 0 && len(under) < 60 {
			id++
			length := r.rng.IntN(1 << r.rng.IntN(16))
			length = min(length, readMost)
			at := r.rng.IntN(readMemory - length)
			wr := rnic.SendWR{ID: id, Op: rnic.OpWrite, SGL: []rnic.SGE{r.src.SGE(at, length)}, Remote: r.to.Remote(at)}
			if r.rng.IntN(3) > 0 {
				slot := free[0]
				free = free[1:]
				under[id] = read{slot, at, length}
				wr.Op, wr.SGL, wr.Remote = rnic.OpRead, []rnic.SGE{r.into.SGE(slot*readMost, length)}, r.from.Remote(at)
			} else {
				under[id] = read{-1, 0, 0}
			}
			if err := r.s.QP.PostSend(wr); err != nil {
				r.t.Error(err)
				return
			}
		}
		n, err := r.s.SendCQ.Wait(r.t.Context(), wcs[:])
		if err != nil {
			r.t.Error(err)
			return
		}
		for _, wc := range wcs[:n] {
			if err := wc.Err(); err != nil {
				r.t.Error(err)
				return
			}
			d := under[wc.ID]
			delete(under, wc.ID)
			done++
			if d.slot < 0 {
				continue
			}
			if got := r.sink[d.slot*readMost:][:d.length]; !bytes.Equal(got, r.there[d.from:][:d.length]) {
				r.t.Errorf("a Read of %d octets at %d brought others", d.length, d.from)
			}
			free = append(free, d.slot)
		}
	}
	for left := len(under); left > 0; left-- {
		wc := rnictest.Next(r.t, r.s.SendCQ)
		if err := wc.Err(); err != nil {
			r.t.Error(err)
		}
	}
}

// Many streams fill one shared receive queue, each in its own order.
func TestSharedReceiveQueueOverTCPInPieces(t *testing.T) {
	leakcheck.Check(t)
	const qps, each, size, depth = 16, 60, 3000, 100
	p := inPieces(t, 3)
	srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{MaxWR: depth})
	from, to := shared(t, p, srq, qps)
	mem := make([]byte, depth*size)
	mr := p.B.Register(t, mem, rnic.LocalWrite)
	slot := func(i uint64) rnic.RecvWR { return rnic.RecvWR{ID: i, SGL: []rnic.SGE{mr.SGE(int(i)*size, size)}} }
	for i := range uint64(depth) {
		fill(t, srq, slot(i))
	}
	number := map[uint32]int{} // of a queue pair of B
	for i, q := range to {
		number[q.Num()] = i
	}
	// A stream sends again when a message of it is in: so there is always a
	// receive for it.
	text := func(q, i int) []byte {
		rng := rand.New(rand.NewPCG(uint64(q), uint64(i)))
		b := pattern(8+rng.IntN(size-8), byte(q))
		binary.BigEndian.PutUint32(b, uint32(q))
		binary.BigEndian.PutUint32(b[4:], uint32(i))
		return b
	}
	send := func(q, i int) {
		mr := p.A.Register(t, text(q, i), 0)
		postSend(t, from[q], rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{mr.SGE(0, int(mr.Len()))}})
	}
	const ahead = depth / qps
	for i := range ahead {
		for q := range qps {
			send(q, i)
		}
	}
	next := make([]int, qps)
	for range qps * each {
		wc := rnictest.Next(t, p.B.RecvCQ)
		if err := wc.Err(); err != nil {
			t.Fatal(err)
		}
		q := number[wc.QPN]
		if want, got := text(q, next[q]), mem[wc.ID*size:][:wc.ByteLen]; !bytes.Equal(got, want) {
			t.Fatalf("message %d of stream %d arrived as %x… of %d octets", next[q], q, got[:8], len(got))
		}
		next[q]++
		fill(t, srq, slot(wc.ID))
		if i := next[q] + ahead - 1; i < each {
			send(q, i)
		}
	}
}

// A damaged FPDU changes nothing, however its bytes come in; what came before
// it is there, what comes after it is not.
func TestDamageIsFoundBeforePlacementOverTCPInPieces(t *testing.T) {
	leakcheck.Check(t)
	const size = 5000
	for seed := range uint64(20) {
		s := tcpSide(t, "B", &cutnet.Network{Seed: seed})
		mem := make([]byte, 3*size)
		mr := s.Register(t, mem, everyRight)
		s.Recv(t, receives(1, 2)...)
		h := peerOverTCP(t, s)
		rng := rand.New(rand.NewPCG(seed, 7))
		good := h.fpdu(writeSeg(mr.Remote(0), pattern(size, 1)))
		bad := h.fpdu(writeSeg(mr.Remote(size), pattern(size, 2)))
		bad[2+rng.IntN(len(bad)-2)] ^= 1 << rng.IntN(8) // behind the length, which says where the CRC is
		after := h.fpdu(writeSeg(mr.Remote(2*size), pattern(size, 3)))
		h.write(bytes.Join([][]byte{good, bad, after}, nil))
		if ev := nextEvent(t, s.Device, rnic.EventIntegrity); ev.QP != s.QP {
			t.Errorf("%v", ev)
		}
		h.wantBare(0x2002)
		_ = h.conn.Close()
		if err := s.QP.Disconnect(t.Context()); err == nil { // waits for the end
			t.Error("the stream has ended gracefully")
		}
		if !bytes.Equal(mem[:size], pattern(size, 1)) {
			t.Errorf("seed %d: the good Write is not there", seed)
		}
		if !bytes.Equal(mem[size:], make([]byte, 2*size)) {
			t.Errorf("seed %d: the damaged Write or the one after it was placed", seed)
		}
		for id := range uint64(2) {
			wantStatus(t, s.RecvCQ, id+1, rnic.StatusFlushed)
		}
		if n := s.QP.Counters().Received[rdmap.OpWrite].Messages; n != 1 {
			t.Errorf("seed %d: %d Writes are counted", seed, n)
		}
	}
}

// Requests of all kinds complete in the order submitted, and so do what they
// cause at the peer.
func TestCompletionsFollowTheOrderSubmittedOverTCPInPieces(t *testing.T) {
	leakcheck.Check(t)
	const rounds, batch = 40, 20
	for seed := range uint64(3) {
		p := inPieces(t, seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		_, mem := words(1024)
		// Nothing is read that is written at the same time.
		word := p.B.Register(t, mem, everyRight)
		target, source := p.B.Register(t, make([]byte, 8192), everyRight), p.B.Register(t, make([]byte, 8192), everyRight)
		local, sink := p.A.Register(t, make([]byte, 8192), 0), p.A.Register(t, make([]byte, 8192), rnic.LocalWrite)
		buf := p.B.Register(t, make([]byte, 3000), rnic.LocalWrite)
		id := uint64(0)
		for range rounds {
			var wrs []rnic.SendWR
			var want, wantAtB []uint64
			for range batch {
				id++
				length := rng.IntN(3000)
				wr := rnic.SendWR{ID: id, SGL: []rnic.SGE{local.SGE(rng.IntN(4000), length)}, Remote: target.Remote(rng.IntN(4000))}
				switch wr.Op = []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpWriteImmediate, rnic.OpRead, rnic.OpImmediate, rnic.OpFetchAdd, rnic.OpCmpSwap}[rng.IntN(7)]; wr.Op {
				case rnic.OpImmediate:
					wr.SGL = nil
				case rnic.OpFetchAdd, rnic.OpCmpSwap:
					wr.SGL, wr.Remote = nil, word.Remote(8*rng.IntN(500))
				case rnic.OpRead:
					wr.SGL, wr.Remote = []rnic.SGE{sink.SGE(rng.IntN(4000), length)}, source.Remote(rng.IntN(4000))
				}
				switch wr.Op {
				case rnic.OpSend, rnic.OpImmediate, rnic.OpWriteImmediate:
					p.B.Recv(t, rnic.RecvWR{ID: id, SGL: []rnic.SGE{buf.SGE(0, 3000)}})
					wantAtB = append(wantAtB, id)
				}
				want = append(want, id)
				wrs = append(wrs, wr)
			}
			p.A.Send(t, wrs...)
			for _, id := range want {
				rnictest.Want(t, p.A.SendCQ, id)
			}
			for _, id := range wantAtB {
				rnictest.Want(t, p.B.RecvCQ, id)
			}
		}
	}
}

// Programs that wait and one that polls take from the same queue, or wait at
// the two queues of one queue pair: each completion is taken once, and nobody
// waits for one that has come.
func TestWaitersAndPollersShareTheQueuesOfAQueuePair(t *testing.T) {
	for _, pieces := range []bool{false, true} {
		t.Run(fmt.Sprintf("in pieces %v", pieces), func(t *testing.T) {
			leakcheck.Check(t)
			const messages, credits = 1500, 50
			p := overTCP(t, "127.0.0.1:0")
			if pieces {
				p = inPieces(t, 8)
			}
			sink := p.B.Register(t, make([]byte, 8), rnic.LocalWrite)
			target := p.A.Register(t, make([]byte, 8), everyRight)
			ctx, over := context.WithCancel(t.Context())
			var mu sync.Mutex
			seen := make(map[uint64]bool)
			credit := make(chan struct{}, credits)
			take := func(wcs []rnic.WC) {
				mu.Lock()
				defer mu.Unlock()
				for _, wc := range wcs {
					if wc.Err() != nil || seen[wc.ID] {
						t.Errorf("message %d: %v, seen: %v", wc.ID, wc.Err(), seen[wc.ID])
					}
					seen[wc.ID] = true
					if len(seen) == messages {
						over()
					}
					if next := wc.ID + credits; next < messages {
						if err := p.B.QP.PostRecv(rnic.RecvWR{ID: next}); err != nil {
							t.Error(err)
						}
						credit <- struct{}{}
					}
				}
			}
			for i := range uint64(credits) {
				p.B.Recv(t, rnic.RecvWR{ID: i})
				credit <- struct{}{}
			}
			var wg sync.WaitGroup
			for n := range 3 { // who waits
				wg.Go(func() {
					wcs := make([]rnic.WC, 1+n)
					for {
						k, err := p.B.RecvCQ.Wait(ctx, wcs)
						take(wcs[:k])
						if err != nil {
							return
						}
					}
				})
			}
			wg.Go(func() { // who polls
				wcs := make([]rnic.WC, 2)
				for ctx.Err() == nil {
					take(wcs[:p.B.RecvCQ.Poll(wcs)])
				}
			})
			wg.Go(func() { // who waits at the other queue
				wcs := make([]rnic.WC, 1)
				for ctx.Err() == nil {
					if err := p.B.QP.PostSend(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: target.Remote(0)}); err != nil {
						t.Error(err)
						return
					}
					if _, err := p.B.SendCQ.Wait(t.Context(), wcs); err != nil || wcs[0].Err() != nil {
						t.Error(err, wcs[0].Err())
						return
					}
				}
			})
			for range messages {
				<-credit
				for p.A.QP.PostSend(rnic.SendWR{Op: rnic.OpSend, ID: 1}) != nil {
					rnictest.Want(t, p.A.SendCQ, 1)
				}
				p.A.SendCQ.Poll(make([]rnic.WC, 16))
			}
			wg.Wait()
			if len(seen) != messages {
				t.Errorf("%d messages of %d", len(seen), messages)
			}
		})
	}
}
