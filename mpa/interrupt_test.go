package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
)

// tries calls TryReceive once and checks what it passes.
func tries(t *testing.T, c *Conn, want ...string) error {
	t.Helper()
	var got []string
	some, err := c.TryReceive(each(func(u []byte, _ uint64) { got = append(got, string(u)) }))
	if !slices.Equal(got, want) || some != (len(want) > 0) {
		t.Errorf("TryReceive passed %q and says %v; want %q", got, some, want)
	}
	return err
}

func TestTryReceiveTakesWhatIsThere(t *testing.T) {
	inRole(t, Initiator, Config{Markers: true}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
		mustTry := func(want ...string) {
			t.Helper()
			if err := tries(t, c, want...); err != nil {
				t.Error(err)
			}
		}
		mustTry()
		p.says(fpdus(in, []byte("one")))
		mustTry("one")
		mustTry()
		p.says(fpdus(in, []byte("two"), []byte("three"), nil))
		mustTry("two", "three", "")
		long := bytes.Repeat([]byte("long "), 500)
		b := fpdus(in, []byte("whole"), long, []byte("last"))
		p.says(b[:700])
		mustTry("whole")
		for _, piece := range [][]byte{b[700:701], b[701:1900], b[1900 : len(b)-30]} {
			p.says(piece)
			mustTry()
			mustTry()
		}
		p.says(b[len(b)-30:])
		mustTry(string(long), "last")
		mustTry()
	})
}

// What comes of each way in which a stream goes wrong is the same, whoever waits.
func TestTryReceiveTellsErrorsAsReceiveDoes(t *testing.T) {
	for _, way := range ways {
		for _, awaits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after Await %v", way.name, awaits), func(t *testing.T) {
				inRole(t, Initiator, Config{Markers: true}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
					p.says(fpdus(in, []byte("goodgood")))
					if way.name != "reset" {
						way.say(p, in)
					}
					var got []string
					var err error
					try := func() {
						_, err = c.TryReceive(each(func(u []byte, _ uint64) { got = append(got, string(u)) }))
					}
					await := func() {
						if !awaits {
							return
						}
						if err := c.Await(); err != nil {
							t.Errorf("Await: %v; it is for the next call to tell", err)
						}
					}
					await()
					try()
					if way.name == "reset" {
						way.say(p, in)
					}
					for range 3 {
						if err == nil {
							await()
							try()
						}
					}
					if !slices.Equal(got, []string{"goodgood"}) {
						t.Errorf("passed %q", got)
					}
					wantCode(t, way.name, err, way.code)
					first := err
					for range 2 {
						if err := c.Await(); err != nil {
							t.Errorf("Await after the error: %v", err)
						}
						if err := tries(t, c); !errors.Is(err, first) {
							t.Errorf("later: %v; first: %v", err, first)
						}
						if err := c.Receive(each(func([]byte, uint64) { t.Error("passed on") })); !errors.Is(err, first) {
							t.Errorf("Receive later: %v; first: %v", err, first)
						}
					}
					if c.in.buf != nil {
						t.Error("the receiver still holds a buffer")
					}
				})
			})
		}
	}
}

// A call in the background that can be looked at.
type call struct{ done chan error }

func calls(f func() error) call {
	c := call{make(chan error, 1)}
	go func() { c.done <- f() }()
	return c
}

// wants checks that the call has returned once all has come to rest.
func (c call) wants(t *testing.T, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-c.done:
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("it returned %v; want %v", err, want)
		}
	default:
		t.Fatalf("it still waits; want %v", want)
	}
}

func (c call) stillWaits(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-c.done:
		t.Fatalf("it returned %v", err)
	default:
	}
}

