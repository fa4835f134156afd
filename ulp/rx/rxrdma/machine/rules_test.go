package machine

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
	rxwire "urnic/ulp/rx/wire"
)

// What a peer does wrong ends the connection, with the rule that it has broken, and an ABORT
// of the connection.
func TestBrokenRulesEndTheConnection(t *testing.T) {
	data := func(call, seq uint32, flags wire.Flags) wire.Message {
		return wire.Message{Type: wire.Data, Call: call, Seq: seq, Flags: flags}
	}
	about := func(typ wire.Type, seq uint32) wire.Message { return wire.Message{Type: typ, Call: 1, Seq: seq} }
	offer := func(seq, length uint32) wire.Message {
		return wire.Message{Type: wire.Offer, Call: 1, Seq: seq, Length: length}
	}
	channel := func(m wire.Message, n uint8) wire.Message { m.Channel = n; return m }
	for _, tt := range []struct {
		name string
		rule Rule
		do   func(s *side) // at a server with a call whose request continues
	}{
		{"too short", RuleFormat, func(s *side) { s.arrive([]byte{1, 2, 3}) }},
		{"no type", RuleFormat, func(s *side) { s.inject(wire.Message{Type: 99}, "") }},
		{"too many messages", RuleCredit, func(s *side) {
			for range limits.Credits + 1 {
				s.inject(wire.Message{Type: wire.Pong}, "")
			}
		}},
		{"too many credits", RuleCredit, func(s *side) { s.inject(wire.Message{Type: wire.Credit, Credits: 40000}, "") }},
		{"no channel, data", RuleChannel, func(s *side) { s.inject(channel(data(1, 1, 0), 4), "x") }},
		{"no channel, window", RuleChannel, func(s *side) { s.inject(channel(about(wire.Window, 0), 200), "") }},
		{"a call amid a call", RuleCall, func(s *side) { s.inject(data(2, 1, 0), "x") }},
		{"a window of no call", RuleCall, func(s *side) { s.inject(channel(about(wire.Window, 1), 2), "") }},
		{"call 0", RuleCall, func(s *side) { s.inject(wire.Message{Type: wire.Window}, "") }},
		{"data of call 0", RuleCall, func(s *side) { s.inject(data(0, 1, 0), "x") }},
		{"an old call", RuleSequence, func(s *side) {
			s.c.numbers[1] = 9
			s.inject(channel(data(8, 1, 0), 1), "x")
		}},
		{"a call that begins amid its stream", RuleSequence, func(s *side) { s.inject(channel(data(1, 2, 0), 3), "x") }},
		{"a part twice", RuleSequence, func(s *side) { s.inject(data(1, 1, 0), "x") }},
		{"a part is missing", RuleSequence, func(s *side) { s.inject(data(1, 3, 0), "x") }},
		{"a part after the last", RuleSequence, func(s *side) {
			s.inject(data(1, 2, wire.FlagLast), "x")
			s.inject(data(1, 3, 0), "x")
		}},
		{"a part after an abort", RuleSequence, func(s *side) {
			s.inject(wire.Message{Type: wire.Abort, Call: 1, Code: 1}, "")
			s.inject(data(1, 2, 0), "x")
		}},
		{"beyond the window", RuleWindow, func(s *side) {
			for seq := range uint32(limits.Window) {
				s.inject(data(1, seq+2, 0), "x")
			}
		}},
		{"has read what was not sent", RuleWindow, func(s *side) { s.inject(about(wire.Window, 1), "") }},
		{"an empty offer", RuleOffer, func(s *side) { s.inject(offer(1, 0), "") }},
		{"too long an offer", RuleOffer, func(s *side) { s.inject(offer(1, 4097), "") }},
		{"an offer too early", RuleOffer, func(s *side) { s.inject(offer(2, 100), "") }},
		{"an offer for nothing", RuleOffer, func(s *side) { s.inject(offer(0, 100), "") }},
		{"two offers", RuleOffer, func(s *side) {
			s.inject(offer(1, 100), "")
			s.inject(offer(1, 100), "")
		}},
		{"an offer that was not agreed on", RuleOffer, func(s *side) {
			s.c.cfg.Peer.Features = 0
			s.inject(offer(1, 100), "")
		}},
		{"nothing was offered", RulePlaced, func(s *side) { s.inject(wire.Message{Type: wire.Placed, Call: 1, Seq: 2, Length: 1}, "") }},
		{"more than was offered", RulePlaced, func(s *side) {
			read(s.t, s, s.begun[0])
			if !s.begun[0].Offer(0, 1, 0, 2000) {
				s.t.Fatal("no offer is made")
			}
			s.inject(wire.Message{Type: wire.Placed, Call: 1, Seq: 2, Length: 2001}, "")
		}},
		{"a response that nobody asked for", RuleSecurity, func(s *side) { s.inject(wire.Message{Type: wire.Response}, "x") }},
		{"a challenge of a client", RuleSecurity, func(s *side) { s.inject(wire.Message{Type: wire.Challenge}, "x") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server := pair(t)
			client.settle()
			server.inject(data(1, 1, 0), "x")
			if server.c.Err() != nil {
				t.Fatal(server.c.Err())
			}
			server.c.granted = int(limits.Credits)
			tt.do(server)
			server.broke(tt.rule)
			for {
				server.pull()
				if server.sent.Len() == 0 {
					t.Fatal("the client is not told")
				}
				if m, _, _ := wire.Parse(server.sent.Pop().message); m.Type == wire.Abort && m.Call == 0 && m.Code == int32(rxwire.ProtocolError) {
					break
				}
			}
			if a, ok := errors.AsType[*AbortError](server.begun[0].Err()); !ok && server.c.Active() > 0 || ok && a.Code == 0 {
				t.Errorf("the call has ended with %v", server.begun[0].Err())
			}
			server.inject(data(1, 1, 0), "x") // it takes nothing any more
			if server.held != 0 {
				t.Errorf("%d messages are held", server.held)
			}
		})
	}
}

