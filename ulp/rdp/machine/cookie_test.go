package machine

import (
	"strings"
	"testing"
	"time"

	"urnic/ulp/rdp/wire"
)

// cookie has the peer say a SYN, and returns the number of the answer.
func (p *peer) cookie(syn string) (iss uint32) {
	p.t.Helper()
	p.says(syn)
	n := 0
	p.pull(func(h *wire.Header, _ []byte) {
		n++
		iss = h.Seq
		if h.Flags != wire.SYN|wire.ACK || h.Ack != 200 || h.MaxOutstanding != 4 || h.MaxSegment != 600 {
			p.t.Errorf("the answer is %v", h)
		}
	})
	if n != 1 || p.m.Conns() != 0 || p.m.HalfOpen() != 0 {
		p.t.Fatalf("%d answers, %d connections", n, p.m.Conns())
	}
	return iss
}

func acks(seq, ack uint32) *wire.Header { return &wire.Header{Flags: wire.ACK, Seq: seq, Ack: ack} }

// With cookies, a SYN takes no state; the peer's first segment opens the connection, and brings back what
// the SYN has said, rounded down.
func TestCookies(t *testing.T) {
	for _, tt := range []struct {
		syn  string
		want limits
	}{
		{"<SEQ=200><MAX=1><BUFMAX=39><SYN>", limits{1, 39, false}},
		{"<SEQ=200><MAX=64><BUFMAX=1472><SDM><SYN>", limits{64, 1472, true}},
		{"<SEQ=200><MAX=63><BUFMAX=1471><SYN>", limits{32, 1400, false}},
		{"<SEQ=200><MAX=65535><BUFMAX=65535><SYN>", limits{256, 8972, false}},
	} {
		p := newPeer(t, func(c *Config) { c.Cookies = CookiesAlways })
		p.in("LISTEN", params(nil))
		iss := p.cookie(tt.syn)
		p.saysHeader(acks(201, iss), []byte("hello"))
		if p.c == nil || p.c.State() != Open || p.c.peer != tt.want || p.c.Sequenced() != tt.want.sequenced || p.l.Accept() != p.c {
			t.Fatalf("%s: %+v", tt.syn, p.c)
		}
		if got := p.read(); got != "hello" || p.m.Counters().CookiesUsed != 1 {
			t.Errorf("read %q", got)
		}
		p.send(1)
		p.pull(func(h *wire.Header, _ []byte) {
			if h.Seq != iss+1 || h.Ack != 201 {
				t.Errorf("sent %v", h)
			}
		})
	}
}

// A cookie is good for its name, the numbers and limits, and for some time. What is no cookie is answered
// as in LISTEN.
func TestWrongCookies(t *testing.T) {
	for name, change := range map[string]func(p *peer, h *wire.Header){
		"another port":    func(p *peer, _ *wire.Header) { p.remote++ },
		"another number":  func(_ *peer, h *wire.Header) { h.Ack ^= 1 << 20 },
		"another hint":    func(_ *peer, h *wire.Header) { h.Ack ^= 2 },
		"too late":        func(p *peer, _ *wire.Header) { p.now += 2 * cookieTime },
		"much too late":   func(p *peer, _ *wire.Header) { p.now += 4 * cookieTime },
		"with EACK":       func(_ *peer, h *wire.Header) { h.Flags |= wire.EACK; h.EACKs = []uint32{5} },
		"other limits":    func(p *peer, _ *wire.Header) { p.m.listeners[service{2, p.local}][0].p.Window++ },
		"a SYN,ACK":       func(_ *peer, h *wire.Header) { h.Flags |= wire.SYN },
		"another version": func(p *peer, _ *wire.Header) { p.version = 1 },
	} {
		p := newPeer(t, func(c *Config) { c.Cookies = CookiesAlways })
		p.local, p.remote = 20, 30
		p.in("LISTEN", params(nil))
		h := acks(201, p.cookie("<SEQ=200><SYN>"))
		change(p, h)
		p.saysHeader(h, nil)
		want := write(&wire.Header{Flags: wire.RST, Seq: h.Ack + 1}, nil, false)
		if got := strings.Join(p.sent(false), " "); got != want || p.m.Conns() != 0 {
			t.Errorf("%s: %s, %d connections; want %s", name, got, p.m.Conns(), want)
		}
	}
	for _, age := range []time.Duration{0, cookieTime, 2*cookieTime - 1} {
		p := newPeer(t, func(c *Config) { c.Cookies = CookiesAlways })
		p.in("LISTEN", params(nil))
		iss := p.cookie("<SEQ=200><SYN>")
		p.now += age
		if p.saysHeader(acks(201, iss), nil); p.c == nil {
			t.Errorf("after %v it is not good", age)
		}
	}
}

// A later segment of the peer neither opens the connection, as what was before it would be skipped, nor
// resets it: the first one comes again.
func TestCookieWithLaterSegment(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Cookies = CookiesAlways })
	p.in("LISTEN", params(nil))
	iss := p.cookie("<SEQ=200><SYN>")
	for _, seq := range []uint32{202, 203, 200 + 256, 200} {
		p.saysHeader(acks(seq, iss), []byte("b"))
		p.expect("")
	}
	p.saysHeader(acks(201, iss), []byte("a"))
	p.saysHeader(acks(202, iss), []byte("b"))
	if got := p.read(); got != "a b" {
		t.Errorf("read %q", got)
	}
}

// Cookies only if there is no room; and no connection beyond the backlog.
func TestCookiesIfFull(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Cookies, c.MaxHalfOpen = CookiesIfFull, 1 })
	l, err := p.m.Listen(ListenConfig{Port: p.local, Backlog: 2, Params: params(nil)})
	if err != nil {
		t.Fatal(err)
	}
	p.says("<SEQ=200><SYN>")
	p.expect("<SEQ=100><ACK=200><SYN,ACK>")
	for i := range 3 {
		p.remote++
		p.says("<SEQ=200><SYN>")
		var iss uint32
		p.pull(func(h *wire.Header, _ []byte) { iss = h.Seq })
		p.saysHeader(acks(201, iss), nil)
		p.expect("")
		if want := min(i+2, 3); p.m.Conns() != want || p.m.HalfOpen() != 1 {
			t.Errorf("%d: %d connections, %d half-open", i, p.m.Conns(), p.m.HalfOpen())
		}
	}
	if n := p.m.Counters().Cookies; n != 3 || l.queue.Len() != 2 {
		t.Errorf("%d cookies, %d connections", n, l.queue.Len())
	}
}

// A connection that a cookie has opened stays in CLOSE-WAIT until the cookie is no good any more: else its
// first segment, come late, would open it again.
func TestCookieDoesNotOpenTwice(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Cookies, c.CloseWait = CookiesAlways, time.Second })
	p.in("LISTEN", params(nil))
	iss := p.cookie("<SEQ=200><SYN>")
	p.saysHeader(acks(201, iss), []byte("a"))
	if err := p.c.Close(p.now); err != nil {
		t.Fatal(err)
	}
	p.sent(false)
	for p.now < 3*cookieTime {
		p.wait(time.Second)
		p.saysHeader(acks(201, iss), []byte("a"))
		if p.m.Counters().CookiesUsed != 1 {
			t.Fatalf("after %v it is open again", p.now)
		}
	}
	if p.c.State() != Closed {
		t.Errorf("it is in %v", p.c.State())
	}
}
