package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A rdmapInbound is a message that the tester sends, with something changed, and that
// has to come through.
type rdmapInbound struct {
	name  string
	needs conformance.Needs
	// send sends it, and makes sure that it has come through.
	send func(t *conformance.T, s *conformance.Stream, change func(*wire.Segment))
}

var rdmapInbounds = []rdmapInbound{
	{"empty-rdma-write", 0, func(_ *conformance.T, s *conformance.Stream, change func(*wire.Segment)) {
		m := wire.Tagged(wire.Write, 0, 0, nil)
		change(&m)
		s.Post(m)
		s.AwaitAlive()
	}},
	{"rdma-write", conformance.NeedBuffer, func(_ *conformance.T, s *conformance.Stream, change func(*wire.Segment)) {
		b := s.Buffer(64)
		m := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(64))
		change(&m)
		s.Post(m)
		s.AwaitAlive()
		s.AwaitContents(b, 0, m.Payload)
	}},
	{"read-request", 0, func(t *conformance.T, s *conformance.Stream, change func(*wire.Segment)) {
		if s.IRD == 0 {
			t.Skip("the target takes no Reads")
		}
		m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
		change(&m)
		s.Post(m)
		s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
	}},
	{"send", conformance.NeedService, rdmapSendThrough(wire.Send)},
	{"send-with-se", conformance.NeedService, rdmapSendThrough(wire.SendSE)},
	{"terminate", conformance.NeedService, func(t *conformance.T, s *conformance.Stream, change func(*wire.Segment)) {
		m := wire.Untagged(wire.Terminate, wire.TerminateHeader{Code: wire.RDMAPGlobal}.Octets())
		change(&m)
		s.Post(m)
		rdmapTold(t, wire.RDMAPGlobal)
	}},
}

func rdmapSendThrough(op wire.Opcode) func(*conformance.T, *conformance.Stream, func(*wire.Segment)) {
	return func(t *conformance.T, s *conformance.Stream, change func(*wire.Segment)) {
		m := wire.Untagged(op, conformance.Pattern(conformance.RecvLen))
		change(&m)
		s.Post(m)
		rdmapReceived(t, s, m.Payload)
	}
}

// rdmapReceived makes sure that the target's oldest receive has completed with data.
func rdmapReceived(t *conformance.T, s *conformance.Stream, data []byte) *service.Completion {
	c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
	t.Check(string(c.Data) == string(data) && int(c.Length) == len(data),
		fmt.Sprintf("that the program gets %d octets: %x", len(data), rdmapClip(data)), "%d: %x", c.Length, rdmapClip(c.Data))
	return c
}

// rdmapTold makes sure that the target's program is told of the tester's Terminate.
func rdmapTold(t *conformance.T, code wire.Code) {
	e := rdmapEvent(t, service.EventTerminated)
	expected := "that the program is told of a Terminate with " + code.String()
	if e.Failure == nil || e.Failure.Terminate == nil {
		t.Fail(expected, "an event without one: %s", e.Text)
	}
	got := e.Failure.Terminate
	t.Check(got.Word() == uint16(code), expected, "0x%04x (%s)", got.Word(), got.Name)
}

// rdmapControl is the cases on the RDMAP Control Field and the Invalidate STag as
// they come (RFC 5040 §4.1).
func rdmapControl() []conformance.Case {
	var out []conformance.Case
	for _, m := range rdmapInbounds {
		for bits := uint8(1); bits <= 3; bits++ {
			if bits != 3 && m.name != "read-request" {
				continue
			}
			out = append(out, conformance.Case{
				Clause: "rfc5040-4.1-9", Name: fmt.Sprintf("reserved-bits-%02b-in-%s", bits, m.name), Needs: m.needs,
				Also:  []string{"rfc5040-4.1-1", "rfc5040-4.1-2"},
				Title: fmt.Sprintf("The reserved bits of the RDMAP Control Field are %02b in %s: it is taken all the same", bits, m.name),
				Run: func(t *conformance.T) {
					s := t.Open(conformance.Setup{})
					m.send(t, s, func(m *wire.Segment) {
						m.RDMAPReserved, m.Wrong = bits, "reserved bits are set, which is to be ignored"
					})
				},
			})
		}
		if m.name == "empty-rdma-write" || m.name == "rdma-write" {
			continue // tagged
		}
		out = append(out, conformance.Case{
			Clause: "rfc5040-4.1-10", Name: "invalidate-stag-in-" + m.name, Needs: m.needs,
			Title: "The Invalidate STag of " + m.name + " is not zero: that is ignored",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				m.send(t, s, func(m *wire.Segment) {
					m.Invalidate, m.Wrong = 0xDEADBE00, "an Invalidate STag without Invalidate, which is to be ignored"
				})
			},
		})
		if m.name == "terminate" {
			continue
		}
		out = append(out, conformance.Case{
			Clause: "rfc5040-4.1-10", Name: "buffer-is-not-invalidated-by-" + m.name, Needs: m.needs | conformance.NeedBuffer,
			Title: "The Invalidate STag of " + m.name + " is that of a buffer: the buffer stays open",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.Buffer(64)
				m.send(t, s, func(m *wire.Segment) {
					m.Invalidate, m.Wrong = b.STag, "an Invalidate STag without Invalidate, which is to be ignored"
				})
				s.Read(b.STag, b.TO, 64)
			},
		})
	}
	return slices.Concat(out, rdmapConsortium(), rdmapVersions())
}

