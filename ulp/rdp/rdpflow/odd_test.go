package rdpflow

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// play plays a trace and analyses it.
func play(t *testing.T, f func(p *player)) found {
	t.Helper()
	p := newPlayer(t)
	f(p)
	return analyze(t, p.recording())
}

// The traces of RFC 908 §5 break no rule.
func TestTracesOfTheRFC(t *testing.T) {
	eack := func(p *player) { p.ack(server, serverISS+1, clientISS+1, clientISS+3) }
	for name, tc := range map[string]struct {
		play  func(p *player)
		how   string
		by    dissect.Side
		conns int
	}{
		"5.1 opening": {func(p *player) { p.open() }, "", 0, 1},
		"5.2 both sides open": {func(p *player) {
			p.segment(client, syn(clientISS, 8), "")
			p.segment(server, syn(serverISS, 4), "")
			p.segment(server, synAck(serverISS, clientISS, 4), "")
			p.segment(client, synAck(clientISS, serverISS, 8), "")
		}, "", 0, 1},
		"5.3 a segment is lost": {func(p *player) {
			p.open()
			p.data(client, clientISS+1, serverISS, "1")
			p.ack(server, serverISS+1, clientISS+1)
			p.data(client, clientISS+3, serverISS, "3")
			eack(p)
			p.data(client, clientISS+4, serverISS, "4")
			p.ack(server, serverISS+1, clientISS+1, clientISS+3, clientISS+4)
			p.wait(time.Second)
			p.data(client, clientISS+2, serverISS, "2")
			p.ack(server, serverISS+1, clientISS+4)
		}, "", 0, 1},
		"5.4 segments overtake each other": {func(p *player) {
			p.open()
			p.data(client, clientISS+1, serverISS, "1")
			p.ack(server, serverISS+1, clientISS+1)
			p.data(client, clientISS+3, serverISS, "3")
			p.data(client, clientISS+2, serverISS, "2")
			eack(p)
			p.ack(server, serverISS+1, clientISS+3)
		}, "", 0, 1},
		"both ways": {func(p *player) {
			p.open()
			for n := uint32(1); n < 40; n++ {
				p.data(client, clientISS+n, serverISS+n-1, "c")
				p.data(server, serverISS+n, clientISS+n, "s")
			}
			p.rst(server, serverISS+40)
			p.rst(client, clientISS+40)
		}, "closed", server, 1},
		"all of the window, with EACKs": {func(p *player) {
			p.open()
			for n := uint32(1); n <= 4; n++ {
				p.data(client, clientISS+n, serverISS, "x")
			}
			p.ack(server, serverISS+1, clientISS, clientISS+2, clientISS+3, clientISS+4)
			for n := uint32(5); n <= 7; n++ {
				p.data(client, clientISS+n, serverISS, "x")
			}
			p.ack(server, serverISS+1, clientISS, clientISS+2, clientISS+3, clientISS+4, clientISS+5, clientISS+6, clientISS+7)
			p.data(client, clientISS+8, serverISS, "x")
			p.ack(server, serverISS+1, clientISS, clientISS+2, clientISS+3, clientISS+4, clientISS+5, clientISS+6, clientISS+7, clientISS+8)
			p.rst(client, clientISS+9) // which is behind the window: the server does not take it
		}, "", 0, 1},
		"refused": {func(p *player) {
			p.segment(client, syn(clientISS, 8), "")
			p.segment(server, wire.Header{Flags: wire.RST | wire.ACK, Ack: clientISS}, "")
		}, "refused", server, 1},
		"given up": {func(p *player) {
			p.segment(client, syn(clientISS, 8), "")
			p.segment(client, syn(clientISS, 8), "")
			p.rst(client, clientISS+1)
		}, "reset", client, 1},
		"5.7 half-open, found by the side that was born again": {func(p *player) {
			p.open()
			p.data(client, clientISS+1, serverISS, "x")
			p.ack(server, serverISS+1, clientISS+1)
			p.wait(time.Second)
			p.segment(client, syn(clientISS+4000, 8), "")
			p.ack(server, serverISS+1, clientISS+1)
			p.rst(client, clientISS+2)
			p.segment(client, syn(clientISS+4000, 8), "")
			p.segment(server, synAck(serverISS+4000, clientISS+4000, 4), "")
			p.ack(client, clientISS+4001, serverISS+4000)
			p.data(client, clientISS+4001, serverISS+4000, "y")
			p.ack(server, serverISS+4001, clientISS+4001)
		}, "closed", client, 2},
		"5.8 half-open, found by the other side": {func(p *player) {
			p.open()
			p.wait(time.Second)
			p.data(server, serverISS+1, clientISS, "x")
			p.rst(client, clientISS+1)
		}, "closed", client, 1},
		"one after another, with late segments": {func(p *player) {
			p.open()
			p.data(client, clientISS+1, serverISS, "x")
			p.rst(client, clientISS+2)
			p.segment(client, syn(clientISS+100, 8), "")
			p.segment(server, synAck(serverISS+100, clientISS+100, 4), "")
			p.data(client, clientISS+1, serverISS, "x")
			p.rst(client, clientISS+2)
			p.segment(client, syn(clientISS, 8), "")
			p.ack(client, clientISS+101, serverISS+100)
			p.data(client, clientISS+101, serverISS+100, "y")
		}, "closed", client, 2},
		"keepalives": {func(p *player) {
			p.open()
			for n := uint32(1); n < 30; n++ {
				p.wait(time.Second)
				p.nul(client, clientISS+n, serverISS)
				p.ack(server, serverISS+1, clientISS+n)
			}
			for range 30 {
				p.wait(2 * time.Second)
				p.ack(client, clientISS+30, serverISS)
				p.wait(2 * time.Second)
				p.ack(server, serverISS+1, clientISS+29)
			}
		}, "", 0, 1},
		"no SYN in the capture": {func(p *player) {
			p.lose = true
			p.open()
			p.lose = false
			p.ack(server, serverISS+1, clientISS+5)
			for n := uint32(9); n > 4; n-- {
				p.data(client, clientISS+n, serverISS, "x")
			}
			p.rst(client, clientISS+10)
		}, "closed", client, 1},
	} {
		for _, shift := range []uint32{0, 1<<32 - clientISS - 3, 1 << 31} {
			f := play(t, func(p *player) { p.shift = shift; tc.play(p) })
			f.want(t)
			if len(f.notes) > 0 {
				t.Errorf("%s, shift %d: notes %q", name, shift, f.notes)
			}
			if len(f.Connections) != tc.conns || len(f.ends) != tc.conns || f.ends[0].How != tc.how || tc.how != "" && f.ends[0].By != tc.by {
				t.Errorf("%s, shift %d: %d connections, ends %v", name, shift, len(f.Connections), f.ends)
			}
			for _, c := range f.Connections {
				if s := c.Upper.(*Summary); s.Client.Strays+s.Server.Strays > 0 {
					t.Errorf("%s, shift %d: strays: %+v", name, shift, s)
				}
			}
		}
	}
}

