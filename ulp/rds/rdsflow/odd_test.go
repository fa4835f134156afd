package rdsflow

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// What looks odd, and breaks no rule.
func TestWhatIsNoFault(t *testing.T) {
	for name, play := range map[string]struct {
		rdma bool
		play func(p *player, l *line)
	}{
		"gaps in numbers": {false, func(_ *player, l *line) {
			l.send(client, message(1, 10), message(7, 10), message(9, 10))
		}},
		"numbers that begin in the middle": {true, func(_ *player, l *line) {
			l.send(client, message(500, 10))
			l.send(server, message(3, 10, ack(500)))
		}},
		"sent again with the flag": {true, func(p *player, l *line) {
			l.send(client, message(1, 10), message(2, 10))
			l.close()
			l = p.iwarp()
			l.send(client, message(1, 10, flags(wire.Retransmitted)), message(2, 10, flags(wire.Retransmitted)), message(3, 10))
		}},
		"another message with an old number": {true, func(p *player, l *line) { // of a node that has restarted
			l.send(client, message(1, 10), message(2, 10))
			l.close()
			l = p.iwarp()
			l.send(client, message(2, 11), message(3, 10))
		}},
		"a life that begins as the last one did": {true, func(p *player, l *line) {
			l.send(client, message(1, 10), message(2, 10))
			l.close()
			l = p.iwarp()
			l.send(client, message(1, 10), message(2, 10))
		}},
		"acknowledgement between fragments": {true, func(_ *player, l *line) {
			l.send(server, message(1, 1))
			m := message(1, 5000)
			raw := m.h.AppendTo(nil, true)
			l.post(client, append(bytes.Clone(raw), m.data[:wire.FragmentLen]...))
			l.send(client, ackOnly(1))
			m.h.Ack = 1
			l.post(client, append(m.h.AppendTo(nil, true), m.data[wire.FragmentLen:]...))
		}},
		"acknowledgement of an earlier connection": {true, func(p *player, _ *line) {
			l := p.received(77)
			l.send(server, message(1, 1, ack(77)))
			l.send(client, message(78, 1))
			l.send(server, message(2, 1, ack(78)))
		}},
		"acknowledgement of an earlier life": {true, func(p *player, _ *line) {
			// The first ones are for what the client has sent before it restarted.
			l := p.received(77)
			l.send(server, ackOnly(77))
			l.send(client, message(1, 1))
			l.send(server, ackOnly(77), ackOnly(1))
			l.send(client, message(2, 1))
			l.send(server, ackOnly(2))
		}},
		"checksum over TCP": {false, func(_ *player, l *line) {
			m := message(1, 10)
			l.raw(client, m.h.AppendTo(nil, true), m.data)
		}},
		"probe again": {false, func(_ *player, l *line) {
			l.send(client, message(1, 0, ports(1, 0)), message(2, 10), message(1, 0, ports(1, 0), flags(wire.Retransmitted)))
		}},
		"numbers begin anew for a node that has restarted": {false, func(p *player, l *line) {
			l.send(client, message(1, 0, ports(1, 0), generation(7)), message(2, 10))
			l.send(server, message(1, 10), message(2, 10))
			l.close()
			l = p.tcp()
			l.send(server, message(3, 0, ports(1, 0)))
			l.send(client, message(1, 0, ports(1, 0), generation(8)))
			l.send(server, message(1, 10))
		}},
		"acknowledgement as in the private data, after none": {true, func(p *player, _ *line) {
			l := p.received(77)
			l.send(server, ackOnly(0), ackOnly(77))
		}},
		"pong of a ping before the capture": {false, func(_ *player, l *line) {
			l.send(client, message(5, 10))
			l.send(server, message(1, 0, ports(0, 5000)))
		}},
		"generation that comes late on an old connection": {false, func(p *player, l *line) {
			l.send(client, message(1, 0, ports(1, 0), generation(7)))
			l.close()
			late, l := p.tcp(), p.tcp()
			l.send(client, message(1, 0, ports(1, 0), generation(8)))
			late.send(client, message(2, 0, ports(1, 0), generation(7)))
		}},
		"message that comes late on an old connection": {false, func(p *player, l *line) {
			again := p.tcp()
			again.send(client, message(2, 10, flags(wire.Retransmitted)))
			again.close()
			l.send(client, message(2, 10))
		}},
		"the same on two paths": {false, func(p *player, l *line) {
			l.send(client, message(1, 10), message(2, 10))
			p.tcp().send(client, message(2, 10))
		}},
		"pong on another path": {false, func(p *player, l *line) {
			l.send(client, message(1, 10))
			other := p.tcp()
			other.send(server, message(1, 0, ports(0, 5000)))
			l.send(client, message(2, 0, ports(5000, 0)))
		}},
		"both dial": {false, func(p *player, _ *line) {
			l := p.open(highNode, lowNode, Port)
			l.send(client, congestion(), message(1, 0, ports(1, 0)))
			l.close()
		}},
		"probe of Linux 7.0": {false, func(_ *player, l *line) {
			probe := extend(5, 0, 8, 6, 0, 0, 0, 7, 8, 0)
			l.send(client, message(1, 0, ports(1, 0), probe))
			l.send(server, message(1, 0, ports(0, 1), probe))
		}},
		"probe of urnic": {false, func(_ *player, l *line) {
			probe := extend(5, 0, 8, 6, 0, 0, 0, 7, 8, 0, 15)
			l.send(client, message(1, 0, ports(1, 0), probe))
			l.send(server, message(1, 0, ports(0, 1), probe))
		}},
		"RDMA operations of Linux 7.0": {true, func(_ *player, l *line) {
			l.send(client, message(1, 10, extend(3, 0, 0, 1, 0, 0, 0, 0, 64)))
			l.write(server, 0x100, 64, 10)
			l.send(server, message(1, 10, flags(wire.MoreExtensions), extend(2, 0, 0, 1, 0, 4, 0, 0, 0, 10, 1)))
		}},
		"what is no acknowledgement over TCP, of a peer that tells its generation": {false, func(_ *player, l *line) {
			l.send(client, message(1, 10))
			l.send(server, message(1, 0, ports(1, 0), generation(7), ack(9)), message(2, 10, ack(7)))
		}},
		"the same, where urnic was": {false, func(p *player, l *line) {
			l.send(server, message(1, 0, ports(1, 0), urnic))
			l.close()
			l = p.tcp()
			l.send(client, message(1, 10))
			l.send(server, message(1, 0, ports(1, 0), generation(8)), message(2, 10, ack(9)), message(3, 10, ack(7)))
		}},
		"acknowledgement of an earlier life over TCP, by urnic": {false, func(p *player, l *line) {
			l.send(client, message(1, 0, ports(1, 0), urnic))
			l.send(server, message(1, 10), message(2, 10))
			l.send(client, message(2, 10, ack(2)))
			l.close()
			l = p.open(lowNode, highNode, Port)
			m := congestion()
			m.h.Ack = 2
			l.send(client, m, message(2, 0, ports(1, 0), urnic, ack(2), flags(wire.Retransmitted)))
			l.send(server, message(1, 0, ports(1, 0), generation(9)))
			l.send(client, message(3, 10, ack(1)))
		}},
		"heartbeats and checksums of Oracle's kernels": {true, func(_ *player, l *line) {
			l.send(client, message(1, 0, ports(0, 0), flags(wire.HeartbeatPing|wire.AckRequired), extend(7, 0, 0, 0, 1)))
			l.send(server, message(1, 0, ports(0, 0), flags(wire.HeartbeatPong|wire.AckRequired), extend(7, 0, 0, 0, 1)))
			l.send(client, message(2, 10, extend(9, 1, 2, 3, 4, 1)))
		}},
		"extension headers that nobody knows": {false, func(_ *player, l *line) {
			l.send(client, message(1, 10, extend(11)), message(2, 10, extend(5, 0, 8, 200)))
		}},
		"more than its credits, without flow control": {true, func(p *player, _ *line) {
			l := p.open(lowNode, highNode, PortRDMA)
			l.rdma = true
			v := l.private(client)
			v.Credit = 0
			l.frame(client, v)
			l.frame(server, l.private(server))
			for i := range uint64(20) {
				l.send(client, message(i+1, 1))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			if play.rdma {
				play.play(p, p.iwarp())
			} else {
				play.play(p, p.tcp())
			}
			analyze(t, p.recording()).want(t)
		})
	}
}

// received opens a connection over iWARP whose server says that it has received messages.
func (p *player) received(n uint64) *line {
	l := p.open(lowNode, highNode, PortRDMA)
	l.rdma = true
	l.frame(client, l.private(client))
	v := l.private(server)
	v.AckSequence = n
	l.frame(server, v)
	l.send(client, congestion())
	return l
}

// RDS over TCP is found at any port, however its streams are cut into segments.
func TestStreamsAreFoundAtAnyPort(t *testing.T) {
	for _, size := range []int{1, 7, 47, 48, 49, 1448, 100000} {
		p := newPlayer(t)
		l := p.open(lowNode, highNode, 9999)
		var b []byte
		for _, m := range []note{congestion(4000, 4001), message(1, 0, ports(1, 0), extend(5, 0, 8)), message(2, 5000), message(3, 0), message(4, 1)} {
			b = append(m.h.AppendTo(b, false), m.data...)
		}
		for len(b) > 0 {
			n := min(size, len(b))
			l.raw(client, b[:n])
			b = b[n:]
		}
		f := analyze(t, p.recording())
		f.want(t)
		if len(f.all) != 5 || f.all[0].Congested != 2 || f.all[0].Ports[1] != 4001 || f.all[2].Header.Len != 5000 || f.Total.Direct != 1 || f.Verdict() != dissect.VerdictOK {
			t.Errorf("segments of %d bytes: %v, %d direct, %s", size, f.all, f.Total.Direct, f.Verdict())
		}
	}
}

// Nothing else is taken for RDS.
func TestOthersAreNotTakenForRDS(t *testing.T) {
	for name, b := range map[string][]byte{
		"zeros": make([]byte, 4096),
		"text":  []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: example.net\r\n\r\n", 20)),
		"ones":  bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 1}, 100),
		"RPC":   append([]byte{0x80, 0, 0, 0x28, 0, 0, 0, 1}, make([]byte, 40)...),
	} {
		p := newPlayer(t)
		l := p.open(lowNode, highNode, 9999)
		l.raw(client, b)
		l.raw(server, b)
		if f := analyze(t, p.recording()); f.Total.Connections != 0 {
			t.Errorf("%s: %v", name, f.all)
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "internal", "program", "dissect", "testdata", "captures", "*.gz"))
	if err != nil || len(files) < 40 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := analyze(t, b)
		for _, c := range f.Connections {
			if c.Upper != nil {
				t.Errorf("%s: connection %d is taken for RDS", filepath.Base(name), c.Number)
			}
		}
	}
}

