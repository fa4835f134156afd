package machine

import (
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

// steady is a client's call that has sent so many packets, with a window of 32 and cwnd as
// large; all of them are held, so that only what a test does is outstanding.
func steady(t *testing.T, cfg Config) (*raw, *Call) {
	t.Helper()
	r, k := newClient(t, cfg, DialConfig{})
	r.write(k, 1416, false)
	p := r.only(wire.TypeData)
	r.at += 10 * time.Millisecond
	r.acks(wire.ReasonRequested, 2, p.Serial, "")
	k.out.cwnd = 32
	return r, k
}

// A round trip is measured by an acknowledgement that names a packet: by its latest copy or
// its first one. A delayed one, or one that names nothing, measures nothing.
func TestRoundTripSamples(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 1416, false)
	p := r.only(wire.TypeData)
	peer := k.c.peer
	r.at += 80 * time.Millisecond
	r.acks(wire.ReasonDelay, 1, p.Serial, "+")
	r.acks(wire.ReasonIdle, 1, 0, "+")
	r.acks(wire.ReasonIdle, 1, 999, "+")
	if peer.sampled {
		t.Fatal("a delayed acknowledgement counts")
	}
	r.acks(wire.ReasonRequested, 1, p.Serial, "+")
	if peer.srtt != 80*time.Millisecond || peer.rttvar != 40*time.Millisecond {
		t.Errorf("the first sample gives %v, %v", peer.srtt, peer.rttvar)
	}
	r.at += 80 * time.Millisecond
	r.acks(wire.ReasonDuplicate, 1, p.Serial, "+")
	// RTTdev = 3/4 of 40 + |80 - 160| / 4; RTTavg = 7/8 of 80 + 160/8.
	if peer.rttvar != 50*time.Millisecond || peer.srtt != 90*time.Millisecond {
		t.Errorf("the second sample gives %v, %v", peer.srtt, peer.rttvar)
	}
	s := r.stats.RTT
	if s.Samples != 2 || s.Least != 80*time.Millisecond || s.Most != 160*time.Millisecond || s.Total != 240*time.Millisecond {
		t.Errorf("counted: %+v", s)
	}
	if peer.timeout() != 90*time.Millisecond+200*time.Millisecond+350*time.Millisecond {
		t.Errorf("the timeout is %v", peer.timeout())
	}
}

// What is sent again is measured by the copy that the acknowledgement names.
func TestRoundTripOfRetransmissions(t *testing.T) {
	for _, which := range []string{"first", "again"} {
		r, k := newClient(t, Config{}, DialConfig{})
		r.write(k, 4, true)
		first := r.only(wire.TypeData)
		r.pass(firstTimeout)
		again := r.only(wire.TypeData)
		r.at += 30 * time.Millisecond
		want := 30 * time.Millisecond
		if which == "first" {
			again, want = first, firstTimeout+30*time.Millisecond
		}
		r.acks(wire.ReasonRequested, 1, again.Serial, "+")
		if got := k.c.peer.srtt; got != want {
			t.Errorf("%s: %v; want %v", which, got, want)
		}
	}
}

// A packet that is not acknowledged is sent again after the timeout, which doubles, alone and
// with REQUEST-ACK, until the peer counts as dead.
func TestRetransmissionsBackOff(t *testing.T) {
	r, k := newClient(t, Config{DeadTime: 10 * time.Minute}, DialConfig{})
	r.write(k, 4, true)
	var at []Time
	r.pass(200 * time.Second)
	for _, p := range r.take() {
		if p.Type != wire.TypeData {
			continue
		}
		want := wire.FlagClient | wire.FlagLast
		if len(at) > 0 {
			want |= wire.FlagRequestAck
		}
		if at = append(at, p.at); p.Flags != want || p.Seq != 1 {
			t.Errorf("sent: %v", &p.Header)
		}
	}
	want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183} // the last ones are a minute apart
	if len(at) != len(want) {
		t.Fatalf("sent at %v", at)
	}
	for i := range want {
		if at[i] != want[i]*time.Second {
			t.Fatalf("sent at %v; want %v s", at, want)
		}
	}
	if r.stats.Resent != 8 || r.stats.Timeouts != 8 || r.stats.DataSent != 1 {
		t.Errorf("counted: %d, %d, %d", r.stats.Resent, r.stats.Timeouts, r.stats.DataSent)
	}
	r.acks(wire.ReasonRequested, 2, 0, "")
	if k.out.backoff != 0 {
		t.Error("the back-off stays")
	}
}

// The timeout is for the oldest packet that the peer does not hold: acknowledgements of
// others put it off, and one of nothing new does not.
func TestTimeoutFollowsProgress(t *testing.T) {
	r, k := steady(t, Config{})
	r.write(k, 2*1416, false)
	r.take()
	left := k.c.peer.timeout()
	r.pass(left / 2)
	r.acks(wire.ReasonIdle, 2, 0, "") // nothing new
	r.pass(left/2 - 1)
	r.quiet()
	r.acks(wire.ReasonIdle, 3, 0, "")
	r.pass(left - 1)
	r.quiet()
	r.pass(1)
	if p := r.only(wire.TypeData); p.Seq != 3 {
		t.Errorf("sent: %v", &p.Header)
	}
}

