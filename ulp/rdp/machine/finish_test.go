package machine

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The number of an RST, and holes before what has come, tell whether all has come that the peer has sent. That of
// an RST in answer to an acknowledgement says nothing.
func TestShort(t *testing.T) {
	for _, tt := range []struct {
		name, segments string
		short          bool
	}{
		{"nothing was sent", "<SEQ=201><RST>", false},
		{"all has come", "<SEQ=201><ACK=100><Data> <SEQ=202><ACK=100><Data> <SEQ=203><RST>", false},
		{"all has come, in another order", "<SEQ=202><ACK=100><Data> <SEQ=201><ACK=100><Data> <SEQ=203><RST>", false},
		{"the last one is missing", "<SEQ=201><ACK=100><Data> <SEQ=203><RST>", true},
		{"everything is missing", "<SEQ=203><RST>", true},
		{"one in between is missing", "<SEQ=201><ACK=100><Data> <SEQ=203><ACK=100><Data> <SEQ=204><RST>", true},
		{"the same, in answer to our acknowledgement", "<SEQ=201><ACK=100><Data> <SEQ=203><ACK=100><Data> <SEQ=202><RST>", true},
		{"a NUL is missing", "<SEQ=201><ACK=100><Data> <SEQ=203><ACK=100><NUL> <SEQ=204><RST>", true},
		{"the last one was a NUL", "<SEQ=201><ACK=100><Data> <SEQ=202><ACK=100><NUL> <SEQ=203><RST>", false},
	} {
		for _, sequenced := range []bool{false, true} {
			for _, ackRead := range []bool{false, true} {
				p := newPeer(t, nil)
				p.in("OPEN", params(func(p *Params) { p.Sequenced, p.AckRead = sequenced, ackRead }))
				for s := range strings.SplitSeq(tt.segments, " ") {
					p.says(s)
				}
				if s := p.c.Status(); s.State != CloseWait || s.Short != tt.short {
					t.Errorf("%s, sequenced %v, acknowledged when read %v: %v, short %v", tt.name, sequenced, ackRead, s.State, s.Short)
				}
				p.read()
				p.wait(time.Hour)
				if s := p.c.Status(); s.State != Closed || s.Short != tt.short {
					t.Errorf("%s, later: %v, short %v", tt.name, s.State, s.Short)
				}
			}
		}
	}
}

// With StrictReset, an RST that is not obeyed still says how far the peer has sent. What comes later may make up
// for that: it was late, or the RST was forged.
func TestShortWithStrictResets(t *testing.T) {
	for _, tt := range []struct {
		segments string
		short    bool
	}{
		{"<SEQ=203><RST> <SEQ=201><RST>", true},
		{"<SEQ=203><RST> <SEQ=201><ACK=100><Data> <SEQ=202><RST>", true},
		{"<SEQ=203><RST> <SEQ=201><ACK=100><Data> <SEQ=202><ACK=100><Data> <SEQ=203><RST>", false},
	} {
		p := newPeer(t, func(c *Config) { c.StrictReset = true })
		p.in("OPEN", params(nil))
		p.says("<SEQ=203><RST>")
		p.expect("<SEQ=101><ACK=200>")
		for s := range strings.SplitSeq(tt.segments, " ") {
			p.says(s)
		}
		if s := p.c.Status(); s.State != CloseWait || s.Short != tt.short {
			t.Errorf("%s: %v, short %v", tt.segments, s.State, s.Short)
		}
	}
}

