package mpa

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
)

// Flush waits until it can do something, and no longer.
func TestFlushWaitsOnce(t *testing.T) {
	beside(t, simnet.Options{Buffer: 1000}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c := initiated(t, conn, p, plainConfig, plainReply)
		post(t, c, strings.Repeat("x", 10_000))
		if done, err := c.Flush(true); done || err != nil || c.Accepted() != 1000 {
			t.Errorf("%v, %v after %d octets; want 1000", done, err, c.Accepted())
		}
	})
}

func TestFlushThatFailsIsNotDone(t *testing.T) {
	for name, fail := range map[string]func(c *Conn, p *peer){
		"this side closes": func(c *Conn, _ *peer) { _ = c.Close() },
		"the peer resets":  func(_ *Conn, p *peer) { _ = p.conn.Abort() },
	} {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, plainConfig, plainReply)
			post(t, c, "x")
			fail(c, p)
			synctest.Wait()
			if done, err := c.Flush(true); done || err == nil {
				t.Errorf("%s: %v, %v", name, done, err)
			}
		})
	}
	// A Responder that must not send yet.
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c, _ := responded(t, conn, p, Config{}, plainRequest)
		post(t, c, "x")
		_ = c.Close()
		if done, err := c.Flush(true); done || !errors.Is(err, net.ErrClosed) {
			t.Errorf("held back: %v, %v", done, err)
		}
	})
}

// Payload that stays where it is takes no room in the arena, but pieces.
func TestGatheredPayloadTakesPiecesOnly(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c := initiated(t, conn, p, plainConfig, plainReply)
		for i := range 2 {
			if ok, err := c.Post([]byte("header"), [][]byte{make([]byte, 60_000)}, true); !ok || err != nil {
				t.Errorf("long ULPDU %d: %v, %v", i, ok, err)
			}
		}
	})
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c := initiated(t, conn, p, plainConfig, plainReply)
		for _, stable := range []bool{false, true} { // the first one fills half of the arena
			if ok, err := c.Post([]byte("header"), [][]byte{make([]byte, 60_000)}, stable); !ok || err != nil {
				t.Errorf("stable %v: %v, %v", stable, ok, err)
			}
		}
	})
	of := func(n int) (pieces [][]byte) {
		for range n {
			pieces = append(pieces, make([]byte, 32))
		}
		return pieces
	}
	for _, tt := range []struct {
		n  int
		ok bool
	}{{pieceLimit/2 - 2, true}, {pieceLimit/2 - 1, false}} {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, plainConfig, plainReply)
			if ok, err := c.Post([]byte("header"), of(pieceLimit/2-2), true); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if ok, err := c.Post([]byte("header"), of(tt.n), true); ok != tt.ok || err != nil {
				t.Errorf("%d pieces more: %v, %v; there are %d", tt.n, ok, err, len(c.out.pieces))
			}
		})
	}
}

// A stubborn is a stream that does not close.
type stubborn struct {
	net.Conn
	err error
}

func (s stubborn) Close() error {
	_ = s.Conn.Close()
	return s.err
}

func TestErrorOfCloseIsPassedOn(t *testing.T) {
	refused := errors.New("refused")
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c := initiated(t, stubborn{simnet.Plain(conn), refused}, p, plainConfig, plainReply)
		for range 2 { // it stays so
			if err := c.Close(); !errors.Is(err, refused) {
				t.Errorf("Close = %v", err)
			}
		}
	})
}

// A connection that was closed in time does not run into the limit for its first FPDU.
func TestClosedConnectionWaitsForNoFirstFPDU(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c, _ := responded(t, conn, p, Config{}, frame(reqKey, 0x50, 2, 0xC0, 1, 0xC0, 1))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		err := c.Receive(ignore)
		if e := wantCode(t, "Receive", err, CodeConnectionLost); !errors.Is(err, net.ErrClosed) || e.Clause == "RFC 6581 §9.2" {
			t.Errorf("Receive = %v", err)
		}
	})
}

