package machine

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// A3, seed 4: SYN and SYN,ACK are sent again, with a bound on the tries.
func TestSYNIsReliable(t *testing.T) {
	for _, tt := range []struct {
		state, again string
		last         string
	}{
		{"SYN-SENT", "<SEQ=100><SYN>", "<SEQ=101><RST>"},
		{"SYN-RCVD", "<SEQ=100><ACK=200><SYN,ACK>", ""},
		{"active SYN-RCVD", "<SEQ=100><ACK=200><SYN,ACK>", "<SEQ=101><RST>"},
	} {
		p := newPeer(t, func(c *Config) { c.SYNTries = 4 })
		p.in(tt.state, params(nil))
		for _, wait := range []time.Duration{1, 2, 4} {
			p.wait(wait*time.Second - 1)
			p.expect("")
			p.wait(1)
			p.expect(tt.again)
		}
		p.wait(8*time.Second - 1)
		p.expect("")
		p.wait(1)
		p.expect(tt.last)
		if p.c.State() != Closed || !errors.Is(p.c.Err(), ErrUnreachable) || p.m.Conns()+p.m.HalfOpen() != 0 {
			t.Errorf("%s: %v, %v", tt.state, p.c.State(), p.c.Err())
		}
		if p.l != nil && (p.l.Pending() != 0 || p.l.Accept() != nil || p.m.Counters().Expired != 1) {
			t.Errorf("%s: %d connections wait for Accept", tt.state, p.l.Pending())
		}
	}
}

// A3: if the SYN,ACK is lost, the open continues; by the pseudo-code it hangs.
func TestLostSYNAck(t *testing.T) {
	tr := newTrace(t, 100, 200, nil, params(nil))
	tr.opens(params(nil))
	tr.run(`
		A <SEQ=100><SYN>
		B (lost) <SEQ=200><ACK=100><SYN,ACK>`)
	tr.now += time.Second
	tr.exchange()
	tr.run(`
		A OPEN
		B OPEN`)
}

// A5: after a wrong acknowledgement the open begins again with a new number, a few times; forged ones can
// neither end it nor keep it from hearing the true answer.
func TestOpenBeginsAgain(t *testing.T) {
	p := newPeer(t, nil)
	p.in("SYN-SENT", params(nil))
	forged := func() int {
		n := 0
		for i := range 20 {
			p.says("<SEQ=900><ACK=" + []string{"150", "0"}[i%2] + ">")
			n += len(slices.DeleteFunc(p.sent(false), func(s string) bool { return !strings.Contains(s, "SYN") }))
		}
		return n
	}
	if n := forged(); n != 1 {
		t.Errorf("%d SYNs at once", n)
	}
	p.wait(p.m.cfg.RTOInitial - 1) // the answer may still come
	if n := forged(); n != 0 {
		t.Errorf("%d SYNs before the timeout", n)
	}
	p.says("<SEQ=200><ACK=1100><SYN,ACK>") // to the second number
	p.expect("<SEQ=1101><ACK=200>")
	if p.c.State() != Open {
		t.Fatal(p.c.State())
	}

	p = newPeer(t, nil)
	p.in("SYN-SENT", params(nil))
	for p.c.State() == SynSent && p.now < time.Hour {
		forged()
		p.wait(100 * time.Millisecond)
	}
	if p.now < 20*time.Second || !errors.Is(p.c.Err(), ErrHalfOpen) {
		t.Errorf("after %v: %v", p.now, p.c.Err())
	}
	if n := 5 - len(p.isses); n != 1+p.m.cfg.Restarts {
		t.Errorf("%d initial numbers were used", n)
	}
}

// A4: both open at once, and each segment may be lost; it ends in OPEN at both sides (I11).
func TestSimultaneousOpenWithLosses(t *testing.T) {
	for lose := range 1 << 6 {
		tr := newTrace(t, 100, 200, nil, params(nil))
		for _, name := range []string{"A", "B"} {
			h := tr.hosts[name]
			c, err := h.Open(0, OpenConfig{Path: h.path, Port: 3000, Remote: 3000, Params: params(nil)})
			if err != nil {
				t.Fatal(err)
			}
			h.c = c
		}
		n := 0
		buf := make([]byte, 0, 1500)
		for range 60 {
			for busy := true; busy; {
				busy = false
				for _, name := range []string{"A", "B"} {
					if b, _, ok := tr.hosts[name].Pull(tr.now, buf); ok {
						busy = true
						if n++; n > 6 || lose>>(n-1)&1 == 0 {
							tr.arrive(flight{other(name), b})
						}
						if n > 200 {
							t.Fatalf("losses %06b: there is no end", lose)
						}
					}
				}
			}
			tr.now += 500 * time.Millisecond
			for _, h := range tr.hosts {
				h.Advance(tr.now)
			}
		}
		tr.run(`
			A OPEN
			B OPEN`)
	}
}

