package machine

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func (p *peer) open(change func(*OpenConfig)) (*Conn, error) {
	o := OpenConfig{Path: p.path, Version: p.version, Port: p.local, Remote: p.remote, Params: params(nil)}
	if change != nil {
		change(&o)
	}
	return p.m.Open(p.now, o)
}

// U1: an open that finds no room for another connection.
func TestOpenWithoutResources(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.MaxConns = 1 })
	if _, err := p.open(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.open(func(o *OpenConfig) { o.Port++ }); !errors.Is(err, ErrResources) {
		t.Errorf("a second connection of one: %v", err)
	}
	if _, err := p.m.Listen(ListenConfig{Port: 5}); err != nil {
		t.Errorf("a listener is no connection: %v", err)
	}
}

// U2: a passive open needs a local port. It accepts many connections, or those of one host and port
// only.
func TestPassiveOpen(t *testing.T) {
	p := newPeer(t, nil)
	if _, err := p.m.Listen(ListenConfig{}); !errors.Is(err, ErrNoPort) {
		t.Errorf("without a port: %v", err)
	}
	if _, err := p.m.Listen(ListenConfig{Port: 256, Versions: Version1}); !errors.Is(err, ErrPort) {
		t.Errorf("port 256 of version 1: %v", err)
	}
	l, err := p.m.Listen(ListenConfig{Port: p.local, Params: params(nil)})
	if err != nil || l.State() != Listen || l.Port() != p.local {
		t.Fatal(l, err)
	}
	p.expect("")
	for i := range 3 {
		p.remote++
		p.says("<SEQ=200><SYN>")
		p.expect([]string{"<SEQ=100><ACK=200><SYN,ACK>", "<SEQ=1100><ACK=200><SYN,ACK>", "<SEQ=2100><ACK=200><SYN,ACK>"}[i])
	}
	for _, tt := range []struct {
		name   string
		cfg    ListenConfig
		accept bool
	}{
		{"any", ListenConfig{}, true},
		{"this address", ListenConfig{Local: here}, true},
		{"another address", ListenConfig{Local: there.Addr()}, false},
		{"the host", ListenConfig{Host: netip.AddrPortFrom(there.Addr(), 0)}, true},
		{"the host and UDP port", ListenConfig{Host: there}, true},
		{"another UDP port", ListenConfig{Host: netip.AddrPortFrom(there.Addr(), 1)}, false},
		{"another host", ListenConfig{Host: netip.AddrPortFrom(here, 0)}, false},
		{"the RDP port", ListenConfig{Remote: 3000}, true},
		{"another RDP port", ListenConfig{Remote: 3001}, false},
		{"host and port", ListenConfig{Host: there, Remote: 3000, Local: here}, true},
	} {
		p := newPeer(t, nil)
		tt.cfg.Port, tt.cfg.Params = p.local, params(nil)
		if _, err := p.m.Listen(tt.cfg); err != nil {
			t.Fatal(err)
		}
		p.says("<SEQ=200><SYN>")
		want := "<SEQ=0><ACK=200><RST>"
		if tt.accept {
			want = "<SEQ=100><ACK=200><SYN,ACK>"
		}
		if got := strings.Join(p.sent(false), " "); got != want {
			t.Errorf("%s: %s; want %s", tt.name, got, want)
		}
	}
}

