package machine

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

// T1, A32: each segment has a timer of its own, and alone is sent again when that expires. The timeout
// doubles while nothing is acknowledged, and is as at first as soon as something is.
func TestRetransmission(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.unmeasured()
	p.send(1)
	p.expect("<SEQ=101><ACK=200><Data>")
	p.wait(40 * time.Millisecond)
	p.send(1)
	p.expect("<SEQ=102><ACK=200><Data>")
	rto := p.m.cfg.RTOInitial
	p.wait(rto - 40*time.Millisecond - 1)
	p.expect("")
	p.wait(1)
	p.expect("<SEQ=101><ACK=200><Data>")
	p.wait(40*time.Millisecond - 1)
	p.expect("")
	p.wait(1)
	p.expect("<SEQ=102><ACK=200><Data>")
	p.wait(2*rto - 40*time.Millisecond - 1)
	p.expect("")
	p.wait(1)
	p.expect("<SEQ=101><ACK=200><Data>")
	p.wait(40 * time.Millisecond)
	p.expect("<SEQ=102><ACK=200><Data>")
	p.says("<SEQ=201><ACK=101>") // progress
	p.expect("")
	p.wait(rto - 1)
	p.expect("")
	p.wait(1)
	p.expect("<SEQ=102><ACK=200><Data>")
	p.says("<SEQ=201><ACK=102>")
	p.wait(time.Hour)
	p.expect("")
}

// RFC 6298: the timeout follows the samples; A32: what was sent twice gives none (Karn's rule).
func TestRoundTripTime(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	ack := uint32(100)
	sample := func(d time.Duration) Status {
		t.Helper()
		p.send(1)
		p.sent(false)
		p.wait(d)
		ack++
		p.says("<SEQ=201><ACK=" + strconv.Itoa(int(ack)) + ">")
		return p.c.Status()
	}
	const ms = time.Millisecond
	p.unmeasured()
	if s := sample(80 * ms); s.RTT != 80*ms || s.Deviation != 40*ms || s.Timeout != 240*ms {
		t.Errorf("after the first sample: %v, %v, %v", s.RTT, s.Deviation, s.Timeout)
	}
	// deviation: 40+(40-40)/4 = 40; smoothed: 80+40/8 = 85
	if s := sample(120 * ms); s.RTT != 85*ms || s.Deviation != 40*ms || s.Timeout != 245*ms {
		t.Errorf("after the second: %v, %v, %v", s.RTT, s.Deviation, s.Timeout)
	}
	before := p.c.Status()
	p.send(1)
	p.sent(false)
	p.wait(245 * ms)
	p.expect("<SEQ=103><ACK=200><Data>")
	p.wait(10 * ms)
	ack++
	p.says("<SEQ=201><ACK=103>")
	if s := p.c.Status(); s.RTT != before.RTT || s.Deviation != before.Deviation {
		t.Errorf("after a retransmission: %v, %v", s.RTT, s.Deviation)
	}
	for range 100 {
		sample(50 * ms)
	}
	if s := p.c.Status(); s.Timeout < 150*ms || s.Timeout > 160*ms {
		t.Errorf("on a path without variation the timeout is %v", s.Timeout)
	}
	for range 40 {
		sample(50 * time.Minute)
		if p.c.State() != Open {
			break
		}
	}
	if got := p.c.rtt.timeout; got > p.m.cfg.RTOMax {
		t.Errorf("the timeout is %v", got)
	}
}

// The time of the SYN is the first sample, if it was sent once.
func TestRoundTripTimeOfSYN(t *testing.T) {
	for _, again := range []bool{false, true} {
		p := newPeer(t, nil)
		p.in("SYN-SENT", params(nil))
		if again {
			p.wait(p.m.cfg.RTOInitial)
			p.sent(false)
		}
		p.wait(30 * time.Millisecond)
		p.says("<SEQ=200><ACK=100><SYN,ACK>")
		want := 30 * time.Millisecond
		if again {
			want = 0
		}
		if s := p.c.Status(); s.RTT != want {
			t.Errorf("sent again %v: %v", again, s.RTT)
		}
	}
}

