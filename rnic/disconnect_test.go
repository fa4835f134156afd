package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/host/sockio"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// disconnecting calls Disconnect in a goroutine.
func disconnecting(q *rnic.QP) <-chan error {
	done := make(chan error, 1)
	go func() { done <- q.Disconnect(context.Background()) }()
	return done
}

// wantGraceful checks that both ends have closed gracefully.
func wantGraceful(t testing.TB, sides ...*rnictest.Side) {
	t.Helper()
	for _, s := range sides {
		wantState(t, s.QP, rnic.Idle)
		wantEvents(t, s.Device, rnic.EventCloseComplete)
		if err := s.QP.Err(); err != nil {
			t.Error(err)
		}
	}
}

func TestEitherSideOrBothCloseGracefully(t *testing.T) {
	for name, first := range map[string]func(a, b *rnic.QP) []*rnic.QP{
		"initiator first": func(a, _ *rnic.QP) []*rnic.QP { return []*rnic.QP{a} },
		"responder first": func(_, b *rnic.QP) []*rnic.QP { return []*rnic.QP{b} },
		"both at once":    func(a, b *rnic.QP) []*rnic.QP { return []*rnic.QP{a, b} },
		"one twice":       func(a, _ *rnic.QP) []*rnic.QP { return []*rnic.QP{a, a} },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				late := simnet.Faults{Latency: time.Millisecond}
				w.Options = func(int) simnet.Options { return simnet.Options{AB: late, BA: late} }
				a, b := w.side(), w.side()
				w.connect(a, b)
				a.Recv(w, rnic.RecvWR{ID: 1})
				var all []<-chan error
				for _, q := range first(a.QP, b.QP) {
					all = append(all, disconnecting(q))
				}
				for _, done := range all {
					if err := <-done; err != nil {
						w.Error(err)
					}
				}
				time.Sleep(time.Second) // until the other side has seen it too
				wantGraceful(w, a, b)
				wantCompletions(w, a.RecvCQ, result{1, flushed})
				for _, s := range []*rnictest.Side{a, b} {
					if err := s.QP.Disconnect(w.Context()); err != nil {
						w.Errorf("Disconnect of a connection that was closed gracefully: %v", err)
					}
				}
			})
		})
	}
}

func TestDisconnectWaitsForSendsInFlight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options {
			return simnet.Options{Buffer: 3000, AB: simnet.Faults{Latency: time.Millisecond}}
		}
		a, b := w.side(), w.side()
		w.connect(a, b)
		src := a.Register(w, pattern(20_000, 7), 0)
		const n = 5
		var bufs [n][]byte
		for id := range uint64(n) {
			bufs[id] = make([]byte, 20_000)
			b.Recv(w, rnic.RecvWR{ID: id, SGL: []rnic.SGE{b.Register(w, bufs[id], rnic.LocalWrite).SGE(0, 20_000)}})
			a.Send(w, rnic.SendWR{ID: id, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, 20_000)}})
		}
		done := disconnecting(a.QP)
		synctest.Wait()
		if a.QP.State() != rnic.RTS {
			w.Errorf("state %v with Sends in flight; want RTS", a.QP.State())
		}
		var state *rnic.StateError
		if err := a.QP.PostSend(rnic.SendWR{Op: rnic.OpSend}); !errors.As(err, &state) || !strings.Contains(err.Error(), "disconnect") {
			w.Errorf("PostSend meanwhile: %v", err)
		}
		if err := <-done; err != nil {
			w.Error(err)
		}
		time.Sleep(time.Second)
		wantGraceful(w, a, b)
		for id := range uint64(n) {
			rnictest.Want(w, a.SendCQ, id)
			rnictest.Want(w, b.RecvCQ, id)
			if !bytes.Equal(bufs[id], pattern(20_000, 7)) {
				w.Errorf("message %d differs", id)
			}
		}
	})
}

