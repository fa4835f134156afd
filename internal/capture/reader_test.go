package capture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// classicFile makes a pcap file.
func classicFile(order binary.AppendByteOrder, magic uint32, link layers.LinkType, packets ...[]byte) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = order.AppendUint32(b, 262144)
	b = order.AppendUint32(b, uint32(link))
	for i, p := range packets {
		b = order.AppendUint32(b, uint32(1000+i))
		b = order.AppendUint32(b, 250_000)
		b = order.AppendUint32(b, uint32(len(p)))
		b = order.AppendUint32(b, uint32(len(p)+i))
		b = append(b, p...)
	}
	return b
}

// ngBlock appends a pcapng block.
func ngBlock(b []byte, order binary.AppendByteOrder, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + blockOverhead)
	b = order.AppendUint32(b, kind)
	b = order.AppendUint32(b, n)
	b = append(b, body...)
	return order.AppendUint32(b, n)
}

func ngSection(order binary.AppendByteOrder) []byte {
	body := order.AppendUint32(nil, byteOrderMagic)
	body = order.AppendUint16(body, 1)
	body = order.AppendUint16(body, 0)
	body = order.AppendUint64(body, 1<<64-1)
	body = append(body, 0, 0, 0, 0) // end of options
	return ngBlock(nil, order, blockSection, body)
}

func ngIface(b []byte, order binary.AppendByteOrder, link layers.LinkType, snap uint32, options ...byte) []byte {
	body := order.AppendUint16(nil, uint16(link))
	body = order.AppendUint16(body, 0)
	body = order.AppendUint32(body, snap)
	return ngBlock(b, order, blockInterface, append(body, options...))
}

func ngOption(order binary.AppendByteOrder, code uint16, value ...byte) []byte {
	b := order.AppendUint16(nil, code)
	b = order.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func ngPacket(b []byte, order binary.AppendByteOrder, iface uint32, stamp uint64, data []byte) []byte {
	body := order.AppendUint32(nil, iface)
	body = order.AppendUint32(body, uint32(stamp>>32))
	body = order.AppendUint32(body, uint32(stamp))
	body = order.AppendUint32(body, uint32(len(data)))
	body = order.AppendUint32(body, uint32(len(data)+3))
	return ngBlock(b, order, blockEnhancedPacket, append(body, data...))
}

func TestClassicCaptures(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for magic, unit := range map[uint32]time.Duration{magicMicros: time.Microsecond, magicNanos: time.Nanosecond} {
			file := classicFile(order, magic, layers.LinkTypeRaw, []byte("abc"), nil, []byte("defgh"))
			got := packets(t, file)
			if len(got) != 3 || string(got[0].Data) != "abc" || len(got[1].Data) != 0 || string(got[2].Data) != "defgh" {
				t.Fatalf("%v %x: %v", order, magic, got)
			}
			want := time.Unix(1002, 250_000*int64(unit))
			if p := got[2]; !p.Time.Equal(want) || p.Link != layers.LinkTypeRaw || p.Length != 7 || p.Number != 3 {
				t.Errorf("%v %x: %+v", order, magic, p)
			}
		}
	}
}

func TestPcapngCaptures(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		file := ngSection(order)
		file = ngBlock(file, order, 0x0BAD, []byte("a block of no interest"))
		file = ngIface(file, order, layers.LinkTypeEthernet, 0)
		file = ngIface(file, order, layers.LinkTypeRaw, 4, slices.Concat(
			ngOption(order, 2, []byte("lo")...),
			ngOption(order, optionResolution, 0x80|10), // 2^-10 s
			ngOption(order, optionOffset, order.AppendUint64(nil, 500)...),
			ngOption(order, optionEnd))...)
		file = ngPacket(file, order, 0, 7_000_001, []byte("abc"))
		file = ngPacket(file, order, 1, 2<<10|512, []byte("defgh"))

		simple := ngSection(order) // a second section, with interfaces of its own
		simple = ngIface(simple, order, layers.LinkTypeNull, 4)
		simple = ngBlock(simple, order, blockSimplePacket, append(order.AppendUint32(nil, 6), "abcdef"...))
		old := order.AppendUint16(nil, 0)
		old = order.AppendUint16(old, 9) // dropped packets
		old = order.AppendUint64(old, 0)
		old = order.AppendUint32(old, 2)
		old = order.AppendUint32(old, 2)
		simple = ngBlock(simple, order, blockObsoletePacket, append(old, "xy"...))

		got := packets(t, append(file, simple...))
		if len(got) != 4 {
			t.Fatalf("%v: %d packets", order, len(got))
		}
		for i, want := range []Packet{
			{1, time.Unix(7, 1000), layers.LinkTypeEthernet, 6, []byte("abc")},
			{2, time.Unix(502, 500_000_000), layers.LinkTypeRaw, 8, []byte("defgh")},
			{3, time.Time{}, layers.LinkTypeNull, 6, []byte("abcd")},
			{4, time.Time{}, layers.LinkTypeNull, 2, []byte("xy")},
		} {
			g := got[i]
			if i == 3 {
				g.Time = time.Time{} // the stamp is 0, which is a time
			}
			if g.Number != want.Number || !g.Time.Equal(want.Time) || g.Link != want.Link || g.Length != want.Length || !bytes.Equal(g.Data, want.Data) {
				t.Errorf("%v: packet %+v, want %+v", order, g, want)
			}
		}
	}
}

