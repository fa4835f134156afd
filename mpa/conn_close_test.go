package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"urnic/internal/host/sockio"
	"urnic/internal/test/simnet"
)

// endings are the ways to tear a connection down from this side.
var endings = map[string]func(*Conn) error{"close": (*Conn).Close, "abort": (*Conn).Abort}

func TestTCPIsClosedWhenItsStreamEnds(t *testing.T) {
	for _, role := range []Role{Initiator, Responder} {
		for name, end := range endings {
			inRole(t, role, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, _ *Framer) {
				if err := end(c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				_, err := p.conn.Read(make([]byte, 1))
				if name == "close" && !errors.Is(err, io.EOF) || name == "abort" && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%v, %s: the peer reads %v", role, name, err)
				}
				p.expectsEnd()
				for again, end := range endings { // and that was it
					if err := end(c); err != nil {
						t.Errorf("%s after %s: %v", again, name, err)
					}
				}
			})
		}
		// One half at a time.
		inRole(t, role, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
			post(t, c, "last")
			flush(t, c)
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			p.expects(fpdus(out, []byte("last")))
			if _, err := p.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%v: the peer reads %v; want io.EOF", role, err)
			}
			p.says(fpdus(in, []byte("more")))
			if got, err := receives(c).now(); len(got) != 1 || err != nil {
				t.Errorf("%v: the other half: %q, %v", role, got, err)
			}
			_ = p.conn.CloseWrite()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Errorf("half close of a closed connection: %v", err)
			}
		})
	}
}

func TestNothingIsTransferredAfterTeardown(t *testing.T) {
	for name, end := range endings {
		t.Run(name+": what was posted is not sent", func(t *testing.T) {
			inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, _ *Framer) {
				post(t, c, "posted")
				_ = end(c)
				for _, wait := range []bool{false, true} {
					_, err := c.Flush(wait)
					wantCode(t, "Flush", err, CodeConnectionLost)
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("Flush: %v; want net.ErrClosed", err)
					}
				}
				p.expectsEnd()
			})
		})
		t.Run(name+": what a Responder holds back is not sent", func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				c, _ := responded(t, conn, p, plainConfig, plainRequest)
				post(t, c, "held back")
				waited := make(chan error)
				go func() {
					_, err := c.Flush(true)
					waited <- err
				}()
				synctest.Wait()
				_ = end(c)
				err := <-waited
				wantCode(t, "Flush", err, CodeConnectionLost)
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("Flush: %v; want net.ErrClosed", err)
				}
				p.expectsEnd()
			})
		})
		t.Run(name+": what has arrived is not passed", func(t *testing.T) {
			inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
				p.says(fpdus(in, []byte("one"), []byte("two")))
				_ = end(c)
				err := c.Receive(each(func(u []byte, _ uint64) { t.Errorf("%q was passed", u) }))
				wantCode(t, "Receive", err, CodeConnectionLost)
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("Receive: %v; want net.ErrClosed", err)
				}
			})
		})
		t.Run(name+": nor what came with the Reply", func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				done := initiates(t.Context(), conn, plainConfig)
				p.hears(20)
				p.says(plainReply, fpdus(&Framer{}, []byte("early")))
				c := (<-done).conn
				_ = end(c)
				wantCode(t, "Receive", c.Receive(each(func(u []byte, _ uint64) { t.Errorf("%q was passed", u) })), CodeConnectionLost)
			})
		})
		t.Run(name+": from within a placement", func(t *testing.T) {
			inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
				p.says(fpdus(in, []byte("one"), []byte("two"), []byte("three")))
				var got []string
				err := c.Receive(each(func(u []byte, _ uint64) {
					if got = append(got, string(u)); len(got) == 2 {
						_ = end(c) // DDP has found an error in it
					}
				}))
				wantCode(t, "Receive", err, CodeConnectionLost)
				if len(got) != 2 {
					t.Errorf("passed %q", got)
				}
				wantCode(t, "later", c.Receive(each(func(u []byte, _ uint64) { t.Errorf("%q was passed", u) })), CodeConnectionLost)
				if c.in.buf != nil {
					t.Error("the receiver still holds a buffer")
				}
			})
		})
	}
}

func TestCloseEndsReceiveAndFlush(t *testing.T) {
	for name, end := range endings {
		for _, plain := range []bool{false, true} {
			beside(t, simnet.Options{Buffer: 100}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				var stream net.Conn = conn
				if plain {
					stream = simnet.Plain(conn)
				}
				c := initiated(t, stream, p, plainConfig, plainReply)
				errs := make(chan error, 3)
				go func() { errs <- c.Receive(ignore) }()
				go func() {
					for {
						for ok := true; ok; {
							ok, _ = c.Post(nil, [][]byte{make([]byte, 10_000)}, true)
						}
						if _, err := c.Flush(true); err != nil {
							errs <- err
							return
						}
					}
				}()
				synctest.Wait()
				go func() {
					_ = c.MULPDU()
					_ = c.Params()
					errs <- end(c)
				}()
				if err := end(c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				var failed int
				for range 3 {
					if err := <-errs; err != nil {
						failed++
						wantCode(t, name, err, CodeConnectionLost)
						if !errors.Is(err, net.ErrClosed) {
							t.Errorf("%s: %v; want net.ErrClosed", name, err)
						}
					}
				}
				if failed != 2 {
					t.Errorf("%s: %d of Receive and Flush failed", name, failed)
				}
			})
		}
	}
}

