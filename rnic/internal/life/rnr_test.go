package life

import (
	"testing"
	"time"
)

func TestRNR(t *testing.T) {
	type look struct {
		at          time.Duration
		ready       bool
		wait, first bool
		left        time.Duration
	}
	for name, c := range map[string]struct {
		limit time.Duration
		looks []look
	}{
		"a receive is there": {time.Second, []look{{0, true, false, false, 0}}},
		"no wait at all":     {0, []look{{0, false, false, false, 0}, {1, false, false, false, 0}}},
		"it comes":           {10, []look{{5, false, true, true, 10}, {9, false, true, false, 6}, {14, true, false, false, 0}}},
		"it does not come":   {10, []look{{5, false, true, true, 10}, {14, false, true, false, 1}, {15, false, false, false, 0}, {16, false, false, false, 0}}},
		"the next one waits its own time": {10, []look{
			{0, false, true, true, 10}, {9, true, false, false, 0}, {11, false, true, false, 10}, {20, false, true, false, 1}, {21, false, false, false, 0},
		}},
	} {
		r := RNR{Limit: c.limit}
		begin := time.Unix(1000, 0)
		for i, l := range c.looks {
			now := begin.Add(l.at)
			if wait, first := r.Waits(l.ready, now); wait != l.wait || first != l.first {
				t.Errorf("%s: look %d: wait %v, the first: %v", name, i, wait, first)
			}
			if left := r.Left(now); left != l.left {
				t.Errorf("%s: look %d: %v are left, want %v", name, i, left, l.left)
			}
		}
	}
}
