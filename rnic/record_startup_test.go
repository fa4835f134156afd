package rnic_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// The endpoints of the connections in these recordings.
var (
	here  = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4791}
	there = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 50000}
)

// lastRecorded closes a device and returns the endpoints of the last connection in its
// recording, the client first.
func lastRecorded(t testing.TB, d *rnic.Device, file *bytes.Buffer) [2]string {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	result, err := dissect.Analyze(t.Context(), r, func(*dissect.Event) error { return nil })
	if err != nil || len(result.Connections) == 0 {
		t.Fatalf("%v; %d connections", err, len(result.Connections))
	}
	return result.Connections[len(result.Connections)-1].Addr
}

// failures are ways in which a request comes to nothing while the peer keeps its end of
// the connection open.
var failures = map[string]func(w *world, s *rnictest.Side, l *rnic.Listener){
	"it is no Request": func(w *world, _ *rnictest.Side, l *rnic.Listener) {
		w.dial(l.Addr().String()).write([]byte("GET / HTTP/1.1\r\n\r\n"))
	},
	"nobody answers": func(w *world, _ *rnictest.Side, l *rnic.Listener) {
		w.ask(l)
		w.request(l)
		time.Sleep(rnic.DefaultAnswerTimeout)
	},
	"it is dropped": func(w *world, _ *rnictest.Side, l *rnic.Listener) {
		w.ask(l)
		if err := w.request(l).Close(); err != nil {
			w.Error(err)
		}
	},
	"it is rejected": func(w *world, _ *rnictest.Side, l *rnic.Listener) {
		w.ask(l)
		if err := w.request(l).Reject(w.Context(), nil); err != nil {
			w.Error(err)
		}
		time.Sleep(rnic.DefaultCloseTimeout)
	},
	"it can't be rejected": func(w *world, _ *rnictest.Side, l *rnic.Listener) {
		w.ask(l)
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		wantRefused(w, "reject", w.request(l).Reject(ctx, nil), context.Canceled)
	},
	"the queue pair is in use": func(w *world, s *rnictest.Side, l *rnic.Listener) {
		s.QP.Abort()
		w.ask(l)
		wantRefused(w, "accept", w.request(l).Accept(w.Context(), s.QP, rnic.ConnParam{}), rnic.ErrNotIdle)
		if n := s.Device.Counters().Failed; n != 1 {
			w.Errorf("%d start-ups are counted as failed; want 1", n)
		}
	},
	"the peer takes too few Reads": func(w *world, s *rnictest.Side, l *rnic.Listener) {
		w.dial(l.Addr().String()).frame(&enhancedRequest)
		wantRefused(w, "accept", w.request(l).Accept(w.Context(), s.QP, rnic.ConnParam{MinORD: 4}), nil)
		if n := s.Device.Counters().Failed; n != 1 {
			w.Errorf("%d start-ups are counted as failed; want 1", n)
		}
	},
}

// Once a device has closed a connection that has come to nothing, the peer may use the same
// endpoints again: the recording then shows the new connection with its own addresses.
func TestRequestThatFailsGivesUpItsEndpointsInTheRecording(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var file bytes.Buffer
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Record = &file })
				l := w.listenWrapped(s, func(c *simnet.Conn) net.Conn { return &named{c, here, there} })
				fail(w, s, l)
				synctest.Wait()
				h := w.ask(l)
				q := newQP(w, s.Device, s.PD, rnic.QPAttr{})
				if err := w.request(l).Accept(w.Context(), q.QP, rnic.ConnParam{}); err != nil {
					w.Fatal(err)
				}
				h.readFrame()
				if got := lastRecorded(w, s.Device, &file); got != [2]string{there.String(), here.String()} {
					w.Errorf("the second connection is recorded as one from %s to %s; want %v and %v", got[0], got[1], there, here)
				}
			})
		})
	}
}

// The same for connections that the device opens: of a first try with revision 2, to a peer
// that knows revision 1 only, and of one that gets no Reply.
func TestConnectThatFailsGivesUpItsEndpointsInTheRecording(t *testing.T) {
	for name, fail := range map[string]func(w *world, h *peer){
		"revision 1 in the Reply": func(_ *world, h *peer) { h.frame(&mpa.Frame{Reply: true, Revision: mpa.Revision1}) },
		"no Reply":                func(*world, *peer) { time.Sleep(mpa.DefaultReplyTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var file bytes.Buffer
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Record = &file })
				n, err := w.Listen(w.Context(), ":0")
				if err != nil {
					w.Fatal(err)
				}
				defer n.Close()
				dial := func(ctx context.Context) (net.Conn, error) {
					c, err := w.Dial(ctx, n.Addr().String())
					if err != nil {
						return nil, err
					}
					return &named{c.(*simnet.Conn), here, there}, nil
				}
				connected := make(chan error)
				go func() {
					err := s.QP.ConnectVia(w.Context(), dial, rnic.ConnParam{})
					if err != nil { // nobody answered
						err = s.QP.ConnectVia(w.Context(), dial, rnic.ConnParam{})
					}
					connected <- err
				}()
				next := func() (*peer, mpa.Frame) {
					c, err := n.Accept()
					if err != nil {
						w.Fatal(err)
					}
					h := newPeer(w, c)
					return h, h.readFrame()
				}
				h, _ := next()
				fail(w, h)
				h, f := next()
				reply := plainReply(&f)
				h.frame(&reply)
				if err := <-connected; err != nil {
					w.Fatal(err)
				}
				if got := lastRecorded(w, s.Device, &file); got != [2]string{here.String(), there.String()} {
					w.Errorf("the second connection is recorded as one from %s to %s; want %v and %v", got[0], got[1], here, there)
				}
			})
		})
	}
}

// A recording tells how a peer takes it that it is rejected.
func TestRecordingShowsHowARejectedConnectionEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(h *peer)
		want []string
	}{
		"the peer closes": {(*peer).close, []string{"client FIN", "server FIN"}},
		"the peer resets": {(*peer).reset, []string{"client RST"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var file bytes.Buffer
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Record = &file })
				l := w.listen(s)
				h := w.ask(l)
				if err := w.request(l).Reject(w.Context(), nil); err != nil {
					w.Fatal(err)
				}
				h.readFrame()
				tt.end(h)
				synctest.Wait()
				if err := s.Device.Close(); err != nil {
					w.Fatal(err)
				}
				if got := recordedEnd(w, file.Bytes()); !slices.Equal(got, tt.want) {
					w.Errorf("the recording shows %q; want %q", got, tt.want)
				}
			})
		})
	}
}
