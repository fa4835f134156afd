package hang

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A recorder stands for a test that is guarded.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestTestThatHangsFailsAndIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, released := &recorder{TB: t}, make(chan struct{})
		stop := Guard(r, func() { close(released) })
		<-released
		stop()
		if len(r.errors) != 1 || !strings.Contains(r.errors[0], "TestTestThatHangsFailsAndIsReleased") {
			t.Errorf("errors: %q", r.errors)
		}
	})
}

func TestTestThatEndsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		stop := Guard(r, func() { t.Error("released") })
		time.Sleep(limit - 1)
		stop()
		time.Sleep(2 * limit)
		if len(r.errors) != 0 {
			t.Errorf("errors: %q", r.errors)
		}
	})
}