func TestDisconnectWaitsForReadsInFlight(t *testing.T) {
	for name, who := range map[string]func(a, b *rnictest.Side) *rnictest.Side{
		"of this side": func(a, _ *rnictest.Side) *rnictest.Side { return a },
		"of the peer":  func(_, b *rnictest.Side) *rnictest.Side { return b },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				late := simnet.Faults{Latency: time.Millisecond}
				w.Options = func(int) simnet.Options { return simnet.Options{AB: late, BA: late, Buffer: 5000} }
				a, b := w.side(), w.side()
				w.connect(a, b)
				const n = 40_000
				src := b.Register(w, pattern(n, 3), rnic.RemoteRead)
				got := make([]byte, n)
				sink := a.Register(w, got, rnic.LocalWrite)
				for id := range uint64(3) {
					a.Send(w, rnic.SendWR{ID: id, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, n)}, Remote: src.Remote(0)})
				}
				time.Sleep(1500 * time.Microsecond) // the requests are there, the responses are not
				if err := who(a, b).QP.Disconnect(w.Context()); err != nil {
					w.Error(err)
				}
				time.Sleep(time.Second)
				wantGraceful(w, a, b)
				wantCompletions(w, a.SendCQ, result{0, ok}, result{1, ok}, result{2, ok})
				if !bytes.Equal(got, pattern(n, 3)) {
					w.Error("what was read differs")
				}
			})
		})
	}
}

func TestPeerThatClosesWhileWorkIsOutstandingGetsATerminate(t *testing.T) {
	withReader(t, func(r *reader) {
		r.read(1)
		r.s.Recv(r, rnic.RecvWR{ID: 2})
		r.h.closeWrite()
		r.h.wantBare(rdmap.CodeStreamCatastrophic)
		r.h.close()
		wantState(r, r.s.QP, rnic.Error)
		wantEvents(r, r.s.Device, rnic.EventBadLLPClose)
		wantCompletions(r, r.s.SendCQ, result{1, flushed})
		wantCompletions(r, r.s.RecvCQ, result{2, flushed})
		if code, byPeer := termCode(r.s.QP.Err()); code != rdmap.CodeStreamCatastrophic || byPeer {
			r.Errorf("the stream ended with %v", r.s.QP.Err())
		}
	})
}

func TestPeerThatClosesBeforeItsReadIsAnsweredGetsATerminate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 4000} }
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		src := s.Register(w, make([]byte, 300_000), rnic.RemoteRead)
		for range 3 {
			h.send(readSeg(rdmap.ReadRequest{Size: 300_000, SrcSTag: src.STag(), SrcTO: src.Base()}))
		}
		h.closeWrite()
		h.wantBare(rdmap.CodeStreamCatastrophic) // behind the Responses that were begun
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventBadLLPClose)
	})
}

// The last of a Response may be all that a full socket has not taken. It is outstanding.
func TestPeerThatClosesBeforeTheEndOfAResponseGetsATerminate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		src := s.Register(w, make([]byte, 5000), rnic.RemoteRead)
		h.send(readSeg(rdmap.ReadRequest{Size: 5000, SrcSTag: src.STag(), SrcTO: src.Base()}))
		synctest.Wait()
		h.closeWrite()
		h.wantBare(rdmap.CodeStreamCatastrophic)
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventBadLLPClose)
	})
}

// The error counts what is outstanding: requests of this side and of the peer.
func TestErrorOfAnEarlyCloseCountsWhatIsOutstanding(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		src := s.Register(w, make([]byte, 100_000), rnic.RemoteRead)
		for range 4 {
			h.send(readSeg(rdmap.ReadRequest{Size: 100_000, SrcSTag: src.STag(), SrcTO: src.Base()}))
		}
		synctest.Wait()
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpRead}, rnic.SendWR{ID: 2, Op: rnic.OpRead})
		h.closeWrite()
		h.wantBare(rdmap.CodeStreamCatastrophic)
		wantState(w, s.QP, rnic.Error)
		if err := s.QP.Err(); err == nil || !strings.Contains(err.Error(), "(5 requests)") { // besides the Response that was begun
			w.Errorf("%v; want an error that counts 5 requests", err)
		}
	})
}

