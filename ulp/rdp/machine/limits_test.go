package machine

import (
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rdp/wire"
)

// flood has so many peers say something.
func (p *peer) flood(n int, s string) {
	p.t.Helper()
	for i := range n {
		p.path.Remote = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 10, byte(i >> 8), byte(i)}), 1)
		p.says(s)
	}
	p.path.Remote = there
}

// SYNs of a flood fill the half-open connections and no more; they go away by themselves.
func TestSYNFlood(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.MaxHalfOpen = 10 })
	p.m.iss = p.m.chooseISS
	p.in("LISTEN", params(nil))
	p.flood(1000, "<SEQ=200><SYN>")
	if p.m.HalfOpen() != 10 || p.m.Conns() != 10 || p.m.Counters().NoRoom != 990 {
		t.Errorf("%d half-open, %d connections, %+v", p.m.HalfOpen(), p.m.Conns(), p.m.Counters())
	}
	p.now += 5 * time.Minute
	for range 100 {
		p.m.Advance(p.now)
		p.now += time.Minute
	}
	if p.m.HalfOpen() != 0 || p.m.Conns() != 0 || p.l.Pending() != 0 || p.m.Counters().Expired != 10 {
		t.Errorf("afterwards: %d half-open, %+v", p.m.HalfOpen(), p.m.Counters())
	}

	// The backlog of a listener, and connections in all.
	p = newPeer(t, nil)
	p.m.iss = p.m.chooseISS
	l, err := p.m.Listen(ListenConfig{Port: p.local, Backlog: 3})
	if err != nil {
		t.Fatal(err)
	}
	p.flood(10, "<SEQ=200><SYN>")
	if l.Pending() != 3 {
		t.Errorf("%d are pending", l.Pending())
	}
	p = newPeer(t, func(c *Config) { c.MaxConns = 4 })
	p.m.iss = p.m.chooseISS
	p.in("LISTEN", params(nil))
	p.flood(10, "<SEQ=200><SYN>")
	if p.m.Conns() != 4 {
		t.Errorf("%d connections", p.m.Conns())
	}
}

// Segments for no connection are answered so often in a second, and no answer is larger than its
// question.
func TestStrayFlood(t *testing.T) {
	for _, state := range []string{"CLOSED", "LISTEN"} {
		p := newPeer(t, func(c *Config) { c.Answers = 50 })
		p.in(state, params(nil))
		for range 3 {
			for range 1000 {
				p.says("<SEQ=5><ACK=9><Data>")
			}
			if n := len(p.sent(false)); n != 50 {
				t.Errorf("%s: %d answers in a burst", state, n)
			}
			p.wait(time.Second)
		}
		if c := p.m.Counters(); c.Strays != 3000 || c.Answered != 150 || c.Unanswered != 2850 {
			t.Errorf("%s: %+v", state, c)
		}
	}
	p := newPeer(t, func(c *Config) { c.Answers = -1 })
	p.says("<SEQ=5><ACK=9><Data>")
	p.expect("")

	for _, mode := range []CookieMode{CookiesNever, CookiesAlways} {
		p := newPeer(t, func(c *Config) { c.Cookies = mode })
		for _, state := range []string{"CLOSED", "LISTEN"} {
			p.in(state, params(nil))
			for _, s := range []string{"<SEQ=5><ACK=9>", "<SEQ=5><SYN>", "<SEQ=5><NUL>", "<SEQ=5><ACK=9><EA=3>", "<SEQ=5><ACK=9><SYN,ACK>", "<SEQ=5><MAX=0><SYN>"} {
				h, data := parse(t, s)
				p.says(s)
				p.pull(func(answer *wire.Header, _ []byte) {
					if answer.Len() > h.Len()+len(data) {
						t.Errorf("%s in %s: an answer of %d bytes for %d", s, state, answer.Len(), h.Len())
					}
				})
			}
		}
	}
}

// Answers that nobody takes out are bounded too.
func TestAnswersAreBounded(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Answers = 1 << 20 })
	for range 3 * maxAnswers {
		p.says("<SEQ=5><ACK=9>")
	}
	if n := p.m.raw.Len(); n != maxAnswers {
		t.Errorf("%d answers wait", n)
	}
}

// I18: what a peer can make a connection hold is bounded, whatever it sends.
func TestMemoryOfAConnection(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Sequenced, p.Window = true, 100 }))
	for number := 500; number > 200; number-- {
		p.says(data(number, "x"))
	}
	p.sent(false)
	if s := p.c.Status(); s.Held+s.Queued != 100 || p.m.Memory() != 100*capacity(1) {
		t.Errorf("%+v, %d bytes", s, p.m.Memory())
	}
	if n := len(p.c.held); n > 256 {
		t.Errorf("there are slots for %d", n)
	}
	p.says("<SEQ=202><RST>")
	if p.m.Memory() != p.c.queue.n*capacity(1) || p.c.held != nil {
		t.Errorf("after the end %d bytes are held for %d messages", p.m.Memory(), p.c.queue.n)
	}
}
