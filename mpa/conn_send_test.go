package mpa

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"unsafe"

	"urnic/internal/test/simnet"
)

func TestResponderSendsNothingBeforeTheFirstFPDU(t *testing.T) {
	for _, markers := range []bool{false, true} {
		flags := byte(0x40)
		if markers {
			flags |= 0x80
		}
		good := fpdus(&Framer{CRC: true}, []byte("first"))
		want := fpdus(&Framer{CRC: true, Markers: markers}, []byte("held back"), []byte("too"))
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c, _ := responded(t, conn, p, Config{}, frame(reqKey, flags, 1))
			box := receives(c)
			post(t, c, "held back")
			if done, err := c.Flush(false); done || err != nil {
				t.Errorf("Flush: %v, %v; want it to hold back", done, err)
			}
			waited := make(chan error)
			go func() {
				post(t, c, "too")
				done, err := c.Flush(true)
				if err == nil && !done {
					err = errors.New("not all is out")
				}
				waited <- err
			}()
			for i := range good { // not even when all but one byte is here
				p.expectsSilence()
				p.says(good[i : i+1])
			}
			if err := <-waited; err != nil {
				t.Error(err)
			}
			p.expects(want)
			if got, err := box.now(); len(got) != 1 || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
		// An FPDU that is not valid does not count.
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c, _ := responded(t, conn, p, Config{}, frame(reqKey, flags, 1))
			bad := slices.Clone(good)
			bad[4] ^= 1
			p.says(bad)
			_, err := receives(c).now()
			wantCode(t, "CRC", err, CodeCRC)
			post(t, c, "terminate")
			if done, err := c.Flush(false); done || err != nil {
				t.Errorf("Flush: %v, %v; want it to hold back", done, err)
			}
			p.expectsSilence()
		})
	}
	t.Run("abort ends the wait", func(t *testing.T) {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c, _ := responded(t, conn, p, plainConfig, plainRequest)
			post(t, c, "held back")
			waited := make(chan error)
			go func() {
				_, err := c.Flush(true)
				waited <- err
			}()
			synctest.Wait()
			_ = c.Abort()
			wantCode(t, "aborted", <-waited, CodeConnectionLost)
			p.expectsEnd()
		})
	})
	t.Run("an initiator does not wait", func(t *testing.T) {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, plainConfig, plainReply)
			post(t, c, "at once")
			flush(t, c)
			p.expects(fpdus(&Framer{}, []byte("at once")))
		})
	})
}

func TestMULPDUChangeIsExposed(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		s := &sized{Conn: conn}
		s.mss.Store(1448)
		c := initiated(t, s, p, plainConfig, plainReply)
		if c.MULPDU() != 1442 {
			t.Errorf("MULPDU %d at MSS 1448; want 1442", c.MULPDU())
		}
		out := &Framer{}
		for _, tt := range []struct{ mss, mulpdu int }{{900, 894}, {8960, 8954}, {100, MinMULPDU}, {0, 1442}} {
			s.mss.Store(int64(tt.mss))
			before := make([]byte, c.MULPDU()) // was cut for the old size, and is sent all the same
			post(t, c, string(before))
			flush(t, c)
			p.expects(fpdus(out, before))
			for range measureEvery {
				post(t, c, "x")
				flush(t, c)
				p.expects(fpdus(out, []byte("x")))
			}
			if c.MULPDU() != tt.mulpdu {
				t.Errorf("MULPDU %d at MSS %d; want %d", c.MULPDU(), tt.mss, tt.mulpdu)
			}
		}
	})
	for _, tt := range []struct {
		cfg    Config
		flags  byte
		mulpdu int
	}{
		{Config{EMSS: 1024}, 0, 1018},
		{Config{EMSS: 1460}, 0x80, 1442},
		{Config{MULPDU: 60_000}, 0x80, 60_000}, // whatever the segment size
		{Config{}, 0, 1442},
	} {
		inRole(t, Initiator, tt.cfg, tt.flags, func(t *testing.T, c *Conn, _ *peer, _, _ *Framer) {
			for range 2 * measureEvery {
				if c.MULPDU() != tt.mulpdu {
					t.Fatalf("%+v: MULPDU %d; want %d", tt.cfg, c.MULPDU(), tt.mulpdu)
				}
				post(t, c, "x")
				flush(t, c)
			}
		})
	}
}

