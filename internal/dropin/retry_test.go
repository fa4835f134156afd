//go:build linux

package dropin

import (
	"testing"
	"time"
)

func TestReceiveWait(t *testing.T) {
	times := defaultTimes()
	for _, test := range []struct {
		retries int
		timer   uint32
		want    time.Duration
	}{
		{unknownRetries, 0, 30 * time.Second},
		{0, 0, time.Second},
		{0, 31, time.Second},
		{1, 0, time.Second},
		{2, 0, 1310720 * time.Microsecond},
		{6, 0, 3932160 * time.Microsecond},
		{1, 1, time.Second},
		{6, 15, time.Second},
		{6, 31, 2949120 * time.Microsecond},
		{3, 30, time.Second},
		{6, 30, 1966080 * time.Microsecond},
	} {
		if got := times.receiveWait(test.retries, test.timer); got != test.want {
			t.Errorf("rnr_retry %d, min_rnr_timer %d: %v; want %v", test.retries, test.timer, got, test.want)
		}
	}
	if got := times.receiveWait(7, 1); got < 100*365*24*time.Hour {
		t.Errorf("rnr_retry 7: %v; want no end", got)
	}
}