func TestTerminateToAPeerThatHasClosedIsNotDestroyed(t *testing.T) {
	// It is on its way for a while, and nothing resets the connection under it.
	inWorld(t, func(w *world) {
		late := simnet.Faults{Latency: 100 * time.Millisecond}
		w.Options = func(int) simnet.Options { return simnet.Options{AB: late, BA: late} }
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpRead})
		h.want(rdmap.OpReadRequest)
		h.closeWrite()
		h.wantBare(rdmap.CodeStreamCatastrophic)
		wantState(w, s.QP, rnic.Error)
	})
}

func TestSendsThatCannotLeaveWhenThePeerClosesAreFlushed(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend}) // it waits for the peer's first FPDU
		start := time.Now()
		h.closeWrite()
		wantState(w, s.QP, rnic.Error)
		h.wantEnd(syscall.ECONNRESET) // without right to send, there is no other way
		wantEvents(w, s.Device, rnic.EventBadLLPClose)
		wantCompletions(w, s.SendCQ, result{1, flushed})
		if time.Since(start) != 0 {
			w.Errorf("it took %v", time.Since(start))
		}
	})
}

func TestSegmentAfterOurFINIsABadClose(t *testing.T) {
	for name, seg := range map[string]func(h *peer) []byte{
		"Send":         func(h *peer) []byte { return h.fpdu(sendSeg("")) },
		"empty Write":  func(h *peer) []byte { return h.fpdu(writeSeg(rnic.Remote{}, nil)) },
		"Read Request": func(h *peer) []byte { return h.fpdu(readSeg(rdmap.ReadRequest{})) },
		"bad CRC": func(h *peer) []byte {
			b := h.fpdu(sendSeg(""))
			b[len(b)-1] ^= 1
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				h := w.peerOf(s, rnic.ConnParam{})
				s.Recv(w, rnic.RecvWR{})
				done := disconnecting(s.QP)
				h.wantEnd(io.EOF)
				h.write(seg(h))
				if err := <-done; err == nil || !errors.Is(err, s.QP.Err()) {
					w.Errorf("Disconnect: %v; want %v", err, s.QP.Err())
				}
				h.wantReset()
				wantState(w, s.QP, rnic.Error)
				wantEvents(w, s.Device, rnic.EventBadClose)
			})
		})
	}
}

func TestTerminateAfterOurFINIsABadCloseThatTellsWhy(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		done := disconnecting(s.QP)
		h.wantEnd(io.EOF)
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeStreamCatastrophic}))
		if code, byPeer := termCode(<-done); code != rdmap.CodeStreamCatastrophic || !byPeer {
			w.Errorf("Disconnect says %v, by the peer: %v", code, byPeer)
		}
		h.wantReset()
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventBadClose)
	})
}

func TestPeerThatNeverClosesIsResetAfterTheCloseTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.CloseTimeout = 3 * time.Second })
		h := w.peerOf(s, rnic.ConnParam{})
		start := time.Now()
		if err := s.QP.Disconnect(context.Background()); err == nil {
			w.Error("no error")
		}
		if d := time.Since(start); d != 3*time.Second {
			w.Errorf("it took %v; want the CloseTimeout, 3 s", d)
		}
		h.wantReset()
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventLost)
	})
}

func TestContextThatEndsDuringDisconnectResetsTheConnection(t *testing.T) {
	for name, outstanding := range map[string]bool{"closing": false, "waiting for a Read": true} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				if outstanding {
					r.read(1)
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				start := time.Now()
				if err := r.s.QP.Disconnect(ctx); !errors.Is(err, context.DeadlineExceeded) {
					r.Errorf("%v; want the context's error", err)
				}
				if d := time.Since(start); d != time.Second {
					r.Errorf("it took %v", d)
				}
				r.h.wantReset()
				wantState(r, r.s.QP, rnic.Error)
				wantEvents(r, r.s.Device) // it is what the program wanted
				if outstanding {
					wantCompletions(r, r.s.SendCQ, result{1, flushed})
				}
			})
		})
	}
}

