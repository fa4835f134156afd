package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rdmap"
	"urnic/rnic"
)

// A tardyContext ends when the stream does. Who asks for its end waits for that.
type tardyContext struct {
	context.Context
	stream <-chan struct{}
}

func (c tardyContext) Done() <-chan struct{} {
	<-c.stream
	return c.stream
}

func (tardyContext) Err() error { return context.Canceled }

// A context that ends when the connection has been closed gracefully changes nothing.
func TestContextThatEndsWithTheStreamLeavesItClosedGracefully(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		for range 20 { // which of the two is seen first is chance
			w.connect(a, b)
			if err := a.QP.Disconnect(tardyContext{context.Background(), a.QP.Done()}); err != nil {
				w.Fatal(err)
			}
			wantGraceful(w, a, b)
		}
	})
}

// A registrar is a context that counts the functions that wait for its end.
type registrar struct {
	context.Context
	done chan struct{}
	n    atomic.Int32
}

func (c *registrar) Done() <-chan struct{} { return c.done }

func (c *registrar) AfterFunc(func()) (stop func() bool) {
	c.n.Add(1)
	return func() bool {
		c.n.Add(-1)
		return true
	}
}

// A program may wait with the same context for all its life.
func TestStreamThatHasEndedKeepsNothingInTheProgramsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{TB: t, Network: simnet.Network{Polls: true}}
		a, b := w.side(), w.side()
		w.connect(a, b)
		ctx := &registrar{Context: context.Background(), done: make(chan struct{})}
		b.Recv(w, receives(0, 2)...)
		most := int32(0)
		for id := range uint64(2) {
			go func() {
				time.Sleep(time.Second)
				a.Send(w, rnic.SendWR{ID: id, Op: rnic.OpSend})
			}()
			var wcs [1]rnic.WC
			if n, err := b.RecvCQ.Wait(ctx, wcs[:]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			most = max(most, ctx.n.Load())
		}
		if most != 1 {
			t.Fatalf("%d functions wait for the end of the context; want 1", most)
		}
		b.QP.Abort()
		if n := ctx.n.Load(); n != 0 {
			t.Errorf("%d functions wait for the end of the context", n)
		}
	})
}

// An endingNetwork runs a function when one who dials has read the end of a stream,
// and before the RNIC learns of it.
type endingNetwork struct {
	*simnet.Network
	atEnd func()
}

type endingConn struct {
	net.Conn
	atEnd func()
}

func (n *endingNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return endingConn{simnet.Plain(c.(*simnet.Conn)), n.atEnd}, nil
}

func (c endingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		c.atEnd()
	}
	return n, err
}

// A program may reset the connection at the moment at which the peer closes it.
func TestAbortThatMeetsTheEndOfThePeersHalf(t *testing.T) {
	inWorld(t, func(w *world) {
		n := &endingNetwork{Network: &w.Network}
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = n })
		aborted := make(chan struct{})
		n.atEnd = func() {
			go func() {
				s.QP.Abort()
				close(aborted)
			}()
			time.Sleep(time.Nanosecond) // in a bubble, until all others wait
		}
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		h.closeWrite()
		<-aborted
		if err := s.QP.Err(); !errors.Is(err, rnic.ErrAborted) {
			w.Errorf("the stream ended with %v", err)
		}
		wantEvents(w, s.Device)
	})
}

// A peer that has closed its half and reads nothing doesn't keep the connection.
func TestPeerThatClosesAndDoesNotReadIsResetAfterTheCloseTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.CloseTimeout = 3 * time.Second })
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		mr := s.Register(w, make([]byte, 100_000), 0)
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, 100_000)}, Remote: rnic.Remote{STag: 1}})
		start := time.Now()
		h.closeWrite()
		<-s.QP.Done()
		if d := time.Since(start); d < 3*time.Second || d > 3*time.Second+unattended {
			w.Errorf("it took %v; want the CloseTimeout, 3 s", d)
		}
		wantCompletions(w, s.SendCQ, result{1, flushed})
	})
}

// A stream that fails is logged with its reason.
func TestEndOfAStreamIsLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		var out bytes.Buffer
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Name, cfg.Logger = "loggy", slog.New(slog.NewTextHandler(&out, nil))
		})
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		h.close()
		<-s.QP.Done()
		var log strings.Builder
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, `msg="stream ended"`) {
				log.WriteString(line)
			}
		}
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "device=loggy") || !strings.Contains(log.String(), s.QP.Err().Error()) {
			w.Errorf("the log says of the end:\n%s", log.String())
		}
	})
}

// A program whose trace hook sees a message on its way out keeps the stream until the
// hook has returned: when Abort returns, nobody works for the queue pair any more.
func TestAbortWaitsForTheTransmitter(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Trace = func(t rnic.Trace) {
				if t.Sent {
					<-hold
				}
			}
		})
		_, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		go s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpWrite})
		synctest.Wait()
		go s.QP.Abort()
		synctest.Wait()
		select {
		case <-s.QP.Done():
			w.Error("the stream has ended while a message is being sent")
		default:
		}
		close(hold)
		<-s.QP.Done()
		wantState(w, s.QP, rnic.Error)
	})
}
