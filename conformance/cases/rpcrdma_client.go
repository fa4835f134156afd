package cases

import (
	"errors"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
	"urnic/conformance/wire"
)

// ofClient makes cases for targets that are clients.
func ofClient(cases []conformance.Case) []conformance.Case {
	for i := range cases {
		cases[i].Roles = conformance.Initiator
		cases[i].Needs |= conformance.NeedRPC
	}
	return cases
}

// withCall runs a case on a client's first call.
func withCall(private []byte, run func(t *conformance.T, s *rpc.Server, in *rpc.Incoming)) func(t *conformance.T) {
	return func(t *conformance.T) {
		s := rpc.Serve(t, private)
		run(t, s, s.AwaitCall())
	}
}

// someCalls answers calls, up to a number of them, as long as there are any.
func someCalls(t *conformance.T, s *rpc.Server, check func(in *rpc.Incoming)) {
	const most = 20
	for n := range most {
		in, err := s.NextCall(t.Quiet())
		if err != nil {
			if n == 0 {
				t.Inconclusive("the client does not call: %v", err)
			}
			return
		}
		check(in)
		s.Reply(in)
	}
}

// noRepeat is what a client must not do with a message that it discards.
const noRepeat = "as the message is to be silently discarded, and the only credit is in use"

// rpcClient holds what a client sends.
func rpcClient() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-4-1", Name: "call",
			Title: "The first call is a header that can be parsed, and a call of RPC behind it or in a Read chunk",
			Run: withCall(modest(), func(t *conformance.T, _ *rpc.Server, in *rpc.Incoming) {
				t.Check(in.Proc == rpc.Msg || in.Proc == rpc.NoMsg, "RDMA_MSG or RDMA_NOMSG", "%s", in.Header)
			}),
		},
		{
			Clause: "rfc8166-4.2.1-1", Name: "call",
			Title: "The XID in the header of a call is that of the RPC message behind it",
			Run: func(t *conformance.T) {
				s := rpc.Serve(t, modest())
				someCalls(t, s, func(in *rpc.Incoming) {
					t.Check(in.Proc != rpc.Msg || in.Call.XID == in.XID, "the header's XID in the RPC message", "0x%08x, and 0x%08x in the header", in.Call.XID, in.XID)
				})
			},
		},
		{
			Clause: "rfc8166-4.2.2-1", Name: "call",
			Title: "The version of a call is one",
			Run: func(t *conformance.T) {
				s := rpc.Serve(t, modest())
				someCalls(t, s, func(in *rpc.Incoming) {
					t.Check(in.Version == rpc.Version, "version 1", "%s", in.Header)
				})
			},
		},
		{
			Clause: "rfc8166-4.2.4-3", Name: "calls", Also: []string{"rfc8166-4.6.1-1", "rfc8166-4.6.2-1"},
			Title: "What a client sends is RDMA_MSG or RDMA_NOMSG: neither RDMA_ERROR, RDMA_MSGP nor RDMA_DONE",
			Run: func(t *conformance.T) {
				s := rpc.Serve(t, modest())
				someCalls(t, s, func(in *rpc.Incoming) {
					t.Check(in.Proc == rpc.Msg || in.Proc == rpc.NoMsg, "RDMA_MSG or RDMA_NOMSG", "%s", in.Header)
				})
			},
		},
		{
			Clause: "rfc8166-4.2.4-3", Name: "after-a-bad-reply",
			Title: "A reply that can't be parsed is not answered with RDMA_ERROR",
			Run: withCall(modest(), func(_ *conformance.T, s *rpc.Server, in *rpc.Incoming) {
				h := s.ReplyHeader(in)
				h.Proc = 5
				s.Post(h, rpc.Reply{XID: in.XID}.Octets(), "a procedure that there is not")
				s.AwaitNoMessage("as a requester does not send RDMA_ERROR")
			}),
		},
		{
			Clause: "rfc8166-3.3.3-1", Name: "first-call",
			Title: "Before the first reply, no second call comes",
			Run: withCall(modest(), func(_ *conformance.T, s *rpc.Server, _ *rpc.Incoming) {
				s.AwaitSilence("as nobody has granted more than one credit")
			}),
		},
		{
			Clause: "rfc8166-3.3.3-2", Name: "invalid-reply",
			Title: "A reply whose header can't be parsed grants nothing: no second call comes",
			Run: withCall(modest(), func(_ *conformance.T, s *rpc.Server, in *rpc.Incoming) {
				h := s.ReplyHeader(in)
				h.Credits = 32
				b := h.Octets()
				b[19] = 2
				s.PostOctets(append(b, rpc.Reply{XID: in.XID}.Octets()...), h.String(), "a Read list that begins with 2")
				s.AwaitNoMessage("as there is no valid reply")
			}),
		},
		{
			Clause: "rfc8166-3.3.1-1", Name: "grant-of-2",
			Title: "With two credits granted, never more than two calls are without a reply",
			Run:   func(t *conformance.T) { checkGrant(t, 2) },
		},
		{
			Clause: "rfc8166-3.3.1-1", Name: "grant-of-1",
			Title: "With one credit granted, never more than one call is without a reply",
			Run:   func(t *conformance.T) { checkGrant(t, 1) },
		},
		{
			Clause: "rfc8166-3.3.1-1", Name: "grant-reduced",
			Title: "When the grant falls from eight credits to one, no call comes before all but one are answered",
			Run: withCall(modest(), func(t *conformance.T, s *rpc.Server, in *rpc.Incoming) {
				s.Grant = 8
				s.Reply(in)
				waiting := waitingCalls(t, s, 8)
				s.Grant = 1
				for len(waiting) > 0 {
					s.Reply(waiting[0])
					waiting = waiting[1:]
					if len(waiting) > 0 {
						s.AwaitSilence("as more calls are without a reply than are granted")
					}
				}
			}),
		},
		{
			Clause: "rfc8166-3.3.1-4", Name: "replies-at-once",
			Title: "Replies to all calls in flight, one right behind the other, are taken",
			Run: withCall(modest(), func(t *conformance.T, s *rpc.Server, in *rpc.Incoming) {
				s.Grant = 32
				s.Reply(in)
				for _, w := range waitingCalls(t, s, 32) {
					s.Reply(w)
				}
				s.AwaitGoesOn("the replies")
			}),
		},
		{
			Clause: "rfc8166-3.3.3-3", Name: "reply-of-1024",
			Title: "A reply whose Send has 1024 octets is taken",
			Run: withCall(modest(), func(_ *conformance.T, s *rpc.Server, in *rpc.Incoming) {
				h := s.ReplyHeader(in)
				r := rpc.Reply{XID: in.XID}
				r.Results = make([]byte, rpc.DefaultThreshold-len(h.Octets())-len(r.Octets()))
				s.Post(h, r.Octets(), "")
				s.AwaitGoesOn("a reply of 1024 octets")
			}),
		},
		{
			Clause: "rfc8166-3.3.3-4", Name: "calls",
			Title: "To a server that says nothing of its receives, no Send is larger than 1024 octets",
			Run:   func(t *conformance.T) { checkCallSizes(t, nil) },
		},
		{
			Clause: "rfc8797-4-2", Name: "request",
			Title: "The reserved bits of the target's private data are zero",
			Run: func(t *conformance.T) {
				s := rpc.Serve(t, modest())
				if s.Theirs == nil {
					t.Skip("the target has %s", s.Theirs)
				}
				t.Check(s.Theirs.Flags&^rpc.FlagR == 0, "reserved bits of zero", "flags 0x%02x", s.Theirs.Flags)
			},
		},
		{
			Clause: "rfc8797-4-3", Name: "reply",
			Title: "A server whose reserved bits are set is called like any other",
			Run:   func(t *conformance.T) { checkCallSizes(t, rpc.Offer(rpc.DefaultThreshold, 0xFE).Octets()) },
		},
		{
			Clause: "rfc8797-4-1", Name: "reply",
			Title: "What a server has offered on one connection does not hold for the next, on which it offers less",
			Run: func(t *conformance.T) {
				s := rpc.Serve(t, rpc.Offer(largeReply, rpc.FlagR).Octets())
				s.AwaitCall()
				t.Try(s.Close(), "closing")
				checkCallSizes(t, modest())
			},
		},
		{
			Clause: "rfc8166-8.1-1", Name: "client",
			Title: "A client that has lent no memory has none: an RDMA Write to any STag is refused, Terminate",
			Run: withCall(modest(), func(t *conformance.T, s *rpc.Server, _ *rpc.Incoming) {
				w := wire.Tagged(wire.Write, noSTag, 0, conformance.Pattern(8))
				w.Wrong = "an STag that nobody has given"
				s.Stream.Post(w)
				_, err := s.Next(t.Timeout())
				if _, ok := errors.AsType[*rpc.TerminateError](err); !ok {
					t.Fail("a Terminate", "%v", err)
				}
			}),
		},
	}
	for _, o := range []struct {
		clause, name, title string
		private             []byte
	}{
		{"rfc8797-5.1-1", "reply-of-version-2", "a message of version 2", rpc.Private{Version: 2, Send: 7, Receive: 7}.Octets()},
		{"rfc8797-5.1-1", "reply-of-7-octets", "a message that lacks its last octet", rpc.Offer(largeReply, 0).Octets()[:7]},
		{"rfc8797-5.2-1", "reply-with-garbage", "60 octets of something else", conformance.Pattern(60)},
	} {
		cases = append(cases, conformance.Case{
			Clause: o.clause, Name: o.name,
			Title: "A server is called by Sends of 1024 octets at most that offers " + o.title,
			Run:   func(t *conformance.T) { checkCallSizes(t, o.private) },
		})
	}
	return ofClient(append(cases, reverse()...))
}

