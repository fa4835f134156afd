package rdmap

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/stag"
)

func TestTerminateCapturesTheFirstError(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(s *side, p *peer) []byte // returns what Terminate captures
		want TermCode
	}{
		{"of two bad messages", func(s *side, p *peer) []byte {
			p.push(tagged(OpWrite, 0x100, 1, []byte{1}))
			first := p.last
			p.push(untagged(OpSend, nil), opcode(14))
			return first
		}, 0x1100},
		{"a bad message, then the ULP", func(s *side, p *peer) []byte {
			p.push(untagged(OpSend, nil))
			s.receiveAll()
			if s.stream.Fail(&Error{Code: CodeGlobalCatastrophic}) {
				t.Error("the second error counted as the first")
			}
			return p.last
		}, 0x1202},
		{"the ULP, then a bad message", func(s *side, p *peer) []byte {
			if !s.stream.Fail(&Error{Code: CodeGlobalCatastrophic}) {
				t.Error("the first error did not count")
			}
			p.push(untagged(OpSend, nil))
			return nil
		}, 0x0208},
		{"a bad message, then an operation that can't be made", func(s *side, p *peer) []byte {
			p.push(untagged(OpSend, nil))
			s.submit(&Operation{Op: OpSend, Length: 1})
			s.receiveAll()
			return p.last
		}, 0x1202},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{})
			captured := tt.act(s, p)
			p.settle()
			if captured == nil {
				p.wantBareTerminate(tt.want)
			} else {
				p.wantCapture(tt.want, captured, nil)
			}
		})
	}
	t.Run("of two Reads whose regions are closed", func(t *testing.T) {
		s, p := withPeer(t, Config{IRD: 2})
		first, second := s.memory(8, stag.RemoteRead), s.memory(8, stag.RemoteRead)
		r := ReadRequest{Size: 8, SrcSTag: first.tag, SrcTO: base}
		p.push(readRequest(r))
		captured := p.last
		p.push(readRequest(ReadRequest{Size: 8, SrcSTag: second.tag, SrcTO: base}))
		s.receiveAll()
		if err := errors.Join(second.entry.Deregister(), first.entry.Deregister()); err != nil {
			t.Fatal(err)
		}
		p.settle()
		header, _ := r.AppendBinary(nil)
		p.wantCapture(0x0100, captured, header)
	})
}

func TestTerminateIsTheLastMessage(t *testing.T) {
	t.Run("sent", func(t *testing.T) {
		s, p := withPeer(t, Config{IRD: 4, ORD: 4})
		source := s.memory(8, stag.RemoteRead)
		s.stream.Fail(&Error{Code: CodeStreamCatastrophic})
		// There are operations, requests to answer and further errors.
		s.submit(sendOf(OpSend, nil), writeOf(1, 2, []byte("x")), readOf(1, 2, 3, 4, 5))
		p.push(readRequest(ReadRequest{Size: 8, SrcSTag: source.tag, SrcTO: base}))
		p.settle()
		p.wantBareTerminate(0x0207)
		if !s.stream.Ended() {
			t.Error("the stream does not count as ended")
		}
		s.submit(sendOf(OpSend, nil))
		p.push(readRequest(ReadRequest{Size: 8, SrcSTag: source.tag, SrcTO: base}))
		p.settle()
		p.send(untagged(OpSend, nil), opcode(15))
		if s.stream.Fail(&Error{Code: CodeGlobalCatastrophic}) {
			t.Error("a second Terminate is to be sent")
		}
		p.settle()
		p.wantNothing()
		if len(s.submitted)+len(s.failed) != 0 || len(s.queue) != 4 {
			t.Errorf("%d operations were submitted, %d failed, %d wait", len(s.submitted), len(s.failed), len(s.queue))
		}
	})
	t.Run("received", func(t *testing.T) {
		// What comes behind it comes to nothing.
		for _, seg := range []func(r region) ddp.Segment{
			func(r region) ddp.Segment { return tagged(OpWrite, r.tag, base, []byte("too late")) },
			func(region) ddp.Segment { return tagged(OpWrite, 0, 0, nil) },
			func(region) ddp.Segment { return untagged(OpSend, []byte("too late")) },
			func(r region) ddp.Segment { return untagged(OpSendInvalidate, nil) },
			func(region) ddp.Segment { return readRequest(ReadRequest{}) },
			func(region) ddp.Segment { return terminateOf(Terminate{}) },
		} {
			s, p := withPeer(t, Config{IRD: 1})
			r := s.memory(8, stag.LocalWrite|stag.RemoteWrite|stag.RemoteInvalidate)
			s.post(8)
			p.push(terminateOf(Terminate{Code: CodeStreamCatastrophic}))
			p.send(seg(r), invalidating(r.tag))
			if s.err == nil || s.terms != 1 || len(s.delivered) != 0 || *r.cell(0) != 0 || *(region{mem: s.buffers[0]}).cell(0) != 0 || !r.entry.Valid() || s.stream.Answering() != 0 {
				t.Errorf("%v: delivered %+v; the region holds %q", s.err, s.delivered, r.mem)
			}
			p.wantNothing()
		}
	})
}

