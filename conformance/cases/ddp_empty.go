package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Messages of no bytes (RFC 5041 §5.2).
func ddpEmpty() []conformance.Case {
	cases := slices.Clone(emptyMessages)
	for _, w := range []struct {
		stag uint32
		to   uint64
	}{{0, 0}, {0xDEADBE00, 1}, {0xFFFFFFFF, 1<<64 - 1}} {
		cases = append(cases, emptyWrite(w.stag, w.to))
	}
	for _, o := range []struct {
		name string
		op   wire.Opcode
		post service.Post
	}{
		{"send", wire.Send, service.Post{Op: service.OpSend}},
		{"write", wire.Write, service.Post{Op: service.OpWrite, Remote: theirs}},
	} {
		cases = append(cases, emptySent(o.name, o.op, o.post))
	}
	return cases
}

func emptyWrite(stag uint32, to uint64) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-5.2-11", Name: fmt.Sprintf("write-to-stag-%08x", stag), Also: []string{"rfc5041-5.2-10"},
		Title: fmt.Sprintf("A Write of no octets to STag 0x%08x, TO 0x%x, which nobody gave, is taken: neither is checked", stag, to),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(wire.Tagged(wire.Write, stag, to, nil))
			s.AwaitAlive()
		},
	}
}

func emptySent(name string, op wire.Opcode, post service.Post) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-5.2-9", Name: name,
		Title: fmt.Sprintf("%s of no octets, which the target's program posts, is one segment", op),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Posts(post, service.Post{Op: service.OpSendSE, Data: []byte{1}})
			a := s.Await(op)
			t.Check(a.Last, "a segment with L=1", "%s", a.Segment)
			t.Check(len(a.Payload) == 0, "no payload", "%d octets", len(a.Payload))
			s.Await(wire.SendSE)
		},
	}
}

var emptyMessages = []conformance.Case{
	{
		Clause: "rfc5041-5.2-9", Name: "read-response",
		Title: "The response to a Read of no octets is one segment",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			for range 2 { // the second shows that nothing follows the first
				s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
				a := answer(t, s, wire.ReadResponse)
				t.Check(a.Last, "a segment with L=1", "%s", a.Segment)
				t.Check(len(a.Payload) == 0, "no payload", "%d octets", len(a.Payload))
			}
		},
	},
	{
		Clause: "rfc5041-5.2-11", Name: "write-beyond-a-buffer",
		Title: "A Write of no octets to a buffer's STag and a TO far beyond it is taken: TO is not checked",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(8)
			s.Post(wire.Tagged(wire.Write, b.STag, b.TO+1<<40, nil))
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5041-5.2-11", Name: "write-without-the-right",
		Title: "A Write of no octets to memory that is not open for writes is taken: the STag is not checked",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 8, Access: []string{service.RemoteRead}})
			s.Post(wire.Tagged(wire.Write, b.STag, b.TO, nil))
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5041-5.2-11", Name: "read-response-to-another-stag",
		Title: "The target's Read of no octets completes by a response of none, though it names another STag and TO",
		Also:  []string{"rfc5041-5.2-10"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			h, _ := awaitRead(t, s, 0)
			s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag^0x5A5A5A5A, h.SinkTO+12345, nil))
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
		},
	},
	{
		Clause: "rfc5041-5.4-2", Name: "no-octets",
		Title: "A Send of no octets takes a receive, and is delivered with length 0; the next one gets the next receive",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8}})
			s.Post(wire.Untagged(wire.Send, nil), wire.Untagged(wire.Send, conformance.Pattern(5)))
			delivers(t, s, nil)
			delivers(t, s, conformance.Pattern(5))
		},
	},
	{
		Clause: "rfc5041-5.4-2", Name: "no-octets-into-no-octets",
		Title: "A Send of no octets is delivered into a receive of none",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{0, 8}})
			s.Post(wire.Untagged(wire.Send, nil), wire.Untagged(wire.Send, conformance.Pattern(5)))
			delivers(t, s, nil)
			delivers(t, s, conformance.Pattern(5))
		},
	},
}