// What is odd, and perhaps nobody's fault, is noted.
func TestNotes(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(p *player)
		want string
	}{
		"a RST out of nowhere": {func(p *player) {
			p.open()
			p.rst(client, clientISS+1<<30)
			p.data(client, clientISS+1, serverISS, "x")
		}, "has nothing to do with those of the connection"},
		"options": {func(p *player) {
			h := syn(clientISS, 8)
			h.Version, h.Source, h.Dest = 2, 70, 7
			b := h.AppendTo(nil, nil, nil)
			b[23] = 1
			p.raw(client, mend(b))
			p.raw(client, b)
		}, "without a meaning"},
		"a longer header": {func(p *player) {
			p.open()
			h := wire.Header{Version: 2, Flags: wire.ACK, Source: 70, Dest: 7, Seq: clientISS + 1, Ack: serverISS}
			b := append(h.AppendTo(nil, nil, nil), 0, 0)
			b[1]++
			p.raw(client, mend(b))
		}, "without a meaning"},
		"the answer has another mode": {func(p *player) {
			p.segment(client, syn(clientISS, 8), "")
			p.segment(server, synAck(serverISS, clientISS, 4), "", func(h *wire.Header) { h.Sequenced = false })
		}, "does not ask for sequenced delivery"},
		"NUL without ACK": {func(p *player) {
			p.open()
			p.segment(client, wire.Header{Flags: wire.NUL, Seq: clientISS + 1}, "")
			p.segment(client, wire.Header{Flags: wire.NUL, Seq: clientISS + 2}, "")
		}, "a NUL without ACK"},
		"an answer of an earlier connection": {func(p *player) {
			p.segment(client, syn(clientISS, 8), "")
			p.ack(server, serverISS, clientISS-100)
		}, "it acknowledges 900, and the numbers of the client begin with 1000"},
		"a pseudo-header": {func(p *player) {
			p.ip = true
			h := wire.Header{Version: 2, Flags: wire.ACK, Source: 70, Dest: 7, Seq: clientISS + 1, Ack: serverISS}
			p.raw(client, h.AppendTo(nil, []byte("abcd"), &wire.Pseudo{Src: clientAddr.Addr(), Dst: serverAddr.Addr()}))
			p.raw(client, h.AppendTo(nil, []byte("abcd"), &wire.Pseudo{Src: clientAddr.Addr(), Dst: serverAddr.Addr()}))
		}, "covers a pseudo-header"},
	} {
		f := play(t, tc.play)
		f.want(t)
		if len(f.notes) != 1 || !strings.Contains(f.notes[0], tc.want) {
			t.Errorf("%s: notes %q, want one with %q", name, f.notes, tc.want)
		}
	}
}