func TestSmallFPDUsLeaveInOneWrite(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		w := &watched{Conn: conn}
		c := initiated(t, w, p, Config{Revision: 1}, plainReply)
		out := &Framer{CRC: true}
		var want []byte
		for i := range 200 {
			u := bytes.Repeat([]byte{byte(i)}, i*5)
			post(t, c, string(u))
			want = append(want, fpdus(out, u)...)
		}
		p.expectsSilence()
		w.watch = func(pieces [][]byte) {
			if len(pieces) != 1 {
				t.Errorf("%d pieces for FPDUs that lie behind each other", len(pieces))
			}
		}
		flush(t, c)
		if w.writes != 1 {
			t.Errorf("%d writes for 200 FPDUs", w.writes)
		}
		p.expects(want)
		flush(t, c)
		if w.writes != 1 {
			t.Error("a Flush of nothing wrote")
		}
	})
}

// within tells whether p lies in mem.
func within(p, mem []byte) bool {
	start, at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return at >= start && at+uintptr(len(p)) <= start+uintptr(len(mem))
}

func TestLargeStablePayloadIsSentFromWhereItLies(t *testing.T) {
	for _, policy := range []CRCPolicy{CRCPrefer, CRCOff} {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			memory := make([]byte, 30_000)
			for i := range memory {
				memory[i] = byte(i * 7)
			}
			payload := [][]byte{memory[:10_000], nil, memory[10_000:10_001], {}, memory[10_001:]}
			var uncopied int
			w := &watched{Conn: conn}
			c := initiated(t, w, p, Config{Revision: 1, CRC: policy}, plainReply)
			w.watch = func(pieces [][]byte) {
				for _, piece := range pieces {
					if within(piece, memory) {
						uncopied += len(piece)
					}
				}
			}
			post(t, c, "before")
			for _, n := range []int{0, 1, 2, 3} { // all lengths of the pad
				payload[4] = memory[10_001 : len(memory)-n]
				if ok, err := c.Post([]byte("header"), payload, true); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			post(t, c, "behind")
			flush(t, c)
			if want := 4*len(memory) - 6; uncopied != want {
				t.Errorf("%d octets were sent from where they lay; want %d", uncopied, want)
			}
			out := &Framer{CRC: policy == CRCPrefer}
			want := fpdus(out, []byte("before"))
			for n := range 4 {
				want = append(want, fpdus(out, join([]byte("header"), memory[:len(memory)-n]))...)
			}
			p.expects(want, fpdus(out, []byte("behind")))
		})
	}
}

func TestPayloadIsCopiedUnlessItIsStableAndLarge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    Config
		flags  byte
		n      int
		stable bool
		copied bool
	}{
		{"not stable", Config{}, 0, 60_000, false, true},
		{"stable", Config{}, 0, 60_000, true, false},
		{"stable and just large enough", Config{}, 0, gatherMin, true, false},
		{"stable and small", Config{}, 0, gatherMin - 1, true, true},
		{"stable, but cut by markers", Config{}, 0x80, 60_000, true, true},
		{"stable, but to be recorded", Config{Recorder: new(tape)}, 0, 60_000, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inRole(t, Initiator, tt.cfg, tt.flags, func(t *testing.T, c *Conn, p *peer, out, _ *Framer) {
				payload := bytes.Repeat([]byte{1}, tt.n)
				want := fpdus(out, join([]byte("h"), payload))
				if ok, err := c.Post([]byte("h"), [][]byte{payload}, tt.stable); !ok || err != nil {
					t.Fatal(ok, err)
				}
				for i := range payload {
					payload[i] = 2
				}
				flush(t, c)
				if same := bytes.Equal(p.hears(len(want)), want); same != tt.copied {
					t.Errorf("copied: %v; want %v", same, tt.copied)
				}
			})
		})
	}
}

