package rdmap

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/mpa"
	"urnic/stag"
)

func TestAsManyReadRequestsAsIRDAreTaken(t *testing.T) {
	for _, ird := range []int{1, 2, 7} {
		s, p := withPeer(t, Config{IRD: ird})
		source := s.memory(8, stag.RemoteRead)
		request := readRequest(ReadRequest{Size: 8, SrcSTag: source.tag, SrcTO: base})
		for range 3 { // the places are used again
			for range ird {
				p.push(request)
			}
			s.receiveAll()
			if s.err != nil || s.stream.Answering() != ird {
				t.Fatalf("IRD %d: %v; %d wait for their responses", ird, s.err, s.stream.Answering())
			}
			s.transmit()
			for range ird {
				p.next(OpReadResponse)
			}
			p.wantNothing()
		}
		for range ird + 1 {
			p.push(request)
		}
		s.receiveAll()
		if s.err == nil {
			t.Errorf("IRD %d: %d Read Requests were taken", ird, ird+1)
		}
	}
}

func TestReadRequestBeyondIRDTerminates(t *testing.T) {
	for ird := range 4 {
		s, p := withPeer(t, Config{IRD: ird})
		for range ird {
			p.push(readRequest(ReadRequest{}))
		}
		p.push(readRequest(ReadRequest{}))
		p.settle()
		p.wantTerminate(0x1202)
		if s.stream.Answering() != ird {
			t.Errorf("IRD %d: %d requests were taken", ird, s.stream.Answering())
		}
	}
}

func TestReadsBeyondORDWait(t *testing.T) {
	for _, ord := range []int{0, 1, 3} {
		s, p := withPeer(t, Config{ORD: ord})
		var ops []*Operation
		for range 5 {
			ops = append(ops, readOf(1, 2, 3, 4, 0))
		}
		s.submit(ops...)
		p.settle()
		for range ord {
			p.next(OpReadRequest)
		}
		for i := range 5 {
			p.wantNothing()
			if s.stream.Outstanding() != min(ord, 5-i) || s.stream.MayRead() != (s.stream.Outstanding() < ord) {
				t.Errorf("ORD %d: %d outstanding, MayRead %v", ord, s.stream.Outstanding(), s.stream.MayRead())
			}
			if ord == 0 {
				break
			}
			p.send(tagged(OpReadResponse, 3, 4, nil))
			if i+ord < 5 {
				p.next(OpReadRequest) // the place is used at once
			}
		}
		if want := ops[:min(5, 5*ord)]; s.err != nil || !slices.Equal(s.completed, want) {
			t.Errorf("ORD %d: %v; completed %d", ord, s.err, len(s.completed))
		}
	}
}

func TestDepthsBeyondWhatCanBeNegotiatedAreCutToIt(t *testing.T) {
	for depth, want := range map[int]int{math.MinInt: 0, -1: 0, mpa.MaxDepth: mpa.MaxDepth, mpa.MaxDepth + 1: mpa.MaxDepth, math.MaxInt: mpa.MaxDepth} {
		s, p := withPeer(t, Config{IRD: depth, ORD: depth})
		if got := s.stream.depths.free(); got != want {
			t.Errorf("depth %d: room for %d Read Requests; want %d", depth, got, want)
		}
		p.send(readRequest(ReadRequest{}))
		if (s.err == nil) != (want > 0) || s.stream.MayRead() != (want > 0) {
			t.Errorf("depth %d: a Read Request: %v; MayRead %v", depth, s.err, s.stream.MayRead())
		}
		if want == 0 {
			continue
		}
		p.next(OpReadResponse)
		for range want {
			s.submit(readOf(1, 2, 3, 4, 0))
		}
		p.settle()
		if s.stream.MayRead() || s.stream.Outstanding() != want {
			t.Errorf("depth %d: %d Reads are outstanding; want %d", depth, s.stream.Outstanding(), want)
		}
	}
}

func TestOtherOperationsDoNotWaitForORD(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 1})
	s.submit(readOf(1, 2, 3, 4, 0), sendOf(OpSend, nil), writeOf(1, 2, nil), immediateOf(OpImmediate, Immediate{}), addOf(1, 8, 1), sendOf(OpSend, nil))
	p.settle()
	for _, op := range []Opcode{OpReadRequest, OpSend, OpWrite, OpImmediate} {
		p.next(op)
	}
	p.wantNothing() // the atomic waits, and what comes after it
	p.send(tagged(OpReadResponse, 3, 4, nil))
	p.next(OpAtomicRequest)
	p.next(OpSend)
}