func TestTimestampResolutions(t *testing.T) {
	for res, want := range map[byte]uint64{0: 1, 6: 1e6, 9: 1e9, 19: 1e19, 0x80: 1, 0x80 | 20: 1 << 20, 0x80 | 63: 1 << 63} {
		if got, ok := unitsPerSecond(res); !ok || got != want {
			t.Errorf("0x%02x: %d, %t; want %d", res, got, ok, want)
		}
	}
	for _, res := range []byte{20, 127, 0x80 | 64, 0xFF} {
		if got, ok := unitsPerSecond(res); ok {
			t.Errorf("0x%02x gives %d", res, got)
		}
	}
	i := ngInterface{units: 1 << 63}
	if got := i.time(1<<63 + 1<<62); !got.Equal(time.Unix(1, 5e8)) {
		t.Errorf("got %v", got)
	}
}

func compress(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sample is a capture in both formats with the number of its packets.
func sample(t testing.TB) map[string][]byte {
	ng := recording(t, func(w *Writer) {
		s := w.Stream(ourAddr, peerAddr, true)
		s.Sent([]byte("hello"))
		s.Received([]byte("world"))
	})
	var data [][]byte
	for _, p := range packets(t, ng) {
		data = append(data, p.Data)
	}
	return map[string][]byte{
		"pcapng": ng,
		"pcap":   classicFile(binary.LittleEndian, magicMicros, layers.LinkTypeEthernet, data...),
	}
}

func TestCompressedCaptureIsRead(t *testing.T) {
	for name, file := range sample(t) {
		if got := len(packets(t, compress(t, file))); got != 5 {
			t.Errorf("%s: %d packets", name, got)
		}
	}
}

// A capture cut anywhere is an error, unless it is cut between packets; what
// precedes the cut counts.
func TestCaptureCutShortAtAnyOctet(t *testing.T) {
	for name, file := range sample(t) {
		clean := 0
		for n := range len(file) {
			before := 0
			r, err := NewReader(bytes.NewReader(file[:n]))
			if err == nil {
				for {
					if _, err = r.Next(); err != nil {
						break
					}
					before++
				}
				if _, again := r.Next(); !errors.Is(again, err) {
					t.Errorf("%s cut at %d: %v, then %v", name, n, err, again)
				}
			}
			e, typed := errors.AsType[*Error](err)
			switch {
			case errors.Is(err, io.EOF):
				clean++
			case typed && errors.Is(err, io.ErrUnexpectedEOF):
				if e.Packets != before || e.Offset > int64(n) {
					t.Errorf("%s cut at %d: %v after %d packets", name, n, e, before)
				}
			default:
				t.Errorf("%s cut at %d: %v", name, n, err)
			}
		}
		if want := map[string]int{"pcap": 5, "pcapng": 6}[name]; clean != want {
			t.Errorf("%s: %d cuts look like the end of the file, want %d", name, clean, want)
		}
	}
}

func TestCompressedCaptureCutShort(t *testing.T) {
	for name, file := range sample(t) {
		z := compress(t, file)
		for n := range len(z) {
			_, err := readThrough(z[:n])
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("%s cut at %d: %v", name, n, err)
			}
		}
		z[len(z)-6] ^= 1 // its checksum
		if _, err := readThrough(z); err == nil {
			t.Errorf("%s: a wrong gzip checksum passes", name)
		}
	}
}

func readThrough(file []byte) (int, error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return 0, err
	}
	for {
		if _, err := r.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return r.Packets(), err
		}
	}
}

