package mpa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
)

func TestInitiatorSendsARequestAndWaitsForTheReply(t *testing.T) {
	for _, tt := range []struct {
		name       string
		cfg        Config
		req, reply []byte
	}{
		{"revision 1", Config{Revision: 1, PrivateData: []byte("abc")}, frame(reqKey, 0x40, 1, []byte("abc")...), frame(repKey, 0x40, 1, []byte("defgh")...)},
		{"markers, no CRC", Config{Revision: 1, CRC: CRCOff, Markers: true}, frame(reqKey, 0x80, 1), frame(repKey, 0, 1)},
		{"revision 2", Config{IRD: 3, ORD: 4}, frame(reqKey, 0x50, 2, 0, 3, 0, 4), frame(repKey, 0x50, 2, 0, 4, 0, 3)},
		{"peer-to-peer", Config{PeerToPeer: true, IRD: 1, ORD: 1}, frame(reqKey, 0x50, 2, 0xC0, 1, 0xC0, 1), frame(repKey, 0x50, 2, 0x80, 1, 0x80, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				done := initiates(t.Context(), conn, tt.cfg)
				p.expects(tt.req)
				for i := range tt.reply {
					p.expectsSilence()
					select {
					case s := <-done:
						t.Fatalf("after %d octets of the Reply: %v, %v", i, s.conn, s.err)
					default:
					}
					p.says(tt.reply[i : i+1])
				}
				s := <-done
				if s.err != nil || s.conn.Params().Role != Initiator {
					t.Fatalf("%v, %v", s.conn, s.err)
				}
				p.expectsSilence()
				_ = s.conn.Close()
			})
		})
	}
}

func TestResponderWaitsForAValidRequest(t *testing.T) {
	for _, tt := range []struct {
		name       string
		cfg        Config
		req, reply []byte
	}{
		{"revision 1", Config{PrivateData: []byte("defgh")}, frame(reqKey, 0x40, 1, []byte("abc")...), frame(repKey, 0x40, 1, []byte("defgh")...)},
		{"markers, no CRC", Config{CRC: CRCOff, Markers: true}, frame(reqKey, 0, 1), frame(repKey, 0x80, 1)},
		{"revision 2", Config{IRD: 9, ORD: 9}, frame(reqKey, 0x50, 2, 0, 3, 0, 4), frame(repKey, 0x50, 2, 0, 4, 0, 3)},
		{"peer-to-peer", Config{IRD: 1, ORD: 1}, frame(reqKey, 0x50, 2, 0xC0, 1, 0x80, 1), frame(repKey, 0x50, 2, 0xC0, 1, 0x80, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				done := responds(t.Context(), conn, tt.cfg)
				for i := range tt.req {
					p.expectsSilence()
					select {
					case s := <-done:
						t.Fatalf("after %d octets of the Request: %v, %v", i, s.conn, s.err)
					default:
					}
					p.says(tt.req[i : i+1])
				}
				p.expects(tt.reply)
				s := <-done
				if s.err != nil || s.conn.Params().Role != Responder {
					t.Fatalf("%v, %v", s.conn, s.err)
				}
				if !bytes.Equal(s.req.PrivateData(), s.req.Frame.ULPData()) || s.req.NetConn() != conn {
					t.Errorf("the Request is %+v", s.req)
				}
				p.expectsSilence()
				_ = s.conn.Close()
			})
		})
	}
}

// refuses lets one side start on the bytes that the peer says, and checks that
// it gives up at once with code 4, without another byte.
func refuses(t *testing.T, role Role, cfg Config, octets []byte) {
	t.Helper()
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		start := time.Now()
		var done <-chan started
		if role == Initiator {
			req, err := cfg.request()
			if err != nil {
				t.Fatal(err)
			}
			done = initiates(t.Context(), conn, cfg)
			p.hears(req.Len())
		} else {
			done = responds(t.Context(), conn, cfg)
		}
		p.says(octets)
		s := <-done
		e := wantCode(t, role.String(), s.err, CodeStartup)
		if s.conn != nil || e.TermWord() != 0x2004 || e.Clause == "" {
			t.Errorf("%v: %v with connection %v, Terminate word %#x", role, s.err, s.conn, e.TermWord())
		}
		p.expectsEnd()
		if d := time.Since(start); d != 0 {
			t.Errorf("%v: it took %v", role, d)
		}
	})
}

