package congestion

import (
	"math"
	"testing"
	"time"
)

// A book is RFC 9438 §4.1 to §4.7, written down once more, in seconds.
type book struct {
	cwnd, ssthresh, wMax, cwndPrior float64
	wEst, k, epochStart, cwndEpoch  float64
	inAvoidance                     bool
	beta, c, alphaCubic             float64
}

func newBook(cwnd float64) *book {
	return &book{cwnd: cwnd, ssthresh: cwnd, beta: 0.7, c: 0.4, alphaCubic: 3 * 0.3 / 1.7}
}

func (b *book) loss(flight float64) {
	if b.cwnd < b.wMax {
		b.wMax = b.cwnd * (1 + b.beta) / 2
	} else {
		b.wMax = b.cwnd
	}
	b.ssthresh = flight * b.beta
	b.cwndPrior = b.cwnd
	b.cwnd = math.Max(b.ssthresh, 2)
	b.ssthresh = math.Max(b.ssthresh, 2)
	b.inAvoidance = false
}

func (b *book) ack(now, rtt float64) {
	if !b.inAvoidance {
		b.inAvoidance, b.epochStart, b.cwndEpoch, b.wEst = true, now, b.cwnd, b.cwnd
		if b.wMax == 0 {
			b.wMax, b.cwndPrior = b.cwnd, b.cwnd
		}
		b.k = math.Cbrt((b.wMax - b.cwndEpoch) / b.c)
	}
	wCubic := func(t float64) float64 {
		d := t - b.k
		return b.c*d*d*d + b.wMax
	}
	t := now - b.epochStart
	alpha := b.alphaCubic
	if b.wEst >= b.cwndPrior {
		alpha = 1
	}
	b.wEst += alpha * 1 / b.cwnd
	if wCubic(t) < b.wEst {
		b.cwnd = math.Max(b.cwnd, b.wEst)
		return
	}
	target := wCubic(t + rtt)
	switch {
	case target < b.cwnd:
		target = b.cwnd
	case target > 1.5*b.cwnd:
		target = 1.5 * b.cwnd
	}
	b.cwnd += (target - b.cwnd) / b.cwnd
}

// CUBIC does acknowledgement by acknowledgement what the RFC's formulas say: in the Reno-friendly
// region (short round trips), the concave and the convex one, with and without fast convergence.
func TestCUBICIsTheRFC(t *testing.T) {
	for _, c := range []struct {
		rtt    time.Duration
		window int
		rounds []int // round trips until a loss
	}{
		{time.Millisecond, 20, []int{40, 300, 5, 5}},
		{100 * time.Millisecond, 100, []int{3, 100, 10, 10, 120}},
		{time.Second, 400, []int{1, 30, 3, 2, 30}},
		{10 * time.Millisecond, 3, []int{2, 2, 2, 2}},
	} {
		d := at(t, NameCUBIC, c.window)
		cubic := d.c.(*CUBIC)
		cubic.rtt.sample(c.rtt)
		b := newBook(float64(c.window))
		for i, rounds := range c.rounds {
			for range rounds {
				n, start := d.flight, d.now
				for k := range n {
					d.now = start + c.rtt*time.Duration(k+1)/time.Duration(n)
					recovering := cubic.cause == byLoss
					d.flight--
					cubic.Acked(d.now, Ack{Segments: 1, RTT: c.rtt, InFlight: d.flight})
					if !recovering {
						b.ack(d.now.Seconds(), c.rtt.Seconds())
					}
					if math.Abs(cubic.size-b.cwnd) > 1e-6*b.cwnd {
						t.Fatalf("round trip %v, after %d losses, %v: the window is %v, the RFC's %v", c.rtt, i, d.now, cubic.size, b.cwnd)
					}
					d.fill()
				}
			}
			cubic.Lost(d.now, d.flight)
			b.loss(float64(d.flight))
			if math.Abs(cubic.peak-b.wMax) > 1e-6*b.wMax || math.Abs(cubic.threshold-b.ssthresh) > 1e-9*b.ssthresh {
				t.Fatalf("loss %d: W_max %v and threshold %v, the RFC's %v and %v", i, cubic.peak, cubic.threshold, b.wMax, b.ssthresh)
			}
		}
	}
}

