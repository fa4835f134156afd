package cases

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// enhanced is the cases on enhanced connection set-up (RFC 6581).
func enhanced() []conformance.Case {
	return crashInitiators(slices.Concat(
		enhancedFrames, reservedBitsAreIgnored(), revisions, enhancedPrivateData(),
		enhancedValues(), responderDepths(), initiatorDepths(),
		responderOutbound(), initiatorOutbound(), inboundDepths(),
		responderRTRFlags(), initiatorRTRFlags(), clientServer(),
		initiatorRTR(), noRTRInCommon, responderRTR(), wrongRTR(),
	))
}

// kinds is a set of ready-to-receive indications (RFC 6581 §9.2).
type kinds uint8

const (
	sendRTR kinds = 1 << iota
	writeRTR
	readRTR

	allRTR = sendRTR | writeRTR | readRTR
)

// kindNames are those of single kinds, as the test service has them.
var kindNames = []string{"send", "write", "read"}

// names returns the kinds as the test service has them.
func (k kinds) names() []string {
	list := []string{}
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}

// String names the kinds for people and IDs.
func (k kinds) String() string {
	if k == 0 {
		return "none"
	}
	return strings.Join(k.names(), "-")
}

// sets are all sets of one kind or more.
func sets() []kinds {
	var all []kinds
	for k := range allRTR {
		all = append(all, k+1)
	}
	return all
}

// into sets the flags of a block.
func (k kinds) into(e wire.Enhanced) wire.Enhanced {
	e.RTRSend, e.RTRWrite, e.RTRRead = k&sendRTR != 0, k&writeRTR != 0, k&readRTR != 0
	return e
}

// kindsOf returns the kinds whose flags a block has set.
func kindsOf(e wire.Enhanced) kinds {
	var k kinds
	for i, set := range []bool{e.RTRSend, e.RTRWrite, e.RTRRead} {
		if set {
			k |= 1 << i
		}
	}
	return k
}

// kindOf returns the kind that a message is, or 0 if it is none.
func kindOf(s wire.Segment) kinds {
	switch {
	case !s.Last:
	case s.Opcode == wire.Send && len(s.Payload) == 0:
		return sendRTR
	case s.Opcode == wire.Write && len(s.Payload) == 0:
		return writeRTR
	case s.Opcode == wire.ReadRequest:
		if h, err := wire.ParseReadHeader(s.Payload); err == nil && h.Length == 0 {
			return readRTR
		}
	}
	return 0
}

// knows skips the case if the target does not know the peer-to-peer model, or all the
// kinds.
func knows(t *conformance.T, k kinds) {
	if !t.Service().Hello().Features.PeerToPeer {
		t.Skip("the target does not know the peer-to-peer model")
	}
	for _, name := range k.names() {
		if !slices.Contains(t.Service().Hello().Features.RTR, name) {
			t.Skip("the target knows no RTR by %s", name)
		}
	}
}

// plain is the block of an ordinary start-up in the client-server model.
var plain = wire.Enhanced{IRD: conformance.DefaultDepth, ORD: conformance.DefaultDepth}

// peers is the block of one in the peer-to-peer model, with these kinds of RTR.
func peers(k kinds) wire.Enhanced {
	e := k.into(plain)
	e.PeerToPeer = true
	return e
}

// block returns a Request or a Reply with an enhanced block.
func block(key string, e wire.Enhanced, private ...byte) wire.Frame {
	return wire.Frame{Key: key, Rev: 2, Flags: wire.FlagC | wire.FlagS, Private: append(e.Octets(), private...)}
}

// replyTo sends a Request to a target that is the Responder, and returns the Reply,
// which has to come.
func replyTo(t *conformance.T, c *wire.Conn, request wire.Frame, wrong string) wire.Frame {
	t.Try(c.SendFrame(request, wrong), "sending the Request")
	f, err := c.ReadFrame(t.Timeout())
	if err != nil {
		ordinary(t, c)
		t.Fail("a Reply", "%v", err)
	}
	return f
}

// ask connects to a target that is the Responder, and returns the connection with
// the Reply to a Request, which has to accept.
func ask(t *conformance.T, setup conformance.Setup, request wire.Frame, wrong string) (*wire.Conn, wire.Frame) {
	c := t.Dial(setup)
	reply := replyTo(t, c, request, wrong)
	if reply.Flags&wire.FlagR != 0 {
		ordinary(t, c)
		t.Fail("a Reply that accepts", "%s", reply)
	}
	return c, reply
}

// ordinary makes sure that the Responder behind a connection accepts an ordinary
// Request: else it has reasons of its own to refuse another one.
func ordinary(t *conformance.T, c *wire.Conn) {
	again := t.DialAddr(c.RemoteAddr().String())
	t.Try(again.SendFrame(conformance.RequestFor(conformance.Setup{}), ""), "sending a Request")
	f, err := again.ReadFrame(t.Timeout())
	if err != nil || f.Flags&wire.FlagR != 0 {
		t.Inconclusive("the target does not accept an ordinary Request either")
	}
}

// requestOf has a target that is the Initiator connect, and returns its Request.
func requestOf(t *conformance.T, setup conformance.Setup) (*wire.Conn, wire.Frame) {
	c := t.Accept(setup)
	f, err := c.ReadFrame(t.Timeout())
	t.Try(err, "waiting for the Request")
	return c, f
}

// blockOf returns the enhanced block of a target's frame, which has to be there.
func blockOf(t *conformance.T, f wire.Frame) wire.Enhanced {
	e, _, ok := f.Enhanced()
	t.Check(ok, "an enhanced block at the front of the private data", "%s", f)
	return e
}

