package rdmap

import (
	"fmt"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/mpa"
	"urnic/stag"
)

// The three ready-to-receive indications, and the message that each one is.
var rtrs = []struct {
	kind mpa.RTR
	op   Opcode
	seg  func() ddp.Segment
}{
	{mpa.RTRSend, OpSend, func() ddp.Segment { return untagged(OpSend, nil) }},
	{mpa.RTRWrite, OpWrite, func() ddp.Segment { return tagged(OpWrite, 0, 0, nil) }},
	{mpa.RTRRead, OpReadRequest, func() ddp.Segment { return readRequest(ReadRequest{}) }},
}

func TestRTRIsSentBeforeAnythingElse(t *testing.T) {
	for _, tt := range rtrs {
		t.Run(tt.kind.String(), func(t *testing.T) {
			s, p := withPeer(t, Config{SendRTR: tt.kind, IRD: 1, ORD: 1})
			s.submit(sendOf(OpSend, []byte("first of the ULP")))
			p.push(readRequest(ReadRequest{})) // there is a response to send too
			p.settle()
			m := p.next(tt.op)
			if tt.op == OpReadRequest {
				r, err := ParseReadRequest(m.data)
				if err != nil || r != (ReadRequest{}) {
					t.Errorf("the Read is %v, %v; want one of no octets", r, err)
				}
			} else if len(m.data) != 0 || m.tag != 0 || m.to != 0 {
				t.Errorf("%v is not empty", m)
			}
			p.next(OpReadResponse)
			p.next(OpSend)
			p.wantNothing()
			if len(s.submitted) != 1 {
				t.Errorf("the ULP was told of %d operations; want its own", len(s.submitted))
			}
		})
	}
	t.Run("before the Terminate", func(t *testing.T) {
		s, p := withPeer(t, Config{SendRTR: mpa.RTRWrite})
		s.stream.Fail(&Error{Code: CodeStreamCatastrophic})
		p.settle()
		p.next(OpWrite)
		p.wantBareTerminate(CodeStreamCatastrophic)
	})
}

func TestRTRReadCountsAgainstORD(t *testing.T) {
	for _, ord := range []int{0, 1, 2} {
		s, p := withPeer(t, Config{SendRTR: mpa.RTRRead, ORD: ord})
		s.submit(readOf(1, 2, 3, 4, 0), readOf(1, 2, 3, 4, 0))
		p.settle()
		for range max(ord, 1) { // the first one is the RTR
			p.next(OpReadRequest)
		}
		p.wantNothing()
		p.send(tagged(OpReadResponse, 0x77, 0x88, nil)) // to whatever sink: it is empty
		if len(s.completed) != 0 || s.err != nil {
			t.Fatalf("ORD %d: %v; the ULP was told of %v", ord, s.err, s.completed)
		}
		if ord > 0 {
			p.next(OpReadRequest)
			p.send(tagged(OpReadResponse, 3, 4, nil))
		}
		if want := min(ord, 1); s.err != nil || len(s.completed) != want {
			t.Errorf("ORD %d: %v; %d completed; want %d", ord, s.err, len(s.completed), want)
		}
	}
}

func TestResponseToTheRTRReadIsEmpty(t *testing.T) {
	for name, tt := range map[string]struct {
		seg    ddp.Segment
		change change
		want   TermCode
	}{
		"not empty":                   {tagged(OpReadResponse, 0, 0, make([]byte, 1)), ddpVersion(1), 0x1100},
		"empty, but more is to come":  {tagged(OpReadResponse, 0, 0, nil), more, 0x0207},
		"an Atomic Response in place": {atomicResponse(0, 0), ddpVersion(1), 0x1202},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withPeer(t, Config{SendRTR: mpa.RTRRead})
			p.settle()
			p.next(OpReadRequest)
			p.send(tt.seg, tt.change)
			p.wantTerminate(tt.want)
			if s.stream.Outstanding() != 1 {
				t.Error("the Read was completed")
			}
		})
	}
	t.Run("not empty, into memory of ours", func(t *testing.T) {
		s, p := withPeer(t, Config{SendRTR: mpa.RTRRead})
		r := s.memory(8, stag.LocalWrite|stag.RemoteWrite)
		p.settle()
		p.next(OpReadRequest)
		p.send(tagged(OpReadResponse, r.tag, base, make([]byte, 8)))
		p.wantTerminate(0x0206)
	})
}

func TestRTRIsNotTheULPs(t *testing.T) {
	for _, tt := range rtrs {
		for _, expected := range []mpa.RTR{tt.kind, mpa.RTRAll} {
			t.Run(fmt.Sprintf("%v of %v", tt.kind, expected), func(t *testing.T) {
				s, p := withPeer(t, Config{ExpectRTR: expected, IRD: 1})
				s.post(8) // which the RTR must not take
				p.send(tt.seg())
				if tt.op == OpReadRequest {
					if m := p.next(OpReadResponse); len(m.data) != 0 {
						t.Errorf("the response is %v", m)
					}
				}
				p.wantNothing()
				if s.err != nil || len(s.delivered)+len(s.completed) != 0 {
					t.Fatalf("%v; delivered %+v", s.err, s.delivered)
				}
				p.send(untagged(OpSend, []byte("the ULP's")))
				p.wantTerminate(0x1205) // the buffer is the ULP's: of 8 bytes
			})
			t.Run(fmt.Sprintf("%v of %v, then a Send", tt.kind, expected), func(t *testing.T) {
				s, p := withPeer(t, Config{ExpectRTR: expected, IRD: 1})
				s.post(8)
				p.send(tt.seg())
				p.send(untagged(OpSend, nil))
				if s.err != nil || len(s.delivered) != 1 {
					t.Errorf("%v; delivered %+v", s.err, s.delivered)
				}
			})
		}
	}
}

