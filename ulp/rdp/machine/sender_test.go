package machine

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"urnic/ulp/rdp/wire"
)

// O6: a cumulative acknowledgement names all up to its number: SND.UNA is SEG.ACK+1.
func TestCumulativeAck(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.send(3)
	if p.says("<SEQ=201><ACK=101>"); p.c.una != 101 {
		t.Error("it takes an acknowledgement of what it has not sent yet")
	}
	p.sent(false)
	for _, tt := range []struct {
		ack     string
		una     uint32
		unacked int
	}{
		{"<SEQ=201><ACK=100>", 101, 3},
		{"<SEQ=201><ACK=99>", 101, 3},
		{"<SEQ=201><ACK=104>", 101, 3}, // A45: SND.NXT was not sent
		{"<SEQ=201><ACK=102>", 103, 1},
		{"<SEQ=201><ACK=101>", 103, 1}, // late
		{"<SEQ=209><ACK=103>", 103, 1}, // A46: out of the window
		{"<SEQ=201><ACK=103>", 104, 0},
		{"<SEQ=201><ACK=103>", 104, 0},
	} {
		p.says(tt.ack)
		if p.c.una != tt.una || p.c.Status().Unacknowledged != tt.unacked {
			t.Errorf("after %s: SND.UNA is %d, %d unacknowledged; want %+v", tt.ack, p.c.una, p.c.Status().Unacknowledged, tt)
		}
	}
	if at, ok := p.m.Deadline(); ok && p.c.deadline() != never {
		t.Errorf("with nothing to wait for, the deadline is %v, %v", at, p.c.deadline())
	}
}

// O7: an EACK names single numbers, which are not sent again; A31: those that are not outstanding are
// ignored, and so are those named before.
func TestExtendedAck(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Window = 8 }))
	p.says("<SEQ=201><ACK=100>")
	p.send(4)
	p.sent(false)
	p.says("<SEQ=201><ACK=100><EA=103,103,99,100,105,4000000000>")
	if s := p.c.Status(); s.Unacknowledged != 3 || p.c.una != 101 {
		t.Errorf("one named: %+v, SND.UNA %d", s, p.c.una)
	}
	p.wait(p.m.cfg.RTOInitial)
	p.expect("<SEQ=101><ACK=200><Data> <SEQ=102><ACK=200><Data> <SEQ=104><ACK=200><Data>")
	p.says("<SEQ=201><ACK=103>")
	if s := p.c.Status(); s.Unacknowledged != 1 || p.c.una != 104 {
		t.Errorf("then three by ACK: %+v, SND.UNA %d", s, p.c.una)
	}
}

// A14: what an EACK names makes room for another segment, up to the peer's acceptance window. With
// p.23's window it does not.
func TestWindowWithEACKs(t *testing.T) {
	for _, narrow := range []bool{false, true} {
		p := newPeer(t, func(c *Config) { c.NarrowWindow = narrow })
		p.in("OPEN", params(nil))
		p.send(4)
		p.sent(false)
		p.says("<SEQ=201><ACK=100><EA=102-104>")
		n := 0
		for number := 105; p.c.Send(p.now, []byte("x")) == nil; number++ {
			n++
			p.sent(false)
			p.says("<SEQ=201><ACK=100><EA=102-" + strconv.Itoa(number) + ">")
			if n > 20 {
				t.Fatal("there is no end")
			}
		}
		// SND.UNA is 101: 108 is the last number of the peer's window, and 107 the last one sent, so that
		// SND.NXT is in it.
		want := 3
		if narrow {
			want = 0
		}
		if n != want || p.c.nxt != uint32(105+want) {
			t.Errorf("narrow %v: %d more are sent, SND.NXT is %d", narrow, n, p.c.nxt)
		}
		if err := p.c.Close(p.now); err != nil {
			t.Fatal(err)
		}
		if h, _ := parse(t, p.sent(false)[0]); !within(h.Seq, 100, 8) {
			t.Errorf("the RST has the number %d, out of the window of a peer whose RCV.CUR is 100", h.Seq)
		}
	}
}