func TestLastMessageThenDisconnectIsNeverABadClose(t *testing.T) {
	// The program disconnects from another goroutine the moment it has the
	// completion, while the receiver may still be at work on the same bytes.
	for seed := range 300 {
		inWorld(t, func(w *world) {
			f := simnet.Faults{Seed: uint64(seed), ShortReads: seed%2 > 0, ShortWrites: seed%3 > 0}
			w.Options = func(int) simnet.Options { return simnet.Options{AB: f, BA: f} }
			a, b := w.side(), w.side()
			w.connect(a, b)
			buf := b.Register(w, make([]byte, 5000), rnic.LocalWrite|rnic.RemoteWrite)
			src := a.Register(w, make([]byte, 5000), 0)
			b.Recv(w, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{buf.SGE(0, 5000)}})
			a.Send(w, rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{src.SGE(0, 3000)}, Remote: buf.Remote(0)})
			done := make(chan error, 1)
			go func() {
				rnictest.Want(w, b.RecvCQ, 1)
				done <- b.QP.Disconnect(context.Background())
			}()
			a.Send(w, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, 100*(seed%50))}})
			rnictest.Want(w, a.SendCQ, 2)
			if seed%2 == 0 {
				if err := a.QP.Disconnect(context.Background()); err != nil {
					w.Errorf("seed %d: %v", seed, err)
				}
			}
			if err := <-done; err != nil {
				w.Errorf("seed %d: %v", seed, err)
			}
			wantGraceful(w, a, b)
		})
	}
}

func TestPingPongThenDisconnectOverTCP(t *testing.T) {
	for range 20 {
		p := overTCP(t, "127.0.0.1:0")
		p.A.Recv(t, rnic.RecvWR{ID: 1})
		p.B.Recv(t, rnic.RecvWR{ID: 1})
		done := make(chan error, 1)
		go func() {
			rnictest.Want(t, p.B.RecvCQ, 1)
			p.B.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend})
			rnictest.Want(t, p.B.SendCQ, 2)
			done <- p.B.QP.Disconnect(context.Background())
		}()
		p.A.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend})
		rnictest.Want(t, p.A.RecvCQ, 1)
		if err := p.A.QP.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDisconnectAtOnceWaitsForTheRTR(t *testing.T) {
	// What the providers exchange by themselves is no reason for a bad close,
	// whoever closes first.
	for _, kind := range []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead} {
		for _, who := range []string{"initiator", "responder", "both"} {
			t.Run(kind.String()+" "+who, func(t *testing.T) {
				inWorld(t, func(w *world) {
					late := simnet.Faults{Latency: time.Millisecond}
					w.Options = func(int) simnet.Options { return simnet.Options{AB: late, BA: late} }
					a, b := w.side(), w.side()
					cfg := mpa.Config{PeerToPeer: true, RTR: kind}
					l, err := b.Device.Listen(w.Context(), ":0")
					if err != nil {
						w.Fatal(err)
					}
					defer l.Close()
					responder := make(chan error, 1)
					go func() {
						r, err := l.Accept(w.Context())
						if err == nil {
							err = r.Accept(w.Context(), b.QP, rnic.ConnParam{MPA: &cfg})
						}
						if err == nil && who != "initiator" {
							err = b.QP.Disconnect(w.Context())
						}
						responder <- err
					}()
					if err := a.QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{MPA: &cfg}); err != nil {
						w.Fatal(err)
					}
					if who != "responder" {
						if err := a.QP.Disconnect(w.Context()); err != nil {
							w.Error(err)
						}
					}
					if err := <-responder; err != nil {
						w.Error(err)
					}
					time.Sleep(time.Second)
					wantGraceful(w, a, b)
				})
			})
		}
	}
}

func TestPeerThatClosesInsteadOfItsRTRIsClosedGracefully(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{}, enhanced(mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRWrite}))
		h.closeWrite()
		h.wantEnd(io.EOF)
		wantGraceful(w, s)
	})
}

func TestFINInsideAnFPDUIsTheLossOfTheConnection(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		b := h.fpdu(sendSeg("cut"))
		h.write(b[:len(b)-1])
		h.closeWrite()
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventLost)
		if !errors.Is(s.QP.Err(), io.ErrUnexpectedEOF) {
			w.Errorf("%v", s.QP.Err())
		}
	})
}