// The LLP brings what was sent behind a Terminate before it.
func TestMessageThatOvertakesATerminateIsNotDelivered(t *testing.T) {
	s, p := withPeer(t, Config{})
	s.post(8)
	p.inject(1, untagged(OpSend, nil))
	p.inject(0, terminateOf(Terminate{}))
	if s.err == nil || s.terms != 1 || len(s.delivered) != 0 {
		t.Errorf("%v; delivered %+v", s.err, s.delivered)
	}
}

// The owner may find something wrong just as it is asked for an operation.
func TestFailureInsideNextIsToldAtOnce(t *testing.T) {
	s, p := withPeer(t, Config{})
	s.onNext = func() { s.stream.Fail(&Error{Code: CodeStreamCatastrophic}) }
	p.settle()
	p.wantBareTerminate(CodeStreamCatastrophic)
}

func TestDiscardDropsWhatIsStillSent(t *testing.T) {
	s, p := withPeer(t, Config{})
	s.post(8)
	p.push(untagged(OpSend, nil))
	p.push(untagged(OpSend, nil))
	_ = p.llp.CloseWrite()
	if err := s.stream.Discard(); err != nil || len(s.delivered) != 0 || s.llp.Waiting() != 0 {
		t.Errorf("%v; delivered %+v; %d segments left", err, s.delivered, s.llp.Waiting())
	}
	if err := s.stream.Abort(); err != nil {
		t.Error(err)
	}
	if err := s.stream.Receive(); !errors.Is(err, ddptest.ErrAborted) {
		t.Errorf("Receive after Abort: %v", err)
	}
}

func TestNoTerminateAnswersATerminate(t *testing.T) {
	for name, before := range map[string]func(s *side, p *peer){
		"nothing else": func(s *side, p *peer) {},
		"an error of this side waits to be told": func(s *side, p *peer) {
			s.stream.Fail(&Error{Code: CodeStreamCatastrophic})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withPeer(t, Config{IRD: 1})
			source := s.memory(8, stag.RemoteRead)
			before(s, p)
			p.push(readRequest(ReadRequest{Size: 8, SrcSTag: source.tag, SrcTO: base}))
			s.submit(sendOf(OpSend, nil))
			p.send(terminateOf(Terminate{Code: CodeGlobalCatastrophic}))
			if s.stream.Fail(&Error{Code: CodeStreamCatastrophic}) || !s.stream.Ended() {
				t.Error("an error is to be told to a peer that has ended the stream")
			}
			p.settle()
			p.wantNothing()
		})
	}
}

