package wire

import (
	"slices"
	"strings"
	"testing"
)

// Each rule for the form of a segment, broken in a way that breaks no other one that is
// tested before it.
func TestSegmentsThatAreDiscarded(t *testing.T) {
	plainACK := Header{Flags: ACK, Source: 1, Dest: 2, Seq: 3, Ack: 4}
	syn := Header{Flags: SYN, Source: 1, Dest: 2, Seq: 3, MaxOutstanding: 4, MaxSegment: 500}
	for _, tt := range []struct {
		name, rule string
		want       Fault
		h          Header
		data       string
		change     func(b []byte) []byte
	}{
		{"no byte", "H1", TooShort, plainACK, "", func(b []byte) []byte { return b[:0] }},
		{"17 bytes", "H1", TooShort, plainACK, "", func(b []byte) []byte { return b[:17] }},
		{"version 0", "H1", WrongVersion, plainACK, "", func(b []byte) []byte { b[0] &^= 3; return seal(b) }},
		{"version 3", "H1", WrongVersion, plainACK, "", func(b []byte) []byte { b[0] |= 3; return seal(b) }},
		{"a header of 16 bytes", "H2", WrongHeaderLength, plainACK, "", func(b []byte) []byte { b[1] = 8; return seal(b) }},
		{"a header of 0 bytes", "H2", WrongHeaderLength, plainACK, "", func(b []byte) []byte { b[1] = 0; return seal(b) }},
		{"a header beyond the segment", "H2", WrongHeaderLength, plainACK, "xyz", func(b []byte) []byte { b[1] = 11; return seal(b) }},
		{"a header of 510 bytes", "H2", WrongHeaderLength, plainACK, "", func(b []byte) []byte { b[1] = 255; return seal(b) }},
		{"a byte too many", "H3", WrongLength, plainACK, "xyz", func(b []byte) []byte { return seal(append(b, 0)) }},
		{"a byte too few", "H3", WrongLength, plainACK, "xyz", func(b []byte) []byte { return seal(b[:len(b)-1]) }},
		{"a wrong checksum", "H4", WrongChecksum, plainACK, "xyz", func(b []byte) []byte { b[len(b)-1]++; return b }},
		{"a wrong checksum and forbidden flags", "H4", WrongChecksum, plainACK, "xyz", func(b []byte) []byte { b[0] |= 4; return b }},
		{"the unused flag", "H5", UnusedFlag, plainACK, "", func(b []byte) []byte { b[0] |= 4; return seal(b) }},
		{"SYN and RST", "H5", ExclusiveFlags, with(syn, SYN|RST), "", nil},
		{"SYN and NUL", "H5", ExclusiveFlags, with(syn, SYN|NUL|ACK), "", nil},
		{"RST and NUL", "H5", ExclusiveFlags, with(plainACK, RST|NUL), "", nil},
		{"SYN, RST and NUL", "H5", ExclusiveFlags, with(syn, SYN|RST|NUL), "", nil},
		{"SYN with data", "H5", UnexpectedData, syn, "x", nil},
		{"SYN,ACK with data", "H5", UnexpectedData, with(syn, SYN|ACK), "x", nil},
		{"RST with data", "H5", UnexpectedData, with(plainACK, RST), "x", nil},
		{"NUL with data", "H5", UnexpectedData, with(plainACK, NUL|ACK), "x", nil},
		{"EACK with SYN", "H5", UnexpectedEACK, with(syn, SYN|ACK|EACK), "", nil},
		{"EACK with RST", "H5", UnexpectedEACK, with(plainACK, RST|ACK|EACK), "", nil},
		{"EACK without ACK", "H5", EACKWithoutACK, with(plainACK, EACK), "", nil},
		{"NUL and EACK without ACK", "H5", EACKWithoutACK, with(plainACK, NUL|EACK), "", nil},
		{"data without ACK", "H5", DataWithoutACK, with(plainACK, 0), "x", nil},
		{"no flags", "H5", NoFlag, with(plainACK, 0), "", nil},
		{"a SYN without its limits", "H5", ShortSYN, plainACK, "", func(b []byte) []byte { b[0] = b[0]&3 | byte(SYN); return seal(b) }},
		{"a SYN of 22 bytes", "H5", ShortSYN, syn, "", func(b []byte) []byte { b[1] = 11; return seal(b[:22]) }},
		{"an EACK that ends within a number", "H5", OddEACKs, with(plainACK, ACK|EACK), "", func(b []byte) []byte { b[1]++; return seal(append(b, 0, 0)) }},
		{"source port 0", "H6", WrongPort, Header{Flags: ACK, Dest: 2}, "", nil},
		{"destination port 0", "H6", WrongPort, Header{Flags: ACK, Source: 1}, "", nil},
	} {
		for version := uint8(1); version <= 2; version++ {
			h := tt.h
			h.Version = version
			b := h.AppendTo(nil, []byte(tt.data), nil)
			if tt.change != nil {
				b = tt.change(b)
			}
			var got Header
			data, err := got.Parse(b, nil)
			if fault(err) != tt.want || data != nil {
				t.Errorf("%s, version %d: %v; want %v", tt.name, version, err, tt.want)
				continue
			}
			if tt.want.Rule() != tt.rule || tt.want.Clause() == "" || !strings.HasPrefix(err.Error(), "rdp: "+tt.want.String()+": ") {
				t.Errorf("%s: %v breaks %s of %s; want %s", tt.name, err, tt.want.Rule(), tt.want.Clause(), tt.rule)
			}
			if tt.change == nil && fault(h.Check(len(tt.data))) != tt.want {
				t.Errorf("%s: Check finds %v", tt.name, h.Check(len(tt.data)))
			}
		}
	}
}

