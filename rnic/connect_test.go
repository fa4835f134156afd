package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// exchange sends one message each way, from the initiator first.
func (w *world) exchange(a, b *rnictest.Side) {
	w.Helper()
	for _, way := range [][2]*rnictest.Side{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		buf := make([]byte, 3000)
		to.Recv(w, rnic.RecvWR{ID: 71, SGL: []rnic.SGE{to.Register(w, buf, rnic.LocalWrite).SGE(0, 3000)}})
		from.Send(w, rnic.SendWR{ID: 72, Op: rnic.OpSend, SGL: []rnic.SGE{from.Register(w, pattern(3000, 9), 0).SGE(0, 3000)}})
		rnictest.Want(w, from.SendCQ, 72)
		rnictest.Want(w, to.RecvCQ, 71)
		if !bytes.Equal(buf, pattern(3000, 9)) {
			w.Error("the message differs")
		}
	}
}

func TestPrivateDataReachesTheOtherULP(t *testing.T) {
	for _, revision := range []uint8{mpa.Revision1, mpa.Revision2} {
		limit := 512
		if revision == mpa.Revision2 {
			limit = 508
		}
		for _, n := range []int{0, 1, limit, limit + 1} {
			t.Run(fmt.Sprintf("revision %d, %d octets", revision, n), func(t *testing.T) {
				inWorld(t, func(w *world) {
					a, b := w.side(), w.side()
					cfg := &mpa.Config{Revision: revision}
					toB, toA := pattern(n, 1), pattern(n, 2)
					errA, errB := w.tryConnect(a, b, rnic.ConnParam{PrivateData: toB, MPA: cfg}, rnic.ConnParam{PrivateData: toA, MPA: cfg})
					if n > limit {
						if _, ok := errors.AsType[*mpa.ConfigError](errA); !ok {
							w.Errorf("%v; want a ConfigError", errA)
						}
						wantState(w, a.QP, rnic.Idle)
						return
					}
					if errA != nil || errB != nil {
						w.Fatal(errA, errB)
					}
					pA, _ := a.QP.Params()
					pB, _ := b.QP.Params()
					if !bytes.Equal(pA.PrivateData, toA) || !bytes.Equal(pB.PrivateData, toB) {
						w.Errorf("A got %d octets of private data, B %d", len(pA.PrivateData), len(pB.PrivateData))
					}
				})
			})
		}
	}
}

func TestRejectTellsTheULPTheReason(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		l, err := b.Device.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		for _, reason := range []string{"", "not today", strings.Repeat("x", 508), strings.Repeat("x", 509)} {
			rejected := make(chan error, 1)
			go func() {
				r, err := l.Accept(w.Context())
				if err == nil {
					err = r.Reject(w.Context(), []byte(reason))
				}
				rejected <- err
			}()
			err := a.QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{})
			rejectErr := <-rejected
			var refused *mpa.RejectedError
			if len(reason) > 508 {
				var e *mpa.ConfigError
				if !errors.As(rejectErr, &e) || err == nil {
					w.Errorf("a reason of %d octets: %v, and the initiator: %v", len(reason), rejectErr, err)
				}
			} else if rejectErr != nil || !errors.As(err, &refused) || string(refused.PrivateData) != reason {
				w.Errorf("a reason of %d octets: %v, and the initiator: %v", len(reason), rejectErr, err)
			}
			wantState(w, a.QP, rnic.Idle)
		}
		// Nothing is left of it, and the queue pair can be connected.
		w.connect(a, b)
		w.exchange(a, b)
		if c := b.Device.Counters(); c.Rejected != 3 || c.Accepted != 1 {
			w.Errorf("counters %+v", c)
		}
		if c := a.Device.Counters(); c.Failed != 4 || c.Connected != 1 {
			w.Errorf("counters %+v", c)
		}
	})
}

func TestConnectToNobodyIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		err := s.QP.Connect(w.Context(), "192.0.2.2:9", rnic.ConnParam{})
		var op *rnic.OpError
		if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || !strings.Contains(err.Error(), "192.0.2.2:9") || strings.Contains(err.Error(), "nil") {
			w.Errorf("%v", err)
		}
		wantState(w, s.QP, rnic.Idle)
		if s.Device.Held(pd.InboundReads) != 0 || s.Device.Held(pd.OutboundReads) != 0 {
			w.Error("reads are held for no connection")
		}
	})
}

