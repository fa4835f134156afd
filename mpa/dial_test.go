package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
)

// dials runs Dial in a bubble. Each stream that it opens gets the next of the
// peers; a stream for which there is none can't be opened.
func dials(t *testing.T, cfg Config, peers []func(p *peer), judge func(t *testing.T, c *Conn, err error, streams int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		streams := 0
		c, err := Dial(t.Context(), func(context.Context) (net.Conn, error) {
			if streams++; streams > len(peers) {
				return nil, errors.New("nobody is there")
			}
			a, b := simnet.Pipe(simnet.Options{})
			go func() {
				peers[streams-1](&peer{t, b})
				_, _ = io.Copy(io.Discard, b) // until the other side ends
				_ = b.Close()
			}()
			return a, nil
		}, cfg)
		judge(t, c, err, streams)
		if c != nil {
			_ = c.Close()
		}
	})
}

var (
	twoRequest = frame(reqKey, 0x50, 2, 0, 1, 0, 1)
	oneRequest = frame(reqKey, 0x40, 1)
	twoConfig  = Config{IRD: 1, ORD: 1}
)

// accepting answers a request of either revision.
func accepting(p *peer) {
	got := p.hears(20)
	if got[17] == 1 {
		p.says(frame(repKey, 0x40, 1))
		return
	}
	p.hears(int(got[19]))
	p.says(frame(repKey, 0x50, 2, 0, 1, 0, 1))
}

func TestDialFallsBackToRevisionOne(t *testing.T) {
	for name, first := range map[string]func(p *peer){
		"the peer closes":                 func(p *peer) { p.expects(twoRequest); _ = p.conn.Close() },
		"the peer resets":                 func(p *peer) { p.expects(twoRequest); _ = p.conn.Abort() },
		"the peer closes, octets unread":  func(p *peer) { p.hears(20); _ = p.conn.Close() },
		"the peer resets at once":         func(p *peer) { _ = p.conn.Abort() },
		"the peer replies in revision 1":  func(p *peer) { p.expects(twoRequest); p.says(frame(repKey, 0x40, 1)) },
		"the peer rejects in revision 1":  func(p *peer) { p.expects(twoRequest); p.says(frame(repKey, 0x60, 1)) },
		"the peer closes during a reply":  func(p *peer) { p.expects(twoRequest); p.says(repKey); _ = p.conn.Close() },
		"the peer closes after some time": func(p *peer) { p.expects(twoRequest); time.Sleep(time.Second); _ = p.conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			second := func(p *peer) { p.expects(oneRequest); p.says(frame(repKey, 0x40, 1)) }
			dials(t, twoConfig, []func(*peer){first, second}, func(t *testing.T, c *Conn, err error, streams int) {
				if err != nil || streams != 2 || c.Params().Revision != 1 {
					t.Fatalf("%v after %d streams", err, streams)
				}
				if p := c.Params(); p.IRD != 1 || p.ORD != 1 || p.Enhanced {
					t.Errorf("settled %+v", p)
				}
			})
		})
	}
}

