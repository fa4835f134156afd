package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
)

func TestULPDUIsPassedOnlyAfterItsCRCIsVerified(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, right := range []bool{true, false} {
			inRole(t, Initiator, Config{Markers: markers}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
				box := receives(c)
				fpdu := fpdus(in, make([]byte, 600))
				if !right {
					fpdu[len(fpdu)-1] ^= 0x80
				}
				for i := range fpdu {
					if got, err := box.now(); len(got) != 0 || err != nil {
						t.Fatalf("after %d of %d octets: %d ULPDUs, %v", i, len(fpdu), len(got), err)
					}
					p.says(fpdu[i : i+1])
				}
				got, err := box.now()
				if right && (len(got) != 1 || err != nil) {
					t.Errorf("right CRC: %d ULPDUs, %v", len(got), err)
				}
				if !right {
					if len(got) != 0 {
						t.Error("wrong CRC: the ULPDU was passed")
					}
					if e := wantCode(t, "wrong CRC", err, CodeCRC); e.TermWord() != 0x2002 {
						t.Errorf("Terminate word %#x", e.TermWord())
					}
				}
			})
		}
	}
}

// An FPDU with two faults: the CRC is what is verified first.
func TestCRCIsVerifiedBeforeTheMarkers(t *testing.T) {
	for _, at := range []int{3, MarkerInterval + 3} { // the first marker, and one inside
		inRole(t, Initiator, Config{Markers: true}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			fpdu := fpdus(in, make([]byte, 600))
			fpdu[at] ^= 8
			p.says(fpdu)
			got, err := receives(c).now()
			if len(got) != 0 {
				t.Error("the ULPDU was passed")
			}
			wantCode(t, fmt.Sprintf("octet %d", at), err, CodeCRC)
		})
	}
}

// ways in which a stream goes wrong behind a good FPDU.
var ways = []struct {
	name string
	code Code
	say  func(p *peer, in *Framer)
}{
	{"CRC", CodeCRC, func(p *peer, in *Framer) {
		b := fpdus(in, []byte("bad"))
		b[len(b)-2] ^= 4
		p.says(b)
	}},
	{"marker", CodeMarker, func(p *peer, in *Framer) {
		in.CRC = false
		b := fpdus(in, make([]byte, 600))
		at := MarkerInterval - 20 // 4 bytes of marker and 16 of FPDU have gone before
		b[at+3] ^= 8
		p.says(appendCRC(b[:len(b)-4], UpdateCRC(0, b[:len(b)-4])))
		in.CRC = true
	}},
	{"end inside an FPDU", CodeConnectionLost, func(p *peer, in *Framer) {
		b := fpdus(in, []byte("cut"))
		p.says(b[:len(b)-1])
		_ = p.conn.CloseWrite()
	}},
	{"end", CodeConnectionLost, func(p *peer, _ *Framer) { _ = p.conn.CloseWrite() }},
	{"reset", CodeConnectionLost, func(p *peer, _ *Framer) {
		synctest.Wait()
		_ = p.conn.Abort()
	}},
}

