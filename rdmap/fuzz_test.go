package rdmap

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"urnic/ddp"
	"urnic/pd"
	"urnic/stag"
)

// instructionLen is the length of one instruction of a fuzzed peer: what it
// does, three arguments, and a place and a value to spoil it with.
const instructionLen = 6

const (
	notLast = 0x80 // the segment is not the last of its message
	later   = 0x40 // the side does not react yet
	swapped = 0x20 // the segment comes after the next one
)

// secret is what memory holds until the peer places something there, which is
// never this. Memory that the peer may read holds other bytes.
const secret = 0xA5

// A plot is memory of a side with a margin on both ends.
type plot struct {
	region
	all    []byte // with the margins
	before []byte // all, as it was
	open   [2]int // the bytes of the region that the peer may change
}

const margin = 16

// The plots, by their index.
const (
	plotWritten = iota
	plotRead
	plotAtomic
	plotSink
	plotOtherStream
	plotOtherPD
	plotDoomed
	numPlots

	sinkFrom, sinkTo = 16, 48 // bytes of the sink that Reads go to
)

// A hostile is a peer that does what the fuzzer's bytes say.
type hostile struct {
	*peer
	plots  [numPlots]plot
	order  uint64
	held   []byte // a segment that comes after the next one
	frozen bool   // the stream has ended: nothing may change any more
}

func newHostile(t *testing.T) *hostile {
	s, p := withPeer(t, Config{IRD: 2, ORD: 2})
	h := &hostile{peer: p}
	other, _ := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
	all := stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead | stag.RemoteAtomic | stag.RemoteInvalidate
	for i, access := range [numPlots]stag.Access{
		stag.LocalWrite | stag.RemoteWrite, stag.RemoteRead, stag.LocalWrite | stag.RemoteAtomic, stag.LocalWrite,
		all, all, stag.RemoteRead | stag.RemoteInvalidate,
	} {
		b := bytes.Repeat([]byte{secret}, 64+2*margin)
		mem, d := b[margin:len(b)-margin], s.domain
		memory := stag.Memory{Mem: mem, Base: base, Access: access}
		switch i {
		case plotRead, plotDoomed:
			copy(mem, bytes.Repeat([]byte{byte(i)}, len(mem)))
		case plotOtherStream:
			memory.Stream = s.scope.Stream + 1
		case plotOtherPD:
			d = other
		}
		e, err := s.table.Register(d, memory)
		if err != nil {
			t.Fatal(err)
		}
		h.plots[i] = plot{region: region{mem, e.STag(), e}, all: b, before: bytes.Clone(b)}
	}
	h.plots[plotWritten].open, h.plots[plotAtomic].open = [2]int{0, 64}, [2]int{0, 64}
	h.plots[plotSink].open = [2]int{sinkFrom, sinkTo}
	s.post(40, 16, 64)
	for _, b := range s.buffers {
		copy(b, bytes.Repeat([]byte{secret}, len(b)))
		s.immediate = append(s.immediate, Immediate(bytes.Repeat([]byte{secret}, ImmediateLen)))
	}
	s.onDeliver = func(d Delivery) {
		if content := s.contents[len(s.contents)-1]; bytes.IndexByte(content, secret) >= 0 {
			t.Fatalf("%+v has octets that nobody sent: %x", d, content)
		}
	}
	s.onDone = func(o *Operation) {
		if o.Length > 0 && bytes.IndexByte(h.plots[plotSink].mem[sinkFrom:sinkFrom+o.Length], secret) >= 0 {
			t.Fatalf("a Read is complete without all of its octets: %x", h.plots[plotSink].mem)
		}
	}
	return h
}

// inject sends the bytes of a segment, or holds them back.
func (h *hostile) inject(b []byte, flags byte) {
	if seg, err := ddp.ParseSegment(b); err == nil && (seg.Control.Tagged() || seg.Untagged.QN == QueueSend) {
		for i, v := range seg.Payload {
			if v == secret {
				seg.Payload[i] = 0
			}
		}
	}
	if flags&swapped != 0 && h.held == nil {
		h.held = b
		return
	}
	if h.held != nil {
		h.llp.Inject(b, h.order+1)
		h.llp.Inject(h.held, h.order)
		h.order, h.held = h.order+2, nil
		return
	}
	h.llp.Inject(b, h.order)
	h.order++
}