func TestAwaitKeepsWhatHasComeForTheNextCall(t *testing.T) {
	next := map[string]func(t *testing.T, c *Conn, want ...string) error{
		"TryReceive": tries,
		"Receive": func(t *testing.T, c *Conn, want ...string) error {
			t.Helper()
			var got []string
			err := c.Receive(each(func(u []byte, _ uint64) { got = append(got, string(u)) }))
			if !slices.Equal(got, want) {
				t.Errorf("Receive passed %q; want %q", got, want)
			}
			return err
		},
	}
	for name, next := range next {
		t.Run(name, func(t *testing.T) {
			inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
				for range 3 {
					a := calls(c.Await)
					a.stillWaits(t)
					if c.in.buf != nil {
						t.Error("it holds a buffer while it waits")
					}
					p.says(fpdus(in, []byte("one"), []byte("two")))
					a.wants(t, nil)
					if err := c.Await(); err != nil { // it is there still
						t.Error(err)
					}
					if err := next(t, c, "one", "two"); err != nil {
						t.Error(err)
					}
				}
				// Of a part, Await tells as well; it is no ULPDU yet.
				b := fpdus(in, []byte("parted"))
				p.says(b[:5])
				if err := c.Await(); err != nil {
					t.Error(err)
				}
				if err := tries(t, c); err != nil {
					t.Error(err)
				}
				a := calls(c.Await)
				a.stillWaits(t)
				if c.in.buf != nil || len(c.in.stash) != 5 {
					t.Errorf("it holds %v and %d octets while it waits", c.in.buf != nil, len(c.in.stash))
				}
				p.says(b[5:])
				a.wants(t, nil)
				if err := next(t, c, "parted"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestInterruptEndsOneWait(t *testing.T) {
	none := ignore
	waits := map[string]func(c *Conn) func() error{
		"Receive": func(c *Conn) func() error { return func() error { return c.Receive(none) } },
		"Await":   func(c *Conn) func() error { return c.Await },
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
				// While it waits.
				w := calls(wait(c))
				w.stillWaits(t)
				c.Interrupt()
				w.wants(t, ErrInterrupted)
				w = calls(wait(c)) // and the next one waits
				w.stillWaits(t)
				// Twice at once counts once.
				c.Interrupt()
				c.Interrupt()
				w.wants(t, ErrInterrupted)
				w = calls(wait(c))
				w.stillWaits(t)
				c.Interrupt()
				w.wants(t, ErrInterrupted)
				// Before it waits.
				c.Interrupt()
				w = calls(wait(c))
				w.wants(t, ErrInterrupted)
				w = calls(wait(c))
				w.stillWaits(t)
				p.says(fpdus(in, []byte("data")))
				w.wants(t, nil)
				if name == "Await" {
					// With something at hand, nobody waits: it is for the next one.
					c.Interrupt()
					if err := c.Await(); err != nil {
						t.Error(err)
					}
					if err := tries(t, c, "data"); err != nil {
						t.Error(err)
					}
					w = calls(wait(c))
					w.wants(t, ErrInterrupted)
				}
				// Sending does not mind.
				c.Interrupt()
				post(t, c, "out")
				flush(t, c)
				p.expects(fpdus(out, []byte("out")))
				if _, err := c.TryReceive(none); err != nil && !errors.Is(err, ErrInterrupted) {
					t.Error(err)
				}
				if _, err := c.TryReceive(none); err != nil {
					t.Errorf("the second TryReceive: %v", err)
				}
				// A connection that is closed waits for nothing.
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				c.Interrupt()
				err := c.Receive(none)
				if errors.Is(err, ErrInterrupted) {
					err = c.Receive(none)
				}
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
		})
	}
}

// Whoever discards does so to the end of the stream.
func TestInterruptDoesNotEndADiscard(t *testing.T) {
	inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, _ *Framer) {
		c.Interrupt()
		d := calls(c.Discard)
		d.stillWaits(t)
		c.Interrupt()
		d.stillWaits(t)
		p.says(make([]byte, 1000))
		d.stillWaits(t)
		_ = p.conn.CloseWrite()
		d.wants(t, nil)
	})
}

// Interrupts at any moment cost no byte, and none is passed twice, whichever
// calls take them.
func TestInterruptsLoseNothing(t *testing.T) {
	for seed := range uint64(20) {
		f := simnet.Faults{Seed: seed, ShortReads: true, ShortWrites: true, Latency: time.Microsecond, Jitter: 20 * time.Microsecond}
		beside(t, simnet.Options{BA: f, Buffer: 5000}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, Config{Revision: 1, Markers: true}, frame(repKey, 0x40, 1))
			const n = 200
			go func() {
				out := &Framer{CRC: true, Markers: true}
				for i := range n {
					p.says(fpdus(out, append([]byte{byte(i)}, make([]byte, i*13%2500)...)))
				}
				_ = p.conn.CloseWrite()
			}()
			stop := make(chan struct{})
			interrupted := make(chan struct{})
			go func() {
				defer close(interrupted)
				rng := rand.New(rand.NewPCG(seed, 3))
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(rng.IntN(30)) * time.Microsecond):
						c.Interrupt()
					}
				}
			}()
			wantAll(t, c, n, rand.New(rand.NewPCG(seed, 4)))
			close(stop)
			<-interrupted
		})
	}
}

