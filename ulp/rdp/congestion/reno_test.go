package congestion

import (
	"testing"
	"time"
)

// RFC 5681 §3.1: below the threshold the window grows by one segment for an acknowledgement, and
// by two with RFC 3465.
func TestSlowStart(t *testing.T) {
	for _, c := range []struct {
		name          string
		perAck, every int
		want          []int // after each round trip
	}{
		{"RFC 5681, each segment acknowledged", 1, 1, []int{4, 8, 16, 32}},
		{"RFC 5681, each second one", 1, 2, []int{3, 5, 8, 12}},
		{"RFC 3465, each segment", 2, 1, []int{4, 8, 16, 32}},
		{"RFC 3465, each second one", 2, 2, []int{4, 8, 16, 32}},
		{"RFC 3465, each fourth one", 2, 4, []int{4, 6, 10, 16}},
	} {
		for _, name := range []string{NameReno, NameCUBIC} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				cfg := Config{InitialWindow: 2, PerAck: c.perAck}
				var ctl Controller = NewReno(cfg)
				if name == NameCUBIC {
					ctl = NewCUBIC(cfg)
				}
				d := drive(t, ctl)
				d.every = c.every
				for _, want := range c.want {
					d.round()
					d.want(want, "a round trip on")
				}
			})
		}
	}
}

// Slow start ends at the threshold, whatever an acknowledgement names.
func TestSlowStartEndsAtTheThreshold(t *testing.T) {
	d := drive(t, NewReno(Config{InitialWindow: 4, Threshold: 7}))
	d.every = 2
	d.fill()
	for _, want := range []int{6, 7, 7, 7} {
		d.ack(2)
		d.want(want, "two segments on")
	}
}

// RFC 5681 §3.1: in congestion avoidance the window grows by one segment when a window of data is
// acknowledged, however many acknowledgements that takes, and by no more.
func TestCongestionAvoidance(t *testing.T) {
	for _, every := range []int{1, 2, 5, 20} {
		d := at(t, NameReno, 20)
		d.every = every
		for w := 20; w < 40; w++ {
			d.ack(w - 1)
			d.want(w, "all but one acknowledged")
			d.ack(1)
			d.want(w+1, "a window acknowledged")
		}
	}
}

func TestOneAcknowledgementOfManyWindows(t *testing.T) {
	r := NewReno(Config{InitialWindow: 4, Threshold: 4})
	r.Acked(0, Ack{Segments: 12})
	if r.Window() != 5 {
		t.Errorf("the window is %d", r.Window())
	}
	r.Acked(0, Ack{Segments: 4, InFlight: 1})
	if r.Window() != 5 {
		t.Errorf("the rest of that raises the window to %d", r.Window())
	}
}

// RFC 5681 §3.2: the threshold is half of what is in flight, at least 2 segments, and the
// window falls to it.
func TestLossHalvesWhatIsInFlight(t *testing.T) {
	for _, c := range []struct{ flight, want int }{
		{0, 2}, {1, 2}, {2, 2}, {3, 2}, {4, 2}, {5, 2}, {6, 3}, {7, 3}, {19, 9}, {20, 10},
	} {
		d := at(t, NameReno, 20)
		d.c.Lost(d.now, c.flight)
		d.want(c.want, "after a loss")
		if got := d.c.(*Reno).Threshold(); got != c.want {
			t.Errorf("%d in flight: the threshold is %d, not %d", c.flight, got, c.want)
		}
	}
}

// RFC 5681 §4.3: the losses of one window of data are one.
func TestLossesOfAWindowCountOnce(t *testing.T) {
	d := at(t, NameReno, 20)
	d.c.Lost(d.now, d.flight)
	for range 9 {
		d.ack(1)
		d.c.Lost(d.now, d.flight)
		d.want(10, "another loss of the window")
	}
	d.ack(10)
	d.c.Lost(d.now, d.flight)
	d.want(10, "the last loss of the window")
	d.ack(1) // the twentieth
	d.c.Lost(d.now, d.flight)
	d.want(5, "a loss in the next window")
}

// In the recovery the window stays what it is (RFC 5681 §3.2), then it grows again.
func TestRecoveryDoesNotGrow(t *testing.T) {
	d := at(t, NameReno, 20)
	d.c.Lost(d.now, d.flight)
	d.ack(20)
	d.want(10, "at the end of recovery")
	d.ack(9)
	d.want(10, "a window but for one")
	d.ack(1)
	d.want(11, "a window")
}

// What was acknowledged before a loss, a timeout or a report does not count for the growth after it.
func TestCountBeginsAnew(t *testing.T) {
	for name, event := range map[string]func(r *Reno){
		"loss":    func(r *Reno) { r.Lost(0, 20) },
		"timeout": func(r *Reno) { r.TimedOut(0, 20) },
		"report":  func(r *Reno) { r.Reported(0, Report{Window: 10}) },
		"marks":   func(r *Reno) { r.Reported(0, Report{Marks: 1}) },
	} {
		d := at(t, NameReno, 20)
		d.ack(9)
		r := d.c.(*Reno)
		event(r)
		for r.cause == byLoss || r.cause == byReport || r.Window() < 10 {
			d.ack(min(1, d.flight))
			d.fill()
		}
		was := r.Window()
		d.ack(was - 1)
		d.want(was, name+": all but one acknowledged")
		d.ack(1)
		d.want(was+1, name+": a window acknowledged")
	}
}

