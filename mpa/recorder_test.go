package mpa

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"urnic/internal/simnet"
)

// A tape is a Recorder that keeps all octets, and where each call ended.
type tape struct {
	mu             sync.Mutex
	sent, received bytes.Buffer
	sends, recvs   []int
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
		end  bool
	}{
		{"garbage", []byte("220 example.org\r\n"), false},
		{"the end in a Reply", frame(repKey, 0x40, 1)[:19], true},
		{"a rejection", frame(repKey, 0x60, 1), false},
		{"another revision", frame(repKey, 0x40, 7), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				r := new(tape)
				done := initiates(t.Context(), conn, Config{Revision: 1, Recorder: r})
				p.expects(request)
				p.says(tt.say)
				if tt.end {
					_ = p.conn.CloseWrite()
				}
				if s := <-done; s.err == nil {
					t.Error("no error")
				}
				r.holds(t, "sent", &r.sent, r.sends, request)
				r.holds(t, "received", &r.received, r.recvs, tt.say)
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
	t.Run("an FPDU with a wrong CRC, and none behind it", func(t *testing.T) {
		r := new(tape)
		inRole(t, Initiator, Config{Recorder: r}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			good, bad := fpdus(in, []byte("good")), fpdus(in, []byte("bad"))
			bad[5] ^= 1
			p.says(good, bad, good)
			_, err := receives(c).now()
			wantCode(t, "CRC", err, CodeCRC)
			r.holds(t, "received", &r.received, r.recvs, frame(repKey, 0x40, 1), good, bad)
		})
	})
	t.Run("no FPDU that has not arrived", func(t *testing.T) {
		r := new(tape)
		inRole(t, Initiator, Config{Recorder: r}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			good := fpdus(in, []byte("good"))
			p.says(good, good[:7])
			_ = p.conn.CloseWrite()
			_, err := receives(c).now()
			wantCode(t, "end", err, CodeConnectionLost)
			r.holds(t, "received", &r.received, r.recvs, frame(repKey, 0x40, 1), good)
		})
	})
}

// An answer must not be recorded before what it answers, so that an FPDU is
// recorded before the stream gets it, and not when it is posted.
func TestRecorderSeesAnFPDUWhenItIsFlushed(t *testing.T) {
	beside(t, simnet.Options{Buffer: 100}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		r := new(tape)
		c := initiated(t, conn, p, Config{Revision: 1, Recorder: r}, frame(repKey, 0x40, 1))
		request := frame(reqKey, 0x40, 1)
		out := &Framer{CRC: true}
		u := make([]byte, 54) // 60 octets an FPDU
		one, two, three := fpdus(out, u), fpdus(out, u), fpdus(out, u)
		post(t, c, string(u), string(u))
		r.holds(t, "posted", &r.sent, r.sends, request)
		_, _ = c.Flush(false) // 100 octets
		r.holds(t, "flushed, partly out", &r.sent, r.sends, request, one, two)
		post(t, c, string(u))
		r.holds(t, "another one posted", &r.sent, r.sends, request, one, two)
		p.hears(100)
		_, _ = c.Flush(false)
		r.holds(t, "all out", &r.sent, r.sends, request, one, two, three)
		_ = p.conn.Abort()
		synctest.Wait()
		post(t, c, string(u))
		if _, err := c.Flush(false); err == nil {
			t.Error("no error")
		}
		r.holds(t, "failed", &r.sent, r.sends, request, one, two, three, one)
	})
}