func TestConnectOverIPv4AndIPv6(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			p := overTCP(t, address)
			(&world{TB: t}).exchange(p.A, p.B)
			if err := p.A.QP.Disconnect(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	s := tcpSide(t, "A", nil)
	if err := s.QP.Connect(context.Background(), "127.0.0.1:1", rnic.ConnParam{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port where nobody listens: %v", err)
	}
}

func TestDepthsAreNegotiated(t *testing.T) {
	const def = rnic.DefaultDepth
	type depths struct{ ird, ord int }
	for _, c := range []struct {
		name                   string
		a, b, wantA, wantB     depths
		peerOfA, peerOfB       depths // what each is told of the other
		revision               uint8
		notNegotiated, atLimit bool
	}{
		{name: "defaults", wantA: depths{def, def}, wantB: depths{def, def}, peerOfA: depths{def, def}, peerOfB: depths{def, def}},
		{
			name: "the responder takes less", a: depths{10, 10}, b: depths{4, 3},
			wantA: depths{10, 4}, wantB: depths{4, 3}, peerOfA: depths{4, 3}, peerOfB: depths{10, 10},
		},
		{
			name: "the initiator takes less", a: depths{2, 3}, b: depths{10, 10},
			wantA: depths{2, 3}, wantB: depths{3, 2}, peerOfA: depths{3, 2}, peerOfB: depths{2, 3},
		},
		{
			name: "none", a: depths{-1, -1}, b: depths{-1, -1},
			wantA: depths{0, 0}, wantB: depths{0, 0}, peerOfA: depths{0, 0}, peerOfB: depths{0, 0}, notNegotiated: true,
		},
		{
			name: "one way only", a: depths{-1, 5}, b: depths{5, -1},
			wantA: depths{0, 5}, wantB: depths{5, 0}, peerOfA: depths{5, 0}, peerOfB: depths{0, 5},
		},
		{
			name: "more than a device has", a: depths{9999, 9999}, b: depths{9999, 9999},
			wantA: depths{128, 128}, wantB: depths{128, 128}, peerOfA: depths{128, 128}, peerOfB: depths{128, 128},
		},
		{
			name: "revision 1 leaves it to the ULP", a: depths{7, 8}, b: depths{9, 10}, revision: 1,
			wantA: depths{7, 8}, wantB: depths{9, 10},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a, b := w.side(), w.side()
				cfg := &mpa.Config{Revision: c.revision}
				w.connect(a, b, rnic.ConnParam{IRD: c.a.ird, ORD: c.a.ord, MPA: cfg}, rnic.ConnParam{IRD: c.b.ird, ORD: c.b.ord, MPA: cfg})
				for s, want := range map[*rnictest.Side][2]depths{a: {c.wantA, c.peerOfA}, b: {c.wantB, c.peerOfB}} {
					p, _ := s.QP.Params()
					if got := (depths{int(p.IRD), int(p.ORD)}); got != want[0] {
						w.Errorf("%v has %+v; want %+v", p.Role, got, want[0])
					}
					if got := (depths{int(p.PeerIRD), int(p.PeerORD)}); got != want[1] {
						w.Errorf("%v is told %+v; want %+v", p.Role, got, want[1])
					}
				}
			})
		})
	}
}

func TestNegotiatedDepthsBoundTheReadsOutstanding(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{ORD: 5}, func(f *mpa.Frame) {
			f.PrivateData, _ = mpa.Enhanced{IRD: 2, ORD: 1}.AppendBinary(nil)
		})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		for id := range uint64(4) {
			s.Send(w, rnic.SendWR{ID: id, Op: rnic.OpRead})
		}
		h.want(rdmap.OpReadRequest)
		h.want(rdmap.OpReadRequest)
		h.quiet()
		h.send(taggedSeg(rdmap.OpReadResponse, 0, 0, nil))
		h.want(rdmap.OpReadRequest)
		h.quiet()
	})
}

func TestMinORDRejectsInitiatorsThatTakeFewer(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		errA, errB := w.tryConnect(a, b, rnic.ConnParam{IRD: 3}, rnic.ConnParam{MinORD: 4})
		var rejected *mpa.RejectedError
		if !errors.As(errA, &rejected) || !rejected.Enhanced || rejected.ORD != 4 {
			w.Errorf("the initiator learns %v; want that 4 are needed", errA)
		}
		var e *mpa.Error
		if !errors.As(errB, &e) || e.Code != mpa.CodeInsufficientIRD {
			w.Errorf("Accept: %v", errB)
		}
		wantState(w, b.QP, rnic.Idle)
		w.connect(a, b, rnic.ConnParam{IRD: 4}, rnic.ConnParam{MinORD: 4})
	})
}

