package rnic_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A scattered buffer lies in pieces of odd lengths, some of them empty, each
// with bytes around it that nobody may touch.
type scattered struct {
	sgl   []rnic.SGE
	parts [][]byte
	whole [][]byte // with what is around
}

const around = 0xEE

// scatter cuts n bytes into count pieces, which hold data from the front on.
func scatter(t *testing.T, rng *rand.Rand, s *rnictest.Side, n, count int, data []byte) *scattered {
	t.Helper()
	b := new(scattered)
	cuts := []int{0, n}
	for range count - 1 {
		cuts = append(cuts, rng.IntN(n+1))
	}
	slices.Sort(cuts)
	for i := range count {
		k, before := cuts[i+1]-cuts[i], 1+rng.IntN(9)
		mem := bytes.Repeat([]byte{around}, before+k+1)
		copy(mem[before:], data[min(cuts[i], len(data)):min(cuts[i+1], len(data))])
		b.sgl = append(b.sgl, s.Register(t, mem, rnic.LocalWrite).SGE(before, k))
		b.parts, b.whole = append(b.parts, mem[before:before+k]), append(b.whole, mem)
	}
	return b
}

// joined returns what the pieces hold, after a look at the bytes around them.
func (b *scattered) joined(t *testing.T) []byte {
	t.Helper()
	for i, mem := range b.whole {
		before := len(mem) - len(b.parts[i]) - 1
		if !bytes.Equal(mem[:before], bytes.Repeat([]byte{around}, before)) || mem[len(mem)-1] != around {
			t.Errorf("octets beside piece %d were touched", i)
		}
	}
	return slices.Concat(b.parts...)
}

func TestSendGathersAndReceiveScatters(t *testing.T) {
	wide := rnictest.Options{QP: func(_ string, attr *rnic.QPAttr) { attr.MaxSGE = rnic.MaxSGE }}
	for seed := range uint64(20) {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			rng := rand.New(rand.NewPCG(seed, 2))
			n := 1 + rng.IntN(9000)
			data := pattern(n, byte(seed))
			src := scatter(t, rng, p.A, n, 1+rng.IntN(rnic.MaxSGE), data)
			dst := scatter(t, rng, p.B, n+rng.IntN(50), 1+rng.IntN(rnic.MaxSGE), nil)
			p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: dst.sgl})
			p.A.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: src.sgl})
			if wc := rnictest.Want(t, p.A.SendCQ, 2); int(wc.ByteLen) != n {
				t.Errorf("seed %d: %d octets sent of %d", seed, wc.ByteLen, n)
			}
			if wc := rnictest.Want(t, p.B.RecvCQ, 1); int(wc.ByteLen) != n {
				t.Errorf("seed %d: %d octets received of %d", seed, wc.ByteLen, n)
			}
			if got := dst.joined(t); !bytes.Equal(got[:n], data) || bytes.ContainsFunc(got[n:], func(r rune) bool { return r == 0 }) {
				t.Errorf("seed %d: %d octets arrived changed", seed, n)
			}
		}, wide)
	}
}

// "An RDMA Write [...] the Data Sink Tagged Buffer": one request writes to one
// tagged buffer, in one message, wherever its bytes come from (RFC 5040 §5.1).
func TestRDMAWriteGathersIntoOneTaggedBuffer(t *testing.T) {
	wide := rnictest.Options{QP: func(_ string, attr *rnic.QPAttr) { attr.MaxSGE = rnic.MaxSGE }}
	for seed := range uint64(20) {
		r := new(tracer)
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			r.forget()
			rng := rand.New(rand.NewPCG(seed, 3))
			n := 1 + rng.IntN(9000)
			data := pattern(n, byte(seed))
			src := scatter(t, rng, p.A, n, 1+rng.IntN(rnic.MaxSGE), data)
			mem := bytes.Repeat([]byte{around}, n+2)
			target := p.B.Register(t, mem, everyRight)
			p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: src.sgl, Remote: target.Remote(1)})
			rnictest.Want(t, p.A.SendCQ, 1)
			synctest.Wait()
			if !bytes.Equal(mem[1:n+1], data) || mem[0] != around || mem[n+1] != around {
				t.Errorf("seed %d: %d octets were written wrongly", seed, n)
			}
			want := rdmap.Trace{Op: rdmap.OpWrite, STag: target.STag(), TO: target.Base() + 1, Length: uint64(n)}
			if len(r.seen) != 1 || r.seen[0].Trace != want {
				t.Errorf("seed %d: B received %+v; want %+v", seed, r.seen, want)
			}
		}, r.options("B", wide))
	}
}