// U2: of several listeners at a port the one that asks for most takes a connection.
func TestListenersAtOnePort(t *testing.T) {
	p := newPeer(t, nil)
	var all [3]*Listener
	for i, cfg := range []ListenConfig{{}, {Host: there}, {Host: there, Remote: p.remote}} {
		cfg.Port, cfg.Params = p.local, params(nil)
		var err error
		if all[i], err = p.m.Listen(cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := p.m.Listen(cfg); !errors.Is(err, ErrPortInUse) {
			t.Errorf("the same again: %v", err)
		}
	}
	p.says("<SEQ=200><SYN>")
	p.remote++
	p.says("<SEQ=200><SYN>")
	p.path.Remote = netip.MustParseAddrPort("10.9.0.3:1")
	p.says("<SEQ=200><SYN>")
	for i, l := range all {
		if l.Pending() != 1 {
			t.Errorf("listener %d has %d connections", i, l.Pending())
		}
	}
}

// U3: an active open sends a SYN with the limits of this end (A20), from the port that is asked for, or
// one that is allocable and free.
func TestActiveOpen(t *testing.T) {
	p := newPeer(t, nil)
	c, err := p.open(func(o *OpenConfig) { o.Sequenced = true })
	if err != nil || c.State() != SynSent {
		t.Fatal(err)
	}
	p.expect("<SEQ=100><MAX=4><BUFMAX=600><SDM><SYN>")
	for _, change := range []func(*OpenConfig){
		func(o *OpenConfig) { o.Remote = 0 },
		func(o *OpenConfig) { o.Path.Remote = netip.AddrPort{} },
	} {
		if _, err := p.open(change); !errors.Is(err, ErrNoRemote) {
			t.Errorf("without a remote port or host: %v", err)
		}
	}
	if _, err := p.open(func(o *OpenConfig) { o.Version, o.Remote = 1, 256 }); !errors.Is(err, ErrPort) {
		t.Errorf("port 256 of version 1: %v", err)
	}
	for _, version := range []uint8{3, 255} {
		if _, err := p.open(func(o *OpenConfig) { o.Version = version }); !errors.Is(err, ErrVersion) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// U3: ports are allocated from 64 in version 1, from 1024 in version 2, while there are any.
func TestAllocatedPorts(t *testing.T) {
	p := newPeer(t, nil)
	p.m.iss = func(Name) uint32 { return 1 }
	if _, err := p.m.Listen(ListenConfig{Port: 70}); err != nil {
		t.Fatal(err)
	}
	used := map[uint16]bool{}
	for range 255 - 64 { // all but 70
		c, err := p.open(func(o *OpenConfig) { o.Version, o.Port, o.Remote = 1, 0, 5 })
		if err != nil {
			t.Fatal(err)
		}
		port := c.Name().Local
		if port < 64 || port > 255 || port == 70 || used[port] {
			t.Fatalf("port %d", port)
		}
		used[port] = true
	}
	if _, err := p.open(func(o *OpenConfig) { o.Version, o.Port, o.Remote = 1, 0, 5 }); !errors.Is(err, ErrResources) {
		t.Errorf("when all are used: %v", err)
	}
	if _, err := p.open(func(o *OpenConfig) { o.Version, o.Port, o.Remote = 1, 0, 6 }); err != nil {
		t.Errorf("to another port: %v", err)
	}
	for range 100 {
		if c, err := p.open(func(o *OpenConfig) { o.Port = 0 }); err != nil || c.Name().Local < 1024 {
			t.Fatalf("version 2: %v, %v", c.Name(), err)
		}
	}
}

// U4: a connection of the same name can't be opened before it is closed.
func TestOpenAgain(t *testing.T) {
	for _, state := range []string{"SYN-SENT", "SYN-RCVD", "active SYN-RCVD", "OPEN", "CLOSE-WAIT", "reset CLOSE-WAIT"} {
		p := newPeer(t, nil)
		p.in(state, params(nil))
		if _, err := p.open(nil); !errors.Is(err, ErrAlreadyOpen) {
			t.Errorf("in %s: %v", state, err)
		}
		p.expect("")
		if strings.HasSuffix(state, "CLOSE-WAIT") {
			p.wait(p.m.cfg.CloseWait)
			if _, err := p.open(nil); err != nil {
				t.Errorf("after CLOSE-WAIT: %v", err)
			}
		}
	}
}

// U5: Close sends an RST with SND.NXT at once, whatever is unacknowledged, and waits in CLOSE-WAIT.
func TestCloseInOpen(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.send(2)
	p.expect("<SEQ=101><ACK=200><Data> <SEQ=102><ACK=200><Data>")
	if err := p.c.Close(p.now); err != nil || p.c.State() != CloseWait || p.c.Err() != nil {
		t.Fatal(err, p.c.State(), p.c.Err())
	}
	p.expect("<SEQ=103><RST>")
	p.wait(p.m.cfg.CloseWait - 1)
	p.expect("")
	if p.c.State() != CloseWait {
		t.Errorf("in %v before the time", p.c.State())
	}
	p.wait(1)
	if p.c.State() != Closed || p.m.Conns() != 0 {
		t.Errorf("in %v after CLOSE-WAIT, %d connections", p.c.State(), p.m.Conns())
	}
	if s := p.c.Status(); s.Unacknowledged != 2 {
		t.Errorf("the status says that %d messages may be lost; want 2", s.Unacknowledged)
	}
}

// U5: what was accepted is acknowledged before the RST: the peer would take it for lost.
func TestCloseAcknowledges(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Window = 64 }))
	p.says("<SEQ=201><ACK=100><Data>")
	p.expect("")
	if err := p.c.Close(p.now); err != nil {
		t.Fatal(err)
	}
	p.expect("<SEQ=101><ACK=201> <SEQ=101><RST>")
}