func TestMalformedStartupFrameClosesTheConnection(t *testing.T) {
	for _, tt := range []struct {
		name   string
		role   Role
		cfg    Config
		octets []byte
	}{
		{"Request with PD_Length 513", Responder, Config{}, join(reqKey, []byte{0, 1, 2, 1})},
		{"Request with PD_Length 65535", Responder, Config{}, join(reqKey, []byte{0, 1, 0xFF, 0xFF})},
		{"Request with an octet that PD_Length does not count", Responder, Config{}, join(frame(reqKey, 0, 1, []byte("abc")...), []byte{'d'})},
		{"Request with PD_Length 0 and private data", Responder, Config{}, join(frame(reqKey, 0, 1), []byte("abcd"))},
		{"Request with 512 octets of private data and one more", Responder, Config{}, join(frame(reqKey, 0, 1, make([]byte, 512)...), []byte{0})},
		{"enhanced Request without enhanced data", Responder, Config{}, frame(reqKey, 0x10, 2)},
		{"enhanced Request with half of the enhanced data", Responder, Config{}, frame(reqKey, 0x10, 2, 0, 1)},
		{"garbage for a Request", Responder, Config{}, []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")},
		{"Reply with PD_Length 513", Initiator, Config{}, join(repKey, []byte{0x50, 2, 2, 1})},
		{"unenhanced Reply to an enhanced Request", Initiator, Config{}, frame(repKey, 0x40, 2)},
		{"enhanced Reply to an unenhanced Request", Initiator, Config{Revision: 2, ULPDepths: true}, frame(repKey, 0x50, 2, 0, 0, 0, 0)},
		{"enhanced Reply without enhanced data", Initiator, Config{}, frame(repKey, 0x50, 2)},
		{"enhanced Reply with three octets of enhanced data", Initiator, Config{}, frame(repKey, 0x50, 2, 0, 0, 0)},
		{"Reply with the other model", Initiator, Config{}, frame(repKey, 0x50, 2, 0x80, 0, 0x80, 0)},
		{"garbage for a Reply", Initiator, Config{}, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")},
	} {
		t.Run(tt.name, func(t *testing.T) { refuses(t, tt.role, tt.cfg, tt.octets) })
	}
}

// wrongKeys are Keys with one byte changed, up to and with that byte.
func wrongKeys(key []byte) [][]byte {
	var out [][]byte
	for i := range key {
		bad := slices.Clone(key[:i+1])
		bad[i] ^= 0x20
		out = append(out, bad)
	}
	return out
}

func TestResponderClosesOnWrongKey(t *testing.T) {
	for _, bad := range wrongKeys(reqKey) {
		t.Run(fmt.Sprintf("octet %d", len(bad)-1), func(t *testing.T) { refuses(t, Responder, Config{}, bad) })
	}
	t.Run("Reply Key", func(t *testing.T) { refuses(t, Responder, Config{}, frame(repKey, 0, 1)) })
}

func TestInitiatorClosesOnWrongKey(t *testing.T) {
	for _, bad := range wrongKeys(repKey) {
		t.Run(fmt.Sprintf("octet %d", len(bad)-1), func(t *testing.T) { refuses(t, Initiator, Config{}, bad) })
	}
	t.Run("Request Key", func(t *testing.T) { refuses(t, Initiator, Config{}, frame(reqKey, 0x50, 2, 0, 0, 0, 0)) })
}

func TestTwoInitiatorsAreDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := simnet.Pipe(simnet.Options{})
		start := time.Now()
		one, two := initiates(t.Context(), a, Config{}), initiates(t.Context(), b, Config{})
		var codes []Code
		for _, s := range []started{<-one, <-two} {
			var e *Error
			if s.conn != nil || !errors.As(s.err, &e) {
				t.Fatalf("%v, %v", s.conn, s.err)
			}
			codes = append(codes, e.Code)
		}
		// Whoever is second may find the stream closed already.
		if !slices.Contains(codes, CodeStartup) || time.Since(start) != 0 {
			t.Errorf("codes %v after %v", codes, time.Since(start))
		}
	})
}

func TestTwoRespondersRunIntoTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := simnet.Pipe(simnet.Options{})
		start := time.Now()
		for _, s := range []<-chan started{
			responds(t.Context(), a, Config{}),
			responds(t.Context(), b, Config{RequestTimeout: time.Hour}),
		} {
			wantCode(t, "a Responder among itself", (<-s).err, CodeConnectionLost)
		}
		if d := time.Since(start); d != DefaultRequestTimeout {
			t.Errorf("after %v; want %v", d, DefaultRequestTimeout)
		}
	})
}

func TestUnsupportedRevisionClosesTheConnection(t *testing.T) {
	for _, rev := range []byte{0, 3, 4, 255} {
		t.Run(fmt.Sprintf("Request with revision %d", rev), func(t *testing.T) {
			refuses(t, Responder, Config{}, frame(reqKey, 0, rev))
		})
		t.Run(fmt.Sprintf("Reply with revision %d", rev), func(t *testing.T) {
			refuses(t, Initiator, Config{}, frame(repKey, 0x50, rev, 0, 0, 0, 0))
			refuses(t, Initiator, Config{Revision: 1}, frame(repKey, 0x40, rev))
		})
	}
	t.Run("Request with revision 1 where 2 is pinned", func(t *testing.T) {
		refuses(t, Responder, Config{Revision: 2}, frame(reqKey, 0, 1))
	})
	t.Run("Reply with revision 1 to a Request with 2", func(t *testing.T) {
		refuses(t, Initiator, Config{}, frame(repKey, 0x40, 1))
	})
	t.Run("Reply with revision 2 to a Request with 1", func(t *testing.T) {
		refuses(t, Initiator, Config{Revision: 1}, frame(repKey, 0x40, 2))
	})
}

func TestUnenhancedResponderClosesOnAnEnhancedRequest(t *testing.T) {
	refuses(t, Responder, Config{Revision: 1}, frame(reqKey, 0x50, 2, 0, 1, 0, 1))
	refuses(t, Responder, Config{Revision: 1}, frame(reqKey, 0x50, 2, 0x80, 1, 0x80, 1))
}

func TestRejectionLeavesTCPOpen(t *testing.T) {
	t.Run("responder", func(t *testing.T) {
		for _, tt := range []struct{ req, reply []byte }{
			{frame(reqKey, 0x40, 1, []byte("abc")...), frame(repKey, 0x60, 1, []byte("no")...)},
			{frame(reqKey, 0x50, 2, 0, 2, 0, 3), frame(repKey, 0x70, 2, 0, 3, 0, 2, 'n', 'o')},
		} {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				p.says(tt.req)
				req, err := ReceiveRequest(t.Context(), conn, Config{IRD: 8, ORD: 8, MinORD: 8})
				if err != nil {
					t.Fatal(err)
				}
				if err := req.Reject(t.Context(), []byte("no")); err != nil {
					t.Fatal(err)
				}
				p.expects(tt.reply)
				p.expectsSilence()
				time.Sleep(time.Hour) // past all time limits
				if _, err := req.NetConn().Write([]byte("still here")); err != nil {
					t.Error(err)
				}
				p.expects([]byte("still here"))
			})
		}
	})
	t.Run("initiator", func(t *testing.T) {
		for _, tt := range []struct {
			cfg   Config
			reply []byte
			want  RejectedError
		}{
			{Config{Revision: 1}, frame(repKey, 0x60, 1, []byte("no")...), RejectedError{PrivateData: []byte("no")}},
			{Config{}, frame(repKey, 0x70, 2, 0, 3, 0, 2, 'n', 'o'), RejectedError{PrivateData: []byte("no"), Enhanced: true, IRD: 3, ORD: 2}},
			{Config{}, frame(repKey, 0x70, 2), RejectedError{PrivateData: []byte{}}},
			{Config{CRC: CRCRequire}, frame(repKey, 0x20, 2, []byte("no")...), RejectedError{PrivateData: []byte("no")}},
		} {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				req, _ := tt.cfg.request()
				done := initiates(t.Context(), conn, tt.cfg)
				p.hears(req.Len())
				p.says(tt.reply)
				s := <-done
				var got *RejectedError
				if !errors.As(s.err, &got) || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", tt.want) {
					t.Fatalf("%v; want %+v", s.err, tt.want)
				}
				p.expectsSilence()
				time.Sleep(time.Hour)
				if _, err := conn.Write([]byte("still here")); err != nil {
					t.Error(err)
				}
				p.expects([]byte("still here"))
				p.says([]byte("so am I"))
				b := make([]byte, 20)
				if n, err := conn.Read(b); string(b[:n]) != "so am I" || err != nil {
					t.Errorf("read %q, %v", b[:n], err)
				}
			})
		}
	})
}