// checkCallSizes makes sure that calls are Sends of 1024 bytes at most.
func checkCallSizes(t *conformance.T, private []byte) {
	s := rpc.Serve(t, private)
	someCalls(t, s, func(in *rpc.Incoming) {
		t.Check(in.Length <= rpc.DefaultThreshold, "a Send of at most 1024 octets", "one of %d", in.Length)
	})
}

// waitingCalls returns the calls that come without a reply, at most n.
func waitingCalls(t *conformance.T, s *rpc.Server, n int) []*rpc.Incoming {
	var waiting []*rpc.Incoming
	for len(waiting) < n {
		in, err := s.NextCall(t.Quiet())
		if err != nil {
			break
		}
		waiting = append(waiting, in)
	}
	return waiting
}

// checkGrant makes sure that never more calls are without a reply than are granted.
func checkGrant(t *conformance.T, grant int) {
	s := rpc.Serve(t, modest())
	waiting := []*rpc.Incoming{s.AwaitCall()}
	s.Grant = uint32(grant)
	const rounds = 10
	for range rounds {
		if len(waiting) == 0 {
			return
		}
		s.Reply(waiting[0])
		waiting = waiting[1:]
		waiting = append(waiting, waitingCalls(t, s, grant-len(waiting))...)
		if len(waiting) == grant {
			s.AwaitSilence(fmt.Sprintf("as %d calls are without a reply", grant))
		}
	}
}