// U6: Close of a listener ends its connections that nobody has accepted, and no others.
func TestCloseInListen(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	first := p.l.Accept()
	p.c = nil
	p.remote++
	p.says("<SEQ=200><SYN>") // half-open
	p.expect("<SEQ=1100><ACK=200><SYN,ACK>")
	half := p.c
	if err := p.l.Close(p.now); err != nil || p.l.State() != Closed || p.l.Pending() != 0 {
		t.Fatal(err, p.l.State(), p.l.Pending())
	}
	p.expect("<SEQ=1101><RST>")
	if half.State() != Closed || !errors.Is(half.Err(), ErrListener) || first.State() != Open {
		t.Errorf("half-open: %v, %v; accepted: %v", half.State(), half.Err(), first.State())
	}
	if err := p.l.Close(p.now); !errors.Is(err, ErrNotOpen) {
		t.Errorf("again: %v", err)
	}
	p.says("<SEQ=900><SYN>")
	p.expect("<SEQ=0><ACK=900><RST>")
	if _, err := p.m.Listen(ListenConfig{Port: p.local}); err != nil {
		t.Errorf("the port is not free: %v", err)
	}
}

// U6: a connection that is open and was not accepted ends with the listener too.
func TestCloseInListenEndsOpenOnes(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	if err := p.l.Close(p.now); err != nil {
		t.Fatal(err)
	}
	p.expect("<SEQ=101><RST>")
	if p.c.State() != CloseWait || !errors.Is(p.c.Err(), ErrListener) {
		t.Errorf("it is in %v: %v", p.c.State(), p.c.Err())
	}
}

// U7: Close before OPEN sends an RST with SND.NXT, and the record is free at once.
func TestCloseBeforeOpen(t *testing.T) {
	for _, state := range []string{"SYN-SENT", "SYN-RCVD", "active SYN-RCVD"} {
		p := newPeer(t, nil)
		p.in(state, params(nil))
		if err := p.c.Close(p.now); err != nil || p.c.State() != Closed || p.m.Conns()+p.m.HalfOpen() != 0 {
			t.Fatalf("%s: %v, now in %v", state, err, p.c.State())
		}
		p.expect("<SEQ=101><RST>")
	}
}

// U8: Close in CLOSE-WAIT and in CLOSED.
func TestCloseTwice(t *testing.T) {
	p := newPeer(t, nil)
	p.in("CLOSE-WAIT", params(nil))
	if err := p.c.Close(p.now); !errors.Is(err, ErrClosing) {
		t.Errorf("in CLOSE-WAIT: %v", err)
	}
	p.wait(time.Hour)
	if err := p.c.Close(p.now); !errors.Is(err, ErrNotOpen) {
		t.Errorf("in CLOSED: %v", err)
	}
	p.expect("")
}

// Parameters that make no sense are refused, by name.
func TestBadParameters(t *testing.T) {
	p := newPeer(t, nil)
	for _, change := range []func(*Params){
		func(p *Params) { p.Window = -1 }, func(p *Params) { p.Window = 65536 }, func(p *Params) { p.MaxSegment = 38 },
		func(p *Params) { p.MaxSegment = 65536 }, func(p *Params) { p.SendLimit = 38 }, func(p *Params) { p.SendLimit = 65536 },
		func(p *Params) { p.SendQueue = -1 }, func(p *Params) { p.Keepalive = 1<<63 - 1 },
	} {
		pa := params(change)
		if _, err := p.open(func(o *OpenConfig) { o.Params = pa }); err == nil {
			t.Errorf("Open takes %+v", pa)
		}
		if _, err := p.m.Listen(ListenConfig{Port: 9, Params: pa}); err == nil {
			t.Errorf("Listen takes %+v", pa)
		}
	}
	for _, cfg := range []Config{
		{Versions: 4},
		{MaxConns: -1},
		{MaxHalfOpen: -1},
		{Memory: -1},
		{SYNTries: -1},
		{Tries: -1},
		{Reordering: -1},
		{AckEvery: -1},
		{CloseWait: -1},
		{Stall: -1},
		{Doubt: -1},
		{RTOMin: -1},
		{RTOInitial: 2, RTOMin: 3},
		{RTOInitial: time.Second, RTOMax: 1},
		{Cookies: 9},
		{SYNTries: 256},
		{Tries: 256},
		{Restarts: 256},
		{AckEvery: 256},
		{Reordering: 256},
		{CloseWait: 1<<63 - 1},
		{AckDelay: 1<<63 - 1},
		{RTOMax: 1<<63 - 1},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New takes %+v", cfg)
		}
	}
}
