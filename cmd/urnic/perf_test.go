package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"urnic/internal/program/perf"
)

// perfLocal measures in one process with --json, and returns the report.
func perfLocal(t *testing.T, args ...string) *perf.Report {
	t.Helper()
	report := new(perf.Report)
	decodeOne(t, ok(t, append([]string{"perf", "local", "--json"}, args...)...), report)
	if report.Error != "" || len(report.Results) == 0 {
		t.Fatalf("%v: %+v", args, report)
	}
	return report
}

// near reports whether two figures are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// inOrder checks that percentiles are what they can be of times of round trips, all of
// which took no longer than some seconds.
func inOrder(t *testing.T, p *perf.Percentiles, seconds float64) {
	t.Helper()
	values := []float64{1, p.Min, p.P50, p.P90, p.P99, p.P999, p.P9999, p.Max}
	if !slices.IsSorted(values) || p.Mean < p.Min || p.Mean > p.Max {
		t.Errorf("%+v", p)
	}
	const digits = 1.001 // of the histogram
	if p.Max > seconds*1e9*digits {
		t.Errorf("the longest of all took %v ns, and all together %v s", p.Max, seconds)
	}
}

// The counts are those of what was asked for, as the receivers have seen it; the rates
// follow from counts and times, and the times fit to each other and to the clock.
func TestPerfMeasuresEachOperation(t *testing.T) {
	const iters, rounds = 20, 3
	for _, op := range []string{"send", "write", "write-imm", "read", "atomic"} {
		for _, test := range []string{"bw", "rate", "lat", "scale"} {
			t.Run(op+" "+test, func(t *testing.T) {
				args := []string{"--op", op, "--test", test, "--iters", strconv.Itoa(iters), "--rounds", strconv.Itoa(rounds)}
				if test == "scale" {
					args = append(args, "--qps", "1,3")
				}
				begin := time.Now()
				r := perfLocal(t, args...)
				whole := time.Since(begin).Seconds()
				for _, result := range r.Results {
					n := float64(iters * result.QPs) // messages of a round
					if result.Iterations != rounds*uint64(n) || len(result.Samples) != rounds {
						t.Errorf("%+v; want %d messages", result, rounds*uint64(n))
					}
					if result.Seconds <= 0 || result.Seconds > whole {
						t.Errorf("all rounds took %v s, and the command %v", result.Seconds, whole)
					}
					if result.AllocsPerOp == nil || *result.AllocsPerOp < 0 {
						t.Errorf("%v objects for a message", result.AllocsPerOp)
					}
					middle := slices.Sorted(slices.Values(result.Samples))[rounds/2]
					if test == "lat" {
						parts := 1.0
						if op != "read" && op != "atomic" {
							parts = 2
						}
						inOrder(t, result.Latency, result.Seconds)
						inOrder(t, result.RoundTrip, result.Seconds)
						if !near(result.RoundTrip.Mean, parts*result.Latency.Mean) || !near(result.RoundTrip.Max, parts*result.Latency.Max) {
							t.Errorf("%+v, %+v", result.RoundTrip, result.Latency)
						}
						// One after the other: so the round trips take no longer than the rounds.
						if sum := result.RoundTrip.Mean * float64(result.Iterations) / 1e9; sum > 1.001*result.Seconds {
							t.Errorf("round trips of %v s in %v s", sum, result.Seconds)
						}
						if want := parts * float64(result.Iterations) / result.Seconds; !near(result.MessagesPerSecond, want) || result.BytesPerSecond != 0 {
							t.Errorf("%v messages and %v bytes a second; want %v", result.MessagesPerSecond, result.BytesPerSecond, want)
						}
						for _, sample := range result.Samples {
							if sample < result.Latency.Min || sample > result.Latency.Max {
								t.Errorf("a median of %v in %+v", sample, result.Latency)
							}
						}
						continue
					}
					if result.Latency != nil || result.RoundTrip != nil {
						t.Errorf("%+v", result)
					}
					// A sample is a round's rate: so the rounds' times add up to all of it.
					unit := float64(result.Size)
					if test == "rate" {
						unit = 1
					}
					seconds := 0.0
					for _, sample := range result.Samples {
						seconds += n * unit / sample
					}
					if !near(seconds, result.Seconds) {
						t.Errorf("rounds of %v s; the rates make it %v", result.Seconds, seconds)
					}
					if !near(result.MessagesPerSecond, middle/unit) || !near(result.BytesPerSecond, result.MessagesPerSecond*float64(result.Size)) {
						t.Errorf("%v messages and %v bytes a second, of %d each; the median is %v", result.MessagesPerSecond, result.BytesPerSecond, result.Size, middle)
					}
				}
			})
		}
	}
}