// A42: what is sent again carries the acknowledgements of now.
func TestRetransmissionAcknowledges(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Window = 64 }))
	p.send(1)
	p.expect("<SEQ=101><ACK=200><Data>")
	p.says("<SEQ=201><ACK=100><Data>")
	p.says("<SEQ=203><ACK=100><Data>")
	p.expect("<SEQ=102><ACK=201><EA=203>")
	p.wait(p.m.cfg.RTOInitial)
	p.expect("<SEQ=101><ACK=201><Data>")
	// With an acknowledgement due, the numbers are listed as well, if there is room.
	p.says("<SEQ=204><ACK=100><Data>")
	p.send(1)
	p.expect("<SEQ=102><ACK=201><EA=203-204><Data>")
}

// A36: a list of EACKs takes room from data, and is sent alone if there is not enough; it lists the
// newest numbers that fit, the one that came last among them.
func TestListsOfEACKs(t *testing.T) {
	p := newPeer(t, nil)
	p.in("LISTEN", params(func(p *Params) { p.Window = 200 }))
	p.says("<SEQ=200><MAX=16><BUFMAX=78><SYN>") // 40 bytes: ten numbers, or data
	p.says("<SEQ=201><ACK=100>")
	for number := 203; number < 203+2*11; number += 2 {
		p.says("<SEQ=" + strconv.Itoa(number) + "><ACK=100><Data>")
		p.sent(false)
	}
	check := func(last string, want string) {
		t.Helper()
		p.says(last)
		p.pull(func(h *wire.Header, data []byte) {
			if n := 20 + h.Len() + len(data); n > 78 {
				t.Errorf("a segment counts %d bytes", n)
			}
			if got := wire.Ranges(h.EACKs); got != want {
				t.Errorf("after %s: %s; want %s", last, got, want)
			}
		})
	}
	check("<SEQ=225><ACK=100><Data>", "207,209,211,213,215,217,219,221,223,225")
	check("<SEQ=203><ACK=100><Data>", "203,209,211,213,215,217,219,221,223,225")
	check("<SEQ=208><ACK=100><Data>", "208-209,211,213,215,217,219,221,223,225")

	// Data of 20 bytes leaves room for five numbers of ten: then they go first.
	if err := p.c.Send(p.now, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	p.says("<SEQ=225><ACK=100><Data>")
	p.expect("<SEQ=101><ACK=200><EA=208-209,211,213,215,217,219,221,223,225> <SEQ=101><ACK=200><Data>")
}

// A36: a header has room for 123 numbers.
func TestLongestListOfEACKs(t *testing.T) {
	p := newPeer(t, nil)
	p.in("LISTEN", params(func(p *Params) { p.Window = 500 }))
	p.says("<SEQ=200><BUFMAX=1400><SYN>")
	p.says("<SEQ=201><ACK=100>")
	for number := 202; number < 602; number++ {
		p.says("<SEQ=" + strconv.Itoa(number) + "><ACK=100><Data>")
	}
	p.expect("<SEQ=101><ACK=200><EA=479-601>")
}

// A queue behind the window takes messages, which follow by themselves.
func TestSendQueue(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.SendQueue = 3 }))
	p.send(7)
	p.expect("<SEQ=101><ACK=200><Data> <SEQ=102><ACK=200><Data> <SEQ=103><ACK=200><Data> <SEQ=104><ACK=200><Data>")
	if err := p.c.Send(p.now, []byte("x")); !errors.Is(err, ErrWouldBlock) || p.c.Status().Unacknowledged != 7 {
		t.Errorf("an eighth: %v; %+v", err, p.c.Status())
	}
	p.says("<SEQ=201><ACK=102>")
	p.expect("<SEQ=105><ACK=200><Data> <SEQ=106><ACK=200><Data>")
}

// A20: what Open asks for is RCV.MAX. What may be sent is what the peer allows.
func TestWindowIsThePeers(t *testing.T) {
	p := newPeer(t, nil)
	p.in("SYN-SENT", params(func(p *Params) { p.Window = 2 }))
	p.says("<SEQ=200><ACK=100><MAX=5><BUFMAX=300><SYN,ACK>")
	p.sent(false)
	p.send(5)
	if err := p.c.Send(p.now, []byte("x")); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("a sixth: %v", err)
	}
	// A22: the peer's size bounds what is sent, not what is accepted.
	if s := p.c.Status(); s.SendMax != 300 || s.RecvMax != 600 || s.Window != 5 {
		t.Errorf("%+v", s)
	}
	p.says("<SEQ=201><ACK=100><Data=" + strings.Repeat("x", 500) + ">")
	if p.c.State() != Open {
		t.Errorf("a segment that this end accepts: %v", p.c.Err())
	}
}
