package congestion

import (
	"testing"
	"time"
)

// A driver is a sender that always has something to send, and whose segments all arrive.
type driver struct {
	t      *testing.T
	c      Controller
	now    time.Duration
	rtt    time.Duration
	every  int // segments that an acknowledgement names
	flight int
}

func drive(t *testing.T, c Controller) *driver {
	t.Helper()
	return &driver{t: t, c: c, rtt: 100 * time.Millisecond, every: 1}
}

// fill sends what the window allows.
func (d *driver) fill() {
	for d.flight < d.c.Window() {
		d.flight++
		d.c.Sent(d.now, d.flight)
	}
}

// ack acknowledges n segments, an acknowledgement for each d.every, and sends what that allows.
func (d *driver) ack(n int) {
	d.t.Helper()
	for n > 0 {
		k := min(n, d.every)
		if d.flight < k {
			d.t.Fatalf("%d segments of %d in flight are to be acknowledged", k, d.flight)
		}
		n -= k
		d.flight -= k
		d.c.Acked(d.now, Ack{Segments: k, RTT: d.rtt, InFlight: d.flight})
		d.fill()
	}
}

// round acknowledges what is in flight, spread over a round trip, as over a link that is full.
func (d *driver) round() {
	d.t.Helper()
	d.fill()
	n, start := d.flight, d.now
	for i := range n {
		d.now = start + d.rtt*time.Duration(i+1)/time.Duration(n)
		if i%d.every == d.every-1 || i == n-1 {
			d.ack(min(d.every, i%d.every+1))
		}
	}
}

// want holds the window against what it should be.
func (d *driver) want(window int, why string) {
	d.t.Helper()
	if got := d.c.Window(); got != window {
		d.t.Errorf("%s: the window is %d, not %d", why, got, window)
	}
}

// at brings a controller into congestion avoidance at a window.
func at(t *testing.T, name string, window int) *driver {
	t.Helper()
	cfg := Config{InitialWindow: window, Threshold: window}
	var d *driver
	switch name {
	case NameReno:
		d = drive(t, NewReno(cfg))
	case NameCUBIC:
		d = drive(t, NewCUBIC(cfg))
	default:
		d = drive(t, None())
	}
	for d.flight < window {
		d.flight++
		d.c.Sent(d.now, d.flight)
	}
	return d
}