// An acknowledgement of a full window counts, also if the sender did not tell that it was full.
func TestFullWindowByTheAcknowledgement(t *testing.T) {
	r := NewReno(Config{InitialWindow: 4, Threshold: 4})
	r.Acked(0, Ack{Segments: 3, InFlight: 0})
	r.Acked(0, Ack{Segments: 4, InFlight: 0})
	if r.Window() != 5 {
		t.Errorf("the window is %d", r.Window())
	}
}

// A loss never raises the window, not even if more is in flight than it allows.
func TestLossNeverRaisesTheWindow(t *testing.T) {
	d := at(t, NameReno, 4)
	d.c.Lost(d.now, 100)
	d.want(4, "a loss among 100")
	if got := d.c.(*Reno).Threshold(); got != 50 {
		t.Errorf("the threshold is %d", got)
	}
}

// RFC 5681 §3.1: after a timeout the window is 1, the threshold half of what was in flight. The
// threshold is "held constant" for segments that the timer has sent again.
func TestTimeout(t *testing.T) {
	d := at(t, NameReno, 20)
	d.c.TimedOut(d.now, 20)
	r := d.c.(*Reno)
	for i := range 3 {
		d.want(1, "after a timeout")
		if r.Threshold() != 10 {
			t.Errorf("timeout %d: the threshold is %d", i, r.Threshold())
		}
		d.c.TimedOut(d.now, 20-i)
	}
	// The losses of the same window are known; those that follow are not.
	d.c.Lost(d.now, 18)
	if r.Threshold() != 10 {
		t.Errorf("the threshold is %d after a loss in the round of the timeout", r.Threshold())
	}
	d.flight = 0
	d.fill()
	// RFC 3465 §2.3: no more than one segment for an acknowledgement.
	d.every = 2
	for want := 1; want < 10; {
		n := min(2, d.flight)
		d.ack(n)
		want++
		d.want(want, "slow start")
	}
	d.ack(4)
	d.want(10, "at the threshold")
	d.c.Lost(d.now, d.flight)
	d.want(5, "a loss in another round")
}

// A timeout in the recovery from a loss has its own threshold: the segment that timed out was
// not sent again by the timer.
func TestTimeoutInRecovery(t *testing.T) {
	d := at(t, NameReno, 20)
	d.c.Lost(d.now, 20)
	d.c.TimedOut(d.now, 12)
	d.want(1, "after the timeout")
	if got := d.c.(*Reno).Threshold(); got != 6 {
		t.Errorf("the threshold is %d", got)
	}
}

// RFC 5681 §4.1: a sender that was idle for longer than the timeout begins with the initial
// window.
func TestIdleness(t *testing.T) {
	for _, c := range []struct {
		rtt, idle time.Duration
		again     bool
	}{
		{10 * time.Millisecond, time.Second, false},
		{10 * time.Millisecond, time.Second + 1, true},
		{2 * time.Second, 6 * time.Second, false}, // R + 4·R/2 after one sample (RFC 6298 §2.2)
		{2 * time.Second, 6*time.Second + 1, true},
	} {
		for _, ctl := range []Controller{NewReno(Config{InitialWindow: 4}), NewCUBIC(Config{InitialWindow: 4})} {
			d := drive(t, ctl)
			d.rtt = 0
			d.now = 10 * time.Second
			d.fill()
			d.flight--
			ctl.Acked(d.now, Ack{Segments: 1, RTT: c.rtt, InFlight: d.flight})
			d.round()
			d.round()
			ctl.Sent(d.now+time.Hour, 2) // not idle: something is in flight
			ctl.Sent(d.now, d.flight)
			ctl.Acked(d.now, Ack{Segments: d.flight})
			was := ctl.Window()
			want := was
			if c.again {
				want = 4
			}
			ctl.Sent(d.now+c.idle, 1)
			if ctl.Window() != want || was < 16 {
				t.Errorf("%v, idle for %v with a round trip of %v: the window goes from %d to %d, not %d", ctl, c.idle, c.rtt, was, ctl.Window(), want)
			}
		}
	}
}

// A window that does not limit the sender does not grow.
func TestUnusedWindowDoesNotGrow(t *testing.T) {
	for _, ctl := range []Controller{
		NewReno(Config{InitialWindow: 10}), NewReno(Config{InitialWindow: 10, Threshold: 10}),
		NewCUBIC(Config{InitialWindow: 10}), NewCUBIC(Config{InitialWindow: 10, Threshold: 10}),
	} {
		now := time.Duration(0)
		for range 1000 {
			now += time.Millisecond
			ctl.Sent(now, 4)
			ctl.Acked(now, Ack{Segments: 1, RTT: time.Millisecond, InFlight: 3})
		}
		if ctl.Window() != 10 {
			t.Errorf("%v: the window is %d", ctl, ctl.Window())
		}
	}
}

// Acknowledgements that come in a burst, before the sender sends again, count all: the window was
// full when the segments left.
func TestBurstOfAcknowledgements(t *testing.T) {
	r := NewReno(Config{InitialWindow: 8, PerAck: 1})
	for i := range 8 {
		r.Sent(0, i+1)
	}
	for i := range 8 {
		r.Acked(1, Ack{Segments: 1, InFlight: 7 - i})
	}
	if r.Window() != 16 {
		t.Errorf("the window is %d", r.Window())
	}
	r.Acked(1, Ack{Segments: 1})
	if r.Window() != 16 {
		t.Errorf("the window is %d after a segment more", r.Window())
	}
}
