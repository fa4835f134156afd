package rnic_test

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// ask dials a listener and sends a Request.
func (w *world) ask(l *rnic.Listener) *peer {
	w.Helper()
	h := w.dial(l.Addr().String())
	h.frame(&plainRequest)
	return h
}

// request returns the next request of a listener.
func (w *world) request(l *rnic.Listener) *rnic.ConnRequest {
	w.Helper()
	r, err := l.Accept(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// wantClosed checks that the RNIC has closed the connection without a word.
func (h *peer) wantClosed(what string) {
	_ = h.conn.SetReadDeadline(time.Now().Add(time.Microsecond))
	if _, err := h.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		h.Errorf("%s: the peer reads: %v; want the end", what, err)
	}
}

// open checks that the connection is there, and silent.
func (h *peer) open() {
	_ = h.conn.SetReadDeadline(time.Now().Add(time.Microsecond))
	if _, err := h.conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		h.Errorf("the peer reads: %v; want nothing", err)
	}
}

// wantNoRequest checks that nothing waits to be accepted.
func wantNoRequest(t testing.TB, l *rnic.Listener) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
	defer cancel()
	if r, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Accept: %v, %v; want that there is nothing", r, err)
	}
}

func TestRequestsThatNobodyAcceptsStarveNoOtherListener(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits[pd.HalfOpen] = 8 })
		idle := w.listen(s)
		for range 20 {
			w.ask(idle)
		}
		synctest.Wait()
		if n := s.Device.Held(pd.HalfOpen); n != 0 {
			w.Errorf("%d connections are half open; all Requests are in", n)
		}
		start := time.Now()
		w.connect(w.side(), s)
		if d := time.Since(start); d != 0 {
			w.Errorf("a connection to another listener took %v", d)
		}
	})
}

// goings are ways in which a peer spoils a request before it is answered, with
// what the verbs say then.
var goings = map[string]struct {
	do   func(h *peer)
	says string
}{
	"closes":         {(*peer).close, "has closed"},
	"closes a half":  {(*peer).closeWrite, "has closed"},
	"resets":         {(*peer).reset, "has closed"},
	"sends too soon": {func(h *peer) { h.write([]byte("x")) }, "before the Reply"},
}

func TestAcceptPassesOverRequestsWhosePeersHaveGone(t *testing.T) {
	for name, going := range goings {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				l := w.listen(s)
				for range 200 { // more than the queue has places
					h := w.ask(l)
					synctest.Wait()
					going.do(h)
					time.Sleep(2 * time.Millisecond) // until it is watched
				}
				h := w.ask(l)
				if err := w.request(l).Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
					w.Errorf("the peer that has stayed: %v", err)
				}
				h.readFrame()
				wantNoRequest(w, l)
				if c := s.Device.Counters(); c.Dropped != 200 || c.Accepted != 1 || c.Failed != 0 {
					w.Errorf("counters %+v", c)
				}
			})
		})
	}
}

func TestRequestWhosePeerHasGoneCannotBeAnswered(t *testing.T) {
	for name, going := range goings {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				l := w.listen(s)
				for _, when := range []string{"at once", "later"} {
					for verb, answer := range map[string]func(r *rnic.ConnRequest) error{
						"Accept": func(r *rnic.ConnRequest) error { return r.Accept(w.Context(), s.QP, rnic.ConnParam{}) },
						"Reject": func(r *rnic.ConnRequest) error { return r.Reject(w.Context(), nil) },
					} {
						h := w.ask(l)
						r := w.request(l)
						going.do(h)
						if when == "later" {
							synctest.Wait()
						}
						// At once, it is not sure what is seen first.
						if err := answer(r); when == "later" {
							wantRefused(w, verb, err, nil, "request of", going.says)
						} else if err == nil && verb == "Accept" {
							s.QP.Abort()
						}
						if err := r.Close(); err != nil {
							w.Errorf("Close after %s: %v", verb, err)
						}
						synctest.Wait()
						_ = s.QP.Reset()
						wantState(w, s.QP, rnic.Idle)
						h.close()
					}
				}
			})
		})
	}
}

func TestRequestIsDroppedThatNobodyAnswersInTime(t *testing.T) {
	for name, limit := range map[string]time.Duration{"default": 0, "as configured": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.AnswerTimeout = limit })
				l := w.listen(s)
				if limit == 0 {
					limit = rnic.DefaultAnswerTimeout
				}
				first, second := w.ask(l), w.ask(l)
				taken := w.request(l)
				synctest.Wait()
				time.Sleep(limit - time.Millisecond)
				first.quiet()
				second.quiet()
				time.Sleep(time.Millisecond)
				synctest.Wait()
				first.wantClosed("the one that Accept has returned")
				second.wantClosed("the one in the queue")
				wantNoRequest(w, l)
				wantRefused(w, "Accept", taken.Accept(w.Context(), s.QP, rnic.ConnParam{}), nil, "not answered in time", "AnswerTimeout")
				wantState(w, s.QP, rnic.Idle)
				if c := s.Device.Counters(); c.Dropped != 2 {
					w.Errorf("counters %+v", c)
				}
			})
		})
	}
}

