package mpa

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// A tape is a Recorder that keeps all bytes, where each call ended, and how the
// sides ended, with the bytes that were recorded before.
type tape struct {
	mu             sync.Mutex
	sent, received bytes.Buffer
	sends, recvs   []int
	ends           []string
}

func (r *tape) Close(byUs bool) { r.end("FIN", byUs) }
func (r *tape) Reset(byUs bool) { r.end("RST", byUs) }

func (r *tape) end(how string, byUs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	who := "peer"
	if byUs {
		who = "us"
	}
	r.ends = append(r.ends, fmt.Sprintf("%s %s %d", who, how, r.received.Len()))
}

// hasEnds checks how the sides have ended, and after how many bytes.
func (r *tape) hasEnds(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.ends, want) {
		t.Errorf("recorded ends %q; want %q", r.ends, want)
	}
}

func (r *tape) Sent(pieces ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.Write(join(pieces...))
	r.sends = append(r.sends, r.sent.Len())
}

func (r *tape) Received(pieces ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received.Write(join(pieces...))
	r.recvs = append(r.recvs, r.received.Len())
}

// holds checks that a tape has these pieces, a call each.
func (r *tape) holds(t *testing.T, what string, got *bytes.Buffer, ends []int, want ...[]byte) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var wantEnds []int
	n := 0
	for _, w := range want {
		n += len(w)
		wantEnds = append(wantEnds, n)
	}
	if !bytes.Equal(got.Bytes(), join(want...)) || !slices.Equal(ends, wantEnds) {
		t.Errorf("%s: recorded %d octets up to %v; want %v", what, got.Len(), ends, wantEnds)
	}
}

func TestRecorderSeesAllFramesAndFPDUs(t *testing.T) {
	for _, markers := range []bool{false, true} {
		ours, theirs := &Framer{CRC: true, Markers: markers}, &Framer{CRC: true, Markers: markers}
		flags := byte(0x40)
		if markers {
			flags |= 0x80
		}
		request, reply := frame(reqKey, flags, 1, 'a'), frame(repKey, flags, 1, 'b', 'c')
		long := make([]byte, 10_000) // sent from where it lies, if it were not recorded
		out := [][]byte{fpdus(ours, []byte("one")), fpdus(ours, long), fpdus(ours, []byte("three"))}
		in := [][]byte{fpdus(theirs, nil), fpdus(theirs, long), fpdus(theirs, []byte("x"))}
		exchange := func(t *testing.T, c *Conn, p *peer) {
			box := receives(c)
			p.says(in...)
			if got, err := box.now(); len(got) != 3 || err != nil {
				t.Errorf("%d ULPDUs, %v", len(got), err)
			}
			post(t, c, "one")
			if ok, err := c.Post(nil, [][]byte{long}, true); !ok || err != nil {
				t.Fatal(ok, err)
			}
			post(t, c, "three")
			flush(t, c)
			p.expects(out...)
		}
		t.Run("initiator", func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				r := new(tape)
				c := initiated(t, conn, p, Config{Revision: 1, Markers: markers, PrivateData: []byte("a"), Recorder: r}, reply)
				exchange(t, c, p)
				r.holds(t, "sent", &r.sent, r.sends, slices.Insert(out, 0, request)...)
				r.holds(t, "received", &r.received, r.recvs, slices.Insert(in, 0, reply)...)
			})
		})
		*ours, *theirs = Framer{CRC: true, Markers: markers}, Framer{CRC: true, Markers: markers}
		t.Run("responder", func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				r := new(tape)
				c, got := responded(t, conn, p, Config{Markers: markers, PrivateData: []byte("bc"), Recorder: r}, request)
				if !bytes.Equal(got, reply) {
					t.Fatalf("reply %x", got)
				}
				exchange(t, c, p)
				r.holds(t, "sent", &r.sent, r.sends, slices.Insert(out, 0, reply)...)
				r.holds(t, "received", &r.received, r.recvs, slices.Insert(in, 0, request)...)
			})
		})
	}
}

