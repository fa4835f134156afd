package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// fault returns the fault of an error, or noFault.
func fault(err error) Fault {
	if e, ok := errors.AsType[*FormatError](err); ok {
		return e.Fault
	}
	return noFault
}

// The shortest and the longest of everything.
func TestSizes(t *testing.T) {
	if MaxEACKs != 123 || MaxHeader != 510 || SYNLen != 24 || MinSegment != 39 {
		t.Errorf("MaxEACKs %d, MaxHeader %d, SYNLen %d, MinSegment %d", MaxEACKs, MaxHeader, SYNLen, MinSegment)
	}
	for version := uint8(1); version <= 2; version++ {
		h := Header{Version: version, Flags: ACK | EACK, Source: 1, Dest: 2, EACKs: make([]uint32, MaxEACKs)}
		for i := range h.EACKs {
			h.EACKs[i] = 1<<32 - 50 + uint32(i)
		}
		data := bytes.Repeat([]byte{7}, MaxData)
		b := h.AppendTo(nil, data, nil)
		if len(b) != MaxHeader+MaxData || b[1] != 255 {
			t.Errorf("version %d: the longest segment has %d bytes, its header %d units", version, len(b), b[1])
		}
		var got Header
		rest, err := got.Parse(b, nil)
		if err != nil || !bytes.Equal(rest, data) || !equal(&got, &h) {
			t.Errorf("version %d: decoded: %v", version, err)
		}
	}
}

