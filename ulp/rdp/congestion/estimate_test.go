package congestion

import (
	"testing"
	"time"
)

// RFC 6298 §2.2, 2.3: the first sample gives R and R/2, the next ones move by 1/8 and 1/4.
func TestEstimate(t *testing.T) {
	var e estimate
	if e.timeout() != time.Second {
		t.Errorf("without samples the timeout is %v", e.timeout())
	}
	for _, c := range []struct{ sample, smoothed, variation, timeout time.Duration }{
		{800, 800, 400, 2400},
		{0, 800, 400, 2400}, // none
		{-5, 800, 400, 2400},
		{1600, 900, 500, 2900},
		{100, 800, 575, 3100},
	} {
		e.sample(c.sample * time.Millisecond)
		if e.smoothed != c.smoothed*time.Millisecond || e.variation != c.variation*time.Millisecond || e.timeout() != c.timeout*time.Millisecond {
			t.Errorf("%v: %v, %v and %v, not %+v", c.sample, e.smoothed, e.variation, e.timeout(), c)
		}
	}
}

func TestInitialWindow(t *testing.T) {
	for _, c := range []struct{ bytes, want int }{
		{-1, 10}, {0, 10}, {536, 10}, {1460, 10}, {1461, 9}, {2920, 5}, {4380, 3}, {7300, 2}, {8960, 2}, {65489, 2},
	} {
		if got := InitialWindow(c.bytes); got != c.want {
			t.Errorf("%d bytes: %d segments, not %d", c.bytes, got, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	want := Config{InitialWindow: 10, MaxWindow: 65535, Threshold: 65535, PerAck: 2}
	for _, c := range []Config{{}, {-1, -1, -1, -1}, {0, 1 << 30, 0, 0}} {
		if got := c.withDefaults(); got != want {
			t.Errorf("%+v becomes %+v", c, got)
		}
	}
	if got := (Config{MaxWindow: 1}).withDefaults(); got != (Config{1, 1, 2, 2}) {
		t.Errorf("with one segment at most: %+v", got)
	}
}
