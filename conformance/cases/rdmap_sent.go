package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// What the target's messages name in the cases on what it sends.
const (
	rdmapTheirSTag = 0x0BADCAFE // of the tester's memory, which is none
	rdmapTheirTO   = 0x0123456789ABCDE0
	rdmapBulk      = 1500 // bytes: several segments, if the target can be told its MULPDU
)

// A rdmapOutbound is a message that the target sends.
type rdmapOutbound struct {
	name   string
	op     wire.Opcode
	tagged string // the clause on its T flag
	queue  string // the clause on its queue, of an untagged one
	needs  conformance.Needs
	length int // of its payload; -1 if that varies
	// bring has the target send it.
	bring func(t *conformance.T, s *conformance.Stream)
}

var rdmapOutbounds = []rdmapOutbound{
	{"rdma-write", wire.Write, "rfc5040-5.1-1", "", conformance.NeedService, rdmapBulk, rdmapPosted(service.OpWrite)},
	{"read-request", wire.ReadRequest, "rfc5040-5.2.1-1", "rfc5040-5.2.1-5", conformance.NeedService, wire.ReadRequestLen, rdmapPosted(service.OpRead)},
	{
		"read-response", wire.ReadResponse, "rfc5040-5.2.2-1", "", conformance.NeedService, rdmapBulk,
		func(t *conformance.T, s *conformance.Stream) {
			r := rdmapRegion(t, rdmapBulk, service.RemoteRead)
			s.Post(conformance.ReadRequest(rdmapTheirSTag, rdmapTheirTO, rdmapBulk, uint32(r.STag), uint64(r.TO)))
		},
	},
	{"send", wire.Send, "rfc5040-5.3-1", "rfc5040-5.3-4", conformance.NeedService, rdmapBulk, rdmapPosted(service.OpSend)},
	{"send-with-se", wire.SendSE, "rfc5040-5.3-1", "rfc5040-5.3-4", conformance.NeedService, rdmapBulk, rdmapPosted(service.OpSendSE)},
	{"send-with-invalidate", wire.SendInvalidate, "rfc5040-5.3-1", "rfc5040-5.3-4", conformance.NeedService, rdmapBulk, rdmapPosted(service.OpSendInvalidate)},
	{"send-with-se-and-invalidate", wire.SendSEInvalidate, "rfc5040-5.3-1", "rfc5040-5.3-4", conformance.NeedService, rdmapBulk, rdmapPosted(service.OpSendSEInvalidate)},
	{
		"terminate", wire.Terminate, "rfc5040-5.4-1", "rfc5040-5.4-2", 0, -1,
		func(_ *conformance.T, s *conformance.Stream) {
			w := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
			w.Wrong = "an STag that nobody gave, to get a Terminate"
			s.Post(w)
		},
	},
	{
		"empty-read-response", wire.ReadResponse, "rfc5040-5.2.2-1", "", 0, 0,
		func(t *conformance.T, s *conformance.Stream) {
			if s.IRD == 0 {
				t.Skip("the target takes no Reads")
			}
			s.Post(conformance.ReadRequest(rdmapTheirSTag, rdmapTheirTO, 0, 0, 0))
		},
	},
}

// rdmapPosted has the target's program post a request.
func rdmapPosted(op string) func(*conformance.T, *conformance.Stream) {
	return func(t *conformance.T, s *conformance.Stream) {
		p := service.Post{Op: op}
		switch op {
		case service.OpRead:
			r := rdmapRegion(t, rdmapBulk, service.LocalWrite)
			p.SGL = []service.Piece{r.Piece(0, rdmapBulk)}
			p.Remote = service.Remote{STag: rdmapTheirSTag, TO: rdmapTheirTO}
		case service.OpWrite:
			p.Data, p.Remote = service.Pattern(rdmapSeed, rdmapBulk), service.Remote{STag: rdmapTheirSTag, TO: rdmapTheirTO}
		case service.OpSendInvalidate, service.OpSendSEInvalidate:
			rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
			p.Data, p.Invalidate = service.Pattern(rdmapSeed, rdmapBulk), rdmapTheirSTag
		default:
			p.Data = service.Pattern(rdmapSeed, rdmapBulk)
		}
		s.Posts(p)
	}
}