// The peer's Terminate comes while the transmitter looks for the next message,
// which is a response that can't be given any more.
func TestTerminateReceivedWhileAResponseFails(t *testing.T) {
	for _, request := range []func(tag stag.STag) ddp.Segment{
		func(tag stag.STag) ddp.Segment { return atomicRequest(AtomicRequest{STag: tag, TO: base}) },
		func(tag stag.STag) ddp.Segment {
			return readRequest(ReadRequest{Size: 8, SrcSTag: tag, SrcTO: base})
		},
	} {
		s, p := withPeer(t, Config{IRD: 2})
		r := s.memory(8, sourceRights)
		p.push(readRequest(ReadRequest{}))
		p.push(request(r.tag))
		s.receiveAll()
		s.onNext = func() { // between the two responses
			s.onNext = nil
			p.push(terminateOf(Terminate{}))
			s.receiveAll()
			if err := r.entry.Deregister(); err != nil {
				t.Fatal(err)
			}
		}
		p.settle()
		p.next(OpReadResponse)
		p.wantNothing()
		if s.transmitting != nil || s.err != nil {
			t.Errorf("Transmit: %v; Receive: %v", s.transmitting, s.err)
		}
	}
}

func TestTerminateGoesOutBetweenMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		op   Opcode
		data []byte
	}{{"Send", OpSend, pattern(500, 1)}, {"RDMA Write", OpWrite, pattern(500, 2)}, {"Read Response", OpReadResponse, pattern(500, 3)}} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{IRD: 1}, ddptest.Options{MULPDU: 128, Room: 1})
			switch tt.op {
			case OpSend:
				s.submit(sendOf(OpSend, tt.data))
			case OpWrite:
				s.submit(writeOf(1, 2, tt.data))
			case OpReadResponse:
				r := s.register(stag.Memory{Mem: tt.data, Base: base, Access: stag.RemoteRead})
				p.push(readRequest(ReadRequest{Size: 500, SrcSTag: r.tag, SrcTO: base}))
				s.receiveAll()
			}
			if idle, err := s.stream.Transmit(s); idle || err != nil {
				t.Fatalf("idle %v, %v", idle, err)
			}
			s.submit(sendOf(OpSend, nil)) // not begun: it comes behind the Terminate, that is never
			p.send(untagged(OpSend, nil)) // there is no buffer
			if m := p.next(tt.op); !bytes.Equal(m.data, tt.data) {
				t.Errorf("%v is not whole", m)
			}
			p.wantTerminate(0x1202)
		})
	}
}

// The memory of a message fails when part of it is out: it can't be finished,
// and the Terminate comes in place of the rest.
func TestTerminateReplacesAMessageThatCannotBeFinished(t *testing.T) {
	for _, op := range []Opcode{OpSend, OpWrite} {
		for segments := range uint32(3) {
			s, p := withPeer(t, Config{}, ddptest.Options{MULPDU: 128})
			var posted int
			s.llp.see = func([]byte) { posted++ }
			broken, never := &Operation{Op: op, Length: 400, Payload: brokenPayload{from: 100 * segments}}, sendOf(OpSend, nil)
			s.submit(broken, never)
			p.settle()
			p.wantBareTerminate(0x0000)
			if posted != int(segments)+1 {
				t.Errorf("%d segments came before the Terminate; want %d", posted-1, segments)
			}
			if !slices.Equal(s.failed, []*Operation{broken}) || len(s.submitted) != 0 || !slices.Equal(s.queue, []*Operation{never}) {
				t.Errorf("failed %v, submitted %v, left %v", s.failed, s.submitted, s.queue)
			}
			if e := s.stream.terminate.Load(); !errors.Is(e, errLost) || e.Clause == "" {
				t.Errorf("the error is %v", e)
			}
		}
	}
}

