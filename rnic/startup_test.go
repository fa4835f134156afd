package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/capture"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// hooks is a network that tells when something is done on the streams that are
// dialed.
type hooks struct {
	*simnet.Network
	call func(when string)
}

func (n *hooks) Dial(ctx context.Context, address string) (net.Conn, error) {
	n.call("before dialling")
	c, err := n.Network.Dial(ctx, address)
	n.call("after dialling")
	if err != nil {
		return nil, err
	}
	return &hookedConn{Conn: c.(*simnet.Conn), call: n.call}, nil
}

// hookedConn tells of what start-up does.
type hookedConn struct {
	*simnet.Conn
	call  func(when string)
	reply []byte // what there is of it
}

func (c *hookedConn) Read(b []byte) (int, error) {
	if len(c.reply) == 0 {
		c.call("before reading the Reply")
	}
	n, err := c.Conn.Read(b)
	c.reply = append(c.reply, b[:n]...)
	if _, _, parseErr := mpa.ParseFrame(c.reply); !errors.Is(parseErr, mpa.ErrIncomplete) {
		c.call("after reading the Reply")
	}
	return n, err
}

func (c *hookedConn) Write(b []byte) (int, error) {
	c.call("before writing the Request")
	n, err := c.Conn.Write(b)
	c.call("after writing the Request")
	return n, err
}

func TestLocalStartupErrorSendsTerminate(t *testing.T) {
	// The queue pair is closed when the Reply is in, but full operation has not
	// begun.
	inWorld(t, func(w *world) {
		var s *rnictest.Side
		network := &hooks{Network: &w.Network}
		network.call = func(when string) {
			if when == "after reading the Reply" {
				go func() { _ = s.QP.Close() }()
				time.Sleep(time.Nanosecond) // in a bubble, until all others wait
			}
		}
		s = w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = network })
		h, connected := w.responder(s, rnic.ConnParam{})
		h.wantBare(mpaCode(mpa.CodeLocalCatastrophic))
		if err := <-connected; !errors.Is(err, rnic.ErrClosed) {
			w.Errorf("Connect: %v; want ErrClosed", err)
		}
	})
}

// A mute connection sends the Request, and then nothing more.
type mute struct{ *simnet.Conn }

func (c mute) Writev([][]byte, bool) (int, error) { return 0, syscall.EPIPE }

// An Initiator waits until the peer has its Terminate. If it can't be sent, there is nothing
// to wait for.
func TestTerminateThatCannotBeSentIsNotWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
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
			return mute{c.(*simnet.Conn)}, nil
		}
		start := time.Now()
		connected := make(chan error)
		go func() { connected <- s.QP.ConnectVia(w.Context(), dial, rnic.ConnParam{IRD: 3}) }()
		c, err := n.Accept()
		if err != nil {
			w.Fatal(err)
		}
		h := newPeer(w, c)
		req := h.readFrame()
		reply := plainReply(&req)
		reply.PrivateData, _ = mpa.Enhanced{IRD: 3, ORD: 4}.AppendBinary(nil)
		h.frame(&reply)
		var e *mpa.Error
		if err := <-connected; !errors.As(err, &e) || e.Code != mpa.CodeInsufficientIRD {
			w.Errorf("Connect: %v", err)
		}
		if d := time.Since(start); d != 0 {
			w.Errorf("it took %v", d)
		}
	})
}

func TestStartupCanBeEndedAtEveryPoint(t *testing.T) {
	points := []string{
		"before dialling", "after dialling", "before writing the Request", "after writing the Request",
		"before reading the Reply", "after reading the Reply",
	}
	ends := map[string]struct {
		do   func(s *rnictest.Side, cancel func())
		want error
	}{
		"context": {func(_ *rnictest.Side, cancel func()) { cancel() }, context.Canceled},
		"Abort":   {func(s *rnictest.Side, _ func()) { s.QP.Abort() }, rnic.ErrAborted},
		"Close":   {func(s *rnictest.Side, _ func()) { _ = s.QP.Close() }, rnic.ErrClosed},
		"device":  {func(s *rnictest.Side, _ func()) { _ = s.Device.Close() }, rnic.ErrClosed},
	}
	for name, end := range ends {
		for _, point := range points {
			t.Run(name+" "+point, func(t *testing.T) {
				inWorld(t, func(w *world) {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					var a *rnictest.Side
					done := make(chan bool)
					network := &hooks{Network: &w.Network}
					network.call = func(when string) {
						if when == point {
							go func() {
								end.do(a, cancel)
								close(done)
							}()
							time.Sleep(time.Nanosecond) // in a bubble, until all others wait
						}
					}
					a = w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = network })
					a.Recv(w, rnic.RecvWR{ID: 1})
					b := w.side()
					l, err := b.Device.Listen(w.Context(), ":0")
					if err != nil {
						w.Fatal(err)
					}
					go func() {
						for {
							r, err := l.Accept(w.Context())
							if err != nil {
								return
							}
							_ = r.Accept(w.Context(), b.QP, rnic.ConnParam{})
						}
					}()
					start := time.Now()
					err = a.QP.Connect(ctx, l.Addr().String(), rnic.ConnParam{})
					<-done
					if d := time.Since(start); d > rnic.DefaultCloseTimeout {
						w.Errorf("it took %v", d)
					}
					// When the Reply is in, it is a matter of luck whether there is a
					// stream to be ended.
					if !errors.Is(err, end.want) && (err != nil || point != "after reading the Reply") {
						w.Errorf("Connect: %v; want %v", err, end.want)
					}
					if err != nil && name == "context" {
						wantState(w, a.QP, rnic.Idle)
						wantCompletions(w, a.RecvCQ) // what is posted waits for the next connection
					} else if name != "context" {
						wantState(w, a.QP, rnic.Error)
						wantCompletions(w, a.RecvCQ, result{1, flushed})
					}
					_ = a.QP.Close()
					_ = l.Close()
					time.Sleep(time.Minute) // the other side has noticed as well
					if s := b.QP.State(); s == rnic.RTS {
						w.Errorf("the responder is in state %v", s)
					}
					if n := b.Device.Held(pd.HalfOpen); n != 0 {
						w.Errorf("%d half-open connections are held", n)
					}
				})
			})
		}
	}
}

