package congestion

import "testing"

var both = []string{NameReno, NameCUBIC}

// threshold returns the threshold of Reno or CUBIC.
func threshold(c Controller) int { return c.(interface{ Threshold() int }).Threshold() }

// A window that the path has enforced is taken at once, with the threshold, and losses of the same
// window of data lower nothing more.
func TestReportIsTakenAtOnce(t *testing.T) {
	for _, name := range both {
		t.Run(name, func(t *testing.T) {
			d := at(t, name, 20)
			d.c.Reported(d.now, Report{Window: 12, Drops: 8, From: "r1"})
			d.want(12, "reported")
			if got := threshold(d.c); got != 12 {
				t.Errorf("the threshold is %d", got)
			}
			for range 19 {
				d.ack(1)
				d.c.Lost(d.now, d.flight)
				d.want(12, "a loss that the node has caused")
			}
			d.ack(1)
			d.c.Lost(d.now, d.flight)
			if w := d.c.Window(); w >= 12 {
				t.Errorf("a loss in the next round leaves the window at %d", w)
			}
		})
	}
}

// The window does not grow in the round of a report, and does after it.
func TestGrowthAfterAReport(t *testing.T) {
	for _, name := range both {
		d := at(t, name, 20)
		d.c.Reported(d.now, Report{Window: 10})
		d.ack(20)
		d.want(10, name+" in the round")
		for range 10 {
			d.round()
		}
		if d.c.Window() <= 10 {
			t.Errorf("%s: the window is %d ten rounds later", name, d.c.Window())
		}
	}
}

// A report never raises the window, nor spares it a loss that comes then.
func TestReportNeverRaisesTheWindow(t *testing.T) {
	for _, name := range both {
		for _, w := range []int{20, 21, 1000} {
			d := at(t, name, 20)
			d.c.Reported(d.now, Report{Window: w, Drops: 1})
			d.want(20, name+" reported more")
			d.c.Lost(d.now, d.flight)
			if d.c.Window() >= 20 {
				t.Errorf("%s: after a report of %d and a loss the window is %d", name, w, d.c.Window())
			}
		}
	}
}

// A second report in the round is taken if it is lower, and begins the round anew.
func TestSecondReport(t *testing.T) {
	for _, name := range both {
		d := at(t, name, 20)
		d.c.Reported(d.now, Report{Window: 10})
		d.ack(15) // of 20: 5 are in flight, and 5 more are sent
		d.c.Reported(d.now, Report{Window: 6})
		d.want(6, name+" a lower one")
		d.c.Reported(d.now, Report{Window: 9})
		d.want(6, name+" a higher one")
		d.ack(6)
		d.c.Lost(d.now, d.flight)
		d.want(6, name+" a loss before what was in flight is acknowledged")
		d.ack(4)
		d.c.Lost(d.now, d.flight)
		if w := d.c.Window(); w >= 6 {
			t.Errorf("%s: a loss after it leaves the window at %d", name, w)
		}
	}
}

// A report without a window is a loss or mark that the node has noticed for the sender.
func TestReportWithoutWindow(t *testing.T) {
	for _, c := range []struct {
		name string
		want int
	}{{NameReno, 10}, {NameCUBIC, 14}} {
		for _, r := range []Report{{Drops: 1}, {Marks: 1}, {Window: -3, Marks: 2}} {
			d := at(t, c.name, 20)
			d.c.Reported(d.now, r)
			d.want(c.want, c.name+" reported")
			d.c.Reported(d.now, r)
			d.c.Lost(d.now, d.flight)
			d.want(c.want, c.name+" reported again, and lost")
		}
		d := at(t, c.name, 20)
		d.c.Reported(d.now, Report{From: "r1"})
		d.want(20, c.name+": a report of nothing")
	}
}

// What is in flight then is what the last acknowledgement has left.
func TestReportWithoutWindowAfterAcknowledgements(t *testing.T) {
	d := at(t, NameReno, 20)
	d.c.Acked(d.now, Ack{Segments: 10, InFlight: 10})
	d.c.Reported(d.now, Report{Marks: 1})
	d.want(5, "half of 10")
}

// A report in the slow start that follows a timeout begins a new stage of congestion avoidance.
func TestReportAfterATimeout(t *testing.T) {
	d := at(t, NameCUBIC, 20)
	c := d.c.(*CUBIC)
	c.TimedOut(d.now, 100)
	c.threshold = 8
	d.flight = 0
	d.fill()
	for !c.avoiding {
		d.ack(1)
	}
	c.Reported(d.now, Report{Window: 5})
	if d.want(5, "reported"); c.avoiding || c.cause != byTimeout {
		t.Errorf("avoiding %v, in a round by %d", c.avoiding, c.cause)
	}
}

// After a loss was noticed, a report of the same round only lowers the window.
func TestReportAfterALoss(t *testing.T) {
	for _, name := range both {
		d := at(t, name, 20)
		d.c.Lost(d.now, 20)
		was := d.c.Window()
		d.c.Reported(d.now, Report{Drops: 1})
		d.c.Reported(d.now, Report{Window: was})
		d.want(was, name+" nothing new")
		d.c.Reported(d.now, Report{Window: 4})
		d.want(4, name+" a lower one")
		if threshold(d.c) != 4 {
			t.Errorf("%s: the threshold is %d", name, threshold(d.c))
		}
	}
}

// A timeout in the round of a report begins slow start, up to the window that was reported.
func TestTimeoutAfterAReport(t *testing.T) {
	for _, name := range both {
		d := at(t, name, 20)
		d.c.Reported(d.now, Report{Window: 8})
		d.c.TimedOut(d.now, 20)
		d.want(1, name+" timed out")
		if threshold(d.c) != 8 {
			t.Errorf("%s: the threshold is %d", name, threshold(d.c))
		}
		d.c.TimedOut(d.now, 20)
		d.flight = 0
		d.fill()
		for range 7 {
			d.ack(1)
		}
		d.want(8, name+" slow start")
	}
}

// A report in slow start ends it.
func TestReportInSlowStart(t *testing.T) {
	d := drive(t, NewReno(Config{InitialWindow: 16}))
	d.fill()
	d.c.Reported(d.now, Report{Window: 8})
	d.ack(16)
	d.ack(8)
	d.want(9, "congestion avoidance")
}

func TestReportOfTheLeastWindow(t *testing.T) {
	for _, name := range both {
		d := at(t, name, 20)
		d.c.Reported(d.now, Report{Window: 1})
		d.want(1, name)
		if threshold(d.c) != 2 {
			t.Errorf("%s: the threshold is %d", name, threshold(d.c))
		}
	}
}

// CUBIC goes back to where it was when the node reported, as after a loss.
func TestCUBICGoesBackAfterAReport(t *testing.T) {
	d := at(t, NameCUBIC, 100)
	c := d.c.(*CUBIC)
	c.Reported(d.now, Report{Window: 50})
	if c.peak != 100 || c.prior != 100 {
		t.Errorf("W_max is %v, cwnd_prior %v", c.peak, c.prior)
	}
	d.ack(100)
	d.round()
	// K = cbrt(50/0.4) = 5 s
	if got := c.k.Seconds(); got < 4.99 || got > 5.01 {
		t.Errorf("K is %v s", got)
	}
}
