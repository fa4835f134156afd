package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// A rdmapWrongdoing is what the tester does to get a Terminate of some class of errors.
type rdmapWrongdoing struct {
	name, what string
	needs      conformance.Needs
	code       wire.Code
	headers    string // that RFC 5040 Figure 10 has for it: "MDR", "MD", or none
	anyR       bool   // whether R is set isn't settled
	anyCode    bool   // the code means nothing
	// do does it, and returns the segment that is wrong.
	do func(t *conformance.T, s *conformance.Stream) wire.Segment
}

// rdmapWrong posts a segment, and returns it as it went out.
func rdmapWrong(s *conformance.Stream, m wire.Segment, wrong string) wire.Segment {
	m.Wrong = wrong
	m = s.Due(m)
	s.Post(m)
	return m
}

var rdmapWrongdoings = []rdmapWrongdoing{
	{
		name: "tagged-error-of-ddp", what: "an RDMA Write to an STag that nobody gave", code: wire.DDPInvalidSTag, headers: "MD",
		do: func(_ *conformance.T, s *conformance.Stream) wire.Segment {
			return rdmapWrong(s, wire.Tagged(wire.Write, 0xDEADBE00, 0x123456789ABC, conformance.Pattern(21)), "nobody gave the STag")
		},
	},
	{
		name: "untagged-error-of-ddp", what: "a Send to queue 77", code: wire.DDPInvalidQN, headers: "MD",
		do: func(_ *conformance.T, s *conformance.Stream) wire.Segment {
			m := wire.Untagged(wire.Send, conformance.Pattern(13))
			m.QN, m.MSN, m.MO = 77, 0x01020304, 0
			m.Wrong = "there is no such queue"
			s.PostExact(m, wire.Flaw{})
			return m
		},
	},
	{
		name: "protection-error-of-a-read", what: "a Read of an STag that nobody gave", code: wire.RDMAPInvalidSTag, headers: "MDR",
		do: func(_ *conformance.T, s *conformance.Stream) wire.Segment {
			return rdmapWrong(s, conformance.ReadRequest(0x01020304, 0x1112131415161718, 0x2122, 0xDEADBE00, 0x3132333435363738), "nobody gave the source's STag")
		},
	},
	{
		name: "protection-error-of-an-invalidation", what: "a Send with Invalidate of another protection domain's STag", needs: conformance.NeedService,
		code: wire.RDMAPCantInvalidate, headers: "MD", anyR: true,
		do: func(t *conformance.T, s *conformance.Stream) wire.Segment {
			rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
			r := rdmapForeign(t, rdmapOpens...)
			return rdmapWrong(s, rdmapInvalidating(wire.SendInvalidate, uint32(r.STag), conformance.Pattern(8)), "the STag is not the stream's")
		},
	},
	{
		name: "operation-error", what: "a Send in a tagged message", code: wire.RDMAPOpcode, headers: "MD",
		do: func(_ *conformance.T, s *conformance.Stream) wire.Segment {
			return rdmapWrong(s, wire.Tagged(wire.Send, 0x01020304, 0x1112131415161718, nil), "Sends are not tagged")
		},
	},
	{
		name: "llp-error", what: "an FPDU with a wrong CRC", code: wire.MPACRC,
		do: func(t *conformance.T, s *conformance.Stream) wire.Segment {
			s.AwaitAlive() // so that the target may send
			m := wire.Tagged(wire.Write, 0, 0, nil)
			s.PostFlawed(m, wire.Flaw{CRC: func(crc uint32) uint32 { return ^crc }, Wrong: "the CRC is wrong"})
			return m
		},
	},
	{
		name: "local-error", what: "the program ending the stream", needs: conformance.NeedService, code: wire.LocalCatastrophic, anyCode: true,
		do: func(t *conformance.T, s *conformance.Stream) wire.Segment {
			s.AwaitAlive()
			go func() { // it ends with the stream, or with the session
				_ = t.Service().Terminate(t.Context(), s.QP, t.Timeout())
			}()
			return wire.Segment{}
		},
	},
}

// provoke opens a stream, and gets the Terminate.
func (w *rdmapWrongdoing) provoke(t *conformance.T) (wrong wire.Segment, a wire.Arrival, h wire.TerminateHeader) {
	s := t.Open(conformance.Setup{})
	s.Hello()
	wrong = w.do(t, s)
	a, err := s.Answer(t.Timeout())
	if err != nil {
		if w.code == wire.MPACRC {
			t.Skip("the target ends the stream without a Terminate, as it may for an error of the LLP")
		}
		t.Fail("a Terminate because of "+w.what, "%v", err)
	}
	t.Check(a.Opcode == wire.Terminate, "a Terminate because of "+w.what, "%s", a.Segment)
	h, err = wire.ParseTerminate(a.Payload)
	t.Check(err == nil && len(a.Payload) >= 4, "a Terminate Header of at least four octets", "%d octets", len(a.Payload))
	return wrong, a, h
}

