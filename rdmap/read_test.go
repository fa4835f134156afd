package rdmap

import (
	"bytes"
	"slices"
	"testing"

	"urnic/ddp/ddptest"
	"urnic/stag"
)

func TestReadIsOneRequestAndOneResponse(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 1, ORD: 2}, ddptest.Options{MULPDU: 128})
	sink := s.memory(2000, stag.LocalWrite)
	// From two buffers of the peer, into two of ours: two Reads.
	first, second := readOf(0x101, 0x1000, sink.tag, base, 600), readOf(0x202, 0x2000, sink.tag, base+1000, 600)
	s.submit(first, second)
	p.settle()
	for _, want := range []ReadRequest{
		{SinkSTag: sink.tag, SinkTO: base, Size: 600, SrcSTag: 0x101, SrcTO: 0x1000},
		{SinkSTag: sink.tag, SinkTO: base + 1000, Size: 600, SrcSTag: 0x202, SrcTO: 0x2000},
	} {
		if got, err := ParseReadRequest(p.next(OpReadRequest).data); err != nil || got != want {
			t.Errorf("the Request is %v, %v; want %v", got, err, want)
		}
	}
	p.wantNothing()
	for i := range uint64(5) {
		p.send(tagged(OpReadResponse, sink.tag, base+100*i, pattern(100, byte(i))), more)
	}
	if len(s.completed) != 0 {
		t.Error("the Read was completed before the end of its Response")
	}
	p.send(tagged(OpReadResponse, sink.tag, base+500, pattern(100, 5)))
	if s.err != nil || !slices.Equal(s.completed, []*Operation{first}) {
		t.Errorf("%v; completed %v", s.err, s.completed)
	}

	// The peer reads 600 bytes of one buffer: one Response to one of its own.
	source := s.memory(600, stag.RemoteRead)
	copy(source.mem, pattern(600, 9))
	p.send(readRequest(ReadRequest{SinkSTag: 0x303, SinkTO: 7, Size: 600, SrcSTag: source.tag, SrcTO: base}))
	if m := p.next(OpReadResponse); m.tag != 0x303 || m.to != 7 || !bytes.Equal(m.data, source.mem) || m.segments != 6 {
		t.Errorf("the Response is %v", m)
	}
	p.wantNothing()
}

func TestReadResponseCopiesTheSinkFields(t *testing.T) {
	// They name memory of the peer: to this side they are just numbers.
	s, p := withPeer(t, Config{IRD: 1}, ddptest.Options{MULPDU: 128})
	source := s.memory(300, stag.RemoteRead)
	for _, want := range []ReadRequest{{SinkSTag: 0xDEADBEEF, SinkTO: 1<<64 - 200}, {}, {SinkSTag: source.tag, SinkTO: base}} {
		want.Size, want.SrcSTag, want.SrcTO = 300, source.tag, base
		p.send(readRequest(want))
		if m := p.next(OpReadResponse); m.tag != want.SinkSTag || m.to != want.SinkTO || len(m.data) != 300 {
			t.Errorf("the Response to %v is %v", want, m)
		}
	}
	if s.err != nil {
		t.Error(s.err)
	}
}

func TestReadIsAnsweredWithoutTheULP(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 1})
	source := s.memory(64, stag.RemoteRead)
	copy(source.mem, "answer")
	s.post(64)
	s.onNext = func() {
		if len(s.submitted) > 0 {
			t.Error("an operation was made of it")
		}
	}
	p.send(readRequest(ReadRequest{Size: 6, SrcSTag: source.tag, SrcTO: base}))
	if m := p.next(OpReadResponse); string(m.data) != "answer" {
		t.Errorf("%v: %q", m, m.data)
	}
	if s.err != nil || len(s.delivered)+len(s.completed)+len(s.failed) != 0 || s.term != nil || !bytes.Equal(s.buffers[0], make([]byte, 64)) {
		t.Errorf("%v; the ULP was told: delivered %+v, completed %v", s.err, s.delivered, s.completed)
	}
}

func TestReadRequestsAreAnsweredInOrder(t *testing.T) {
	for seed := range uint64(30) {
		s, p := withPeer(t, Config{IRD: 8}, ddptest.Options{Reorder: 8, Seed: seed, MULPDU: 128})
		source := s.memory(256, stag.RemoteRead|stag.RemoteAtomic|stag.LocalWrite)
		for i := range uint32(4) {
			p.push(readRequest(ReadRequest{SinkSTag: stag.STag(i), Size: 60 * i, SrcSTag: source.tag, SrcTO: base}))
			p.push(atomicRequest(AtomicRequest{RequestID: i, STag: source.tag, TO: base}))
		}
		p.settle()
		for i := range uint32(4) {
			if m := p.next(OpReadResponse); m.tag != stag.STag(i) || len(m.data) != 60*int(i) {
				t.Errorf("seed %d: Response %d is %v", seed, i, m)
			}
			if resp, err := ParseAtomicResponse(p.next(OpAtomicResponse).data); err != nil || resp.RequestID != i {
				t.Errorf("seed %d: Atomic Response %d is %v, %v", seed, i, resp, err)
			}
		}
		p.wantNothing()
	}
}

