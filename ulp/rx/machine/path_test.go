package machine

import (
	"io"
	"net/netip"
	"testing"

	"urnic/ulp/rx/wire"
)

// Until five packets were acknowledged, packets go alone. Then jumbograms have as many as the
// peer takes, all full but the last, and the path is tried for them first. What is sent again
// goes alone.
func TestJumbograms(t *testing.T) {
	r, k := steady(t, Config{})
	k.out.peerWindow = 32
	r.write(k, 8*1412, false)
	for _, p := range r.take() {
		if p.Type == wire.TypeData && (p.Flags&wire.FlagJumbo != 0 || len(p.body) > 1416) {
			t.Errorf("sent before the path is known: %v with %d bytes", &p.Header, len(p.body))
		}
		if p.Type == wire.TypeAck {
			a := p.ack(t)
			if p.size != 5688 || a.Reason != wire.ReasonPing || p.Flags&wire.FlagRequestAck == 0 {
				t.Errorf("the path is tried by %v of %d bytes", &a, p.size)
			}
			r.acks(wire.ReasonPingResponse, 2, p.Serial, "++++++++")
		}
	}
	if r.stats.PathsFound != 1 || k.c.peer.confirmed != 5688 {
		t.Fatal("the path is not found")
	}
	r.acks(wire.ReasonIdle, 10, 0, "")
	r.take()
	r.write(k, 4*1412+100, true)
	sent := r.take()
	if len(sent) != 5 || sent[0].size != 5688 || sent[4].size != 28+100 {
		t.Fatalf("sent: %v", headers(sent))
	}
	for i, p := range sent {
		if p.Seq != uint32(10+i) || p.Serial != sent[0].Serial+uint32(i) || (p.Flags&wire.FlagJumbo != 0) != (i < 3) {
			t.Errorf("packet %d: %v", i, &p.Header)
		}
	}
	r.pass(k.c.peer.timeout())
	if sent := r.take(); len(sent) != 1 || sent[0].Flags&wire.FlagJumbo != 0 || sent[0].Seq != 10 {
		t.Errorf("sent again: %v", headers(sent))
	}
	if k.out.inRow != 0 {
		t.Error("jumbograms go on after a timeout")
	}
}

// A peer that takes no jumbograms gets none; one that takes two gets two at most. Nobody gets
// any before five packets were acknowledged in a row.
func TestJumbogramsArePeersChoice(t *testing.T) {
	for _, step := range []struct {
		takes uint32
		inRow int
		want  int
	}{{1, 9, 1}, {2, 9, 2}, {3, 5, 3}, {9, 5, 4}, {4, 4, 1}} {
		r, k := steady(t, Config{})
		tr := trailer
		tr.MaxPackets = step.takes
		k.c.peer.told(tr)
		k.c.peer.confirmed = 5688
		k.out.inRow = step.inRow
		r.write(k, 6*1412, false)
		together, most := 0, 0
		for _, p := range r.take() {
			if p.size > 0 {
				together = 0
			}
			together++
			most = max(most, together)
		}
		if most != step.want {
			t.Errorf("%+v: %d packets in a datagram", step, most)
		}
	}
}

// A size that is asked for in vain three times is refused for a minute.
func TestPathThatTakesNoLargePackets(t *testing.T) {
	r, k := steady(t, Config{Link: func(netip.AddrPort) int { return 9000 }})
	tr := trailer
	tr.IfMTU, tr.MaxMTU, tr.MaxPackets = 9000, 9000, 1
	k.c.peer.told(tr)
	r.write(k, 8*1416, false)
	probes := 0
	for range 10 {
		for _, p := range r.take() {
			if p.Type == wire.TypeAck && p.size == 9000 {
				probes++
			}
		}
		r.acksWith(wire.Ack{Reason: wire.ReasonIdle, First: 2, Trailer: tr}, "++++++++", 0)
		r.pass(k.c.peer.timeout())
	}
	if probes != probeTries || k.c.peer.refused != 9000 || k.c.peer.probing {
		t.Fatalf("%d probes, refused: %d", probes, k.c.peer.refused)
	}
	if k.c.peer.probe(r.at) != 0 || k.c.peer.probe(r.at+pathMemory) != 9000 {
		t.Error("it does not wait a minute")
	}
	k.c.peer.confirm(9000)
	if now, _ := k.c.peer.packet(); now != 9000 {
		t.Errorf("packets of %d bytes", now)
	}
	k.c.peer.refuse(9000, r.at)
	if now, _ := k.c.peer.packet(); now != wire.DefaultPacket {
		t.Errorf("packets of %d bytes after a refusal", now)
	}
}