// rdmapCut is a Setup with which the target's messages come in many segments, if it
// can be told so.
func rdmapCut(t *conformance.T) conformance.Setup {
	var setup conformance.Setup
	if rdmapFeatures(t).MULPDU || t.OverRDP() {
		setup.Start.MULPDU = 512
	}
	return setup
}

// sent has the target send the message, and returns its segments.
func (m *rdmapOutbound) sent(t *conformance.T) []wire.Arrival {
	var setup conformance.Setup
	if m.needs&conformance.NeedService != 0 {
		setup = rdmapCut(t)
	}
	s := rdmapSpeaking(t, setup)
	m.bring(t, s)
	return rdmapMessage(t, s, m.op)
}

// rdmapBreaks fails the case if one of the segments breaks a rule.
func rdmapBreaks(t *conformance.T, message []wire.Arrival, expected string, rules ...wire.Rule) {
	for i, a := range message {
		for _, f := range a.Faults {
			for _, r := range rules {
				t.Check(f.Rule != r, expected, "in segment %d: %s", i+1, f.What)
			}
		}
	}
}

// rdmapSent is the cases on the headers of what the target sends (RFC 5040 §4.1, §4.2).
func rdmapSent() []conformance.Case {
	var out []conformance.Case
	add := func(m *rdmapOutbound, clause, name, title string, judge func(t *conformance.T, message []wire.Arrival), also ...string) {
		out = append(out, conformance.Case{
			Clause: clause, Name: name + "-" + m.name, Also: also, Needs: m.needs,
			Title: fmt.Sprintf(title, m.op), Run: func(t *conformance.T) { judge(t, m.sent(t)) },
		})
	}
	for i := range rdmapOutbounds {
		m := &rdmapOutbounds[i]
		add(m, "rfc5040-4.1-6", "opcode-of", "The target's %[1]s has the opcode of Figure 4, in the first RsvdULP octet of each segment",
			func(t *conformance.T, message []wire.Arrival) {
				for _, a := range message {
					got := a.FPDU.ULPDU[1] & 0x0F
					t.Check(got == byte(m.op), fmt.Sprintf("opcode %d", m.op), "%d", got)
				}
			}, "rfc5040-4.1-1", "rfc5040-4.1-2")
		add(m, "rfc5040-4.1-8", "rv-of", "The target's %s has RV 01b in each segment", func(t *conformance.T, message []wire.Arrival) {
			rdmapBreaks(t, message, "RV 01b", wire.FaultRV)
		})
		add(m, "rfc5040-4.1-9", "reserved-bits-of", "The reserved bits of the RDMAP Control Field are zero in the target's %s", func(t *conformance.T, message []wire.Arrival) {
			rdmapBreaks(t, message, "reserved bits of zero", wire.FaultRDMAPReserved)
		})
		add(m, m.tagged, "t-flag-of", "The target's %s has the T flag of Figure 4 in each segment", func(t *conformance.T, message []wire.Arrival) {
			rdmapBreaks(t, message, fmt.Sprintf("T=%t", m.op.Tagged()), wire.FaultTagged)
		}, "rfc5040-4.1-4", "rfc5040-4.1-5")
		add(m, "rfc5040-3.1-1", "one-ddp-message-for", "The target's %s is one DDP message: L on its last segment alone, and offsets without a gap", func(t *conformance.T, message []wire.Arrival) {
			rdmapBreaks(t, message, "the segments of one message", wire.FaultMessage, wire.FaultMO, wire.FaultTO, wire.FaultMSN)
			if n := len(rdmapPayload(message)); m.length >= 0 {
				t.Check(n == m.length, fmt.Sprintf("%d octets before the segment with the L flag ends", m.length), "%d", n)
			}
		})
		add(m, "rfc5040-4.2-1", "header-and-payload-of", "The target's %s has the RDMAP header of Figure 5, and ULP payload only if it may", m.content)
		if m.op.Tagged() {
			add(m, "rfc5040-4.1-7", "stag-and-to-of", "The target's %s has the STag and TO that it is for", func(t *conformance.T, message []wire.Arrival) {
				a := message[0]
				t.Check(a.STag == rdmapTheirSTag && a.TO == rdmapTheirTO,
					fmt.Sprintf("STag 0x%08x TO 0x%x", rdmapTheirSTag, uint64(rdmapTheirTO)), "STag 0x%08x TO 0x%x", a.STag, a.TO)
			})
			continue
		}
		add(m, m.queue, "queue-of", "The target's %s goes to its queue", func(t *conformance.T, message []wire.Arrival) {
			rdmapBreaks(t, message, fmt.Sprintf("queue %d", m.op.Queue()), wire.FaultQueue)
		}, "rfc5040-4.1-7")
		if m.op == wire.SendInvalidate || m.op == wire.SendSEInvalidate {
			add(m, "rfc5040-5.3-7", "invalidate-stag-of", "The target's %s carries the STag to invalidate in each segment", func(t *conformance.T, message []wire.Arrival) {
				for _, a := range message {
					got := a.FPDU.ULPDU[2:6]
					t.Check(bytes.Equal(got, []byte{0x0B, 0xAD, 0xCA, 0xFE}), "0badcafe in RsvdULP's octets two to five", "%x", got)
				}
			}, "rfc5040-4.1-3")
			continue
		}
		add(m, "rfc5040-4.1-10", "no-invalidate-stag-in", "The Invalidate STag is zero in the target's %s", func(t *conformance.T, message []wire.Arrival) {
			rdmapBreaks(t, message, "an Invalidate STag of zero", wire.FaultInvalidate)
		})
	}
	return append(out, rdmapInvalidateOnce()...)
}