func TestTerminateOfAStartupTakesNoLongerThanItMay(t *testing.T) {
	// The peer never closes.
	refuse := func(f *mpa.Frame) { f.PrivateData, _ = mpa.Enhanced{IRD: 3, ORD: 99}.AppendBinary(nil) }
	inWorld(t, func(w *world) {
		s := w.side()
		start := time.Now()
		h, connected := w.responder(s, rnic.ConnParam{}, refuse)
		h.wantTerminate(mpaCode(mpa.CodeInsufficientIRD))
		<-connected
		if d := time.Since(start); d != rnic.DefaultCloseTimeout {
			w.Errorf("it took %v; want the CloseTimeout", d)
		}
	})
	inWorld(t, func(w *world) {
		s := w.side()
		start := time.Now()
		h, connected := w.responder(s, rnic.ConnParam{}, refuse)
		h.wantTerminate(mpaCode(mpa.CodeInsufficientIRD))
		s.QP.Abort()
		<-connected
		if d := time.Since(start); d != 0 {
			w.Errorf("with Abort, it took %v", d)
		}
	})
}

// A conversation is what a recording shows of one connection.
type conversation struct {
	octets [2][]byte // by side
	closed []string  // how, in order
}

func (c *conversation) Data(from capture.Side, _ capture.At, b []byte) {
	c.octets[from] = append(c.octets[from], b...)
}

func (c *conversation) Hole(capture.Side, capture.At, int) {}

func (c *conversation) Drop(capture.Side, capture.At, capture.Drop) {}

func (c *conversation) Differs(capture.Side, capture.At, int, []byte) {}

func (c *conversation) Acked(capture.Side, capture.At, int) {}

func (c *conversation) Close(from capture.Side, _ capture.At, reset bool) {
	how := map[bool]string{false: "FIN", true: "reset"}[reset]
	c.closed = append(c.closed, map[capture.Side]string{capture.Opener: "opener ", capture.Acceptor: "acceptor "}[from]+how)
}

func (c *conversation) End() {}

func TestStartupsThatComeToNothingAreRecorded(t *testing.T) {
	var file bytes.Buffer
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Record = &file })
		// As initiator: two tries, of which the second is rejected.
		l, err := w.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		connected := make(chan error, 1)
		go func() { connected <- s.QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{}) }()
		for _, answer := range []mpa.Frame{{Reply: true, Revision: 1}, {Reply: true, Revision: 1, Rejected: true}} {
			c, err := l.Accept()
			if err != nil {
				w.Fatal(err)
			}
			h := newPeer(w, c)
			h.readFrame()
			h.frame(&answer)
		}
		if err := <-connected; err == nil {
			w.Error("it was connected")
		}
		// As responder: garbage, a request that is dropped, one that is rejected,
		// one that can't be, and one that can't be accepted.
		rl := w.listen(s)
		defer rl.Close()
		w.dial(rl.Addr().String()).write([]byte("GET / HTTP/1.0\r\n\r\n"))
		synctest.Wait()
		for _, do := range []func(h *peer, r *rnic.ConnRequest) error{
			func(_ *peer, r *rnic.ConnRequest) error { return r.Close() },
			func(h *peer, r *rnic.ConnRequest) error {
				err := r.Reject(w.Context(), nil)
				h.readFrame()
				h.write([]byte("bye"))
				return err
			},
			func(h *peer, r *rnic.ConnRequest) error {
				ctx, cancel := context.WithCancel(w.Context())
				cancel()
				if r.Reject(ctx, nil) == nil {
					return errors.New("it was rejected")
				}
				return nil
			},
			func(_ *peer, r *rnic.ConnRequest) error {
				s.QP.Abort()
				if r.Accept(w.Context(), s.QP, rnic.ConnParam{}) == nil {
					return errors.New("it was accepted")
				}
				return nil
			},
		} {
			h := w.dial(rl.Addr().String())
			h.frame(&plainRequest)
			r, err := rl.Accept(w.Context())
			if err == nil {
				err = do(h, r)
			}
			if err != nil {
				w.Error(err)
			}
			h.close()
		}
	})
	r, err := capture.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*conversation
	a := capture.NewAssembler(func(*capture.Conn) capture.Consumer {
		c := new(conversation)
		all = append(all, c)
		return c
	})
	if err := a.ReadAll(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	// Bytes of the one that dialed and of the one that listened, and the end.
	want := []string{
		"24 20 [opener FIN]", "20 20 [opener FIN]", // the tries with revision 2 and 1
		"18 0 [acceptor FIN]", "20 0 [acceptor FIN]", "23 20 [opener FIN acceptor FIN]", "20 0 [acceptor FIN]", "20 0 [acceptor FIN]",
	}
	var got []string
	for _, c := range all {
		got = append(got, fmt.Sprint(len(c.octets[capture.Opener]), len(c.octets[capture.Acceptor]), c.closed))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the recording shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