// rdmapTerminatesSent is the cases on the Terminates that the target sends, byte by
// byte (RFC 5040 §4.8, §5.4, §7.1).
func rdmapTerminatesSent() []conformance.Case {
	var out []conformance.Case
	for i := range rdmapWrongdoings {
		w := &rdmapWrongdoings[i]
		add := func(clause, name, title string, judge func(t *conformance.T, wrong wire.Segment, a wire.Arrival, h wire.TerminateHeader), also ...string) {
			out = append(out, conformance.Case{
				Clause: clause, Name: name + "-for-" + w.name, Also: also, Needs: w.needs,
				Title: fmt.Sprintf("Terminate for %s: %s", w.what, title),
				Run: func(t *conformance.T) {
					wrong, a, h := w.provoke(t)
					judge(t, wrong, a, h)
				},
			})
		}
		add("rfc5040-4.8-3", "code", "layer, error type and error code are those of Figure 9", w.judgeCode, "rfc5040-4.8-2")
		add("rfc5040-4.8-4", "reserved-bits", "the 13 reserved bits are zero", func(t *conformance.T, _ wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
			t.Check(h.Control&0x1F == 0 && h.Rest == 0, "13 reserved bits of zero", "octets 2 and 3 %02x%02x", h.Control, h.Rest)
		})
		add("rfc5040-4.8-1", "header", "all that its header control bits announce is there, in its place, and nothing but zeros behind it",
			func(t *conformance.T, _ wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
				_, rest := rdmapTail(t, h)
				t.Check(len(bytes.Trim(rest, "\x00")) == 0, "nothing behind the header, or zeros", "%x", rest)
			})
		add("rfc5040-4.8-2", "header-control-bits", "what stands behind the Terminate Control is announced by bits at the high end of its third octet",
			func(t *conformance.T, _ wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
				t.Check(h.Control&(wire.TermM|wire.TermD|wire.TermR) != 0 || len(bytes.Trim(h.Tail, "\x00")) == 0,
					"one of the bits M, D and R, or nothing behind the Terminate Control but zeros", "octet 2 %02x, and behind it %x", h.Control, h.Tail)
			})
		add("rfc5040-5.4-2", "queue-and-msn", "queue 2, MSN 1, MO 0, the only segment", func(t *conformance.T, _ wire.Segment, a wire.Arrival, _ wire.TerminateHeader) {
			t.Check(!a.Tagged && a.QN == 2 && a.MSN == 1 && a.MO == 0 && a.Last, "T=0, L=1, queue 2, MSN 1, MO 0", "%s", a.Segment)
		}, "rfc5040-5.4-1")
		w.addBits(add)
		if w.headers == "" {
			add("rfc5040-7.1-2", "no-headers", "neither a DDP header nor an RDMA header, or zeros", w.judgeBare)
			continue
		}
		w.addHeaders(add)
	}
	return slices.Concat(out, rdmapTerminateRules())
}

// judgeCode judges layer, error type and error code.
func (w *rdmapWrongdoing) judgeCode(t *conformance.T, _ wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
	codes := []wire.Code{w.code}
	if w.code == wire.RDMAPCantInvalidate {
		codes = rdmapNotTheirs
	}
	got := h.Code
	if w.anyCode {
		got &= 0xFF00
	}
	t.Check(slices.Contains(codes, got), conformance.Codes(codes...), "%s", h.Code)
}

// rdmapAdd adds a case to those of a wrongdoing.
type rdmapAdd = func(clause, name, title string, judge func(*conformance.T, wire.Segment, wire.Arrival, wire.TerminateHeader), also ...string)

// addBits adds the cases on the header control bits, which should be as in Figure 10.
func (w *rdmapWrongdoing) addBits(add rdmapAdd) {
	for i, b := range []struct {
		clause, name string
		bit          uint8
	}{{"rfc5040-4.8-9", "m", wire.TermM}, {"rfc5040-4.8-10", "d", wire.TermD}, {"rfc5040-4.8-11", "r", wire.TermR}} {
		if b.bit == wire.TermR && w.anyR {
			continue
		}
		want := i < len(w.headers)
		add(b.clause, b.name+"-bit", fmt.Sprintf("%s=%d", b.name, rdmapDigit(want)), func(t *conformance.T, _ wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
			t.Check(h.Control&b.bit != 0 == want, fmt.Sprintf("%s=%d", b.name, rdmapDigit(want)), "octet 2 %02x", h.Control)
		})
	}
}

func rdmapDigit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// judgeBare judges a Terminate that has no headers.
func (w *rdmapWrongdoing) judgeBare(t *conformance.T, _ wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
	t.Check(len(bytes.Trim(h.Tail, "\x00")) == 0, "nothing behind the Terminate Control, or zeros", "%x", h.Tail)
}

