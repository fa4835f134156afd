package machine

import (
	"io"
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

// REQUEST-ACK in a data packet is answered at once, with the packet's serial number.
func TestAckRequested(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, wire.FlagRequestAck, "ab")
	p := r.only(wire.TypeAck)
	a := p.ack(t)
	if a.Reason != wire.ReasonRequested || a.First != 1 || a.Serial != 1 || a.Previous != 1 || string(a.Acks) != "\x01" || a.Count != 1 {
		t.Errorf("sent: %v", &a)
	}
	if p.Flags != wire.FlagSlowStart || p.Seq != 0 || p.Checksum != 0 {
		t.Errorf("sent: %v", &p.Header)
	}
}

// The whole request is one packet that was not read: its acknowledgement waits 100 ms, has no
// serial number, and is not sent if the reply comes before.
func TestAckDelayed(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "ab")
	r.quiet()
	r.pass(ackDelay - 1)
	r.quiet()
	r.pass(1)
	if a := r.onlyAck(wire.ReasonDelay); a.Serial != 0 || a.First != 1 || len(a.Acks) != 1 {
		t.Errorf("sent: %v", &a)
	}
	r = newServer(t, Config{}, Service{})
	k := r.served()
	r.write(k, 1, true)
	r.only(wire.TypeData)
	r.pass(ackDelay)
	r.quiet()
}

// A second packet without acknowledgement is acknowledged at once, with its serial number.
func TestAckIdle(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "ab")
	r.quiet()
	r.data(2, 0, "cd")
	if a := r.onlyAck(wire.ReasonIdle); a.Serial != 2 || string(a.Acks) != "\x01\x01" {
		t.Errorf("sent: %v", &a)
	}
}

// A packet that came before is acknowledged as a duplicate, whether it was read or not.
func TestAckDuplicate(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "ab")
	r.data(1, 0, "ab")
	if a := r.onlyAck(wire.ReasonDuplicate); a.Serial != 2 || a.First != 1 {
		t.Errorf("sent: %v", &a)
	}
	r.reads(r.calls[0], "ab", nil)
	r.data(1, 0, "ab")
	if a := r.onlyAck(wire.ReasonDuplicate); a.Serial != 3 || a.First != 2 || a.Count != 0 {
		t.Errorf("sent: %v", &a)
	}
	if r.stats.Duplicates != 2 || r.stats.Data != 1 {
		t.Errorf("%d duplicates, %d others", r.stats.Duplicates, r.stats.Data)
	}
}

// A packet in front of which one is missing is acknowledged at once, with a list of what there
// is. When the hole is filled, everything is delivered in order.
func TestAckOutOfSequence(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "ab")
	r.data(4, wire.FlagLast, "gh")
	if a := r.onlyAck(wire.ReasonOutOfSequence); a.Serial != 2 || string(a.Acks) != "\x01\x00\x00\x01" || a.Previous != 4 {
		t.Errorf("sent: %v", &a)
	}
	r.data(3, 0, "ef")
	if a := r.onlyAck(wire.ReasonOutOfSequence); string(a.Acks) != "\x01\x00\x01\x01" {
		t.Errorf("sent: %v", &a)
	}
	k := r.calls[0]
	r.reads(k, "ab", nil)
	r.data(2, 0, "cd")
	r.reads(k, "cdefgh", io.EOF)
	r.pass(ackDelay) // for the reply
	if a := r.onlyAck(wire.ReasonDelay); a.First != 5 || a.Count != 0 {
		t.Errorf("sent: %v", &a)
	}
	r.end()
}

// Packets beyond the window are dropped: 16 from the first that was not read, then as many as
// the machine is told. The announced window follows.
func TestAckExceedsWindow(t *testing.T) {
	r := newServer(t, Config{Window: 20}, Service{})
	r.data(1, 0, "ab")
	r.data(17, 0, "zz")
	if a := r.onlyAck(wire.ReasonExceedsWindow); a.Serial != 2 || a.Trailer.Window != 16 || a.Count != 1 || a.Previous != 1 {
		t.Errorf("sent: %v", &a)
	}
	r.reads(r.calls[0], "ab", nil)
	r.data(21, 0, "zz")
	if a := r.onlyAck(wire.ReasonOutOfSequence); a.Trailer.Window != 20 || a.Count != 20 {
		t.Errorf("sent: %v", &a)
	}
	r.data(22, 0, "zz")
	r.onlyAck(wire.ReasonExceedsWindow)
	if r.stats.Drops.Window != 2 {
		t.Errorf("%d dropped", r.stats.Drops.Window)
	}
}