// rdmapConsortium is the cases on RV 00b, the RDMA Consortium's. Both versions are
// valid, says the RFC, and in the next sentence that it depends on the version of MPA
// whether such peers work together: to refuse it is not a fault.
func rdmapConsortium() []conformance.Case {
	var out []conformance.Case
	for _, m := range []struct {
		name    string
		needs   conformance.Needs
		message wire.Segment
	}{
		{"empty-rdma-write", 0, wire.Tagged(wire.Write, 0, 0, nil)},
		{"read-request", 0, conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)},
		{"send", conformance.NeedService, wire.Untagged(wire.Send, conformance.Pattern(8))},
		{"send-with-se", conformance.NeedService, wire.Untagged(wire.SendSE, conformance.Pattern(8))},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-4.1-8", Name: "rv-00-in-" + m.name, Needs: m.needs,
			Title: "RV is 00b, the RDMA Consortium's, in " + m.name + ": it is taken, or refused as an invalid version",
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				w := m.message
				w.RV = 0
				s.Post(w)
				if w.Opcode != wire.ReadRequest {
					s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
				}
				const expected = "that the message is taken, or refused with 0x0205"
				a, err := s.Answer(t.Timeout())
				if err != nil {
					t.Fail(expected, "%v", err)
				}
				if h, err := wire.ParseTerminate(a.Payload); a.Opcode == wire.Terminate && err == nil && h.Code.Is(wire.RDMAPVersion) {
					t.Inconclusive("the target refuses RV 00b: whether it may, depends on the version of MPA")
				}
				t.Check(a.Opcode == wire.ReadResponse, expected, "%s", a.Segment)
				if w.Opcode == wire.Send || w.Opcode == wire.SendSE {
					rdmapReceived(t, s, w.Payload)
				}
			},
		})
	}
	return out
}

// rdmapVersions is the cases on versions that do not exist (RFC 5040 §7.2).
func rdmapVersions() []conformance.Case {
	var out []conformance.Case
	for _, m := range []struct {
		clause, name string
		needs        conformance.Needs
		message      wire.Segment
	}{
		{"rfc5040-7.2-3", "empty-rdma-write", 0, wire.Tagged(wire.Write, 0, 0, nil)},
		{"rfc5040-7.2-3", "send", conformance.NeedRecv, wire.Untagged(wire.Send, conformance.Pattern(8))},
		{"rfc5040-7.2-3", "send-with-se", conformance.NeedRecv, wire.Untagged(wire.SendSE, conformance.Pattern(8))},
		{"rfc5040-7.2-3", "empty-send", conformance.NeedRecv, wire.Untagged(wire.Send, nil)},
		{"rfc5040-7.2-3", "terminate", 0, wire.Untagged(wire.Terminate, wire.TerminateHeader{}.Octets())},
		{"rfc5040-7.2-8", "read-request", 0, conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)},
	} {
		for rv := uint8(2); rv <= 3; rv++ {
			title := fmt.Sprintf("RV is %02b in %s: Terminate 0x0205", rv, m.name)
			if m.message.Opcode == wire.Terminate {
				title = fmt.Sprintf("RV is %02b in a Terminate: the stream ends", rv)
			}
			out = append(out, conformance.Case{
				Clause: m.clause, Name: fmt.Sprintf("rv-%02b-in-%s", rv, m.name), Needs: m.needs, Title: title,
				Run: func(t *conformance.T) {
					s := t.Open(conformance.Setup{})
					s.Hello()
					w := m.message
					w.RV, w.Wrong = rv, "a version of RDMAP that does not exist"
					s.Post(w)
					if w.Opcode == wire.Terminate {
						s.AwaitTeardown()
						return
					}
					s.AwaitTerminate(wire.RDMAPVersion)
				},
			})
		}
	}
	return out
}