func TestRecorderSeesWhatIsWrong(t *testing.T) {
	request := frame(reqKey, 0x40, 1)
	for _, tt := range []struct {
		name string
		say  []byte
		end  func(p *peer)
		want []string
	}{
		{"garbage", []byte("220 example.org\r\n"), nil, []string{"us FIN 17"}},
		{"the end in a Reply", frame(repKey, 0x40, 1)[:19], func(p *peer) { _ = p.conn.CloseWrite() }, []string{"peer FIN 19", "us FIN 19"}},
		{"a reset in a Reply", frame(repKey, 0x40, 1)[:19], func(p *peer) { _ = p.conn.Abort() }, []string{"peer RST 19", "us FIN 19"}},
		{"a rejection", frame(repKey, 0x60, 1), nil, nil},
		{"another revision", frame(repKey, 0x40, 7), nil, []string{"us FIN 20"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				r := new(tape)
				done := initiates(t.Context(), conn, Config{Revision: 1, Recorder: r})
				p.expects(request)
				p.says(tt.say)
				if tt.end != nil {
					synctest.Wait()
					tt.end(p)
				}
				if s := <-done; s.err == nil {
					t.Error("no error")
				}
				r.holds(t, "sent", &r.sent, r.sends, request)
				r.holds(t, "received", &r.received, r.recvs, tt.say)
				r.hasEnds(t, tt.want...)
			})
		})
	}
	t.Run("nothing", func(t *testing.T) {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			r := new(tape)
			_ = p.conn.Close()
			if s := <-responds(t.Context(), conn, Config{Recorder: r}); s.err == nil {
				t.Error("no error")
			}
			r.holds(t, "received", &r.received, r.recvs)
		})
	})
}

// What is passed to nobody tells why the connection ends, and must be there, in
// its place and once.
func TestRecorderSeesWhatIsNotPassedOn(t *testing.T) {
	for _, tt := range []struct {
		name     string
		markers  bool
		play     func(p *peer, in *Framer) [][]byte // what is said after the Reply, in the pieces that are to be recorded
		discards bool
		abort    bool // by this side, while it receives
		want     []string
	}{
		{"a bad CRC in the midst", false, func(p *peer, in *Framer) [][]byte {
			good, bad, cut := fpdus(in, []byte("good")), fpdus(in, []byte("bad")), fpdus(in, []byte("cut"))[:7]
			bad[5] ^= 1
			p.says(good, bad, good, cut)
			return [][]byte{good, bad, good, cut}
		}, false, false, []string{"us RST"}},
		{"what is discarded", false, func(p *peer, in *Framer) [][]byte {
			bad, one, two := fpdus(in, []byte("bad")), fpdus(in, []byte("one")), fpdus(in, make([]byte, 60_000))
			bad[5] ^= 1
			p.says(bad, one[:5])
			synctest.Wait()
			p.says(one[5:], two[:50_000])
			synctest.Wait()
			p.says(two[50_000:], one[:3])
			_ = p.conn.CloseWrite()
			return [][]byte{bad, one, two, one[:3]}
		}, true, false, []string{"peer FIN", "us RST"}},
		{"with markers, of which one is bad", true, func(p *peer, in *Framer) [][]byte {
			bad, next := fpdus(in, []byte("bad")), fpdus(in, []byte("next"))
			bad[3] = 4 // the first marker's pointer
			bad = appendCRC(bad[:len(bad)-4], UpdateCRC(0, bad[:len(bad)-4]))
			p.says(bad)
			synctest.Wait()
			p.says(next, next[:3])
			_ = p.conn.CloseWrite()
			return [][]byte{bad, join(next, next[:3])}
		}, true, false, []string{"peer FIN", "us RST"}},
		{"a cut FPDU", false, func(p *peer, in *Framer) [][]byte {
			good := fpdus(in, []byte("good"))
			p.says(good, good[:7])
			_ = p.conn.CloseWrite()
			return [][]byte{good, good[:7]}
		}, false, false, []string{"peer FIN", "us RST"}},
		{"garbage without an end", false, func(p *peer, _ *Framer) [][]byte {
			junk := bytes.Repeat([]byte{0xFF, 1, 2}, 5000)
			p.says(junk)
			return [][]byte{junk}
		}, false, true, []string{"us RST"}},
		{"half an FPDU, then a reset", false, func(p *peer, in *Framer) [][]byte {
			cut := fpdus(in, []byte("cut"))[:7]
			p.says(cut)
			synctest.Wait()
			_ = p.conn.Abort()
			return [][]byte{cut}
		}, false, false, []string{"peer RST"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := new(tape)
			cfg, flags := Config{Recorder: r, Markers: tt.markers}, byte(0x40)
			inRole(t, Initiator, cfg, flags, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
				in.Markers = tt.markers
				done := make(chan struct{})
				go func() {
					defer close(done)
					for c.Receive(ignore) == nil {
					}
					if tt.discards {
						_ = c.Discard()
					}
				}()
				pieces := tt.play(p, in)
				synctest.Wait()
				if tt.abort {
					_ = c.Abort()
				}
				<-done
				_ = c.Abort()
				_ = c.Close()
				pieces = slices.Insert(pieces, 0, frame(repKey, flags, 1))
				r.holds(t, "received", &r.received, r.recvs, pieces...)
				var want []string
				for _, w := range tt.want {
					want = append(want, fmt.Sprint(w, " ", len(join(pieces...))))
				}
				r.hasEnds(t, want...)
			})
		})
	}
}

