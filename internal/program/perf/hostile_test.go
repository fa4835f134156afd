package perf

import (
	"context"
	"strings"
	"testing"

	"urnic/rnic"
)

// a case that any server has room for
var small = setup{Op: OpSend, Test: TestBandwidth, Poll: PollEvent, Size: 64, QPs: 1, Depth: 4, SignalEvery: 1}

// A server ends a session that does not keep to the order of messages or to the
// bounds, and says why. The next client finds nothing amiss.
func TestServerRefusesWhatIsOutOfOrderOrBounds(t *testing.T) {
	address := serve(t, &Server{MaxMemory: 1 << 20})
	with := func(change func(*setup)) *message {
		s := small
		change(&s)
		return &message{Type: msgSetup, Setup: &s, Memory: &memories{}}
	}
	for name, tc := range map[string]struct {
		m    *message
		want string
	}{
		"a round of nothing":           {&message{Type: msgRound, Round: &round{Iterations: 1}}, "out of its order"},
		"a stop of nothing":            {&message{Type: msgStop}, "out of its order"},
		"a removal of nothing":         {&message{Type: msgRemove}, "out of its order"},
		"a message of the server":      {&message{Type: msgRunning}, "out of its order"},
		"an unknown type":              {&message{Type: "dance"}, "unknown type"},
		"a setup without any":          {&message{Type: msgSetup}, "lacks something"},
		"an unknown operation":         {with(func(s *setup) { s.Op = "push" }), "operation"},
		"an unknown test":              {with(func(s *setup) { s.Test = "luck" }), "test"},
		"an unknown way to poll":       {with(func(s *setup) { s.Poll = "never" }), "polling"},
		"no size":                      {with(func(s *setup) { s.Size = 0 }), "size 0"},
		"a negative size":              {with(func(s *setup) { s.Size = -1 << 30 }), "size -"},
		"no queue pairs":               {with(func(s *setup) { s.QPs = 0 }), "0 queue pairs"},
		"too many queue pairs":         {with(func(s *setup) { s.QPs = MaxQPs + 1 }), "16385 queue pairs"},
		"too deep":                     {with(func(s *setup) { s.Depth = MaxDepth + 1 }), "depth 8193"},
		"completions too rare":         {with(func(s *setup) { s.SignalEvery = 5 }), "for every 5 requests"},
		"too much inline":              {with(func(s *setup) { s.Size, s.Inline = 2000, true }), "inline"},
		"too many connections":         {with(func(s *setup) { s.Test, s.QPs = TestConnect, MaxConnecting+1 }), "65 connections at a time"},
		"no such MULPDU":               {with(func(s *setup) { s.MULPDU = 1 }), "MULPDU 1"},
		"more memory than there is":    {with(func(s *setup) { s.Size = 1 << 20 }), "--max-memory"},
		"idle ones beyond the memory":  {with(func(s *setup) { s.Idle, s.QPs = true, 1000 }), "--max-memory"},
		"a strange baseline":           {&message{Type: msgRaw, Raw: &rawSetup{Kind: "udp"}}, "unknown kind"},
		"a baseline of no connections": {&message{Type: msgRaw, Raw: &rawSetup{Kind: rawConnect}}, "0 connections"},
		"a baseline of too many":       {&message{Type: msgRaw, Raw: &rawSetup{Kind: rawConnect, Conns: MaxConnecting + 1}}, "65 connections at a time"},
		"a baseline without calls":     {&message{Type: msgRaw, Raw: &rawSetup{Kind: rawStream, Conns: 1}}, "calls of 0"},
		"a stream in no direction":     {&message{Type: msgRaw, Raw: &rawSetup{Kind: rawStream, Conns: 1, Write: 1, Read: 1}}, "in no direction"},
		"a baseline's round of none":   {&message{Type: msgRawRound, RawRound: &rawRound{Octets: 1, End: make([]byte, endLen)}}, "out of its order"},
		"a baseline that is too big":   {&message{Type: msgRaw, Raw: &rawSetup{Kind: rawStream, Conns: 1000, Write: 1 << 20, Read: 1, ToServer: true}}, "--max-memory"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := dial(t, address)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.ask(t.Context(), tc.m, msgResult)
			if err == nil || !strings.Contains(err.Error(), "the other side says: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v; want %q", err, tc.want)
			}
		})
	}
	if _, err := Run(t.Context(), open(t, rnic.Config{}), nil, address, Options{Iterations: 5, Sizes: []int{100}}); err != nil {
		t.Errorf("the next client: %v", err)
	}
}

// A round that has no end is refused once there are queue pairs.
func TestServerRefusesARoundWithoutEnd(t *testing.T) {
	address := serve(t, &Server{})
	c, err := dial(t, address)
	if err != nil {
		t.Fatal(err)
	}
	s := small
	s.Test = TestConnect // which has no queue pairs of its own
	if _, err := c.ask(t.Context(), &message{Type: msgSetup, Setup: &s, Memory: &memories{}}, msgReady); err != nil {
		t.Fatal(err)
	}
	if _, err := c.hear(t.Context(), msgConnected); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(t.Context(), &message{Type: msgRound, Round: &round{}}, msgRunning); err == nil || !strings.Contains(err.Error(), "a round of 0 messages") {
		t.Errorf("%v", err)
	}
}

