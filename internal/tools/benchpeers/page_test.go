package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aTally has two rounds of everything: ours twice as fast as raw TCP, the peers
// as fast as that.
func aTally() tally {
	t := tally{
		Machine: machine{
			CPU: "Some Processor", Cores: 2, Kernel: "6.1.0", OS: "Debian GNU/Linux 12", Congestion: "cubic", Go: "go1.26.8", Date: "2026-11-20",
		},
		Duration: "1s",
		Versions: map[string]string{"UCX": "1.13.1", "libfabric": "1.17.0", "iperf3": "3.12", "perftest": "4.5", "rdma-core": "44.0"},
		Missing:  map[string]string{}, Commands: map[string]string{},
	}
	none := 0.0
	raw := reading{BytesPerSecond: 2e9, MessagesPerSecond: 2e6, ConnectionsPerSecond: 2e4, LatencyNS: 8e3, MedianNS: 8e3, StartNS: 5e6}
	each := stream{reading: raw, WriteSize: 64, ReadSize: 64 << 10}
	each.Ratio = 2
	batch := stream{reading: raw, WriteSize: 512 << 10, ReadSize: 1 << 20, Slowest: 1e9, Fastest: 3e9}
	batch.BytesPerSecond, batch.MessagesPerSecond, batch.Ratio = 8e9, 12e6, 0.5
	ours := reading{
		Streams: map[string]stream{perMessage: each, batched: batch},
		QPs:     1, BytesPerSecond: 4e9, MessagesPerSecond: 6e6, ConnectionsPerSecond: 4e4, LatencyNS: 4e3, MedianNS: 4e3,
		StartNS: 25e6, BytesPerQPSide: 8 << 10, AllocsPerOp: &none, Ratio: 2, Baseline: &raw,
	}
	for range 2 {
		r := round{}
		for _, c := range contests {
			r[c.name] = did(raw)
			if c.by == urnic || c.dropIn != "" {
				r[c.name] = did(ours)
			}
			t.Commands[c.name] = "run " + c.name
		}
		many := ours
		many.QPs = 64
		r["urnic 1 and 64 QPs"] = did(ours, many)
		many.QPs = mostIdleQPs
		r["urnic idle QPs"] = outcome{Readings: []reading{many}, Others: 0.25, Repeated: 2}
		t.Rounds = append(t.Rounds, r)
	}
	for _, p := range plots {
		t.Plots = append(t.Plots, plot{File: p.File, Title: p.Title, Command: "draw " + p.File})
	}
	return t
}