// wantAll receives n ULPDUs, which tell their number and length, and the end, by
// all calls there are.
func wantAll(t *testing.T, c *Conn, n int, rng *rand.Rand) {
	t.Helper()
	next, interrupts := 0, 0
	place := func(u []byte, order uint64) {
		if order != uint64(next) || len(u) != 1+next*13%2500 || u[0] != byte(next) {
			t.Errorf("ULPDU %d of %d octets with order %d; want %d", u[0], len(u), order, next)
		}
		next++
	}
	for {
		var err error
		before, some := next, false
		switch rng.IntN(3) {
		case 0:
			if err = c.Receive(each(place)); err == nil && next == before {
				t.Error("Receive passed nothing")
			}
		case 1:
			if some, err = c.TryReceive(each(place)); some != (next > before) {
				t.Errorf("TryReceive says %v of %d ULPDUs", some, next-before)
			}
		case 2:
			err = c.Await()
		}
		switch {
		case err == nil:
		case errors.Is(err, ErrInterrupted):
			if interrupts++; next != before {
				t.Error("a call passed something and says that it was interrupted")
			}
		default:
			if !errors.Is(err, io.EOF) || next != n {
				t.Errorf("after %d ULPDUs of %d: %v", next, n, err)
			}
			if interrupts == 0 {
				t.Error("nothing was interrupted")
			}
			return
		}
	}
}

func TestInterruptsLoseNothingOverTCP(t *testing.T) {
	overTCP(t, Config{}, Config{}, func(t *testing.T, ini, res *Conn) {
		const n = 2000
		if !res.Polls() {
			const missing = "TCP can't be polled here"
			if os.Getenv("CI") != "" {
				t.Fatal(missing)
			}
			t.Skip(missing)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range n {
				send(t, ini, append([]byte{byte(i)}, make([]byte, i*13%2500)...))
			}
			if err := ini.CloseWrite(); err != nil {
				t.Error(err)
			}
		}()
		stop, interrupted := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(interrupted)
			for {
				select {
				case <-stop:
					return
				default:
					res.Interrupt()
				}
			}
		}()
		wantAll(t, res, n, rand.New(rand.NewPCG(1, 1)))
		close(stop)
		<-interrupted
		<-sent
	})
}

func TestInterruptOverTCP(t *testing.T) {
	overTCP(t, Config{}, Config{}, func(t *testing.T, ini, res *Conn) {
		for range 50 {
			done := make(chan error)
			go func() { done <- res.Await() }()
			res.Interrupt() // before or while it waits
			if err := <-done; !errors.Is(err, ErrInterrupted) {
				t.Errorf("%v; want ErrInterrupted", err)
			}
		}
		if err := ini.Abort(); err != nil {
			t.Error(err)
		}
		if err := res.Await(); err != nil {
			t.Errorf("Await after a reset: %v; want nothing", err)
		}
		if _, err := res.TryReceive(ignore); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("then: %v; want ECONNRESET", err)
		}
	})
}

// Who polls many connections has no buffer for each of them.
func TestTryReceiveOfNothingHoldsNoBuffer(t *testing.T) {
	inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
		for range 3 {
			if err := tries(t, c); err != nil || c.in.buf != nil {
				t.Errorf("%v; holds a buffer: %v", err, c.in.buf != nil)
			}
			p.says(fpdus(in, []byte("x")))
			if err := tries(t, c, "x"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestConnPollsIfItsStreamDoes(t *testing.T) {
	for _, polls := range []bool{false, true} {
		beside(t, simnet.Options{Polls: polls}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			if c := initiated(t, conn, p, plainConfig, plainReply); c.Polls() != polls {
				t.Errorf("Polls is %v; want %v", c.Polls(), polls)
			}
		})
	}
	beside(t, simnet.Options{Polls: true}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		leakcheck.Check(t)
		if c := initiated(t, simnet.Plain(conn), p, plainConfig, plainReply); c.Polls() {
			t.Error("a connection that can only wait says that it can be polled")
		}
	})
}