func TestNothingIsPassedAfterAnError(t *testing.T) {
	for _, way := range ways {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, together %v", way.name, together), func(t *testing.T) {
				inRole(t, Initiator, Config{Markers: true}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
					box := new(inbox)
					if !together {
						box = receives(c)
					}
					p.says(fpdus(in, []byte("goodgood"))) // with its marker: 20 bytes
					if !together {
						synctest.Wait()
					}
					if way.name == "reset" && together {
						box = receives(c) // else the good one is lost with the rest
					}
					way.say(p, in)
					if way.code == CodeCRC || way.code == CodeMarker {
						for range 3 {
							if together {
								p.says(fpdus(in, []byte("too late")))
								continue
							}
							synctest.Wait()
							p.says(fpdus(in, []byte("too late")))
						}
					}
					if together && way.name != "reset" {
						box = receives(c)
					}
					got, err := box.now()
					if len(got) != 1 || got[0] != "goodgood" {
						t.Errorf("passed %q", got)
					}
					wantCode(t, way.name, err, way.code)
					for range 3 {
						again := c.Receive(each(func(u []byte, _ uint64) { t.Errorf("passed %q after the error", u) }))
						if !errors.Is(again, err) {
							t.Errorf("later: %v; first: %v", again, err)
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

func TestTCPStaysOpenAfterCRCAndMarkerErrors(t *testing.T) {
	for _, way := range ways[:2] {
		for _, role := range []Role{Initiator, Responder} {
			inRole(t, role, Config{Markers: true}, 0x40, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
				if role == Initiator {
					p.says(fpdus(in, []byte("goodgood")))
				} else { // it got an empty one before: 12 bytes
					p.says(fpdus(in, []byte("go")))
				}
				box := receives(c)
				way.say(p, in)
				_, err := box.now()
				wantCode(t, way.name, err, way.code)
				p.expectsSilence()
				time.Sleep(time.Hour)
				p.says([]byte("the peer knows nothing of it"))
				post(t, c, "terminate")
				flush(t, c)
				p.expects(fpdus(out, []byte("terminate")))
				p.expectsSilence()
			})
		}
	}
}

func TestGracefulCloseIsIndicated(t *testing.T) {
	for _, role := range []Role{Initiator, Responder} {
		inRole(t, role, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
			box := receives(c)
			p.says(fpdus(in, []byte("one"), []byte("two")))
			_ = p.conn.CloseWrite()
			got, err := box.now()
			e := wantCode(t, "FIN", err, CodeConnectionLost)
			if len(got) != 2 || !errors.Is(err, io.EOF) || e.TermWord() != 0x2001 {
				t.Errorf("%v: %q, %v; want two ULPDUs and io.EOF", role, got, err)
			}
			// Our own half is still there.
			post(t, c, "back")
			flush(t, c)
			p.expects(fpdus(out, []byte("back")))
			p.expectsSilence()
		})
	}
	t.Run("an end inside an FPDU is not graceful", func(t *testing.T) {
		fpdu := fpdus(&Framer{CRC: true}, []byte("whole"))
		for cut := 1; cut < len(fpdu); cut++ {
			for _, wait := range []bool{false, true} { // the bytes come with the end, or before it
				inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, _ *Framer) {
					p.says(fpdu, fpdu[:cut])
					var box *inbox
					if wait {
						box = receives(c)
						synctest.Wait()
					}
					_ = p.conn.CloseWrite()
					if !wait {
						box = receives(c)
					}
					got, err := box.now()
					wantCode(t, "FIN", err, CodeConnectionLost)
					if len(got) != 1 || errors.Is(err, io.EOF) || !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("%d octets of an FPDU: %q, %v", cut, got, err)
					}
				})
			}
		}
	})
}

func TestLossOfTCPIsReported(t *testing.T) {
	t.Run("to the receiver", func(t *testing.T) {
		for _, said := range []int{0, 1, 5, 11} {
			inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
				box := receives(c)
				if said > 0 {
					p.says(fpdus(in, []byte("abcdef"))[:said])
				}
				synctest.Wait()
				_ = p.conn.Abort()
				_, err := box.now()
				wantCode(t, "reset", err, CodeConnectionLost)
				if !errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
					t.Errorf("after %d octets: %v; want ECONNRESET", said, err)
				}
			})
		}
	})
	t.Run("to the sender", func(t *testing.T) {
		inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, _ *Framer) {
			_ = p.conn.Abort()
			post(t, c, "lost")
			for range 2 {
				_, err := c.Flush(false)
				wantCode(t, "reset", err, CodeConnectionLost)
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%v; want ECONNRESET", err)
				}
			}
			wantCode(t, "half close", c.CloseWrite(), CodeConnectionLost)
		})
	})
	t.Run("to a sender that waits", func(t *testing.T) {
		beside(t, simnet.Options{Buffer: 100}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, plainConfig, plainReply)
			errs := make(chan error)
			post(t, c, string(make([]byte, 1000)))
			go func() {
				for {
					if _, err := c.Flush(true); err != nil {
						errs <- err
						return
					}
				}
			}()
			synctest.Wait()
			_ = p.conn.Abort()
			wantCode(t, "reset", <-errs, CodeConnectionLost)
		})
	})
}

func TestULPDUsArePassedOnceAndInOrder(t *testing.T) {
	const n = 500
	for seed := range uint64(5) {
		beside(t, simnet.Options{BA: simnet.Faults{Seed: seed, ShortReads: true, ShortWrites: true}}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, Config{Markers: true, Revision: 1}, frame(repKey, 0x40, 1))
			go func() {
				f := &Framer{CRC: true, Markers: true}
				for i := range n {
					p.says(fpdus(f, append([]byte{byte(i >> 8), byte(i)}, make([]byte, i*7%1500)...)))
				}
				_ = p.conn.CloseWrite()
			}()
			next := 0
			var err error
			for err == nil {
				before := next
				err = c.Receive(each(func(u []byte, order uint64) {
					if got := int(u[0])<<8 | int(u[1]); got != next || order != uint64(next) {
						t.Errorf("ULPDU %d passed with order %d where %d was next", got, order, next)
					}
					next++
				}))
				if err == nil && next == before {
					t.Error("Receive returned without a ULPDU")
				}
			}
			if next != n || !errors.Is(err, io.EOF) {
				t.Errorf("%d ULPDUs, then %v", next, err)
			}
		})
	}
}