// crossed has both hosts in SYN-RCVD, each by a SYN that its peer does not stand by: A has taken B's 900, and B
// has begun again with 200; B has taken A's 800, which is of an earlier open of A, whose number is 100 now.
func crossed(t *testing.T) *trace {
	t.Helper()
	tr := newTrace(t, 100, 200, nil, params(nil))
	for name, stale := range map[string]string{"A": "<SEQ=900><SYN>", "B": "<SEQ=800><SYN>"} {
		h := tr.hosts[name]
		c, err := h.Open(0, OpenConfig{Path: h.path, Port: 3000, Remote: 3000, Params: params(nil)})
		if err != nil {
			t.Fatal(err)
		}
		h.c = c
		if _, _, ok := h.Pull(0, make([]byte, 0, 1500)); !ok { // its SYN is lost
			t.Fatal("no SYN")
		}
		s, _ := parse(t, stale)
		s.Version, s.Source, s.Dest, s.MaxOutstanding, s.MaxSegment = 2, 3000, 3000, 4, 600
		h.Receive(0, h.path, s.AppendTo(nil, nil, nil))
	}
	return tr
}

// A48: both ends are in SYN-RCVD, and neither has the other's number. Each denies what the other
// acknowledges; both go back to SYN-SENT, and open.
func TestCrossedOpens(t *testing.T) {
	tr := crossed(t)
	tr.run(`
		A SYN-RCVD
		B SYN-RCVD
		A -1- <SEQ=100><ACK=900><SYN,ACK>
		B -2- <SEQ=200><ACK=800><SYN,ACK>
		-1-
		-2-
		B -3- <SEQ=901><RST>
		A -4- <SEQ=801><RST>
		-3-
		A SYN-SENT
		A -5- <SEQ=100><SYN>
		-4-
		B SYN-SENT
		B -6- <SEQ=200><SYN>
		-5-
		-6-
		A SYN-RCVD
		A -7- <SEQ=100><ACK=200><SYN,ACK>
		B -8- <SEQ=200><ACK=100><SYN,ACK>
		-7-
		-8-
		A OPEN
		B OPEN
		A <SEQ=101><ACK=200>
		B <SEQ=201><ACK=100>`)
	tr.silent()
}

// A48: the same if any of the first eight segments are lost.
func TestCrossedOpensWithLosses(t *testing.T) {
	for lose := range 1 << 8 {
		tr := crossed(t)
		n := 0
		tr.drop = func() bool { n++; return n <= 8 && lose>>(n-1)&1 != 0 }
		for end := tr.now + 40*time.Second; tr.now < end; tr.now += 500 * time.Millisecond {
			tr.exchange()
		}
		if a, b := tr.hosts["A"].c, tr.hosts["B"].c; a.State() != Open || b.State() != Open || a.irs != b.iss || b.irs != a.iss {
			t.Fatalf("losses %08b: A is in %v, %v; B in %v, %v", lose, a.State(), a.Err(), b.State(), b.Err())
		}
		if n > 40 {
			t.Errorf("losses %08b: %d segments", lose, n)
		}
	}
}

// A48: a number that SYN,ACK has acknowledged the peer's SYN with is not taken back for what anybody else
// acknowledges: the peer may be in OPEN because of that SYN,ACK, as it is here.
func TestSYNAckIsNotTakenBack(t *testing.T) {
	p := newPeer(t, nil)
	p.in("active SYN-RCVD", params(nil))
	for range 4 {
		p.says("<SEQ=201><ACK=99>") // by an old SYN of ours
		p.expect("<SEQ=100><RST>")
		p.says("<SEQ=900><ACK=99><SYN,ACK>") // there was an answer just now
		p.expect("")
		p.wait(p.m.cfg.Doubt)
		p.sent(false) // SYN,ACK again
	}
	p.says("<SEQ=201><ACK=100>")
	if p.c.State() != Open || p.c.iss != ourISS || p.c.irs != theirISS {
		t.Errorf("%v with the numbers %d and %d", p.c.State(), p.c.iss, p.c.irs)
	}
}

// A48: an acknowledgement that waits for Pull is not sent once its SYN is denied.
func TestDeniedSYNIsNotAcknowledged(t *testing.T) {
	p := newPeer(t, nil)
	p.in("active SYN-RCVD", params(nil))
	p.says("<SEQ=900><SYN>")
	p.says("<SEQ=201><RST>")
	p.expect("<SEQ=100><SYN>")
	p.expect("")
}