// What crosses the end of a call is no broken rule.
func TestWhatIsSaidOfACallThatIsOverIsIgnored(t *testing.T) {
	client, server := pair(t)
	k := client.begin("a")
	client.settle()
	server.begun[0].End(0)
	server.settle()
	read(t, client, k)
	for _, typ := range []wire.Type{wire.Window, wire.Demand, wire.Offer, wire.Abort} {
		server.inject(wire.Message{Type: typ, Call: 1, Seq: 1, Length: 1}, "")
		client.inject(wire.Message{Type: typ, Call: 1, Seq: 1, Length: 1}, "")
	}
	if server.c.Err() != nil || client.c.Err() != nil {
		t.Errorf("%v, %v", server.c.Err(), client.c.Err())
	}
}

func TestAClientTakesNoCalls(t *testing.T) {
	client, server := pair(t)
	client.inject(wire.Message{Type: wire.Data, Call: 1, Seq: 1}, "x")
	client.broke(RuleSequence)
	_ = server
}

func TestAnAbortOfTheConnectionEndsItsCalls(t *testing.T) {
	client, server := pair(t)
	k := client.begin("a")
	client.settle()
	client.inject(wire.Message{Type: wire.Abort, Code: 19270409}, "")
	if a, ok := errors.AsType[*AbortError](k.Err()); !ok || a.Code != 19270409 || !a.Remote || !a.Conn || a.Error() == "" {
		t.Errorf("the call has ended with %v", k.Err())
	}
	client.silent()
	_ = server
}

// A guard is both sides of a class for tests.
type guard struct {
	xor
	proved  bool
	expired error
}

func (g *guard) Respond(challenge []byte, _ secure.Calls) ([]byte, error) {
	return append([]byte("re:"), challenge...), nil
}

type guardServer struct{ guard }

func (g *guardServer) Challenge() ([]byte, error) { return []byte("who?"), nil }
func (g *guardServer) Caller() secure.Caller      { return secure.Caller{Name: "someone"} }
func (g *guardServer) Authenticated(_ time.Time) (bool, error) {
	return g.proved, g.expired
}

func (g *guardServer) Verify(b []byte, _ time.Time) (secure.Calls, error) {
	if string(b) != "re:who?" {
		return secure.Calls{}, coded(19270404)
	}
	g.proved = true
	return secure.Calls{}, nil
}

type coded int32

func (c coded) Error() string    { return "it is refused" }
func (c coded) AbortCode() int32 { return int32(c) }

// guarded returns two sides with a class that changes bodies.
func guarded(t testing.TB) (client, server *side, g *guardServer) {
	g = &guardServer{guard{xor: xor{4}}}
	client, server = pair(t, func(c, s *Config) {
		c.ClientSecurity, s.ServerSecurity = &guard{xor: xor{4}}, g
	})
	return client, server, g
}

