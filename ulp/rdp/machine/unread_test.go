package machine

import (
	"testing"
	"time"
)

// A26: with as many messages unread as the window has, more are not accepted, nor acknowledged; the one
// that others wait for always has a place.
func TestUnreadMessages(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	for number := 201; number <= 205; number++ {
		p.says(data(number, "x"))
	}
	p.expect("<SEQ=101><ACK=204>")
	p.says(data(206, "x"))
	p.expect("<SEQ=101><ACK=204>") // not in the list of EACKs
	if s := p.c.Status(); s.Queued != 4 || s.Stats.Unread != 2 || p.m.Counters().Unread != 2 {
		t.Errorf("%+v", s)
	}
	if _, err := p.c.Receive(); err != nil {
		t.Fatal(err)
	}
	p.says(data(205, "y"))
	p.says(data(206, "x"))
	p.expect("<SEQ=101><ACK=205>")

	p = newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Sequenced = true }))
	for _, number := range []int{205, 204, 203} {
		p.says(data(number, "x"))
	}
	p.expect("<SEQ=101><ACK=200><EA=203-205>")
	p.says(data(202, "x")) // a fourth one that waits for 201
	p.expect("<SEQ=101><ACK=200><EA=203-205>")
	p.says(data(201, "x"))
	p.expect("<SEQ=101><ACK=201><EA=203-205>")
	if s := p.c.Status(); s.Queued != 1 || s.Held != 3 {
		t.Errorf("%+v", s)
	}
}

// A26: without strictness, messages are held while there is memory (seed 4). What is next for a connection
// that has nothing is taken even then.
func TestLooseWindow(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Memory = 10 * capacity(1) })
	p.in("OPEN", params(func(p *Params) { p.Loose = true }))
	for number := 201; number <= 211; number++ {
		p.says(data(number, "x"))
	}
	p.expect("<SEQ=101><ACK=210>")
	if s := p.c.Status(); s.Queued != 10 || p.m.Memory() != 10*capacity(1) || p.m.Counters().NoMemory != 1 {
		t.Errorf("%+v, %d bytes", s, p.m.Memory())
	}
	p = newPeer(t, func(c *Config) { c.Memory = 1 })
	p.in("OPEN", params(func(p *Params) { p.Loose = true }))
	p.says(data(202, "x"))
	p.expect("<SEQ=101><ACK=200>")
	p.says(data(201, "x"))
	p.says(data(202, "x"))
	p.expect("<SEQ=101><ACK=201>")
}

// RFC 1151 p.3: acknowledged when it was read, as a setting. What was not read keeps the peer's window
// closed.
func TestAcknowledgeWhenRead(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		p := newPeer(t, nil)
		p.in("OPEN", params(func(p *Params) { p.AckRead, p.Sequenced = true, sequenced }))
		p.says(data(201, "a"))
		p.says(data(202, "b"))
		p.wait(time.Second)
		p.expect("")
		p.says(data(202, "b")) // the peer's timer
		p.expect("<SEQ=101><ACK=200>")
		if _, err := p.c.Receive(); err != nil {
			t.Fatal(err)
		}
		p.wait(p.m.cfg.AckDelay)
		p.expect("<SEQ=101><ACK=201>")
		p.says(data(204, "d"))
		p.expect("<SEQ=101><ACK=201>")
		want, then := "b d", "<SEQ=101><ACK=202><EA=204>"
		if sequenced {
			want, then = "b", "<SEQ=101><ACK=202>"
		}
		if got := p.read(); got != want {
			t.Errorf("read %q; want %q", got, want)
		}
		p.wait(p.m.cfg.AckDelay)
		p.expect(then)
		p.says("<SEQ=203><ACK=100><NUL>") // nobody reads a NUL
		if sequenced {
			p.expect("<SEQ=101><ACK=203>")
			if got := p.read(); got != "d" {
				t.Errorf("read %q", got)
			}
			p.wait(p.m.cfg.AckDelay)
		}
		p.expect("<SEQ=101><ACK=204>")
		if p.c.got.n != 0 || p.c.read.n != 0 {
			t.Errorf("%d and %d numbers are left", p.c.got.n, p.c.read.n)
		}
	}
}
