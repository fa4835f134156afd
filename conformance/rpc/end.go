package rpc

import (
	"errors"
	"fmt"
	"time"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// An End is the tester's end of a connection of RPC-over-RDMA, of either kind.
type End struct {
	*conformance.Stream
	// Ours and Theirs are what start-up has carried, or nil.
	Ours, Theirs *Private
	// Sinks are the target's RDMA Reads, whose sinks are memory of its own.
	Sinks []wire.ReadHeader

	t      *conformance.T
	memory memory
}

// newEnd opens a connection whose start-up carries private data.
func newEnd(t *conformance.T, private []byte) *End {
	s := t.Open(conformance.Setup{Private: private})
	theirs := s.Reply
	if s.Role == conformance.Initiator {
		theirs = s.Request
	}
	ulp := theirs.Private
	if _, rest, ok := theirs.Enhanced(); ok {
		ulp = rest
	}
	e := &End{Stream: s, Ours: FindPrivate(private), Theirs: FindPrivate(ulp), t: t}
	e.Note(wire.Target, "%s", e.Theirs)
	return e
}

// A Message is a Send of the target.
type Message struct {
	Header
	Invalid    error  // what is wrong with the header
	Payload    []byte // the Payload stream behind it
	Length     int    // of all
	Opcode     wire.Opcode
	Invalidate uint32 // STag of a Send with Invalidate
}

// Invalidating reports whether the message came by a Send with Invalidate.
func (m *Message) Invalidating() bool {
	return m.Opcode == wire.SendInvalidate || m.Opcode == wire.SendSEInvalidate
}

// piece is how many bytes of a longer message go into an FPDU.
const piece = 1024

// Post sends a header with a Payload stream behind it, by one Send. What is wrong with
// it is human-readable.
func (e *End) Post(h Header, payload []byte, wrong string) {
	e.PostOctets(append(h.Octets(), payload...), h.String(), wrong)
}

// PostOctets sends any bytes by one Send.
func (e *End) PostOctets(b []byte, what, wrong string) {
	if wrong != "" {
		what += " (" + wrong + ")"
	}
	e.Note(wire.Tester, "%s", what)
	s := wire.Untagged(wire.Send, b)
	s.Wrong = wrong
	e.post(s)
}

// post sends a message in as many segments as it takes, all with one MSN.
func (e *End) post(message wire.Segment) {
	message = e.Due(message)
	for _, s := range conformance.Segments(message, piece) {
		e.PostExact(s, wire.Flaw{})
	}
	if !message.Tagged {
		e.SetMSN(message.QN, message.MSN+1)
	}
}

// A TerminateError says that the target has sent a Terminate.
type TerminateError struct{ Code wire.Code }

// Error names the code.
func (e *TerminateError) Error() string { return "a Terminate with " + e.Code.String() }

// errUnexpected says that there came what no peer sends.
var errUnexpected = errors.New("no message of RPC-over-RDMA")

const within = "that the target reaches no memory but that of the chunks of calls in progress"

// Next returns the next message, and serves the target's RDMA Reads and Writes before
// it, which end the case as failed if they reach beyond what is lent. It returns what
// Stream.Next does, or a *TerminateError.
func (e *End) Next(timeout time.Duration) (*Message, error) {
	deadline := time.Now().Add(timeout)
	var m *Message
	var b []byte
	for {
		a, err := e.Stream.Next(time.Until(deadline))
		if err != nil {
			return nil, err
		}
		switch a.Opcode {
		case wire.Send, wire.SendSE, wire.SendInvalidate, wire.SendSEInvalidate:
			if m == nil {
				m = &Message{Opcode: a.Opcode, Invalidate: a.Invalidate}
			}
			b = append(b, a.Payload...)
			if a.Last {
				m.Length = len(b)
				m.Header, m.Payload, m.Invalid = ParseHeader(b)
				e.Note(wire.Target, "%s", m.Header)
				return m, nil
			}
		case wire.Write:
			if err := e.memory.write(a.Segment); err != nil {
				e.t.Fail(within, "an RDMA Write to %v", err)
			}
		case wire.ReadRequest:
			e.serve(a.Segment)
		case wire.Terminate:
			h, err := wire.ParseTerminate(a.Payload)
			if err != nil {
				return nil, err
			}
			return nil, &TerminateError{h.Code}
		default:
			return nil, fmt.Errorf("%w: %s", errUnexpected, a.Segment)
		}
	}
}

// serve answers an RDMA Read.
func (e *End) serve(s wire.Segment) {
	h, err := wire.ParseReadHeader(s.Payload)
	e.t.Try(err, "parsing a Read Request")
	data, err := e.memory.read(h)
	if err != nil {
		e.t.Fail(within, "an RDMA Read of %v", err)
	}
	e.Sinks = append(e.Sinks, h)
	e.post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, data))
}

// came describes why there is no message.
func came(err error) string {
	if errors.Is(err, wire.ErrSilence) {
		return "nothing"
	}
	return err.Error()
}

// Await returns the next message, which has to come.
func (e *End) Await(expected string) *Message {
	m, err := e.Next(e.t.Timeout())
	if err != nil {
		e.t.Fail(expected, "%s", came(err))
	}
	return m
}

// AwaitSilence makes sure that no message comes for a while, and that the connection
// stays.
func (e *End) AwaitSilence(why string) {
	m, err := e.Next(e.t.Quiet())
	switch {
	case err == nil:
		e.t.Fail("nothing, "+why, "%s", m.Header)
	case !errors.Is(err, wire.ErrSilence):
		e.t.Fail("nothing, "+why, "%s", came(err))
	}
}

// AwaitNoMessage makes sure that no message comes for a while. That the target gives up
// the connection is another matter.
func (e *End) AwaitNoMessage(why string) {
	if m, err := e.Next(e.t.Quiet()); err == nil {
		e.t.Fail("nothing, "+why, "%s", m.Header)
	}
}

// Lend lends memory for RDMA Reads.
func (e *End) Lend(data []byte) *Region { return e.memory.lend(data, true, false) }

// Room lends memory of n bytes for RDMA Writes.
func (e *End) Room(n int) *Region {
	data := make([]byte, n)
	for i := range data {
		data[i] = Fill
	}
	return e.memory.lend(data, false, true)
}

// At returns what stands in memory that a segment of the target's names. It ends the
// case as failed if that is not lent.
func (e *End) At(s Segment) []byte {
	for _, g := range e.memory.regions {
		off := s.Offset - g.TO
		if g.STag == s.Handle && s.Offset >= g.TO && off+uint64(s.Length) <= uint64(len(g.Data)) {
			return g.Data[off : off+uint64(s.Length)]
		}
	}
	e.t.Fail("segments of the call in the reply", "%s", s)
	return nil
}
