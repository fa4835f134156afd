package main

import (
	"context"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCommandsOfAContest(t *testing.T) {
	for name, want := range map[string]string{
		"urnic write 64K":                "bin/urnic perf local --op write --test bw --size 65536 --depth 16 --crc on --baseline --duration 2s --rounds 1 --json",
		"urnic connections, 4 at a time": "bin/urnic perf local --test connect --qps 4 --iters 10000 --baseline --rounds 1 --json",
		"urnic idle QPs":                 "bin/urnic perf local --test idle --qps " + strconv.Itoa(idleQPs(openFiles())) + " --rounds 1 --json",
		"UCX tag_lat 64": "UCX_TLS=tcp UCX_NET_DEVICES=lo ucx_perftest -p 7471 &\n" +
			"UCX_TLS=tcp UCX_NET_DEVICES=lo ucx_perftest 127.0.0.1 -p 7471 -t tag_lat -s 64 -n 4000 -w 800 -f -v",
		"libfabric ping-pong 64": "fi_pingpong -p tcp -e msg -S 64 -I 4000 -B 7471 &\nfi_pingpong -p tcp -e msg -S 64 -I 4000 -P 7471 127.0.0.1",
		"urnic write 1M, depth 128, two processes": "bin/urnic perf server --listen 127.0.0.1:7471 &\n" +
			"bin/urnic perf client 127.0.0.1:7471 --op write --test bw --size 1048576 --depth 128 --crc on --duration 2s --rounds 1 --json",
		"ib_write_bw 1M": "bin/urnic run -- ib_write_bw -R -F -p 7471 -s 1048576 -D 4 &\nbin/urnic run -- ib_write_bw -R -F -p 7471 -s 1048576 -D 4 127.0.0.1",
		"ib_send_lat 64": "bin/urnic run -- ib_send_lat -R -F -p 7471 -s 64 -n 4000 &\nbin/urnic run -- ib_send_lat -R -F -p 7471 -s 64 -n 4000 127.0.0.1",
		"iperf3 1M":      "iperf3 -s -1 -p 7471 &\niperf3 -c 127.0.0.1 -p 7471 -l 1048576 -t 2 -J",
	} {
		r := racer{settings: map[string]setting{name: {duration: 2 * time.Second, iterations: 4000}}}
		for _, c := range contests {
			if c.name == name {
				r.wanted = append(r.wanted, c)
			}
		}
		if got := r.commands()[name]; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// How long the baseline's sizes are tried reaches the runs that have a baseline, and no others.
func TestTriesOfTheBaselineHaveTheTimeThatIsAskedFor(t *testing.T) {
	const flag = "--baseline-try 10ms"
	r := racer{wanted: contests, try: 10 * time.Millisecond, settings: map[string]setting{}}
	for _, c := range contests {
		r.settings[c.name] = setting{try: r.try}
	}
	for name, command := range r.commands() {
		if got, want := strings.Contains(command, flag), strings.Contains(command, "--baseline "); got != want {
			t.Errorf("%s: %s", name, command)
		}
	}
	urnic.binary = "true" // it draws nothing
	t.Cleanup(func() { urnic.binary = "bin/urnic" })
	r.log = io.Discard
	for _, p := range r.draw(t.Context(), t.TempDir(), regexp.MustCompile("")) {
		if !strings.Contains(p.Command, flag) {
			t.Errorf("%s: %s", p.File, p.Command)
		}
	}
}

func TestOneSidedContestsOfUCXTellNoLatency(t *testing.T) {
	for _, c := range contests {
		if c.by != ucx {
			continue
		}
		got, err := c.parse(recorded(t, "ucx_tag_lat_64.csv"), setting{})
		if err != nil {
			t.Fatal(err)
		}
		if told, want := got[0].LatencyNS > 0, c.name == "UCX tag_lat 64"; told != want {
			t.Errorf("%s tells a latency: %v", c.name, told)
		}
	}
}

// What is compared runs one after the other: in between comes only what is
// compared with one of the two as well.
func TestRowsCompareNeighbours(t *testing.T) {
	const nearby = 3
	at := map[string]int{}
	for i, c := range contests {
		at[c.name] = i
	}
	for _, r := range append(goals, besides...) {
		var asked []string
		spy := round{}
		for name := range at {
			others := round{}
			for n := range at {
				others[n] = did(reading{QPs: 1, BytesPerSecond: 1, MessagesPerSecond: 1, ConnectionsPerSecond: 1, LatencyNS: 1, MedianNS: 1, BytesPerQPSide: 1})
			}
			others[name] = failed("asked")
			if _, err := r.take(others); err != nil && strings.Contains(err.Error(), name+": asked") {
				asked = append(asked, name)
				spy[name] = others[name]
			}
		}
		for a := range spy {
			for b := range spy {
				if d := at[a] - at[b]; d > nearby {
					t.Errorf("%s: %d contests lie between %s and %s", r.what, d-1, b, a)
				}
			}
		}
		if len(asked) == 0 {
			t.Errorf("%s asks for nothing", r.what)
		}
	}
}

func TestMissingProgramIsAnErrorOfEachOfItsRuns(t *testing.T) {
	r := racer{log: io.Discard, duration: time.Second, missing: map[string]string{ucx.name: "ucx_perftest is missing"}}
	for _, c := range contests {
		if c.by == ucx {
			r.wanted = append(r.wanted, c)
		}
	}
	r.prepare(t.Context())
	got := r.run(t.Context(), "1/1")
	if len(got) != len(r.wanted) || len(got) == 0 {
		t.Fatalf("%d outcomes of %d contests", len(got), len(r.wanted))
	}
	for name, o := range got {
		if o.Error != "ucx_perftest is missing" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestRunThatEndsInTheMiddleWritesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := options{rounds: 1, duration: time.Second, out: t.TempDir() + "/page.md", only: regexp.MustCompile("urnic connections")}
	if got, err := o.measure(ctx, io.Discard); err == nil {
		t.Errorf("got %+v", got)
	}
}

func TestRunIsRepeatedWhileOthersAreBusy(t *testing.T) {
	calm, noisy, noisier := outcome{Others: 0.05}, outcome{Others: 0.4}, outcome{Others: 0.6}
	broken := failed("broken")
	for _, tt := range []struct {
		name string
		runs []outcome
		want outcome
	}{
		{"calm at once", []outcome{calm}, calm},
		{"calm at last", []outcome{noisy, noisier, calm}, outcome{Others: 0.05, Repeated: 2}},
		{"never calm", []outcome{noisier, noisy, noisier}, outcome{Others: 0.4, Repeated: 2}},
		{"fails", []outcome{broken}, broken},
		{"fails when repeated", []outcome{noisy, broken}, outcome{Error: "broken", Repeated: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran := 0
			got := (&racer{repeat: 2}).calmest(func() outcome {
				ran++
				return tt.runs[ran-1]
			})
			if ran != len(tt.runs) || got.Others != tt.want.Others || got.Error != tt.want.Error || got.Repeated != tt.want.Repeated {
				t.Errorf("%d runs gave %+v; want %+v", ran, got, tt.want)
			}
		})
	}
}
