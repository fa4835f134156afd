package rdsflow

import (
	"bytes"
	"net/netip"
	"testing"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/rds/wire"
)

// The two nodes of what tests play. The client has the lower address.
var (
	lowNode  = netip.MustParseAddr("192.0.2.1")
	highNode = netip.MustParseAddr("192.0.2.2")
)

// A player plays the two sides of connections into a recording.
type player struct {
	t    testing.TB
	file bytes.Buffer
	w    *capture.Writer
	port uint16 // of the next connection's client
}

func newPlayer(t testing.TB) *player {
	t.Helper()
	p := &player{t: t, port: 40000}
	w, err := capture.NewWriter(&p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.w = w
	return p
}

// recording returns the capture.
func (p *player) recording() []byte {
	p.t.Helper()
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.file.Bytes()
}

// A line is one connection of a player.
type line struct {
	p     *player
	s     *capture.Stream
	rdma  bool
	msn   [2]uint32
	nodes [2]netip.Addr
}

// open opens a connection.
func (p *player) open(from, to netip.Addr, port uint16) *line {
	p.t.Helper()
	p.port++
	return &line{p: p, nodes: [2]netip.Addr{from, to}, s: p.w.Stream(netip.AddrPortFrom(from, p.port), netip.AddrPortFrom(to, port), true)}
}

func (l *line) raw(from dissect.Side, pieces ...[]byte) {
	for _, b := range pieces {
		if from == client {
			l.s.Sent(b)
		} else {
			l.s.Received(b)
		}
	}
}

// close ends the connection.
func (l *line) close() { l.s.Reset(true) }

// tcp opens a connection of RDS over TCP, on which both sides have sent their maps.
func (p *player) tcp() *line {
	p.t.Helper()
	l := p.open(lowNode, highNode, Port)
	l.send(client, congestion())
	l.send(server, congestion())
	return l
}

// private returns what a side says of itself.
func (l *line) private(from dissect.Side) wire.Private {
	return wire.Private{
		Source: l.nodes[from], Dest: l.nodes[1-from], Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask, Credit: 8,
	}
}

// frame plays a start-up frame of MPA.
func (l *line) frame(from dissect.Side, v wire.Private) {
	l.p.t.Helper()
	private, err := v.AppendTo(nil)
	if err != nil {
		l.p.t.Fatal(err)
	}
	b, err := (&mpa.Frame{Reply: from == server, Revision: 1, PrivateData: private}).AppendBinary(nil)
	if err != nil {
		l.p.t.Fatal(err)
	}
	l.raw(from, b)
}

// iwarp opens a connection over iWARP with 8 credits for each side, of which each has used
// two for its map.
func (p *player) iwarp() *line {
	p.t.Helper()
	l := p.open(lowNode, highNode, PortRDMA)
	l.rdma = true
	l.frame(client, l.private(client))
	l.frame(server, l.private(server))
	l.send(client, congestion())
	l.send(server, congestion())
	return l
}

// fpdu plays a DDP segment.
func (l *line) fpdu(from dissect.Side, s *ddp.Segment) {
	l.p.t.Helper()
	b, err := s.AppendBinary(nil)
	if err == nil {
		b, err = (&mpa.Framer{}).AppendFPDU(nil, b)
	}
	if err != nil {
		l.p.t.Fatal(err)
	}
	l.raw(from, b)
}

// post plays a Send.
func (l *line) post(from dissect.Side, b []byte) {
	l.p.t.Helper()
	l.msn[from]++
	c := ddp.NewControl(false, true)
	l.fpdu(from, &ddp.Segment{Control: c, Payload: b, Untagged: ddp.UntaggedHeader{
		Control: c, RsvdULP: [5]byte{byte(rdmap.NewControl(rdmap.OpSend))}, MSN: l.msn[from],
	}})
}

// write plays an RDMA Write.
func (l *line) write(from dissect.Side, key uint32, to uint64, n int) {
	c := ddp.NewControl(true, true)
	l.fpdu(from, &ddp.Segment{Control: c, Payload: make([]byte, n), Tagged: ddp.TaggedHeader{
		Control: c, RsvdULP: byte(rdmap.NewControl(rdmap.OpWrite)), STag: stag.STag(key), TO: to,
	}})
}

// A note is a message, and how it is sent.
type note struct {
	h    wire.Header
	data []byte
	// spoil changes the bytes of the header when they are ready.
	spoil func(raw []byte)
	cut   int // what the first fragment has too little
}

// message returns a message from port 5000 to port 4000.
func message(sequence uint64, n int, change ...func(*wire.Header)) note {
	m := note{h: wire.Header{Sequence: sequence, Len: uint32(n), SourcePort: 5000, DestPort: 4000}, data: bytes.Repeat([]byte{byte(sequence)}, n)}
	for _, c := range change {
		c(&m.h)
	}
	return m
}

func congestion(ports ...uint16) note {
	var m wire.CongestionMap
	for _, p := range ports {
		m.Set(p)
	}
	return note{h: wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, data: m[:]}
}

func ackOnly(n uint64) note { return note{h: wire.Header{Ack: n}} }

// flags, ack, credit and extend change a header.
func flags(f wire.Flags) func(*wire.Header) { return func(h *wire.Header) { h.Flags |= f } }
func ack(n uint64) func(*wire.Header)       { return func(h *wire.Header) { h.Ack = n } }
func credit(n uint8) func(*wire.Header)     { return func(h *wire.Header) { h.Credit = n } }
func ports(from, to uint16) func(*wire.Header) {
	return func(h *wire.Header) { h.SourcePort, h.DestPort = from, to }
}

func extend(b ...byte) func(*wire.Header) {
	return func(h *wire.Header) { copy(h.Extensions[:], b) }
}

func generation(g byte) func(*wire.Header) { return extend(byte(wire.ExtGeneration), 0, 0, 0, g) }

// urnic tells that a node is urnic, and its generation.
func urnic(h *wire.Header) { extend(5, 0, 8, 6, 0, 0, 0, 7, 15)(h) }

// send plays messages: over iWARP in fragments with checksums.
func (l *line) send(from dissect.Side, all ...note) {
	l.p.t.Helper()
	for _, m := range all {
		raw := m.h.AppendTo(nil, l.rdma)
		if m.spoil != nil {
			m.spoil(raw)
		}
		if !l.rdma {
			l.raw(from, raw, m.data)
			continue
		}
		for at := 0; ; {
			n := min(wire.FragmentLen, len(m.data)-at)
			if at == 0 {
				n -= m.cut
			}
			l.post(from, append(bytes.Clone(raw), m.data[at:at+n]...))
			if at += n; at >= len(m.data) || m.cut > 0 {
				break
			}
			h := m.h
			h.Credit = 0
			raw = h.AppendTo(nil, true)
		}
	}
}

// A fault is a rule that is broken in an otherwise good trace.
type fault struct {
	name string
	rdma bool
	play func(p *player, l *line)
	want []string
}

var faults = []fault{
	{"header: padding", true, func(_ *player, l *line) {
		l.send(client, message(1, 10, func(h *wire.Header) { h.Padding[1] = 1 }))
	}, []string{"rds-header by client"}},
	{"header: flags", false, func(_ *player, l *line) {
		l.send(client, message(1, 10, flags(0x40)))
	}, []string{"rds-header by client"}},
	{"header: short Send", true, func(_ *player, l *line) {
		l.post(client, make([]byte, 47))
	}, []string{"rds-header by client"}},
	{"checksum over iWARP", true, func(_ *player, l *line) {
		m := message(1, 10)
		m.spoil = func(raw []byte) { raw[31] ^= 1 }
		l.send(server, m)
	}, []string{"rds-checksum by server"}},
	{"checksum over TCP", false, func(_ *player, l *line) {
		m := message(1, 10)
		m.spoil = func(raw []byte) { raw[31] = 1 }
		l.send(server, m)
	}, []string{"rds-checksum by server"}},
	{"length over TCP", false, func(_ *player, l *line) {
		l.send(client, message(1, 10, func(h *wire.Header) { h.Len = wire.MaxMessage + 1 }))
	}, []string{"rds-length by client"}},
	{"length over iWARP", true, func(_ *player, l *line) {
		l.send(client, message(1, 10, func(h *wire.Header) { h.Len = 1 << 31 }))
	}, []string{"rds-length by client"}},
	{"extension that does not fit", false, func(_ *player, l *line) {
		l.send(server, message(1, 10, extend(3, 0, 0, 0, 1, 0, 0, 0, 0, 3)))
	}, []string{"rds-extension by server"}},
	{"extension of Linux 7.0 that does not fit", true, func(_ *player, l *line) {
		l.send(client, message(1, 10, extend(3, 0, 0, 0, 1, 0, 0, 0, 0, 4)))
	}, []string{"rds-extension by client"}},
	{"extension twice", false, func(_ *player, l *line) {
		l.send(client, message(1, 10, extend(8, 0, 8, 0)))
	}, []string{"rds-extension by client"}},
	{"number 0", false, func(_ *player, l *line) {
		l.send(client, message(0, 10))
	}, []string{"rds-sequence by client"}},
	{"number again", false, func(_ *player, l *line) {
		l.send(client, message(1, 10), message(2, 10), message(2, 10), message(3, 10))
	}, []string{"rds-sequence by client"}},
	{"number that falls", true, func(_ *player, l *line) {
		l.send(client, message(5, 10), message(4, 10))
	}, []string{"rds-sequence by client"}},
	{"sent again without the flag", true, func(p *player, l *line) {
		l.send(client, message(1, 10), message(2, 20), message(3, 30))
		l.close()
		l = p.iwarp()
		l.send(client, message(2, 20), message(3, 30))
	}, []string{"rds-retransmitted by client"}},
	{"sent again without the flag, over TCP", false, func(p *player, l *line) {
		l.send(client, message(1, 10), message(2, 20), message(3, 30))
		l.close()
		l = p.tcp()
		l.send(client, message(2, 20), message(3, 30))
	}, []string{"rds-retransmitted by client"}},
	{"acknowledges what was not sent", true, func(_ *player, l *line) {
		l.send(client, message(1, 10))
		l.send(server, ackOnly(2))
	}, []string{"rds-ack by server"}},
	{"acknowledges what is not there to its end", true, func(_ *player, l *line) {
		h := message(1, 5000).h
		l.post(client, append(h.AppendTo(nil, true), make([]byte, wire.FragmentLen)...))
		l.send(server, ackOnly(1))
	}, []string{"rds-ack by server"}},
	{"acknowledgement that falls", true, func(_ *player, l *line) {
		l.send(client, message(1, 10), message(2, 10))
		l.send(server, ackOnly(2), ackOnly(1))
	}, []string{"rds-ack by server"}},
	{"acknowledgement over TCP, by urnic", false, func(_ *player, l *line) {
		l.send(client, message(1, 10))
		l.send(server, message(1, 0, ports(1, 0), urnic), message(2, 10, ack(1)), message(3, 10, ack(7)))
	}, []string{"rds-ack by server"}},
	{"acknowledgement that falls over TCP, by urnic in its pong", false, func(_ *player, l *line) {
		l.send(client, message(1, 0, ports(1, 0), generation(7)), message(2, 10))
		l.send(server, message(1, 0, ports(0, 1), urnic, ack(1)), message(2, 10, ack(2)), message(3, 10, ack(1)))
	}, []string{"rds-ack by server"}},
	{"acknowledgement on another path, by urnic", false, func(p *player, l *line) {
		l.send(client, message(1, 0, ports(1, 0), urnic))
		other := p.tcp()
		other.send(server, message(1, 10))
		other.send(client, message(1, 10, ack(2)))
	}, []string{"rds-ack by client"}},
	{"acknowledgement alone with data", true, func(_ *player, l *line) {
		l.send(server, message(0, 4, ports(0, 0)))
	}, []string{"rds-ack-only by server", "rds-ack-only by server"}},
	{"acknowledgement alone with flags", true, func(_ *player, l *line) {
		l.send(server, message(0, 0, ports(0, 0), flags(wire.AckRequired)))
	}, []string{"rds-ack-only by server"}},
	{"map of a wrong length", false, func(_ *player, l *line) {
		m := congestion(4000)
		m.h.Len, m.data = 4096, m.data[:4096]
		l.send(client, m)
	}, []string{"rds-map by client"}},
	{"map with a number", true, func(_ *player, l *line) {
		m := congestion()
		m.h.Sequence = 1
		l.send(client, m)
	}, []string{"rds-map by client"}},
	{"pong with data", false, func(_ *player, l *line) {
		l.send(client, message(1, 3, ports(5000, 0)))
		l.send(server, message(1, 3, ports(0, 5000)))
	}, []string{"rds-pong by server"}},
	{"pong to another port", true, func(_ *player, l *line) {
		l.send(client, message(1, 3, ports(5000, 0)))
		l.send(server, message(1, 0, ports(0, 5001)))
	}, []string{"rds-pong by server"}},
	{"second pong", false, func(_ *player, l *line) {
		l.send(client, message(1, 3, ports(1, 0)))
		l.send(server, message(1, 0, ports(0, 1)), message(2, 0, ports(0, 1)))
	}, []string{"rds-pong by server"}},
	{"pong that no probe has asked for, with several paths", false, func(p *player, l *line) {
		p.tcp()
		l.send(client, message(1, 3))
		l.send(server, message(1, 0, ports(0, 1)))
	}, []string{"rds-pong by server"}},
	{"numbers that begin anew twice", false, func(_ *player, l *line) {
		l.send(client, message(1, 0, ports(1, 0), generation(7)))
		l.send(server, message(9, 10), message(1, 10), message(2, 10), message(1, 10))
	}, []string{"rds-sequence by server"}},
	{"key that no operation has used", true, func(_ *player, l *line) {
		l.send(client, message(1, 10, extend(3, 0, 0, 1, 0, 0, 0, 0, 64)))
		l.write(server, 0x100, 64, 10)
		l.send(server, message(1, 10, extend(2, 0, 0, 1, 0)), message(2, 10, extend(2, 0, 0, 2, 0)))
	}, []string{"rds-rdma by server"}},
	{"key of one operation twice", true, func(_ *player, l *line) {
		l.send(client, message(1, 10, extend(3, 0, 0, 1, 0, 0, 0, 0, 64)))
		l.write(server, 0x100, 64, 10)
		l.send(server, message(1, 10, extend(2, 0, 0, 1, 0)), message(2, 10, extend(2, 0, 0, 1, 0)))
	}, []string{"rds-rdma by server"}},
	{"fragments of two messages", true, func(_ *player, l *line) {
		a, b := message(1, 5000), message(2, 10)
		l.post(client, append(a.h.AppendTo(nil, true), a.data[:wire.FragmentLen]...))
		l.send(client, b)
	}, []string{"rds-fragment by client"}},
	{"fragments out of order", true, func(_ *player, l *line) {
		a := message(1, 5000)
		l.post(client, append(a.h.AppendTo(nil, true), a.data[wire.FragmentLen:]...))
	}, []string{"rds-fragment by client"}},
	{"fragment too short", true, func(_ *player, l *line) {
		m := message(1, 9000)
		m.cut = 1
		l.send(client, m)
	}, []string{"rds-fragment by client"}},
	{"last fragment too long", true, func(_ *player, l *line) {
		m := message(1, 10)
		l.post(client, append(m.h.AppendTo(nil, true), make([]byte, 11)...))
	}, []string{"rds-fragment by client"}},
	{"no credit left", true, func(_ *player, l *line) {
		for i := range uint64(6) {
			l.send(client, message(i+1, 1))
		}
		l.send(server, message(1, 1, credit(1))) // for one more
		l.send(client, message(7, 1), message(8, 1))
	}, []string{"rds-credit by client"}},
	{"no paths", false, func(_ *player, l *line) {
		l.send(client, message(1, 0, ports(1, 0), extend(5, 0, 0)))
	}, []string{"rds-paths by client"}},
	{"generation that changes", false, func(_ *player, l *line) {
		l.send(client, message(1, 0, ports(1, 0), generation(7)), message(2, 0, ports(1, 0), generation(8)))
	}, []string{"rds-generation by client"}},
	{"generation of an earlier life", true, func(p *player, l *line) {
		for _, g := range []byte{7, 8, 7} {
			l.send(client, message(1, 0, ports(1, 0), generation(g)))
			l.close()
			l = p.iwarp()
		}
	}, []string{"rds-generation by client"}},
	{"dialled by the higher address", false, func(p *player, _ *line) {
		l := p.open(highNode, lowNode, Port)
		l.send(client, congestion(), message(1, 10))
		l.send(server, congestion(), message(1, 10))
	}, []string{"rds-dialler by server"}},
	{"reply for another node", true, func(p *player, _ *line) {
		l := p.open(lowNode, highNode, PortRDMA)
		l.frame(client, l.private(client))
		v := l.private(server)
		v.Dest = netip.MustParseAddr("192.0.2.9")
		l.frame(server, v)
	}, []string{"rds-private by server"}},
	{"version", true, func(p *player, _ *line) {
		l := p.open(lowNode, highNode, PortRDMA)
		v := l.private(client)
		v.Major = 5
		l.frame(client, v)
	}, []string{"rds-private by client"}},
	{"type of service", true, func(p *player, _ *line) {
		l := p.open(lowNode, highNode, PortRDMA)
		l.frame(client, l.private(client))
		v := l.private(server)
		v.TOS = 3
		l.frame(server, v)
	}, []string{"rds-private by server"}},
}

// Each fault is found, in a trace in which nothing else is wrong, and nobody else is blamed.
func TestPlantedFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			p := newPlayer(t)
			l := p.tcp
			if f.rdma {
				l = p.iwarp
			}
			f.play(p, l())
			analyze(t, p.recording()).want(t, f.want...)
		})
	}
}
