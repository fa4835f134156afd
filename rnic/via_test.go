package rnic_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A program that has sockets of its own gives them to the device.
func TestConnectionsOverTheCallersOwnSockets(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		n, err := w.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		l, err := b.Device.ListenOn(n)
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		if l.Addr().String() != n.Addr().String() {
			w.Errorf("it listens at %v; want %v", l.Addr(), n.Addr())
		}
		accepted := make(chan error, 1)
		go func() {
			r, err := l.Accept(w.Context())
			if err == nil {
				err = r.Accept(w.Context(), b.QP, rnic.ConnParam{})
			}
			accepted <- err
		}()
		dials := 0
		dial := func(ctx context.Context) (net.Conn, error) {
			dials++
			return w.Dial(ctx, n.Addr().String())
		}
		if err := a.QP.ConnectVia(w.Context(), dial, rnic.ConnParam{}); err != nil {
			w.Fatal(err)
		}
		if err := <-accepted; err != nil {
			w.Fatal(err)
		}
		w.exchange(a, b)
		if dials != 1 {
			w.Errorf("it has dialled %d times", dials)
		}
		if err := l.Close(); err != nil {
			w.Error(err)
		}
		if _, err := w.Dial(w.Context(), n.Addr().String()); err == nil {
			w.Error("the socket is open though its listener is closed")
		}
	})
}

func TestSocketsAreRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(c *rnic.Config, _ *rnic.QPAttr) { c.Limits[pd.Listeners] = 1 })
		broken := errors.New("no socket")
		wantRefused(w, "no function", s.QP.ConnectVia(w.Context(), nil, rnic.ConnParam{}), nil)
		wantRefused(w, "a socket that can't be had",
			s.QP.ConnectVia(w.Context(), func(context.Context) (net.Conn, error) { return nil, broken }, rnic.ConnParam{}), broken)
		wantState(w, s.QP, rnic.Idle)
		_, err := s.Device.ListenOn(nil)
		wantRefused(w, "no listener", err, nil)

		first, err := s.Device.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		n, err := w.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		_, err = s.Device.ListenOn(n)
		wantLimit(w, "a second listener", err, pd.Listeners)
		if _, err := n.Accept(); err == nil {
			w.Error("the socket of a listener that is refused stays open")
		}
		if err := first.Close(); err != nil {
			w.Error(err)
		}
	})
}

// A stubborn socket says that it can't be closed.
type stubborn struct{ *simnet.Conn }

var errStubborn = errors.New("it can't be closed")

func (c stubborn) Close() error { return errors.Join(c.Conn.Close(), errStubborn) }

type stubbornListener struct{ net.Listener }

func (l stubbornListener) Close() error { return errors.Join(l.Listener.Close(), errStubborn) }

// Close passes on what the caller's sockets say.
func TestErrorsOfClosingSocketsArePassedOn(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		n, err := w.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		l, err := s.Device.ListenOn(stubbornListener{&wrapping{n, func(c *simnet.Conn) net.Conn { return stubborn{c} }}})
		if err != nil {
			w.Fatal(err)
		}
		w.ask(l)
		wantRefused(w, "close a request", w.request(l).Close(), errStubborn, "close", "request of")
		for range 2 {
			wantRefused(w, "close a listener", l.Close(), errStubborn, "close", "listener", l.Addr().String())
		}
	})
}

// Done tells the end of the stream, however it comes.
func TestDoneTellsTheEndOfTheStream(t *testing.T) {
	ends := map[string]func(ctx context.Context, a, b *rnictest.Side) error{
		"closed here":       func(ctx context.Context, a, _ *rnictest.Side) error { return a.QP.Disconnect(ctx) },
		"closed by a peer":  func(ctx context.Context, _, b *rnictest.Side) error { return b.QP.Disconnect(ctx) },
		"aborted by a peer": func(_ context.Context, _, b *rnictest.Side) error { b.QP.Abort(); return nil },
		"aborted here":      func(_ context.Context, a, _ *rnictest.Side) error { a.QP.Abort(); return nil },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a, b := w.side(), w.side()
				if a.QP.Done() != nil {
					w.Error("there is a stream to end before there is one")
				}
				w.connect(a, b)
				done := a.QP.Done()
				synctest.Wait()
				select {
				case <-done:
					w.Fatal("the stream has ended at its beginning")
				default:
				}
				if err := end(w.Context(), a, b); err != nil {
					w.Error(err)
				}
				<-done // or the bubble deadlocks
				a.QP.Abort()
				if err := a.QP.Reset(); err != nil || a.QP.Done() != nil {
					w.Errorf("after a Reset: %v, done %v", err, a.QP.Done())
				}
			})
		})
	}
	if new(rnic.QP).Done() != nil {
		t.Error("a queue pair that was not made has a stream")
	}
}
