package machine

import (
	"errors"
	"testing"
	"time"
)

// RFC 908 §5.1: connection establishment.
func TestTrace51Establishment(t *testing.T) {
	tr := newTrace(t, 100, 200, nil, params(nil))
	tr.opens(params(nil))
	tr.run(`
		A SYN-SENT
		A <SEQ=100><SYN>
		B <SEQ=200><ACK=100><SYN,ACK>
		B SYN-RCVD
		A OPEN
		A <SEQ=101><ACK=200>
		B OPEN
		A <SEQ=101><ACK=200><Data>
		B <SEQ=201><ACK=101>`)
	tr.silent()
}

// RFC 908 §5.2: simultaneous connection establishment.
func TestTrace52SimultaneousEstablishment(t *testing.T) {
	tr := newTrace(t, 100, 200, nil, params(nil))
	a, b := tr.hosts["A"], tr.hosts["B"]
	for i, h := range []*host{a, b} {
		c, err := h.Open(0, OpenConfig{Path: h.path, Port: 3000, Remote: 3000, Params: params(nil)})
		if err != nil {
			t.Fatal(i, err)
		}
		h.c = c
	}
	tr.run(`
		A -1- <SEQ=100><SYN>
		A SYN-SENT
		B -2- <SEQ=200><SYN>
		B SYN-SENT
		-1-
		-2-
		A SYN-RCVD
		B SYN-RCVD
		A -3- <SEQ=100><ACK=200><SYN,ACK>
		B -4- <SEQ=200><ACK=100><SYN,ACK>
		-3-
		-4-
		A OPEN
		B OPEN`)
	// Each acknowledges the other's SYN,ACK; then nobody says anything more.
	tr.run(`
		A <SEQ=101><ACK=200>
		B <SEQ=201><ACK=100>`)
	tr.silent()
}

// begun has both hosts in OPEN, with A's first data to be 100 and B's 201, as the examples of
// RFC 908 §5.3 to §5.6 begin.
func begun(t *testing.T, change func(*Config), pa Params) *trace {
	t.Helper()
	tr := newTrace(t, 99, 200, change, pa)
	tr.opens(pa)
	tr.run(`
		A <SEQ=99><SYN>
		B <SEQ=200><ACK=99><SYN,ACK>
		A <SEQ=100><ACK=200>`)
	return tr
}

// RFC 908 §5.3: lost segments.
func TestTrace53LostSegments(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		tr := begun(t, nil, params(func(p *Params) { p.Sequenced = sequenced }))
		tr.run(`
			A <SEQ=100><ACK=200><Data>
			B <SEQ=201><ACK=100>
			A (lost) <SEQ=101><ACK=200><Data>
			A <SEQ=102><ACK=200><Data>
			B -6- <SEQ=201><ACK=100><EA=102>
			A <SEQ=103><ACK=200><Data>
			B -8- <SEQ=201><ACK=100><EA=102-103>
			-6-
			-8-
			A <SEQ=101><ACK=200><Data>
			B <SEQ=201><ACK=103>
			A <SEQ=104><ACK=200><Data>
			B <SEQ=201><ACK=104>`)
		tr.silent()
	}
}

// RFC 908 §5.4: segments received out of order.
func TestTrace54OutOfOrder(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		tr := begun(t, nil, params(func(p *Params) { p.Sequenced = sequenced }))
		tr.run(`
			A <SEQ=100><ACK=200><Data>
			B <SEQ=201><ACK=100>
			A -3- <SEQ=101><ACK=200><Data>
			A <SEQ=102><ACK=200><Data>
			B -6- <SEQ=201><ACK=100><EA=102>
			A -7- <SEQ=103><ACK=200><Data>
			-7-
			-3-
			B <SEQ=201><ACK=103>
			-6-
			A <SEQ=104><ACK=200><Data>
			B <SEQ=201><ACK=104>`)
		tr.silent()
	}
}