// A RST that its receiver does not take ends nothing.
func TestForgedRSTsEndNothing(t *testing.T) {
	for name, number := range map[string]uint32{"one past the window": clientISS + 9, "old": clientISS, "far": clientISS + 1<<20, "of one that refuses": 0} {
		f := play(t, func(p *player) {
			p.shift = 1 << 31
			p.open()
			if number == 0 {
				p.segment(client, wire.Header{Flags: wire.RST | wire.ACK, Ack: serverISS}, "")
			} else {
				p.rst(client, number)
			}
			for n := uint32(1); n < 30; n++ {
				p.data(client, clientISS+n, serverISS, "x")
				p.ack(server, serverISS+1, clientISS+n)
			}
		})
		f.want(t)
		if len(f.ends) != 1 || f.ends[0].How != "" || f.ends[0].Client.Data != 29 || f.ends[0].Client.Strays != len(f.notes) {
			t.Errorf("%s: ends %v, notes %q", name, f.ends, f.notes)
		}
	}
	for _, number := range []uint32{clientISS + 1, clientISS + 8} { // the first and the last one of the window
		f := play(t, func(p *player) {
			p.open()
			p.rst(client, number)
		})
		if f.want(t); len(f.ends) != 1 || f.ends[0].How != "closed" {
			t.Errorf("%d: ends %v", number, f.ends)
		}
	}
}

// A damaged datagram has not arrived: it blames nobody.
func TestDamagedDatagramsBlameNobody(t *testing.T) {
	p := newPlayer(t)
	p.open()
	p.data(client, clientISS+1, serverISS, "one segment")
	p.bent(func(b []byte) []byte { return append(b, "too long"...) })
	file := p.recording()
	for _, s := range []string{"one segment", "too long"} {
		file[bytes.Index(file, []byte(s))] ^= 1
	}
	f := analyze(t, file)
	f.want(t)
	if len(f.notes) != 2 || !strings.Contains(f.notes[0], "UDP checksum is wrong") {
		t.Errorf("notes %q", f.notes)
	}
}