// With a rate, each message has its time, and the latency counts from then.
func TestPerfSendsAtARate(t *testing.T) {
	const rate, iters = 5000, 40
	for _, op := range []string{"send", "write", "read", "atomic"} {
		r := perfLocal(t, "--op", op, "--test", "lat", "--rate", strconv.Itoa(rate), "--iters", strconv.Itoa(iters))
		result := r.Results[0]
		if r.Rate != rate || r.Depth != 64 || result.Iterations != iters || result.Seconds < (iters-1.0)/rate {
			t.Errorf("%s: %+v", op, result)
		}
		inOrder(t, result.Latency, result.Seconds)
		inOrder(t, result.Service, result.Seconds)
		if *result.Latency != *result.RoundTrip || result.Latency.Mean < result.Service.Mean || result.Latency.Min < result.Service.Min {
			t.Errorf("%s: %+v from the intended start, %+v from the real one", op, result.Latency, result.Service)
		}
		if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, "open loop: 5000 messages a second") || !strings.Contains(notes, "from the intended start") {
			t.Errorf("%s", notes)
		}
	}
	if out := ok(t, "perf", "local", "--op", "send", "--test", "lat", "--iters", "20"); !strings.Contains(out, "closed loop: a message is sent when the one before is answered") {
		t.Errorf("%s", out)
	}
	if out := ok(t, "perf", "local", "--test", "lat", "--rate", "10000", "--duration", "10ms"); !strings.Contains(out, "sent p99") || !strings.Contains(out, "open loop") {
		t.Errorf("%s", out)
	}
}

func TestPerfLatencyIsHalfARoundTripOfWhatIsSentAndAWholeOneOfWhatIsFetched(t *testing.T) {
	for op, parts := range map[string]float64{"send": 2, "write": 2, "write-imm": 2, "read": 1, "atomic": 1} {
		r := perfLocal(t, "--op", op, "--test", "lat", "--iters", "20", "--baseline", "--rounds", "1")
		result := r.Results[0]
		half := strings.Contains(strings.Join(r.Notes, "; "), "half round trip")
		if half != (parts == 2) {
			t.Errorf("%s: the notes say %q", op, r.Notes)
		}
		if result.RoundTrip.P50 != parts*result.Latency.P50 || result.Baseline.RoundTrip.P50 != parts*result.Baseline.Latency.P50 {
			t.Errorf("%s: latency %v, round trip %v", op, result.Latency.P50, result.RoundTrip.P50)
		}
		if result.Latency.Min > result.Latency.P50 || result.Latency.P50 > result.Latency.P99 || result.Latency.P99 > result.Latency.Max {
			t.Errorf("%s: %+v", op, result.Latency)
		}
	}
}