// A9: SND.UNA is ISS+1 when the connection is open, so that nothing is unacknowledged.
func TestOpenAcknowledgesSYN(t *testing.T) {
	for _, state := range []string{"OPEN", "active OPEN"} {
		p := newPeer(t, nil)
		p.in(state, params(nil))
		if p.c.una != 101 || p.c.nxt != 101 || p.c.iss != 100 || p.c.irs != 200 || p.c.cur != 200 {
			t.Errorf("%s: %d, %d", state, p.c.una, p.c.nxt)
		}
		p.wait(time.Hour)
		p.expect("")
	}
}

// T2, A16: CLOSE-WAIT ends by its timer also after the peer's RST. A19: a SYN of the same pair is discarded
// until then, and the tries of an open last longer.
func TestCloseWaitEnds(t *testing.T) {
	p := newPeer(t, nil)
	p.in("reset CLOSE-WAIT", params(nil))
	p.wait(p.m.cfg.CloseWait - 1)
	p.says("<SEQ=900><SYN>")
	p.expect("")
	if p.c.State() != CloseWait {
		t.Fatal(p.c.State())
	}
	p.wait(1)
	p.says("<SEQ=900><SYN>")
	p.expect("<SEQ=1100><ACK=900><SYN,ACK>")
	cfg := Config{}.withDefaults()
	var tries time.Duration
	for i := range cfg.SYNTries - 1 {
		tries += cfg.RTOInitial << i
	}
	if tries <= cfg.CloseWait {
		t.Errorf("a SYN is sent for %v, CLOSE-WAIT lasts %v", tries, cfg.CloseWait)
	}
}

// A18: what is answered in CLOSE-WAIT is limited, as are the answers of CLOSED.
func TestAnswersInCloseWaitAreLimited(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Answers = 10 })
	p.in("CLOSE-WAIT", params(nil))
	for range 1000 {
		p.says("<SEQ=201><ACK=100>")
	}
	if n := len(p.sent(false)); n != 10 {
		t.Errorf("%d answers", n)
	}
}

// T3, A34: a NUL asks whether the peer of an idle connection is there. It is sent again, as data is, and
// finds a peer that is down.
func TestKeepalive(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Keepalive = 20 * time.Second }))
	p.wait(20*time.Second - 1)
	p.expect("")
	p.says("<SEQ=201><ACK=100>") // traffic
	p.wait(20*time.Second - 1)
	p.expect("")
	p.wait(1)
	p.expect("<SEQ=101><ACK=200><NUL>")
	p.wait(10 * time.Millisecond)
	p.says("<SEQ=201><ACK=101>")
	p.send(1)
	p.expect("<SEQ=102><ACK=200><Data>")
	p.wait(20 * time.Second)
	for _, s := range p.sent(false) {
		if strings.Contains(s, "NUL") {
			t.Errorf("with data unacknowledged: %s", s)
		}
	}
	p.says("<SEQ=201><ACK=102>")
	p.wait(20 * time.Second)
	sent := p.sent(false)
	for p.c.State() == Open && p.now < 2*time.Hour {
		p.wait(time.Second)
		sent = append(sent, p.sent(false)...)
	}
	if !errors.Is(p.c.Err(), ErrUnreachable) || len(sent) != p.m.cfg.Tries+1 || sent[len(sent)-1] != "<SEQ=104><RST>" {
		t.Errorf("a peer that is down: %v, after %v", p.c.Err(), sent)
	}
	for _, off := range []time.Duration{-1} {
		p := newPeer(t, nil)
		p.in("OPEN", params(func(p *Params) { p.Keepalive = off }))
		p.wait(time.Hour)
		p.expect("")
		if _, ok := p.m.Deadline(); ok {
			t.Error("there is a deadline")
		}
	}
}

// A34: a connection with unread data is asked about as well: else it would stay half-open for as long as
// nobody reads.
func TestKeepaliveWithUnreadData(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Keepalive = 20 * time.Second }))
	p.says(data(201, "x"))
	p.wait(10 * time.Second)
	p.expect("<SEQ=101><ACK=201>")
	p.wait(10 * time.Second)
	p.expect("<SEQ=101><ACK=201><NUL>")
}