func TestDamagedCapturesAreRefused(t *testing.T) {
	le := binary.LittleEndian
	head := ngIface(ngSection(le), le, layers.LinkTypeRaw, 0)
	with := func(kind uint32, body ...byte) []byte { return ngBlock(slices.Clone(head), le, kind, body) }
	set := func(b []byte, off int, v uint32) []byte {
		b = slices.Clone(b)
		le.PutUint32(b[off:], v)
		return b
	}
	classic := classicFile(le, magicMicros, layers.LinkTypeRaw, []byte("abc"))
	good := ngPacket(slices.Clone(head), le, 0, 0, []byte("abcd"))
	at := len(head)
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"empty":                  {nil, "too short"},
		"text":                   {[]byte("GET / HTTP/1.1\r\n and more of that"), "no capture"},
		"pcap version":           {set(classic, 4, 3), "version 3"},
		"pcap packet too long":   {set(classic, 32, 1<<20+1), "damaged"},
		"byte order":             {set(head, 8, 0), "byte order"},
		"version":                {set(head, 12, 2), "version 2"},
		"section length":         {set(head, 4, 24), "section header of 24"},
		"section length odd":     {set(head, 4, 29), "section header of 29"},
		"block too short":        {set(good, at+4, 8), "block of 8"},
		"block odd":              {set(good, at+4, 41), "block of 41"},
		"block too long":         {set(good, at+4, maxBlock+4), "damaged"},
		"lengths differ":         {set(good, len(good)-4, 40), "length as"},
		"interface too short":    {with(blockInterface, 1, 2, 3, 4), "interface description"},
		"interface unknown":      {set(good, at+8, 1), "interface 1 of 1"},
		"packet block too short": {with(blockEnhancedPacket, 1, 2, 3, 4), "packet block is too short"},
		"packet too long":        {set(good, at+20, 5), "packet of 5"},
		"simple without length":  {with(blockSimplePacket), "simple packet"},
		"simple without iface":   {ngBlock(ngSection(le), le, blockSimplePacket, make([]byte, 8)), "simple packet"},
		"resolution":             {ngIface(slices.Clone(head), le, 1, 0, ngOption(le, optionResolution, 0xFF)...), "resolution"},
		"gzip header":            {[]byte{0x1F, 0x8B, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, "gzip"},
	} {
		_, err := readThrough(tc.file)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := ngSection(le)
	for range maxInterfaces + 1 {
		many = ngIface(many, le, layers.LinkTypeRaw, 0)
	}
	if _, err := readThrough(many); err == nil {
		t.Error("interfaces without end are taken")
	}
	// Options that lead nowhere are no reason to refuse a capture.
	odd := ngIface(ngSection(le), le, layers.LinkTypeRaw, 0, 2, 0, 200, 0, 1)
	if n, err := readThrough(ngPacket(odd, le, 0, 0, []byte("x"))); n != 1 || err != nil {
		t.Errorf("a capture with a damaged option: %d packets, %v", n, err)
	}
}

// errReader fails behind what it has.
type errReader struct{ r io.Reader }

var errBroken = errors.New("input/output error")

func (e errReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err == io.EOF {
		err = errBroken
	}
	return n, err
}

func TestErrorsOfTheInputAreReported(t *testing.T) {
	for name, file := range sample(t) {
		for _, n := range []int{0, 3, 20, 60, len(file) - 1, len(file)} {
			r, err := NewReader(errReader{bytes.NewReader(file[:n])})
			for err == nil {
				_, err = r.Next()
			}
			if !errors.Is(err, errBroken) {
				t.Errorf("%s, failing at %d: %v", name, n, err)
			}
		}
	}
}

// FuzzReader: whatever a file holds, reading it and putting its streams together
// ends, holds bounded memory, and delivers no more than there is.
func FuzzReader(f *testing.F) {
	for _, file := range sample(f) {
		f.Add(file)
		f.Add(compress(f, file))
		f.Add(file[:len(file)-7])
	}
	be := ngIface(ngSection(binary.BigEndian), binary.BigEndian, layers.LinkTypeRaw, 60)
	f.Add(ngPacket(be, binary.BigEndian, 0, 1<<40, pattern(64)))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			return
		}
		all, err := assembleReader(r)
		if _, ok := errors.AsType[*Error](err); err != nil && !ok {
			t.Fatalf("error of type %T: %v", err, err)
		}
		for _, s := range all {
			if s.ended != 1 {
				t.Fatalf("End was called %d times", s.ended)
			}
		}
	})
}

// FuzzAssembler: segments of one connection in any order, with any flags, give
// bytes that were sent, at the offset at which they were sent.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0, 0, 10, 0, 1, 10, 20, 0, 2, 0, 5, 0x11})
	f.Add([]byte{0, 30, 10, 0, 1, 0, 20, 45, 0, 0, 40, 0, 0, 0, 0, 4})
	f.Fuzz(func(t *testing.T, script []byte) {
		stream := pattern(600)
		for i := range stream {
			stream[i] |= 0x80 // so that no byte looks like a hole's
		}
		w := newWire(t)
		w.handshake()
		for ; len(script) >= 4; script = script[4:] {
			from, off, n, ack := Side(script[0]&1), int(script[1])*2, int(script[2]), int(script[3])*2
			n = min(n, len(stream)-off)
			flags := byte(0)
			switch script[0] >> 1 & 7 {
			case 1:
				flags = flagFIN
			case 2:
				flags = flagRST
			case 3:
				flags = flagSYN
			}
			p := w.packet(from, off, ack, flags, stream[off:off+n])
			if script[0]&0x80 != 0 {
				p.Data[ethLen+ip4Len+17] ^= 1 // the checksum
			}
			w.asm.Add(p)
		}
		w.asm.End()
		if w.asm.ahead != 0 || w.asm.sent != 0 {
			t.Fatalf("%d and %d bytes are still counted as held", w.asm.ahead, w.asm.sent)
		}
		for n, s := range w.all {
			if s.ended != 1 {
				t.Fatalf("End was called %d times", s.ended)
			}
			for side := range s.data {
				for i, c := range s.data[side] {
					// A SYN may begin another connection at any of the bytes.
					if n == 0 && c != '?' && s.conn.FromStart[side] && (i >= len(stream) || c != stream[i]) {
						t.Fatalf("side %d: byte %d is not what was sent", side, i)
					}
				}
			}
		}
	})
}
