package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Where a message can go: to a tagged buffer, or to a queue.
const (
	rdmapTagged = -1
	rdmapQueues = 4 // RFC 7306 §10.2; RFC 5040 has three
)

// rdmapGoes reports whether messages of an opcode go there (RFC 5040 Figure 4, RFC
// 7306 Figure 2).
func rdmapGoes(op wire.Opcode, to int) bool {
	switch {
	case op > wire.AtomicResponse:
		return false
	case op.Tagged():
		return to == rdmapTagged
	}
	return to == int(op.Queue())
}

// rdmapStray returns a message of an opcode to where messages of it don't go: one
// with which nothing else is wrong.
func rdmapStray(op wire.Opcode, to int) wire.Segment {
	m := wire.Tagged(op, 0, 0, nil) // an empty one, whose STag and TO nobody checks
	if to != rdmapTagged {
		m = wire.Untagged(op, conformance.Pattern(8))
		m.QN = uint32(to)
	}
	switch {
	case to == rdmapTagged:
	case to == 2, op == wire.Terminate:
		m.Payload = wire.TerminateHeader{Code: wire.RDMAPGlobal}.Octets()
	case to == 1:
		m.Payload = wire.ReadHeader{SinkSTag: conformance.SinkSTag, SinkTO: conformance.SinkTO}.Octets()
	}
	m.Wrong = "messages of this opcode don't go there"
	if op > wire.AtomicResponse {
		m.Wrong = "a reserved opcode"
	}
	return m
}

// rdmapStrayCodes returns what a message that goes wrong can be refused with. A queue
// that its opcode must not use may count as none of the stream's.
func rdmapStrayCodes(to int) []wire.Code {
	switch to {
	case rdmapTagged:
		return []wire.Code{wire.RDMAPOpcode}
	case rdmapQueues - 1: // without atomics there is no such queue, and else no buffer
		return []wire.Code{wire.RDMAPOpcode, wire.DDPInvalidQN, wire.DDPNoBuffer}
	}
	return []wire.Code{wire.RDMAPOpcode, wire.DDPInvalidQN}
}

func rdmapPlace(to int) string {
	if to == rdmapTagged {
		return "in a tagged message"
	}
	return fmt.Sprintf("on queue %d", to)
}

// rdmapOpcodes is the cases on opcodes: each of the sixteen wherever its messages do
// not go, and those that may come first.
func rdmapOpcodes() []conformance.Case {
	var out []conformance.Case
	for op := range wire.Opcode(16) {
		for to := rdmapTagged; to < rdmapQueues; to++ {
			if !rdmapGoes(op, to) {
				out = append(out, rdmapStrayCase(op, to, false))
			}
		}
		first := rdmapTagged
		if op.Tagged() {
			first = 1
		}
		out = append(out, rdmapStrayCase(op, first, true))
	}
	for to := rdmapTagged; to < 2; to++ {
		out = append(out, rdmapNoTerminateCase(to))
	}
	return append(out, rdmapFirsts...)
}

// rdmapNoTerminateCase is the case on a Terminate that goes wrong, for which the program
// must not take it.
func rdmapNoTerminateCase(to int) conformance.Case {
	name := "terminate-in-a-tagged-message"
	if to != rdmapTagged {
		name = fmt.Sprintf("terminate-on-queue-%d", to)
	}
	return conformance.Case{
		Clause: "rfc5040-7.2-2", Name: name + "-is-none", Needs: conformance.NeedService, Also: []string{"rfc5040-5.4-2"},
		Title: fmt.Sprintf("A Terminate %s is an error, of which the program is told, and not a Terminate", rdmapPlace(to)),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapStray(wire.Terminate, to))
			s.AwaitTeardown()
			rdmapHasFailed(t, s)
			f := s.TargetState().Failure
			t.Check(f.Class != service.ClassPeer, "an error that the target has found itself", "%s", f.Text)
		},
	}
}

// rdmapStrayCase is the case on a message that goes wrong, as the first one of the
// stream or later.
func rdmapStrayCase(op wire.Opcode, to int, first bool) conformance.Case {
	codes := rdmapStrayCodes(to)
	c := conformance.Case{
		Clause: "rfc5040-7.2-2", Name: fmt.Sprintf("opcode-%d-on-queue-%d", op, to),
		Title: fmt.Sprintf("%s %s is refused: Terminate %s", op, rdmapPlace(to), conformance.Codes(codes...)),
	}
	switch to {
	case rdmapTagged:
		c.Name = fmt.Sprintf("opcode-%d-tagged", op)
	case 0:
		c.Needs = conformance.NeedRecv
	case 1:
		c.Clause = "rfc5040-7.2-7" // where Read Requests come
	}
	switch {
	case first:
		c.Name += "-first"
		c.Title = fmt.Sprintf("%s %s, as the first message of all, ends the stream", op, rdmapPlace(to))
	case op == wire.Terminate:
		c.Title = fmt.Sprintf("A Terminate %s, which is none, ends the stream", rdmapPlace(to))
	}
	c.Run = func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		if !first {
			s.Hello()
			s.AwaitAlive()
		}
		s.Post(rdmapStray(op, to))
		// With a wrong Terminate no Terminate has to answer, and of a Responder
		// whose first FPDU is wrong it isn't settled whether it may send one.
		if op == wire.Terminate || first && t.Role() == conformance.Responder {
			s.AwaitTeardown()
			return
		}
		s.AwaitTerminate(codes...)
	}
	return c
}

// Messages that may be the first of a stream.
var rdmapFirsts = []conformance.Case{
	{
		Clause: "rfc5040-7.2-2", Name: "rdma-write-first", Needs: conformance.NeedService,
		Title: "An RDMA Write may be the first message of all",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			s.Post(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(64)))
			s.AwaitAlive()
			s.AwaitContents(b, 0, conformance.Pattern(64))
		},
	},
	{
		Clause: "rfc5040-7.2-7", Name: "read-request-first",
		Title: "A Read Request may be the first message of all",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5040-7.2-2", Name: "send-first", Needs: conformance.NeedService,
		Title: "A Send may be the first message of all",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(16)))
			rdmapReceived(t, s, conformance.Pattern(16))
		},
	},
	{
		Clause: "rfc5040-7.2-2", Name: "terminate-first", Needs: conformance.NeedService,
		Title: "A Terminate may be the first message of all: the program is told of it",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(wire.Untagged(wire.Terminate, wire.TerminateHeader{Code: wire.RDMAPGlobal}.Octets()))
			rdmapTold(t, wire.RDMAPGlobal)
		},
	},
	{
		Clause: "rfc5040-7.2-7", Name: "read-request-on-queue-0-with-room", Needs: conformance.NeedService,
		Title: "A whole Read Request on queue 0, where a receive has room for it, is refused and not answered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64, 64}})
			s.Hello()
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.QN, m.Wrong = 0, "a Read Request on the queue of Sends"
			s.Post(m)
			s.AwaitTerminate(rdmapStrayCodes(0)...)
		},
	},
	{
		Clause: "rfc5040-7.2-2", Name: "send-on-queue-1-is-not-delivered", Needs: conformance.NeedService,
		Title: "A Send on queue 1 takes no receive of queue 0",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64, 64}})
			s.Hello()
			m := wire.Untagged(wire.Send, conformance.Pattern(28))
			m.QN, m.Wrong = 1, "a Send on the queue of Read Requests"
			s.Post(m)
			s.AwaitTerminate(rdmapStrayCodes(1)...)
			rdmapFlushed(t, s, 2)
		},
	},
}