func TestPostWithoutRoomTakesNothing(t *testing.T) {
	small, large := make([]byte, 1000), make([]byte, 21_000)
	for _, tt := range []struct {
		name    string
		payload [][]byte
	}{
		{"copied octets", [][]byte{small}},
		{"pieces", slices.Repeat([][]byte{small[:80]}, 60)},
		{"octets", [][]byte{large}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			beside(t, simnet.Options{Buffer: 10_000}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				c := initiated(t, conn, p, plainConfig, plainReply)
				ulpdu := join(append([][]byte{[]byte("head")}, tt.payload...)...)
				posted := 0
				fill := func() {
					for {
						before := c.Posted()
						ok, err := c.Post([]byte("head"), tt.payload, true)
						if err != nil {
							t.Fatal(err)
						}
						if !ok {
							if c.Posted() != before {
								t.Errorf("a Post that took nothing counts %d octets", c.Posted()-before)
							}
							return
						}
						posted++
						if b := &c.out; b.used > arenaSize || len(b.pieces) > pieceLimit || b.octets > batchLimit {
							t.Fatalf("%d octets copied, %d pieces, %d octets", b.used, len(b.pieces), b.octets)
						}
					}
				}
				fill()
				if posted < 5 {
					t.Errorf("only %d FPDUs found room", posted)
				}
				// A full stream makes no room,
				if done, err := c.Flush(false); done || err != nil {
					t.Fatalf("Flush: %v, %v", done, err)
				}
				if ok, _ := c.Post([]byte("head"), tt.payload, true); ok {
					t.Error("there is room although little is out")
				}
				// but an empty one does.
				var got []byte
				drained := make(chan struct{})
				go func() {
					defer close(drained)
					got, _ = io.ReadAll(p.conn)
				}()
				for range 2 {
					for {
						done, err := c.Flush(true)
						if err != nil {
							t.Fatal(err)
						}
						if done {
							break
						}
					}
					fill()
				}
				for {
					if done, err := c.Flush(true); err != nil {
						t.Fatal(err)
					} else if done {
						break
					}
				}
				if c.Posted() != c.Accepted() || c.out.arena != nil {
					t.Errorf("%d octets posted, %d accepted; arena held: %v", c.Posted(), c.Accepted(), c.out.arena != nil)
				}
				_ = c.CloseWrite()
				<-drained
				want := bytes.Repeat(fpdus(&Framer{}, ulpdu), posted)
				if !bytes.Equal(got, want) {
					t.Errorf("the peer got %d octets; want %d", len(got), len(want))
				}
			})
		})
	}
}

func TestPostOfTooLongAULPDUIsAnError(t *testing.T) {
	inRole(t, Initiator, Config{}, 0, func(t *testing.T, c *Conn, p *peer, out, _ *Framer) {
		for _, stable := range []bool{false, true} {
			ok, err := c.Post([]byte{1}, [][]byte{make([]byte, MaxMULPDU/2), make([]byte, MaxMULPDU/2)}, stable)
			if e := wantCode(t, "65769 octets", err, CodeLocalCatastrophic); ok || e.TermWord() != 0x2005 {
				t.Errorf("%v, %v", ok, err)
			}
		}
		if c.Posted() != 0 {
			t.Errorf("%d octets were posted", c.Posted())
		}
		longest := make([]byte, MaxMULPDU)
		if ok, err := c.Post(longest[:1], [][]byte{longest[1:]}, true); !ok || err != nil {
			t.Errorf("the longest: %v, %v", ok, err)
		}
		flush(t, c)
		p.expects(fpdus(out, longest))
	})
}

