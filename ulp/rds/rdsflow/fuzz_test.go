package rdsflow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// without returns a capture without some packets.
func without(t testing.TB, file []byte, drop func(n int) bool) []byte {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		if drop(p.Number) {
			continue
		}
		ci := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length}
		if err := w.WritePacket(ci, p.Data); err != nil {
			t.Fatal(err)
		}
	}
}

// The steps of a script, in the low bits; the top one says that it is the server's.
const (
	doMessage = iota // of a header, in bytes as they are named below
	doRaw            // of the bytes themselves
	doFragment
	doOpen
	doLose
	doWrite
	doPacket // of RoCEv2
	steps
)

// step plays a step, and returns the connection that is the present one from then on.
func (p *player) step(l *line, kind byte, b []byte) *line {
	from := dissect.Side(kind >> 7)
	at := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	h := wire.Header{
		Sequence: uint64(at(0)), Ack: uint64(at(1)), Len: uint32(at(2))<<6 | uint32(at(3)&63), SourcePort: uint16(at(4) & 3), DestPort: uint16(at(5) & 3),
		Flags: wire.Flags(at(6) & 15), Credit: at(7) & 31, Extensions: [wire.ExtensionLen]byte{at(8), at(9), at(10), at(11), at(12), at(13)},
	}
	switch kind & 127 % steps {
	case doMessage:
		l.send(from, note{h: h, data: make([]byte, h.Len)})
	case doRaw:
		if l.rdma {
			l.post(from, b)
		} else if len(b) > 0 {
			l.raw(from, b)
		}
	case doFragment:
		if raw := h.AppendTo(nil, l.rdma); l.rdma {
			l.post(from, append(raw, make([]byte, int(at(14))<<5)...))
		} else {
			l.raw(from, raw)
		}
	case doOpen:
		if at(0)&1 != 0 {
			l.close()
		}
		if at(0)&2 != 0 {
			return p.iwarp()
		}
		return p.tcp()
	case doWrite:
		if l.rdma {
			l.write(from, uint32(at(0)&3), uint64(at(1)), int(at(2)))
		}
	}
	return l
}

// FuzzAnalyzer: whatever nodes send each other, the analysis ends, decodes what it shows,
// remembers no more than it should, and can be shown.
func FuzzAnalyzer(f *testing.F) {
	f.Add([]byte{doMessage, 6, 1, 0, 0, 10, 2, 3, doMessage | 128, 6, 1, 1, 0, 4, 3, 2, doOpen, 1, 1, doMessage, 7, 1, 0, 0, 10, 2, 3, 4})
	f.Add([]byte{doOpen, 1, 2, doFragment, 15, 1, 0, 80, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 128, doFragment, 15, 1, 0, 80, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 32})
	f.Add([]byte{doMessage, 6, 1, 0, 0, 0, 1, 0, doMessage | 128, 14, 1, 0, 0, 0, 0, 1, 0, 0, 5, 0, 2, 6, 0, 0, doLose, 1, 9, doRaw, 3, 1, 2, 3})
	f.Add([]byte{doOpen, 1, 2, doMessage, 14, 1, 0, 0, 4, 2, 3, 0, 0, 3, 0, 0, 0, 1, 0, doWrite | 128, 3, 1, 0, 9, doMessage | 128, 13, 1, 1, 0, 0, 3, 2, 0, 2, 2, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		p := newPlayer(t)
		l := p.tcp()
		lost := map[int]bool{}
		for n := 0; len(script) >= 2 && n < 64; n++ {
			kind, size := script[0], min(int(script[1]), len(script)-2)
			b := script[2 : 2+size]
			script = script[2+size:]
			if kind&127%steps == doLose {
				for _, v := range b {
					lost[int(v)] = true
				}
				continue
			}
			l = p.step(l, kind, b)
		}
		file := p.recording()
		if len(lost) > 0 {
			file = without(t, file, func(n int) bool { return lost[n] })
		}
		check(t, file)
	})
}

// FuzzRoCE: no packet of RoCEv2 makes the analysis fail.
func FuzzRoCE(f *testing.F) {
	for _, name := range []string{"rxe-cut", "rxe-rdma"} {
		var all []byte
		packets(f, golden(f, name), func(b []byte) {
			all = binary.BigEndian.AppendUint16(all, uint16(len(b)))
			all = append(all, b...)
		})
		f.Add(all[:2<<10]) // the connection manager's, and the first Sends
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var file bytes.Buffer
		w := pcapgo.NewWriter(&file)
		if err := w.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
			t.Fatal(err)
		}
		for len(b) >= 2 {
			n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			packet := b[2 : 2+n]
			b = b[2+n:]
			if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: n, Length: n}, packet); err != nil {
				t.Fatal(err)
			}
		}
		check(t, file.Bytes())
	})
}

// packets calls see with each packet of a capture.
func packets(t testing.TB, file []byte, see func([]byte)) {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		see(p.Data)
	}
}

// check analyses a capture, and looks at what must be so whatever is in it.
func check(t *testing.T, file []byte) {
	a := &Analyzer{}
	o := dissect.Options{Segments: true}
	messages := 0
	r := analyzeWith(t, file, a, dissect.Text(io.Discard, o), dissect.JSON(io.Discard, o), dissect.Ladder(io.Discard, dissect.Options{Upper: true}), func(e *dissect.Event) error {
		m, ok := e.Upper.(*Message)
		if !ok {
			return nil
		}
		if !m.Part {
			messages++
		}
		if got := m.Header.AppendTo(nil, checksum(&m.Raw) != "none"); !bytes.Equal(got, m.Raw[:]) && m.Header.Checksum != 0xffff {
			t.Errorf("%v encodes as %x, was %x", &m.Header, got, m.Raw)
		}
		return nil
	})
	counted := 0
	for _, c := range r.Connections {
		if s, ok := c.Upper.(*Summary); ok {
			for _, n := range []*Counts{&s.Client, &s.Server} {
				counted += n.Data + n.Pings + n.Pongs + n.Probes + n.Maps + n.Acks
			}
		}
	}
	if counted != messages {
		t.Errorf("%d messages were counted, %d shown", counted, messages)
	}
	for _, p := range a.pairs {
		if p.open != 0 && len(a.roce.ids) == 0 {
			t.Errorf("%d connections are still open", p.open)
		}
	}
	var s dissect.Summary
	s.Add("fuzz", r.Result)
	if err := errors.Join(s.WriteJSON(io.Discard), s.WriteTable(io.Discard)); err != nil {
		t.Error(err)
	}
}
