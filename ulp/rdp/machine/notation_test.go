package machine

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rdp/wire"
)

// Segments are written as RFC 908 does: <SEQ=201><ACK=100><EA=102,103>, <SEQ=100><SYN>,
// <SEQ=100><MAX=8><BUFMAX=576><SYN>. <Data> stands for one byte, <Data=text> for a text.

// parse returns a segment that is written so.
func parse(t *testing.T, s string) (h wire.Header, data []byte) {
	t.Helper()
	h = wire.Header{MaxOutstanding: 4, MaxSegment: 600}
	number := func(s string) uint32 {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">"), "><") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "SEQ":
			h.Seq = number(value)
		case "ACK":
			h.Flags |= wire.ACK
			if value != "" {
				h.Ack = number(value)
			}
		case "EA":
			h.Flags |= wire.EACK
			for n := range strings.SplitSeq(value, ",") {
				from, to, isRange := strings.Cut(n, "-")
				if !isRange {
					to = from
				}
				for i := number(from); i <= number(to); i++ {
					h.EACKs = append(h.EACKs, i)
				}
			}
		case "MAX":
			h.MaxOutstanding = uint16(number(value))
		case "BUFMAX":
			h.MaxSegment = uint16(number(value))
		case "SDM":
			h.Sequenced = true
		case "SYN":
			h.Flags |= wire.SYN
		case "SYN,ACK":
			h.Flags |= wire.SYN | wire.ACK
		case "RST":
			h.Flags |= wire.RST
		case "NUL":
			h.Flags |= wire.NUL
		case "Data":
			data = []byte("x")
			if value != "" {
				data = []byte(value)
			}
		default:
			t.Fatalf("what is <%s>?", part)
		}
	}
	return h, data
}

// write writes a segment so. The limits of a SYN are left out unless full is true.
func write(h *wire.Header, data []byte, full bool) string {
	var s strings.Builder
	fmt.Fprintf(&s, "<SEQ=%d>", h.Seq)
	if h.Flags&wire.ACK != 0 {
		fmt.Fprintf(&s, "<ACK=%d>", h.Ack)
	}
	if h.Flags&wire.SYN != 0 && full {
		fmt.Fprintf(&s, "<MAX=%d><BUFMAX=%d>", h.MaxOutstanding, h.MaxSegment)
		if h.Sequenced {
			s.WriteString("<SDM>")
		}
	}
	switch {
	case h.Flags&wire.SYN != 0 && h.Flags&wire.ACK != 0:
		s.WriteString("<SYN,ACK>")
	case h.Flags&wire.SYN != 0:
		s.WriteString("<SYN>")
	case h.Flags&wire.RST != 0:
		s.WriteString("<RST>")
	case h.Flags&wire.NUL != 0:
		s.WriteString("<NUL>")
	}
	if h.Flags&wire.EACK != 0 {
		fmt.Fprintf(&s, "<EA=%s>", wire.Ranges(h.EACKs))
	}
	if len(data) > 0 {
		s.WriteString("<Data>")
	}
	return s.String()
}

// A peer is what an endpoint under test talks with: a test that says segments.
type peer struct {
	t       *testing.T
	m       *Machine
	now     Time
	path    Path // of the endpoint
	version uint8
	local   uint16 // the endpoint's port
	remote  uint16
	isses   []uint32 // that the endpoint chooses next
	c       *Conn
	l       *Listener
	seen    []Event
	buf     []byte
}

// The numbers of tests are those of the examples of RFC 908: the endpoint's begin at 100, its
// peer's at 200.
const (
	ourISS   = 100
	theirISS = 200
)

var (
	here  = netip.MustParseAddr("10.9.0.1")
	there = netip.MustParseAddrPort("10.9.0.2:10908")
)

func newPeer(t *testing.T, change func(*Config)) *peer {
	t.Helper()
	cfg := Config{Secret: []byte("secret")}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, m: m, path: Path{here, there}, version: 2, local: 2000, remote: 3000, isses: []uint32{ourISS, 1100, 2100, 3100, 4100}, buf: make([]byte, 0, MaxPacket)}
	m.iss = func(Name) uint32 {
		iss := p.isses[0]
		p.isses = p.isses[1:]
		return iss
	}
	return p
}

// params are those of tests: a window of four segments.
func params(change func(*Params)) Params {
	p := Params{Window: 4, MaxSegment: 600, Keepalive: -1}
	if change != nil {
		change(&p)
	}
	return p
}

// says gives the endpoint a segment.
func (p *peer) says(s string) {
	p.t.Helper()
	h, data := parse(p.t, s)
	p.saysHeader(&h, data)
}

func (p *peer) saysHeader(h *wire.Header, data []byte) {
	p.t.Helper()
	h.Version, h.Source, h.Dest = p.version, p.remote, p.local
	if err := h.Check(len(data)); err != nil {
		p.t.Fatal(err)
	}
	p.m.Receive(p.now, p.path, h.AppendTo(nil, data, p.m.pseudoOf(p.path.Remote.Addr(), p.path.Local)))
	p.look()
}

