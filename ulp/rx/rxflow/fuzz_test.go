package rxflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// check analyses a capture, and looks at what must be so whatever is in it.
func check(t testing.TB, file []byte) {
	t.Helper()
	o := dissect.Options{Segments: true}
	shown, calls := 0, 0
	text, lines, ladder := dissect.Text(io.Discard, o), dissect.JSON(io.Discard, o), dissect.Ladder(io.Discard, o)
	f := analyze(t, file, text, lines, ladder, func(e *dissect.Event) error {
		switch u := e.Upper.(type) {
		case *Packet:
			shown++
			if got := u.Header.Append(nil); len(got) != wire.HeaderLen || u.Length != len(u.Body)+u.Missing {
				t.Errorf("%v: a header of %d bytes, a body of %d", u, len(got), len(u.Body))
			}
		case *Call:
			calls++
		}
		return nil
	})
	var s dissect.Summary
	s.Add("capture", f.Result)
	if err := errors.Join(s.WriteTable(io.Discard), s.WriteJSON(io.Discard)); err != nil {
		t.Error(err)
	}
	counted, begun := 0, 0
	for _, c := range f.Connections {
		u := c.Upper.(*Summary)
		begun += u.Calls
		for _, n := range []*Counts{&u.Client, &u.Server} {
			for _, v := range n.Packets {
				counted += v
			}
		}
	}
	if counted != shown || begun != calls {
		t.Errorf("%d packets were counted, %d shown; %d calls began, %d are told of", counted, shown, begun, calls)
	}
}

