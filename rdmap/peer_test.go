package rdmap

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/stag"
)

// A peer is the other end of a side under test: its segments are written by
// hand. What it receives has been past a referee.
type peer struct {
	t    testing.TB
	side *side
	llp  *ddptest.LLP
	msn  [NumQueues + 4]uint32 // of the last message
	last []byte                // the segment that was sent last
	ref  referee
	seen int // messages that the test has asked for
}

// withPeer returns a side and the peer that it is connected to.
func withPeer(t testing.TB, cfg Config, o ...ddptest.Options) (*side, *peer) {
	t.Helper()
	var options ddptest.Options
	if len(o) > 0 {
		options = o[0]
	}
	a, b := ddptest.Pair(options)
	p := &peer{t: t, side: newSide(t, a, cfg), llp: b}
	return p.side, p
}

// send sends one segment, with some fields changed, and lets the side react.
func (p *peer) send(seg ddp.Segment, changes ...change) {
	p.t.Helper()
	p.push(seg, changes...)
	p.settle()
}

// push sends one segment, which the side does not see yet.
func (p *peer) push(seg ddp.Segment, changes ...change) {
	p.t.Helper()
	p.raw(p.make(seg, changes...))
}

// inject sends one segment with a place in the order of the LLP, which may be
// ahead of others that are still to come, and lets the side react.
func (p *peer) inject(order uint64, seg ddp.Segment, changes ...change) {
	p.t.Helper()
	p.last = p.make(seg, changes...)
	p.llp.Inject(p.last, order)
	p.settle()
}

// make returns a segment with its MSN and with some fields changed.
func (p *peer) make(seg ddp.Segment, changes ...change) []byte {
	if !seg.Control.Tagged() {
		seg.Untagged.MSN = p.msn[seg.Untagged.QN] + 1
	}
	for _, c := range changes {
		c(&seg)
	}
	seg.Tagged.Control, seg.Untagged.Control = seg.Control, seg.Control
	if h := seg.Untagged; !seg.Control.Tagged() && seg.Control.Last() && h.QN < uint32(len(p.msn)) {
		p.msn[h.QN] = h.MSN
	}
	b, _ := seg.AppendBinary(nil)
	return b
}

// raw sends bytes as one segment.
func (p *peer) raw(b []byte) {
	p.t.Helper()
	p.last = b
	if ok, err := p.llp.Post(b, nil, false); !ok || err != nil {
		p.t.Fatalf("post: %v, %v", ok, err)
	}
	if _, err := p.llp.Flush(true); err != nil {
		p.t.Fatal(err)
	}
}

// settle lets the side react, and takes what it sends.
func (p *peer) settle() {
	p.t.Helper()
	p.side.settle()
	p.collect()
}