func TestPartialWritesAtEveryBoundary(t *testing.T) {
	payload := make([]byte, gatherMin+1)
	for i := range payload {
		payload[i] = byte(i * 13)
	}
	ulpdus := [][]byte{payload[:5], payload, payload[:9], payload[:gatherMin], payload[:1], payload[:70]}
	takes := []int{100, 1000, len(payload) - 1, len(payload), len(payload) + 1, 10_000}
	for n := range 60 {
		takes = append(takes, n+1)
	}
	for _, take := range takes {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			rec := new(tape)
			for _, cfg := range []Config{{Revision: 1}, {Revision: 1, Recorder: rec}} {
				s := &stingy{Conn: conn, take: take}
				c := newConn(s, &cfg, Params{Role: Initiator, Revision: 1, CRC: true})
				var posted uint64
				next := 0
				out := &Framer{CRC: true}
				for done := false; !done || next < len(ulpdus); {
					// Two at first, then one more after each part that is out.
					for range 1 + 1/(next+1) {
						if next < len(ulpdus) {
							u := ulpdus[next]
							if ok, err := c.Post(u[:1], [][]byte{u[1:]}, true); !ok || err != nil {
								t.Fatal(ok, err)
							}
							posted += uint64(out.FPDULen(len(u)))
							next++
						}
					}
					var err error
					before := c.Accepted()
					if done, err = c.Flush(false); err != nil {
						t.Fatal(err)
					}
					if n := c.Accepted() - before; n > uint64(take) {
						t.Fatalf("a write of %d octets was accepted as %d", take, n)
					}
				}
				if c.Posted() != posted || c.Accepted() != posted {
					t.Errorf("%d octets posted, %d accepted; want %d", c.Posted(), c.Accepted(), posted)
				}
				p.expects(fpdus(out, ulpdus...))
			}
			if sent, want := rec.sent.Bytes(), fpdus(&Framer{CRC: true}, ulpdus...); !bytes.Equal(sent, want) {
				t.Errorf("in parts of %d: %d octets recorded; want %d", take, len(sent), len(want))
			}
		})
	}
}

func TestAcceptedULPDUArrivesOrFails(t *testing.T) {
	const n = 40
	ulpdu := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1+i*37%900) }
	var stream []byte
	for i := range n {
		stream = append(stream, fpdus(&Framer{CRC: true}, ulpdu(i))...)
	}
	// 0: nothing happens to the stream.
	for cut := int64(0); cut <= int64(len(stream)); cut += 173 {
		at := cut
		if cut > 0 {
			at += 20 // the bytes of the Request
		}
		synctest.Test(t, func(t *testing.T) {
			a, b := simnet.Pipe(simnet.Options{AB: simnet.Faults{CutAt: at}, Buffer: 1000})
			i, r := initiates(t.Context(), a, Config{Revision: 1}), responds(t.Context(), b, Config{})
			ini, res := (<-i).conn, (<-r).conn
			defer ini.Close()
			defer res.Close()
			box, back := receives(res), receives(ini)
			var sendErr error
			// Accepted is what has left, whatever has been posted.
			flush := func(wait bool) (done bool) {
				before := ini.Accepted()
				done, sendErr = ini.Flush(wait)
				left, posted := ini.Accepted(), ini.Posted()
				if left < before || left > posted || sendErr == nil && done != (left == posted) {
					t.Fatalf("cut at %d: accepted %d, then %d of %d octets; all out: %v", cut, before, left, posted, done)
				}
				if at > 0 && left > uint64(at+1000) { // the stream holds 1000
					t.Fatalf("cut at %d: accepted %d octets", cut, left)
				}
				return done
			}
			for i := 0; i < n && sendErr == nil; {
				ok, err := ini.Post(nil, [][]byte{ulpdu(i)}, true)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					i++
				}
				flush(!ok)
			}
			for done := false; !done && sendErr == nil; {
				done = flush(true)
			}
			if sendErr == nil {
				sendErr = ini.CloseWrite()
			}
			got, recvErr := box.now()
			for i, u := range got {
				if u != string(ulpdu(i)) {
					t.Fatalf("cut at %d: ULPDU %d is another one", cut, i)
				}
			}
			_, backErr := back.now()
			if cut == 0 {
				if len(got) != n || !errors.Is(recvErr, io.EOF) || sendErr != nil || ini.Accepted() != uint64(len(stream)) {
					t.Errorf("%d ULPDUs, %v; sender: %v, %d octets accepted", len(got), recvErr, sendErr, ini.Accepted())
				}
				return
			}
			if errors.Is(recvErr, io.EOF) || backErr == nil {
				t.Errorf("cut at %d: the receiver got %v, the sender %v and %v", cut, recvErr, sendErr, backErr)
			}
			wantCode(t, "the receiver", recvErr, CodeConnectionLost)
			wantCode(t, "the sender", errors.Join(sendErr, backErr), CodeConnectionLost)
		})
	}
}