func TestTerminateAlwaysHasABuffer(t *testing.T) {
	// No receive buffer, no depth of either kind: there is one all the same.
	header, _ := ddp.UntaggedHeader{Control: 0x41, RsvdULP: [5]byte{0x41}, QN: 1, MSN: 3}.AppendBinary(nil)
	read, _ := ReadRequest{Size: 8}.AppendBinary(nil)
	longest := Terminate{Code: CodeInvalidSTag, HdrCt: 0xE0, SegmentLen: 46, DDPHeader: header, RDMAHeader: read}
	s, p := withPeer(t, Config{})
	p.send(terminateOf(longest))
	if s.err != nil || s.term == nil || s.term.Code != CodeInvalidSTag || !bytes.Equal(s.term.RDMAHeader, read) {
		t.Errorf("%v; Terminate %v", s.err, s.term)
	}
	// But only one, and none that is longer.
	p.send(terminateOf(longest))
	if s.err == nil || s.terms != 1 {
		t.Errorf("%v; %d Terminates were delivered", s.err, s.terms)
	}
	s, p = withPeer(t, Config{})
	longest.Rest = []byte{0}
	p.send(terminateOf(longest))
	p.wantTerminate(0x1205)
	if s.terms != 0 {
		t.Error("it was delivered")
	}
}

func TestTerminateIsDeliveredToTheULP(t *testing.T) {
	s, p := withPeer(t, Config{})
	s.post(64)
	header, _ := ddp.TaggedHeader{Control: 0xC1, RsvdULP: 0x40, STag: 0x100, TO: 7}.AppendBinary(nil)
	want := Terminate{Code: 0x1101, HdrCt: 0xC0, SegmentLen: 100, DDPHeader: header}
	b, _ := want.AppendBinary(nil)
	// It waits for what was sent before it.
	p.inject(2, untagged(OpTerminate, b[10:]), mo(10), msn(1))
	p.inject(1, untagged(OpTerminate, b[:10]), more, msn(1))
	if s.term != nil {
		t.Error("the Terminate was delivered before the Send that came before it")
	}
	p.inject(0, untagged(OpSend, nil))
	if s.err != nil || s.term == nil || s.term.String() != want.String() || len(s.delivered) != 1 {
		t.Fatalf("%v; Terminate %v; want %v", s.err, s.term, &want)
	}
	if e := (&PeerError{Terminate: *s.term}); e.Error() != "rdmap: the peer ended the stream: DDP: base or bounds violation (0x1101), on RDMA Write tagged last stag=0x00000100 to=0x7" {
		t.Errorf("as an error: %v", e)
	}
}

func TestOnlyRDMAMessagesAreSentUntilTeardown(t *testing.T) {
	// The referee lets only RDMA Messages pass; here are all kinds of them, a
	// graceful end, and nothing more behind it.
	s, p := withPeer(t, Config{IRD: 2, ORD: 2}, ddptest.Options{MULPDU: 128})
	r := s.memory(512, sourceRights|stag.RemoteWrite)
	s.submit(
		sendOf(OpSend, pattern(300, 1)), writeOf(1, 2, pattern(300, 1)), readOf(1, 2, r.tag, base, 0), addOf(1, 8, 1),
		immediateOf(OpImmediate, Immediate{}), sendOf(OpSendSE, nil), invalidateOf(OpSendInvalidate, nil, 3), writeOf(1, 2, nil),
	)
	p.push(readRequest(ReadRequest{Size: 300, SrcSTag: r.tag, SrcTO: base}))
	p.push(atomicRequest(AtomicRequest{STag: r.tag, TO: base}))
	p.settle()
	if got := len(p.ref.messages); got != 10 {
		t.Errorf("%d messages were sent; want 10: %v", got, p.ref.messages)
	}
	p.seen = len(p.ref.messages)
	if err := s.stream.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	late := sendOf(OpSend, nil)
	s.submit(late)
	s.transmit()
	p.wantNothing()
	if !errors.Is(s.transmitting, ddp.ErrClosed) || !slices.Equal(s.failed, []*Operation{late}) {
		t.Errorf("Transmit: %v; failed %v", s.transmitting, s.failed)
	}
	if err := p.llp.Receive(nil); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v; want EOF", err)
	}
	// The other half continues.
	p.send(tagged(OpReadResponse, r.tag, base, nil))
	if s.err != nil || len(s.completed) != 1 {
		t.Errorf("%v; %d completed", s.err, len(s.completed))
	}
	_ = p.llp.CloseWrite()
	if s.receive(); !errors.Is(s.err, io.EOF) {
		t.Errorf("the stream ends with %v; want EOF", s.err)
	}
	if err := s.stream.Close(); err != nil {
		t.Error(err)
	}
}