func TestInsufficientIRDSendsTerminate(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{IRD: 3}, func(f *mpa.Frame) {
			f.PrivateData, _ = mpa.Enhanced{IRD: 3, ORD: 4}.AppendBinary(nil)
		})
		h.wantBare(mpaCode(mpa.CodeInsufficientIRD))
		h.close()
		var e *mpa.Error
		if err := <-connected; !errors.As(err, &e) || e.Code != mpa.CodeInsufficientIRD {
			w.Errorf("Connect: %v", err)
		}
		wantState(w, s.QP, rnic.Idle)
	})
}

func TestResponderThatKnowsOnlyRevision1IsAskedAgain(t *testing.T) {
	for name, answer := range map[string]func(h *peer, f *mpa.Frame){
		"it closes":                     func(h *peer, _ *mpa.Frame) { h.close() },
		"it answers with revision 1":    func(h *peer, _ *mpa.Frame) { h.frame(&mpa.Frame{Reply: true, Revision: 1}) },
		"it answers, and rejects, that": func(h *peer, _ *mpa.Frame) { h.frame(&mpa.Frame{Reply: true, Revision: 1, Rejected: true}) },
	} {
		for _, p2p := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, peer to peer: %v", name, p2p), func(t *testing.T) {
				inWorld(t, func(w *world) {
					s := w.side()
					l, err := w.Listen(w.Context(), ":0")
					if err != nil {
						w.Fatal(err)
					}
					defer l.Close()
					connected := make(chan error, 1)
					go func() {
						connected <- s.QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{MPA: &mpa.Config{PeerToPeer: p2p}})
					}()
					next := func() (*peer, mpa.Frame) {
						c, err := l.Accept()
						if err != nil {
							w.Fatal(err)
						}
						h := newPeer(w, c)
						return h, h.readFrame()
					}
					h, f := next()
					if f.Revision != 2 || !f.Enhanced {
						w.Errorf("the first Request is %v", &f)
					}
					answer(h, &f)
					if p2p { // revision 1 has no such thing
						if err := <-connected; err == nil {
							w.Error("it was connected")
						}
						return
					}
					h, f = next()
					if f.Revision != 1 || f.Enhanced {
						w.Errorf("the second Request is %v", &f)
					}
					h.frame(&mpa.Frame{Reply: true, Revision: 1, PrivateData: []byte("hello")})
					if err := <-connected; err != nil {
						w.Fatal(err)
					}
					if p, _ := s.QP.Params(); p.Revision != 1 || p.ORD != rnic.DefaultDepth || string(p.PrivateData) != "hello" {
						w.Errorf("parameters %+v", p)
					}
				})
			})
		}
	}
}

func TestCRCAndMarkersAreUsedAsEitherSideWants(t *testing.T) {
	policies := []mpa.CRCPolicy{mpa.CRCPrefer, mpa.CRCRequire, mpa.CRCOff}
	for i := range 36 {
		cfgA := &mpa.Config{CRC: policies[i%3], Markers: i/9%2 > 0}
		cfgB := &mpa.Config{CRC: policies[i/3%3], Markers: i/18 > 0}
		inWorld(t, func(w *world) {
			a, b := w.side(), w.side()
			errA, errB := w.tryConnect(a, b, rnic.ConnParam{MPA: cfgA}, rnic.ConnParam{MPA: cfgB})
			if errA != nil || errB != nil {
				w.Fatal(errA, errB)
			}
			pA, _ := a.QP.Params()
			pB, _ := b.QP.Params()
			wantCRC := cfgA.CRC != mpa.CRCOff || cfgB.CRC != mpa.CRCOff
			if pA.CRC != wantCRC || pB.CRC != wantCRC || pA.SendMarkers != cfgB.Markers || pB.SendMarkers != cfgA.Markers || pA.RecvMarkers != cfgA.Markers {
				w.Errorf("%+v and %+v: %+v and %+v", cfgA, cfgB, pA, pB)
			}
			w.exchange(a, b)
		})
	}
}