func TestCallsWaitForTheChallenge(t *testing.T) {
	client, server, _ := guarded(t)
	k := client.begin("ask")
	client.silent() // but for its first words
	server.want("CHALLENGE")
	client.want("RESPONSE")
	if c := server.c.Caller(); c.Name != "someone" {
		t.Errorf("the caller is %+v", c)
	}
	client.want("DATA call=1/0 seq=1 LAST")
	if got := read(t, server, server.begun[0]); got != "ask." {
		t.Errorf("the request is %q", got)
	}
	server.begun[0].End(0)
	server.settle()
	if got := read(t, client, k); got != "." {
		t.Errorf("the reply is %q", got)
	}
}

func TestSealedBodiesAreNeverWrittenByRDMA(t *testing.T) {
	client, server, _ := guarded(t)
	k := client.begin("ask")
	client.settle()
	if k.MayOffer(4096) != 0 {
		t.Error("memory is offered")
	}
	server.inject(wire.Message{Type: wire.Offer, Call: 1, Seq: 1, Length: 100}, "")
	server.broke(RuleOffer)
}

func TestSealedStreamsComeWhole(t *testing.T) {
	client, server, _ := guarded(t)
	want := bytes.Repeat([]byte("0123456789"), 500)
	k, err := client.c.Begin(0)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for rest := want; len(got) < len(want); {
		if len(rest) > 0 {
			n, err := k.Write(0, rest)
			if err != nil {
				t.Fatal(err)
			}
			if rest = rest[n:]; len(rest) == 0 {
				_ = k.CloseWrite(0)
			}
		}
		client.settle()
		buf := make([]byte, 700)
		n, err := server.begun[0].Read(0, buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	if !bytes.Equal(got, want) || client.buffers != 0 {
		t.Errorf("%d bytes have come, %d buffers are left", len(got), client.buffers)
	}
}

func TestWhoHasNotProvedWhoItIsCallsNothing(t *testing.T) {
	early := wire.Message{Type: wire.Data, Call: 1, Seq: 1}
	for _, tt := range []struct {
		name string
		do   func(client, server *side)
		rule Rule
		code rxwire.Code
	}{
		{"a call before the response", func(_, s *side) { s.inject(early, "x") }, RuleSecurity, -5},
		{"a window before the response", func(_, s *side) { s.inject(wire.Message{Type: wire.Window, Call: 1}, "") }, RuleSecurity, -5},
		{"a wrong response", func(_, s *side) { s.inject(wire.Message{Type: wire.Response}, "me") }, RuleProof, 19270404},
		{"two responses", func(c, s *side) {
			c.settle()
			s.inject(wire.Message{Type: wire.Response}, "re:who?")
		}, RuleSecurity, -5},
		{"a wrong checksum", func(c, s *side) {
			c.settle()
			s.inject(early, "12345678")
		}, RuleProof, rxwire.RxkadInconsistent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server, _ := guarded(t)
			tt.do(client, server)
			server.broke(tt.rule)
			if a, _ := errors.AsType[*AbortError](server.c.Err()); a.Code != tt.code {
				t.Errorf("the code is %v", a.Code)
			}
		})
	}
}

func TestATicketThatHasExpiredBeginsNoCalls(t *testing.T) {
	client, server, g := guarded(t)
	k := client.begin("a")
	client.settle()
	g.expired = coded(19270409)
	client.begin("b")
	client.settle()
	if a, ok := errors.AsType[*AbortError](k.Err()); !ok || a.Code != 19270409 || len(server.begun) != 1 {
		t.Errorf("%d calls were begun, and the first has ended with %v", len(server.begun), k.Err())
	}
}

func TestWhoDoesNotAnswerTheChallengeIsCutOff(t *testing.T) {
	_, server, _ := guarded(t)
	for server.c.Err() == nil {
		at, ok := server.c.Deadline()
		if !ok {
			t.Fatal("there is no deadline")
		}
		*server.now = at
		server.c.Advance(at)
		server.c.heard = at // it answers pings
	}
	if *server.now != defaultDead {
		t.Errorf("it was cut off at %v", *server.now)
	}
}

func TestAClientWithoutAClassHasNoAnswer(t *testing.T) {
	client, _ := pair(t)
	client.inject(wire.Message{Type: wire.Challenge}, "who?")
	if a, ok := errors.AsType[*AbortError](client.c.Err()); !ok || a.Code != rxwire.RxkadNoAuth {
		t.Errorf("it has ended with %v", client.c.Err())
	}
}

func TestRulesHaveNames(t *testing.T) {
	for r := range Rules {
		if r.String() == "" {
			t.Errorf("rule %d has no name", r)
		}
	}
	if Rules.String() == "" {
		t.Error("an unknown rule has no text")
	}
}