func TestOctetsBehindARejectionAreTheULPs(t *testing.T) {
	for _, tt := range []struct {
		cfg   Config
		reply []byte
	}{
		{Config{Revision: 1}, frame(repKey, 0x60, 1)},
		{Config{Revision: 1}, frame(repKey, 0x60, 1, []byte("no")...)},
		{Config{}, frame(repKey, 0x70, 2, 0, 3, 0, 2, 'n', 'o')},
		{Config{}, frame(repKey, 0x70, 2, make([]byte, 512)...)},
	} {
		stream := join(tt.reply, []byte("streaming mode"))
		for cut := len(tt.reply); cut <= len(stream); cut++ { // what comes in one piece with the Reply
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				req, _ := tt.cfg.request()
				done := initiates(t.Context(), conn, tt.cfg)
				p.hears(req.Len())
				p.says(stream[:cut])
				if s := <-done; !isRejection(s.err) {
					t.Fatal(s.err)
				}
				p.says(stream[cut:])
				_ = p.conn.Close()
				if got, err := io.ReadAll(conn); string(got) != "streaming mode" || err != nil {
					t.Errorf("%d octets of Reply, %d octets with it: the ULP reads %q, %v", len(tt.reply), cut-len(tt.reply), got, err)
				}
			})
		}
	}
}

func isRejection(err error) bool {
	_, ok := errors.AsType[*RejectedError](err)
	return ok
}

func TestRejectionForTooSmallAnIRDReachesBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := simnet.Pipe(simnet.Options{})
		ini := initiates(t.Context(), a, Config{IRD: 1, ORD: 1})
		res := responds(t.Context(), b, Config{IRD: 4, ORD: 4, MinORD: 3, PrivateData: []byte("more")})
		wantCode(t, "responder", (<-res).err, CodeInsufficientIRD)
		s := <-ini
		var rejected *RejectedError
		if !errors.As(s.err, &rejected) || rejected.ORD != 3 || string(rejected.PrivateData) != "more" {
			t.Errorf("initiator: %v; want a rejection that asks for 3", s.err)
		}
		_ = a.Close()
	})
}

// An Initiator that can't go on gets a connection on which to say so.
func TestInitiatorThatCannotGoOnCanStillSendATerminate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cfg   Config
		reply []byte
		code  Code
	}{
		{"IRD", Config{IRD: 1, ORD: 1}, frame(repKey, 0x50, 2, 0, 1, 0, 9), CodeInsufficientIRD},
		{"RTR", Config{PeerToPeer: true, RTR: RTRSend, IRD: 1, ORD: 1}, frame(repKey, 0x50, 2, 0x80, 1, 0x80, 1), CodeNoMatchingRTR},
	} {
		t.Run(tt.name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				done := initiates(t.Context(), conn, tt.cfg)
				p.hears(24)
				p.says(tt.reply)
				s := <-done
				wantCode(t, "initiator", s.err, tt.code)
				if s.conn == nil {
					t.Fatal("there is no connection for the Terminate")
				}
				post(t, s.conn, "terminate")
				flush(t, s.conn)
				p.expects(fpdus(&Framer{CRC: true}, []byte("terminate")))
				_ = s.conn.Close()
			})
		})
	}
}