// Jumbograms are taken from anybody, and acknowledged together, once.
func TestJumbogramsAreTaken(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	h := r.header(wire.TypeData)
	h.Seq, h.Flags = 1, h.Flags|wire.FlagJumbo
	r.serial += 2
	body := append([]byte(nil), pattern(1412)...)
	body = wire.AppendJumboHeader(body, wire.FlagJumbo, 0)
	body = append(body, pattern(1412)...)
	body = wire.AppendJumboHeader(body, wire.FlagLast, 0)
	body = append(body, "end"...)
	r.says(h, body)
	if a := r.onlyAck(wire.ReasonIdle); a.Count != 3 || a.Serial != 3 {
		t.Errorf("sent: %v", &a)
	}
	r.reads(r.calls[0], string(pattern(1412))+string(pattern(1412))+"end", io.EOF)
}

// The link's size bounds packets: bodies are what is left by header and, where jumbograms are
// to come, 1412 bytes.
func TestBodiesFitTheLink(t *testing.T) {
	for _, step := range []struct{ link, want int }{{0, 1416}, {1000, 972}, {100, 492}} {
		cfg := Config{}
		if step.link != 0 {
			cfg.Link = func(netip.AddrPort) int { return step.link }
		}
		r, k := newClient(t, cfg, DialConfig{})
		r.write(k, 2000, false)
		if p := r.take(); len(p) == 0 || len(p[0].body) != step.want {
			t.Errorf("link %d: %v", step.link, headers(p))
		}
	}
	r, k := steady(t, Config{})
	r.write(k, 1412, false)
	if p := r.only(wire.TypeData); len(p.body) != wire.JumboBody {
		t.Errorf("the body has %d bytes", len(p.body))
	}
}

// Flush sends what fills no packet; CloseWrite sends the last packet, empty if need be.
func TestFlushAndCloseWrite(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 3, false)
	r.quiet()
	if err := k.Flush(0); err != nil {
		t.Fatal(err)
	}
	if p := r.only(wire.TypeData); string(p.body) != "012" || p.Flags != wire.FlagClient|wire.FlagRequestAck {
		t.Errorf("sent: %v", &p.Header)
	}
	if err := k.Flush(0); err != nil {
		t.Fatal(err)
	}
	r.quiet()
	r.acks(wire.ReasonRequested, 2, 1, "")
	r.write(k, 0, true)
	if p := r.only(wire.TypeData); len(p.body) != 0 || p.Seq != 2 || p.Flags != wire.FlagClient|wire.FlagLast {
		t.Errorf("sent: %v", &p.Header)
	}
}

// REQUEST-ACK is on packets that leave while the congestion window is one or two.
func TestSmallWindowsAskForAcknowledgements(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	for _, step := range []struct {
		cwnd int
		want bool
	}{{1, true}, {2, true}, {3, false}} {
		k.out.cwnd = step.cwnd
		r.write(k, 1416, false)
		if p := r.take()[0]; (p.Flags&wire.FlagRequestAck != 0) != step.want {
			t.Errorf("cwnd %d: %v", step.cwnd, &p.Header)
		}
		r.acks(wire.ReasonIdle, k.out.next, 0, "")
	}
}
