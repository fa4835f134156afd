package rnic_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
	"urnic/rnic"
)

// A stickyNetwork has listeners that say that they can't be closed.
type stickyNetwork struct{ simnet.Network }

type stickyListener struct{ net.Listener }

func (n *stickyNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := n.Network.Listen(ctx, address)
	return stickyListener{l}, err
}

func (l stickyListener) Close() error { return errors.Join(l.Listener.Close(), errNetwork) }

func TestDeviceReportsWhatItCouldNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := rnic.Open(rnic.Config{Network: new(stickyNetwork)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Listen(t.Context(), "192.0.2.1:0"); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); !errors.Is(err, errNetwork) {
			t.Errorf("%v; want %v", err, errNetwork)
		}
	})
}

// A slowLog is a log in which lines with certain words take until it is released.
type slowLog struct {
	slog.Handler
	words   string
	release chan struct{}
}

func newSlowLog(words string) (logger *slog.Logger, release func()) {
	l := slowLog{slog.DiscardHandler, words, make(chan struct{})}
	return slog.New(l), func() { close(l.release) }
}

func (l slowLog) Enabled(context.Context, slog.Level) bool { return true }

func (l slowLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if strings.Contains(a.Value.String(), l.words) {
			<-l.release
		}
		return true
	})
	return nil
}

// When Close returns, no goroutine of the device is left: not even one that only has to
// log what has happened.
func TestDeviceCloseWaitsForItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, release := newSlowLog(rnic.EventCQOverflow.String())
		l := newLab(t, rnic.Config{Logger: logger})
		q := l.qpOn(l.domain(), l.cq(rnic.CQAttr{Entries: 1}))
		if err := q.PostRecv(receives(1, 2)...); err != nil {
			t.Fatal(err)
		}
		q.Abort() // two flushed receives have one place
		closed := make(chan error, 1)
		go func() { closed <- l.dev.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("closed while a goroutine reports an event: %v", err)
			release()
		default:
			release()
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
	})
}

// Close waits for the verbs that have begun to make something, or it would miss that.
func TestDeviceCloseWaitsForVerbs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		end := rnic.BeginMaking(t, l.dev)
		closed := make(chan error, 1)
		go func() { closed <- l.dev.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("closed while something is being made: %v", err)
			end()
		default:
			end()
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
	})
}