func TestZeroLengthReadIsAnsweredUnchecked(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 1})
	closed := s.memory(8, stag.LocalWrite)
	for _, source := range []ReadRequest{
		{SrcSTag: 0xFFFFFF00, SrcTO: 1 << 63},
		{SrcSTag: closed.tag, SrcTO: base},
		{SrcSTag: closed.tag, SrcTO: 1<<64 - 1},
	} {
		source.SinkSTag, source.SinkTO = 0x77, 0x88
		p.send(readRequest(source))
		if m := p.next(OpReadResponse); m.tag != 0x77 || m.to != 0x88 || len(m.data) != 0 || m.segments != 1 {
			t.Errorf("the Response to %v is %v", source, m)
		}
	}
	if s.err != nil {
		t.Error(s.err)
	}
}

func TestZeroLengthReadTakesAnyEmptyResponse(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 1})
	read := readOf(1, 2, 3, 4, 0)
	s.submit(read)
	p.settle()
	p.next(OpReadRequest)
	p.send(tagged(OpReadResponse, 0xFFFF, 0xFFFF, nil)) // STag and TO "MUST NOT be checked": RFC 5041 §5.2
	if s.err != nil || !slices.Equal(s.completed, []*Operation{read}) {
		t.Errorf("%v; completed %v", s.err, s.completed)
	}
}

func TestReadResponsesAreDeliveredInOrder(t *testing.T) {
	late := 0
	for seed := range uint64(50) {
		s, p := withPeer(t, Config{ORD: 3}, ddptest.Options{Reorder: 8, Seed: seed})
		sink := s.memory(90, stag.LocalWrite)
		var reads []*Operation
		for i := range uint64(3) {
			reads = append(reads, readOf(1, 2, sink.tag, base+30*i, 30))
		}
		s.onDone = func(o *Operation) {
			from := int(o.SinkTO - base)
			if !bytes.Equal(sink.mem[from:from+30], pattern(90, 1)[from:from+30]) {
				t.Errorf("seed %d: a Read was completed before all of its Response was there", seed)
			}
		}
		s.submit(reads...)
		p.settle()
		for i := range 9 {
			change := more
			if i%3 == 2 {
				change = ddpVersion(1) // the last of its message
			}
			p.push(tagged(OpReadResponse, sink.tag, base+uint64(10*i), pattern(90, 1)[10*i:10*i+10]), change)
		}
		for s.llp.Waiting() > 0 {
			if s.receive(); len(s.completed) < 2 && !bytes.Equal(sink.mem[60:], make([]byte, 30)) {
				late++ // part of the third Response was placed before the second was complete
			}
		}
		if s.err != nil || !slices.Equal(s.completed, reads) {
			t.Errorf("seed %d: %v; completed %v", seed, s.err, s.completed)
		}
	}
	if late == 0 {
		t.Error("no seed brought a Response early")
	}
}

func TestReadStartsOnlyWhenItsRequestIsDelivered(t *testing.T) {
	for _, size := range []uint32{0, 8} {
		s, p := withPeer(t, Config{IRD: 1})
		r := s.memory(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead)
		s.post(8)
		// The Request overtakes a Write and a Send.
		p.inject(2, readRequest(ReadRequest{Size: size, SrcSTag: r.tag, SrcTO: base}))
		p.wantNothing()
		p.inject(1, untagged(OpSend, nil))
		p.wantNothing()
		p.inject(0, tagged(OpWrite, r.tag, base, []byte("new data")))
		if m := p.next(OpReadResponse); string(m.data) != "new data"[:size] || s.err != nil {
			t.Errorf("read %q; %v", m.data, s.err)
		}
	}
}

func TestReadSeesWhatWasWrittenBefore(t *testing.T) {
	for seed := range uint64(30) {
		s, p := withPeer(t, Config{IRD: 4}, ddptest.Options{Reorder: 4, Seed: seed})
		r := s.memory(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead)
		for i := range byte(4) { // each its own place: later Writes may overtake a Response
			p.push(tagged(OpWrite, r.tag, base+8*uint64(i), pattern(8, i)))
			p.push(readRequest(ReadRequest{Size: 8, SrcSTag: r.tag, SrcTO: base + 8*uint64(i)}))
		}
		p.settle()
		for i := range byte(4) {
			if m := p.next(OpReadResponse); !bytes.Equal(m.data, pattern(8, i)) {
				t.Errorf("seed %d: Read %d got %x", seed, i, m.data)
			}
		}
	}
}

func TestOperationCanBeSubmittedAgain(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 1})
	sink := s.memory(8, stag.LocalWrite)
	read := readOf(1, 2, sink.tag, base, 8)
	for range 3 {
		s.submit(read)
		p.settle()
		p.next(OpReadRequest)
		p.send(tagged(OpReadResponse, sink.tag, base, make([]byte, 8)))
	}
	if s.err != nil || len(s.completed) != 3 {
		t.Errorf("%v; %d completed", s.err, len(s.completed))
	}
}