func TestFullOperationBeginsRightBehindTheStartupFrames(t *testing.T) {
	ulpdus := [][]byte{[]byte("first"), make([]byte, 600), []byte("last")}
	for _, pdLen := range []int{0, 1, 3, 100, 508} {
		for _, markers := range []bool{false, true} {
			pd := bytes.Repeat([]byte{0xDD}, pdLen)
			cfg := Config{Markers: markers}
			reply := frame(repKey, 0x50, 2, append([]byte{0, 0, 0, 0}, pd...)...)
			stream := join(reply, fpdus(&Framer{CRC: true, Markers: markers}, ulpdus...))
			// Whatever comes together with the Reply's end, and whatever after it.
			for _, cut := range []int{len(reply) - 1, len(reply), len(reply) + 1, len(reply) + 4, len(reply) + 15, 533, 534, len(stream)} {
				beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
					done := initiates(t.Context(), conn, cfg)
					p.hears(24)
					p.says(stream[:cut])
					synctest.Wait()
					p.says(stream[cut:])
					s := <-done
					if s.err != nil {
						t.Fatal(s.err)
					}
					defer s.conn.Close()
					if got := s.conn.Params().PrivateData; !bytes.Equal(got, pd) {
						t.Errorf("%d octets of private data; want %d", len(got), pdLen)
					}
					got, err := receives(s.conn).now()
					if err != nil || len(got) != 3 || got[0] != "first" || len(got[1]) != 600 || got[2] != "last" {
						t.Errorf("cut %d: %d ULPDUs, %v; want 3", cut, len(got), err)
					}
				})
			}
			request := frame(reqKey, 0x50, 2, append([]byte{0, 0, 0, 0}, pd...)...)
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				c, _ := responded(t, conn, p, cfg, request)
				if got := c.Params().PrivateData; !bytes.Equal(got, pd) {
					t.Errorf("%d octets of private data; want %d", len(got), pdLen)
				}
				p.says(fpdus(&Framer{CRC: true, Markers: markers}, ulpdus...))
				if got, err := receives(c).now(); err != nil || len(got) != 3 || got[0] != "first" || got[2] != "last" {
					t.Errorf("Responder: %d ULPDUs, %v; want 3", len(got), err)
				}
				// And its own first bytes are those of an FPDU.
				post(t, c, "reply")
				flush(t, c)
				p.expects(fpdus(&Framer{CRC: true}, []byte("reply")))
			})
		}
	}
}

func TestRequestCanBeDropped(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		p.says(plainRequest)
		req, err := ReceiveRequest(t.Context(), conn, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Close(); err != nil {
			t.Error(err)
		}
		p.expectsEnd()
	})
}

// It is the Request that says how much private data the Reply has room for.
func TestReplyHoldsAsMuchPrivateDataAsTheRequestAllows(t *testing.T) {
	for _, tt := range []struct {
		name    string
		request []byte
		block   int
	}{
		{"revision 1", frame(reqKey, 0x40, 1), 0},
		{"revision 2, not enhanced", frame(reqKey, 0x40, 2), 0},
		{"revision 2, enhanced", frame(reqKey, 0x50, 2, 0, 0, 0, 0), 4},
	} {
		for _, accept := range []bool{true, false} {
			for over := range 2 {
				beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
					pd := bytes.Repeat([]byte{0xDD}, 512-tt.block+over)
					p.says(tt.request)
					req, err := ReceiveRequest(t.Context(), conn, Config{})
					if err != nil {
						t.Fatal(err)
					}
					if accept {
						var c *Conn
						if c, err = req.Accept(t.Context(), Config{PrivateData: pd}); err == nil {
							defer c.Close()
						}
					} else {
						err = req.Reject(t.Context(), pd)
					}
					if over > 0 {
						if _, ok := errors.AsType[*ConfigError](err); !ok {
							t.Errorf("%s, %d octets, accepting %v: %v; want a ConfigError", tt.name, len(pd), accept, err)
						}
						return
					}
					if err != nil {
						t.Errorf("%s, %d octets, accepting %v: %v", tt.name, len(pd), accept, err)
						return
					}
					if reply := p.hears(20 + 512); reply[18] != 2 || reply[19] != 0 || !bytes.Equal(reply[20+tt.block:], pd) {
						t.Errorf("%s, accepting %v: replied %x", tt.name, accept, reply)
					}
				})
			}
		}
	}
}