// A run with a baseline has as many rounds of either, and the ratio is the
// median of their ratios.
func TestPerfBaselineAlternatesWithTheRounds(t *testing.T) {
	for _, args := range [][]string{
		{"--op", "read", "--size", "4K", "--iters", "50"},
		{"--op", "send", "--bidir", "--size", "4K", "--iters", "50"},
		{"--test", "lat", "--poll", "busy", "--iters", "3"},
		{"--test", "connect", "--iters", "5"},
		{"--test", "scale", "--qps", "1,2", "--iters", "10"},
		{"--test", "rate", "--duration", "5ms"},
	} {
		r := perfLocal(t, append(args, "--baseline", "--baseline-try", "1ms", "--rounds", "3")...)
		for _, result := range r.Results {
			if len(result.Samples) != 3 || result.Baseline == nil || len(result.Baseline.Samples) != 3 || len(result.RatioSamples) != 3 {
				t.Fatalf("%v: %+v", args, result)
			}
			low, high := result.RatioSamples[0], result.RatioSamples[0]
			for i, ratio := range result.RatioSamples {
				if want := result.Samples[i] / result.Baseline.Samples[i]; ratio != want {
					t.Errorf("%v: round %d: ratio %v, want %v", args, i, ratio, want)
				}
				low, high = min(low, ratio), max(high, ratio)
			}
			if result.Ratio < low || result.Ratio > high {
				t.Errorf("%v: ratio %v of %v", args, result.Ratio, result.RatioSamples)
			}
		}
	}
}

// Messages above 64 KiB are compared with calls of the sizes that are fastest,
// which are tried first; others with one write a message.
func TestPerfBaselineTellsTheSizesOfItsCalls(t *testing.T) {
	r := perfLocal(t, "--size", "512,64K,128K", "--iters", "4", "--baseline", "--baseline-try", "1ms", "--rounds", "1")
	for i, want := range []int{512, 64 << 10} {
		if b := r.Results[i].Baseline; b.WriteSize != want || b.ReadSize != 64<<10 {
			t.Errorf("size %d: calls of %d and %d", r.Results[i].Size, b.WriteSize, b.ReadSize)
		}
	}
	if b := r.Results[2].Baseline; b.WriteSize < 64<<10 || b.ReadSize < 64<<10 {
		t.Errorf("128K: calls of %d and %d", b.WriteSize, b.ReadSize)
	}
}

func TestPerfWithEachFlag(t *testing.T) {
	for _, args := range [][]string{
		{"--inline", "--size", "8,1K,4K", "--op", "send"},
		{"--inline", "--op", "write-imm", "--size", "100"},
		{"--crc", "off"},
		{"--markers", "--op", "send"},
		{"--mulpdu", "512", "--op", "read"},
		{"--signal-every", "5", "--depth", "13", "--op", "send"},
		{"--signal-every", "64", "--op", "read"},
		{"--depth", "1", "--op", "send"},
		{"--depth", "3", "--op", "write-imm", "--bidir", "--qps", "2"},
		{"--bidir", "--op", "atomic"},
		{"--bidir", "--op", "read", "--qps", "3"},
		{"--poll", "busy", "--op", "send", "--qps", "2"},
		{"--poll", "busy", "--op", "read", "--bidir"},
		{"--size", "1", "--op", "write"},
		{"--size", "all", "--op", "atomic"},
	} {
		r := perfLocal(t, append(args, "--iters", "40")...)
		for _, result := range r.Results {
			want := uint64(40 * result.QPs)
			if r.Bidir {
				want *= 2
			}
			if result.Iterations != want {
				t.Errorf("%v: %d messages, want %d", args, result.Iterations, want)
			}
		}
	}
}

// However short a round is, something is measured in it.
func TestPerfOfTheShortestRounds(t *testing.T) {
	for _, args := range [][]string{
		{"--op", "read"},
		{"--op", "send", "--bidir", "--qps", "2"},
		{"--op", "atomic", "--test", "lat"},
		{"--test", "connect"},
		{"--test", "scale", "--qps", "1,2"},
		{"--size", "2M", "--baseline-best"},
	} {
		for _, result := range perfLocal(t, append(args, "--duration", "1ns", "--baseline", "--baseline-try", "1ms", "--rounds", "1")...).Results {
			if result.Iterations == 0 || result.Samples[0] <= 0 || result.Ratio <= 0 {
				t.Errorf("%v: %+v", args, result)
			}
		}
	}
}