// offered returns the block of a target's Request. A target that asks for nothing
// enhanced can't be tried.
func offered(t *conformance.T, request wire.Frame) wire.Enhanced {
	e, _, ok := request.Enhanced()
	if !ok {
		t.Skip("the target asks for nothing enhanced")
	}
	return e
}

// answerOf returns the block of an ordinary Reply to the Request of a target: the
// kinds of RTR are those that it offers.
func answerOf(e wire.Enhanced) wire.Enhanced {
	ird, ord := e.IRD, e.ORD
	e.IRD, e.ORD = conformance.DefaultDepth, min(conformance.DefaultDepth, ird)
	if ord == wire.NoDepth {
		e.IRD = wire.NoDepth
	}
	if ird == wire.NoDepth {
		e.ORD = wire.NoDepth
	}
	if !e.PeerToPeer {
		return kinds(0).into(e)
	}
	return e
}

// operate turns a connection whose start-up is done to full operation. The RTR is
// still to come.
func operate(t *conformance.T, c *wire.Conn, request, reply wire.Frame) *conformance.Stream {
	s := t.NewStream(c, request, reply)
	theirs := reply
	if t.Role() == conformance.Initiator {
		theirs = request
	}
	s.IRD = conformance.DefaultDepth
	if e, _, ok := theirs.Enhanced(); ok {
		s.IRD = e.IRD
	}
	return s
}

// started is operate that also finds the target's queue pair. In the peer-to-peer
// model, a Responder may keep it back until it has got the RTR.
func started(t *conformance.T, c *wire.Conn, request, reply wire.Frame) (*conformance.Stream, *service.Params) {
	s := operate(t, c, request, reply)
	qp, params, err := t.Started()
	t.Check(err == nil, "that start-up succeeds", "%v", err)
	t.Check(params != nil, "what start-up has settled", "nothing")
	s.QP = qp
	return s, params
}

// passReady lets the RTR of the peer-to-peer model pass, in whichever direction it
// goes, if the frames agree upon it.
func passReady(t *conformance.T, s *conformance.Stream) {
	e, _, ok := s.Request.Enhanced()
	answer, _, _ := s.Reply.Enhanced()
	switch {
	case !ok || !e.PeerToPeer:
	case s.Role == conformance.Initiator:
		takeReady(t, s, kindsOf(e)&kindsOf(answer))
	default:
		giveReady(s, kindsOf(answer))
	}
}

// takeReady makes sure that the first message of the target is an RTR of one of the
// kinds. A Read is answered.
func takeReady(t *conformance.T, s *conformance.Stream, agreed kinds) {
	expected := "an RTR by " + agreed.String()
	a, err := s.Next(t.Timeout())
	if err != nil {
		t.Fail(expected, "%v", err)
	}
	k := kindOf(a.Segment)
	t.Check(k&agreed != 0, expected, "%s", a.Segment)
	s.Spoken = true
	if h, err := wire.ParseReadHeader(a.Payload); k == readRTR && err == nil {
		s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, nil))
	}
}

// giveReady sends an RTR of one of the kinds: a Write if they leave the choice. The
// answer to a Read is still to be taken.
func giveReady(s *conformance.Stream, agreed kinds) kinds {
	switch {
	case agreed&writeRTR != 0 || agreed == 0:
		s.Hello()
		return writeRTR
	case agreed&readRTR != 0:
		s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
		return readRTR
	}
	s.Post(wire.Untagged(wire.Send, nil))
	return sendRTR
}

// over reports whether an error says that the target has ended its half.
func over(err error) bool {
	_, ok := errors.AsType[*wire.EndError](err)
	return ok
}

// overhear has the connection take what an Initiator sends after the Reply as
// FPDUs.
func overhear(c *wire.Conn, request, reply wire.Frame) {
	c.Operate(request.Flags&wire.FlagM != 0, reply.Flags&wire.FlagM != 0, (request.Flags|reply.Flags)&wire.FlagC != 0)
}

// awaitRefusal makes sure that the target, after a frame that it can't accept, does
// not continue: it ends the connection, or a Responder rejects, or an Initiator
// sends a Terminate, or nothing, as TCP may be left open.
func awaitRefusal(t *conformance.T, c *wire.Conn, request, reply wire.Frame) {
	const expected = "that the target closes the connection, or refuses it"
	if t.Role() == conformance.Responder {
		f, err := c.ReadFrame(t.Timeout())
		if over(err) {
			return
		}
		t.Check(err == nil, expected, "%v", err)
		t.Check(f.Flags&wire.FlagR != 0, expected, "%s", f)
		return
	}
	overhear(c, request, reply)
	if a, err := c.Next(t.Quiet()); err == nil {
		t.Check(a.Opcode == wire.Terminate, expected, "%s", a.Segment)
	}
}

// awaitClose makes sure that the target closes the connection after a malformed
// frame, and sends nothing.
func awaitClose(t *conformance.T, c *wire.Conn, request, reply wire.Frame) {
	const expected = "that the target closes the connection"
	var got fmt.Stringer
	var err error
	if t.Role() == conformance.Responder {
		got, err = c.ReadFrame(t.Timeout())
	} else {
		overhear(c, request, reply)
		got, err = c.Next(t.Timeout())
	}
	if over(err) {
		return
	}
	t.Check(err == nil, expected, "%v", err)
	t.Fail(expected, "%s", got)
}