// RFC 9438 §4.2: K seconds after a loss the window is back at W_max: concave before, where it
// grows ever more slowly, convex after.
func TestCUBICCurve(t *testing.T) {
	d := at(t, NameCUBIC, 1000)
	d.c.Lost(d.now, 1000)
	d.want(700, "after a loss")
	d.round() // recovery
	c := d.c.(*CUBIC)
	// K = cbrt(1000·0.3/0.4) = 9.09 s.
	start := d.now
	var sizes []float64
	for d.now-start < 18*time.Second {
		d.round()
		sizes = append(sizes, c.size)
	}
	if k := c.k.Seconds(); math.Abs(k-9.086) > 0.001 {
		t.Errorf("K is %v s", k)
	}
	if half := sizes[len(sizes)/2]; math.Abs(half-1000) > 2 {
		t.Errorf("in the middle the window is %v", half)
	}
	for i := 2; i < len(sizes)-1; i++ {
		before, after := sizes[i]-sizes[i-1], sizes[i+1]-sizes[i]
		switch at := float64(i) / float64(len(sizes)); {
		case at < 0.45 && after > before:
			t.Errorf("round %d: the window grows by %v after %v below W_max", i, after, before)
		case at > 0.55 && after < before:
			t.Errorf("round %d: the window grows by %v after %v above W_max", i, after, before)
		}
	}
}

// RFC 9438 §4.7: a flow that lost below its last peak gives up a part of it.
func TestFastConvergence(t *testing.T) {
	d := at(t, NameCUBIC, 100)
	c := d.c.(*CUBIC)
	c.Lost(d.now, 100)
	if c.peak != 100 {
		t.Errorf("the first loss at 100: W_max is %v", c.peak)
	}
	d.ack(100)
	c.Lost(d.now, 70)
	if got := c.peak; math.Abs(got-70*0.85) > 1e-9 {
		t.Errorf("a loss at 70: W_max is %v", got)
	}
	d = at(t, NameCUBIC, 100)
	c = d.c.(*CUBIC)
	c.peak = 100
	c.Lost(d.now, 100)
	if c.peak != 100 {
		t.Errorf("a loss at the last W_max of 100: W_max is %v", c.peak)
	}
}

func TestCUBICLossTakesThreeTenths(t *testing.T) {
	for _, c := range []struct {
		flight    int
		threshold float64
	}{{0, 2}, {1, 2}, {2, 2}, {3, 2.1}, {10, 7}, {20, 14}, {100, 70}} {
		d := at(t, NameCUBIC, 200)
		d.c.Lost(d.now, c.flight)
		if got := d.c.(*CUBIC).threshold; math.Abs(got-c.threshold) > 1e-9 {
			t.Errorf("%d in flight: the threshold is %v, not %v", c.flight, got, c.threshold)
		}
		d.want(int(c.threshold), "after a loss")
	}
}

// RFC 9438 §4.8: after a timeout the threshold is 0.7 of what was in flight, and congestion avoidance
// begins at its window, with K = 0.
func TestCUBICTimeout(t *testing.T) {
	d := at(t, NameCUBIC, 100)
	c := d.c.(*CUBIC)
	d.ack(10)
	if !c.avoiding {
		t.Fatal("no congestion avoidance")
	}
	c.TimedOut(d.now, 100)
	if c.avoiding || c.peak != 0 {
		t.Errorf("after a timeout W_max is %v, avoiding %v", c.peak, c.avoiding)
	}
	d.want(1, "after a timeout")
	c.TimedOut(d.now, 50)
	if c.threshold != 70 || c.prior < 100 || c.prior > 101 {
		t.Errorf("the threshold is %v, cwnd_prior %v", c.threshold, c.prior)
	}
	prior := c.prior
	d.flight = 0
	for c.size < 70 {
		d.round()
	}
	d.round()
	if c.k != 0 || c.origin > 71 || c.origin < 70 || c.peak != c.origin || c.prior != prior {
		t.Errorf("K is %v, around %v, W_max %v, cwnd_prior %v", c.k, c.origin, c.peak, c.prior)
	}
}

