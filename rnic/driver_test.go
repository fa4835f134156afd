package rnic_test

import (
	"context"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// polled is a network in memory that can be polled.
var polled = rnictest.Options{Polls: true}

// A witness sees by whom the messages are received that come to one side.
type witness struct {
	mu sync.Mutex
	by map[string]int // messages, by receiver
}

// options makes side B tell the witness.
func (w *witness) options(o rnictest.Options) rnictest.Options {
	o.Device = func(name string, cfg *rnic.Config) {
		if name == "B" {
			cfg.Trace = w.see
		}
	}
	return o
}

func (w *witness) see(t rnic.Trace) {
	if t.Sent {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]int{}
	}
	w.by[caller()]++
}

// caller tells by whose call the hook was reached.
func caller() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for {
		f, more := frames.Next()
		switch {
		case strings.HasSuffix(f.Function, "rnic.(*CQ).Wait"):
			return "Wait"
		case strings.HasSuffix(f.Function, "rnic.(*CQ).Poll"):
			return "Poll"
		case strings.HasSuffix(f.Function, "rnic.(*link).Receive"):
			return "goroutine"
		}
		if !more {
			return "nobody knows"
		}
	}
}

// want checks who has received since the last look.
func (w *witness) want(t *testing.T, want map[string]int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !maps.Equal(w.by, want) {
		t.Errorf("messages were received by %v; want %v", w.by, want)
	}
	clear(w.by)
}

// wantReceiver checks who has the role once all has come to rest.
func wantReceiver(t *testing.T, q *rnic.QP, want string) {
	t.Helper()
	synctest.Wait()
	if got := rnic.Receiver(q); got != want {
		t.Errorf("the receiver is %q; want %q", got, want)
	}
}

// A waiting program waits for one completion, in the background.
type waitingProgram struct {
	wc   rnic.WC
	err  error
	done chan struct{}
}

func waits(ctx context.Context, cq *rnic.CQ) *waitingProgram {
	p := &waitingProgram{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		var wcs [1]rnic.WC
		_, p.err = cq.Wait(ctx, wcs[:])
		p.wc = wcs[0]
	}()
	return p
}

func (p *waitingProgram) isDone() bool {
	synctest.Wait()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *waitingProgram) stillWaits(t *testing.T) {
	t.Helper()
	if p.isDone() {
		t.Errorf("the program has got request %d, %v", p.wc.ID, p.err)
	}
}

// want waits for the completion, which must be a success of that request.
func (p *waitingProgram) want(t *testing.T, id uint64) {
	t.Helper()
	if !p.isDone() {
		t.Fatalf("request %d: the program still waits", id)
	}
	if p.err != nil || p.wc.ID != id || p.wc.Status != rnic.StatusSuccess {
		t.Errorf("completion of request %d: %v, %v; want %d", p.wc.ID, p.wc.Err(), p.err, id)
	}
}

// drives makes a program wait at a queue of B, and B's only link is driven by it.
func drives(ctx context.Context, t *testing.T, q *rnic.QP, cq *rnic.CQ) *waitingProgram {
	t.Helper()
	w := waits(ctx, cq)
	wantReceiver(t, q, "driver")
	return w
}

// freed makes nobody be the receiver of a queue pair: its program has polled.
func freed(t *testing.T, q *rnic.QP, cq *rnic.CQ) {
	t.Helper()
	spin(cq)
	wantReceiver(t, q, "nobody")
}

// spin polls in vain so often that it is taken for a program that spins.
func spin(cq *rnic.CQ) {
	var wcs [1]rnic.WC
	for range 100 {
		cq.Poll(wcs[:])
	}
	synctest.Wait()
}