// rdmapInvalidateOnce is the cases on messages behind a Send with Invalidate.
func rdmapInvalidateOnce() []conformance.Case {
	var out []conformance.Case
	for _, m := range []struct {
		post string
		op   wire.Opcode
	}{{service.OpSend, wire.Send}, {service.OpSendSE, wire.SendSE}, {service.OpRead, wire.ReadRequest}} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-4.1-10", Name: fmt.Sprintf("no-invalidate-stag-left-in-opcode-%d", m.op), Needs: conformance.NeedService,
			Title: fmt.Sprintf("Behind a Send with Invalidate, the Invalidate STag of the target's %s is zero again", m.op),
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, conformance.Setup{})
				rdmapPosted(service.OpSendInvalidate)(t, s)
				rdmapMessage(t, s, wire.SendInvalidate)
				rdmapPosted(m.post)(t, s)
				rdmapBreaks(t, rdmapMessage(t, s, m.op), "an Invalidate STag of zero", wire.FaultInvalidate)
			},
		})
	}
	return out
}

// content judges the payload of a message that the target has sent.
func (m *rdmapOutbound) content(t *conformance.T, message []wire.Arrival) {
	payload := rdmapPayload(message)
	switch m.op {
	case wire.ReadRequest:
		t.Check(len(payload) == wire.ReadRequestLen, "the 28 octets of an RDMA Read Request Header, and no more", "%d", len(payload))
	case wire.Terminate:
		h, err := wire.ParseTerminate(payload)
		t.Check(err == nil && len(payload) >= 4, "a Terminate Header", "%d octets", len(payload))
		_, rest := rdmapTail(t, h)
		t.Check(len(bytes.Trim(rest, "\x00")) == 0, "no octets behind the Terminate Header, or zeros", "%x", rest)
	default:
		want := service.Pattern(rdmapSeed, m.length)
		t.Check(bytes.Equal(payload, want), fmt.Sprintf("the program's %d octets and no header", m.length), "%d octets: %x", len(payload), rdmapClip(payload))
	}
}