func TestFirstMessageThatIsNoRTRTerminates(t *testing.T) {
	for _, tt := range []struct {
		name   string
		expect mpa.RTR
		seg    func(tag stag.STag) ddp.Segment
		bare   bool
		want   TermCode
	}{
		{"Send in place of Write or Read", mpa.RTRWrite | mpa.RTRRead, func(stag.STag) ddp.Segment { return untagged(OpSend, nil) }, true, 0x2005},
		{"Write in place of Send or Read", mpa.RTRSend | mpa.RTRRead, func(stag.STag) ddp.Segment { return tagged(OpWrite, 0, 0, nil) }, true, 0x2005},
		{"Read in place of Send or Write", mpa.RTRSend | mpa.RTRWrite, func(stag.STag) ddp.Segment { return readRequest(ReadRequest{}) }, true, 0x2005},
		{"Write that is not empty", mpa.RTRAll, func(tag stag.STag) ddp.Segment { return tagged(OpWrite, tag, base, []byte("x")) }, true, 0x2005},
		{"Read that is not empty", mpa.RTRAll, func(tag stag.STag) ddp.Segment {
			return readRequest(ReadRequest{Size: 1, SrcSTag: tag, SrcTO: base})
		}, true, 0x2005},
		{"Send that is not empty", mpa.RTRAll, func(stag.STag) ddp.Segment { return untagged(OpSend, []byte("x")) }, true, 0x2005},
		{"Send with SE", mpa.RTRAll, func(stag.STag) ddp.Segment { return untagged(OpSendSE, nil) }, true, 0x2005},
		{"Send with Invalidate", mpa.RTRAll, func(stag.STag) ddp.Segment { return untagged(OpSendInvalidate, nil) }, true, 0x2005},
		{"Immediate Data", mpa.RTRAll, func(stag.STag) ddp.Segment { return untagged(OpImmediate, make([]byte, 8)) }, true, 0x2005},
		{"Atomic Request", mpa.RTRAll, func(tag stag.STag) ddp.Segment { return atomicRequest(AtomicRequest{STag: tag, TO: base}) }, true, 0x2005},
		{"Read Response", mpa.RTRAll, func(stag.STag) ddp.Segment { return tagged(OpReadResponse, 0, 0, nil) }, false, 0x0206},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{ExpectRTR: tt.expect, IRD: 1})
			r := s.memory(8, stag.LocalWrite|stag.RemoteWrite|sourceRights)
			s.post(8)
			p.send(tt.seg(r.tag))
			if tt.bare {
				p.wantBareTerminate(tt.want)
			} else {
				p.wantTerminate(tt.want)
			}
			if len(s.delivered) != 0 || s.stream.Answering() != 0 {
				t.Errorf("delivered %+v", s.delivered)
			}
		})
	}
}

func TestTerminateMayComeInPlaceOfTheRTR(t *testing.T) {
	// With it the Initiator says that it can send none of them.
	s, p := withPeer(t, Config{ExpectRTR: mpa.RTRAll})
	p.send(terminateOf(Terminate{Code: 0x2007}))
	p.wantNothing()
	if s.err != nil || s.term == nil || s.term.Code != 0x2007 {
		t.Errorf("%v; Terminate %v", s.err, s.term)
	}
}

func TestRTRPassesBetweenTwoSides(t *testing.T) {
	for _, tt := range rtrs {
		synctest.Test(t, func(t *testing.T) {
			la, lb := ddptest.Pair(ddptest.Options{})
			a := newSide(t, la, Config{SendRTR: tt.kind, ORD: 1})
			b := newSide(t, lb, Config{ExpectRTR: mpa.RTRAll, IRD: 1})
			b.post(8)
			source := b.memory(8, stag.RemoteRead)
			sink := a.memory(8, stag.LocalWrite)
			copy(source.mem, "contents")
			a.submit(readOf(source.tag, base, sink.tag, base, 8), sendOf(OpSend, nil))
			a.run()
			b.run()
			a.Wake()
			synctest.Wait()
			if a.err != nil || b.err != nil || string(sink.mem) != "contents" || len(a.completed) != 1 || len(b.delivered) != 1 {
				t.Errorf("%v: a: %v; b: %v; read %q; delivered %+v", tt.kind, a.err, b.err, sink.mem, b.delivered)
			}
			_, _ = a.llp.CloseWrite(), b.llp.CloseWrite()
			<-a.done
			<-b.done
		})
	}
}
