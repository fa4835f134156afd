package rnic_test

import (
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A roster is a context that knows who waits for its end.
type roster struct {
	context.Context
	done chan struct{}

	mu   sync.Mutex
	last int
	who  map[int]func()
}

func newRoster() *roster {
	return &roster{Context: context.Background(), done: make(chan struct{}), who: map[int]func(){}}
}

func (r *roster) Done() <-chan struct{} { return r.done }

// AfterFunc is what package context looks for.
func (r *roster) AfterFunc(f func()) (stop func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	n := r.last
	r.who[n] = f
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, waits := r.who[n]
		delete(r.who, n)
		return waits
	}
}

func (r *roster) want(t testing.TB, what string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == 0 || len(r.who) != 0 {
		t.Errorf("%s: of %d that waited for the context's end, %d are left", what, r.last, len(r.who))
	}
}

// A program may make all its connections with one context that lives as long as it does: they
// leave nothing behind there.
func TestStartupLeavesNothingWithItsContext(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		l := w.listen(b)
		connecting, accepting, rejecting := newRoster(), newRoster(), newRoster()
		connected := make(chan error)
		connect := func() {
			go func() { connected <- a.QP.Connect(connecting, l.Addr().String(), rnic.ConnParam{}) }()
		}
		connect()
		if err := w.request(l).Reject(rejecting, nil); err != nil {
			w.Error(err)
		}
		if err := <-connected; err == nil {
			w.Error("Connect succeeds though it is rejected")
		}
		rejecting.want(w, "Reject")
		connecting.want(w, "Connect that fails")
		connect()
		if err := w.request(l).Accept(accepting, b.QP, rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
		if err := <-connected; err != nil {
			w.Error(err)
		}
		accepting.want(w, "Accept")
		connecting.want(w, "Connect")
	})
}

// A device that lives long keeps nothing of the connections that have ended.
func TestDeviceKeepsNothingOfRequestsThatAreOver(t *testing.T) {
	for name, end := range map[string]func(w *world, s *rnictest.Side, l *rnic.Listener, h *peer){
		"rejected": func(w *world, _ *rnictest.Side, l *rnic.Listener, h *peer) {
			if err := w.request(l).Reject(w.Context(), nil); err != nil {
				w.Error(err)
			}
			h.readFrame()
			h.close()
		},
		"dropped": func(w *world, _ *rnictest.Side, l *rnic.Listener, _ *peer) {
			if err := w.request(l).Close(); err != nil {
				w.Error(err)
			}
		},
		"not answered": func(w *world, _ *rnictest.Side, l *rnic.Listener, _ *peer) {
			w.request(l)
			time.Sleep(rnic.DefaultAnswerTimeout)
		},
		"passed over": func(w *world, _ *rnictest.Side, l *rnic.Listener, h *peer) {
			synctest.Wait()
			h.close()
			wantNoRequest(w, l)
		},
		"accepted, and closed": func(w *world, s *rnictest.Side, l *rnic.Listener, _ *peer) {
			q := newQP(w, s.Device, s.PD, rnic.QPAttr{})
			if err := w.request(l).Accept(w.Context(), q.QP, rnic.ConnParam{}); err != nil {
				w.Error(err)
			}
			if err := q.QP.Close(); err != nil {
				w.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				var kept weak.Pointer[named]
				l := w.listenWrapped(s, func(c *simnet.Conn) net.Conn {
					n := &named{c, here, there}
					kept = weak.Make(n)
					return n
				})
				end(w, s, l, w.ask(l))
				time.Sleep(time.Second) // timers that were stopped stay with the runtime until they are due
				for range 2 {           // what is in a sync.Pool survives the first
					runtime.GC()
				}
				if kept.Value() != nil {
					w.Error("the device keeps the connection")
				}
			})
		})
	}
}
