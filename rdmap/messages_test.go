package rdmap

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/stag"
)

// each operation of the ULP, and what makes a side send the messages that the
// ULP does not ask for.
var sentMessages = []struct {
	op        Opcode
	control   byte // DDP control field of the last segment
	rdmap     byte // RDMAP control field
	qn        uint32
	provoke   func(s *side, p *peer, r region)
	data      int // bytes behind the DDP header, of which RDMAP's header is the first part
	placement bool
}{
	{OpWrite, 0xC1, 0x40, 0, func(s *side, p *peer, r region) { s.submit(writeOf(0x01020304, 0x1112131415161718, pattern(50, 1))) }, 50, true},
	{OpReadRequest, 0x41, 0x41, 1, func(s *side, p *peer, r region) { s.submit(readOf(1, 2, r.tag, base, 5)) }, 28, false},
	{OpReadResponse, 0xC1, 0x42, 0, func(s *side, p *peer, r region) {
		p.send(readRequest(ReadRequest{SinkSTag: 0x01020304, SinkTO: 0x1112131415161718, Size: 50, SrcSTag: r.tag, SrcTO: base}))
	}, 50, true},
	{OpSend, 0x41, 0x43, 0, func(s *side, p *peer, r region) { s.submit(sendOf(OpSend, pattern(50, 1))) }, 50, false},
	{OpSendInvalidate, 0x41, 0x44, 0, func(s *side, p *peer, r region) { s.submit(invalidateOf(OpSendInvalidate, pattern(50, 1), 9)) }, 50, false},
	{OpSendSE, 0x41, 0x45, 0, func(s *side, p *peer, r region) { s.submit(sendOf(OpSendSE, pattern(50, 1))) }, 50, false},
	{OpSendSEInvalidate, 0x41, 0x46, 0, func(s *side, p *peer, r region) { s.submit(invalidateOf(OpSendSEInvalidate, pattern(50, 1), 9)) }, 50, false},
	{OpTerminate, 0x41, 0x47, 2, func(s *side, p *peer, r region) { s.stream.Fail(&Error{Code: CodeStreamCatastrophic}) }, 4, false},
	{OpImmediate, 0x41, 0x48, 0, func(s *side, p *peer, r region) { s.submit(immediateOf(OpImmediate, Immediate{1, 2, 3})) }, 8, false},
	{OpImmediateSE, 0x41, 0x49, 0, func(s *side, p *peer, r region) { s.submit(immediateOf(OpImmediateSE, Immediate{1, 2, 3})) }, 8, false},
	{OpAtomicRequest, 0x41, 0x4A, 1, func(s *side, p *peer, r region) { s.submit(addOf(1, 8, 1)) }, 52, false},
	{OpAtomicResponse, 0x41, 0x4B, 3, func(s *side, p *peer, r region) {
		p.send(atomicRequest(AtomicRequest{STag: r.tag, TO: base}))
	}, 12, false},
}

// wantsFigure checks how each of the messages from first to last uses DDP.
func wantsFigure(t *testing.T, first, last Opcode) {
	for _, tt := range sentMessages[first : last+1] {
		t.Run(tt.op.Name(), func(t *testing.T) {
			s, p := withPeer(t, Config{IRD: 1, ORD: 1})
			var wire []byte
			s.llp.see = func(b []byte) { wire = b }
			tt.provoke(s, p, s.memory(64, stag.LocalWrite|stag.RemoteRead|stag.RemoteAtomic|stag.RemoteWrite))
			p.settle()
			m := p.next(tt.op)
			p.wantNothing()
			if wire[0] != tt.control || wire[1] != tt.rdmap || len(m.data) != tt.data || m.segments != 1 {
				t.Fatalf("%x: %v; want control fields %#02x %#02x and %d octets", wire, m, tt.control, tt.rdmap, tt.data)
			}
			if tt.placement {
				if want := []byte{1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}; !bytes.Equal(wire[2:14], want) {
					t.Errorf("STag and TO are %x; want %x", wire[2:14], want)
				}
				return
			}
			tag := byte(0)
			if tt.op.Invalidates() {
				tag = 9
			}
			// Invalidate STag, QN, MSN, MO
			if want := []byte{0, 0, 0, tag, 0, 0, 0, byte(tt.qn), 0, 0, 0, 1, 0, 0, 0, 0}; !bytes.Equal(wire[2:18], want) {
				t.Errorf("the untagged header goes on with %x; want %x", wire[2:18], want)
			}
		})
	}
}

func TestEveryMessageUsesDDPAsInFigure4(t *testing.T) { wantsFigure(t, OpWrite, OpTerminate) }

