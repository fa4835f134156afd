//go:build linux

package dropin

import (
	"testing"
	"time"
)

func TestSettleIsATime(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "0": 0, "300ms": 300 * time.Millisecond} {
		s, err := parseSettings([]string{"URNIC_SETTLE=" + value})
		if err != nil || s.settle != want {
			t.Errorf("%q: %v, %v; want %v", value, s.settle, err, want)
		}
	}
	for _, bad := range []string{"-1s", "3", "soon"} {
		if s, err := parseSettings([]string{"URNIC_SETTLE=" + bad}); err == nil {
			t.Errorf("%q is taken for %v", bad, s.settle)
		}
	}
}