// Data for which there is no memory is dropped, and acknowledged so. What is next in turn for
// a call that has nothing to read is taken nevertheless.
func TestAckNoSpace(t *testing.T) {
	r := newServer(t, Config{Memory: 512}, Service{})
	r.data(1, 0, "ab")
	r.data(2, 0, "cd")
	r.onlyAck(wire.ReasonIdle)
	r.data(3, 0, "ef")
	if a := r.onlyAck(wire.ReasonNoSpace); a.Serial != 3 || a.Count != 2 || r.stats.Drops.NoSpace != 1 {
		t.Errorf("sent: %v", &a)
	}
	k := r.calls[0]
	r.reads(k, "abcd", nil)
	r.take()
	r.data(5, 0, "ij")
	r.data(6, 0, "kl")
	r.take()
	r.data(3, 0, "ef") // the memory is full of what can't be read
	r.take()
	r.reads(k, "ef", nil)
	if r.Memory() != 512 {
		t.Errorf("%d bytes are held", r.Memory())
	}
	r.end()
}

// A ping with REQUEST-ACK is answered with its serial number; one without is not.
func TestPingIsAnswered(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "ab")
	r.acksWith(wire.Ack{Reason: wire.ReasonPing, First: 1, Trailer: trailer}, "", 0)
	r.quiet()
	r.acksWith(wire.Ack{Reason: wire.ReasonPing, First: 1, Trailer: trailer}, "", wire.FlagRequestAck)
	if a := r.onlyAck(wire.ReasonPingResponse); a.Serial != r.serial || a.First != 1 || a.Count != 1 {
		t.Errorf("sent: %v", &a)
	}
	h := r.header(wire.TypeAck)
	h.Flags |= wire.FlagRequestAck
	r.says(h, []byte{1, 2, 3}) // no acknowledgement is in it
	if a := r.onlyAck(wire.ReasonPingResponse); a.Serial != h.Serial || r.stats.Drops.Ack != 1 {
		t.Errorf("sent: %v", &a)
	}
}

// After a quarter of a window was read, its reader's progress is told at once, and later
// otherwise: the sender's window opens.
func TestReadingOpensTheWindow(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	for seq := range uint32(16) {
		r.data(seq+1, 0, "ab")
	}
	r.take()
	k := r.calls[0]
	b := make([]byte, 2)
	for range 8 {
		k.Read(0, b) //nolint:errcheck // it has something
	}
	r.quiet()
	k.Read(0, b) //nolint:errcheck // it has something
	if a := r.onlyAck(wire.ReasonDelay); a.First != 10 || a.Serial != 0 || a.Trailer.Window != 32 {
		t.Errorf("sent: %v", &a)
	}
	k.Read(0, b) //nolint:errcheck // it has something
	r.quiet()
	r.pass(ackDelay)
	if a := r.onlyAck(wire.ReasonDelay); a.First != 11 {
		t.Errorf("sent: %v", &a)
	}
}

// Every acknowledgement has four words behind it: the largest jumbogram, the link's packet, the
// window, and four packets for each jumbogram.
func TestTrailerTellsLimits(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, wire.FlagRequestAck, "ab")
	if a := r.onlyAck(wire.ReasonRequested); a.Trailer != (wire.Trailer{Words: 4, MaxMTU: 5692, IfMTU: 1444, Window: 16, MaxPackets: 4}) {
		t.Errorf("sent: %v", &a)
	}
}

// A client tells that it has read the reply by a hard acknowledgement, soon after the end, as
// a Linux server waits for that.
func TestLastHardAck(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, true)
	r.take()
	r.data(1, wire.FlagLast, "x")
	r.reads(k, "x", io.EOF)
	r.quiet()
	k.End(r.at)
	r.pass(endAckDelay)
	if a := r.onlyAck(wire.ReasonIdle); a.First != 2 || a.Serial != 0 || a.Count != 0 {
		t.Errorf("sent: %v", &a)
	}
	r.pass(time.Second)
	r.quiet()
	r.data(1, wire.FlagLast, "x") // the acknowledgement was lost
	if a := r.onlyAck(wire.ReasonDuplicate); a.First != 2 {
		t.Errorf("sent: %v", &a)
	}
	r.acksWith(wire.Ack{Reason: wire.ReasonPing, First: 2, Trailer: trailer}, "", wire.FlagRequestAck)
	if a := r.onlyAck(wire.ReasonPingResponse); a.First != 2 {
		t.Errorf("sent: %v", &a)
	}
	r.end()
}

