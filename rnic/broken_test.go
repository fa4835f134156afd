package rnic_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rnic"
)

// A hoarseNetwork is one whose connections fail to send on demand, though they still
// receive.
type hoarseNetwork struct {
	*simnet.Network
	failing atomic.Bool
}

type hoarseConn struct {
	*simnet.Conn
	network *hoarseNetwork
}

func (n *hoarseNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &hoarseConn{c.(*simnet.Conn), n}, nil
}

func (c *hoarseConn) Write(p []byte) (int, error) {
	if c.network.failing.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

func (c *hoarseConn) Writev(pieces [][]byte, wait bool) (int, error) {
	if c.network.failing.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Writev(pieces, wait)
}

func (c *hoarseConn) CloseWrite() error {
	if c.network.failing.Load() {
		return syscall.EPIPE
	}
	return c.Conn.CloseWrite()
}

// A stream that can't send any more is lost, although the peer then closes it in order.
func TestStreamThatCannotSendIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		do func(w *world, q *rnic.QP)
		wc []result
	}{
		"a Send": {func(w *world, q *rnic.QP) {
			if err := q.PostSend(rnic.SendWR{ID: 1, Op: rnic.OpSend}); err != nil {
				w.Error(err)
			}
		}, []result{{1, flushed}}},
		"the FIN": {func(w *world, q *rnic.QP) {
			if err := q.Disconnect(w.Context()); err == nil {
				w.Error("closed gracefully")
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := &hoarseNetwork{Network: &w.Network}
				s := openSide(w, n)
				h, connected := w.responder(s, rnic.ConnParam{})
				if err := <-connected; err != nil {
					w.Fatal(err)
				}
				n.failing.Store(true)
				c.do(w, s.QP)
				_ = h.conn.(*simnet.Conn).CloseWrite() // it may have been reset
				wantState(w, s.QP, rnic.Error)
				if err := s.QP.Err(); !errors.Is(err, syscall.EPIPE) {
					w.Errorf("the stream has ended with %v; want %v", err, syscall.EPIPE)
				}
				wantEvents(w, s.Device, rnic.EventLost)
				wantCompletions(w, s.SendCQ, c.wc...)
			})
		})
	}
}

// A stream that can't send any more ends in time, though the peer says nothing more.
func TestStreamThatCannotSendEndsInTime(t *testing.T) {
	inWorld(t, func(w *world) {
		n := &hoarseNetwork{Network: &w.Network}
		s := openSide(w, n, func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.CloseTimeout = time.Second })
		_, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		n.failing.Store(true)
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend})
		time.Sleep(2 * time.Second)
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventLost)
		wantCompletions(w, s.SendCQ, result{1, flushed})
	})
}
