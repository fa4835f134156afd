package rpc

import (
	"fmt"
	"time"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// A Server is the tester's end towards a target that is a client.
type Server struct {
	*End
	// Grant is how many credits its replies grant.
	Grant uint32
}

// Serve waits for a client's connection; private is all of the ULP's private data.
func Serve(t *conformance.T, private []byte) *Server {
	return &Server{End: newEnd(t, private), Grant: 1}
}

// An Incoming is a call of the target.
type Incoming struct {
	*Message
	Call Call
}

// NextCall returns the next message as a call; its error is that of Next. A message
// that is none ends the case as failed.
func (s *Server) NextCall(timeout time.Duration) (*Incoming, error) {
	const expected = "a well-formed call"
	m, err := s.Next(timeout)
	if err != nil {
		return nil, err
	}
	if m.Invalid != nil {
		s.t.Fail(expected, "%s: %v", m.Header, m.Invalid)
	}
	in := &Incoming{Message: m}
	if m.Proc == Msg {
		if in.Call, err = ParseCall(m.Payload); err != nil {
			s.t.Fail(expected, "%s, and behind it: %v", m.Header, err)
		}
	}
	return in, nil
}

// AwaitCall returns the next message, which has to be a call. The case is inconclusive
// if there is none: a client may call at any time.
func (s *Server) AwaitCall() *Incoming {
	in, err := s.NextCall(s.t.Timeout())
	if err != nil {
		s.t.Inconclusive("the client does not call: %s", came(err))
	}
	return in
}

// ReplyHeader returns the header of a reply to a call, which uses none of its chunks.
func (s *Server) ReplyHeader(in *Incoming) Header {
	h := Header{XID: in.XID, Version: Version, Credits: s.Grant, Proc: Msg, Reply: unused(in.Reply)}
	for _, w := range in.Writes {
		h.Writes = append(h.Writes, unused(w))
	}
	return h
}

// unused returns a chunk into which nothing was put.
func unused(c Chunk) Chunk {
	if c == nil {
		return nil
	}
	out := make(Chunk, len(c))
	for i, s := range c {
		out[i] = s
		out[i].Length = 0
	}
	return out
}

// Reply answers a call in a way that any client understands: NULL has been done, and
// what else there is, is unavailable.
func (s *Server) Reply(in *Incoming) {
	r := Reply{XID: in.XID}
	if in.Call.Procedure != Null || in.Proc != Msg {
		r.Status = ProgUnavail
	}
	s.Post(s.ReplyHeader(in), r.Octets(), "")
}

// AwaitGoesOn makes sure that the client does not take its connection for broken: it
// calls, says nothing, or is done and closes.
func (s *Server) AwaitGoesOn(after string) {
	_, err := s.Next(s.t.Quiet())
	expected := "that the connection goes on after " + after
	switch e := err.(type) { //nolint:errorlint // Next wraps none of them
	case *TerminateError:
		s.t.Fail(expected, "%v", e)
	case *wire.EndError:
		if e.End == wire.Reset {
			s.t.Fail(expected, "%v", e)
		}
	}
}

// String describes the call.
func (in *Incoming) String() string {
	return fmt.Sprintf("%s: program %d version %d procedure %d", in.Header, in.Call.Program, in.Call.Version, in.Call.Procedure)
}