// A reply that nobody reads is acknowledged softly, after 400 ms.
func TestReplyThatIsNotReadIsAcknowledgedSoftly(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, true)
	r.take()
	r.data(1, wire.FlagLast, "x")
	r.pass(lastAckDelay - 1)
	r.quiet()
	r.pass(1)
	if a := r.onlyAck(wire.ReasonDelay); a.First != 1 || a.Count != 1 {
		t.Errorf("sent: %v", &a)
	}
	r.pass(time.Minute) // the server may have forgotten the call
	r.quiet()
	r.reads(k, "x", io.EOF)
}

// The next call's first packet acknowledges a reply, and no packet of its own does. While the
// next call has sent nothing, the server gets answers about the one before.
func TestNextCallSavesTheLastHardAck(t *testing.T) {
	for _, quick := range []bool{true, false} {
		r, k := newClient(t, Config{}, DialConfig{})
		r.write(k, 4, true)
		r.take()
		r.data(1, wire.FlagLast, "x")
		r.reads(k, "x", io.EOF)
		k.End(r.at)
		next := r.begin(k.Conn())
		if next.Channel() != 0 {
			t.Fatalf("the next call is on channel %d", next.Channel())
		}
		if !quick {
			r.pass(endAckDelay)
			r.onlyAck(wire.ReasonIdle)
			r.acksWith(wire.Ack{Reason: wire.ReasonPing, First: 2, Trailer: trailer}, "", wire.FlagRequestAck)
			if a := r.onlyAck(wire.ReasonPingResponse); a.First != 2 {
				t.Errorf("sent: %v", &a)
			}
		}
		r.write(next, 4, true)
		if p := r.only(wire.TypeData); p.Call != 2 {
			t.Errorf("sent: %v", &p.Header)
		}
		r.pass(endAckDelay)
		r.quiet()
		r.acksWith(wire.Ack{Reason: wire.ReasonPing, First: 2, Trailer: trailer}, "", wire.FlagRequestAck)
		r.quiet()
		r.end()
	}
}

// The reply's first packet acknowledges the whole request, and so does ACKALL.
func TestImplicitAcknowledgements(t *testing.T) {
	for _, all := range []bool{true, false} {
		r, k := newClient(t, Config{}, DialConfig{})
		r.write(k, 4, true)
		r.take()
		if all {
			r.says(r.header(wire.TypeAckAll), nil)
		} else {
			r.data(1, 0, "x")
		}
		if !k.out.finished() || k.out.packets.n != 0 {
			t.Error("the request is kept")
		}
		r.pass(time.Second)
		for _, p := range r.take() {
			if p.Type == wire.TypeData {
				t.Errorf("sent: %v", &p.Header)
			}
		}
	}
}

// ACKALL ends a server's call, and means nothing before everything was sent.
func TestAckAllOfAReply(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	k := r.served()
	r.write(k, 8000, false)
	r.says(r.header(wire.TypeAckAll), nil)
	if k.out.packets.n == 0 {
		t.Fatal("what was not sent counts as acknowledged")
	}
	r.acks(wire.ReasonRequested, 2, 0, "")
	r.acks(wire.ReasonRequested, 4, 0, "")
	r.write(k, 0, true)
	r.says(r.header(wire.TypeAckAll), nil)
	k.End(r.at)
	r.take()
	if r.stats.LiveCalls != 0 {
		t.Error("the call is not over")
	}
	r.end()
}

// A server's call is over when its whole reply is held, though it was not read: some clients
// never say that.
func TestSoftAcknowledgedReplyEndsACall(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	k := r.served()
	r.write(k, 4, true)
	k.End(r.at)
	r.acks(wire.ReasonDelay, 1, 0, "+")
	if r.stats.LiveCalls != 0 {
		t.Error("the call is not over")
	}
	r.take()
	r.pass(20 * time.Second)
	r.quiet()
}