// FuzzDatagrams: whatever two endpoints send each other, the analysis ends, lets go of what it
// remembers, and can be shown. Each datagram of the input has its length in front.
func FuzzDatagrams(f *testing.F) {
	for _, fault := range faults {
		p := newPlayer(f)
		fault.play(p)
		f.Add(datagramsOf(f, p.recording()))
	}
	for _, name := range []string{"probe-debug", "probe-version", "rxr-levels", "probe-types"} {
		b := datagramsOf(f, golden(f, name))
		f.Add(b[:min(len(b), 4096)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPlayer(t)
		for n := 0; len(b) > 3 && n < 200; n++ {
			size := min(int(b[1])<<8|int(b[2]), len(b)-3)
			p.raw(dissect.Side(b[0]&1), b[3:3+size])
			b = b[3+size:]
		}
		check(t, p.recording())
	})
}

// datagramsOf returns the datagrams of a capture, each with its length in front.
func datagramsOf(t testing.TB, file []byte) []byte {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	err = capture.ReadDatagrams(t.Context(), r, func(_ capture.At, d *capture.Datagram) error {
		side := byte(0)
		if 7000 <= d.Src.Port() && d.Src.Port() < 7100 && d.Src != clientAddr {
			side = 1
		}
		b = append(append(b, side, byte(len(d.Data)>>8), byte(len(d.Data))), d.Data...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What an analysis remembers is bounded, however many connections there are.
func TestMemoryIsBounded(t *testing.T) {
	file := func(play func(w *capture.Writer)) []byte {
		var b bytes.Buffer
		w, err := capture.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		play(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const many = maxConns + 100
	for name, f := range map[string][]byte{
		"connections": file(func(w *capture.Writer) {
			for i := range uint32(many) {
				h := wire.Header{Epoch: testEpoch, CID: i << 2, Call: 1, Seq: 1, Serial: 1, Type: wire.TypeData, Flags: wire.FlagClient | wire.FlagLast, Security: 2}
				w.Datagram(clientAddr, serverAddr, h.Append(nil), make([]byte, 1400))
			}
		}),
		"endpoints": file(func(w *capture.Writer) {
			for i := range many {
				from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 7001)
				h := wire.Header{Type: wire.TypeVersion, Flags: wire.FlagClient}
				w.Datagram(from, serverAddr, h.Append(nil))
			}
		}),
	} {
		a := analyzer(t)
		most, hashes := 0, 0
		r := analyzeWith(t, f, a, func(*dissect.Event) error {
			most, hashes = max(most, a.order.Len()), max(hashes, a.hashes)
			if a.sealed > maxSealed || len(a.endpoints) > maxEndpoints {
				t.Fatalf("%s: %d bytes, %d endpoints", name, a.sealed, len(a.endpoints))
			}
			return nil
		})
		if most > maxConns || hashes > maxHashes+maxRecent || r.Total.Connections != many {
			t.Errorf("%s: %d at a time, %d hashes, %d connections", name, most, hashes, r.Total.Connections)
		}
	}
}

// A damaged datagram has not arrived: it blames nobody.
func TestDamagedDatagramsBlameNobody(t *testing.T) {
	p := newPlayer(t)
	p.data(client, 1, 1, "abcd", flags(0x40))
	file := p.recording()
	file[bytes.Index(file, []byte("abcd"))] ^= 1
	f := analyze(t, file)
	f.want(t)
	if len(f.notes) != 1 || !strings.Contains(f.notes[0], "UDP checksum is wrong") {
		t.Errorf("notes %q", f.notes)
	}
}

// On ports that are not known, Rx is found by what fits together, and nothing else is.
func TestRxIsFoundOnAnyPort(t *testing.T) {
	a, b := netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("192.0.2.2:40001")
	play := func(datagrams ...[]byte) []byte {
		p := newPlayer(t)
		for _, d := range datagrams {
			p.w.Datagram(a, b, d)
		}
		return p.recording()
	}
	h := wire.Header{Epoch: testEpoch, CID: 4, Call: 1, Seq: 1, Serial: 1, Type: wire.TypeData, Flags: wire.FlagClient}
	for name, tc := range map[string]struct {
		file []byte
		a    *Analyzer
		want int
	}{
		"a request":         {play(append(h.Append(nil), 0, 0, 1, 0)), &Analyzer{}, 1},
		"zeros":             {play(make([]byte, 64)), &Analyzer{}, 0},
		"text":              {play([]byte(strings.Repeat("some text ", 9))), &Analyzer{}, 0},
		"text, all":         {play([]byte(strings.Repeat("some text ", 9))), &Analyzer{All: true}, 1},
		"text, on the port": {play([]byte(strings.Repeat("some text ", 9))), &Analyzer{Ports: []uint16{40001}}, 1},
	} {
		f := analyzeWith(t, tc.file, tc.a)
		if f.Total.Connections != tc.want {
			t.Errorf("%s: %d connections", name, f.Total.Connections)
		}
	}
}

// The port of a client may be another protocol's afterwards; that of a server is not.
func TestPortsOfClientsAreNotKept(t *testing.T) {
	a, b := netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("192.0.2.2:40001")
	other := netip.MustParseAddrPort("192.0.2.3:53")
	p := newPlayer(t)
	h := wire.Header{Epoch: testEpoch, CID: 4, Call: 1, Seq: 1, Serial: 1, Type: wire.TypeData, Flags: wire.FlagClient}
	p.w.Datagram(a, b, h.Append(nil), []byte{0, 0, 1, 0})
	p.w.Datagram(a, other, []byte("not Rx"))
	p.w.Datagram(other, b, []byte("not Rx"))
	f := analyzeWith(t, p.recording(), &Analyzer{})
	f.want(t, "rx-header by client")
	if f.Total.Connections != 2 || f.Connections[1].Addr[server] != b.String() {
		t.Errorf("%+v", f.Connections)
	}
}

// With Calls, packets are left out, and nothing else.
func TestOnlyCalls(t *testing.T) {
	a := analyzer(t)
	a.Calls = true
	f := analyzeWith(t, golden(t, "rxr-aborts"), a, func(e *dissect.Event) error {
		if _, ok := e.Upper.(*Packet); ok {
			t.Error("a packet is shown")
		}
		return nil
	})
	if len(f.calls) != 7 || len(f.Connections) == 0 {
		t.Errorf("%d calls", len(f.calls))
	}
}

// What programs count in lines of JSON is what the summary says.
func TestJSONLinesAgreeWithTheSummary(t *testing.T) {
	for name := range rows(t) {
		var b bytes.Buffer
		f := analyze(t, golden(t, name), dissect.JSON(&b, dissect.Options{}))
		want, calls := map[string]int{}, 0
		for _, c := range f.Connections {
			s := c.Upper.(*Summary)
			calls += s.Calls
			for _, n := range []*Counts{&s.Client, &s.Server} {
				for k, v := range n.Packets {
					want[k] += v
				}
			}
		}
		for line := range strings.Lines(b.String()) {
			var e struct {
				Event string
				ULP   struct{ Type string }
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			switch e.Event {
			case "rx":
				want[e.ULP.Type]--
			case "rx-call":
				calls--
			}
		}
		for k, v := range want {
			if v != 0 {
				t.Errorf("%s: %d packets of type %s too many", name, v, k)
			}
		}
		if calls != 0 {
			t.Errorf("%s: %d calls too many", name, calls)
		}
	}
}
