package machine

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// A rawPeer is a peer that may say anything: a link of a path of a node, whose other end is the
// test.
type rawPeer struct {
	t    *testing.T
	m    *Machine
	p    *Path
	link Link
	now  Time
	next uint64
	sent []Segment // by the node
	seen []Effect
}

var (
	here  = netip.MustParseAddr("10.0.0.1")
	there = netip.MustParseAddr("10.0.0.2")
)

// newRawPeer makes a node, and a peer that has connected to it and was heard.
func newRawPeer(t *testing.T, params Params, change func(*Config)) *rawPeer {
	t.Helper()
	cfg := Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers["iwarp"]}, ReceiveBuffer: 4000, PeerMemory: 10_000}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rawPeer{t: t, m: m}
	r.connect(params)
	return r
}

// probed gives a node a carrier whose peers acknowledge, and are probed: as over TCP, when
// they have told their generation.
func probed(c *Config) { c.Carriers = []Carrier{carriers["probed"]} }

// connect connects anew.
func (r *rawPeer) connect(params Params) {
	r.t.Helper()
	p, link, err := r.m.Request(r.now, Request{Key: Key{Peer: there}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.p, r.link = p, link
	p.Up(r.now, link, params)
	r.do()
}

// do carries out the node's effects.
func (r *rawPeer) do() {
	for todo := r.m.Effects(); todo != nil; todo = r.m.Effects() {
		for _, e := range append([]Effect(nil), todo...) {
			r.seen = append(r.seen, e)
			var s Segment
			for e.Kind == Transmit && e.Path.Pull(r.now, r.link, &s) {
				r.sent = append(r.sent, s)
			}
		}
	}
}

// says has the peer send a segment, and returns the node's verdict.
func (r *rawPeer) says(h wire.Header, data []byte) Verdict {
	r.t.Helper()
	buf, verdict := r.p.Begin(r.now, r.link, &h, len(data))
	if verdict == Take {
		copy(buf, data)
		r.p.Fill(r.now, r.link, len(data))
	}
	r.do()
	return verdict
}

// data is a message from port 5000 to port 4000.
func (r *rawPeer) data(n int) wire.Header {
	r.next++
	return wire.Header{Sequence: r.next, Len: uint32(n), SourcePort: 5000, DestPort: 4000}
}

// violation returns the rule that the node says was broken, and whether it has hung up.
func (r *rawPeer) violation() (rule Rule, broken, hungUp bool) {
	for _, e := range r.seen {
		if v := (*Violation)(nil); e.Kind == Report && e.Event.Kind == PeerViolation && errors.As(e.Event.Err, &v) {
			rule, broken = v.Rule, true
		}
		hungUp = hungUp || e.Kind == Hangup && e.Link == r.link
	}
	return rule, broken, hungUp
}

// What a peer may not do ends its connection, and is reported. What it had sent before is
// delivered, and nothing twice.
func TestRulesThatAPeerCanBreak(t *testing.T) {
	extensions := func(x wire.Extensions) [wire.ExtensionLen]byte {
		b, err := x.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	probe := func(r *rawPeer, x wire.Extensions) wire.Header {
		r.next++
		return wire.Header{Sequence: r.next, SourcePort: wire.ProbePort, Extensions: extensions(x)}
	}
	for name, tt := range map[string]struct {
		params Params
		want   Rule
		breaks func(r *rawPeer)
	}{
		"a sequence number again": {want: RuleSequence, breaks: func(r *rawPeer) {
			h := r.data(4)
			h.Sequence = 1
			r.says(h, []byte("twoo"))
		}},
		"a sequence number again, which says so": {want: RuleSequence, breaks: func(r *rawPeer) {
			h := r.data(4)
			h.Sequence, h.Flags = 1, wire.Retransmitted
			r.says(h, []byte("twoo"))
		}},
		"no sequence number": {want: RuleFormat, breaks: func(r *rawPeer) {
			h := r.data(4)
			h.Sequence = 0
			r.says(h, []byte("zero"))
		}},
		"acknowledges what was not sent": {want: RuleAck, breaks: func(r *rawPeer) {
			r.says(wire.Header{Sequence: 2, SourcePort: 0, DestPort: wire.ProbePort, Ack: 1}, nil) // it has answered the probe
			r.says(wire.Header{Ack: 2}, nil)
		}},
		"a map that is too short": {want: RuleFormat, breaks: func(r *rawPeer) {
			r.says(wire.Header{Flags: wire.CongestionBitmap, Len: 100}, make([]byte, 100))
		}},
		"more data than announced": {want: RuleLength, breaks: func(r *rawPeer) { r.says(r.data(4), []byte("fivee")) }},
		"less data than announced": {want: RuleLength, breaks: func(r *rawPeer) { r.says(r.data(4), []byte("thr")) }},
		"a short fragment":         {want: RuleLength, breaks: func(r *rawPeer) { r.says(r.data(3000), make([]byte, 1000)) }},
		"a fragment of another message": {want: RuleFragments, breaks: func(r *rawPeer) {
			r.says(r.data(3000), make([]byte, 1024))
			r.says(r.data(3000), make([]byte, 1024))
		}},
		"a fragment too many": {want: RuleLength, breaks: func(r *rawPeer) {
			h := r.data(1500)
			r.says(h, make([]byte, 1024))
			r.says(h, make([]byte, 1024))
		}},
		"a message between fragments": {want: RuleFragments, breaks: func(r *rawPeer) {
			r.says(r.data(3000), make([]byte, 1024))
			r.says(wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, make([]byte, 1024))
		}},
		"extension headers that do not fit": {want: RuleFormat, breaks: func(r *rawPeer) {
			h := r.data(0)
			h.Extensions = [wire.ExtensionLen]byte{5, 0, 1, 5, 0, 1}
			r.says(h, nil)
		}},
		"more Sends than credits": {params: Params{Granted: 3, Credit: 3}, want: RuleCredit, breaks: func(r *rawPeer) {
			for range 3 {
				r.says(r.data(0), nil)
			}
		}},
		"another generation": {want: RuleGeneration, breaks: func(r *rawPeer) {
			for g := range uint32(2) {
				r.says(probe(r, wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: 7 + g}), nil)
			}
		}},
		"no paths": {want: RuleProbe, breaks: func(r *rawPeer) {
			r.says(probe(r, wire.Extensions{Has: 1 << wire.ExtNPaths}), nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRawPeer(t, tt.params, nil)
			s, err := r.m.Bind(4000, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if v := r.says(r.data(4), []byte("good")); v != Take {
				t.Fatalf("a good message: verdict %d", v)
			}
			if rule, broken, _ := r.violation(); broken {
				t.Fatalf("a good message breaks the rule %v", rule)
			}
			tt.breaks(r)
			if rule, broken, hungUp := r.violation(); !broken || rule != tt.want || !hungUp {
				t.Errorf("broken: %v, %v, hung up: %v; want %v", broken, rule, hungUp, tt.want)
			}
			for first := true; ; first = false {
				msg, ok := s.Receive(r.now)
				if !ok {
					if first {
						t.Error("what came before is lost")
					}
					break
				}
				if string(msg.Data) != "good" && len(msg.Data) > 0 {
					t.Errorf("%q is delivered", msg.Data)
				}
			}
			if r.m.Held() != 0 {
				t.Errorf("%d bytes are held", r.m.Held())
			}
		})
	}
}

// A message that was sent again on a new link is delivered once, and acknowledged again.
func TestDuplicatesAreDroppedAndAcknowledged(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	s, err := r.m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := r.data(4)
	r.says(h, []byte("once"))
	r.p.Down(r.now, r.link, nil)
	r.connect(Params{})
	r.sent = nil
	h.Flags = wire.Retransmitted | wire.AckRequired
	r.says(h, []byte("once"))
	if messages, _ := s.Queued(); messages != 1 || r.m.Counters().Duplicates != 1 {
		t.Errorf("%d messages are queued; %d duplicates", messages, r.m.Counters().Duplicates)
	}
	acked := false
	for _, out := range r.sent {
		acked = acked || out.Header.Ack == 1
	}
	if !acked {
		t.Error("the duplicate is not acknowledged")
	}
}

// A peer whose messages nobody reads can't make the node hold more than it may. It can go on
// when they are read.
func TestUnreadMessagesAreBounded(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	s, err := r.m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for r.says(r.data(1000), make([]byte, 1000)) == Take {
		if taken++; r.m.Held() > 10_000 {
			t.Fatalf("%d bytes are held", r.m.Held())
		}
	}
	if taken < 8 {
		t.Errorf("%d messages are taken; the port is congested from 4 on, and those on their way are still to be accepted", taken)
	}
	congested := false
	for _, out := range r.sent {
		if out.Header.Kind() == wire.Map && len(out.Data) > 500 && out.Data[500]&1 != 0 {
			congested = true
		}
	}
	if !congested {
		t.Error("the peer is not told that the port is congested")
	}
	r.seen = nil
	if _, ok := s.Receive(r.now); !ok {
		t.Fatal("there is nothing to read")
	}
	r.do()
	resumed := false
	for _, e := range r.seen {
		resumed = resumed || e.Kind == Resume
	}
	if !resumed {
		t.Error("reading does not let the peer go on")
	}
}

// A flood of pings is answered by a bounded number of pongs, if the peer does not take them.
func TestPongsAreBounded(t *testing.T) {
	r := newRawPeer(t, Params{Granted: 1 << 20, Credit: 4}, nil)
	for range 1000 {
		r.next++
		r.says(wire.Header{Sequence: r.next, SourcePort: 5000}, nil)
	}
	if c := r.m.Counters(); c.Pings != 1000 || c.PingsDropped < 900 || r.p.queue.len() > maxPongs {
		t.Errorf("%d pings, %d not answered; %d answers are queued", c.Pings, c.PingsDropped, r.p.queue.len())
	}
}

// The first try to reconnect is at once. Those after it wait for a random time with a
// bound that doubles up to the configured one.
func TestReconnectingBacksOff(t *testing.T) {
	r := newRawPeer(t, Params{}, func(c *Config) { c.ReconnectMin, c.ReconnectMax = 10*time.Millisecond, 80*time.Millisecond })
	r.send(r.bind(), "waits")
	r.p.Down(r.now, r.link, errors.New("lost"))
	r.do()
	bound := Time(0)
	for try := range 12 {
		at, ok := r.m.Deadline()
		if !ok || at < r.now || at > r.now+bound {
			t.Fatalf("try %d is at %v, %v; want it within %v of %v", try, at, ok, bound, r.now)
		}
		r.now, r.seen = at, nil
		r.m.Advance(at)
		r.do()
		if len(r.seen) == 0 || r.seen[0].Kind != Dial {
			t.Fatalf("try %d: %v", try, r.seen)
		}
		r.p.Down(r.now, r.seen[0].Link, errors.New("refused"))
		r.do()
		bound = min(max(10*time.Millisecond, 2*bound), 80*time.Millisecond)
	}
	if r.now < 100*time.Millisecond { // of 690 ms at most
		t.Errorf("12 tries take %v", r.now)
	}
}

// Of a peer that can't be reached, messages are lost if the number of tries is limited, and
// their sender is told.
func TestTriesCanBeLimited(t *testing.T) {
	m, err := New(Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers["iwarp"]}, Attempts: 3})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Send(0, Endpoint{there, 4000}, []byte("x"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	dials, lost := 0, false
	for now := Time(0); !lost; {
		for todo := m.Effects(); todo != nil; todo = m.Effects() {
			for _, e := range append([]Effect(nil), todo...) {
				switch {
				case e.Kind == Dial:
					dials++
					e.Path.Down(now, e.Link, errors.New("refused"))
				case e.Kind == Report && e.Event.Kind == MessageLost:
					if lost = true; e.Event.ID != id || !errors.Is(e.Event.Err, ErrUnreachable) {
						t.Errorf("lost: %+v", e.Event)
					}
				}
			}
		}
		if lost {
			break
		}
		at, ok := m.Deadline()
		if !ok {
			t.Fatalf("nothing is tried any more, after %d tries", dials)
		}
		now = at
		m.Advance(now)
	}
	if dials != 3 || s.Unsent() != 0 {
		t.Errorf("%d tries; %d bytes are still in the send buffer", dials, s.Unsent())
	}
}

// A peer has received a message, and tells so when it connects anew; but each connection is lost
// before anything comes of it. The numbers of messages continue: else what it acknowledges would
// be of messages that were never sent, on each connection.
func TestNumbersGoOnForAPeerThatWasNotHeard(t *testing.T) {
	r := newRawPeer(t, Params{Generation: 7}, nil)
	s := r.bind()
	r.send(s, "first")
	for range 3 {
		r.p.Down(r.now, r.link, nil)
		r.do()
		r.connect(Params{Generation: 7, Ack: 1})
	}
	if s.Unsent() != 0 {
		t.Errorf("%d bytes are not acknowledged", s.Unsent())
	}
	r.sent = nil
	r.send(s, "second")
	r.says(wire.Header{Ack: 1}, nil)
	if rule, broken, _ := r.violation(); broken {
		t.Errorf("the peer has broken the rule %q", rule)
	}
	for _, seg := range r.sent {
		if h := seg.Header; h.Kind() == wire.Data && h.Sequence != 2 {
			t.Errorf("the second message has number %d", h.Sequence)
		}
	}
}