func TestULPDUsOfAnyLengthAreReceived(t *testing.T) {
	for _, markers := range []bool{false, true} {
		inRole(t, Initiator, Config{Markers: markers}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			box := receives(c)
			for i, n := range []int{0, 1, 2, 3, MaxMULPDU, MaxMULPDU + 1, MaxULPDU, 0} {
				p.says(fpdus(in, bytes.Repeat([]byte{7}, n)))
				if got, err := box.now(); err != nil || len(got) != i+1 || len(got[i]) != n {
					t.Fatalf("ULPDU %d of %d octets: %d came, %v", i, n, len(got), err)
				}
			}
		})
	}
}

func TestReceiverHoldsNoBufferWhileItWaits(t *testing.T) {
	inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
		box := receives(c)
		big := fpdus(in, make([]byte, 60_000))
		for i, piece := range [][]byte{
			fpdus(in, []byte("whole")),
			big[:1], big[1:50_000], big[50_000:],
			fpdus(in, []byte("x"), make([]byte, 300))[:100],
		} {
			p.says(piece)
			if _, err := box.now(); err != nil {
				t.Fatal(err)
			}
			unfinished := []int{0, 1, 50_000, 0, 92}[i]
			if unfinished > stashMost {
				if c.in.buf == nil || c.in.n != unfinished {
					t.Errorf("after piece %d: %d octets of a long FPDU are kept; want %d in a buffer", i, c.in.n, unfinished)
				}
				continue
			}
			if c.in.buf != nil || len(c.in.stash) != unfinished {
				t.Errorf("after piece %d: holds a buffer: %v, and %d octets; want %d", i, c.in.buf != nil, len(c.in.stash), unfinished)
			}
		}
		if cap(c.in.stash) > stashMost {
			t.Errorf("%d octets are still held for a long FPDU that is over", cap(c.in.stash))
		}
	})
}

func TestDiscardReadsToTheEnd(t *testing.T) {
	inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
		bad := fpdus(in, []byte("bad"))
		bad[len(bad)-1] ^= 1
		p.says(bad)
		wantCode(t, "CRC", c.Receive(ignore), CodeCRC)
		post(t, c, "terminate")
		flush(t, c)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- c.Discard() }()
		for range 20 {
			synctest.Wait()
			p.says(make([]byte, 50_000))
		}
		select {
		case err := <-done:
			t.Fatalf("it ended before the stream: %v", err)
		default:
		}
		// With all read, the close is no reset, and the Terminate arrives.
		_ = p.conn.CloseWrite()
		if err := <-done; err != nil {
			t.Errorf("at the end of the stream: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		p.expects(fpdus(out, []byte("terminate")))
		if _, err := p.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("then the peer reads %v", err)
		}
		if c.in.buf != nil || c.in.stash != nil {
			t.Error("the receiver still holds memory")
		}
		err := c.Receive(each(func([]byte, uint64) { t.Error("a ULPDU was passed") }))
		wantCode(t, "Receive", err, CodeConnectionLost)
		if errors.Is(err, net.ErrClosed) {
			t.Errorf("Receive after a Discard reads on: %v", err)
		}
	})
}

func TestDiscardInTheMiddleOfAnFPDU(t *testing.T) {
	for _, end := range []string{"end", "reset", "close"} {
		inRole(t, Initiator, Config{}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			p.says(fpdus(in, []byte("one"), []byte("two"))[:15])
			if err := c.Receive(ignore); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- c.Discard() }()
			synctest.Wait()
			switch end {
			case "end":
				_ = p.conn.CloseWrite()
				if err := <-done; err != nil {
					t.Errorf("%s: %v", end, err)
				}
			case "reset":
				_ = p.conn.Abort()
				err := <-done
				wantCode(t, end, err, CodeConnectionLost)
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%s: %v", end, err)
				}
			case "close":
				_ = c.Close()
				err := <-done
				wantCode(t, end, err, CodeConnectionLost)
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: %v", end, err)
				}
			}
		})
	}
}

// The ULPDU is place's only until it returns; within that, nothing may change.
func TestULPDUIsStableWhileItIsPlaced(t *testing.T) {
	inRole(t, Initiator, Config{Markers: true}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
		want := bytes.Repeat([]byte("0123456789"), 200)
		p.says(fpdus(in, want, want, want))
		n := 0
		if err := c.Receive(each(func(u []byte, _ uint64) {
			n++
			before := slices.Clone(u)
			p.says(fpdus(in, []byte("more")))
			synctest.Wait()
			if !bytes.Equal(u, before) || !bytes.Equal(u, want) && len(u) != 4 {
				t.Errorf("ULPDU %d changed", n)
			}
		})); err != nil || n < 3 {
			t.Errorf("%d ULPDUs, %v", n, err)
		}
	})
}