func TestPerfTellsWhatItMeasuredWithAndWhere(t *testing.T) {
	r := perfLocal(t, "--crc", "off", "--markers", "--mulpdu", "1000", "--op", "send", "--depth", "7", "--iters", "5")
	if r.CRC || !r.Markers || r.MULPDU != 1000 || r.Depth != 7 || r.Op != "send" || r.Test != "bw" || r.Poll != "event" || r.Go == "" || r.OS == "" || r.Cores < 1 || r.Date == "" || r.Urnic == "" {
		t.Errorf("%+v", r)
	}
	out := ok(t, "perf", "local", "--iters", "5", "--size", "4K,64K")
	for _, want := range []string{"write bw, poll event, depth 64, CRC on, markers off\n", " cores, go", "\n        4K", "\n       64K", "MB/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestPerfCountsWhatIdleQueuePairsCost(t *testing.T) {
	r := perfLocal(t, "--test", "scale", "--qps", "1,32", "--iters", "4")
	if len(r.Results) != 2 || r.Results[0].GoroutinesPerQP != nil || r.Results[1].GoroutinesPerQP == nil {
		t.Fatalf("%+v", r.Results)
	}
	if g := *r.Results[1].GoroutinesPerQP; g <= 0 || g > 4 {
		t.Errorf("%v goroutines for a queue pair", g)
	}
	if r.Results[0].Scaling != 1 || r.Results[1].Scaling <= 0 {
		t.Errorf("%v, %v times the first", r.Results[0].Scaling, r.Results[1].Scaling)
	}
}

func TestPerfMeasuresIdleQueuePairsAlone(t *testing.T) {
	r := perfLocal(t, "--test", "idle", "--qps", "16,32", "--rounds", "2")
	if len(r.Results) != 2 || r.Op != "" {
		t.Fatalf("%+v", r)
	}
	for i, got := range r.Results {
		if got.QPs != 16<<i || got.GoroutinesPerQP == nil || *got.GoroutinesPerQP <= 0 || len(got.Samples) != 2 || got.Seconds <= 0 || got.BytesPerSecond != 0 {
			t.Errorf("%+v", got)
		}
	}
	if out := ok(t, "perf", "local", "--test", "idle"); !strings.Contains(out, "connected and idle, depth 16") || !strings.Contains(out, "bytes/QP  goroutines/QP\n") {
		t.Errorf("%s", out)
	}
}

func TestPerfMakesSoManyConnectionsAtATime(t *testing.T) {
	for _, args := range [][]string{nil, {"--qps", "1"}, {"--qps", "7"}} {
		args := append([]string{"--test", "connect", "--iters", "50", "--baseline", "--rounds", "1"}, args...)
		want := 4
		if args[len(args)-2] == "--qps" {
			want = int(args[len(args)-1][0] - '0')
		}
		r := perfLocal(t, args...)
		got := r.Results[0]
		if got.QPs != want || got.Iterations != 50 || got.ConnectionsPerSecond <= 0 || got.Baseline.ConnectionsPerSecond <= 0 {
			t.Errorf("%v: %+v", args, got)
		}
		if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, fmt.Sprintf("as many that accept and close: %d", want)) {
			t.Errorf("%v: the notes say %q", args, notes)
		}
	}
	if out := ok(t, "perf", "local", "--test", "connect", "--iters", "20"); !strings.Contains(out, "made and closed, 4 at a time") {
		t.Errorf("%s", out)
	}
}