// collect takes what the side has sent, in the order in which it was sent.
func (p *peer) collect() {
	p.t.Helper()
	came := map[uint64][]byte{}
	for p.llp.Waiting() > 0 {
		if err := p.llp.Receive(func(b []byte, order uint64) error {
			came[order] = b
			return nil
		}); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, order := range slices.Sorted(maps.Keys(came)) {
		if err := p.ref.see(came[order]); err != nil {
			p.t.Fatalf("the side broke a rule: %v", err)
		}
	}
}

// next returns the next message of the side that the test has not asked for.
func (p *peer) next(op Opcode) message {
	p.t.Helper()
	p.collect()
	if p.seen == len(p.ref.messages) {
		p.t.Fatalf("the side sent nothing; want a %v", op)
	}
	m := p.ref.messages[p.seen]
	p.seen++
	if m.op != op {
		p.t.Fatalf("the side sent %v; want a %v", m, op)
	}
	return m
}

// nextAtomic returns the Atomic Request that must come next.
func (p *peer) nextAtomic() AtomicRequest {
	p.t.Helper()
	r, err := ParseAtomicRequest(p.next(OpAtomicRequest).data)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// wantNothing fails the test if the side has sent anything else.
func (p *peer) wantNothing() {
	p.t.Helper()
	p.collect()
	if rest := p.ref.messages[p.seen:]; len(rest) > 0 {
		p.t.Errorf("the side sent %v; want nothing", rest)
	}
}

// terminate returns the Terminate that must be all that the side sends now.
func (p *peer) terminate() Terminate {
	p.t.Helper()
	m := p.next(OpTerminate)
	p.wantNothing()
	term, err := ParseTerminate(m.data)
	if err != nil || len(term.Rest) > 0 || m.segments != 1 || m.msn != 1 {
		p.t.Fatalf("%v: %x, %v", m, m.data, err)
	}
	if m.data[2]&0x1F != 0 || m.data[3] != 0 {
		p.t.Errorf("Terminate %x has reserved bits that are not zero", m.data)
	}
	return term
}

// wantTerminate wants a Terminate that captures the last segment that the peer
// sent: with its DDP header and length, and no RDMA header.
func (p *peer) wantTerminate(word TermCode) {
	p.t.Helper()
	p.wantCapture(word, p.last, nil)
}

// wantTerminateOfRead wants one with an RDMA Read Request Header too.
func (p *peer) wantTerminateOfRead(word TermCode, r ReadRequest) {
	p.t.Helper()
	header, _ := r.AppendBinary(nil)
	p.wantCapture(word, p.last, header)
}

// wantBareTerminate wants a Terminate without any header.
func (p *peer) wantBareTerminate(word TermCode) {
	p.t.Helper()
	if term := p.terminate(); term.Code != word || term.HdrCt != 0 {
		p.t.Errorf("Terminate %v with HdrCt %#02x; want %v and no header", &term, term.HdrCt, word)
	}
}

func (p *peer) wantCapture(word TermCode, segment, rdma []byte) {
	p.t.Helper()
	hdrct := uint8(0xC0)
	if rdma != nil {
		hdrct = 0xE0
	}
	n := ddp.UntaggedHeaderLen
	if segment[0]&0x80 != 0 {
		n = ddp.TaggedHeaderLen
	}
	header := segment[:n]
	term := p.terminate()
	if term.Code != word || term.HdrCt != hdrct {
		p.t.Errorf("Terminate %v, HdrCt %#02x; want %v, %#02x. %v", &term, term.HdrCt, word, hdrct, p.side.err)
	}
	if int(term.SegmentLen) != len(segment) || !bytes.Equal(term.DDPHeader, header) {
		p.t.Errorf("Terminate captures %x of %d octets; want %x of %d", term.DDPHeader, term.SegmentLen, header, len(segment))
	}
	if !bytes.Equal(term.RDMAHeader, rdma) {
		p.t.Errorf("Terminate has RDMA header %x; want %x", term.RDMAHeader, rdma)
	}
}

// The segments as a good peer sends them: last segments, each a whole message.

func tagged(op Opcode, tag stag.STag, to uint64, data []byte) ddp.Segment {
	return ddp.Segment{Control: 0xC1, Tagged: ddp.TaggedHeader{RsvdULP: 0x40 | byte(op), STag: tag, TO: to}, Payload: data}
}

func untagged(op Opcode, data []byte) ddp.Segment {
	return ddp.Segment{Control: 0x41, Untagged: ddp.UntaggedHeader{RsvdULP: [5]byte{0x40 | byte(op)}, QN: op.Queue()}, Payload: data}
}

func readRequest(r ReadRequest) ddp.Segment {
	b, _ := r.AppendBinary(nil)
	return untagged(OpReadRequest, b)
}

func atomicRequest(r AtomicRequest) ddp.Segment {
	b, _ := r.AppendBinary(nil)
	return untagged(OpAtomicRequest, b)
}

func atomicResponse(id uint32, original uint64) ddp.Segment {
	b, _ := AtomicResponse{RequestID: id, Original: original}.AppendBinary(nil)
	return untagged(OpAtomicResponse, b)
}

func terminateOf(t Terminate) ddp.Segment {
	b, _ := t.AppendBinary(nil)
	return untagged(OpTerminate, b)
}

// A change makes one field of a segment other than it should be.
type change func(*ddp.Segment)

func more(s *ddp.Segment) { s.Control &^= 0x40 } // not the last of its message

func ddpVersion(v uint8) change {
	return func(s *ddp.Segment) { s.Control = s.Control&^3 | ddp.Control(v) }
}

// rdmap changes RDMAP's control field.
func rdmapControl(f func(c uint8) uint8) change {
	return func(s *ddp.Segment) {
		s.Tagged.RsvdULP, s.Untagged.RsvdULP[0] = f(s.Tagged.RsvdULP), f(s.Untagged.RsvdULP[0])
	}
}

func rdmapVersion(v uint8) change {
	return rdmapControl(func(c uint8) uint8 { return c&0x3F | v<<6 })
}

func opcode(o uint8) change { return rdmapControl(func(c uint8) uint8 { return c&0xF0 | o }) }
func queue(qn uint32) change {
	return func(s *ddp.Segment) { s.Untagged.QN, s.Untagged.MSN = qn, 1 }
}
func msn(n uint32) change { return func(s *ddp.Segment) { s.Untagged.MSN = n } }
func mo(n uint32) change  { return func(s *ddp.Segment) { s.Untagged.MO = n } }
func invalidating(tag stag.STag) change {
	return func(s *ddp.Segment) {
		s.Untagged.RsvdULP = [5]byte{s.Untagged.RsvdULP[0], byte(tag >> 24), byte(tag >> 16), byte(tag >> 8), byte(tag)}
	}
}