func pageOf(t *testing.T, what tally) string {
	t.Helper()
	b, err := what.page("performance")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wants checks that a page has these lines.
func wants(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(page, l+"\n") {
			t.Errorf("the page has no line %q", l)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

func TestPageSaysAllThatWasMeasured(t *testing.T) {
	page := pageOf(t, aTally())
	wants(t, page,
		"| RDMA Write 64 B, depth 256, messages to raw TCP with a write for each | – | 2.00 | 2.00 … 2.00 | 6.00 million/s | 2.00 million/s | – |",
		"| RDMA Write 64 B, depth 256, messages to raw TCP that batches | – | 0.50 | 0.50 … 0.50 | 6.00 million/s | 12.00 million/s | – |",
		"| urnic write 64K | 512/1024 KiB (2) | 1.00 GB/s … 3.00 GB/s |",
		"| RDMA Write 1 MiB, bandwidth, to raw TCP that batches | ≥ 0.90 | 2.00 | 2.00 … 2.00 | 4.00 GB/s | 2.00 GB/s | met |",
		"| RDMA Write 64 B, depth 256, messages a second | ≥ 5.00 million/s | 6.00 million/s | 6.00 million/s … 6.00 million/s | 6.00 million/s | – | met |",
		"| RDMA Write 64 B, depth 256, messages to UCX `tag_bw` 64 B | ≥ 10.00 | 3.00 | 3.00 … 3.00 | 6.00 million/s | 2.00 million/s | **not met** |",
		"| Send 64 B ping-pong, busy polling, time to that of UCX `tag_lat` | ≤ 1.00 | 0.50 | 0.50 … 0.50 | 4.00 µs | 8.00 µs | met |",
		"| drop-in: start-up, how much longer `ibv_devices` lasts with it than without | ≤ 30.0 ms | 20.0 ms | 20.0 ms … 20.0 ms | 25.0 ms | 5.0 ms | met |",
		"RDMA Writes of 1 MiB with CRC32c run at 4.00 GB/s, 2.00 times raw TCP that batches. A Send of 64 bytes takes 4.00 µs with completion events and 4.00 µs with busy polling: "+
			"2.00 and 2.00 times raw TCP. urnic meets 18 of 22 targets; [the reasons for the others](#targets-not-met) are below.",
		"| date | 2026-11-20 |", "| processor | Some Processor, 2 cores |", "| UCX | 1.13.1 |", "| rounds | 2, 1s for each run |",
		"| kernel | 6.1.0, Debian GNU/Linux 12; TCP congestion control cubic |",
		"| processors' time that others used during a run | median 0 %, at most 25 %; 4 runs were repeated for it |",
		"$ run UCX tag_bw 1M", "$ draw write.svg",
		"![RDMA Read: bandwidth against size, CRC on](performance/read.svg)",
		"## Where the time goes",
	)
	for _, r := range append(goals, besides...) {
		if strings.Count(page, "| "+r.what+" |") != 1 {
			t.Errorf("the page has not one row for %s", r.what)
		}
	}
	for _, never := range []string{"error", "not run", "<no value>", "## Errors"} {
		if strings.Contains(page, never) && never != "error" || strings.Contains(page, "**error**") {
			t.Errorf("the page says %q", never)
		}
	}
	if !strings.HasSuffix(page, "```\n") || strings.Contains(page, "\n\n\n") {
		t.Errorf("the page has lines that are empty in vain, or ends in them:\n%s", page)
	}
}

func TestMissingPeerAndFailedRunStandOnThePage(t *testing.T) {
	what := aTally()
	what.Missing["UCX"] = "ucx_perftest of UCX is missing | apt-get failed"
	for _, r := range what.Rounds {
		for _, c := range contests {
			if c.by == ucx {
				r[c.name] = failed(what.Missing["UCX"])
			}
		}
	}
	what.Rounds[1]["urnic send 64"] = failed("exit status 1:\nbroken")
	what.Plots[0].Error = "no disk"
	page := pageOf(t, what)
	wants(t, page,
		`| UCX | **missing**: ucx_perftest of UCX is missing \| apt-get failed |`,
		"| RDMA Write 1 MiB, to UCX `ucp_put_bw` 1 MiB | ≥ 2.00 | – | – | – | – | **error** in 2 of 2 rounds |",
		"| Send/Recv 64 B, depth 256, messages a second | ≥ 3.00 million/s | 6.00 million/s | 6.00 million/s … 6.00 million/s | 6.00 million/s | – | **error** in 1 of 2 rounds |",
		"## Errors", "- urnic send 64: exit status 1: broken (1 of 2 rounds)", "- plot write.svg: no disk",
		"RDMA Write: bandwidth against size, CRC on: **error**, see [above](#errors)",
	)
	if err := what.failed(); err == nil {
		t.Error("the run is said to have worked")
	}
	if err := aTally().failed(); err != nil {
		t.Error(err)
	}
	if got, want := what.summary(), "13 met, 2 not met, 7 in error"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestWhatWasNotWantedIsSaidToBeNotRun(t *testing.T) {
	what := aTally()
	what.Rounds = []round{{"urnic connections, 4 at a time": what.Rounds[0]["urnic connections, 4 at a time"]}}
	what.Commands = map[string]string{"urnic connections, 4 at a time": "run it"}
	what.Plots[1].NotRun = true
	page := pageOf(t, what)
	wants(t, page,
		"| connections a second (TCP, MPA and QP), 4 at a time, to raw TCP connect and accept, 4 at a time | ≥ 0.50 | 2.00 | 2.00 … 2.00 | 40,000/s | 20,000/s | met |",
		"| Send/Recv 64 B, depth 256, messages a second | ≥ 3.00 million/s | – | – | – | – | not run |",
		"RDMA Write: bandwidth against size, CRC off: not run",
	)
}

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"--rounds", "0"}, {"--duration", "1ms"}, {"--baseline-try", "-1s"}, {"--repeat", "-1"}, {"--out", "page.txt"}, {"--only", "("}, {"now"}, {"--nope"}} {
		if o, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("%v gives %+v", args, o)
		}
	}
	if err := run(t.Context(), []string{"--only", "nobody is called so", "--out", filepath.Join(t.TempDir(), "x.md")}, io.Discard); err == nil {
		t.Error("nothing was run without an error")
	}
	if err := run(t.Context(), []string{"--render", "--out", filepath.Join(t.TempDir(), "x.md")}, io.Discard); err == nil {
		t.Error("a page was made of nothing")
	}
}

// The figures and texts of the page come from its results and templates alone.
func TestPageOfTheProjectIsMadeOfItsResults(t *testing.T) {
	const docs = "../../../docs"
	want, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	what, err := options{out: filepath.Join(docs, "performance.md"), render: true}.tally(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := pageOf(t, what); got != string(want) {
		t.Error("docs/performance.md is not what its results and templates make: run make bench-peers PEERSFLAGS=--render")
	}
}