func TestPerfWritesAPage(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		plots bool
		says  string
	}{
		{[]string{"--size", "2,4K", "--iters", "20", "--baseline", "--baseline-try", "1ms", "--rounds", "1"}, true, " MB/s with messages of "},
		{[]string{"--test", "lat", "--iters", "20"}, true, " µs at the median with messages of 64 bytes"},
		{[]string{"--test", "connect", "--iters", "4"}, false, " connections per second"},
		{[]string{"--test", "idle", "--qps", "16"}, false, " bytes for each of 16 idle queue pairs"},
	} {
		file := filepath.Join(t.TempDir(), "page.html")
		ok(t, append([]string{"perf", "local", "--html", file}, tt.args...)...)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); !strings.Contains(text, tt.says) || strings.Contains(text, "<svg ") != tt.plots || !strings.Contains(text, "outcome green") {
			t.Errorf("%q:\n%s", tt.args, b)
		}
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if status, _, errOut := urnic(t, nil, "perf", "client", "127.0.0.1:1", "--html", file); status != 1 || errOut == "" {
		t.Errorf("status %d, %q", status, errOut)
	}
}

func TestPerfPlots(t *testing.T) {
	for name, args := range map[string][]string{
		"size":        {"--size", "2,64,4K"},
		"one":         {"--test", "rate"},
		"percentiles": {"--test", "lat"},
		"latency":     {"--test", "lat", "--size", "8,64"},
		"scale":       {"--test", "scale", "--qps", "1,2"},
	} {
		file := filepath.Join(t.TempDir(), name+".svg")
		ok(t, append([]string{"perf", "local", "--svg", file, "--iters", "20", "--baseline", "--baseline-try", "1ms", "--rounds", "1"}, args...)...)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(string(b)))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, b)
			}
		}
		if text := string(b); !strings.Contains(text, ">urnic") || !strings.Contains(text, ">TCP") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s:\n%s", name, b)
		}
	}
}

// servePerf starts a server, and returns it with its address once it listens.
func servePerf(t *testing.T, args ...string) (server *process, address string) {
	t.Helper()
	address = "127.0.0.1:" + ownPort(t)
	server = start(t, append([]string{"perf", "server", "--listen", address}, args...)...)
	server.out.wait(t, "listening at "+address)
	return server, address
}

func TestPerfServerServesClientsUntilItIsInterrupted(t *testing.T) {
	server, address := servePerf(t)
	other := start(t, "perf", "client", address, "--op", "send", "--iters", "500", "--size", "4K")
	out := ok(t, "perf", "client", address, "--test", "lat", "--iters", "20", "--baseline")
	if !strings.Contains(out, "ratio") {
		t.Errorf("%s", out)
	}
	other.end(t)
	// The server says so of both, in either order.
	server.out.wait(t, "has finished")
	head, _, _ := strings.Cut(server.out.String(), " has finished")
	for _, address := range regexp.MustCompile(`client (\S+) is here`).FindAllStringSubmatch(head, -1) {
		server.out.wait(t, "client "+address[1]+" has finished")
	}
	server.interrupt()
	server.end(t)
	if out := server.out.String(); strings.Count(out, "is here") != 2 || strings.Count(out, "has finished") != 2 {
		t.Errorf("the server says\n%s", out)
	}
}

func TestPerfClientRecordsWhatPasses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perf.pcapng")
	ok(t, "perf", "local", "--iters", "10", "--size", "100", "--pcap", file)
	if out := ok(t, "dissect", "--strict", "--summary", file); !strings.Contains(out, "rdma-write") {
		t.Errorf("%s", out)
	}
}

func TestPerfTellsThatTheServerEnds(t *testing.T) {
	server, address := servePerf(t)
	client := start(t, "perf", "client", address, "--duration", "1m", "--json")
	server.out.wait(t, "is here")
	server.interrupt()
	server.end(t)
	client.wait(t)
	wantError(t, client.args, client.status, client.errOut.String(), "the server is ending")
}