// pairOver connects two ends over streams of some kind, in a bubble.
func pairOver(t *testing.T, streams func() (a, b net.Conn), f func(t *testing.T, ini, res *Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := streams()
		ini, res := connect(t, a, b, Config{}, Config{})
		f(t, ini, res)
		_ = ini.Close()
		_ = res.Close()
	})
}

// plainStreams are streams that can't be used without waiting.
var plainStreams = map[string]func() (a, b net.Conn){
	"net.Pipe": net.Pipe,
	"plain": func() (a, b net.Conn) {
		x, y := simnet.Pipe(simnet.Options{Buffer: 1000})
		return simnet.Plain(x), simnet.Plain(y)
	},
}

func TestAnyNetConnWillDo(t *testing.T) {
	for name, streams := range plainStreams {
		t.Run(name, func(t *testing.T) {
			pairOver(t, streams, func(t *testing.T, ini, res *Conn) {
				ulpdus, _ := fpduStream(11, false, false, 100, 20_000)
				var wg sync.WaitGroup
				defer wg.Wait()
				forth := make(chan struct{})
				wg.Go(func() { send(t, ini, ulpdus...) })
				wg.Go(func() {
					for i, u := range receive(t, res, len(ulpdus)) {
						if !bytes.Equal(u, ulpdus[i]) {
							t.Errorf("ULPDU %d: %d octets; want %d", i, len(u), len(ulpdus[i]))
						}
					}
					close(forth)
				})
				wg.Go(func() { send(t, res, ulpdus...) })
				for i, u := range receive(t, ini, len(ulpdus)) {
					if !bytes.Equal(u, ulpdus[i]) {
						t.Errorf("ULPDU %d back: %d octets; want %d", i, len(u), len(ulpdus[i]))
					}
				}
				<-forth
				if ini.MULPDU() != MULPDU(DefaultEMSS, false) {
					t.Errorf("MULPDU %d", ini.MULPDU())
				}
			})
		})
	}
}

func TestHalfCloseOfAnyNetConn(t *testing.T) {
	for name, streams := range plainStreams {
		t.Run(name, func(t *testing.T) {
			pairOver(t, streams, func(t *testing.T, ini, res *Conn) {
				box := receives(res)
				u := make([]byte, 5000)
				send(t, ini, u, u)
				err := ini.CloseWrite()
				got, recvErr := box.now()
				if len(got) != 2 {
					t.Errorf("%d ULPDUs came", len(got))
				}
				if name == "plain" {
					if err != nil || !errors.Is(recvErr, io.EOF) {
						t.Errorf("half close: %v; the peer: %v", err, recvErr)
					}
				} else if !errors.Is(err, sockio.ErrNoHalfClose) || recvErr != nil {
					t.Errorf("half close: %v; the peer: %v", err, recvErr)
				}
				_ = ini.Close()
				if _, err := box.now(); !errors.Is(err, io.EOF) {
					t.Errorf("after the close, the peer: %v", err)
				}
			})
		})
	}
}

// Somebody else may end a connection while something is at hand that is held back,
// or that Await has found: it is passed on no more, and recorded all the same.
func TestWhatIsAtHandWhenTheConnectionEndsIsNotPassedOn(t *testing.T) {
	never := func([]byte, uint64) { t.Error("a ULPDU was passed on") }
	ways := map[string]func(*Conn) error{
		"Receive": func(c *Conn) error { return c.Receive(each(never)) },
		"TryReceive": func(c *Conn) error {
			_, err := c.TryReceive(each(never))
			return err
		},
		"Await": func(c *Conn) error {
			_ = c.Await() // it is for the next call to tell
			return c.Receive(each(never))
		},
		"Discard": func(c *Conn) error {
			_ = c.Discard()
			return net.ErrClosed
		},
	}
	play := func(t *testing.T, r *tape, held bool, end, way func(*Conn) error) {
		cfg := Config{}
		if r != nil {
			cfg.Recorder = r
		}
		inRole(t, Initiator, cfg, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			fpdu := fpdus(in, []byte("at hand"))
			atHand(t, c, p, fpdu, held)
			if err := end(c); err != nil {
				t.Error(err)
			}
			if err := way(c); !errors.Is(err, net.ErrClosed) {
				t.Errorf("%v; want net.ErrClosed", err)
			}
			if c.in.buf != nil {
				t.Error("the receiver still holds a buffer")
			}
			if r != nil {
				r.holds(t, "received", &r.received, r.recvs, frame(repKey, 0x40, 1), fpdu)
			}
		})
	}
	for name, way := range ways {
		for ending, end := range endings {
			for _, held := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s after %s, held %v", name, ending, held), func(t *testing.T) {
					play(t, nil, held, end, way)
					play(t, new(tape), held, end, way)
				})
			}
		}
	}
}

// atHand has the peer say something that c then has at hand.
func atHand(t *testing.T, c *Conn, p *peer, fpdu []byte, held bool) {
	t.Helper()
	p.says(fpdu)
	if !held {
		if err := c.Await(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := c.Receive(refuse); !errors.Is(err, errNotNow) {
		t.Fatal(err)
	}
}

// The race detector sees whether one who waits looks at what one who closes changes.
func TestConnectionIsClosedBesideOneWhoAwaits(t *testing.T) {
	for _, held := range []bool{false, true} {
		inRole(t, Initiator, Config{Recorder: new(tape)}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			atHand(t, c, p, fpdus(in, []byte("at hand")), held)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = c.Close()
			}()
			_ = c.Await()
			<-done
		})
	}
}