// A43: a connection has the version of its SYN. Segments of a version that is not enabled are discarded, and
// those of the other version are of another connection.
func TestVersions(t *testing.T) {
	for _, enabled := range []Versions{Version1, Version2, AnyVersion} {
		for version := uint8(1); version <= 2; version++ {
			p := newPeer(t, func(c *Config) { c.Versions = enabled })
			p.version, p.local, p.remote = version, 20, 30
			p.in("LISTEN", params(nil))
			p.says("<SEQ=200><SYN>")
			want := "<SEQ=100><ACK=200><SYN,ACK>"
			if !enabled.has(version) {
				want = ""
			}
			p.expect(want)
			if p.m.Counters().OtherVersion == 0 != enabled.has(version) {
				t.Errorf("%+v", p.m.Counters())
			}
			if _, err := p.open(nil); (err == nil || errors.Is(err, ErrAlreadyOpen)) != enabled.has(version) {
				t.Errorf("open of version %d with %d: %v", version, enabled, err)
			}
		}
	}
	// A listener for one of two versions; one whose port version 1 does not have.
	p := newPeer(t, nil)
	p.version, p.local, p.remote = 1, 20, 30
	if _, err := p.m.Listen(ListenConfig{Port: 20, Versions: Version2}); err != nil {
		t.Fatal(err)
	}
	p.says("<SEQ=200><SYN>")
	p.expect("<SEQ=0><ACK=200><RST>")
	if _, err := p.m.Listen(ListenConfig{Port: 300}); err != nil {
		t.Errorf("port 300: %v", err)
	}
	if _, err := p.m.Listen(ListenConfig{Port: 300, Versions: 4}); !errors.Is(err, ErrVersion) {
		t.Errorf("version 3: %v", err)
	}
}

// A connection is named by both addresses, the UDP port, the version and both RDP ports.
func TestNames(t *testing.T) {
	p := newPeer(t, nil)
	p.m.iss = func(Name) uint32 { return 100 }
	p.local, p.remote = 20, 30
	p.in("LISTEN", params(nil))
	p.says("<SEQ=200><SYN>")
	p.sent(false)
	n := 1
	for _, change := range []func(){
		func() { p.version = 1 },
		func() { p.remote++ },
		func() { p.path.Remote = netip.AddrPortFrom(p.path.Remote.Addr(), 99) },
		func() { p.path.Remote = netip.MustParseAddrPort("10.9.0.9:99") },
		func() { p.path.Local = netip.MustParseAddr("10.9.0.7") },
	} {
		change()
		p.says("<SEQ=200><SYN>")
		p.expect("<SEQ=100><ACK=200><SYN,ACK>")
		if n++; p.m.Conns() != n || p.l.Pending() != n {
			t.Errorf("%d connections; want %d", p.m.Conns(), n)
		}
	}
	// IPv4 in IPv6 is IPv4.
	p.path.Local = netip.AddrFrom16(p.path.Local.As16())
	mapped := p.path
	h, _ := parse(t, "<SEQ=200><SYN>")
	h.Version, h.Source, h.Dest = p.version, p.remote, p.local
	p.m.Receive(p.now, mapped, h.AppendTo(nil, nil, nil))
	if p.m.Conns() != n {
		t.Error("the same address has two connections")
	}
}

// A38: initial numbers rise with time, differ by a keyed hash of the name, and those of one name are apart by
// more than a window.
func TestInitialNumbers(t *testing.T) {
	make1 := func(secret string) *Machine {
		m, err := New(Config{Secret: []byte(secret)})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	n := Name{Path{here, there}, 2, 20, 30}
	m := make1("a")
	first := m.iss(n)
	second := m.iss(n)
	if d := second - first; d <= 2*maxWindow {
		t.Errorf("at the same time: %d apart", d)
	}
	m.tick(time.Second)
	if d := m.iss(n) - second - (second - first); d != 250_000 {
		t.Errorf("in a second the clock makes %d steps", d)
	}
	other := n
	other.Remote++
	hash := func(m *Machine, n Name) uint32 { return uint32(m.hash(n, 'i', 0)) }
	if hash(m, n) == hash(m, other) || hash(m, n) == hash(make1("b"), n) || hash(m, n) != hash(make1("a"), n) {
		t.Error("the hash does not depend on name and secret")
	}
	if one, two := make1(""), make1(""); hash(one, n) == hash(two, n) {
		t.Error("two endpoints draw the same secret")
	}
	later, err := New(Config{Secret: []byte("a"), Start: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if d := later.iss(n) - first; d != 3600*250_000%(1<<32) {
		t.Errorf("an hour later: %d", d)
	}
}

// A2: the pseudo-header is a setting, of version 2 only.
func TestPseudoHeader(t *testing.T) {
	for _, pseudo := range []bool{false, true} {
		p := newPeer(t, func(c *Config) { c.Pseudo = pseudo })
		p.in("active OPEN", params(nil))
		p.send(1)
		p.expect("<SEQ=101><ACK=200><Data>")
		h, _ := parse(t, "<SEQ=201><ACK=101>")
		h.Version, h.Source, h.Dest = p.version, p.remote, p.local
		b := h.AppendTo(nil, nil, nil)
		p.m.Receive(p.now, p.path, b)
		if p.m.Counters().BadChecksum == 0 == pseudo {
			t.Errorf("with %v, a segment without is right", pseudo)
		}
	}
}
