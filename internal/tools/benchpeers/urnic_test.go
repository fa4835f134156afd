package main

import (
	"errors"
	"strings"
	"testing"
)

func perfReadings(t *testing.T, file string) []reading {
	t.Helper()
	got, err := parsePerf(recorded(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPerfTellsBandwidthBesideRawTCP(t *testing.T) {
	got := perfReadings(t, "perf_write.json")
	if len(got) != 1 || got[0].Baseline == nil {
		t.Fatalf("got %+v", got)
	}
	check(t, got[0], reading{BytesPerSecond: 4849084572, MessagesPerSecond: 4624.4, Seconds: 0.2024})
	check(t, *got[0].Baseline, reading{BytesPerSecond: 3171673404, MessagesPerSecond: 3024.7})
	if want := 4849084572.0 / 3171673404.0; !near(got[0].Ratio, want) {
		t.Errorf("the ratio is %v; want %v", got[0].Ratio, want)
	}
}

func TestPerfTellsHalfARoundTrip(t *testing.T) {
	got := perfReadings(t, "perf_send_lat.json")[0]
	check(t, got, reading{LatencyNS: 10875, MessagesPerSecond: 91943, Seconds: 0.2})
	if got.MedianNS != 9679.5 || got.Baseline.MedianNS != 5663.5 {
		t.Errorf("the medians are %v and %v", got.MedianNS, got.Baseline.MedianNS)
	}
	if !near(got.Ratio, 9679.5/5663.5) {
		t.Errorf("the ratio is %v; that of the medians is %v", got.Ratio, 9679.5/5663.5)
	}
	if got.AllocsPerOp == nil || *got.AllocsPerOp != 0 {
		t.Errorf("allocations: %v", got.AllocsPerOp)
	}
}

func TestPerfTellsWhatQueuePairsCarryAndTake(t *testing.T) {
	got := perfReadings(t, "perf_scale.json")
	if len(got) != 2 || got[0].QPs != 1 || got[1].QPs != 64 || !near(got[1].BytesPerSecond, 2775475075) {
		t.Errorf("got %+v", got)
	}
	if got := perfReadings(t, "perf_idle.json"); got[0].QPs != 9950 || !near(got[0].BytesPerQPSide, 9937) {
		t.Errorf("got %+v", got)
	}
	got = perfReadings(t, "perf_connect.json")
	if got[0].QPs != 4 || !near(got[0].ConnectionsPerSecond, 12972) || !near(got[0].Baseline.ConnectionsPerSecond, 36172) || !near(got[0].Ratio, 0.3586) {
		t.Errorf("got %+v", got)
	}
	if a := perfReadings(t, "perf_write_rate.json")[0].AllocsPerOp; a == nil || *a <= 0 || *a > noAllocations.value {
		t.Errorf("allocations: %v", a)
	}
}

func TestPerfsErrorIsTold(t *testing.T) {
	_, err := parsePerf(recorded(t, "perf_error.json"))
	if err == nil || !strings.Contains(err.Error(), "too many open files") {
		t.Errorf("got %v", err)
	}
}

func TestIdleQPsFitIntoTheOpenFiles(t *testing.T) {
	for files, want := range map[uint64]int{0: 1, 101: 1, 1024: 462, 20_000: 9_950, 20_100: 10_000, 1 << 20: 10_000} {
		if got := idleQPs(files); got != want {
			t.Errorf("with %d files: %d; want %d", files, got, want)
		}
	}
	r := row{"", atMost(16 << 10).in(idleMemory), idle("idle")}
	got := judge(r, []round{{"idle": did(perfReadings(t, "perf_idle.json")...)}})
	if got.Held != "met" || got.Ours != "9.7 KiB of 9,950 QPs" {
		t.Errorf("got %+v", got)
	}
	got = judge(r, []round{{"idle": did(reading{QPs: 462, BytesPerQPSide: 1})}})
	if len(got.Errors) != 1 || !strings.Contains(got.Errors[0], "ulimit -Hn") {
		t.Errorf("got %+v", got)
	}
}

func TestPerfTellsBothStreamsOfRawTCP(t *testing.T) {
	got := perfReadings(t, "perf_streams.json")[0]
	each, batch := got.Streams[perMessage], got.Streams[batched]
	if len(got.Streams) != 2 || each.WriteSize != 64 || each.Fastest != 0 || batch.WriteSize < 64<<10 || batch.ReadSize < 64<<10 {
		t.Errorf("%+v", got.Streams)
	}
	if batch.Slowest <= 0 || batch.Slowest > batch.Fastest {
		t.Errorf("tries from %v to %v", batch.Slowest, batch.Fastest)
	}
	for kind, s := range got.Streams {
		if !near(s.Ratio, got.MessagesPerSecond/s.MessagesPerSecond) {
			t.Errorf("%s: the ratio is %v", kind, s.Ratio)
		}
	}
	if got.Ratio != each.Ratio {
		t.Errorf("the ratio is %v, and that to a write for each message %v", got.Ratio, each.Ratio)
	}
	// Of a run by a urnic that had one baseline, the rows are not run.
	if _, err := toStream("x", batched, messageRate)(round{"x": did(perfReadings(t, "perf_write.json")...)}); !errors.Is(err, errNotRun) {
		t.Errorf("%v", err)
	}
	if _, err := toStream("x", "other", messageRate)(round{"x": did(got)}); err == nil || errors.Is(err, errNotRun) {
		t.Errorf("%v", err)
	}
}
