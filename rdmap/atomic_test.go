package rdmap

import (
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"unsafe"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/pd"
	"urnic/stag"
)

// cell returns the word of 64 bits at an offset of a region.
func (r region) cell(off int) *uint64 { return (*uint64)(unsafe.Pointer(&r.mem[off])) }

func TestAtomicIsAnsweredWithoutTheULP(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 2})
	r := s.memory(64, stag.LocalWrite|stag.RemoteAtomic)
	*r.cell(8) = 40
	s.post(64)
	p.push(atomicRequest(AtomicRequest{RequestID: 0xAABBCCDD, STag: r.tag, TO: base + 8, AddSwap: 2}))
	p.send(atomicRequest(AtomicRequest{
		Op: AtomicCmpSwap, RequestID: 7, STag: r.tag, TO: base + 8,
		Compare: 42, CompareMask: ^uint64(0), AddSwap: 99, AddSwapMask: ^uint64(0),
	}))
	for _, want := range []AtomicResponse{{0xAABBCCDD, 40}, {7, 42}} {
		if got, err := ParseAtomicResponse(p.next(OpAtomicResponse).data); err != nil || got != want {
			t.Errorf("the response is %v, %v; want %v", got, err, want)
		}
	}
	p.wantNothing()
	if *r.cell(8) != 99 || *r.cell(0) != 0 || *r.cell(16) != 0 {
		t.Errorf("the region holds %x", r.mem)
	}
	if s.err != nil || len(s.delivered)+len(s.completed)+len(s.failed)+len(s.submitted) != 0 {
		t.Errorf("%v; the ULP was told: delivered %+v", s.err, s.delivered)
	}
}

func TestAtomicRequestsAreAnsweredInOrder(t *testing.T) {
	for seed := range uint64(30) {
		s, p := withPeer(t, Config{IRD: 8}, ddptest.Options{Reorder: 8, Seed: seed})
		r := s.memory(8, stag.LocalWrite|stag.RemoteAtomic)
		for i := range uint32(8) {
			p.push(atomicRequest(AtomicRequest{RequestID: 100 - i, STag: r.tag, TO: base, AddSwap: 1}))
		}
		p.settle()
		for i := range uint32(8) {
			got, err := ParseAtomicResponse(p.next(OpAtomicResponse).data)
			if want := (AtomicResponse{100 - i, uint64(i)}); err != nil || got != want {
				t.Errorf("seed %d: response %d is %v; want %v", seed, i, got, want)
			}
		}
	}
}

func TestAtomicStartsOnlyWhenItsRequestIsDelivered(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 2})
	r := s.memory(8, stag.LocalWrite|stag.RemoteWrite|stag.RemoteAtomic)
	first := p.make(atomicRequest(AtomicRequest{RequestID: 1, STag: r.tag, TO: base, AddSwap: 1}))
	p.inject(2, atomicRequest(AtomicRequest{RequestID: 2, STag: r.tag, TO: base, AddSwap: 1}))
	p.llp.Inject(first, 1)
	p.settle()
	p.wantNothing()
	if *r.cell(0) != 0 {
		t.Error("an atomic was carried out before what was sent before it was there")
	}
	p.inject(0, tagged(OpWrite, r.tag, base, binary.NativeEndian.AppendUint64(nil, 10)))
	for i := range uint32(2) {
		if got, err := ParseAtomicResponse(p.next(OpAtomicResponse).data); err != nil || got != (AtomicResponse{i + 1, 10 + uint64(i)}) {
			t.Errorf("response %d is %v, %v", i, got, err)
		}
	}
	if s.err != nil || *r.cell(0) != 12 {
		t.Errorf("%v; the cell holds %d", s.err, *r.cell(0))
	}
}

func TestUnalignedAtomicTerminates(t *testing.T) {
	for _, op := range []AtomicOp{AtomicFetchAdd, AtomicCmpSwap} {
		t.Run(op.String(), func(t *testing.T) {
			for off := range uint64(9) {
				s, p := withPeer(t, Config{IRD: 1})
				r := s.memory(32, stag.LocalWrite|stag.RemoteAtomic)
				p.send(atomicRequest(AtomicRequest{Op: op, STag: r.tag, TO: base + off, AddSwap: 1, AddSwapMask: 1}))
				if off%8 == 0 {
					p.next(OpAtomicResponse)
					continue
				}
				p.wantTerminate(0x0207)
				if !slices.Equal(r.mem, make([]byte, 32)) {
					t.Errorf("TO %#x: the region holds %x", base+off, r.mem)
				}
			}
			// It's the address that counts, not the TO.
			s, p := withPeer(t, Config{IRD: 1})
			mem := make([]byte, 32)
			r := s.register(stag.Memory{Mem: mem[4:], Base: base, Access: stag.LocalWrite | stag.RemoteAtomic})
			p.send(atomicRequest(AtomicRequest{Op: op, STag: r.tag, TO: base + 4, AddSwap: 1, AddSwapMask: 1}))
			p.next(OpAtomicResponse)
			p.send(atomicRequest(AtomicRequest{Op: op, STag: r.tag, TO: base + 8, AddSwap: 1, AddSwapMask: 1}))
			p.wantTerminate(0x0207)
		})
	}
}