func TestAtomicRequestsShareTheReadDepth(t *testing.T) {
	t.Run("responder", func(t *testing.T) {
		s, p := withPeer(t, Config{IRD: 4})
		r := s.memory(8, stag.LocalWrite|stag.RemoteAtomic)
		for range 2 {
			p.push(atomicRequest(AtomicRequest{STag: r.tag, TO: base}))
			p.push(readRequest(ReadRequest{}))
		}
		s.receiveAll()
		if s.err != nil || s.stream.Answering() != 4 {
			t.Fatalf("%v; %d wait for their responses", s.err, s.stream.Answering())
		}
		p.push(atomicRequest(AtomicRequest{STag: r.tag, TO: base}))
		p.settle()
		p.wantTerminate(0x1202)
	})
	t.Run("requester", func(t *testing.T) {
		s, p := withPeer(t, Config{ORD: 3})
		read, add, swap, fourth := readOf(1, 2, 3, 4, 0), addOf(1, 8, 1), swapOf(1, 8, 0, 1), addOf(1, 8, 1)
		s.submit(read, add, swap, fourth)
		p.settle()
		p.next(OpReadRequest)
		first, second := p.nextAtomic(), p.nextAtomic()
		p.wantNothing()
		p.send(tagged(OpReadResponse, 3, 4, nil))
		third := p.nextAtomic()
		// Queue 3 has buffers for the atomics that are outstanding: three.
		for i, r := range []AtomicRequest{first, second, third} {
			p.push(atomicResponse(r.RequestID, uint64(10*i)))
		}
		p.settle()
		if s.err != nil || !slices.Equal(s.completed, []*Operation{read, add, swap, fourth}) || swap.Original != 10 || fourth.Original != 20 {
			t.Errorf("%v; completed %d", s.err, len(s.completed))
		}
		p.send(atomicResponse(third.RequestID+1, 0))
		p.wantTerminate(0x1202)
	})
}

// Buffers of RDMAP's own are used in turn: two that are in use at once are never
// the same one, not even where the MSN wraps.
// An LLP that changes the order brings all of them before the first one counts.
func TestAtomicResponsesHaveABufferEach(t *testing.T) {
	const n = 5
	s, p := withPeer(t, Config{ORD: n})
	var ops []*Operation
	for range n {
		ops = append(ops, addOf(1, 8, 1))
	}
	s.submit(ops...)
	p.settle()
	var ids []uint32
	for range n {
		ids = append(ids, p.nextAtomic().RequestID)
	}
	for i := n - 1; i >= 0; i-- {
		if len(s.completed) != 0 {
			t.Fatalf("%d were completed before the first response came", len(s.completed))
		}
		p.inject(uint64(i), atomicResponse(ids[i], uint64(100+i)), msn(uint32(i+1)))
	}
	if s.err != nil || !slices.Equal(s.completed, ops) {
		t.Fatalf("%v; %d were completed", s.err, len(s.completed))
	}
	for i, o := range ops {
		if o.Original != uint64(100+i) {
			t.Errorf("atomic %d: original %d; want %d", i, o.Original, 100+i)
		}
	}
}

func TestRequestBuffersAreApartWhereTheMSNWraps(t *testing.T) {
	s, _ := withPeer(t, Config{IRD: 3})
	r := (*receiver)(s.stream)
	seen := map[ddp.Buffer]uint32{}
	for ahead := range uint32(3) {
		h := &ddp.UntaggedHeader{QN: QueueReadRequest, MSN: ahead - 2, RsvdULP: [5]byte{0x41}}
		b, _ := r.Buffer(h, ahead)
		if other, taken := seen[b]; taken {
			t.Errorf("MSN %d shares its buffer with MSN %d", h.MSN, other)
		}
		seen[b] = h.MSN
	}
}

// A peer that sends its next request the moment a response is there must never
// be refused, however full its view of the IRD is.
func TestPlaceOfARequestIsFreeBeforeItsResponseIsOut(t *testing.T) {
	const reads = 3000
	for _, ird := range []int{1, 2} {
		onPair(t, ddptest.Options{}, Config{IRD: ird, ORD: ird}, func(t *testing.T, a, b *side) {
			source := b.memory(64, stag.LocalWrite|stag.RemoteRead|stag.RemoteAtomic)
			sink := a.memory(64, stag.LocalWrite)
			for i := range reads {
				if i%3 == 2 {
					a.submit(addOf(source.tag, base, 1))
				} else {
					a.submit(readOf(source.tag, base, sink.tag, base, 8))
				}
			}
			synctest.Wait()
			if a.err != nil || b.err != nil || len(a.completed) != reads {
				t.Errorf("IRD %d: a: %v; b: %v; %d of %d completed", ird, a.err, b.err, len(a.completed), reads)
			}
		})
	}
	// The same at the boundary: when the response has been posted, and before
	// it can leave, there is room again.
	s, p := withPeer(t, Config{IRD: 1}, ddptest.Options{Room: 1})
	source := s.memory(300, stag.RemoteRead)
	p.push(readRequest(ReadRequest{Size: 300, SrcSTag: source.tag, SrcTO: base}))
	s.receiveAll()
	for range 3 {
		if idle, err := s.stream.Transmit(s); err != nil || s.stream.Answering() != 0 && idle {
			t.Fatalf("idle %v, %v", idle, err)
		}
		if s.stream.Answering() == 0 {
			return // the last segment is posted, and not flushed
		}
		if _, err := s.llp.Flush(true); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the place is not free although the response is out")
}