// Of segments that were captured in part, what is there is judged.
func TestSegmentsThatWereCapturedInPart(t *testing.T) {
	p := newPlayer(t)
	p.open()
	p.data(client, clientISS+1, serverISS, strings.Repeat("x", 400))
	p.data(client, clientISS+1, serverISS, strings.Repeat("y", 400))
	p.data(client, clientISS+2, serverISS, strings.Repeat("z", 600))
	all := packetsOf(t, p.recording())
	for i := range all {
		all[i].Data = all[i].Data[:min(len(all[i].Data), 100)]
	}
	f := analyze(t, fileOf(t, all))
	f.want(t, "rdp-size by client")
	if s := f.summary(t); s.Client.Data != 1000 || s.Client.Repeats != 1 || f.Verdict() != dissect.VerdictViolations || f.Connections[0].Undecoded == 0 {
		t.Errorf("%+v", s.Client)
	}
	p = newPlayer(t)
	p.ack(server, serverISS+1, clientISS, clientISS+2, clientISS+3)
	list := packetsOf(t, p.recording())
	list[0].Data = list[0].Data[:64] // one of two numbers
	f = analyzeWith(t, fileOf(t, list), &Analyzer{All: true})
	f.want(t)
	if s := f.summary(t); s.Kind != "malformed" {
		t.Errorf("%+v", s)
	}
	for i := range all {
		all[i].Data = all[i].Data[:60] // all of the header of data
	}
	if s := analyzeWith(t, fileOf(t, all[2:]), &Analyzer{All: true}).summary(t); s.Client.Data != 1000 || s.Client.Segments["data"] != 3 {
		t.Errorf("%+v", s.Client)
	}
	for i := range all {
		all[i].Data = all[i].Data[:55] // of the header, 13 bytes
	}
	f = analyzeWith(t, fileOf(t, all), &Analyzer{All: true})
	f.want(t)
	if s := f.summary(t); s.Kind != "malformed" || s.Client.Segments["malformed"] != 5 || s.Server.Segments["malformed"] != 1 {
		t.Errorf("%+v", s)
	}
}

// Segments of the wrong form that belong to no connection are one of their own.
func TestMalformedSegmentsOfNoConnection(t *testing.T) {
	f := play(t, func(p *player) {
		p.bent(func(b []byte) []byte { b[len(b)-1]++; return b })
		p.raw(server, []byte("short"))
		p.open()
		p.raw(server, []byte("short"))
	})
	f.want(t, "rdp-checksum by client", "rdp-header by server") // before that, what is short may be anything
	if len(f.Connections) != 2 || f.Connections[0].Upper.(*Summary).Kind != "malformed" || f.Connections[0].Addr[server] != serverAddr.String() {
		t.Errorf("%+v", f.Connections)
	}
	if n := f.Connections[1].Upper.(*Summary).Server.Segments["malformed"]; n != 1 {
		t.Errorf("%d malformed segments in the connection", n)
	}
}