func TestRecorderSeesWhoseHalfEndsFirst(t *testing.T) {
	receive := func(c *Conn) { _ = c.Receive(ignore) }
	for _, tt := range []struct {
		name string
		play func(c *Conn, p *peer)
		want []string
	}{
		{"this side's", func(c *Conn, p *peer) {
			_ = c.CloseWrite()
			_ = c.CloseWrite()
			_ = p.conn.CloseWrite()
			receive(c)
			_ = c.Close()
		}, []string{"us FIN 20", "peer FIN 20"}},
		{"the peer's", func(c *Conn, p *peer) {
			_ = p.conn.CloseWrite()
			receive(c)
			_ = c.CloseWrite()
			_ = c.Discard()
			_ = c.Close()
		}, []string{"peer FIN 20", "us FIN 20"}},
		{"the connection is closed", func(c *Conn, _ *peer) {
			_ = c.Close()
			receive(c)
		}, []string{"us FIN 20"}},
		{"the connection is closed while it is read", func(c *Conn, _ *peer) {
			go func() { _ = c.Close() }()
			receive(c)
		}, []string{"us FIN 20"}},
		{"reset by this side", func(c *Conn, p *peer) {
			_ = c.CloseWrite()
			_ = c.Abort()
			_ = c.Close()
			receive(c)
		}, []string{"us FIN 20", "us RST 20"}},
		{"reset by the peer, as reading finds", func(c *Conn, p *peer) {
			_ = p.conn.Abort()
			receive(c)
			_ = c.CloseWrite()
			_ = c.Abort()
		}, []string{"peer RST 20"}},
		{"reset by the peer, as writing finds", func(c *Conn, p *peer) {
			_ = p.conn.CloseWrite()
			receive(c)
			_ = p.conn.Abort()
			_, _ = c.Post(nil, [][]byte{{1}}, false)
			_, _ = c.Flush(true)
			_ = c.Abort()
		}, []string{"peer FIN 20", "peer RST 20"}},
		{"reset by the peer, as writing finds first", func(c *Conn, p *peer) {
			_ = p.conn.Abort()
			_, _ = c.Post(nil, [][]byte{{1}}, false)
			_, _ = c.Flush(true)
			_ = c.Abort()
		}, []string{"peer RST 20"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := new(tape)
			inRole(t, Initiator, Config{Recorder: r}, 0x40, func(t *testing.T, c *Conn, p *peer, _, _ *Framer) {
				tt.play(c, p)
				synctest.Wait()
				r.hasEnds(t, tt.want...)
			})
		})
	}
}

// An answer must not be recorded before what it answers, so that an FPDU is
// recorded before the stream gets it, and not when it is posted.
func TestRecorderSeesAnFPDUWhenItIsFlushed(t *testing.T) {
	beside(t, simnet.Options{Buffer: 100}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		r := new(tape)
		c := initiated(t, conn, p, Config{Revision: 1, Recorder: r}, frame(repKey, 0x40, 1))
		request := frame(reqKey, 0x40, 1)
		out := &Framer{CRC: true}
		u := make([]byte, 54) // 60 bytes an FPDU
		one, two, three := fpdus(out, u), fpdus(out, u), fpdus(out, u)
		post(t, c, string(u), string(u))
		r.holds(t, "posted", &r.sent, r.sends, request)
		_, _ = c.Flush(false) // 100 bytes
		r.holds(t, "flushed, partly out", &r.sent, r.sends, request, one, two)
		post(t, c, string(u))
		r.holds(t, "another one posted", &r.sent, r.sends, request, one, two)
		p.hears(100)
		_, _ = c.Flush(false)
		r.holds(t, "all out", &r.sent, r.sends, request, one, two, three)
		if slices.ContainsFunc(c.out.fpdus[:cap(c.out.fpdus)], func(p []byte) bool { return p != nil }) {
			t.Error("FPDUs are kept that were recorded")
		}
		_ = p.conn.Abort()
		synctest.Wait()
		post(t, c, string(u))
		if _, err := c.Flush(false); err == nil {
			t.Error("no error")
		}
		r.holds(t, "failed", &r.sent, r.sends, request, one, two, three, one)
	})
}