// A capture that begins in the middle is followed from the next header on, on each side.
func TestCapturesThatBeginInTheMiddle(t *testing.T) {
	p := newPlayer(t)
	l := p.tcp() // 7 packets
	l.send(client, message(1, 100))
	m := message(1, 100)
	l.raw(server, m.h.AppendTo(nil, false), m.data[:50])
	l.send(client, message(2, 100))
	l.raw(server, m.data[50:])
	l.send(server, message(2, 100))
	f := analyze(t, without(t, p.recording(), func(n int) bool { return n < 12 }))
	f.want(t)
	if len(f.all) != 2 || f.Total.Undecoded != 50 {
		t.Errorf("%v, %d bytes not decoded", f.all, f.Total.Undecoded)
	}
}

// What looks like a header in a message is not taken for one behind a hole, if its number can't be.
func TestHeadersInMessages(t *testing.T) {
	p := newPlayer(t)
	l := p.tcp()
	inner := message(5, 0) // an old number
	m := message(8, 96)
	copy(m.data[48:], inner.h.AppendTo(nil, false))
	l.send(client, message(7, 10))
	l.raw(client, m.h.AppendTo(nil, false), m.data[:48], m.data[48:]) // packets 10 to 12
	l.send(client, message(9, 10))
	l.raw(server, []byte{0}) // it acknowledges all that
	f := analyze(t, without(t, p.recording(), func(n int) bool { return n == 10 }))
	f.want(t)
	var numbers []uint64
	for _, m := range f.all {
		if m.Header.Kind() == wire.Data {
			numbers = append(numbers, m.Header.Sequence)
		}
	}
	if !slices.Equal(numbers, []uint64{7, 9}) {
		t.Errorf("messages %v", numbers)
	}
}