// The RST of Abort has a number that the peer has not seen, inside its window.
func TestAbort(t *testing.T) {
	for _, tt := range []struct {
		sent int
		want string
	}{{0, "<SEQ=102><RST>"}, {1, "<SEQ=103><RST>"}, {4, "<SEQ=106><RST>"}} {
		p := newPeer(t, nil)
		p.in("OPEN", params(nil))
		p.send(tt.sent)
		p.sent(false)
		if err := p.c.Abort(p.now); err != nil {
			t.Fatal(err)
		}
		p.expect(tt.want)
		if s := p.c.Status(); s.State != CloseWait || s.Unacknowledged != tt.sent {
			t.Errorf("%d sent: %v, %d unacknowledged", tt.sent, s.State, s.Unacknowledged)
		}
		p.wait(time.Hour)
	}
	// What was sent until the end of the window, with holes that the peer has: there is no number left.
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.send(4)
	p.sent(false)
	p.says("<SEQ=201><ACK=100><EA=102-104>")
	p.send(3)
	p.sent(false)
	if err := p.c.Abort(p.now); err != nil {
		t.Fatal(err)
	}
	p.expect("<SEQ=108><RST>")
	// Before OPEN and after the end it is Close.
	p = newPeer(t, nil)
	p.in("SYN-SENT", params(nil))
	if err := p.c.Abort(p.now); err != nil {
		t.Fatal(err)
	}
	p.expect("<SEQ=101><RST>")
	if err := p.c.Abort(p.now); !errors.Is(err, ErrNotOpen) {
		t.Error(err)
	}
	p = newPeer(t, nil)
	p.in("CLOSE-WAIT", params(nil))
	if err := p.c.Abort(p.now); !errors.Is(err, ErrClosing) {
		t.Error(err)
	}
	p.expect("")
}

// The RST of Close can be sent again while the connection is in CLOSE-WAIT.
func TestRepeatClose(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.c.RepeatClose(p.now)
	p.expect("")
	p.send(2)
	p.sent(false)
	if err := p.c.Close(p.now); err != nil {
		t.Fatal(err)
	}
	p.expect("<SEQ=103><RST>")
	p.wait(time.Second)
	p.c.RepeatClose(p.now)
	p.expect("<SEQ=103><RST>")
	p.wait(time.Hour)
	p.c.RepeatClose(p.now)
	p.expect("")
	p = newPeer(t, nil)
	p.in("reset CLOSE-WAIT", params(nil))
	p.c.RepeatClose(p.now)
	p.expect("")
}

// Probe sends a NUL, and tells when it is acknowledged; it is sent again until it is.
func TestProbe(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	if err := p.c.Probe(p.now); err != nil {
		t.Fatal(err)
	}
	p.expect("<SEQ=101><ACK=200><NUL>")
	p.wait(5 * time.Second)
	if sent := p.sent(false); len(sent) == 0 || sent[0] != "<SEQ=101><ACK=200><NUL>" {
		t.Errorf("it is not sent again: %v", sent)
	}
	if s := p.c.Status(); s.Stats.Probes != 1 || s.Stats.Answered != 0 || s.Unacknowledged != 0 {
		t.Errorf("%+v", s)
	}
	p.seen = nil
	p.says("<SEQ=201><ACK=101>")
	if len(p.seen) != 1 || p.seen[0].Kind != Answered || p.seen[0].Conn != p.c || p.c.Status().Stats.Answered != 1 {
		t.Errorf("%v, %+v", p.seen, p.c.Status().Stats)
	}
	for range 4 {
		if err := p.c.Probe(p.now); err != nil {
			t.Fatal(err)
		}
	}
	p.sent(false)
	if err := p.c.Probe(p.now); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("with a full window: %v", err)
	}
	p.seen = nil
	p.says("<SEQ=201><ACK=101><EA=103,104>")
	p.says("<SEQ=201><ACK=105>")
	if n := p.c.Status().Stats.Answered; n != 5 {
		t.Errorf("%d are answered", n)
	}
	if err := p.c.Close(p.now); err != nil {
		t.Fatal(err)
	}
	if err := p.c.Probe(p.now); !errors.Is(err, ErrNotOpen) {
		t.Error(err)
	}
}

// All returns every connection, in an order that does not change.
func TestAll(t *testing.T) {
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for port := uint16(9); port > 0; port-- {
		for _, version := range []uint8{2, 1} {
			if _, err := m.Open(0, OpenConfig{Path: Path{here, there}, Version: version, Port: port + 100, Remote: 7, Params: params(nil)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := m.All()
	if len(all) != 18 || m.Conns() != 18 {
		t.Fatalf("there are %d", len(all))
	}
	for i, c := range all {
		if want := (Name{Path{here, there}, uint8(1 + i/9), uint16(101 + i%9), 7}); c.Name() != want {
			t.Errorf("%d is %v, and should be %v", i, c.Name(), want)
		}
	}
}
