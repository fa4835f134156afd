package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// ULPDUs of all lengths, as the target receives them (RFC 5044 §3, §4.1, §4.3, §6).
func framingLengths() []conformance.Case {
	var cases []conformance.Case
	also := []string{"rfc5044-4.3-12", "rfc5044-5.2-1", "rfc5044-6-3"}
	// With each number of pad bytes; and the whole of rping's buffer.
	for _, n := range []int{taggedLen, taggedLen + 1, taggedLen + 2, taggedLen + 3, taggedLen + 4, taggedLen + 64} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-3-6", Name: fmt.Sprintf("ulpdu-of-%d", n), Also: also, Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("A Write in a ULPDU of %s is placed: its data, and nothing else", octets(n)),
			Run:   func(t *conformance.T) { receivesULPDU(t, conformance.Setup{}, n) },
		})
	}
	// About the least MULPDU, half a KB, the MULPDU of an Ethernet, and at the end.
	for _, n := range []int{127, 128, 129, 507, 508, 509, 511, 512, 513, mulpduRFC - 1, mulpduRFC, mulpduRFC + 1, 1 << 15, maxULPDU - 1, maxULPDU} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-3-6", Name: fmt.Sprintf("ulpdu-of-%d", n), Also: also, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A Write in a ULPDU of %s is placed: its data, and nothing else", octets(n)),
			Run:   func(t *conformance.T) { receivesULPDU(t, conformance.Setup{}, n) },
		})
	}
	for _, n := range []int{0, 1, maxULPDU + 1, 65535} {
		var needs conformance.Needs
		if n > taggedLen {
			needs = conformance.NeedService
		}
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-5.2-1", Name: fmt.Sprintf("ulpdu-of-%d", n), Needs: needs,
			Title: fmt.Sprintf("A ULPDU of %s, which no DDP sends, ends the stream, or the FPDU behind it is found all the same", octets(n)),
			Run:   func(t *conformance.T) { strangeULPDU(t, n) },
		})
	}
	return append(cases,
		conformance.Case{
			Clause: "rfc5044-5.2-1", Name: "lengths-in-a-row", Also: []string{"rfc5044-6-3", "rfc5044-5.1-1"}, Needs: conformance.NeedBuffer,
			Title: "Of FPDUs with 0 to 64 octets of data, sent in one piece, each begins where the length of the one before says",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				m := openMemory(t, s, 64)
				sendRaw(s, merged(s, stairs(m)...), "Writes of each length", "")
				m.check()
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.3-11", Name: "two-sends", Also: []string{"rfc5044-3-6"}, Needs: conformance.NeedService,
			Title: "Two Sends whose FPDUs come in one piece are two messages, each with its own length",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{Recvs: []uint32{64, 64}})
				first, second := []byte("one"), []byte("another one")
				a := wire.Untagged(wire.Send, first)
				b := wire.Untagged(wire.Send, second)
				a.MSN, b.MSN = 1, 2
				sendRaw(s, merged(s, a, b), "two Sends", "")
				for _, want := range [][]byte{first, second} {
					c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
					t.Check(bytes.Equal(c.Data, want), fmt.Sprintf("a message of %q", want), "%q", []byte(c.Data))
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-3-7", Name: "revision-1", Needs: conformance.NeedService,
			Title: "After a start-up with revision 1 DDP sends version 1",
			Run: func(t *conformance.T) {
				setup := conformance.Setup{Revision: 1}
				if t.Role() == conformance.Initiator {
					setup = revision1(t)
				}
				sendsVersion(t, setup)
			},
		},
		conformance.Case{
			Clause: "rfc5044-3-7", Name: "revision-2", Needs: conformance.NeedService,
			Title: "After a start-up with revision 2 DDP sends version 1, too: there is no other",
			Run:   func(t *conformance.T) { sendsVersion(t, conformance.Setup{}) },
		},
	)
}

// receivesULPDU sends a Write in a ULPDU of n bytes.
func receivesULPDU(t *conformance.T, setup conformance.Setup, n int) {
	s := t.Open(setup)
	m := openMemory(t, s, max(n-taggedLen, 1))
	s.Post(m.write(0, conformance.Pattern(n-taggedLen)))
	m.check()
}

// strangeULPDU sends a ULPDU of a length that there can't be, and a Read of no
// bytes behind it. Nothing says what the target does with the former, though MPA,
// which takes from 1 to 64768 bytes (RFC 5044 §3), must not lose its way.
func strangeULPDU(t *conformance.T, n int) {
	s := t.Open(conformance.Setup{})
	s.Hello()
	if n < taggedLen {
		what := fmt.Sprintf("a ULPDU of %s", octets(n))
		if err := s.SendULPDU(make([]byte, n), wire.Flaw{Wrong: "it is shorter than a DDP header"}, what); err != nil {
			t.Inconclusive("sending: %v", err)
		}
	} else {
		b := s.Buffer(n - taggedLen)
		w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(n-taggedLen))
		w.Wrong = "a ULPDU has at most 64768 octets"
		s.Post(w)
	}
	s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
	const expected = "an answer to the Read that follows, or that the target ends the stream"
	for {
		a, err := s.Next(t.Timeout())
		switch {
		case err == nil && (a.Opcode == wire.ReadResponse || a.Opcode == wire.Terminate):
			return
		case err == nil:
		case s.End() != wire.Open:
			return
		case n == 0 || n > maxULPDU:
			t.Inconclusive("nothing came, which the RFCs allow: there are no such ULPDUs")
		default:
			t.Fail(expected, "%s", what(err))
		}
	}
}

// sendsVersion has the target send, and looks at DDP's version.
func sendsVersion(t *conformance.T, setup conformance.Setup) {
	s := t.Open(setup)
	if t.Role() == conformance.Responder {
		s.Hello()
	}
	s.Posts(service.Post{Op: service.OpSend, Data: []byte("version")})
	m := s.AwaitMessage(wire.Send)
	t.Check(m.Version == 1, "DDP version 1", "version %d", m.Version)
}