func TestErrorOfTheTransmitterLeavesThePeersTerminateToBeRead(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Trace = func(t rnic.Trace) {
				if !t.Sent {
					<-hold // keeps the receiver busy
				}
			}
		})
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(writeSeg(rnic.Remote{}, nil))
		// The peer closes all of its socket behind its Terminate: what the side
		// writes now fails, but what came can still be read.
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		h.close()
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend})
		close(hold)
		wantState(w, s.QP, rnic.Error)
		if code, byPeer := termCode(s.QP.Err()); code != rdmap.CodeGlobalCatastrophic || !byPeer {
			w.Errorf("the stream ended with %v", s.QP.Err())
		}
		wantEvents(w, s.Device, rnic.EventTerminateReceived)
		wantCompletions(w, s.SendCQ, result{1, flushed})
	})
}

func TestTerminateThatMeetsADisconnectIsABadClose(t *testing.T) {
	// The Terminate is being delivered when the program disconnects.
	inWorld(t, func(w *world) {
		var s *rnictest.Side
		var done <-chan error
		s = w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Trace = func(t rnic.Trace) {
				if t.Op == rdmap.OpTerminate {
					done = disconnecting(s.QP)
					time.Sleep(time.Nanosecond) // in a bubble, until all others wait
				}
			}
		})
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		time.Sleep(time.Millisecond)
		h.wantReset()
		if code, byPeer := termCode(<-done); code != rdmap.CodeGlobalCatastrophic || !byPeer {
			w.Errorf("Disconnect says %v, by the peer: %v", code, byPeer)
		}
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventBadClose)
	})
}

// pipes is a network of streams that can't be half closed.
type pipes struct{ queue chan net.Conn }

func (n *pipes) Dial(ctx context.Context, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case n.queue <- b:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *pipes) Listen(context.Context, string) (net.Listener, error) {
	return &pipeListener{n, make(chan bool)}, nil
}

type pipeListener struct {
	*pipes
	closed chan bool
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestStreamThatCannotBeHalfClosedIsReset(t *testing.T) {
	inWorld(t, func(w *world) {
		network := &pipes{make(chan net.Conn)}
		change := func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = network }
		a, b := w.side(change), w.side(change)
		w.connect(a, b)
		w.exchange(a, b)
		start := time.Now()
		if err := a.QP.Disconnect(w.Context()); !errors.Is(err, sockio.ErrNoHalfClose) {
			w.Errorf("Disconnect: %v; want ErrNoHalfClose", err)
		}
		if d := time.Since(start); d != 0 {
			w.Errorf("it took %v", d)
		}
		wantState(w, a.QP, rnic.Error)
		wantEvents(w, a.Device, rnic.EventLost)
		if s := b.QP.State(); s == rnic.RTS {
			w.Errorf("the other side is in state %v", s)
		}
	})
}

// plainNetwork makes streams that can only be used as net.Conn.
type plainNetwork struct{ *simnet.Network }

func (n plainNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return simnet.Plain(c.(*simnet.Conn)), nil
}

// The end of a stream that is no TCP of ours may have to wait for a peer that
// does not read. Nobody but the stream waits then.
func TestContextEndsADisconnectFromAPeerThatDoesNotReadAPlainStream(t *testing.T) {
	for name, end := range map[string]func(q *rnic.QP, ctx context.Context) error{"Disconnect": (*rnic.QP).Disconnect, "Terminate": (*rnic.QP).Terminate} {
		inWorld(t, func(w *world) {
			w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
			s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = plainNetwork{&w.Network} })
			h, connected := w.responder(s, rnic.ConnParam{})
			if err := <-connected; err != nil {
				w.Fatal(err)
			}
			mr := s.Register(w, make([]byte, 100_000), 0)
			s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, 100_000)}, Remote: rnic.Remote{STag: 1}})
			rnictest.Want(w, s.SendCQ, 1) // the stream has taken it
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			if err := end(s.QP, ctx); !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("%s: %v", name, err)
			}
			if d := time.Since(start); d != 100*time.Millisecond {
				w.Errorf("%s took %v; its context had 100 ms", name, d)
			}
			h.close()
		})
	}
}
