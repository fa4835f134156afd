package rdpflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// check analyses a capture, and looks at what must be so whatever is in it.
func check(t testing.TB, file []byte, a *Analyzer) {
	t.Helper()
	o := dissect.Options{Segments: true}
	shown, again, ends := 0, 0, 0
	text, lines, ladder := dissect.Text(io.Discard, o), dissect.JSON(io.Discard, o), dissect.Ladder(io.Discard, o)
	f := analyzeWith(t, file, a, text, lines, ladder, func(e *dissect.Event) error {
		switch u := e.Upper.(type) {
		case *Segment:
			shown++
			if u.Again {
				again++
			}
			if u.Fault != nil || u.cut || u.Missing > 0 {
				return nil
			}
			var h wire.Header
			b := u.Header.AppendTo(nil, u.Data, nil)
			if data, err := h.Parse(b, nil); err != nil || !bytes.Equal(data, u.Data) || h.String() != u.Header.String() {
				t.Errorf("%v is encoded and decoded again as %v, %v", u, &h, err)
			}
		case *End:
			ends++
		}
		return nil
	})
	var s dissect.Summary
	s.Add("capture", f.Result)
	if err := errors.Join(s.WriteTable(io.Discard), s.WriteJSON(io.Discard)); err != nil {
		t.Error(err)
	}
	counted, repeats, conns := 0, 0, 0
	for _, c := range f.Connections {
		u, ok := c.LLP.(*Summary) // of DDP
		if !ok {
			u = c.Upper.(*Summary)
		}
		if u.Kind == "connection" {
			conns++
		}
		for _, n := range []*Counts{&u.Client, &u.Server} {
			for _, v := range n.Segments {
				counted += v
			}
			repeats += n.Repeats
		}
	}
	if counted != shown || conns != ends || repeats != again {
		t.Errorf("%d segments were counted, %d shown; %d repeats, %d shown; %d connections, %d ends", counted, shown, repeats, again, conns, ends)
	}
}

// FuzzDatagrams: whatever two endpoints send each other, the analysis ends, lets go of what it
// remembers, and can be shown. Each datagram of the input has its side and length in front.
func FuzzDatagrams(f *testing.F) {
	for _, fault := range faults {
		p := newPlayer(f)
		fault.play(p)
		b, ip := segmentsOf(f, p.recording())
		f.Add(b, ip, false)
	}
	for name := range captureCounts {
		b, ip := segmentsOf(f, golden(f, name))
		f.Add(b[:min(len(b), 8192)], ip, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, ip, mended bool) {
		p := newPlayer(t)
		p.ip = ip
		for n := 0; len(b) > 3 && n < 200; n++ {
			size := min(int(b[1])<<8|int(b[2]), len(b)-3)
			s := bytes.Clone(b[3 : 3+size])
			if mended && len(s) >= wire.FixedLen { // otherwise, few have a right checksum
				s = mend(s)
			}
			p.raw(dissect.Side(b[0]&1), s)
			p.wait(time.Duration(b[0]>>1) * 8 * time.Millisecond)
			b = b[3+size:]
		}
		file := p.recording()
		check(t, file, &Analyzer{All: true})
		check(t, file, &Analyzer{Complete: true})
	})
}

// FuzzHeaders: the same with segments whose form is right: 16 bytes of input each.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte("\x00\x80\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "\x01\xc0\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPlayer(t)
		for n := 0; len(b) >= 16 && n < 200; n++ {
			from := dissect.Side(b[0] & 1)
			iss, other := uint32(clientISS), uint32(serverISS)
			if from == server {
				iss, other = other, iss
			}
			h := wire.Header{
				Flags: wire.Flags(b[1]) &^ 7, Seq: iss + uint32(int8(b[3])), Ack: other + uint32(int8(b[4])),
				MaxOutstanding: uint16(b[5]), MaxSegment: 30 + uint16(b[6]), Sequenced: b[7]&1 != 0,
			}
			for _, e := range b[8:12] {
				if e != 0 {
					h.EACKs = append(h.EACKs, other+uint32(int8(e)))
				}
			}
			if b[12]&0xe0 == 0xe0 {
				h.Seq += 1 << 29 * uint32(b[12])
			}
			p.version = 1 + b[2]&1
			p.segment(from, h, strings.Repeat("x", int(b[13]&15)))
			p.wait(time.Duration(b[14]) * 8 * time.Millisecond)
			b = b[16:]
		}
		file := p.recording()
		check(t, file, &Analyzer{})
		check(t, file, &Analyzer{Complete: true})
	})
}

