package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// mostRuns is how often a test is run at most, for faults of siw's.
const mostRuns = 3

// runs runs a test, and again if it fails and siw is at fault. begin is called before each run, and returns
// what looks at what the run has left, if it has failed. A failure that no fault of siw's explains, and
// that of the last run, are the test's.
func runs(t testing.TB, begin func(*trial) func() *evidence, f func(t testing.TB)) {
	t.Helper()
	for n := 1; ; n++ {
		r := &trial{TB: t}
		look := begin(r)
		r.run(f)
		switch {
		case r.skipped:
			t.SkipNow()
		case !r.Failed():
			return
		}
		fault, found, ok := recognise(look())
		if ok {
			t.Logf("run %d of at most %d: %v: %s", n, mostRuns, fault, found)
		}
		if !ok || n == mostRuns {
			r.report()
			return
		}
		t.Logf("which explains:\n%s", strings.Join(r.failures, "\n"))
	}
}

// A trial is one run of a test. It keeps failures, which need not be the test's.
type trial struct {
	testing.TB
	ctx      context.Context
	programs []func() said // those that the run has started in the guest

	mu       sync.Mutex
	failures []string
	failed   bool
	skipped  bool
	cleanups []func()
}

// run runs f, and then what is to be cleaned up, each to its end or to FailNow.
func (r *trial) run(f func(testing.TB)) {
	var end context.CancelFunc
	r.ctx, end = context.WithCancel(r.TB.Context())
	defer end()
	r.apart(func() { f(r) })
	end()
	for {
		r.mu.Lock()
		last := len(r.cleanups) - 1
		if last < 0 {
			r.mu.Unlock()
			return
		}
		cleanup := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		r.mu.Unlock()
		r.apart(cleanup)
	}
}

// apart runs f in a goroutine of its own, which FailNow ends.
func (r *trial) apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// report makes the failures the test's.
func (r *trial) report() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.TB.Errorf("%s", strings.Join(r.failures, "\n"))
}

func (r *trial) keep(text string) {
	var where []string
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if name := filepath.Base(frame.File); strings.HasSuffix(name, "_test.go") && name != "trial_test.go" {
			where = append(where, fmt.Sprintf("%s:%d", name, frame.Line))
		}
		if !more {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	if text != "" {
		r.failures = append(r.failures, strings.Join(where, " < ")+": "+text)
	}
}

// What follows is of testing.TB.

func (r *trial) Error(args ...any)                 { r.keep(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (r *trial) Errorf(format string, args ...any) { r.keep(fmt.Sprintf(format, args...)) }

func (r *trial) Fatal(args ...any) {
	r.keep(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	runtime.Goexit()
}

func (r *trial) Fatalf(format string, args ...any) {
	r.keep(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *trial) Fail() { r.keep("") }

func (r *trial) FailNow() {
	r.keep("")
	runtime.Goexit()
}

func (r *trial) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *trial) Skip(args ...any) {
	r.Log(args...)
	r.SkipNow()
}

func (r *trial) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.SkipNow()
}

func (r *trial) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *trial) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *trial) Context() context.Context {
	if r.ctx == nil { // it does not run yet
		return r.TB.Context()
	}
	return r.ctx
}

func (r *trial) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}