func TestConnectionOutlivesTheTimeToAnswerItsRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l := w.listen(s)
		h := w.ask(l)
		r := w.request(l)
		time.Sleep(rnic.DefaultAnswerTimeout - time.Millisecond)
		if err := r.Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
			w.Fatal(err)
		}
		reply := h.readFrame()
		h.full(&plainRequest, &reply)
		time.Sleep(time.Hour)
		wantState(w, s.QP, rnic.RTS)
		s.Recv(w, receives(1, 1)...)
		h.send(sendSeg(""))
		wantCompletions(w, s.RecvCQ, result{1, rnic.StatusSuccess})
	})
}

func TestListenerWhoseQueueIsFullDropsFurtherRequests(t *testing.T) {
	inWorld(t, func(w *world) {
		const places = 128
		s := w.side()
		l := w.listen(s)
		for range places {
			w.ask(l)
		}
		synctest.Wait()
		late := w.ask(l)
		synctest.Wait()
		late.wantClosed("a request too many")
		if c := s.Device.Counters(); c.Dropped != 1 {
			w.Errorf("counters %+v", c)
		}
		for range places {
			if err := w.request(l).Close(); err != nil {
				w.Error(err)
			}
		}
		w.ask(l) // there is room again
		if err := w.request(l).Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
	})
}

var enhancedRequest = func() mpa.Frame {
	f := plainRequest
	enhanced(mpa.Enhanced{IRD: 1, ORD: 1})(&f)
	return f
}()

func TestAnswerWithMoreThanFitsLeavesTheRequestToBeAnswered(t *testing.T) {
	accept := func(r *rnic.ConnRequest, s *rnictest.Side, b []byte) error {
		return r.Accept(context.Background(), s.QP, rnic.ConnParam{PrivateData: b})
	}
	acceptRevision1 := func(r *rnic.ConnRequest, s *rnictest.Side, b []byte) error {
		return r.Accept(context.Background(), s.QP, rnic.ConnParam{PrivateData: b, MPA: &mpa.Config{Revision: mpa.Revision1}})
	}
	reject := func(r *rnic.ConnRequest, _ *rnictest.Side, b []byte) error { return r.Reject(context.Background(), b) }
	const most = mpa.MaxPrivateData
	for _, tt := range []struct {
		name    string
		request mpa.Frame
		answer  func(r *rnic.ConnRequest, s *rnictest.Side, b []byte) error
		fits    int
	}{
		{"accept", plainRequest, accept, most},
		{"accept with revision 1", plainRequest, acceptRevision1, most},
		{"accept enhanced", enhancedRequest, accept, most - mpa.EnhancedLen},
		{"reject", plainRequest, reject, most},
		{"reject enhanced", enhancedRequest, reject, most - mpa.EnhancedLen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				l := w.listen(s)
				h := w.dial(l.Addr().String())
				h.frame(&tt.request)
				r := w.request(l)
				err := tt.answer(r, s, make([]byte, tt.fits+1))
				wantRefused(w, "one octet too many", err, nil, "private data")
				if config := (*mpa.ConfigError)(nil); !errors.As(err, &config) {
					w.Errorf("%T", err)
				}
				if err := tt.answer(r, s, make([]byte, tt.fits)); err != nil {
					w.Errorf("as much as fits: %v", err)
				}
				if f := h.readFrame(); len(f.ULPData()) != tt.fits {
					w.Errorf("the Reply has %d octets", len(f.ULPData()))
				}
				h.close()
			})
		})
	}
}

// Of rejected connections, no more are kept open than may be half open.
func TestRejectedConnectionsAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits[pd.HalfOpen] = 3 })
		l := w.listen(s)
		reject := func() *peer {
			h := w.ask(l)
			if err := w.request(l).Reject(w.Context(), nil); err != nil {
				w.Fatal(err)
			}
			if !h.readFrame().Rejected {
				w.Error("the peer was not rejected")
			}
			return h
		}
		start := time.Now()
		kept := []*peer{reject(), reject(), reject()}
		synctest.Wait()
		reject().wantClosed("one too many")
		for _, h := range kept {
			h.open()
		}
		kept[0].close()
		synctest.Wait()
		reject().open() // there is room again
		if d := time.Since(start); d > time.Millisecond {
			w.Errorf("it took %v", d)
		}
	})
}