func TestConfigErrorSendsNothing(t *testing.T) {
	bad := Config{IRD: MaxDepth + 1}
	long := Config{PrivateData: make([]byte, 509)}
	for name, start := range map[string]func(p *peer, conn *simnet.Conn) error{
		"Initiate": func(_ *peer, conn *simnet.Conn) error {
			_, err := Initiate(context.Background(), conn, bad)
			return err
		},
		"Initiate with private data that only an unenhanced Request holds": func(_ *peer, conn *simnet.Conn) error {
			_, err := Initiate(context.Background(), conn, long)
			return err
		},
		"ReceiveRequest": func(_ *peer, conn *simnet.Conn) error {
			_, err := ReceiveRequest(context.Background(), conn, bad)
			return err
		},
		"Accept": func(p *peer, conn *simnet.Conn) error { return (<-accepts(p, conn, bad)).err },
		"Accept with private data that only an unenhanced Reply holds": func(p *peer, conn *simnet.Conn) error {
			cfg := long
			cfg.Revision = 1 // for itself it would do
			return (<-accepts(p, conn, cfg)).err
		},
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				var e *ConfigError
				if err := start(p, conn); !errors.As(err, &e) {
					t.Errorf("%v; want a ConfigError", err)
				}
				p.expectsEnd()
			})
		})
	}
	t.Run("Reject", func(t *testing.T) {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			p.says(frame(reqKey, 0x50, 2, 0, 0, 0, 0))
			req, err := ReceiveRequest(t.Context(), conn, Config{})
			if err != nil {
				t.Fatal(err)
			}
			var e *ConfigError
			if err := req.Reject(t.Context(), make([]byte, 509)); !errors.As(err, &e) {
				t.Errorf("%v; want a ConfigError", err)
			}
			p.expectsSilence()
		})
	})
}

func TestMissingContextOrStreamIsAConfigError(t *testing.T) {
	var none context.Context
	a, b := simnet.Pipe(simnet.Options{})
	defer b.Close()
	dial := func(conn net.Conn) DialFunc {
		return func(context.Context) (net.Conn, error) { return conn, nil }
	}
	for name, start := range map[string]func() error{
		"Initiate without a context":         func() error { _, err := Initiate(none, a, Config{}); return err },
		"Initiate without a stream":          func() error { _, err := Initiate(t.Context(), nil, Config{}); return err },
		"ReceiveRequest without a context":   func() error { _, err := ReceiveRequest(none, a, Config{}); return err },
		"ReceiveRequest without a stream":    func() error { _, err := ReceiveRequest(t.Context(), nil, Config{}); return err },
		"Dial without a context":             func() error { _, err := Dial(none, dial(a), Config{}); return err },
		"Dial without a function":            func() error { _, err := Dial(t.Context(), nil, Config{}); return err },
		"Dial by a function without streams": func() error { _, err := Dial(t.Context(), dial(nil), Config{}); return err },
	} {
		if _, ok := errors.AsType[*ConfigError](start()); !ok {
			t.Errorf("%s is no ConfigError", name)
		}
	}
	for _, accept := range []bool{true, false} {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			p.says(plainRequest)
			req, err := ReceiveRequest(t.Context(), conn, Config{})
			if err != nil {
				t.Fatal(err)
			}
			if accept {
				_, err = req.Accept(none, Config{})
			} else {
				err = req.Reject(none, nil)
			}
			if _, ok := errors.AsType[*ConfigError](err); !ok {
				t.Errorf("accepting %v without a context: %v; want a ConfigError", accept, err)
			}
			if accept {
				p.expectsEnd()
			} else {
				p.expectsSilence()
			}
		})
	}
}

// accepts receives a good enhanced Request and accepts it with cfg.
func accepts(p *peer, conn *simnet.Conn, cfg Config) <-chan started {
	done := make(chan started, 1)
	p.says(frame(reqKey, 0x50, 2, 0, 0, 0, 0))
	req, err := ReceiveRequest(context.Background(), conn, Config{})
	if err == nil {
		_, err = req.Accept(context.Background(), cfg)
	}
	done <- started{err: err}
	return done
}