func TestQueuePairMakesOneConnectionAtATime(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l, err := w.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		connected := make(chan error, 1)
		ctx, cancel := context.WithCancel(w.Context())
		go func() { connected <- s.QP.Connect(ctx, l.Addr().String(), rnic.ConnParam{}) }()
		synctest.Wait()
		if err := s.QP.Connect(w.Context(), l.Addr().String(), rnic.ConnParam{}); !errors.Is(err, rnic.ErrNotIdle) {
			w.Errorf("second Connect: %v", err)
		}
		if err := acceptOnto(w, s); !errors.Is(err, rnic.ErrNotIdle) {
			w.Errorf("Accept meanwhile: %v", err)
		}
		if err := s.QP.Disconnect(w.Context()); !errors.Is(err, rnic.ErrNoStream) {
			w.Errorf("Disconnect meanwhile: %v", err)
		}
		cancel()
		if err := <-connected; !errors.Is(err, context.Canceled) || strings.Count(err.Error(), context.Canceled.Error()) != 1 {
			w.Errorf("first Connect: %v; want that its context was cancelled, once", err)
		}
	})
}

func TestReadsOfAConnectionCountAgainstTheQuota(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.DomainLimits = pd.Limits{pd.InboundReads: 10, pd.OutboundReads: 20}
		})
		for _, p := range []rnic.ConnParam{{IRD: 11, ORD: 1}, {IRD: 10, ORD: 21}} {
			var limit *pd.LimitError
			if err := s.QP.Connect(w.Context(), "192.0.2.2:9", p); !errors.As(err, &limit) {
				w.Errorf("%+v: %v; want a LimitError", p, err)
			}
			if _, err := acceptWith(w, s, p); !errors.As(err, &limit) {
				w.Errorf("%+v: %v; want a LimitError", p, err)
			}
		}
		b := w.side()
		w.connect(s, b, rnic.ConnParam{IRD: 10, ORD: 20})
		if s.Device.Held(pd.InboundReads) != 10 || s.Device.Held(pd.OutboundReads) != 20 {
			w.Error("the reads of the connection are not held")
		}
		s.QP.Abort()
		if s.Device.Held(pd.InboundReads) != 0 || s.Device.Held(pd.OutboundReads) != 0 {
			w.Error("the reads of a connection that has ended are held")
		}
	})
}

// acceptWith makes a request arrive at a side and accepts it with parameters.
func acceptWith(w *world, s *rnictest.Side, p rnic.ConnParam) (*peer, error) {
	w.Helper()
	l, accepted := w.accept(s, p)
	defer l.Close()
	h := w.dial(l.Addr().String())
	h.frame(&plainRequest)
	return h, <-accepted
}

func TestRequestIsAnsweredOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		s, foreign := w.side(), w.side()
		l, err := s.Device.Listen(w.Context(), ":0")
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		h := w.dial(l.Addr().String())
		f := plainRequest
		f.PrivateData = []byte("ask")
		h.frame(&f)
		r, err := l.Accept(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if string(r.PrivateData()) != "ask" || r.MPA().Frame.Revision != 1 || r.LocalAddr().String() != h.conn.RemoteAddr().String() || r.RemoteAddr().String() != h.conn.LocalAddr().String() {
			w.Errorf("request %+v from %v to %v", r.MPA().Frame, r.RemoteAddr(), r.LocalAddr())
		}
		for q, want := range map[*rnic.QP]error{nil: rnic.ErrNotMade, new(rnic.QP): rnic.ErrNotMade, foreign.QP: rnic.ErrForeign} {
			if err := r.Accept(w.Context(), q, rnic.ConnParam{}); !errors.Is(err, want) {
				w.Errorf("Accept with a queue pair that is not the device's: %v; want %v", err, want)
			}
		}
		if err := r.Accept(w.Context(), s.QP, rnic.ConnParam{}); err != nil {
			w.Fatal(err)
		}
		for verb, err := range map[string]error{"Accept": r.Accept(w.Context(), s.QP, rnic.ConnParam{}), "Reject": r.Reject(w.Context(), nil)} {
			if err == nil {
				w.Errorf("%s after Accept succeeded", verb)
			}
		}
		if err := r.Close(); err != nil {
			w.Errorf("Close after Accept: %v", err)
		}
		wantState(w, s.QP, rnic.RTS)
		h.readFrame()
		h.quiet()
	})
}
