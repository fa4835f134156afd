package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// An outcome is what became of one run: readings, or why there are none.
type outcome struct {
	Readings []reading `json:"readings,omitempty"`
	Error    string    `json:"error,omitempty"`
	Others   float64   `json:"others"`             // which part of the processors others used meanwhile
	Repeated int       `json:"repeated,omitempty"` // how often others were too busy, so that it was run again
}

// A round is the outcomes of the contests, by name. Those that were not wanted
// are not in it.
type round map[string]outcome

// A tally is what a whole run has measured.
type tally struct {
	Machine  machine           `json:"machine"`
	Duration string            `json:"duration"`
	Versions map[string]string `json:"versions"` // by program
	Missing  map[string]string `json:"missing"`  // why a program is not there
	Commands map[string]string `json:"commands"` // by contest
	Rounds   []round           `json:"rounds"`
	Plots    []plot            `json:"plots"`
}

// A racer runs contests.
type racer struct {
	log      io.Writer
	duration time.Duration
	try      time.Duration // of a baseline's sizes of calls; 0 for urnic's default
	repeat   int           // how often at most, when others are busy
	wanted   []*contest
	settings map[string]setting
	missing  map[string]string // programs, with the reason
}

// prepare finds how many iterations each contest needs.
func (r *racer) prepare(ctx context.Context) {
	r.settings = map[string]setting{}
	for _, c := range r.wanted {
		n, err := c.first, error(nil)
		if r.missing[c.by.name] == "" {
			n, err = c.calibrate(ctx, r.duration)
		}
		if err != nil {
			fmt.Fprintf(r.log, "trial of %s: %v\n", c.name, err)
		}
		r.settings[c.name] = setting{duration: r.duration, try: r.try, iterations: n}
	}
}

// commands returns what a person would type to run each contest.
func (r *racer) commands() map[string]string {
	out := map[string]string{}
	for _, c := range r.wanted {
		at := r.settings[c.name]
		at.port = 7471
		server, client := c.commands(at)
		out[c.name] = client.String()
		if server != nil {
			out[c.name] = server.String() + " &\n" + client.String()
		}
	}
	return out
}

// run runs all contests once, in their order.
func (r *racer) run(ctx context.Context, label string) round {
	out := round{}
	for _, c := range r.wanted {
		o := outcome{Error: r.missing[c.by.name]}
		if o.Error == "" {
			o = r.calmest(func() outcome {
				return watched(func() ([]reading, error) { return c.run(ctx, r.settings[c.name]) })
			})
		}
		out[c.name] = o
		fmt.Fprintf(r.log, "%s  %-32s %s\n", label, c.name, o.brief())
	}
	return out
}

// busy is which part of the processors others may use during a run, for it to
// count as measured on an idle machine.
const busy = 0.1

// calmest runs something again while others are busy, and returns the outcome
// of the time when they were least: whatever it is. A failure is not tried again.
func (r *racer) calmest(run func() outcome) outcome {
	best := run()
	for range r.repeat {
		if best.Error != "" || best.Others <= busy {
			break
		}
		again := run()
		again.Repeated = best.Repeated + 1
		if again.Error != "" || again.Others < best.Others {
			best = again
		}
		best.Repeated = again.Repeated
	}
	return best
}

// watched notes what others do while f runs.
func watched(f func() ([]reading, error)) outcome {
	w, err := startWatch()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	readings, err := f()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	others, err := w.others()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Readings: readings, Others: others}
}

// brief says in a few words what came out.
func (o outcome) brief() string {
	if o.Error != "" {
		return "FAILED: " + o.Error
	}
	var text strings.Builder
	if o.Others > busy {
		text.WriteString("  (others use " + percentText(o.Others) + ")")
	}
	for _, got := range o.Readings {
		for _, m := range []metric{startTime, idleMemory, latency, connectRate, messageRate, bandwidth} {
			if v := m.of(got); v > 0 {
				text.WriteString("  " + m.text(v))
			}
		}
		if got.Ratio > 0 {
			text.WriteString(" (" + ratioText(got.Ratio) + " of raw TCP)")
		}
	}
	return text.String()
}
