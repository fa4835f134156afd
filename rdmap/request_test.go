package rdmap

import (
	"bytes"
	"errors"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/pd"
	"urnic/stag"
)

// sourceRights are those of the region that requests go to.
const sourceRights = stag.LocalWrite | stag.RemoteRead | stag.RemoteWrite | stag.RemoteAtomic

// wrongSources are STags and ranges of 16 bytes that must be refused, with the
// codes of RDMAP. A region of 64 bytes is at base, another ends at 2^64-1.
var wrongSources = []struct {
	name   string
	source func(s *side) (stag.STag, uint64)
	want   TermCode
}{
	{"STag not valid", func(s *side) (stag.STag, uint64) { return s.memory(64, sourceRights).tag ^ 1, base }, 0x0100},
	{"STag 0", func(*side) (stag.STag, uint64) { return 0, 0 }, 0x0100},
	{"STag invalidated", func(s *side) (stag.STag, uint64) {
		r := s.memory(64, sourceRights)
		if err := s.table.Invalidate(r.tag, s.scope); err != nil {
			s.t.Fatal(err)
		}
		return r.tag, base
	}, 0x0100},
	{"STag of another stream", func(s *side) (stag.STag, uint64) {
		return s.register(stag.Memory{Mem: make([]byte, 64), Base: base, Access: sourceRights, Stream: 77}).tag, base
	}, 0x0103},
	{"STag of another PD", func(s *side) (stag.STag, uint64) {
		d, _ := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
		e, err := s.table.Register(d, stag.Memory{Mem: make([]byte, 64), Base: base, Access: sourceRights})
		if err != nil {
			s.t.Fatal(err)
		}
		return e.STag(), base
	}, 0x0103},
	{"missing right", func(s *side) (stag.STag, uint64) { return s.memory(64, stag.LocalWrite|stag.RemoteWrite).tag, base }, 0x0102},
	{"TO out of range", func(s *side) (stag.STag, uint64) { return s.memory(64, sourceRights).tag, base - 8 }, 0x0101},
	{"TO far out of range", func(s *side) (stag.STag, uint64) { return s.memory(64, sourceRights).tag, base + 72 }, 0x0101},
	{"end out of range", func(s *side) (stag.STag, uint64) { return s.memory(64, sourceRights).tag, base + 60 }, 0x0101},
	{"TO wraps", func(s *side) (stag.STag, uint64) {
		return s.register(stag.Memory{Mem: make([]byte, 64), Base: 1<<64 - 65, Access: sourceRights}).tag, 1<<64 - 5
	}, 0x0104},
	// Two faults at once: the check that comes first tells.
	{"STag not valid before TO", func(s *side) (stag.STag, uint64) { return s.memory(64, sourceRights).tag ^ 1, 0 }, 0x0100},
	{"stream before right", func(s *side) (stag.STag, uint64) {
		return s.register(stag.Memory{Mem: make([]byte, 64), Base: base, Stream: 77}).tag, base
	}, 0x0103},
	{"right before TO", func(s *side) (stag.STag, uint64) { return s.memory(64, stag.LocalWrite).tag, 0 }, 0x0102},
}

func TestReadRequestChecksInOrder(t *testing.T) {
	for _, tt := range wrongSources {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{IRD: 1})
			tag, to := tt.source(s)
			r := ReadRequest{SinkSTag: 0x123, SinkTO: 0x456, Size: 16, SrcSTag: tag, SrcTO: to}
			p.push(readRequest(r))
			if s.receiveAll(); s.err == nil { // nothing is read before all of the range is checked
				t.Error("the request was taken")
			}
			p.settle()
			p.wantTerminateOfRead(tt.want, r)
		})
	}
	t.Run("version first", func(t *testing.T) {
		_, p := withPeer(t, Config{IRD: 1})
		p.send(readRequest(ReadRequest{Size: 16}), rdmapVersion(2))
		p.wantTerminate(CodeInvalidVersion)
	})
	t.Run("length first", func(t *testing.T) {
		_, p := withPeer(t, Config{IRD: 1})
		p.send(untagged(OpReadRequest, make([]byte, 27)))
		p.wantTerminate(CodeOperationUnspecified)
	})
}

func TestTaggedChecksInOrder(t *testing.T) {
	// RDMAP's codes, and those of DDP for the same fault.
	codes := map[TermCode]TermCode{0x0100: 0x1100, 0x0101: 0x1101, 0x0102: 0x1102, 0x0103: 0x1102, 0x0104: 0x1103}
	try := func(t *testing.T, s *side, p *peer, tag stag.STag, to uint64, want TermCode) {
		t.Helper()
		p.send(tagged(OpWrite, tag, to, make([]byte, 16)))
		p.wantTerminate(want)
		access := (*stag.AccessError)(nil)
		if !errors.As(s.err, &access) || access.STag != tag || access.TO != to || access.Len != 16 {
			t.Errorf("the error does not tell the access: %v", s.err)
		}
	}
	for _, tt := range wrongSources {
		if tt.name == "missing right" { // which is another one here
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{})
			tag, to := tt.source(s)
			try(t, s, p, tag, to, codes[tt.want])
		})
	}
	t.Run("placement not allowed", func(t *testing.T) {
		s, p := withPeer(t, Config{})
		r := s.memory(64, stag.LocalWrite|stag.RemoteRead|stag.RemoteAtomic)
		try(t, s, p, r.tag, base, 0x1102)
		if !bytes.Equal(r.mem, make([]byte, 64)) {
			t.Error("the memory has changed")
		}
	})
	t.Run("DDP before opcode and version", func(t *testing.T) {
		for _, c := range []change{opcode(uint8(OpSend)), rdmapVersion(3)} {
			_, p := withPeer(t, Config{})
			p.send(tagged(OpWrite, 1, base, make([]byte, 16)), c)
			p.wantTerminate(0x1100)
		}
	})
}