func TestServerRejectsStrangers(t *testing.T) {
	address := serve(t, &Server{})
	for name, tc := range map[string]struct {
		privateData []byte
		want        string
	}{
		"another program": {[]byte("hello"), "this is a server of urnic perf"},
		"nothing":         {nil, "this is a server of urnic perf"},
		"another version": {controlHello(Version + 1), "version 3 of urnic perf and the server version 2"},
		"no session":      {dataHello([tokenLen]byte{1}, 0), "there is no such session"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := newChannel(open(t, rnic.Config{}))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.close() }()
			err = c.qp.Connect(t.Context(), address, rnic.ConnParam{PrivateData: tc.privateData})
			if err = refusal(err); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v; want %q", err, tc.want)
			}
		})
	}
}

func TestServerTakesOnlySoManyClients(t *testing.T) {
	address := serve(t, &Server{MaxSessions: 1})
	first, err := dial(t, address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, address); err == nil || !strings.Contains(err.Error(), "the server has 1 clients already") {
		t.Errorf("a second one: %v", err)
	}
	if err := first.qp.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for { // until the server has noticed
		if _, err := dial(t, address); err == nil {
			break
		}
	}
}

// A connection for data that names a queue pair which the case does not have
// ends the session.
func TestServerRefusesAQueuePairThatTheCaseDoesNotHave(t *testing.T) {
	address := serve(t, &Server{})
	c, err := dial(t, address)
	if err != nil {
		t.Fatal(err)
	}
	s := small
	if _, err := c.ask(t.Context(), &message{Type: msgSetup, Setup: &s, Memory: &memories{}}, msgReady); err != nil {
		t.Fatal(err)
	}
	p, _ := c.qp.Params()
	other, err := newChannel(open(t, rnic.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }()
	if err := other.qp.Connect(t.Context(), address, rnic.ConnParam{PrivateData: dataHello([tokenLen]byte(p.PrivateData), 1)}); err == nil {
		t.Error("queue pair 1 of 1 was connected")
	}
	if _, err := c.hear(t.Context(), msgConnected); err == nil || !strings.Contains(err.Error(), errProtocol.Error()) {
		t.Errorf("%v", err)
	}
}

// A round that fails at the server ends the session at once: the client, who
// waits for what will not come, is told.
func TestServerTellsOfARoundThatFails(t *testing.T) {
	for _, test := range []Test{TestBandwidth, TestLatency} {
		address := serve(t, &Server{})
		c, err := dial(t, address)
		if err != nil {
			t.Fatal(err)
		}
		s := small
		s.Test = test
		g, err := newGroup(open(t, rnic.Config{}), s, true)
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.ask(t.Context(), &message{Type: msgSetup, Setup: &s, Memory: g.memories()}, msgReady)
		if err != nil {
			t.Fatal(err)
		}
		g.peer = *m.Memory
		p, _ := c.qp.Params()
		if err := g.ends[0].qp.Connect(t.Context(), address, g.param(dataHello([tokenLen]byte(p.PrivateData), 0), nil)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.hear(t.Context(), msgConnected); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ask(t.Context(), &message{Type: msgRound, Round: &round{Iterations: 1}}, msgRunning); err != nil {
			t.Fatal(err)
		}
		if err := g.ends[0].tell(noteGo, 0, 0); err != nil { // to one that sends nothing of its own accord
			t.Fatal(err)
		}
		if _, err := c.hear(t.Context(), msgResult); err == nil || !strings.Contains(err.Error(), errProtocol.Error()) {
			t.Errorf("%s: %v", test, err)
		}
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}
}

// A client that vanishes in the middle of a round leaves nothing behind at the
// server: serve looks when the test ends.
func TestServerCleansUpAfterAClientThatVanishes(t *testing.T) {
	for _, o := range []Options{
		{Op: OpSend, Bidir: true},
		{Op: OpRead, Poll: PollBusy},
		{Op: OpSend, Test: TestLatency},
		{Test: TestConnect, Duration: MaxDuration},
		{Baseline: true},
		{Baseline: true, Duration: MaxDuration, BaselineTry: 1, Sizes: []int{4096}},
	} {
		address := serve(t, &Server{})
		dev := open(t, rnic.Config{})
		ofStreams := o.Baseline && o.Duration > 0
		o.Duration, o.Rounds = MaxDuration, 1
		under := make(chan struct{})
		if o.Baseline && !ofStreams {
			o.Duration, o.Iterations = 0, maxIterations
			o.Test, o.Op = TestLatency, OpSend
		}
		o.Hooks.Begin = func(*Report) { close(under) }
		done := make(chan error, 1)
		go func() {
			_, err := Run(context.Background(), dev, nil, address, o)
			done <- err
		}()
		<-under
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil {
			t.Errorf("%+v: a run on a closed device succeeds", o)
		}
	}
}
