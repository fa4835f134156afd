package main

import (
	"slices"
	"strings"
	"testing"
)

// did is the outcome of a run that measured this.
func did(readings ...reading) outcome { return outcome{Readings: readings} }

func failed(why string) outcome { return outcome{Error: why} }

func TestRatioIsMadeInEachRound(t *testing.T) {
	r := row{"ours to theirs", atLeast(1.4), toPeer("ours", "theirs", bandwidth)}
	// The ratio of the medians would be 1.
	rounds := []round{
		{"ours": did(reading{BytesPerSecond: 1e9}), "theirs": did(reading{BytesPerSecond: 2e9})},
		{"ours": did(reading{BytesPerSecond: 2e9}), "theirs": did(reading{BytesPerSecond: 1e9})},
		{"ours": did(reading{BytesPerSecond: 6e9}), "theirs": did(reading{BytesPerSecond: 4e9})},
	}
	got := judge(r, rounds)
	want := verdict{What: "ours to theirs", Target: "≥ 1.40", Median: "1.50", Range: "0.50 … 2.00", Ours: "2.00 GB/s", Theirs: "2.00 GB/s", Held: "met"}
	if got.Held != want.Held || got.Median != want.Median || got.Range != want.Range || got.Ours != want.Ours || got.Theirs != want.Theirs || got.Target != want.Target {
		t.Errorf("got %+v; want %+v", got, want)
	}
	r.target = atLeast(1.51)
	if got := judge(r, rounds); got.Held != "**not met**" {
		t.Errorf("1.50 of 1.51 is %q", got.Held)
	}
}

func TestTimesMustNotBeLonger(t *testing.T) {
	r := row{"", atMost(1), toPeer("ours", "theirs", latency)}
	at := func(ns float64) []round {
		return []round{{"ours": did(reading{LatencyNS: ns}), "theirs": did(reading{LatencyNS: 4000})}}
	}
	for ns, want := range map[float64]string{3999: "met", 4000: "met", 4001: "**not met**"} {
		if got := judge(r, at(ns)); got.Held != want {
			t.Errorf("%v ns: %q; want %q", ns, got.Held, want)
		}
	}
}

// Two rounds of three would do, but a failed run is never passed over.
func TestFailedRoundIsAnErrorOfItsRow(t *testing.T) {
	r := row{"", atLeast(0.5), toPeer("ours", "theirs", bandwidth)}
	good := round{"ours": did(reading{BytesPerSecond: 1e9}), "theirs": did(reading{BytesPerSecond: 1e9})}
	for name, bad := range map[string]round{
		"failed":     {"ours": good["ours"], "theirs": failed("connection refused")},
		"no reading": {"ours": good["ours"], "theirs": did()},
		"no figure":  {"ours": good["ours"], "theirs": did(reading{LatencyNS: 1})},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(r, []round{good, bad, good})
			if got.Held != "**error** in 1 of 3 rounds" || got.Median != "1.00" || len(got.Errors) != 1 || !strings.HasPrefix(got.Errors[0], "round 2: theirs") {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := judge(r, []round{{"ours": failed("x"), "theirs": failed("y")}}); got.Held != "**error** in 1 of 1 rounds" || got.Median != "–" {
		t.Errorf("got %+v", got)
	}
	if got := judge(r, []round{{}, {}}); got.Held != "not run" {
		t.Errorf("got %+v", got)
	}
	if got := judge(r, []round{{"ours": good["ours"]}}); got.Held != "not run" {
		t.Errorf("got %+v", got)
	}
}

func TestRatioToRawTCPIsThatOfTheRun(t *testing.T) {
	r := row{"", atLeast(0.9), toRaw("ours", bandwidth)}
	run := reading{BytesPerSecond: 3e9, Ratio: 0.93, Baseline: &reading{BytesPerSecond: 3.2e9}}
	got := judge(r, []round{{"ours": did(run)}})
	if got.Median != "0.93" || got.Ours != "3.00 GB/s" || got.Theirs != "3.20 GB/s" || got.Held != "met" {
		t.Errorf("got %+v", got)
	}
	run.Baseline = nil
	if got := judge(r, []round{{"ours": did(run)}}); len(got.Errors) != 1 {
		t.Errorf("without a baseline: %+v", got)
	}
}

func TestBaselineBesideAPeer(t *testing.T) {
	run := reading{BytesPerSecond: 3e9, Ratio: 0.75, Baseline: &reading{BytesPerSecond: 4e9}}
	r := row{"", noTarget, rawTo("ours", "iperf", bandwidth)}
	got := judge(r, []round{{"ours": did(run), "iperf": did(reading{BytesPerSecond: 5e9})}})
	if got.Median != "0.80" || got.Ours != "4.00 GB/s" || got.Held != "–" {
		t.Errorf("got %+v", got)
	}
}

func TestScalingComparesTheSumWithOne(t *testing.T) {
	r := row{"", atLeast(0.85), scaling("scale", 64)}
	got := judge(r, []round{{"scale": did(reading{QPs: 64, BytesPerSecond: 3e9}, reading{QPs: 1, BytesPerSecond: 4e9})}})
	if got.Median != "0.75" || got.Held != "**not met**" || got.Ours != "3.00 GB/s" || got.Theirs != "4.00 GB/s" {
		t.Errorf("got %+v", got)
	}
	if got := judge(r, []round{{"scale": did(reading{QPs: 64, BytesPerSecond: 3e9})}}); len(got.Errors) != 1 {
		t.Errorf("without one QP: %+v", got)
	}
}

func TestAllocationsAreTheMostOfAll(t *testing.T) {
	r := row{"", noAllocations, allocations("a", "b")}
	with := func(v float64) outcome { return did(reading{AllocsPerOp: &v}) }
	for _, tt := range []struct {
		a, b float64
		want string
	}{{0, 0, "met"}, {0, 0.0004, "met"}, {0.01, 0, "**not met**"}, {0, 1, "**not met**"}} {
		if got := judge(r, []round{{"a": with(tt.a), "b": with(tt.b)}}); got.Held != tt.want {
			t.Errorf("%v and %v: %+v", tt.a, tt.b, got)
		}
	}
	if got := judge(r, []round{{"a": with(0), "b": did(reading{})}}); len(got.Errors) != 1 {
		t.Errorf("a run that does not say: %+v", got)
	}
}

func TestAbsoluteFigures(t *testing.T) {
	r := row{"", atLeast(5e6).in(messageRate), alone("ours", messageRate)}
	got := judge(r, []round{{"ours": did(reading{MessagesPerSecond: 4_990_000})}})
	if got.Target != "≥ 5.00 million/s" || got.Median != "4.99 million/s" || got.Theirs != "–" || got.Held != "**not met**" {
		t.Errorf("got %+v", got)
	}
}

func TestFailuresSayWhichRounds(t *testing.T) {
	a, b := contests[0].name, contests[1].name
	got := failures([]round{{a: failed("x"), b: failed("y")}, {a: failed("x"), b: did(reading{})}})
	want := []string{a + ": x (every round)", b + ": y (1 of 2 rounds)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// A row that asks for a contest that nobody runs would say "not run" for ever.
func TestRowsNameContestsThatExist(t *testing.T) {
	all := round{}
	for _, c := range contests {
		if _, twice := all[c.name]; twice {
			t.Errorf("two contests are called %s", c.name)
		}
		all[c.name] = failed("it ran")
	}
	for _, r := range append(slices.Clone(goals), besides...) {
		if got := judge(r, []round{all}); len(got.Errors) != 1 {
			t.Errorf("%s: %+v", r.what, got)
		}
	}
}