// On ports that are not known, RDP is found by a SYN, and nothing else is.
func TestRDPIsFoundOnAnyPort(t *testing.T) {
	a, b := netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("192.0.2.2:40001")
	file := func(to netip.AddrPort, datagrams ...[]byte) []byte {
		var out bytes.Buffer
		w, err := capture.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range datagrams {
			w.Datagram(a, to, d)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	h := syn(1, 8)
	h.Version, h.Source, h.Dest = 1, 70, 7
	opening := h.AppendTo(nil, nil, nil)
	damaged := append([]byte(nil), opening...)
	damaged[5]++
	ack := wire.Header{Version: 2, Flags: wire.ACK, Source: 70, Dest: 7, Seq: 9, Ack: 9}
	text := []byte(strings.Repeat("some text ", 9))
	known := netip.AddrPortFrom(b.Addr(), wire.UDPPort)
	for name, tc := range map[string]struct {
		file []byte
		a    *Analyzer
		want int
	}{
		"SYN":                    {file(b, opening), &Analyzer{}, 1},
		"damaged SYN":            {file(b, damaged), &Analyzer{}, 0},
		"ACK":                    {file(b, ack.AppendTo(nil, nil, nil)), &Analyzer{}, 0},
		"ACK, on the known port": {file(known, ack.AppendTo(nil, nil, nil)), &Analyzer{}, 1},
		"text, on the same":      {file(known, text), &Analyzer{}, 0},
		"text":                   {file(b, text), &Analyzer{}, 0},
		"text behind a SYN":      {file(b, opening, text), &Analyzer{}, 1},
		"text, all":              {file(b, text), &Analyzer{All: true}, 1},
		"text, on a given port":  {file(b, text), &Analyzer{Ports: []uint16{40001}}, 1},
	} {
		f := analyzeWith(t, tc.file, tc.a)
		if f.Total.Connections != tc.want || strings.HasPrefix(name, "text") && tc.want == 1 && len(f.broken) != 1 {
			t.Errorf("%s: %d connections, broken %q", name, f.Total.Connections, f.broken)
		}
	}
}

// Connections that share two endpoints, or two hosts, are told apart by version and ports.
func TestConnectionsThatShareEndpoints(t *testing.T) {
	for _, ip := range []bool{false, true} {
		f := play(t, func(p *player) {
			p.ip = ip
			for _, version := range []uint8{1, 2} {
				p.version = version
				p.open()
			}
			for port := uint16(100); port < 110; port++ {
				p.segment(client, syn(clientISS, 8), "", func(h *wire.Header) { h.Source = port })
				p.segment(server, synAck(serverISS, clientISS, 8), "", func(h *wire.Header) { h.Dest = port })
			}
		})
		f.want(t)
		transport, addr := dissect.UDP, "192.0.2.1:40908"
		if ip {
			transport, addr = dissect.IP, "192.0.2.1:70"
		}
		if len(f.Connections) != 12 || f.Connections[0].Transport != transport || f.Connections[0].Addr[client] != addr {
			t.Errorf("%d connections, %v", len(f.Connections), f.Connections[0].Addr)
		}
	}
}

// A SYN that the capture has behind its time belongs to the connection that it has opened; one whose
// number is far from the others begins the next.
func TestLateSYNs(t *testing.T) {
	iss := uint32(clientISS)
	answer := func(p *player) { p.segment(server, synAck(serverISS, clientISS, 4), "") }
	opening := func(n uint32) func(p *player) {
		return func(p *player) { p.segment(client, syn(n, 8), "") }
	}
	ack := func(p *player) { p.ack(client, clientISS+1, serverISS) }
	data := func(n uint32) func(p *player) {
		return func(p *player) { p.data(client, clientISS+n, serverISS, "x") }
	}
	for name, tc := range map[string]struct {
		parts []func(p *player)
		want  int
	}{
		"behind the answer":            {[]func(p *player){answer, opening(clientISS), ack}, 1},
		"behind the ACK":               {[]func(p *player){ack, answer, opening(clientISS)}, 1},
		"behind data":                  {[]func(p *player){data(2), data(1), answer, opening(clientISS)}, 1},
		"far behind data":              {[]func(p *player){data(few), opening(clientISS)}, 1},
		"too far behind data":          {[]func(p *player){data(few + 1), opening(clientISS)}, 2},
		"with the number of data":      {[]func(p *player){data(1), opening(clientISS + 1)}, 2},
		"another one than answered":    {[]func(p *player){answer, opening(clientISS + 1)}, 2},
		"an older one than answered":   {[]func(p *player){answer, opening(iss - few)}, 1},
		"a much older one":             {[]func(p *player){answer, opening(iss - few - 1)}, 2},
		"that acknowledges another":    {[]func(p *player){opening(clientISS), func(p *player) { p.segment(server, synAck(serverISS, clientISS+far+1, 4), "") }}, 2},
		"that acknowledges an old one": {[]func(p *player){opening(clientISS), func(p *player) { p.segment(server, synAck(serverISS, clientISS-1, 4), "") }}, 2},
	} {
		f := play(t, func(p *player) {
			for _, part := range tc.parts {
				part(p)
			}
		})
		if f.want(t); len(f.Connections) != tc.want {
			t.Errorf("%s: %d connections, want %d", name, len(f.Connections), tc.want)
		}
	}
}

// Which side is the client, where the capture lacks the SYN.
func TestWhoIsTheClient(t *testing.T) {
	for name, tc := range map[string]struct {
		a    Analyzer
		from string
		to   string
		h    wire.Header
		want string // the client
	}{
		"to the port of RDP":        {Analyzer{}, "192.0.2.1:1", "192.0.2.2:10908", wire.Header{Flags: wire.ACK, Source: 7, Dest: 70}, "192.0.2.1:1"},
		"from the port of RDP":      {Analyzer{}, "192.0.2.1:10908", "192.0.2.2:1", wire.Header{Flags: wire.ACK, Source: 70, Dest: 7}, "192.0.2.2:1"},
		"to a given port":           {Analyzer{Ports: []uint16{5}}, "192.0.2.1:10908", "192.0.2.2:5", wire.Header{Flags: wire.ACK, Source: 7, Dest: 70}, "192.0.2.1:10908"},
		"from a given port":         {Analyzer{Ports: []uint16{5}}, "192.0.2.1:5", "192.0.2.2:10908", wire.Header{Flags: wire.ACK, Source: 70, Dest: 7}, "192.0.2.2:10908"},
		"to a lower port":           {Analyzer{All: true}, "192.0.2.1:1", "192.0.2.2:2", wire.Header{Flags: wire.ACK, Source: 70, Dest: 7}, "192.0.2.1:1"},
		"to a higher port":          {Analyzer{All: true}, "192.0.2.1:1", "192.0.2.2:2", wire.Header{Flags: wire.ACK, Source: 7, Dest: 70}, "192.0.2.2:2"},
		"between the same ports":    {Analyzer{All: true}, "192.0.2.1:1", "192.0.2.2:2", wire.Header{Flags: wire.ACK, Source: 7, Dest: 7}, "192.0.2.1:1"},
		"a SYN":                     {Analyzer{}, "192.0.2.1:10908", "192.0.2.2:1", wire.Header{Flags: wire.SYN, Source: 7, Dest: 70, MaxOutstanding: 1, MaxSegment: 600}, "192.0.2.1:10908"},
		"the answer to it":          {Analyzer{}, "192.0.2.1:1", "192.0.2.2:10908", wire.Header{Flags: wire.SYN | wire.ACK, Source: 70, Dest: 7, MaxOutstanding: 1, MaxSegment: 600}, "192.0.2.2:10908"},
		"a refusal":                 {Analyzer{}, "192.0.2.1:1", "192.0.2.2:10908", wire.Header{Flags: wire.RST | wire.ACK, Source: 70, Dest: 7}, "192.0.2.2:10908"},
		"a RST,ACK with its number": {Analyzer{}, "192.0.2.1:1", "192.0.2.2:10908", wire.Header{Flags: wire.RST | wire.ACK, Source: 70, Dest: 7, Seq: 1}, "192.0.2.1:1"},
	} {
		p := newPlayer(t)
		tc.h.Version = 2
		p.times = append(p.times, p.now)
		p.w.Datagram(netip.MustParseAddrPort(tc.from), netip.MustParseAddrPort(tc.to), tc.h.AppendTo(nil, nil, nil))
		f := analyzeWith(t, p.recording(), &tc.a)
		if len(f.Connections) != 1 || f.Connections[0].Addr[client] != tc.want {
			t.Errorf("%s: %d connections, the client is not %s", name, len(f.Connections), tc.want)
		}
	}
	// Of a later connection, it is that of the one before.
	f := play(t, func(p *player) {
		p.open()
		p.rst(client, clientISS+1)
		p.data(server, serverISS+1<<20, clientISS+1<<20, "x")
	})
	if f.want(t); len(f.Connections) != 2 || f.Connections[1].Addr[client] != clientAddr.String() {
		t.Errorf("%d connections, %v", len(f.Connections), f.Connections[len(f.Connections)-1].Addr)
	}
}

// A list that has no room for more need not be all that was received; neither need an ACK without one.
func TestListsThatAreFullProveNothing(t *testing.T) {
	for name, end := range map[string]func(p *player){
		"full": func(p *player) { p.ack(server, serverISS+1, clientISS, clientISS+6) },
		"none": func(p *player) { p.ack(server, serverISS+1, clientISS) },
	} {
		f := play(t, func(p *player) {
			size := uint16(600)
			if name == "full" {
				size = 42
			}
			p.segment(client, syn(clientISS, 8), "", func(h *wire.Header) { h.MaxSegment = size })
			p.segment(server, synAck(serverISS, clientISS, 4), "")
			p.ack(client, clientISS+1, serverISS)
			for n := range uint32(6) {
				p.data(client, clientISS+1+n, serverISS, "abcd")
			}
			end(p)
		})
		if f.want(t); len(f.notes) != 2 {
			t.Errorf("%s: notes %q", name, f.notes)
		}
	}
}

// What is just right breaks no rule.
func TestEdges(t *testing.T) {
	f := play(t, func(p *player) {
		p.segment(client, syn(clientISS, 1), "", func(h *wire.Header) { h.MaxSegment = 46 })
		p.segment(server, synAck(serverISS, clientISS, 4), "", func(h *wire.Header) { h.Sequenced = true })
		p.ack(client, clientISS+1, serverISS)
		p.data(server, serverISS+1, clientISS, "x")
		p.data(client, clientISS+4, serverISS+1, strings.Repeat("x", 600-38))
		p.ack(server, serverISS+2, clientISS, clientISS+4)
		p.data(client, clientISS+8, serverISS+1, "x")
		p.ack(server, serverISS+2, clientISS, clientISS+4, clientISS+8)
		p.wait(time.Hour)
		p.ack(client, clientISS+9, serverISS+1)
		p.data(client, clientISS+1, serverISS+1, "x")
		p.data(client, clientISS+2, serverISS+1, "x")
		p.data(client, clientISS+3, serverISS+1, "x")
		p.ack(server, serverISS+2, clientISS+4, clientISS+8)
	})
	f.want(t)
	if len(f.notes) > 0 || len(f.opens) != 1 || !f.opens[0].Sequenced {
		t.Errorf("notes %q", f.notes)
	}
	f = play(t, func(p *player) {
		p.segment(client, syn(clientISS, 1), "", func(h *wire.Header) { h.MaxSegment, h.Sequenced = wire.MinSegment, false })
		p.segment(server, synAck(serverISS, clientISS, 4), "")
		p.ack(client, clientISS+1, serverISS)
		p.data(server, serverISS+1, clientISS, "x")
	})
	if f.want(t); len(f.notes) > 0 || !f.opens[0].Sequenced {
		t.Errorf("notes %q, %v", f.notes, f.opens)
	}
}

// Over UDP, and in version 1, there is no pseudo-header.
func TestPseudoHeadersInTheWrongPlace(t *testing.T) {
	for _, ip := range []bool{false, true} {
		f := play(t, func(p *player) {
			p.ip = ip
			p.version = 1
			if !ip {
				p.version = 2
			}
			p.open()
			h := wire.Header{Version: 2, Flags: wire.ACK, Source: 70, Dest: 7, Seq: clientISS + 1, Ack: serverISS}
			b := h.AppendTo(nil, []byte("abcd"), &wire.Pseudo{Src: clientAddr.Addr(), Dst: serverAddr.Addr()})
			if ip {
				h.Version = 1
				b = h.AppendTo(nil, []byte("abcd"), nil)
				b[len(b)-1]++
			}
			p.raw(client, b)
		})
		f.want(t, "rdp-checksum by client")
	}
}

// A connection that is not open yet, or of which the capture has the middle only, is not called open.
func TestStates(t *testing.T) {
	for want, f := range map[string]func(p *player){
		"":     func(p *player) { p.segment(client, syn(clientISS, 8), "") },
		"open": func(p *player) { p.open() },
		"refused": func(p *player) {
			p.segment(client, syn(clientISS, 8), "")
			p.segment(server, wire.Header{Flags: wire.RST | wire.ACK, Ack: clientISS}, "")
		},
	} {
		if got := play(t, f).summary(t).State; got != want {
			t.Errorf("state %q, want %q", got, want)
		}
	}
}