// look takes the events, and the connection that a listener has made.
func (p *peer) look() {
	p.seen = append(p.seen, p.m.Events()...)
	if p.c == nil {
		p.c = p.m.Conn(Name{p.path, p.version, p.local, p.remote})
	}
}

// sent returns what the endpoint has sent since the last look.
func (p *peer) sent(full bool) (all []string) {
	p.t.Helper()
	p.pull(func(h *wire.Header, data []byte) { all = append(all, write(h, data, full)) })
	return all
}

// pull hands out what the endpoint sends.
func (p *peer) pull(f func(h *wire.Header, data []byte)) {
	p.t.Helper()
	for {
		b, to, ok := p.m.Pull(p.now, p.buf)
		if !ok {
			p.look()
			return
		}
		var h wire.Header
		data, err := h.Parse(b, p.m.pseudoOf(to.Local, to.Remote.Addr()))
		if err != nil || to != p.path || h.Version != p.version || h.Source != p.local || h.Dest != p.remote {
			p.t.Fatalf("the endpoint sends %v to %v: %v", &h, to, err)
		}
		f(&h, data)
	}
}

// expect verifies what the endpoint sends: segments separated by spaces.
func (p *peer) expect(want string) {
	p.t.Helper()
	if got := strings.Join(p.sent(strings.Contains(want, "<MAX")), " "); got != want {
		p.t.Fatalf("the endpoint sends\n\t%s\nand should send\n\t%s", got, want)
	}
}

// wait lets time pass.
func (p *peer) wait(d time.Duration) {
	p.t.Helper()
	for end := p.now + d; ; {
		at, ok := p.m.Deadline()
		if !ok || at > end {
			p.now = end
			p.m.Advance(end)
			p.look()
			return
		}
		p.now = max(p.now, at)
		p.m.Advance(p.now)
		p.look()
	}
}

// in brings the endpoint into a state: OPEN and SYN-RCVD by a listener, or, with "active " before
// them, by an open; or "active SYN-RCVD" by both at once.
func (p *peer) in(state string, pa Params) {
	p.t.Helper()
	switch state {
	case "CLOSED":
	case "LISTEN", "SYN-RCVD", "OPEN", "CLOSE-WAIT", "reset CLOSE-WAIT":
		l, err := p.m.Listen(ListenConfig{Port: p.local, Params: pa})
		if err != nil {
			p.t.Fatal(err)
		}
		p.l = l
		if state != "LISTEN" {
			p.says("<SEQ=200><SYN>")
		}
		if state != "LISTEN" && state != "SYN-RCVD" {
			p.sent(false)
			p.says("<SEQ=201><ACK=100>")
		}
		switch state {
		case "CLOSE-WAIT":
			if err := p.c.Close(p.now); err != nil {
				p.t.Fatal(err)
			}
		case "reset CLOSE-WAIT":
			p.says("<SEQ=201><RST>")
		}
	case "SYN-SENT", "active SYN-RCVD", "active OPEN":
		c, err := p.m.Open(p.now, OpenConfig{Path: p.path, Version: p.version, Port: p.local, Remote: p.remote, Params: pa})
		if err != nil {
			p.t.Fatal(err)
		}
		p.c = c
		switch state {
		case "active SYN-RCVD":
			p.sent(false)
			p.says("<SEQ=200><SYN>")
		case "active OPEN":
			p.sent(false)
			p.says("<SEQ=200><ACK=100><SYN,ACK>")
		}
	default:
		p.t.Fatalf("no way to %s", state)
	}
	p.sent(false)
	p.seen = nil
}

// state is that of the endpoint for the peer.
func (p *peer) state() string {
	name := Name{p.path, p.version, p.local, p.remote}
	switch c := p.m.Conn(name); {
	case c != nil:
		return c.State().String()
	case p.m.listener(&name) != nil:
		return "LISTEN"
	}
	return "CLOSED"
}

// unmeasured forgets the round-trip time of the handshake, which took no time.
func (p *peer) unmeasured() { p.c.rtt = rtt{timeout: p.m.cfg.RTOInitial} }

// send sends one-byte messages.
func (p *peer) send(n int) {
	p.t.Helper()
	for range n {
		if err := p.c.Send(p.now, []byte("x")); err != nil {
			p.t.Fatal(err)
		}
	}
}

// read returns what there is to read.
func (p *peer) read() string {
	p.t.Helper()
	var all []string
	for {
		msg, err := p.c.Receive()
		if err != nil {
			return strings.Join(all, " ")
		}
		text := string(msg.Data)
		if msg.Nulls > 0 {
			text = "-"
		}
		all = append(all, text)
	}
}
