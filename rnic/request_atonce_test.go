package rnic_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/door"
	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A request that is answered at once costs no goroutine that watches it.
func TestRequestAnsweredAtOnceHasNoWatcher(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l := w.listen(s)
		h := w.ask(l)
		synctest.Wait()
		before := goroutines()
		r := w.request(l)
		synctest.Wait()
		if n := goroutines(); n != before {
			w.Errorf("%d goroutines after Accept; %d before", n, before)
		}
		if err := r.Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
			w.Fatal(err)
		}
		synctest.Wait()
		if n := goroutines(); n != before+1 { // that of the queue pair
			w.Errorf("%d goroutines once it is accepted; want %d", n, before+1)
		}
		time.Sleep(time.Second) // nor does one come later
		synctest.Wait()
		if n := goroutines(); n != before+1 {
			w.Errorf("%d goroutines a second later; want %d", n, before+1)
		}
		h.readFrame()
		// One that is not answered is watched.
		w.ask(l)
		synctest.Wait()
		before = goroutines()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := goroutines(); n != before+1 {
			w.Errorf("%d goroutines watch a request that waits", n-before)
		}
	})
}

// What the peer does within the first millisecond, in which nobody watches, is
// found when the request is accepted, or answered.
func TestPeerThatGoesBeforeItIsWatchedIsPassedOver(t *testing.T) {
	for name, going := range goings {
		for _, age := range []time.Duration{0, 500 * time.Microsecond, time.Millisecond - 1, time.Millisecond, 1500 * time.Microsecond} {
			t.Run(name+", after "+age.String(), func(t *testing.T) {
				inWorld(t, func(w *world) {
					s := w.side()
					l := w.listen(s)
					gone := w.ask(l)
					synctest.Wait() // it is the first one in the queue
					second := w.ask(l)
					synctest.Wait()
					time.Sleep(age)
					going.do(gone)
					synctest.Wait()
					r := w.request(l)
					if err := r.Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
						w.Fatalf("the peer that has stayed: %v", err)
					}
					second.readFrame()
					synctest.Wait()
					if c := s.Device.Counters(); c.Dropped != 1 || c.Accepted != 1 {
						w.Errorf("%d dropped, %d accepted", c.Dropped, c.Accepted)
					}
					// Gone between Accept and the answer.
					gone = w.ask(l)
					r = w.request(l)
					time.Sleep(age)
					going.do(gone)
					synctest.Wait()
					q := newQP(w, s.Device, s.PD, rnic.QPAttr{})
					wantRefused(w, "accept", r.Accept(w.Context(), q.QP, rnic.ConnParam{}), nil, going.says)
					synctest.Wait()
					if c := s.Device.Counters(); c.Dropped != 2 || c.Accepted != 1 || q.QP.State() != rnic.Idle {
						w.Errorf("%d dropped, %d accepted; the queue pair is %v", c.Dropped, c.Accepted, q.QP.State())
					}
				})
			})
		}
	}
}

// Waiting looks at the connection too, while nobody watches it. What it has found stays: the
// request is dropped, once, and can't be answered.
func TestWaitingFindsThatThePeerHasGone(t *testing.T) {
	for name, going := range goings {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				l := w.listen(s)
				h := w.ask(l)
				r := w.request(l)
				going.do(h)
				for range 3 {
					if door.Waiting(r) {
						w.Error("it waits")
					}
					synctest.Wait()
				}
				wantRefused(w, "accept", r.Accept(w.Context(), s.QP, rnic.ConnParam{}), nil, going.says)
				if c := s.Device.Counters(); c.Dropped != 1 {
					w.Errorf("%d dropped; want 1", c.Dropped)
				}
			})
		})
	}
}

// A tardy connection takes its time until it notices that a deadline has passed.
type tardy struct {
	*simnet.Conn
	notices chan struct{} // closed when it does
}

func (c *tardy) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		<-c.notices
	}
	return n, err
}

// The Reply lets the peer send. It leaves when nobody watches the connection any more: what
// watches would take the peer's first bytes.
func TestReplyLeavesWhenTheConnectionIsNotWatched(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		notices := make(chan struct{})
		l := w.listenWrapped(s, func(c *simnet.Conn) net.Conn { return &tardy{c, notices} })
		h := w.ask(l)
		r := w.request(l)
		time.Sleep(2 * time.Millisecond) // until it is watched
		accepted := make(chan error)
		go func() { accepted <- r.Accept(w.Context(), s.QP, rnic.ConnParam{}) }()
		h.quiet()
		close(notices)
		if err := <-accepted; err != nil {
			w.Fatal(err)
		}
		reply := h.readFrame()
		h.full(&plainRequest, &reply)
		s.Recv(w, receives(1, 1)...)
		h.send(sendSeg(""))
		wantCompletions(w, s.RecvCQ, result{1, ok})
	})
}

// The same over TCP, where a look takes what is in the socket.
func TestPeerThatGoesAtOnceIsPassedOverOverTCP(t *testing.T) {
	leakcheck.Check(t)
	for _, s := range []*rnictest.Side{tcpSide(t, "B", nil), inPieces(t, 9).B} {
		for range 10 {
			l, err := s.Device.Listen(t.Context(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			first := newPeer(t, c)
			first.frame(&plainRequest)
			r, err := l.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = c.(*net.TCPConn).SetLinger(0) // resets
			_ = c.Close()
			q := newQP(t, s.Device, s.PD, rnic.QPAttr{})
			// The reset may come a little later than the answer: then it is the stream that
			// fails.
			if err := r.Accept(t.Context(), q.QP, rnic.ConnParam{}); err == nil {
				if err := q.QP.Disconnect(t.Context()); err == nil {
					t.Error("a peer that has gone closes gracefully")
				}
			} else {
				wantRefused(t, "accept", err, nil)
			}
			if err := q.QP.Close(); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := s.Device.Close(); err != nil {
			t.Error(err)
		}
	}
}