// What has no place in the format is left out: it is neither cut nor a panic.
func TestWhatCantBeEncoded(t *testing.T) {
	good := Header{Version: 1, Flags: ACK, Source: 255, Dest: 255}
	for _, tt := range []struct {
		name   string
		change func(h *Header)
		n      int
		want   Fault
	}{
		{"version 0", func(h *Header) { h.Version = 0 }, 0, WrongVersion},
		{"version 3", func(h *Header) { h.Version = 3 }, 0, WrongVersion},
		{"version 6", func(h *Header) { h.Version = 6 }, 0, WrongVersion},
		{"a source port over 255", func(h *Header) { h.Source = 256 }, 0, WrongPort},
		{"a destination port over 255", func(h *Header) { h.Dest = 65535 }, 0, WrongPort},
		{"too many EACKs", func(h *Header) { h.Flags, h.EACKs = ACK|EACK, make([]uint32, MaxEACKs+1) }, 0, TooManyEACKs},
		{"too much data", func(*Header) {}, MaxData + 1, TooMuchData},
	} {
		h := good
		tt.change(&h)
		if b := h.AppendTo([]byte("before"), make([]byte, tt.n), nil); string(b) != "before" {
			t.Errorf("%s: encoded as %d bytes", tt.name, len(b)-6)
		}
		if err := h.Check(tt.n); fault(err) != tt.want || strings.Contains(err.Error(), "fault") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if b := good.AppendTo(nil, make([]byte, MaxData), nil); len(b) != FixedLen+MaxData {
		t.Errorf("ports of 255 and the most data: %d bytes", len(b))
	}
}

// EACKs without the flag are not encoded, and version bits in the flags do not count.
func TestOnlyFlagsDecideWhatIsEncoded(t *testing.T) {
	h := Header{Version: 2, Flags: ACK | 3, Source: 1, Dest: 2, EACKs: []uint32{9}}
	b := h.AppendTo(nil, nil, nil)
	if len(b) != FixedLen || b[0] != 0x42 || h.Len() != FixedLen {
		t.Errorf("encoded as %x", b)
	}
}

// Of the options of a SYN only the first bit counts: A23.
func TestOptions(t *testing.T) {
	h := Header{Version: 2, Flags: SYN, Source: 1, Dest: 2, Sequenced: true}
	for _, tt := range []struct {
		options [2]byte
		want    bool
	}{{[2]byte{0x80, 0}, true}, {[2]byte{0, 0}, false}, {[2]byte{0, 1}, false}, {[2]byte{0x7f, 0xff}, false}, {[2]byte{0xff, 0xff}, true}} {
		b := h.AppendTo(nil, nil, nil)
		copy(b[22:], tt.options[:])
		seal(b)
		var got Header
		if _, err := got.Parse(b, nil); err != nil || got.Sequenced != tt.want {
			t.Errorf("options %x: sequenced is %v, %v", tt.options, got.Sequenced, err)
		}
	}
}

// Parse leaves nothing of what the header held before, but keeps its memory.
func TestParseReusesTheHeader(t *testing.T) {
	eacks := make([]uint32, 0, MaxEACKs)
	h := Header{MaxOutstanding: 7, MaxSegment: 8, Sequenced: true, EACKs: append(eacks, 1, 2, 3)}
	want := Header{Version: 2, Flags: ACK, Source: 1, Dest: 2, Seq: 3, Ack: 4}
	if _, err := h.Parse(want.AppendTo(nil, []byte("x"), nil), nil); err != nil || !equal(&h, &want) {
		t.Errorf("decoded: %+v, %v", h, err)
	}
	want.Flags, want.EACKs = ACK|EACK, []uint32{9}
	if _, err := h.Parse(want.AppendTo(nil, nil, nil), nil); err != nil || !equal(&h, &want) || cap(h.EACKs) != MaxEACKs {
		t.Errorf("decoded: %+v, %v; room for %d EACKs", h, err, cap(h.EACKs))
	}
}

// Room for EACKs and for data, of a segment size that counts 20 bytes for IP: A36.
func TestRoom(t *testing.T) {
	for _, tt := range []struct {
		size        uint16
		data, eacks int
	}{
		{0, 0, 0},
		{38, 0, 0},
		{41, 0, 0},
		{42, 0, 1},
		{42, 1, 0},
		{43, 1, 1},
		{1400, 1000, 90},
		{1400, 1362, 0},
		{1400, 5000, 0},
		{529, 0, 122},
		{530, 0, 123},
		{534, 0, 123},
		{65535, 0, 123},
		{42, -1, 1},
	} {
		if got := EACKRoom(tt.size, tt.data); got != tt.eacks {
			t.Errorf("of %d, with %d bytes of data: room for %d EACKs; want %d", tt.size, tt.data, got, tt.eacks)
		}
	}
	for _, tt := range []struct {
		size        uint16
		eacks, data int
	}{{0, 0, 0}, {38, 0, 0}, {MinSegment, 0, 1}, {1400, 0, 1362}, {1400, 90, 1002}, {576, 123, 46}, {100, 123, 0}, {65535, 0, 65497}, {39, -1, 1}} {
		if got := DataRoom(tt.size, tt.eacks); got != tt.data {
			t.Errorf("of %d, with %d EACKs: room for %d bytes; want %d", tt.size, tt.eacks, got, tt.data)
		}
	}
}

// What a segment fills the room of is exactly as long as it may be.
func TestRoomIsUsedUp(t *testing.T) {
	h := Header{Version: 2, Flags: ACK | EACK, Source: 1, Dest: 2}
	h.EACKs = make([]uint32, EACKRoom(576, 500))
	data := make([]byte, DataRoom(576, len(h.EACKs)))
	if b := h.AppendTo(nil, data, nil); len(h.EACKs) != 9 || len(data) != 502 || IPLen+len(b) != 576 {
		t.Errorf("%d EACKs, %d bytes of data: %d bytes with IP; want 576", len(h.EACKs), len(data), IPLen+len(b))
	}
}

// Which segments use up a number (RFC 908 §3.4.1).
func TestNumbered(t *testing.T) {
	for _, tt := range []struct {
		flags Flags
		n     int
		want  bool
	}{
		{SYN, 0, true},
		{SYN | ACK, 0, true},
		{NUL | ACK, 0, true},
		{NUL, 0, true},
		{ACK, 1, true},
		{ACK | EACK, 9, true},
		{ACK, 0, false},
		{ACK | EACK, 0, false},
		{RST, 0, false},
		{RST | ACK, 0, false},
	} {
		h := Header{Flags: tt.flags}
		if got := h.Numbered(tt.n); got != tt.want {
			t.Errorf("%v with %d bytes: %v", tt.flags, tt.n, got)
		}
	}
}

// Sequence numbers wrap: A37.
func TestNumbersWrap(t *testing.T) {
	for _, tt := range []struct {
		a, b uint32
		diff int32
		less bool
	}{
		{0, 0, 0, false},
		{1, 0, 1, false},
		{0, 1, -1, true},
		{0xffffffff, 0, -1, true},
		{0, 0xffffffff, 1, false},
		{0xfffffff0, 15, -31, true},
		{15, 0xfffffff0, 31, false},
		{0x7fffffff, 0, 1<<31 - 1, false},
		{0, 0x7fffffff, -(1<<31 - 1), true},
		{0x80000000, 0, -1 << 31, true},
		{0, 0x80000000, -1 << 31, true},
	} {
		if Less(tt.a, tt.b) != tt.less || Diff(tt.a, tt.b) != tt.diff {
			t.Errorf("%#x, %#x: Less %v, Diff %d; want %v, %d", tt.a, tt.b, Less(tt.a, tt.b), Diff(tt.a, tt.b), tt.less, tt.diff)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, tt := range []struct {
		h    Header
		want string
	}{
		{
			Header{Version: 1, Flags: SYN | ACK, Source: 50, Dest: 100, Seq: 5000, Ack: 1000, MaxOutstanding: 8, MaxSegment: 576, Sequenced: true},
			"v1 SYN,ACK 50>100 seq=5000 ack=1000 max=8 size=576 sequenced",
		},
		{
			Header{Version: 2, Flags: ACK | EACK, Source: 1, Dest: 2, Seq: 9, EACKs: []uint32{5, 7, 8, 9, 11}},
			"v2 ACK,EACK 1>2 seq=9 ack=0 eacks=5,7-9,11",
		},
		{Header{Version: 2, Flags: RST, Source: 1, Dest: 2, Seq: 9}, "v2 RST 1>2 seq=9"},
		{Header{Version: 1, Flags: NUL | 0x05}, "v1 NUL,0x04,0x01 0>0 seq=0"},
	} {
		if got := tt.h.String(); got != tt.want {
			t.Errorf("%s; want %s", got, tt.want)
		}
	}
	if got := Ranges([]uint32{0xffffffff, 0, 3, 2, 1}); got != "4294967295-0,3,2,1" {
		t.Errorf("ranges: %s", got)
	}
}

// seal puts the right checksum into a segment.
func seal(b []byte) []byte {
	switch {
	case len(b) < FixedLen:
	case b[0]&versionMask == 1:
		sum := Checksum1(b)
		b[14], b[15], b[16], b[17] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
	default:
		sum := Checksum2(b, nil)
		b[16], b[17] = byte(sum>>8), byte(sum)
	}
	return b
}