// RFC 9438 §5.8: time in which a sender had nothing to send, or less than the window, is
// not time in which the window grows.
func TestCUBICDoesNotCountIdleTime(t *testing.T) {
	busy, idle, slow := at(t, NameCUBIC, 100), at(t, NameCUBIC, 100), at(t, NameCUBIC, 100)
	all := []*driver{busy, idle, slow}
	for _, d := range all {
		d.c.Lost(d.now, 100)
		for range 5 {
			d.round()
		}
	}
	// Nothing in flight for 0.9 s.
	n := idle.flight
	idle.flight = 0
	idle.c.Acked(idle.now, Ack{Segments: n, RTT: idle.rtt})
	idle.now += 900 * time.Millisecond
	// One segment at a time for an hour.
	n = slow.flight
	slow.flight = 0
	slow.c.Acked(slow.now, Ack{Segments: n, RTT: slow.rtt})
	for range 36000 {
		slow.c.Sent(slow.now, 1)
		slow.now += slow.rtt
		slow.c.Acked(slow.now, Ack{Segments: 1, RTT: slow.rtt})
	}
	n = busy.flight
	busy.flight = 0
	busy.c.Acked(busy.now, Ack{Segments: n, RTT: busy.rtt})
	for range 10 {
		for _, d := range all {
			d.round()
		}
	}
	for _, d := range all[1:] {
		if got, want := d.c.(*CUBIC).size, busy.c.(*CUBIC).size; math.Abs(got-want) > 1 {
			t.Errorf("the window is %v, and %v for a sender that was always busy", got, want)
		}
	}
}

const ms = time.Millisecond

// The epoch moves on by the time in which nothing was in flight, or less than the window.
func TestCUBICEpoch(t *testing.T) {
	c := NewCUBIC(Config{InitialWindow: 10, Threshold: 10})
	at := func(n int) time.Duration { return time.Duration(n) * ms }
	c.Sent(at(1000), 10)
	c.Acked(at(1100), Ack{Segments: 1, InFlight: 9})
	for i, step := range []struct {
		do    func()
		epoch int
	}{
		{func() {}, 1100},
		{func() { c.Sent(at(1150), 10) }, 1100},
		{func() { c.Acked(at(1200), Ack{Segments: 10}) }, 1100}, // a full window
		{func() { c.Sent(at(1500), 1) }, 1400},                  // idle for 300 ms
		{func() { c.Sent(at(1600), 2) }, 1400},
		{func() { c.Acked(at(1700), Ack{Segments: 1, InFlight: 1}) }, 1600}, // not a full window since 1500
		{func() { c.Sent(at(1750), 2) }, 1600},
		{func() { c.Acked(at(1800), Ack{Segments: 1, InFlight: 1}) }, 1700},
		{func() { c.Sent(at(1850), 20) }, 1700},
		{func() { c.Acked(at(1900), Ack{Segments: 1, InFlight: 19}) }, 1700},
		{func() { c.Acked(at(1950), Ack{Segments: 1, InFlight: 0}) }, 1700},
	} {
		if step.do(); c.epoch != at(step.epoch) {
			t.Errorf("step %d: the epoch has begun at %v, not %d ms", i, c.epoch, step.epoch)
		}
	}
	if !c.avoiding {
		t.Error("not in congestion avoidance")
	}
	if c.Sent(at(9000), 1); c.avoiding {
		t.Error("after idleness congestion avoidance goes on")
	}
}

// The same calls give the same bits on every machine.
func TestCUBICIsTheSameEverywhere(t *testing.T) {
	d := at(t, NameCUBIC, 90)
	for _, rounds := range []int{2, 60, 11, 13, 40} {
		d.c.Lost(d.now, d.flight)
		for range rounds {
			d.round()
		}
	}
	if got, want := d.c.(*CUBIC).size, 0x1.fef0fbd191471p+05; got != want {
		t.Errorf("the window is %x, not %x", got, want)
	}
}
