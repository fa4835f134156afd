package machine

import (
	"strings"
	"testing"

	"urnic/ulp/rdp/wire"
)

// Params.Sink is offered messages in place of Receive, in the order of delivery; what it does not take
// Receive returns, and all that comes until that is read.
func TestSink(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		var took []string
		take := true
		p := newPeer(t, nil)
		p.in("OPEN", params(func(pa *Params) {
			pa.Sequenced, pa.Numbers, pa.Window = sequenced, true, 8
			pa.Sink = func(c *Conn, msg Message) bool {
				if c != p.c {
					t.Errorf("the sink of %v", c.Name())
				}
				if take && msg.Nulls > 0 {
					took = append(took, "-")
				} else if take {
					took = append(took, string(msg.Data))
				}
				return take
			}
		}))
		for _, s := range []string{data(203, "c"), "<SEQ=202><ACK=100><NUL>", data(201, "a")} {
			p.says(s)
		}
		want := map[bool]string{false: "c - a", true: "a - c"}[sequenced]
		if got := strings.Join(took, " "); got != want || p.read() != "" || p.m.Memory() != 0 {
			t.Errorf("sequenced %v: the sink has %q, %d bytes are held", sequenced, got, p.m.Memory())
		}
		p.expect("<SEQ=101><ACK=203>")
		took, take = nil, false
		p.says(data(204, "d"))
		take = true
		p.says(data(205, "e"))
		if got := p.read(); got != "d e" || len(took) > 0 {
			t.Errorf("read %q, the sink has %q", got, took)
		}
		p.says(data(206, "f"))
		if got := strings.Join(took, " "); got != "f" {
			t.Errorf("then the sink has %q", got)
		}
	}
}

// What Sink takes is read: with Params.AckRead, it is acknowledged.
func TestSinkAcknowledges(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		p := newPeer(t, nil)
		p.in("OPEN", params(func(p *Params) {
			p.AckRead, p.Sequenced = true, sequenced
			p.Sink = func(*Conn, Message) bool { return true }
		}))
		p.says(data(202, "b"))
		p.expect(map[bool]string{false: "<SEQ=101><ACK=200><EA=202>", true: "<SEQ=101><ACK=200>"}[sequenced])
		p.says(data(201, "a"))
		p.wait(p.m.cfg.AckDelay)
		p.expect("<SEQ=101><ACK=202>")
		if p.c.got.n != 0 || p.c.read.n != 0 || p.m.Memory() != 0 {
			t.Errorf("%d and %d numbers, %d bytes are left", p.c.got.n, p.c.read.n, p.m.Memory())
		}
	}
}

// SendBuffer takes the memory that Buffer has returned, and it comes back when the message is
// acknowledged.
func TestSendBuffer(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	for _, n := range []int{-1, 65_536} {
		if p.m.Buffer(n) != nil {
			t.Errorf("there is a buffer of %d bytes", n)
		}
	}
	b := p.m.Buffer(5)
	copy(b, "hello")
	if err := p.c.SendBuffer(p.now, b); err != nil {
		t.Fatal(err)
	}
	p.pull(func(_ *wire.Header, data []byte) {
		if string(data) != "hello" {
			t.Errorf("sent %q", data)
		}
	})
	if p.says("<SEQ=201><ACK=101>"); &p.m.Buffer(1)[0] != &b[0] {
		t.Error("the memory is not used again")
	}
	if err := p.c.SendBuffer(p.now, nil); err == nil {
		t.Error("an empty message")
	}
	if err := p.c.SendBuffer(p.now, p.m.Buffer(1000)); err == nil {
		t.Error("a message that is too long")
	}
}