// addHeaders adds the cases on the headers of the message that was wrong.
func (w *rdmapWrongdoing) addHeaders(add rdmapAdd) {
	length := func(t *conformance.T, wrong wire.Segment, h wire.TerminateHeader) {
		p, _ := rdmapTail(t, h)
		want := len(wrong.Octets())
		t.Check(p.length == want, fmt.Sprintf("a DDP Segment Length of %d", want), "%d", p.length)
	}
	header := func(t *conformance.T, wrong wire.Segment, h wire.TerminateHeader) {
		p, _ := rdmapTail(t, h)
		want := wrong.Header()
		t.Check(bytes.Equal(p.ddp, want), fmt.Sprintf("the DDP header %x", want), "%x", p.ddp)
	}
	rdma := func(t *conformance.T, wrong wire.Segment, h wire.TerminateHeader) {
		p, _ := rdmapTail(t, h)
		t.Check(bytes.Equal(p.rdma, wrong.Payload), fmt.Sprintf("the RDMA header %x", wrong.Payload), "%x", p.rdma)
	}
	if w.headers == "MDR" {
		add("rfc5040-7.1-4", "both-headers", "the segment's length, its DDP header and its RDMA Read Request Header, as they came",
			func(t *conformance.T, wrong wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
				length(t, wrong, h)
				header(t, wrong, h)
				rdma(t, wrong, h)
			})
		add("rfc5040-4.8-8", "rdma-header", "with R set, the 28 octets of the RDMA Read Request Header", func(t *conformance.T, wrong wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
			rdmapWithout(t, h, wire.TermR, "R")
			rdma(t, wrong, h)
		})
	} else {
		add("rfc5040-7.1-3", "ddp-header", "the segment's length and its DDP header, as they came", func(t *conformance.T, wrong wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
			length(t, wrong, h)
			header(t, wrong, h)
		})
	}
	add("rfc5040-4.8-5", "segment-length", "with M set, the segment's length is right", func(t *conformance.T, wrong wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
		rdmapWithout(t, h, wire.TermM, "M")
		length(t, wrong, h)
	})
	add("rfc5040-4.8-6", "length-before-header", "with D set, two octets of length stand before the DDP header", func(t *conformance.T, wrong wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
		rdmapWithout(t, h, wire.TermD, "D")
		want := wrong.Header()
		t.Check(bytes.Index(h.Tail, want[:2]) == 2, "the DDP header from the third octet behind the Terminate Control on", "%x", h.Tail)
	})
	add("rfc5040-4.8-7", "header-present", "with D set, the whole DDP header is there", func(t *conformance.T, wrong wire.Segment, _ wire.Arrival, h wire.TerminateHeader) {
		rdmapWithout(t, h, wire.TermD, "D")
		header(t, wrong, h)
	})
}

// rdmapWithout skips the case if a header control bit is not set: what the bit
// promises is another case's affair than whether it should be set.
func rdmapWithout(t *conformance.T, h wire.TerminateHeader, bit uint8, name string) {
	if h.Control&bit == 0 {
		t.Skip("%s is not set", name)
	}
}

// rdmapTerminateRules is the cases on what comes with a Terminate and after it.
func rdmapTerminateRules() []conformance.Case {
	var out []conformance.Case
	for i := range rdmapWrongdoings {
		w := &rdmapWrongdoings[i]
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.4-7", Name: "nothing-after-" + w.name, Needs: w.needs,
			Title: "After the Terminate for " + w.what + ", no message comes",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				w.do(t, s)
				s.Post(rdmapMore(s)...)
				rdmapLast(t, s)
			},
		}, conformance.Case{
			Clause: "rfc5040-7-2", Name: "end-after-" + w.name, Needs: w.needs,
			Title: "After the Terminate for " + w.what + ", the target ends the connection",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				w.do(t, s)
				s.AwaitEnd()
			},
		})
	}
	return out
}

// rdmapMore is messages that would be answered, or that are wrong again.
func rdmapMore(s *conformance.Stream) []wire.Segment {
	again := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
	again.Wrong = "nobody gave the STag, and the stream has ended"
	return []wire.Segment{s.Due(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)), again}
}

// rdmapLast makes sure that nothing follows the target's Terminate.
func rdmapLast(t *conformance.T, s *conformance.Stream) {
	terminated := false
	wait := t.Timeout()
	for {
		a, err := s.Answer(wait)
		if err != nil {
			return // whether it has to come, and to end, is told by other cases
		}
		t.Check(!terminated, "nothing after the Terminate", "%s", a.Segment)
		if a.Opcode == wire.Terminate {
			terminated, wait = true, t.Quiet()
		}
	}
}
