package rdpllp

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/mpa"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/ulp/rdp"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// on returns a layer on a network in memory.
func on(n *rdp.Network, c Config) *Layer {
	c.Carrier = func(_ context.Context, addr netip.AddrPort) (rdp.Carrier, error) { return n.Carrier(addr) }
	return New(c)
}

const everyRight = rnic.LocalWrite | rnic.RemoteRead | rnic.RemoteWrite | rnic.RemoteAtomic

// Writes, Reads and Sends arrive whole through a network that loses, repeats, delays and damages segments.
func TestVerbsThroughFaults(t *testing.T) {
	for _, f := range []rdp.Faults{
		{},
		{Delay: time.Millisecond, Jitter: 5 * time.Millisecond},
		{Delay: time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Duplicate: 0.1, Corrupt: 0.02},
	} {
		for _, version := range []uint8{1, 2} {
			n := rdp.NewNetwork(5, f)
			rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
				const size = 300_000
				src, dst := make([]byte, size), make([]byte, size)
				for i := range src {
					src[i] = byte(i * 7)
				}
				from, to := p.A.Register(t, src, everyRight), p.B.Register(t, dst, everyRight)
				got := make([]byte, size)
				back := p.A.Register(t, got, everyRight)
				inbox := make([]byte, size)
				box := p.B.Register(t, inbox, everyRight)
				if err := p.B.QP.PostRecv(rnic.RecvWR{SGL: []rnic.SGE{box.SGE(0, size)}}); err != nil {
					t.Fatal(err)
				}
				for _, wr := range []rnic.SendWR{
					{Op: rnic.OpWrite, SGL: []rnic.SGE{from.SGE(0, size)}, Remote: to.Remote(0)},
					{Op: rnic.OpRead, SGL: []rnic.SGE{back.SGE(0, size)}, Remote: to.Remote(0)},
					{Op: rnic.OpSend, SGL: []rnic.SGE{from.SGE(0, size)}},
				} {
					if err := p.A.QP.PostSend(wr); err != nil {
						t.Fatal(err)
					}
					var wc [1]rnic.WC
					if _, err := p.A.SendCQ.Wait(t.Context(), wc[:]); err != nil || wc[0].Err() != nil {
						t.Fatal(err, wc[0].Err())
					}
				}
				var wc [1]rnic.WC
				if _, err := p.B.RecvCQ.Wait(t.Context(), wc[:]); err != nil || wc[0].Err() != nil {
					t.Fatal(err, wc[0].Err())
				}
				for name, b := range map[string][]byte{"Write": dst, "Read": got, "Send": inbox} {
					if !bytes.Equal(b, src) {
						t.Errorf("version %d, %+v: the data of the %s differs", version, f, name)
					}
				}
				if err := p.A.QP.Disconnect(t.Context()); err != nil {
					t.Error(err)
				}
			}, rnictest.Options{LowerLayer: on(n, Config{Version: version})})
		}
	}
}