func TestUnknownAtomicCodeTerminates(t *testing.T) {
	for op := range AtomicOp(16) {
		if op.Valid() {
			continue
		}
		s, p := withPeer(t, Config{IRD: 1})
		r := s.memory(8, stag.LocalWrite|stag.RemoteAtomic)
		p.send(atomicRequest(AtomicRequest{Op: op, STag: r.tag, TO: base, AddSwap: 1, AddSwapMask: ^uint64(0)}))
		p.wantTerminate(CodeUnexpectedOpcode)
		if *r.cell(0) != 0 {
			t.Errorf("%v changed the cell", op)
		}
	}
}

// The wire has four bits for the code: 16 would go out as FetchAdd.
func TestReservedAtomicCodeIsNotSent(t *testing.T) {
	for _, code := range []AtomicOp{1, 3, 15, 16, 18, 255} {
		s, p := withPeer(t, Config{ORD: 1})
		o := &Operation{Op: OpAtomicRequest, Atomic: AtomicRequest{Op: code}}
		s.submit(o)
		p.settle()
		p.wantBareTerminate(CodeLocalCatastrophic)
		if !slices.Equal(s.failed, []*Operation{o}) || s.stream.Outstanding() != 0 {
			t.Errorf("code %d: %d failed, %d outstanding", code, len(s.failed), s.stream.Outstanding())
		}
	}
}

func TestAtomicResponseThatIsNotInTurnTerminates(t *testing.T) {
	for _, tt := range []struct {
		name string
		ops  []*Operation
		seg  func(first uint32) ddp.Segment
		want TermCode
	}{
		{"nothing is outstanding", nil, func(uint32) ddp.Segment { return atomicResponse(1, 0) }, 0x1202},
		{"only a Read is outstanding", []*Operation{readOf(1, 2, 3, 4, 0)}, func(uint32) ddp.Segment { return atomicResponse(1, 0) }, 0x1202},
		{"a Read is in turn", []*Operation{readOf(1, 2, 3, 4, 0), addOf(1, 8, 1)}, func(first uint32) ddp.Segment { return atomicResponse(first, 0) }, 0x0206},
		{"a Read is in turn, whatever the identifier", []*Operation{readOf(1, 2, 3, 4, 0), addOf(1, 8, 1)}, func(first uint32) ddp.Segment { return atomicResponse(first-1, 0) }, 0x0206},
		{"to a request that never was", []*Operation{addOf(1, 8, 1)}, func(first uint32) ddp.Segment { return atomicResponse(first+1, 0) }, 0x0206},
		{"to the second request", []*Operation{addOf(1, 8, 1), addOf(1, 8, 1)}, func(first uint32) ddp.Segment { return atomicResponse(first+1, 0) }, 0x0206},
		{"too short", []*Operation{addOf(1, 8, 1)}, func(uint32) ddp.Segment { return untagged(OpAtomicResponse, make([]byte, 11)) }, 0x02FF},
		{"too long", []*Operation{addOf(1, 8, 1)}, func(uint32) ddp.Segment { return untagged(OpAtomicResponse, make([]byte, 13)) }, 0x1205},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{ORD: 4})
			s.submit(tt.ops...)
			p.settle()
			first := uint32(0)
			for _, o := range tt.ops {
				if m := p.next(o.Op); o.Op == OpAtomicRequest && first == 0 {
					first = binary.BigEndian.Uint32(m.data[4:])
				}
			}
			p.send(tt.seg(first))
			p.wantTerminate(tt.want)
			if len(s.completed) != 0 {
				t.Errorf("completed %v", s.completed)
			}
		})
	}
}

func TestFetchAddsOfManyStreamsAreAtomic(t *testing.T) {
	const streams, adds = 8, 400
	synctest.Test(t, func(t *testing.T) {
		// All responders share one table and domain, and the region in it.
		d, err := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
		if err != nil {
			t.Fatal(err)
		}
		table := new(stag.Table)
		mem := make([]byte, 8)
		e, err := table.Register(d, stag.Memory{Mem: mem, Base: base, Access: stag.LocalWrite | stag.RemoteAtomic})
		if err != nil {
			t.Fatal(err)
		}
		var requesters, all []*side
		for i := range streams {
			la, lb := ddptest.Pair(ddptest.Options{})
			a := newSide(t, la, Config{ORD: 4})
			b := newSideWith(t, lb, Config{IRD: 4, Memory: table, Scope: stag.Scope{Domain: d, Stream: stag.Stream(i + 1)}})
			requesters = append(requesters, a)
			all = append(all, a, b)
		}
		for _, s := range all {
			s.run()
		}
		for _, a := range requesters {
			for range adds {
				a.submit(addOf(e.STag(), base, 1))
			}
		}
		synctest.Wait()
		seen := map[uint64]bool{}
		for _, a := range requesters {
			last := uint64(0)
			for i, o := range a.completed {
				if seen[o.Original] || i > 0 && o.Original <= last {
					t.Fatalf("%d was returned after %d, seen before: %v", o.Original, last, seen[o.Original])
				}
				seen[o.Original], last = true, o.Original
			}
			if len(a.completed) != adds {
				t.Errorf("%d of %d completed: %v", len(a.completed), adds, a.err)
			}
		}
		if got := *(region{mem: mem}).cell(0); got != streams*adds {
			t.Errorf("the sum is %d; want %d", got, streams*adds)
		}
		for _, s := range all {
			_ = s.llp.CloseWrite()
		}
		for _, s := range all {
			<-s.done
		}
	})
}