func TestAtomicAndImmediateMessagesUseDDPAsInFigure2(t *testing.T) {
	wantsFigure(t, OpImmediate, OpAtomicResponse)
	t.Run("Invalidate STag is ignored", func(t *testing.T) {
		s, p := withPeer(t, Config{IRD: 1, ORD: 1})
		r := s.memory(64, stag.LocalWrite|stag.RemoteAtomic|stag.RemoteInvalidate)
		s.post(8)
		s.submit(addOf(1, 8, 1))
		p.settle()
		p.send(atomicResponse(p.nextAtomic().RequestID, 0), invalidating(r.tag))
		p.send(untagged(OpImmediateSE, make([]byte, 8)), invalidating(r.tag))
		p.send(atomicRequest(AtomicRequest{STag: r.tag, TO: base}), invalidating(r.tag))
		if s.err != nil || len(s.delivered) != 1 || s.delivered[0].Invalidated != 0 || len(s.completed) != 1 || !r.entry.Valid() {
			t.Errorf("%v; delivered %+v; %d completed; region valid: %v", s.err, s.delivered, len(s.completed), r.entry.Valid())
		}
	})
}

func TestMessagesHaveTheHeadersOfFigure5(t *testing.T) {
	data := pattern(300, 3)
	s, p := withPeer(t, Config{IRD: 1, ORD: 1}, ddptest.Options{MULPDU: 128})
	r := s.memory(512, stag.LocalWrite|stag.RemoteRead)
	copy(r.mem, data)
	s.submit(writeOf(1, 2, data), sendOf(OpSend, data), sendOf(OpSendSE, data), invalidateOf(OpSendInvalidate, data, 9), invalidateOf(OpSendSEInvalidate, data, 9))
	p.settle()
	for _, op := range []Opcode{OpWrite, OpSend, OpSendSE, OpSendInvalidate, OpSendSEInvalidate} {
		if m := p.next(op); !bytes.Equal(m.data, data) || m.segments != 3 {
			t.Errorf("%v does not carry the ULP Message and nothing else", m)
		}
	}
	p.send(readRequest(ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 300, SrcSTag: r.tag, SrcTO: base}))
	if m := p.next(OpReadResponse); !bytes.Equal(m.data, data) || m.segments != 3 {
		t.Errorf("%v does not carry the ULP Message and nothing else", m)
	}
	s.submit(readOf(0x31323334, 0x4142434445464748, 0x01020304, 0x1112131415161718, 0x21222324))
	p.settle()
	if m := p.next(OpReadRequest); !bytes.Equal(m.data, codecTable[0].wire) {
		t.Errorf("the Read Request is %x; want %x", m.data, codecTable[0].wire)
	}
}

func TestUnusedAtomicFieldsAreSentAsTheRFCHasThem(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 2})
	add := addOf(0x01020304, 8, 5)
	add.Atomic.Reserved, add.Atomic.RequestID, add.Atomic.Compare = 1, 2, 3
	s.submit(add, swapOf(0x01020304, 8, 5, 6))
	p.settle()
	sum, swap := p.nextAtomic(), p.nextAtomic()
	if want := (AtomicRequest{RequestID: sum.RequestID, STag: 0x01020304, TO: 8, AddSwap: 5, CompareMask: ^uint64(0)}); sum != want {
		t.Errorf("FetchAdd is sent as %+v; want %+v", sum, want)
	}
	want := AtomicRequest{
		Op: AtomicCmpSwap, RequestID: swap.RequestID, STag: 0x01020304, TO: 8,
		AddSwap: 6, AddSwapMask: ^uint64(0), Compare: 5, CompareMask: ^uint64(0),
	}
	if swap != want || swap.RequestID == sum.RequestID {
		t.Errorf("CmpSwap is sent as %+v; want %+v, and an identifier of its own", swap, want)
	}
}

func TestReservedBitsAreSentZeroAndIgnored(t *testing.T) {
	t.Run("sent", func(t *testing.T) {
		// The referee looks at the control fields and the Invalidate STags, as in
		// every test. An operation's Invalidate counts only where it belongs.
		s, p := withPeer(t, Config{IRD: 2, ORD: 2})
		r := s.memory(64, stag.LocalWrite|stag.RemoteRead|stag.RemoteAtomic)
		for _, o := range []*Operation{
			sendOf(OpSend, []byte("sent")), sendOf(OpSendSE, nil), writeOf(1, 2, []byte("written")), readOf(1, 2, r.tag, base, 8),
			addOf(1, 8, 1), immediateOf(OpImmediate, Immediate{}), immediateOf(OpImmediateSE, Immediate{}),
		} {
			o.Invalidate, o.Atomic.Reserved = 0xFFFFFFFF, 1<<28-1
			s.submit(o)
		}
		p.send(readRequest(ReadRequest{Size: 7, SrcSTag: r.tag, SrcTO: base}))
		p.send(atomicRequest(AtomicRequest{STag: r.tag, TO: base}))
		for _, m := range p.ref.messages {
			if req, err := ParseAtomicRequest(m.data); m.op == OpAtomicRequest && (err != nil || req.Reserved != 0) {
				t.Errorf("Atomic Request %x, %v", m.data, err)
			}
		}
		if p.seen = len(p.ref.messages); p.seen != 9 {
			t.Errorf("%d messages were sent; want 9", p.seen)
		}
		p.send(tagged(OpWrite, 1, 2, []byte("no such STag")))
		p.terminate() // looks at the reserved bits of Terminate Control
	})
	t.Run("received", testReservedBitsAreIgnored)
}