func with(h Header, f Flags) Header {
	h.Flags = f
	return h
}

// What is odd but has a meaning is accepted: RFC 908 lets ACK accompany any segment, draws NUL
// without it, and a longer SYN may have options of a later time.
func TestSegmentsThatAreAccepted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		h      Header
		change func(b []byte) []byte
	}{
		{"NUL without ACK", Header{Flags: NUL, Source: 1, Dest: 2}, nil},
		{"NUL with EACK", Header{Flags: NUL | ACK | EACK, Source: 1, Dest: 2, EACKs: []uint32{7}}, nil},
		{"RST without ACK", Header{Flags: RST, Source: 1, Dest: 2}, nil},
		{"RST with ACK", Header{Flags: RST | ACK, Source: 1, Dest: 2}, nil},
		{"EACK of nothing", Header{Flags: ACK | EACK, Source: 1, Dest: 2}, nil},
		{"SYN of 26 bytes", Header{Flags: SYN, Source: 1, Dest: 2, MaxOutstanding: 3}, func(b []byte) []byte { b[1]++; return seal(append(b, 1, 2)) }},
		{"ACK of 20 bytes", Header{Flags: ACK, Source: 1, Dest: 2}, func(b []byte) []byte { b[1]++; return seal(append(b, 1, 2)) }},
	} {
		for version := uint8(1); version <= 2; version++ {
			h := tt.h
			h.Version = version
			b := h.AppendTo(nil, nil, nil)
			if tt.change != nil {
				b = tt.change(b)
			}
			var got Header
			if data, err := got.Parse(b, nil); err != nil || !equal(&got, &h) || len(data) != 0 {
				t.Errorf("%s, version %d: %v, %v", tt.name, version, &got, err)
			}
		}
	}
}

// A single wrong bit is found wherever it is. In the version, it makes a segment of another
// layout, or of none.
func TestASingleWrongBitIsFound(t *testing.T) {
	versions(func(v vector, _ Header, encoded string) {
		whole := unhex(t, encoded)
		for bit := range 8 * len(whole) {
			b := slices.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			var h Header
			if _, err := h.Parse(b, nil); fault(err) == noFault {
				t.Errorf("%s: bit %d of %s is wrong, and nobody notices", v.name, bit, encoded)
			}
		}
	})
}

// One's complement has two zeros, and a receiver that adds up all words can't tell them apart.
func TestBothZerosOfVersion2(t *testing.T) {
	h := Header{Version: 2, Flags: ACK, Source: 1, Dest: 2, Seq: 3}
	h.Seq += uint32(^sum2(&h)) // the sum of all words is 0xffff
	b := h.AppendTo(nil, nil, nil)
	if b[16] != 0 || b[17] != 0 {
		t.Fatalf("the checksum is %x; want 0", b[16:18])
	}
	b[16], b[17] = 0xff, 0xff
	if _, err := h.Parse(b, nil); err != nil {
		t.Error(err)
	}
	b[17] = 0xfe
	if _, err := h.Parse(b, nil); fault(err) != WrongChecksum {
		t.Errorf("0xfffe: %v", err)
	}
}

// sum2 is what the words of a segment of version 2 without data add up to.
func sum2(h *Header) uint16 { return ^Checksum2(h.AppendTo(nil, nil, nil), nil) }

// After an error of H4, H5 or H6 the header says what was there: an analyzer shows it.
func TestWhatIsDecodedAfterAnError(t *testing.T) {
	want := Header{Version: 2, Flags: ACK | EACK, Source: 1, Dest: 2, Seq: 3, Ack: 4, EACKs: []uint32{6}}
	b := want.AppendTo(nil, []byte("x"), nil)
	b[16]++
	var got Header
	if _, err := got.Parse(b, nil); fault(err) != WrongChecksum || !equal(&got, &want) {
		t.Errorf("%v, %v", &got, err)
	}
	was := Header{Version: 1, Seq: 77}
	if _, err := was.Parse(b[:20], nil); fault(err) != WrongHeaderLength || was.Seq != 77 || was.Version != 1 {
		t.Errorf("%v, %v", &was, err)
	}
}
