package mpa

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// A connection that is closed while it is read, by the one who is passed a ULPDU, has
// the rest recorded before its end.
func TestRecorderSeesTheRestBeforeACloseWithinReceive(t *testing.T) {
	for name, receive := range map[string]func(c *Conn, place func([]byte, uint64)){
		"Receive":    func(c *Conn, place func([]byte, uint64)) { _ = c.Receive(each(place)) },
		"TryReceive": func(c *Conn, place func([]byte, uint64)) { _, _ = c.TryReceive(each(place)) },
	} {
		for _, markers := range []bool{false, true} {
			r := new(tape)
			inRole(t, Initiator, Config{Recorder: r, Markers: markers}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
				one, two, three := fpdus(in, []byte("one")), fpdus(in, make([]byte, 700)), fpdus(in, []byte("three"))
				p.says(one, two, three)
				synctest.Wait()
				receive(c, func([]byte, uint64) { _ = c.Close() })
				reply := frame(repKey, 0x40, 1)
				r.holds(t, name, &r.received, r.recvs, reply, one, two, three)
				r.hasEnds(t, fmt.Sprintf("us FIN %d", len(join(reply, one, two, three))))
			})
		}
	}
}

// Who only looks whether something has come leaves the connection's end to be recorded.
func TestRecorderSeesTheEndAfterALook(t *testing.T) {
	for name, look := range map[string]func(c *Conn, p *peer, in *Framer){
		"TryReceive": func(c *Conn, _ *peer, _ *Framer) { _, _ = c.TryReceive(ignore) },
		"Await": func(c *Conn, p *peer, in *Framer) {
			p.says(fpdus(in, []byte("x")))
			_ = c.Await()
			_ = c.Receive(ignore)
			p.says(fpdus(in, []byte("x")))
			_ = c.Await()
		},
	} {
		r := new(tape)
		inRole(t, Initiator, Config{Recorder: r}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			look(c, p, in)
			_ = c.Close()
			r.mu.Lock()
			n := len(r.ends)
			r.mu.Unlock()
			if n != 1 {
				t.Errorf("%s: %d ends are recorded", name, n)
			}
		})
	}
}

// With markers, where an FPDU ends depends on those before it.
func TestRecorderSeesDiscardedFPDUsWithMarkers(t *testing.T) {
	r := new(tape)
	inRole(t, Initiator, Config{Recorder: r, Markers: true}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
		in.Markers = true
		one, two, three := fpdus(in, make([]byte, 700)), fpdus(in, make([]byte, 300)), fpdus(in, make([]byte, 600))
		p.says(one, two, three)
		_ = p.conn.CloseWrite()
		synctest.Wait()
		if err := c.Discard(); err != nil {
			t.Error(err)
		}
		r.holds(t, "discarded", &r.received, r.recvs, frame(repKey, 0x40, 1), one, two, three)
	})
}

// A ULPDU that is held back has been recorded, and what follows it has not.
func TestRecorderSeesWhatFollowsAHeldULPDUOnce(t *testing.T) {
	for name, end := range map[string]func(c *Conn, p *peer){
		"Close": func(c *Conn, _ *peer) { _ = c.Close() },
		"Discard": func(c *Conn, p *peer) {
			_ = p.conn.CloseWrite()
			_ = c.Discard()
		},
	} {
		r := new(tape)
		inRole(t, Initiator, Config{Recorder: r}, 0x40, func(t *testing.T, c *Conn, p *peer, _, in *Framer) {
			one, two := fpdus(in, []byte("one")), fpdus(in, []byte("two"))
			p.says(one, two)
			synctest.Wait()
			if err := c.Receive(refuse); !errors.Is(err, errNotNow) {
				t.Fatal(err)
			}
			end(c, p)
			r.holds(t, name, &r.received, r.recvs, frame(repKey, 0x40, 1), one, two)
		})
	}
}

// Bytes that must not follow the Request are recorded, as they end the connection.
func TestRecorderSeesWhatFollowsTheRequest(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		r := new(tape)
		request := frame(reqKey, 0x40, 1)
		p.says(request, []byte("xy"))
		if s := <-responds(t.Context(), conn, Config{Recorder: r}); s.err == nil {
			t.Error("no error")
		}
		r.holds(t, "received", &r.received, r.recvs, request, []byte("xy"))
	})
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		r := new(tape)
		request := frame(reqKey, 0x40, 1)
		p.says(request, []byte("x"))
		if s := <-responds(t.Context(), conn, Config{}); s.err == nil { // without a Recorder
			t.Error("no error")
		}
		r.holds(t, "received", &r.received, r.recvs)
	})
}

// The Recorder of a Request stays that of its connection.
func TestRecorderOfTheRequestIsTheConnections(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		r := new(tape)
		request, reply := frame(reqKey, 0x40, 1), frame(repKey, 0x40, 1)
		p.says(request)
		req, err := ReceiveRequest(t.Context(), conn, Config{Recorder: r})
		if err != nil {
			t.Fatal(err)
		}
		c, err := req.Accept(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		p.expects(reply)
		fpdu := fpdus(&Framer{CRC: true}, []byte("x"))
		p.says(fpdu)
		if err := c.Receive(ignore); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		r.holds(t, "sent", &r.sent, r.sends, reply)
		r.holds(t, "received", &r.received, r.recvs, request, fpdu)
	})
}

// A peer that resets the connection before the Reply is recorded to do so.
func TestRecorderSeesAResetBeforeTheReply(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		r := new(tape)
		p.says(frame(reqKey, 0x40, 1))
		req, err := ReceiveRequest(t.Context(), conn, Config{Recorder: r})
		if err != nil {
			t.Fatal(err)
		}
		_ = p.conn.Abort()
		synctest.Wait()
		if _, err := req.Accept(t.Context(), Config{}); err == nil {
			t.Error("no error")
		}
		r.hasEnds(t, "peer RST 20", "us FIN 20")
	})
}

// A reset that the end of this side's half finds is the peer's.
func TestRecorderSeesAResetThatCloseWriteFinds(t *testing.T) {
	r := new(tape)
	inRole(t, Initiator, Config{Recorder: r}, 0x40, func(t *testing.T, c *Conn, p *peer, _, _ *Framer) {
		_ = p.conn.Abort()
		synctest.Wait()
		if err := c.CloseWrite(); err == nil {
			t.Error("CloseWrite has found nothing")
		}
		_ = c.Abort()
		r.hasEnds(t, "us FIN 20", "peer RST 20")
	})
}
