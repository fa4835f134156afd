package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// extensionTerminates: what a Terminate says of the new messages (RFC 7306 §8.1).
func extensionTerminates() []conformance.Case {
	echo := func(name, title string, run func(t *conformance.T) (*conformance.Stream, wire.Segment)) conformance.Case {
		return conformance.Case{
			Clause: "rfc7306-8.1-2", Name: name, Needs: conformance.NeedService,
			Title: "The Terminate for " + title + " has its DDP header, and no RDMA header",
			Run: func(t *conformance.T) {
				s, bad := run(t)
				bad = s.Due(bad)
				s.Post(bad)
				echoes(t, s.AwaitTerminate(), bad)
			},
		}
	}
	return []conformance.Case{
		echo("unaligned-atomic-echoed", "an unaligned atomic", func(t *conformance.T) (*conformance.Stream, wire.Segment) {
			s := openAtomics(t, conformance.Setup{})
			return s, alien(atomicRequest(fetchAdd(atomicBuffer(s, 64), 1, 1, 0)), "the address is not aligned")
		}),
		echo("unknown-atomic-echoed", "an atomic with an operation code that is not assigned", func(t *conformance.T) (*conformance.Stream, wire.Segment) {
			s := openAtomics(t, conformance.Setup{})
			h := fetchAdd(atomicBuffer(s, 64), 0, 1, 0)
			h.Operation = 9
			return s, alien(atomicRequest(h), "operation code 9")
		}),
		echo("forbidden-atomic-echoed", "an atomic on memory that is not open for it", func(t *conformance.T) (*conformance.Stream, wire.Segment) {
			s := openAtomics(t, conformance.Setup{})
			return s, alien(atomicRequest(fetchAdd(s.Buffer(64), 0, 1, 0)), "the region grants no atomics")
		}),
		echo("short-immediate-echoed", "Immediate Data of 7 octets", func(t *conformance.T) (*conformance.Stream, wire.Segment) {
			s := openImmediate(t, conformance.Setup{Recvs: []uint32{16}})
			return s, alien(immediate(wire.ImmediateData, immediateOctets[:7]), "it has 7 octets")
		}),
		echo("long-immediate-echoed", "Immediate Data of 9 octets", func(t *conformance.T) (*conformance.Stream, wire.Segment) {
			s := openImmediate(t, conformance.Setup{Recvs: []uint32{16}})
			return s, alien(immediate(wire.ImmediateDataSE, conformance.Pattern(9)), "it has 9 octets")
		}),
		echo("mismatched-response-echoed", "an Atomic Response to another request", func(t *conformance.T) (*conformance.Stream, wire.Segment) {
			s := openOwnAtomics(t, conformance.Setup{})
			s.Posts(ownFetchAdd(0))
			_, h := awaitAtomicRequest(t, s)
			return s, alien(atomicResponse(^h.RequestID, 1), "no atomic with that identifier is outstanding")
		}),
		{
			Clause: "rfc7306-8.1-1", Name: "local-error-without-headers",
			Title: "A Terminate for a reason of the target's own says local catastrophic error, and has neither a DDP header nor an RDMA header",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				go func() { _ = t.Service().Terminate(t.Context(), s.QP, t.Timeout()) }() // it ends when the tester closes
				a := s.AwaitTerminate()
				h, err := wire.ParseTerminate(a.Payload)
				t.Try(err, "taking the Terminate apart")
				t.Check(h.Code>>8 == 0, "layer 0 and error type 0", "%s", h.Code)
				t.Check(h.Control&(wire.TermM|wire.TermD|wire.TermR) == 0 && blank(h.Tail), "no headers, or zeros in their place", "control 0x%02x and %x", h.Control, h.Tail)
			},
		},
	}
}

// echoes checks that a Terminate has the DDP header of the message in error, and no
// RDMA header, or zeros in its place (RFC 7306 §8.1 rule 2).
func echoes(t *conformance.T, a wire.Arrival, bad wire.Segment) {
	h, err := wire.ParseTerminate(a.Payload)
	t.Try(err, "taking the Terminate apart")
	t.Check(h.Control&wire.TermD != 0, "a Terminate whose bit D is set", "control 0x%02x", h.Control)
	_, ddp, rdma, err := h.Headers()
	t.Check(err == nil, "a Terminate with what its control bits announce", "%x behind 0x%02x", h.Tail, h.Control)
	t.Check(bytes.Equal(ddp, bad.Header()), fmt.Sprintf("the DDP header %x", bad.Header()), "%x", ddp)
	t.Check(blank(rdma), "no RDMA header, or zeros in its place", "%x", rdma)
}

func blank(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// extensionsAstray: the new opcodes where they don't belong. Targets without the
// extensions have to refuse them just the same (RFC 5040 §7.2).
func extensionsAstray() []conformance.Case {
	var out []conformance.Case
	for _, x := range []struct {
		name string
		op   wire.Opcode
	}{
		{"imm", wire.ImmediateData},
		{"imm-se", wire.ImmediateDataSE},
		{"atomic-request", wire.AtomicRequest},
		{"atomic-response", wire.AtomicResponse},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc7306-8.2-2", Name: x.name + "-tagged", Also: []string{"rfc5040-7.2-2"},
			Title: fmt.Sprintf("A tagged message of no octets with the opcode of %s is refused: Terminate 0x0206", x.op),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Post(alien(wire.Tagged(x.op, 0, 0, nil), "it is tagged"))
				s.AwaitTerminate(remoteOperation...)
			},
		})
	}
	for _, qn := range []uint32{0, 2, 3} {
		codes := remoteOperation
		switch qn {
		case 2:
			codes = append([]wire.Code{wire.DDPTooLong}, codes...)
		case 3:
			codes = append([]wire.Code{wire.DDPNoBuffer, wire.DDPInvalidQN}, codes...)
		}
		out = append(out, conformance.Case{
			Clause: "rfc7306-8.2-2", Name: fmt.Sprintf("atomic-request-on-queue-%d", qn), Also: []string{"rfc7306-5.2-1"},
			Title: fmt.Sprintf("An Atomic Request on queue %d is refused by a Terminate, and changes nothing", qn),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{Recvs: []uint32{64}})
				b := atomicBuffer(s, 64)
				r := atomicRequest(fetchAdd(b, 0, 1, 0))
				r.QN = qn
				s.Post(alien(r, fmt.Sprintf("it is on queue %d", qn)))
				s.AwaitTerminate(codes...)
				s.AwaitUntouched(b)
				if qn == 0 {
					notDelivered(t, s)
				}
			},
		})
	}
	return out
}