// The first TryReceive that finds an error tells it.
func TestTryReceiveTellsAnErrorAtOnce(t *testing.T) {
	beside(t, simnet.Options{Polls: true}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c := initiated(t, conn, p, plainConfig, plainReply)
		_ = p.conn.Abort()
		synctest.Wait()
		if some, err := c.TryReceive(ignore); some || err == nil {
			t.Errorf("%v, %v", some, err)
		}
	})
}

// A ULPDU that was held back is passed on once, and nothing behind it if the connection
// is closed by then.
func TestULPDUThatWasHeldBackIsPassedOnOnce(t *testing.T) {
	for _, closes := range []bool{false, true} {
		beside(t, simnet.Options{Polls: true}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, plainConfig, plainReply)
			open := false
			f := &Framer{}
			p.says(fpdus(f, []byte("one"), []byte("two")))
			synctest.Wait()
			var got []string
			place := func(u []byte, _ uint64) {
				if got = append(got, string(u)); closes {
					_ = c.Close()
				}
			}
			take := when(&open, place)
			if err := c.Receive(take); !errors.Is(err, errNotNow) {
				t.Fatal(err)
			}
			open = true
			_, _ = c.TryReceive(take)
			if !closes {
				p.says(fpdus(f, []byte("three")))
				synctest.Wait()
			}
			_, _ = c.TryReceive(take)
			want := "one two three"
			if closes {
				want = "one"
			}
			if all := strings.Join(got, " "); all != want {
				t.Errorf("closes %v: passed on %q; want %q", closes, all, want)
			}
		})
	}
}

func TestAppendThatFailsLeavesWhatWasThere(t *testing.T) {
	front := []byte("front")
	for name, appends := range map[string]func(b []byte) ([]byte, error){
		"enhanced data": func(b []byte) ([]byte, error) { return Enhanced{IRD: MaxDepth + 2}.AppendBinary(b) },
		"frame": func(b []byte) ([]byte, error) {
			return (&Frame{PrivateData: make([]byte, MaxPrivateData+1)}).AppendBinary(b)
		},
		"FPDU": func(b []byte) ([]byte, error) { return (&Framer{}).AppendFPDU(b, make([]byte, MaxULPDU+1)) },
	} {
		if got, err := appends(bytes.Clone(front)); err == nil || !bytes.Equal(got, front) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// With an error, nothing is taken.
func TestErrorsOfParsersTakeNothing(t *testing.T) {
	wrong := fpdus(&Framer{CRC: true}, []byte("abcd"))
	wrong[3] ^= 1
	if u, n, err := (&Deframer{CRC: true}).Next(wrong); u != nil || n != 0 || err == nil {
		t.Errorf("CRC: %x, %d, %v", u, n, err)
	}
	marked := fpdus(&Framer{Markers: true}, []byte("abcd"))
	marked[3] = 4
	if u, n, err := (&Deframer{Markers: true}).Next(marked); u != nil || n != 0 || err == nil {
		t.Errorf("marker: %x, %d, %v", u, n, err)
	}
	if n := (&Deframer{}).FPDULen([]byte{0, 2}); n != 8 {
		t.Errorf("the length alone tells of %d octets; want 8", n)
	}
	if f, n, err := ParseFrame(join(reqKey, []byte{0, 1, 2, 1})); f.PrivateData != nil || n != 0 || err == nil {
		t.Errorf("frame: %+v, %d, %v", f, n, err)
	}
}

// What Reserved holds besides the reserved bits does not reach the other flags.
func TestReservedBitsTouchNoOthers(t *testing.T) {
	for rev, want := range map[uint8]byte{Revision1: 0x1F, Revision2: 0x0F} {
		b, err := (&Frame{Revision: rev, Reserved: 0xFF}).AppendBinary(nil)
		if err != nil || b[16] != want {
			t.Errorf("revision %d: flags %#02x, %v; want %#02x", rev, b[16], err, want)
		}
	}
}