// do carries one instruction out, and returns the rest of the program.
func (h *hostile) do(in, rest []byte) []byte {
	s, a, b, c := h.side, in[1], in[2], in[3]
	target := &h.plots[a%numPlots]
	data := pattern(int(c)%80, 0x40) // some of these bytes are in no plot
	to := base + uint64(int64(int8(b)))
	var seg ddp.Segment
	switch in[0] & 0x1F {
	case 0:
		seg = tagged(OpWrite, target.tag, to, data)
	case 1:
		seg = tagged(OpReadResponse, h.plots[plotSink].tag, base+sinkFrom+uint64(int64(int8(b))), data)
		if first, ok := s.stream.depths.firstOutbound(); ok && first.op != nil {
			seg.Tagged.TO += uint64(first.op.received)
		}
	case 2:
		seg = untagged(OpSend+Opcode(a%4), data)
		invalidating(h.plots[a>>4%numPlots].tag)(&seg)
		mo(uint32(b))(&seg)
	case 3:
		seg = untagged(OpImmediate+Opcode(a%2), data[:min(len(data), 9)])
		mo(uint32(b))(&seg)
	case 4:
		seg = readRequest(ReadRequest{SinkSTag: 1, SinkTO: 2, Size: uint32(c), SrcSTag: target.tag, SrcTO: to})
	case 5:
		seg = atomicRequest(AtomicRequest{
			Op: AtomicOp(a >> 4), RequestID: 3, STag: target.tag, TO: to, AddSwap: uint64(c), AddSwapMask: ^uint64(0),
		})
	case 6:
		first, _ := s.stream.depths.firstOutbound()
		seg = atomicResponse(first.requestID+uint32(a), uint64(b))
	case 7:
		seg = terminateOf(Terminate{Code: TermCode(binary.BigEndian.Uint16(in[2:])), HdrCt: a, DDPHeader: data})
	case 8:
		h.submit(a, target.tag, to, data)
		return rest
	case 9:
		_ = s.table.Invalidate(target.tag, s.scope)
		return rest
	case 10:
		if a%2 == 0 {
			_, _ = s.stream.Transmit(s)
		} else {
			s.receiveAll()
		}
		return rest
	case 11:
		s.stream.Fail(&Error{Code: TermCode(binary.BigEndian.Uint16(in[2:]))})
		return rest
	case 12:
		_ = h.llp.CloseWrite()
		return rest
	default: // a segment of bytes as they come
		n := min(int(c)%80, len(rest))
		h.inject(bytes.Clone(rest[:n]), in[0])
		return rest[n:]
	}
	if in[0]&notLast != 0 {
		more(&seg)
	}
	octets := h.make(seg)
	octets[int(in[4])%len(octets)] ^= in[5]
	h.inject(octets, in[0])
	return rest
}

// submit has the side's ULP begin an operation.
func (h *hostile) submit(kind byte, tag stag.STag, to uint64, data []byte) {
	h.side.submit([]*Operation{
		readOf(tag, to, h.plots[plotSink].tag, base+sinkFrom, uint64(min(len(data), sinkTo-sinkFrom))),
		addOf(tag, to, 1),
		sendOf(OpSend, data),
		writeOf(tag, to, data),
		immediateOf(OpImmediate, Immediate{}),
		{Op: Opcode(kind), Length: 10, Payload: brokenPayload{}},
	}[kind%6])
}

// check wants that nothing has happened that must not.
func (h *hostile) check() {
	h.t.Helper()
	s := h.side
	for i := range h.plots {
		p := &h.plots[i]
		now, open := bytes.Clone(p.all), p.open
		if !h.frozen {
			copy(p.before[margin+open[0]:margin+open[1]], now[margin+open[0]:])
		}
		if !bytes.Equal(now, p.before) {
			h.t.Fatalf("plot %d, ended: %v: holds %x; want %x", i, h.frozen, now, p.before)
		}
	}
	for i, d := range s.delivered {
		if d.Op != OpImmediate && d.Op != OpImmediateSE && !bytes.Equal(s.buffers[i][:d.Length], s.contents[i]) {
			h.t.Fatalf("buffer %d has changed after its delivery: %x", i, s.buffers[i])
		}
	}
	var reads []*Operation
	for _, o := range s.submitted {
		if o.isRead() {
			reads = append(reads, o)
		}
	}
	if n := len(s.completed); n > len(reads) || !slices.Equal(s.completed, reads[:n]) {
		h.t.Fatalf("completed %v of %v", s.completed, reads)
	}
	if n, m := s.stream.Outstanding(), s.stream.Answering(); n > 2 || m > 2 || s.terms > 1 {
		h.t.Fatalf("%d outstanding, %d being answered, %d Terminates delivered", n, m, s.terms)
	}
	for _, m := range h.ref.messages[h.seen:] {
		if m.op == OpReadResponse && bytes.IndexByte(m.data, secret) >= 0 {
			h.t.Fatalf("the peer has read %x", m.data)
		}
	}
	h.seen = len(h.ref.messages)
	h.frozen = s.err != nil || s.term != nil
}

// FuzzStream lets a peer do whatever it likes to a stream with receive buffers,
// regions of all kinds, and Reads and atomics outstanding.
func FuzzStream(f *testing.F) {
	f.Fuzz(func(t *testing.T, program []byte) {
		h := newHostile(t)
		for n := 0; len(program) >= instructionLen && n < 100; n++ {
			in := program[:instructionLen]
			program = h.do(in, program[instructionLen:])
			if in[0]&later == 0 {
				h.settle()
			}
			h.check()
		}
		h.settle()
		h.check()
		// Whatever it was, the stream ends with it or can be ended.
		_ = h.llp.CloseWrite()
		for i := 0; !h.side.lost; i++ {
			h.side.receive()
			h.side.transmit()
			if h.collect(); i > 2 {
				t.Fatalf("the stream does not end: %v", h.side.err)
			}
		}
		if e := h.side.stream.terminate.Load(); e != nil && h.side.term == nil && !h.ref.ended {
			t.Fatalf("no Terminate tells of %v", e)
		}
	})
}
