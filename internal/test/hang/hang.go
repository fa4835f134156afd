package hang

import (
	"runtime"
	"testing"
	"time"
)

// limit is far more than a test takes that does not hang, on a slow machine too.
const limit = time.Minute

// Guard makes t fail if stop is not called within a minute. It then shows the goroutines, and
// calls release, which must end what the test waits for. After stop, release is not called.
func Guard(t testing.TB, release func()) (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-stopped:
		case <-timer.C:
			stacks := make([]byte, 1<<20)
			t.Errorf("the test hangs after %v:\n%s", limit, stacks[:runtime.Stack(stacks, true)])
			release()
		}
	}()
	return func() {
		close(stopped)
		<-ended // a test that is over may not be told that it hangs
	}
}
