package congestion

import (
	"math"
	"testing"
	"time"
)

// average returns the average window of a sender that loses one segment in n, regularly.
func average(t *testing.T, c Controller, rtt time.Duration, n int) float64 {
	t.Helper()
	d := drive(t, c)
	d.rtt = rtt
	const epochs = 24
	sent, rounds, count := 0, 0, 0
	for epoch := 0; epoch < epochs; {
		d.round()
		if epoch >= epochs/3 {
			sent, rounds = sent+d.flight, rounds+1
		}
		if count += d.flight; count >= n {
			count -= n
			epoch++
			d.c.Lost(d.now, d.flight)
		}
	}
	return float64(sent) / float64(rounds)
}

// RFC 9438 §5.1: the average windows that follow from regular losses: √(3/2p) for Reno, and for
// CUBIC the larger of that and ⁴√(C(3+β)/(4(1-β))) · ⁴√(RTT³/p³). The formulas count neither the
// round trip of the recovery nor fast convergence.
func TestResponseFunctions(t *testing.T) {
	for _, rtt := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		for _, n := range []int{100, 1000, 10_000, 50_000} {
			p := 1 / float64(n)
			reno := math.Sqrt(1.5 / p)
			cubic := math.Pow(0.4*3.7/1.2, 0.25) * math.Pow(rtt.Seconds()/p, 0.75)
			cubic = max(cubic, reno)
			for _, c := range []struct {
				ctl  Controller
				want float64
			}{{NewReno(Config{Threshold: int(reno)}), reno}, {NewCUBIC(Config{Threshold: int(cubic)}), cubic}} {
				got := average(t, c.ctl, rtt, n)
				if got < 0.85*c.want || got > 1.05*c.want {
					t.Errorf("%v, round trip %v, a loss in %d: the average window is %.1f, by the formula %.1f", c.ctl, rtt, n, got, c.want)
				}
			}
		}
	}
}