// RFC 908 §5.5: communication over a long delay path, with five unacknowledged segments.
func TestTrace55LongDelay(t *testing.T) {
	tr := begun(t, nil, params(func(p *Params) { p.Window = 5 }))
	tr.run(`
		A -1- <SEQ=100><ACK=200><Data>
		A -2- <SEQ=101><ACK=200><Data>
		A -3- <SEQ=102><ACK=200><Data>
		-1-
		B -4- <SEQ=201><ACK=100>
		A -5- <SEQ=103><ACK=200><Data>
		-2-
		B -6- <SEQ=201><ACK=101>
		A -7- <SEQ=104><ACK=200><Data>
		-3-
		B -8- <SEQ=201><ACK=102>`)
	a := tr.hosts["A"].c
	if err := a.Send(0, []byte("x")); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("a sixth segment: %v", err)
	}
	tr.run(`
		-4-
		A -9- <SEQ=105><ACK=200><Data>
		-5-
		B -10- <SEQ=201><ACK=103>
		-6-
		A -11- <SEQ=106><ACK=200><Data>
		-7-
		B -12- <SEQ=201><ACK=104>
		-8-
		-9-
		B -13- <SEQ=201><ACK=105>
		-10-
		-11-
		B -14- <SEQ=201><ACK=106>
		-12-
		-13-
		-14-`)
	tr.silent()
	if s := a.Status(); s.Unacknowledged != 0 || s.Stats.Resent != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// RFC 908 §5.6: communication over a long delay path with lost segments. Its sender takes the first
// gap for a loss.
func TestTrace56LongDelayWithLoss(t *testing.T) {
	tr := begun(t, func(c *Config) { c.Reordering = 1 }, params(func(p *Params) { p.Window = 5 }))
	tr.run(`
		A -1- <SEQ=100><ACK=200><Data>
		A -2- <SEQ=101><ACK=200><Data>
		A -3- <SEQ=102><ACK=200><Data>
		-1-
		B -4- <SEQ=201><ACK=100>
		A (lost) <SEQ=103><ACK=200><Data>
		-2-
		B -5- <SEQ=201><ACK=101>
		A -6- <SEQ=104><ACK=200><Data>
		-3-
		B -7- <SEQ=201><ACK=102>
		-4-
		A -8- <SEQ=105><ACK=200><Data>
		-5-
		A -10- <SEQ=106><ACK=200><Data>
		-6-
		B -11- <SEQ=201><ACK=102><EA=104>
		-7-
		-8-
		B -12- <SEQ=201><ACK=102><EA=104-105>
		-10-
		B -13- <SEQ=201><ACK=102><EA=104-106>
		-11-
		A -14- <SEQ=103><ACK=200><Data>
		-12-
		-13-
		-14-
		B -15- <SEQ=201><ACK=106>
		-15-`)
	tr.silent()
	if s := tr.hosts["A"].c.Status(); s.Unacknowledged != 0 || s.Stats.Resent != 1 {
		t.Errorf("at the end: %+v", s)
	}
}

// RFC 908 §5.7: a host finds a half-open connection when it comes up again. The open succeeds then,
// when CLOSE-WAIT is over at the other side (I15).
func TestTrace57CrashRecovery(t *testing.T) {
	tr := newTrace(t, 100, 199, nil, params(nil))
	tr.opens(params(nil))
	tr.run(`
		A <SEQ=100><SYN>
		B <SEQ=199><ACK=100><SYN,ACK>
		A <SEQ=101><ACK=199>
		A OPEN
		B OPEN`)
	tr.boot("A", pathTo(1), 400, nil) // (crash!)
	tr.opens(params(nil))
	tr.run(`
		A SYN-SENT
		A <SEQ=400><SYN>
		B <SEQ=200><ACK=100><ACK>
		A SYN-SENT
		A <SEQ=101><RST>
		B CLOSE-WAIT
		A SYN-SENT
		A <SEQ=400><SYN>`)
	tr.silent()
	b := tr.hosts["B"]
	if err := b.c.Err(); !errors.Is(err, ErrReset) {
		t.Errorf("B: %v", err)
	}
	for range 100 { // until CLOSE-WAIT is over, and the SYN is sent again
		tr.now += time.Second
		tr.exchange()
	}
	tr.run(`
		A OPEN
		B OPEN`)
}

// RFC 908 §5.8: a host finds a half-open connection as it sends data.
func TestTrace58ActiveSide(t *testing.T) {
	tr := newTrace(t, 100, 199, nil, params(nil))
	tr.opens(params(nil))
	tr.run(`
		A <SEQ=100><SYN>
		B <SEQ=199><ACK=100><SYN,ACK>
		A <SEQ=101><ACK=199>
		B OPEN`)
	tr.boot("A", pathTo(1), 400, nil) // (crash!)
	tr.run(`
		A CLOSED
		B <SEQ=200><ACK=100><Data>
		A <SEQ=101><RST>
		B CLOSE-WAIT
		A CLOSED`)
	tr.silent()
	if err := tr.hosts["B"].c.Err(); !errors.Is(err, ErrReset) {
		t.Errorf("B: %v", err)
	}
}