// Start-up exchanges private data, IRD and ORD, and can be rejected.
func TestStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := on(rdp.NewNetwork(1, rdp.Faults{Delay: time.Millisecond}), Config{})
		listener, err := l.Listen(t.Context(), "192.0.2.1:7174")
		if err != nil {
			t.Fatal(err)
		}
		type end struct {
			conn rnic.LLPConn
			err  error
		}
		for _, tt := range []struct {
			name    string
			offer   rnic.Offer
			answer  func(r rnic.LLPRequest) (rnic.LLPConn, error)
			dialed  func(c rnic.LLPConn, err error) bool
			succeed bool
		}{
			{
				"accepted",
				rnic.Offer{PrivateData: []byte("question"), IRD: 4, ORD: 9},
				func(r rnic.LLPRequest) (rnic.LLPConn, error) {
					if string(r.PrivateData()) != "question" {
						t.Errorf("private data %q", r.PrivateData())
					}
					return r.Accept(t.Context(), rnic.Offer{PrivateData: []byte("answer"), IRD: 6, ORD: 7})
				},
				func(c rnic.LLPConn, err error) bool {
					if err != nil {
						t.Error(err)
						return false
					}
					p := c.Params()
					return string(p.PrivateData) == "answer" && p.IRD == 4 && p.ORD == 6 && p.PeerIRD == 6 && p.PeerORD == 4 && p.Role == rnic.Initiator
				}, true,
			},
			{
				"rejected",
				rnic.Offer{},
				func(r rnic.LLPRequest) (rnic.LLPConn, error) {
					err := r.Reject(t.Context(), []byte("no"))
					r.Linger(t.Context())
					return nil, err
				},
				func(_ rnic.LLPConn, err error) bool {
					var rejected *mpa.RejectedError
					return errors.As(err, &rejected) && string(rejected.PrivateData) == "no"
				}, false,
			},
			{
				"too few reads",
				rnic.Offer{IRD: 1, ORD: 1},
				func(r rnic.LLPRequest) (rnic.LLPConn, error) {
					_, err := r.Accept(t.Context(), rnic.Offer{IRD: 4, ORD: 4, MinORD: 3})
					var e *mpa.Error
					if !errors.As(err, &e) || e.Code != mpa.CodeInsufficientIRD {
						t.Errorf("it is accepted: %v", err)
					}
					return nil, nil
				},
				func(_ rnic.LLPConn, err error) bool {
					var rejected *mpa.RejectedError
					return errors.As(err, &rejected) && rejected.ORD == 3
				}, false,
			},
			{
				"closed",
				rnic.Offer{},
				func(r rnic.LLPRequest) (rnic.LLPConn, error) { return nil, r.Close() },
				func(_ rnic.LLPConn, err error) bool {
					var e *mpa.Error
					return errors.As(err, &e) && e.Code == mpa.CodeConnectionLost
				}, false,
			},
		} {
			answered := make(chan end, 1)
			go func() {
				a, err := listener.Accept()
				if err != nil {
					answered <- end{nil, err}
					return
				}
				r, err := a.Receive(t.Context())
				if err != nil {
					answered <- end{nil, err}
					return
				}
				c, err := tt.answer(r)
				answered <- end{c, err}
			}()
			c, err := l.Dial(t.Context(), "192.0.2.1:7174", tt.offer)
			if !tt.dialed(c, err) {
				t.Errorf("%s: %v, %v", tt.name, c, err)
			}
			other := <-answered
			if other.err != nil || (other.conn != nil) != tt.succeed {
				t.Errorf("%s: %v, %v", tt.name, other.conn, other.err)
			}
			for _, c := range []rnic.LLPConn{c, other.conn} {
				if c != nil {
					c.Abort() //nolint:errcheck // it is over
				}
			}
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Dial(t.Context(), "192.0.2.1:7174", rnic.Offer{}); err == nil {
			t.Error("a closed listener accepts")
		}
	})
}

// After a Terminate, an interrupt is not the loss of the connection: the peer's end is waited for, and the Terminate arrives.
func TestDiscardGoesOnWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := on(rdp.NewNetwork(1, rdp.Faults{Delay: time.Millisecond}), Config{})
		listener, err := l.Listen(t.Context(), "192.0.2.1:7174")
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan rnic.LLPConn)
		go func() {
			a, err := listener.Accept()
			if err != nil {
				t.Error(err)
			}
			r, err := a.Receive(t.Context())
			if err != nil {
				t.Error(err)
			}
			c, err := r.Accept(t.Context(), rnic.Offer{})
			if err != nil {
				t.Error(err)
			}
			accepted <- c
		}()
		dialed, err := l.Dial(t.Context(), "192.0.2.1:7174", rnic.Offer{})
		if err != nil {
			t.Fatal(err)
		}
		other := <-accepted
		discarded := make(chan error)
		go func() { discarded <- other.Discard() }()
		other.Interrupt()
		synctest.Wait()
		select {
		case err := <-discarded:
			t.Errorf("before the end of the peer: %v", err)
		default:
		}
		if err := dialed.CloseWrite(); err != nil {
			t.Error(err)
		}
		if err := <-discarded; err != nil {
			t.Error(err)
		}
		for _, c := range []rnic.LLPConn{dialed, other} {
			if err := c.Abort(); err != nil {
				t.Error(err)
			}
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
}