func TestPerfInterruptedClientLeavesTheServerAlone(t *testing.T) {
	server, address := servePerf(t)
	client := start(t, "perf", "client", address, "--duration", "1m", "--poll", "busy")
	client.out.wait(t, "write bw")
	client.interrupt()
	client.wait(t)
	wantErrorStatus(t, client.args, statusInterrupted, client.status, client.errOut.String(), "interrupted")
	ok(t, "perf", "client", address, "--iters", "10")
	server.interrupt()
	server.end(t)
}

func TestPerfServerRefusesMoreThanItHas(t *testing.T) {
	_, address := servePerf(t, "--max-memory", "1M")
	args := []string{"perf", "client", address, "--size", "1M"}
	status, _, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "the other side says", "--max-memory")
	ok(t, "perf", "client", address, "--iters", "10")
}

func TestPerfProfileIsOneOfPprof(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu.out")
	ok(t, "perf", "local", "--iters", "10", "--cpuprofile", file)
	b, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) { // gzip
		t.Errorf("%d bytes, which begin with % x; %v", len(b), b[:min(len(b), 2)], err)
	}
	args := []string{"perf", "local", "--iters", "10", "--cpuprofile", filepath.Join(file, "none")}
	status, _, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "--cpuprofile")
}

func TestPerfErrors(t *testing.T) {
	_, taken := servePerf(t)
	_, port := serve(t, "127.0.0.1", "-P")
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"--op push: must be one of send, write, write-imm, read, atomic", []string{"local", "--op", "push"}},
		{"--test luck: must be one of bw, lat, rate, connect, scale, idle", []string{"local", "--test", "luck"}},
		{"--poll never: must be event or busy", []string{"local", "--poll", "never"}},
		{"--crc maybe: must be on or off", []string{"local", "--crc", "maybe"}},
		{"--size 4X: \"4X\" is no size", []string{"local", "--size", "4X"}},
		{"--size 64: an atomic changes 8 bytes", []string{"local", "--op", "atomic", "--size", "64"}},
		{"--qps 0: \"0\" is no number from 1 on", []string{"local", "--qps", "0"}},
		{"several numbers of queue pairs are for --test scale and idle: give one with --test bw", []string{"local", "--qps", "1,2"}},
		{"--test lat works on one queue pair at a time", []string{"local", "--test", "lat", "--qps", "2"}},
		{"65 connections at a time: must be 1 to 64", []string{"local", "--test", "connect", "--qps", "65"}},
		{"leave --depth out", []string{"local", "--test", "lat", "--depth", "2"}},
		{"leave --signal-every out", []string{"local", "--test", "lat", "--signal-every", "2"}},
		{"leave --bidir out", []string{"local", "--test", "connect", "--bidir"}},
		{"leave --size out", []string{"local", "--test", "connect", "--size", "2"}},
		{"--op read sends no data: leave --inline out", []string{"local", "--op", "read", "--inline"}},
		{"depth 100000: must be 1 to 8192", []string{"local", "--depth", "100000"}},
		{"must be 1 to the depth", []string{"local", "--depth", "4", "--signal-every", "5"}},
		{"give only one of --duration and --iters", []string{"local", "--duration", "1s", "--iters", "5"}},
		{"give --duration or --iters more than 0", []string{"local", "--iters", "0"}},
		{"--duration 2h0m0s: must be up to 1h0m0s", []string{"local", "--duration", "2h"}},
		{"--rounds -1: must be 1 to 1000", []string{"local", "--rounds", "-1"}},
		{"--rate is for --test lat: leave it out with --test bw", []string{"local", "--rate", "5"}},
		{"--rate has no baseline over TCP", []string{"local", "--test", "lat", "--rate", "5", "--baseline"}},
		{"--rate 0.1: not one message is due in 1s", []string{"local", "--test", "lat", "--rate", "0.1"}},
		{"--rate -1: must be up to", []string{"local", "--test", "lat", "--rate", "-1"}},
		{"--rate NaN: must be up to", []string{"local", "--test", "lat", "--rate", "NaN"}},
		{"--rate fast: give a number", []string{"local", "--test", "lat", "--rate", "fast"}},
		{"--baseline-try -1s: must be up to 1h", []string{"local", "--baseline-try", "-1s"}},
		{"--baseline-best chooses a baseline", []string{"local", "--baseline-best"}},
		{"--max-memory lots", []string{"local", "--max-memory", "lots"}},
		{"raise --max-memory", []string{"local", "--size", "1M", "--max-memory", "1M"}},
		{"--mulpdu", []string{"local", "--mulpdu", "5"}},
		{"--html: the page can't be written", []string{"local", "--html", filepath.Join(t.TempDir(), "missing", "x.html")}},
		{"--svg: the plot can't be written", []string{"local", "--svg", filepath.Join(t.TempDir(), "missing", "x.svg")}},
		{"leave --depth out", []string{"local", "--test", "idle", "--depth", "2"}},
		{"leave --baseline out", []string{"local", "--test", "idle", "--baseline"}},
		{"leave --iters out", []string{"local", "--test", "idle", "--iters", "2"}},
		{"leave --svg out", []string{"local", "--test", "idle", "--svg", "x"}},
		{"--qps 15: must be 16 or more", []string{"local", "--test", "idle", "--qps", "32,15"}},
		{"leave --svg out", []string{"local", "--test", "connect", "--svg", "x"}},
		{"--json and --pcap - would both go to standard output", []string{"local", "--json", "--pcap", "-"}},
		{"give the server as HOST:PORT", []string{"client"}},
		{"is not HOST:PORT", []string{"client", "192.0.2.7"}},
		{"nobody listens at 127.0.0.1:" + unusedPort, []string{"client", "127.0.0.1:" + unusedPort}},
		{"is no urnic perf", []string{"client", "127.0.0.1:" + port}},
		{"--listen 7175: give ADDRESS:PORT", []string{"server", "--listen", "7175"}},
		{"another program listens at port", []string{"server", "--listen", taken}},
		{"is no address of this machine", []string{"server", "--listen", "192.0.2.7:7175"}},
	} {
		args := append([]string{"perf"}, tc.args...)
		status, out, errOut := urnic(t, nil, args...)
		wantError(t, args, status, errOut, tc.want)
		if out != "" {
			t.Errorf("%v: %q is on stdout", args, out)
		}
	}
}

