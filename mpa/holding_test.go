package mpa

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
)

// A keeper adds up what a connection says that it keeps.
type keeper struct{ now, most int }

func (k *keeper) tell(octets int) {
	k.now += octets
	k.most = max(k.most, k.now)
}

// held runs f with a connection that tells a keeper, and the other end of its stream.
func held(t *testing.T, polls bool, f func(c *Conn, k *keeper, peer *simnet.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := simnet.Pipe(simnet.Options{Polls: polls})
		ini, res := connect(t, a, b, Config{CRC: CRCOff}, Config{CRC: CRCOff})
		_ = ini // its stream is used without it
		k := &keeper{}
		res.SetKeeper(k.tell)
		f(res, k, a)
		_ = res.Abort()
		res.Free()
		if k.now != 0 || k.most > MaxBuffers {
			t.Errorf("%d octets are kept in the end, at most %d; want none, and %d at most", k.now, k.most, MaxBuffers)
		}
		if !res.Stalled().IsZero() {
			t.Errorf("what is freed stalls since %v", res.Stalled())
		}
		if in := res.in.buf; in != nil || res.out.arena != nil || res.out.kept != nil {
			t.Error("a buffer is left")
		}
	})
}

// What is kept of an FPDU that has not come whole is what is told, whoever receives.
func TestUnfinishedFPDUIsAccountedFor(t *testing.T) {
	fpdu, err := (&Framer{}).AppendFPDU(nil, make([]byte, 50_000))
	if err != nil {
		t.Fatal(err)
	}
	for _, polls := range []bool{false, true} {
		for _, tt := range []struct{ sent, kept int }{
			{1, 0}, {stashMost, 0}, {stashMost + 1, intakeSize}, {len(fpdu) - 1, intakeSize}, {len(fpdu), 0}, {len(fpdu) + 10, 0},
		} {
			held(t, polls, func(c *Conn, k *keeper, peer *simnet.Conn) {
				look := func() {
					if polls {
						for range 3 {
							if _, err := c.TryReceive(ignore); err != nil {
								t.Fatal(err)
							}
						}
						return
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						for {
							if err := c.Receive(ignore); errors.Is(err, ErrInterrupted) {
								return
							}
						}
					}()
					synctest.Wait()
					c.Interrupt()
					<-done
				}
				look()
				stream := append(append([]byte{}, fpdu...), fpdu...)
				if _, err := peer.Write(stream[:tt.sent]); err != nil {
					t.Fatal(err)
				}
				look()
				if k.now != tt.kept {
					t.Errorf("polls %v: %d octets of %d: %d octets are kept; want %d", polls, tt.sent, len(fpdu), k.now, tt.kept)
				}
				if buf := c.in.buf != nil; buf != (tt.kept > 0) {
					t.Errorf("polls %v: %d octets of %d: a buffer is held: %v", polls, tt.sent, len(fpdu), buf)
				}
				if stalls := !c.Stalled().IsZero(); stalls != (tt.kept > 0) {
					t.Errorf("polls %v: %d octets of %d: it stalls: %v", polls, tt.sent, len(fpdu), stalls)
				}
				if _, err := peer.Write(stream[tt.sent:]); err != nil {
					t.Fatal(err)
				}
				look()
				if k.now != 0 || !c.Stalled().IsZero() {
					t.Errorf("polls %v: %d octets are kept when all is there", polls, k.now)
				}
			})
		}
	}
}

// A ULPDU that place returns an error for keeps the buffer.
func TestKeptULPDUIsAccountedFor(t *testing.T) {
	for _, polls := range []bool{false, true} {
		held(t, polls, func(c *Conn, k *keeper, peer *simnet.Conn) {
			open := false
			b, _ := (&Framer{}).AppendFPDU(nil, []byte("hello"))
			if _, err := peer.Write(b); err != nil {
				t.Fatal(err)
			}
			place := when(&open, func([]byte, uint64) {})
			look := func() {
				if polls {
					_, _ = c.TryReceive(place)
					_, _ = c.TryReceive(place)
				} else {
					_ = c.Receive(place)
				}
			}
			look()
			if k.now != intakeSize || c.Stalled().IsZero() {
				t.Errorf("polls %v: %d octets are kept, since %v", polls, k.now, c.Stalled())
			}
			open = true
			look()
			if !c.Stalled().IsZero() {
				t.Errorf("polls %v: it stalls", polls)
			}
		})
	}
}

// What the stream does not take is kept, and told.
func TestUntakenFPDUsAreAccountedFor(t *testing.T) {
	for _, size := range []int{100, 5000, 50_000, 64_000} {
		for _, take := range []int{0, 1, 1000, 70_000, 1 << 20} { // bytes that the peer reads at a time
			held(t, false, func(c *Conn, k *keeper, peer *simnet.Conn) {
				b, _ := (&Framer{}).AppendFPDU(nil, []byte("first"))
				if _, err := peer.Write(b); err != nil {
					t.Fatal(err)
				}
				if err := c.Receive(ignore); err != nil {
					t.Fatal(err)
				}
				payload := make([]byte, size)
				got := make([]byte, take)
				for range 300 {
					for {
						ok, err := c.Post([]byte("head"), [][]byte{payload}, true)
						if err != nil {
							t.Fatal(err)
						}
						if !ok {
							break
						}
					}
					if _, err := c.Flush(false); err != nil {
						t.Fatal(err)
					}
					if want := c.out.size(); k.now != want {
						t.Fatalf("%d octets are kept; %d are told", want, k.now)
					}
					if take > 0 {
						_ = peer.SetReadDeadline(time.Now().Add(1))
						_, _ = io.ReadFull(peer, got)
					}
				}
				if take < 1<<20 && (k.now == 0 || c.Stalled().IsZero()) {
					t.Errorf("%d octets are kept of a connection that is full, since %v", k.now, c.Stalled())
				}
				_ = peer.SetReadDeadline(time.Time{})
				go func() { _, _ = io.Copy(io.Discard, peer) }()
				for {
					out, err := c.Flush(true)
					if err != nil {
						t.Fatal(err)
					}
					if out {
						break
					}
				}
				if k.now != 0 || !c.Stalled().IsZero() {
					t.Errorf("%d octets are kept when all is out", k.now)
				}
			})
		}
	}
}