// reverse holds calls that a server makes (RFC 8167). A client that is not prepared for
// them may lose its connection (§6), and is not judged.
func reverse() []conformance.Case {
	return []conformance.Case{
		{
			Clause: "rfc8167-5.2-1", Name: "null",
			Title: "The reply to a reverse call has the version of the call",
			Run: func(t *conformance.T) {
				m, _, _ := reverseNull(t, calledBack(t), rpc.Chunks{})
				t.Check(m.Version == rpc.Version, "version 1", "%s", m.Header)
			},
		},
		{
			Clause: "rfc8167-5.2-2", Name: "null",
			Title: "The reply to a reverse call begins with the XID of its header, which is that of the call",
			Run: func(t *conformance.T) {
				m, h, r := reverseNull(t, calledBack(t), rpc.Chunks{})
				t.Check(m.Proc == rpc.Msg && m.XID == h.XID && r.XID == h.XID, fmt.Sprintf("XID 0x%08x", h.XID), "%s, and 0x%08x behind it", m.Header, r.XID)
			},
		},
		{
			Clause: "rfc8167-5.2-3", Name: "null",
			Title: "The answer to a reverse call is an RPC message of type REPLY",
			Run: func(t *conformance.T) {
				m, _, _ := reverseNull(t, calledBack(t), rpc.Chunks{})
				_, err := rpc.ParseReply(m.Payload)
				t.Check(err == nil, "an RPC message of type REPLY", "%s, and %v", m.Header, err)
			},
		},
		{
			Clause: "rfc8167-5.3-1", Name: "read-list",
			Title: "A reverse call with a Read list is answered with ERR_CHUNK by who takes no chunks",
			Run: func(t *conformance.T) {
				s := calledBack(t)
				reverseNull(t, s, rpc.Chunks{}) // it takes reverse calls
				m, h, _ := reverseNull(t, s, rpc.Chunks{Reads: []rpc.ReadSegment{{Position: 40, Segment: rpc.Segment{Handle: noSTag, Length: 4}}}})
				t.Check(m.Proc == rpc.Error && m.Err == rpc.ErrChunk && m.XID == h.XID, "ERR_CHUNK", "%s", m.Header)
			},
		},
		{
			Clause: "rfc8167-4.1-1", Name: "done",
			Title: "The credit value of an RDMA_DONE grants nothing: no more calls come than were granted before",
			Run: withCall(modest(), func(_ *conformance.T, s *rpc.Server, _ *rpc.Incoming) {
				s.PostOctets(append(rpc.Header{XID: 0x77, Version: rpc.Version, Credits: 32, Proc: rpc.Done}.Octets(), make([]byte, 12)...),
					"RDMA_DONE with 32 credits", "a message whose direction nobody can tell")
				s.AwaitSilence("as nothing was granted to a requester")
			}),
		},
	}
}

// reverseProgram is that of NFS version 4's callbacks, whose NULL anybody may be asked.
const reverseProgram = 0x40000000

// calledBack waits for a client's call, so that it may be called, and leaves it without
// a reply.
func calledBack(t *conformance.T) *rpc.Server {
	s := rpc.Serve(t, modest())
	s.AwaitCall()
	return s
}

// reverseNull makes a reverse call of NULL, and returns what answers it. It skips the case
// if the client does not take such calls.
func reverseNull(t *conformance.T, s *rpc.Server, with rpc.Chunks) (*rpc.Message, rpc.Header, rpc.Reply) {
	c := rpc.Call{XID: 0xCA11BAC1 + uint32(len(with.Reads)), Program: reverseProgram, Version: 1}
	h := rpc.Header{XID: c.XID, Version: rpc.Version, Credits: 1, Proc: rpc.Msg, Reads: with.Reads}
	s.Post(h, c.Octets(), "")
	m, err := s.Next(t.Timeout())
	if err != nil && with.Reads == nil {
		t.Skip("the client takes no reverse calls: %v", err)
	} else if err != nil {
		t.Fail("an answer to a reverse call", "%v", err)
	}
	r, _ := rpc.ParseReply(m.Payload) // the case looks at what it asks for
	return m, h, r
}