// A32, seed 2: a gap in the EACKs shows a loss before the timer does, when a segment is named that was
// sent three places later.
func TestGapsShowLosses(t *testing.T) {
	p := newPeer(t, nil)
	p.in("LISTEN", params(nil))
	p.says("<SEQ=200><MAX=16><SYN>")
	p.says("<SEQ=201><ACK=100>")
	p.send(8)
	p.sent(false)
	p.says("<SEQ=201><ACK=100><EA=103>")
	p.expect("")
	p.says("<SEQ=201><ACK=100><EA=103-104>")
	p.expect("<SEQ=101><ACK=200><Data>")
	p.says("<SEQ=201><ACK=100><EA=103-105>")
	p.expect("<SEQ=102><ACK=200><Data>")
	// What was sent again is judged by its new place: 106 to 108 were sent before it.
	p.says("<SEQ=201><ACK=100><EA=103-108>")
	p.expect("")
	p.send(3)
	p.sent(false)
	p.says("<SEQ=201><ACK=101><EA=103-111>") // sent after 102 was sent again
	p.expect("<SEQ=102><ACK=200><Data>")
	if s := p.c.Status(); s.Stats.Gaps != 3 || s.Stats.Timeouts != 0 {
		t.Errorf("%+v", s.Stats)
	}
}

// With few segments in flight and none to follow, fewer show a loss (RFC 5827).
func TestGapsWithFewSegments(t *testing.T) {
	for n, named := range map[int]string{2: "102", 3: "102-103"} {
		p := newPeer(t, nil)
		p.in("OPEN", params(nil))
		p.send(n)
		p.sent(false)
		if n == 3 {
			p.says("<SEQ=201><ACK=100><EA=102>")
			p.expect("")
		}
		p.says("<SEQ=201><ACK=100><EA=" + named + ">")
		p.expect("<SEQ=101><ACK=200><Data>")
	}
}

// A33: with no sign of the peer, a segment is sent so often, and then the connection fails, with an RST
// and an error for the user.
func TestGivesUp(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Tries, c.RTOMax = 5, 4*time.Second })
	p.in("OPEN", params(nil))
	p.unmeasured()
	p.send(1)
	n := 0
	for range 200 {
		for _, s := range p.sent(false) {
			if s != "<SEQ=101><ACK=200><Data>" {
				if s != "<SEQ=102><RST>" || n != 5 || p.c.State() != Closed || !errors.Is(p.c.Err(), ErrUnreachable) || p.c.Status().Unacknowledged != 1 {
					t.Errorf("after %d tries: %s, %v, %v", n, s, p.c.State(), p.c.Err())
				}
				if want := (1 + 2 + 4 + 4 + 4) * time.Second; p.now != want {
					t.Errorf("after %v; want %v", p.now, want)
				}
				return
			}
			n++
		}
		p.wait(100 * time.Millisecond)
	}
	t.Errorf("%d tries, in %v", n, p.c.State())
}

// A peer that answers and accepts nothing is waited for longer: it may be slow to read.
func TestStalls(t *testing.T) {
	p := newPeer(t, func(c *Config) { c.Tries, c.RTOMax, c.Stall = 3, time.Second, time.Minute })
	p.in("OPEN", params(nil))
	p.send(1)
	for p.c.State() == Open {
		for range p.sent(false) {
			p.says("<SEQ=201><ACK=100>")
		}
		p.wait(time.Second / 2)
		if p.now > time.Hour {
			t.Fatal("there is no end")
		}
	}
	if p.now < time.Minute || p.now > time.Minute+2*time.Second || !errors.Is(p.c.Err(), ErrStalled) {
		t.Errorf("after %v: %v", p.now, p.c.Err())
	}
}