// A message of no bytes touches no memory and no STag (draft-hilland-rddp-verbs
// §7.10.6.2).
func TestEmptyRequestsUseNoMemory(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		nowhere := rnic.Remote{STag: 0xDEAD_BEEF, TO: 1 << 63}
		none := []rnic.SGE{{Addr: 5, LKey: 0x1234_5678}}
		p.B.Recv(t, receives(1, 2)...)
		p.A.Send(t,
			rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: none, Remote: nowhere},
			rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: none, Remote: nowhere},
			rnic.SendWR{ID: 3, Op: rnic.OpRead, Remote: nowhere},
			rnic.SendWR{ID: 4, Op: rnic.OpSend, SGL: none},
			rnic.SendWR{ID: 5, Op: rnic.OpWriteImmediate, Remote: nowhere},
		)
		for id := range uint64(5) {
			if wc := rnictest.Want(t, p.A.SendCQ, id+1); wc.ByteLen != 0 {
				t.Errorf("%+v", wc)
			}
		}
		rnictest.Want(t, p.B.RecvCQ, 1)
		rnictest.Want(t, p.B.RecvCQ, 2)
	})
}

// Nor does an empty piece of a message.
func TestEmptyPiecesUseNoMemory(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		none := rnic.SGE{Addr: 5, LKey: 0x1234_5678}
		data, mem := pattern(10, 1), make([]byte, 10)
		src, dst := p.A.Register(t, data, 0), p.B.Register(t, mem, rnic.LocalWrite)
		p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{none, dst.SGE(0, 3), none, dst.SGE(3, 7)}})
		p.A.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, 6), none, src.SGE(6, 4), none}})
		rnictest.Want(t, p.A.SendCQ, 2)
		if wc := rnictest.Want(t, p.B.RecvCQ, 1); wc.ByteLen != 10 || !bytes.Equal(mem, data) {
			t.Errorf("%d octets arrived: %x; want %x", wc.ByteLen, mem, data)
		}
	})
}

// What an entry of an SGL names is read for the segments in which it has a part: MR.Stats
// counts those.
func TestEachEntryOfAnSGLIsReadForItsSegmentsOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		message := func(op rdmap.Opcode) (segments [][]byte) {
			for {
				seg := h.want(op)
				segments = append(segments, seg.Payload)
				if seg.Control.Last() {
					return segments
				}
			}
		}
		data := pattern(10_000, 1)
		all := s.Register(w, data, 0)
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend, SGL: []rnic.SGE{all.SGE(0, len(data))}})
		segments := message(rdmap.OpSend)
		n := len(segments[0])
		if len(segments) < 3 || all.Stats().Accesses != uint64(len(segments)) {
			w.Fatalf("%d segments, %d accesses", len(segments), all.Stats().Accesses)
		}

		// The first entry is the first segment, the second all the others.
		first, rest := s.Register(w, data[:n], 0), s.Register(w, data[n:], 0)
		s.Send(w, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{first.SGE(0, n), rest.SGE(0, len(data)-n)}})
		if got := slices.Concat(message(rdmap.OpSend)...); !bytes.Equal(got, data) {
			w.Error("the octets arrived changed")
		}
		wantCompletions(w, s.SendCQ, result{1, ok}, result{2, ok})
		if a, b := first.Stats().Accesses, rest.Stats().Accesses; a != 1 || b != uint64(len(segments)-1) {
			w.Errorf("of %d segments, %d are counted to the first entry, and %d to the second; want 1, and the rest", len(segments), a, b)
		}
	})
}