// At most as many packets are outstanding as the peer's window allows, from the first that its
// reader has not read: 16 before it tells.
func TestPeersWindowHolds(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	k.out.cwnd = 100
	r.write(k, 32*1416, false) // as much as it takes
	if n, err := k.Write(0, pattern(1)); n != 0 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	sent := r.take()
	if len(sent) != 16 || sent[15].Seq != 16 {
		t.Fatalf("sent: %v", headers(sent))
	}
	for i, p := range sent[:15] {
		if p.Flags != wire.FlagClient|wire.FlagMore {
			t.Errorf("packet %d: %v", i+1, &p.Header)
		}
	}
	if sent[15].Flags != wire.FlagClient {
		t.Errorf("the last of a burst: %v", &sent[15].Header)
	}
	a := wire.Ack{Reason: wire.ReasonIdle, First: 1, Trailer: trailer}
	a.Trailer.Window, a.Trailer.MaxPackets = 20, 1
	r.acksWith(a, "++++++++++++++++", 0)
	if sent := r.take(); len(sent) != 4 || sent[3].Seq != 20 {
		t.Fatalf("after a window of 20: %v", headers(sent))
	}
	r.events = nil
	a.First, a.Trailer.Window = 17, 2 // smaller
	r.acksWith(a, "++++", 0)
	r.quiet()
	if len(r.events) == 0 || r.events[0].Kind != Changed || !k.Writable() {
		t.Errorf("effects: %v", r.events)
	}
	a.First = 21
	r.acksWith(a, "", 0)
	if sent := r.take(); len(sent) != 2 || sent[1].Seq != 22 {
		t.Errorf("after a window of 2: %v", headers(sent))
	}
	a.First, a.Trailer.Window = 23, 0
	r.acksWith(a, "", 0)
	if sent := r.take(); len(sent) != 1 {
		t.Errorf("after a window of 0: %v", headers(sent))
	}
}

// What acknowledgements of all ages have behind them: nothing, sizes, a window that may only
// shrink, and everything.
func TestTrailersOfAllLengths(t *testing.T) {
	r, k := steady(t, Config{})
	p, o := k.c.peer, &k.out
	tell := func(w int, window uint32) {
		t.Helper()
		r.acksWith(wire.Ack{Reason: wire.ReasonIdle, First: 2, Trailer: wire.Trailer{
			Words: w, MaxMTU: 3000, IfMTU: 2000, Window: window, MaxPackets: 3,
		}}, "", 0)
	}
	for _, step := range []struct {
		words               int
		window, want        uint32
		max, mtu, perPacket uint32
	}{
		{4, 40, 40, 3000, 2000, 3},
		{3, 50, 40, 3000, 2000, 1},
		{3, 20, 20, 3000, 2000, 1},
		{2, 0, 15, 3000, 2000, 1},
		{4, 300, 255, 3000, 2000, 3},
		{0, 0, 15, 1444, 1444, 1},
	} {
		if tell(step.words, step.window); o.peerWindow != step.want || p.maxMTU != step.max || p.ifMTU != step.mtu || p.maxPackets != step.perPacket {
			t.Errorf("%d words: window %d, sizes %d, %d, %d packets; want %+v", step.words, o.peerWindow, p.maxMTU, p.ifMTU, p.maxPackets, step)
		}
	}
	r.acksWith(wire.Ack{Reason: wire.ReasonIdle, First: 2, Trailer: wire.Trailer{Words: 4, MaxMTU: 1, IfMTU: 1 << 30, Window: 9}}, "", 0)
	if p.maxMTU != minPacket || p.ifMTU != minPacket || p.maxPackets != 1 {
		t.Errorf("lies give sizes %d, %d, %d packets", p.maxMTU, p.ifMTU, p.maxPackets)
	}
}

// A soft acknowledgement may be taken back, also by a list that is too short for the packet; a
// hard one may not.
func TestSoftAcknowledgementsAreTakenBack(t *testing.T) {
	for _, list := range []string{"+-+", "+"} {
		r, k := steady(t, Config{})
		r.write(k, 3*1412, false)
		r.take()
		r.acks(wire.ReasonIdle, 2, 0, "+++")
		r.pass(time.Second)
		r.quiet() // all are held
		r.acks(wire.ReasonPing, 2, 0, list)
		r.pass(2 * time.Second)
		again := map[uint32]bool{}
		for _, p := range r.take() {
			if p.Type == wire.TypeData {
				again[p.Seq] = true
			}
		}
		if !again[3] || again[2] || again[4] || k.out.packets.at(4).held != (list == "+-+") {
			t.Errorf("%s: sent again: %v", list, again)
		}
		r.acks(wire.ReasonIdle, 4, 0, "")
		r.acks(wire.ReasonIdle, 2, 0, "---")
		if k.out.packets.base != 4 || r.stats.Drops.Ack == 0 {
			t.Error("a hard acknowledgement is taken back")
		}
	}
}

// An older acknowledgement changes nothing: with a lower first packet, or with the same one and
// an older serial number. What stands where the highest sequence number should be says nothing:
// it is 0, a serial number, or the packet that came last and has filled a hole.
func TestOldAcknowledgementsAreDropped(t *testing.T) {
	r, k := steady(t, Config{})
	r.write(k, 4*1416, false)
	r.take()
	a := wire.Ack{Reason: wire.ReasonIdle, First: 2, Previous: 4, Trailer: trailer}
	r.acksWith(a, "-++", 0)
	a.Previous = 2
	r.acksWith(a, "+++", 0)
	a.Previous = 5000
	r.acksWith(a, "+++", 0)
	a.Previous = 0
	r.acksWith(a, "+++", 0)
	if k.out.soft != 3 || r.stats.Drops.Ack != 0 {
		t.Errorf("%d are held, %d acknowledgements were dropped", k.out.soft, r.stats.Drops.Ack)
	}
	a.First = 1
	r.acksWith(a, "----", 0)
	r.serial -= 4
	a.First = 2
	r.acksWith(a, "---", 0)
	if k.out.soft != 3 || r.stats.Drops.Ack != 2 {
		t.Errorf("%d are held, %d acknowledgements were dropped", k.out.soft, r.stats.Drops.Ack)
	}
}