func TestDialDoesNotFallBack(t *testing.T) {
	closing := func(p *peer) { p.hears(20); _ = p.conn.Close() }
	for _, tt := range []struct {
		name  string
		cfg   Config
		first func(p *peer)
	}{
		{"where revision 2 is pinned", Config{Revision: 2}, closing},
		{"where revision 1 is pinned", Config{Revision: 1}, closing},
		{"where nothing enhanced is wanted", Config{ULPDepths: true}, closing},
		{"where the peer-to-peer model is wanted", Config{PeerToPeer: true}, closing},
		{"if the peer is silent", twoConfig, func(p *peer) { p.hears(20) }},
		{"if the peer rejects", twoConfig, func(p *peer) { p.expects(twoRequest); p.says(frame(repKey, 0x70, 2, 0, 0, 0, 0)) }},
		{"if the peer replies in revision 3", twoConfig, func(p *peer) { p.expects(twoRequest); p.says(frame(repKey, 0, 3)) }},
		{"if the peer speaks another protocol", twoConfig, func(p *peer) { p.hears(20); p.says([]byte("SSH-2.0-x\r\n")) }},
		{"if the peer is an Initiator", twoConfig, func(p *peer) { p.says(twoRequest) }},
		{"if the peer wants more reads", twoConfig, func(p *peer) { p.expects(twoRequest); p.says(frame(repKey, 0x50, 2, 0, 1, 0, 9)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dials(t, tt.cfg, []func(*peer){tt.first, accepting}, func(t *testing.T, c *Conn, err error, streams int) {
				if err == nil || streams != 1 {
					t.Errorf("%v after %d streams; want an error after one", err, streams)
				}
			})
		})
	}
}

func TestDialNeedsNoSecondTry(t *testing.T) {
	for _, cfg := range []Config{twoConfig, {Revision: 1}, {Revision: 2, IRD: 1, ORD: 1}} {
		dials(t, cfg, []func(*peer){accepting}, func(t *testing.T, c *Conn, err error, streams int) {
			if err != nil || streams != 1 {
				t.Errorf("%v after %d streams", err, streams)
			}
		})
	}
}

func TestDialThatFailsTwiceTellsBothErrors(t *testing.T) {
	closing := func(p *peer) { p.hears(20); _ = p.conn.Close() }
	rejecting := func(p *peer) { p.expects(oneRequest); p.says(frame(repKey, 0x60, 1, []byte("full")...)) }
	dials(t, twoConfig, []func(*peer){closing, rejecting}, func(t *testing.T, c *Conn, err error, streams int) {
		var rejected *RejectedError
		if c != nil || streams != 2 || !errors.As(err, &rejected) || string(rejected.PrivateData) != "full" {
			t.Errorf("%v after %d streams; want the rejection", err, streams)
		}
		wantCode(t, "the first try", err, CodeConnectionLost)
	})
	dials(t, twoConfig, []func(*peer){closing}, func(t *testing.T, c *Conn, err error, streams int) {
		if c != nil || streams != 2 || err == nil {
			t.Errorf("%v after %d streams; want the error of the dial", err, streams)
		}
		wantCode(t, "the first try", err, CodeConnectionLost)
	})
	dials(t, twoConfig, nil, func(t *testing.T, c *Conn, err error, streams int) {
		if c != nil || streams != 1 || fmt.Sprint(err) != "nobody is there" {
			t.Errorf("%v after %d streams; want the error of the dial", err, streams)
		}
	})
}

func TestDialClosesTheStreamOfARejection(t *testing.T) {
	closed := false
	rejecting := func(p *peer) {
		p.expects(oneRequest)
		p.says(frame(repKey, 0x60, 1))
		_, err := p.conn.Read(make([]byte, 1))
		closed = err != nil
	}
	dials(t, Config{Revision: 1}, []func(*peer){rejecting}, func(t *testing.T, _ *Conn, err error, _ int) {
		if _, ok := errors.AsType[*RejectedError](err); !ok {
			t.Errorf("%v; want a rejection", err)
		}
		synctest.Wait()
		if !closed {
			t.Error("the stream is still open")
		}
	})
}

func TestDialIsOverWhenItsContextIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		streams := 0
		start := time.Now()
		_, err := Dial(ctx, func(context.Context) (net.Conn, error) {
			streams++
			a, _ := simnet.Pipe(simnet.Options{})
			return a, nil
		}, twoConfig)
		if !errors.Is(err, context.DeadlineExceeded) || streams != 1 || time.Since(start) != time.Second {
			t.Errorf("%v after %d streams and %v", err, streams, time.Since(start))
		}
	})
}

func TestDialOverANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n simnet.Network
		l, err := n.Listen(t.Context(), ":7174")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() { // an old Responder, for as many streams as there are
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					if s := <-responds(context.Background(), conn, Config{Revision: 1}); s.conn != nil {
						_ = s.conn.Discard()
						_ = s.conn.Close()
					}
				}()
			}
		}()
		c, err := Dial(t.Context(), func(ctx context.Context) (net.Conn, error) { return n.Dial(ctx, l.Addr().String()) }, twoConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.Params().Revision != 1 || c.RemoteAddr().String() != l.Addr().String() || c.LocalAddr() == nil {
			t.Errorf("revision %d with %v", c.Params().Revision, c.RemoteAddr())
		}
	})
}