func testReservedBitsAreIgnored(t *testing.T) {
	noise := change(func(s *ddp.Segment) { s.Control |= 0x3C })
	s, p := withPeer(t, Config{IRD: 2})
	r := s.memory(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead|stag.RemoteAtomic|stag.RemoteInvalidate)
	s.post(64, 64)
	bits := rdmapControl(func(c uint8) uint8 { return c | 0x30 })
	p.send(tagged(OpWrite, r.tag, base, []byte("written")), bits, noise)
	p.send(untagged(OpSend, []byte("sent")), bits, noise, invalidating(r.tag))
	p.send(untagged(OpSendSE, []byte("sent")), bits, noise, invalidating(r.tag))
	p.send(readRequest(ReadRequest{Size: 7, SrcSTag: r.tag, SrcTO: base}), bits, noise, invalidating(r.tag))
	p.send(atomicRequest(AtomicRequest{Reserved: 1<<28 - 1, STag: r.tag, TO: base + 8}), bits, noise, invalidating(r.tag))
	if s.err != nil || !r.entry.Valid() || len(s.delivered) != 2 || s.delivered[0].Invalidated != 0 {
		t.Fatalf("%v; delivered %+v", s.err, s.delivered)
	}
	if m := p.next(OpReadResponse); string(m.data) != "written" {
		t.Errorf("read %q", m.data)
	}
	p.next(OpAtomicResponse)
	p.send(terminateOf(Terminate{Code: CodeStreamCatastrophic, HdrCt: 0x1F, Rsvd: 0xFF}), bits, noise, invalidating(r.tag))
	if s.err != nil || s.term == nil || s.term.Code != CodeStreamCatastrophic {
		t.Errorf("%v; Terminate %v", s.err, s.term)
	}
}

func TestInvalidateSTagTravelsInRsvdULP(t *testing.T) {
	for _, op := range []Opcode{OpSendInvalidate, OpSendSEInvalidate} {
		s, p := withPeer(t, Config{}, ddptest.Options{MULPDU: 128})
		var wire [][]byte
		s.llp.see = func(b []byte) { wire = append(wire, b) }
		s.submit(invalidateOf(op, make([]byte, 200), 0xA1B2C3D4))
		p.settle()
		for _, b := range wire {
			if !bytes.Equal(b[1:6], []byte{0x40 | byte(op), 0xA1, 0xB2, 0xC3, 0xD4}) {
				t.Errorf("RsvdULP is %x", b[1:6])
			}
		}
		if len(wire) != 2 {
			t.Errorf("%d segments; want 2", len(wire))
		}
		r := s.memory(64, stag.RemoteRead|stag.RemoteInvalidate)
		s.post(64)
		p.send(untagged(op, nil), invalidating(r.tag))
		if want := (Delivery{Op: op, Invalidated: r.tag}); s.err != nil || len(s.delivered) != 1 || s.delivered[0] != want {
			t.Errorf("%v; delivered %+v; want %+v", s.err, s.delivered, want)
		}
	}
}

func TestMessagesAreIssuedInTheOrderSubmitted(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s, p := withPeer(t, Config{IRD: 8, ORD: 100}, ddptest.Options{MULPDU: 128, Room: 3})
		r := s.memory(512, stag.RemoteRead)
		var ops []*Operation
		for i := range 60 {
			data := pattern(rng.IntN(400), byte(i))
			ops = append(ops, []*Operation{
				sendOf(OpSend, data), sendOf(OpSendSE, data), invalidateOf(OpSendInvalidate, data, 7), invalidateOf(OpSendSEInvalidate, data, 7),
				writeOf(1, 2, data), readOf(1, 2, 3, 4, 5), immediateOf(OpImmediate, Immediate{}), immediateOf(OpImmediateSE, Immediate{}), addOf(1, 8, 1),
			}[rng.IntN(9)])
		}
		for rest := ops; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			s.submit(rest[:n]...)
			rest = rest[n:]
			for range rng.IntN(5) { // responses come between, and are not the ULP's
				p.push(readRequest(ReadRequest{Size: 300, SrcSTag: r.tag, SrcTO: base}))
			}
			p.settle()
		}
		var issued []Opcode
		for _, m := range p.ref.messages {
			if m.op != OpReadResponse {
				issued = append(issued, m.op)
			}
		}
		var want []Opcode
		for _, o := range ops {
			want = append(want, o.Op)
		}
		if !slices.Equal(issued, want) || !slices.Equal(s.submitted, ops) {
			t.Fatalf("seed %d: issued %v; want %v", seed, issued, want)
		}
		if len(issued) == len(p.ref.messages) {
			t.Fatalf("seed %d: no response came between", seed)
		}
	}
}
