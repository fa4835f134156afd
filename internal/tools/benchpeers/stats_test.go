package main

import (
	"testing"
	"time"
)

func TestMedianIsTheMiddleValue(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{3, 1}, 2},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 100, 1, 2}, 3},
	} {
		values := append([]float64(nil), tt.values...)
		if got := median(values); got != tt.want {
			t.Errorf("the median of %v is %v; want %v", tt.values, got, tt.want)
		}
		for i := range values {
			if values[i] != tt.values[i] {
				t.Errorf("the values became %v", values)
			}
		}
	}
	if got, want := spreadOf([]float64{3, 1, 2}), (spread{2, 1, 3}); got != want {
		t.Errorf("%v; want %v", got, want)
	}
}

func TestIterationsFollowFromATrial(t *testing.T) {
	for _, tt := range []struct {
		n       int
		seconds float64
		want    int
	}{
		{1000, 1, 1000},
		{1000, 0.1, 10_000},
		{1000, 0.123, 8100},
		{10, 100, 10}, // never fewer
		{500, 0, 500}, // it does not say
	} {
		if got := iterationsFor(tt.n, tt.seconds, time.Second); got != tt.want {
			t.Errorf("%d in %v s: %d; want %d", tt.n, tt.seconds, got, tt.want)
		}
	}
}

func TestFiguresForPeople(t *testing.T) {
	for got, want := range map[string]string{
		bytesText(3.7e9):          "3.70 GB/s",
		bytesText(12.34e6):        "12.3 MB/s",
		rateText(5_123_456):       "5.12 million/s",
		rateText(300_000):         "300,000/s",
		connectText(12_345):       "12,345/s",
		connectText(345):          "345/s",
		timeText(4530):            "4.53 µs",
		memoryText(16 << 10):      "16.0 KiB",
		ratioText(0.898):          "0.90",
		allocsText(0.00049):       "0.000",
		percentText(0.034):        "3 %",
		grouped(1_000_000):        "1,000,000",
		noAllocations.String():    "0",
		atLeast(0.9).String():     "≥ 0.90",
		atMost(1.3).String():      "≤ 1.30",
		noTarget.String():         "–",
		goals[11].target.String(): "≥ 5.00 million/s",
	} {
		if got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

func TestTimesOfTheProcessors(t *testing.T) {
	before, err := parseTimes("cpu  100 10 50 800 20 0 5 15 40 0\ncpu0 1 2 3\n")
	if err != nil || before.all != 1000 || before.idle != 820 {
		t.Fatalf("%+v, %v", before, err)
	}
	for _, bad := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6", "cpu 1 2 3 x 5 6"} {
		if got, err := parseTimes(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestOthersAreWhoeverIsNeitherIdleNorOurs(t *testing.T) {
	before := watch{times{all: 1000, idle: 820}, time.Second}
	for _, tt := range []struct {
		busy float64 // ticks of 200
		ours time.Duration
		want float64
	}{
		{0, 0, 0},
		{100, 0, 0.5},
		{100, 600 * time.Millisecond, 0.2},
		{100, time.Second, 0},
		{100, 2 * time.Second, 0}, // the two clocks are not the same
	} {
		later := watch{times{all: 1200, idle: 820 + 200 - tt.busy}, before.ours + tt.ours}
		if got := before.until(later); !near(got, tt.want) {
			t.Errorf("%v ticks, ours %v: %v; want %v", tt.busy, tt.ours, got, tt.want)
		}
	}
	if got := before.until(before); got != 0 {
		t.Errorf("%v in no time", got)
	}
}