// A peer that continues byte by byte makes no progress.
func TestStallLastsUntilThePeerGoesOn(t *testing.T) {
	held(t, true, func(c *Conn, _ *keeper, peer *simnet.Conn) {
		fpdu, _ := (&Framer{}).AppendFPDU(nil, make([]byte, 50_000))
		look := func() {
			_, _ = c.TryReceive(ignore)
			_, _ = c.TryReceive(ignore)
		}
		begun := time.Now()
		rest := append(append([]byte{}, fpdu...), fpdu...)
		write := func(n int) {
			if _, err := peer.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			look()
		}
		write(10_000)
		for range 10 {
			time.Sleep(time.Second)
			write(1)
			if s := c.Stalled(); !s.Equal(begun) {
				t.Fatalf("it stalls since %v; want %v", s, begun)
			}
		}
		begun = time.Now()
		write(len(fpdu) - 10_010 + 10_000) // the rest of the first, and some of the second
		if s := c.Stalled(); !s.Equal(begun) {
			t.Errorf("it stalls since %v; want %v", s, begun)
		}
		write(len(rest))

		// The other direction.
		fill := func() {
			for {
				ok, err := c.Post([]byte("head"), [][]byte{make([]byte, 8000)}, true)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					if out, err := c.Flush(false); err != nil {
						t.Fatal(err)
					} else if !out {
						return
					}
				}
			}
		}
		fill()
		begun = time.Now()
		for range 10 {
			time.Sleep(time.Second)
			if _, err := io.ReadFull(peer, make([]byte, 10_000)); err != nil {
				t.Fatal(err)
			}
			fill()
			if s := c.Stalled(); !s.Equal(begun) {
				t.Fatalf("it stalls since %v; want %v", s, begun)
			}
		}
		if _, err := io.ReadFull(peer, make([]byte, batchLimit)); err != nil {
			t.Fatal(err)
		}
		fill()
		if s := c.Stalled(); !s.Equal(time.Now()) {
			t.Errorf("it stalls since %v; want %v", s, time.Now())
		}
	})
}

// A step is as long as it was said, and not one byte longer.
func TestStallEndsWithAWholeStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &holding{tell: func(int) {}}
		begun := time.Now().UnixNano()
		h.stalls(100, 10)
		time.Sleep(time.Second)
		if h.stalls(109, 10); h.since.Load() != begun {
			t.Error("less than a step has ended the stall")
		}
		if h.stalls(110, 10); h.since.Load() != time.Now().UnixNano() {
			t.Error("a step has not ended the stall")
		}
	})
}

// Of two directions that stall, the one counts that has done so for longer.
func TestStalledTellsTheLongestStall(t *testing.T) {
	for _, tt := range []struct{ in, out, want int64 }{{5, 3, 3}, {3, 5, 3}, {0, 4, 4}, {4, 0, 4}} {
		c := new(Conn)
		c.in.since.Store(tt.in)
		c.out.since.Store(tt.out)
		if got := c.Stalled(); !got.Equal(time.Unix(0, tt.want)) {
			t.Errorf("since %d and %d: %v", tt.in, tt.out, got)
		}
	}
}

// What is discarded stalls nobody.
func TestDiscardEndsAStall(t *testing.T) {
	held(t, true, func(c *Conn, k *keeper, peer *simnet.Conn) {
		fpdu, _ := (&Framer{}).AppendFPDU(nil, make([]byte, 50_000))
		if _, err := peer.Write(fpdu[:10_000]); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, _ = c.TryReceive(ignore)
		}
		if c.Stalled().IsZero() {
			t.Fatal("it does not stall")
		}
		done := make(chan error)
		go func() { done <- c.Discard() }()
		synctest.Wait()
		if !c.Stalled().IsZero() || k.now != 0 {
			t.Errorf("it stalls since %v, and keeps %d octets", c.Stalled(), k.now)
		}
		_ = peer.CloseWrite()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What was passed on is not held up by what is held back behind it, until somebody
// waits for that.
func TestBufferIsKeptOnlyForAWait(t *testing.T) {
	held(t, true, func(c *Conn, k *keeper, peer *simnet.Conn) {
		open := true
		place := when(&open, func([]byte, uint64) { open = false })
		f := &Framer{}
		if _, err := peer.Write(fpdus(f, []byte("one"), []byte("two"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if some, err := c.TryReceive(place); !some || !errors.Is(err, errNotNow) || k.now != 0 {
			t.Errorf("%v, %v, %d octets are kept", some, err, k.now)
		}
		if err := c.Await(); err != nil || k.now != intakeSize || c.Stalled().IsZero() {
			t.Errorf("%v, %d octets are kept since %v", err, k.now, c.Stalled())
		}
	})
	held(t, true, func(c *Conn, k *keeper, peer *simnet.Conn) {
		if _, err := peer.Write(fpdus(&Framer{}, []byte("one"))[:3]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if some, err := c.TryReceive(ignore); some || err != nil || k.now != 0 {
			t.Errorf("%v, %v, %d octets are kept", some, err, k.now)
		}
	})
}
