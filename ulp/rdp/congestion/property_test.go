package congestion

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever happens, in whatever order: the window is between 1 and the most; only acknowledgements
// raise it, and nothing but losses, timeouts, reports and idleness lowers it; a report is taken.
func TestWindowsInAnyOrderOfEvents(t *testing.T) {
	makers := map[string]func(Config) Controller{
		NameNone:  func(Config) Controller { return None() },
		NameReno:  func(c Config) Controller { return NewReno(c) },
		NameCUBIC: func(c Config) Controller { return NewCUBIC(c) },
	}
	for name, create := range makers {
		for seed := range uint64(2000) {
			r := rand.New(rand.NewPCG(seed, 1))
			cfg := Config{InitialWindow: r.IntN(20), MaxWindow: r.IntN(200), Threshold: r.IntN(60), PerAck: r.IntN(4)}
			most := cfg.withDefaults().MaxWindow
			if name == NameNone {
				most = math.MaxInt
			}
			c := create(cfg)
			var now time.Duration
			for step := range 200 {
				now += time.Duration(r.Int64N(int64(time.Second) >> r.IntN(20)))
				before := c.Window()
				event := play(r, c, now)
				after := c.Window()
				if after < 1 || after > most {
					t.Fatalf("%s, seed %d, step %d: after %s the window is %d of %d", name, seed, step, event, after, most)
				}
				if after > before && event != "acked" {
					t.Fatalf("%s, seed %d, step %d: %s raises the window from %d to %d", name, seed, step, event, before, after)
				}
				if after < before && event == "acked" {
					t.Fatalf("%s, seed %d, step %d: %s lowers the window from %d to %d", name, seed, step, event, before, after)
				}
				if event == "not taken" {
					t.Fatalf("%s, seed %d, step %d: a report of less than the window is not taken", name, seed, step)
				}
				if event == "timed out" && name != NameNone && after != 1 {
					t.Fatalf("%s, seed %d, step %d: after a timeout the window is %d", name, seed, step, after)
				}
			}
		}
	}
}

// play has something happen that need not make sense.
func play(r *rand.Rand, c Controller, now time.Duration) string {
	flight := r.IntN(c.Window()%1000 + 3)
	if r.IntN(50) == 0 {
		flight = []int{-1, math.MinInt, math.MaxInt, 1 << 30}[r.IntN(4)]
	}
	switch r.IntN(12) {
	case 0:
		c.Lost(now, flight)
		return "lost"
	case 1:
		c.TimedOut(now, flight)
		return "timed out"
	case 2:
		w := r.IntN(40) - 2
		c.Reported(now, Report{Window: w, Drops: r.IntN(3), Marks: r.IntN(3)})
		if w > 0 && c.Window() > w {
			return "not taken"
		}
		return "reported"
	case 3, 4, 5:
		c.Sent(now, flight)
		return "sent"
	}
	n := r.IntN(8) - 1
	if r.IntN(50) == 0 {
		n = []int{math.MinInt, math.MaxInt, 70_000}[r.IntN(3)]
	}
	c.Acked(now, Ack{Segments: n, RTT: time.Duration(r.Int64N(1e9)), InFlight: flight})
	return "acked"
}

// The losses of a round lower the window once, whatever else happens but timeouts and reports.
func TestRoundsInAnyOrderOfEvents(t *testing.T) {
	for _, name := range both {
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, 2))
			d := at(t, name, 2+r.IntN(100))
			for range r.IntN(300) {
				d.ack(1)
			}
			left := d.flight
			if r.IntN(2) == 0 {
				d.c.Lost(d.now, d.flight)
			} else {
				d.c.Reported(d.now, Report{Window: max(1, d.c.Window()/2)})
			}
			window := d.c.Window()
			for left > 1 {
				n := min(1+r.IntN(3), left-1)
				left -= n
				d.now += time.Millisecond
				d.ack(n)
				d.c.Lost(d.now, d.flight)
				if d.c.Window() != window {
					t.Fatalf("%s, seed %d: the window goes from %d to %d within a round", name, seed, window, d.c.Window())
				}
			}
		}
	}
}

// Two flows that lose at the same times end with the same window, wherever they began:
// additive increase and multiplicative decrease are fair.
func TestFlowsConverge(t *testing.T) {
	for _, name := range both {
		a, b := at(t, name, 200), at(t, name, 10)
		for range 60 {
			for a.c.Window()+b.c.Window() < 220 {
				a.round()
				b.round()
			}
			for _, d := range []*driver{a, b} {
				d.c.Lost(d.now, d.flight)
				d.round()
			}
		}
		if x, y := float64(a.c.Window()), float64(b.c.Window()); math.Abs(x-y) > 0.15*(x+y) {
			t.Errorf("%s: the windows are %v and %v", name, x, y)
		}
	}
}