// Whatever packet is lost of a capture, nobody is blamed for it, and what follows is found.
func TestLossIsNobodysFault(t *testing.T) {
	for name, step := range map[string]int{
		"iwarp-basic": 1, "iwarp-rdma": 1, "iwarp-credits": 3, "iwarp-ping": 1, "rds-tcp-basic": 1, "rds-tcp-large": 9, "rds-tcp-ping": 1,
		"tcp-stress": 41, "rxe-rdma": 1, "rxe-cut": 2,
	} {
		z, err := gzip.NewReader(bytes.NewReader(golden(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		whole := analyze(t, plain)
		least := len(whole.all)
		for drop := 1; drop <= whole.Stats.Packets; drop += step {
			f := analyze(t, without(t, plain, func(n int) bool { return n == drop }))
			for _, b := range f.details {
				t.Errorf("%s without packet %d: %s", name, drop, b)
			}
			if strings.Contains(name, "tcp") { // without CRCs, there is no way behind a hole in FPDUs
				least = min(least, len(f.all))
			}
		}
		if least < len(whole.all)-5 {
			t.Errorf("%s: of %d messages, %d were found", name, len(whole.all), least)
		}
		late := analyze(t, without(t, plain, func(n int) bool { return n < whole.Stats.Packets/2 }))
		for _, b := range late.details {
			t.Errorf("%s without its beginning: %s", name, b)
		}
	}
}

// A congestion map shows the ports as the document has them: bit p mod 8 of byte p/8.
func TestCongestedPortsAreShown(t *testing.T) {
	f := analyze(t, golden(t, "iwarp-congestion"))
	var shown []string
	for _, m := range f.all {
		if m.Header.Kind() == wire.Map {
			shown = append(shown, m.congested())
		}
	}
	if got := strings.Join(shown, " "); got != "none none 4000 none" {
		t.Errorf("maps show %s", got)
	}
}

// A node that says that it has another address than its connection's is noted, and no more: there
// are networks that translate addresses.
func TestOtherAddressesAreNoted(t *testing.T) {
	p := newPlayer(t)
	l := p.open(lowNode, highNode, PortRDMA)
	v := l.private(client)
	v.Source = netip.MustParseAddr("198.51.100.7")
	l.frame(client, v)
	w := l.private(server)
	w.Dest = v.Source
	l.frame(server, w)
	f := analyze(t, p.recording())
	f.want(t)
	if len(f.notes) == 0 || !strings.Contains(f.notes[0], "198.51.100.7") {
		t.Errorf("notes %q", f.notes)
	}
}

// What the capture may have damaged blames nobody.
func TestDamagedSegmentsBlameNobody(t *testing.T) {
	p := newPlayer(t)
	l := p.tcp()
	bad := message(2, 10, flags(0x40))
	l.send(client, message(1, 10), bad, message(3, 10))
	file := p.recording()
	// The checksum of TCP is wrong in the packet with the flags.
	raw := bad.h.AppendTo(nil, false)
	i := bytes.Index(file, raw)
	if i < 0 {
		t.Fatal("the header is not in the recording")
	}
	file[i-4] ^= 0x55
	f := analyze(t, file)
	f.want(t)
	if !strings.Contains(strings.Join(f.notes, "\n"), "0x40") {
		t.Errorf("notes %q", f.notes)
	}
}

// Extension headers that are not known are pointed out, once for each side.
func TestUnknownExtensionsAreNoted(t *testing.T) {
	p := newPlayer(t)
	l := p.tcp()
	l.send(client, message(1, 10, extend(11)), message(2, 10, extend(12)))
	l.send(server, message(1, 10, extend(5, 0, 8, 200)))
	f := analyze(t, p.recording())
	f.want(t)
	if want := []string{"an extension header of type 11, which is not known", "an extension header of type 200, which is not known"}; !slices.Equal(f.notes, want) {
		t.Errorf("notes %q, want %q", f.notes, want)
	}
	if f.Verdict() != dissect.VerdictOK {
		t.Errorf("the verdict is %s", f.Verdict())
	}
}