// segmentsOf returns the segments of a capture, each with its side and length in front, and
// whether IP carries them.
func segmentsOf(t testing.TB, file []byte) (b []byte, ip bool) {
	t.Helper()
	asm := capture.NewAssembler(func(*capture.Conn) capture.Consumer { return nil })
	take := func(_ capture.At, d *capture.Datagram) {
		side := byte(0)
		if d.Src.Addr() == serverAddr.Addr() || d.Src.Addr() == netip.MustParseAddr("10.9.0.2") {
			side = 1
		}
		b = append(append(b, side, byte(len(d.Data)>>8), byte(len(d.Data))), d.Data...)
	}
	asm.UDP = take
	asm.RDP = func(at capture.At, d *capture.Datagram) { ip = true; take(at, d) }
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := asm.ReadAll(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return b, ip
}

// What an analysis remembers is bounded, however many connections there are.
func TestMemoryIsBounded(t *testing.T) {
	const many = maxConns + 100
	for name, play := range map[string]func(w *capture.Writer){
		"connections": func(w *capture.Writer) {
			for i := range many {
				h := syn(uint32(i), 8)
				h.Version, h.Source, h.Dest = 2, uint16(i)+1, uint16(i>>16)+1
				w.Datagram(clientAddr, serverAddr, h.AppendTo(nil, nil, nil))
			}
		},
		"one after another": func(w *capture.Writer) {
			for i := range many {
				h := syn(uint32(i)<<20, 8)
				h.Version, h.Source, h.Dest = 2, 1, 2
				w.Datagram(clientAddr, serverAddr, h.AppendTo(nil, nil, nil))
			}
		},
		"endpoints": func(w *capture.Writer) {
			for i := range many {
				from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 10908)
				h := syn(1, 8)
				h.Version, h.Source, h.Dest = 1, 70, 7
				b := h.AppendTo(nil, nil, nil)
				b[20]++
				w.Datagram(from, serverAddr, b)
			}
		},
		"numbers": func(w *capture.Writer) {
			for i := range uint32(many) {
				h := wire.Header{Version: 1, Flags: wire.ACK, Source: 70, Dest: 7, Seq: i * 2, EACKs: []uint32{i * 3}}
				h.Flags |= wire.EACK
				w.Datagram(clientAddr, serverAddr, h.AppendTo(nil, []byte("x"), nil))
			}
		},
	} {
		var file bytes.Buffer
		w, err := capture.NewWriter(&file)
		if err != nil {
			t.Fatal(err)
		}
		play(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		a := &Analyzer{}
		most, hashes := 0, 0
		f := analyzeWith(t, file.Bytes(), a, func(*dissect.Event) error {
			most, hashes = max(most, a.order.Len()), max(hashes, a.hashes)
			for _, c := range a.conns {
				for i := range c.dirs {
					if n := len(c.dirs[i].seen.spans) + len(c.dirs[i].eacked.spans); n > 2*maxSpans {
						t.Fatalf("%s: %d spans", name, n)
					}
				}
				break
			}
			if len(a.servers) > maxServers || len(a.conns) > maxConns || len(a.pairs) > maxConns {
				t.Fatalf("%s: %d servers, %d connections, %d pairs", name, len(a.servers), len(a.conns), len(a.pairs))
			}
			return nil
		})
		want := many
		if name == "numbers" {
			want = 1
		}
		if most > maxConns || hashes > maxHashes+maxRecent || f.Total.Connections != want {
			t.Errorf("%s: %d at a time, %d hashes, %d connections, want %d", name, most, hashes, f.Total.Connections, want)
		}
	}
}

// With Brief, segments are left out, and nothing else.
func TestBrief(t *testing.T) {
	f := analyzeWith(t, golden(t, v1Sequenced), &Analyzer{Brief: true}, func(e *dissect.Event) error {
		if _, ok := e.Upper.(*Segment); ok {
			t.Error("a segment is shown")
		}
		return nil
	})
	if len(f.opens) != 1 || len(f.ends) != 1 || f.summary(t).Client.Repeats != 20 {
		t.Errorf("opens %v, ends %v", f.opens, f.ends)
	}
}

// What programs count in lines of JSON is what the summary says.
func TestJSONLinesAgreeWithTheSummary(t *testing.T) {
	for name := range captureCounts {
		var b bytes.Buffer
		f := analyze(t, golden(t, name), dissect.JSON(&b, dissect.Options{}))
		want := map[string]int{"rdp-open": 1, "rdp-end": 1}
		s := f.summary(t)
		for _, n := range []*Counts{&s.Client, &s.Server} {
			for k, v := range n.Segments {
				want[k] += v
			}
			want["eacks"] += n.EACKs
		}
		for line := range strings.Lines(b.String()) {
			var e struct {
				Event string
				ULP   struct {
					Type  string
					EACKs []uint32
				}
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if e.Event == "rdp" {
				want[e.ULP.Type]--
				want["eacks"] -= len(e.ULP.EACKs)
			} else {
				want[e.Event]--
			}
		}
		for k, v := range want {
			if v != 0 {
				t.Errorf("%s: %d of %s too many", name, v, k)
			}
		}
	}
}