func TestAtomicRequestChecksInOrder(t *testing.T) {
	for _, tt := range wrongSources {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{IRD: 1})
			tag, to := tt.source(s)
			p.send(atomicRequest(AtomicRequest{STag: tag, TO: to}))
			p.wantTerminate(tt.want) // the RDMA header is only for Read Requests
		})
	}
	t.Run("code first", func(t *testing.T) {
		_, p := withPeer(t, Config{IRD: 1})
		p.send(atomicRequest(AtomicRequest{Op: 1}))
		p.wantTerminate(CodeUnexpectedOpcode)
	})
}

// The region of a Read is closed when part of the Response is out: "the RDMA
// Read Request Header is updated to reflect the current location" (RFC 5040
// §4.8).
func TestTerminateTellsHowFarAReadHasCome(t *testing.T) {
	const perSegment = 128 - 14
	for sent := range 4 {
		s, p := withPeer(t, Config{IRD: 2}, ddptest.Options{MULPDU: 128, Room: 1})
		source := s.memory(400, stag.RemoteRead)
		r := ReadRequest{SinkSTag: 0x123, SinkTO: 1<<32 - 100, Size: 380, SrcSTag: source.tag, SrcTO: base + 20}
		p.push(readRequest(r))
		captured := p.last
		p.push(readRequest(ReadRequest{})) // a second one waits
		s.receiveAll()
		for range sent {
			if idle, err := s.stream.Transmit(s); idle || err != nil {
				t.Fatalf("idle %v, %v", idle, err)
			}
			if _, err := s.llp.Flush(true); err != nil {
				t.Fatal(err)
			}
		}
		if err := source.entry.Deregister(); err != nil {
			t.Fatal(err)
		}
		p.settle()
		gone := uint64(sent * perSegment)
		r.SinkTO, r.SrcTO, r.Size = r.SinkTO+gone, r.SrcTO+gone, r.Size-uint32(gone)
		header, _ := r.AppendBinary(nil)
		p.wantCapture(0x0100, captured, header)
		if len(s.failed)+len(s.submitted) != 0 {
			t.Error("the ULP was told of an operation")
		}
	}
}

func TestAtomicWhoseRegionIsClosedTerminates(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 1})
	r := s.memory(8, sourceRights)
	p.push(atomicRequest(AtomicRequest{STag: r.tag, TO: base}))
	s.receiveAll()
	if err := r.entry.Deregister(); err != nil {
		t.Fatal(err)
	}
	p.settle()
	p.wantTerminate(0x0100)
}

// Between a request and its response the region may have become another one of
// the same STag: the checks are made again.
func TestRequestIsCheckedAgainWhenItsTurnComes(t *testing.T) {
	read := func(tag stag.STag) ddp.Segment {
		return readRequest(ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 16, SrcSTag: tag, SrcTO: base})
	}
	add := func(tag stag.STag) ddp.Segment { return atomicRequest(AtomicRequest{STag: tag, TO: base, AddSwap: 1}) }
	for _, tt := range []struct {
		name    string
		request func(stag.STag) ddp.Segment
		then    func(m *stag.Memory)
		want    TermCode
	}{
		{"Read, missing right", read, func(m *stag.Memory) { m.Access &^= stag.RemoteRead }, 0x0102},
		{"Read, another stream's", read, func(m *stag.Memory) { m.Stream = 99 }, 0x0103},
		{"Read, out of bounds", read, func(m *stag.Memory) { m.Mem = m.Mem[:15] }, 0x0101},
		{"atomic, missing right", add, func(m *stag.Memory) { m.Access &^= stag.RemoteAtomic }, 0x0102},
		{"atomic, out of bounds", add, func(m *stag.Memory) { m.Base++ }, 0x0101},
		{"atomic, unaligned", add, func(m *stag.Memory) { m.Mem = m.Mem[4:] }, 0x0207},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{IRD: 1})
			e, err := s.table.Allocate(s.domain, 64)
			if err != nil {
				t.Fatal(err)
			}
			m := stag.Memory{Mem: make([]byte, 64), Base: base, Access: sourceRights}
			register := func() {
				if err := e.FastRegister(m, e.STag().Key()+1); err != nil {
					t.Fatal(err)
				}
			}
			register()
			tag := e.STag()
			p.push(tt.request(tag))
			s.receiveAll()
			tt.then(&m)
			for again := false; !again; again = e.STag() == tag { // the key has come round
				if err := s.table.Invalidate(e.STag(), stag.Scope{Domain: s.domain, Stream: 99}); err != nil {
					t.Fatal(err)
				}
				register()
			}
			p.settle()
			if term := p.terminate(); term.Code != tt.want || !term.D() {
				t.Errorf("Terminate %v; want %v", &term, tt.want)
			}
			if !bytes.Equal(m.Mem, make([]byte, len(m.Mem))) {
				t.Errorf("the region holds %x", m.Mem)
			}
		})
	}
}

// A request in several segments is one that no good peer sends; what Terminate
// captures of it is the last one.
func TestTerminateCapturesTheLastSegmentOfARequest(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 1})
	r := s.memory(64, sourceRights)
	read := ReadRequest{Size: 64, SrcSTag: r.tag, SrcTO: base}
	header, _ := read.AppendBinary(nil)
	p.push(untagged(OpReadRequest, header[:20]), more)
	p.push(untagged(OpReadRequest, header[20:]), mo(20))
	s.receiveAll()
	if err := r.entry.Deregister(); err != nil {
		t.Fatal(err)
	}
	p.settle()
	p.wantTerminateOfRead(0x0100, read)
}