// A request that comes when this side has ended its half can't be answered, nor
// its peer be told so.
func TestRequestAfterCloseWriteIsNotAnswered(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 1})
	if err := s.stream.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	p.send(readRequest(ReadRequest{}))
	p.wantNothing()
	if !errors.Is(s.transmitting, ddp.ErrClosed) {
		t.Errorf("Transmit: %v", s.transmitting)
	}
}

func TestSegmentAfterTheEndOfTheStreamAbortsIt(t *testing.T) {
	s, p := withPeer(t, Config{})
	_ = p.llp.CloseWrite()
	if s.receive(); !errors.Is(s.err, io.EOF) {
		t.Fatalf("the stream ends with %v; want EOF", s.err)
	}
	s.err = nil
	p.llp.Inject(p.make(untagged(OpSend, nil)), 0)
	s.receive()
	var e *Error
	if !errors.As(s.err, &e) || e.Code != 0x1000 {
		t.Errorf("Receive failed with %v; want 0x1000", s.err)
	}
	if s.transmit(); !errors.Is(s.transmitting, ddptest.ErrAborted) {
		t.Errorf("Transmit: %v; want that the LLP was aborted", s.transmitting)
	}
}

func TestErrorOfTheLLPIsNotTheOperations(t *testing.T) {
	for _, op := range []*Operation{sendOf(OpSend, nil), writeOf(1, 2, []byte("x")), readOf(1, 2, 3, 4, 5)} {
		s, p := withPeer(t, Config{ORD: 1})
		s.llp.cantPost = errors.New("the connection is gone")
		s.submit(op)
		p.settle()
		if !errors.Is(s.transmitting, s.llp.cantPost) || len(s.failed)+len(s.submitted) != 0 || s.stream.terminate.Load() != nil {
			t.Errorf("%v: Transmit: %v; %d failed, %d submitted", op.Op, s.transmitting, len(s.failed), len(s.submitted))
		}
	}
	t.Run("response", func(t *testing.T) {
		s, p := withPeer(t, Config{IRD: 1})
		s.llp.cantPost = errors.New("the connection is gone")
		p.send(readRequest(ReadRequest{}))
		if !errors.Is(s.transmitting, s.llp.cantPost) || s.stream.terminate.Load() != nil {
			t.Errorf("Transmit: %v; Terminate for %v", s.transmitting, s.stream.terminate.Load())
		}
	})
}

// When a stream ends, each operation that was taken is either submitted or
// failed, but for the one inside which the LLP was lost; Reads and atomics
// without response are the owner's to flush.
func TestEveryOperationIsToldOrLeftToItsOwner(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 2}, ddptest.Options{MULPDU: 128, Room: 1})
	done, read, half, never := sendOf(OpSend, nil), readOf(1, 2, 3, 4, 5), writeOf(1, 2, pattern(300, 1)), sendOf(OpSend, nil)
	s.submit(done, read, half, never)
	for range 3 {
		if _, err := s.stream.Transmit(s); err != nil {
			t.Fatal(err)
		}
		if _, err := s.llp.Flush(true); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.llp.Abort()
	s.settle()
	s.receive()
	if !errors.Is(s.err, ddptest.ErrAborted) || !errors.Is(s.transmitting, ddptest.ErrAborted) {
		t.Errorf("Receive: %v; Transmit: %v", s.err, s.transmitting)
	}
	if !slices.Equal(s.submitted, []*Operation{done, read}) || len(s.failed)+len(s.completed) != 0 || !slices.Equal(s.queue, []*Operation{never}) {
		t.Errorf("submitted %v, failed %v, completed %v, left %v", s.submitted, s.failed, s.completed, s.queue)
	}
	if s.stream.Outstanding() != 1 {
		t.Errorf("%d outstanding; want the Read", s.stream.Outstanding())
	}
}