// What takes long shows how far it is, in seconds or in rounds, and leaves
// nothing behind.
func TestPerfShowsItsProgressOnATerminal(t *testing.T) {
	for unit, duration := range map[string][]string{"seconds": {"--duration", "1300ms", "--rounds", "2"}, "rounds": {"--duration", "300ms", "--rounds", "8"}} {
		t.Run(unit, func(t *testing.T) {
			var out, terminal output
			onTerminal(t, &terminal)
			t.Setenv("TERM", "xterm")
			args := append([]string{"perf", "local", "--size", "4K"}, duration...)
			if status := run(t.Context(), args, nil, &out, &terminal); status != 0 {
				t.Fatalf("status %d: %s", status, terminal.String())
			}
			if !strings.Contains(terminal.String(), "perf, "+unit) {
				t.Errorf("the terminal has %q", terminal.String())
			}
			if left := screen(terminal.String()); left != "" {
				t.Errorf("%q is left on the terminal", left)
			}
		})
	}
}

func TestHelpOfPerfHasExamples(t *testing.T) {
	for _, args := range [][]string{{"perf", "--help"}, {"perf"}, {"perf", "local", "--help"}, {"perf", "client", "--help"}, {"perf", "server", "--help"}} {
		status, out, _ := urnic(t, nil, args...)
		if status != 0 || !strings.Contains(out, "Examples:\n  urnic ") {
			t.Errorf("%v: status %d\n%s", args, status, out)
		}
	}
	_, out, _ := urnic(t, nil, "perf", "client", "--help")
	if !strings.Contains(out, "docs/json.md") {
		t.Error("the help of perf does not say where the JSON is described")
	}
}
