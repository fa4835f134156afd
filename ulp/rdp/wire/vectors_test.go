package wire

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"
)

// A vector is a segment in both versions, worked out from the definitions of the RFCs by
// programs that are not this package.
type vector struct {
	name   string
	h      Header // without the version
	data   string
	v1, v2 string
}

var vectors = []vector{
	{
		"SYN",
		Header{Flags: SYN, Source: 100, Dest: 50, Seq: 1000, MaxOutstanding: 32, MaxSegment: 1400, Sequenced: true},
		"",
		"810c64320000000003e8000000008c8a0d20002005788000",
		"820c006400320000000003e800000000f3dc002005788000",
	},
	{
		"SYN,ACK",
		Header{Flags: SYN | ACK, Source: 50, Dest: 100, Seq: 5000, Ack: 1000, MaxOutstanding: 8, MaxSegment: 576},
		"",
		"c10c3264000000001388000003e89f4c9951000802400000",
		"c20c00320064000000001388000003e823a5000802400000",
	},
	{
		"ACK",
		Header{Flags: ACK, Source: 100, Dest: 50, Seq: 1001, Ack: 5000},
		"",
		"410964320000000003e9000013888e948648",
		"4209006400320000000003e900001388a5ef",
	},
	{
		"data",
		Header{Flags: ACK, Source: 100, Dest: 50, Seq: 1001, Ack: 5000},
		"hello",
		"410964320005000003e900001388f6a38c2568656c6c6f",
		"4209006400320005000003e900001388621868656c6c6f",
	},
	{
		"EACK and data",
		Header{Flags: ACK | EACK, Source: 100, Dest: 50, Seq: 1002, Ack: 5000, EACKs: []uint32{5002, 5003}},
		"abc",
		"610d64320003000003ea000013882ae1b7ec0000138a0000138b616263",
		"620d006400320003000003ea000013889a6f0000138a0000138b616263",
	},
	{
		"NUL,ACK",
		Header{Flags: NUL | ACK, Source: 100, Dest: 50, Seq: 1003, Ack: 5003},
		"",
		"490964320000000003eb0000138b8eb08649",
		"4a09006400320000000003eb0000138b9dea",
	},
	{
		"RST",
		Header{Flags: RST, Source: 50, Dest: 100, Seq: 5004},
		"",
		"1109326400000000138c00000000bd864c82",
		"12090032006400000000138c00000000d9d4",
	},
	{
		"RST,ACK, the answer of a closed port to a SYN",
		Header{Flags: RST | ACK, Source: 50, Dest: 100, Ack: 1000},
		"",
		"51093264000000000000000003e830c64c8a",
		"520900320064000000000000000003e8a978",
	},
}

// versions calls f for each vector in each version.
func versions(f func(v vector, h Header, encoded string)) {
	for _, v := range vectors {
		for version, encoded := range []string{1: v.v1, 2: v.v2} {
			if version > 0 {
				h := v.h
				h.Version = uint8(version)
				f(v, h, encoded)
			}
		}
	}
}

func TestVectors(t *testing.T) {
	versions(func(v vector, h Header, encoded string) {
		t.Run(v.name, func(t *testing.T) {
			got := h.AppendTo([]byte("before"), []byte(v.data), nil)
			if s := hex.EncodeToString(got[6:]); s != encoded || string(got[:6]) != "before" {
				t.Errorf("version %d encodes as\n%s\nwant\n%s", h.Version, s, encoded)
			}
			if n := len(got) - 6 - len(v.data); h.Len() != n {
				t.Errorf("Len is %d, the header has %d bytes", h.Len(), n)
			}
			var back Header
			data, err := back.Parse(unhex(t, encoded), nil)
			if err != nil || string(data) != v.data || !equal(&back, &h) {
				t.Errorf("decoded: %v, %q, %v; want %v, %q", &back, data, err, &h, v.data)
			}
			if err := h.Check(len(v.data)); err != nil {
				t.Errorf("Check: %v", err)
			}
		})
	})
}

// The sums of the worked example for version 1, word by word (RFC 908 §4.2.1).
func TestTheWorkedExampleOfVersion1(t *testing.T) {
	sum := uint32(0)
	for _, step := range []struct{ word, want uint32 }{
		{0x41096432, 0x8212c864},
		{0x00050000, 0x042f90c9},
		{0x03e90000, 0x10312192},
		{0x13880000, 0x47724324},
		{0x00006865, 0x8ee55712},
		{0x6c6c6f00, 0xf6a38c25},
	} {
		if sum = add1(sum, step.word); sum != step.want {
			t.Errorf("after %08x the sum is %08x; want %08x", step.word, sum, step.want)
		}
	}
}

// With words in the order of little-endian hosts, the checksum would be another one: A1.
func TestWordsAreInNetworkOrder(t *testing.T) {
	b := unhex(t, vectors[3].v1)
	if got := Checksum1(b); got != 0xf6a38c25 || got == 0xee99942f {
		t.Errorf("the checksum is %08x; want f6a38c25", got)
	}
}

// The pseudo-header is left out, unless it is asked for: A2.
func TestThePseudoHeader(t *testing.T) {
	v4 := &Pseudo{netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")}
	mapped := &Pseudo{netip.MustParseAddr("::ffff:10.9.0.1"), netip.MustParseAddr("::ffff:10.9.0.2")}
	v6 := &Pseudo{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")}
	for _, tt := range []struct {
		name string
		p    *Pseudo
		want uint16
	}{{"none", nil, 0x6218}, {"IPv4", v4, 0x4dd1}, {"IPv4 in IPv6", mapped, 0x4dd1}, {"IPv6", v6, plain6(t)}} {
		h := Header{Version: 2, Flags: ACK, Source: 100, Dest: 50, Seq: 1001, Ack: 5000}
		b := h.AppendTo(nil, []byte("hello"), tt.p)
		if got := uint16(b[16])<<8 | uint16(b[17]); got != tt.want {
			t.Errorf("%s: the checksum is %04x; want %04x", tt.name, got, tt.want)
		}
		if _, err := h.Parse(b, tt.p); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		other := v6
		if tt.p == v6 {
			other = nil
		}
		if _, err := h.Parse(b, other); fault(err) != WrongChecksum {
			t.Errorf("%s, verified with another pseudo-header: %v", tt.name, err)
		}
	}
}

// plain6 is the checksum of the worked example with a pseudo-header of IPv6, added up a word at
// a time.
func plain6(t *testing.T) uint16 {
	b := unhex(t, vectors[3].v2)
	b[16], b[17] = 0, 0
	b = append(b, 0) // to a whole word
	for _, s := range []string{"fd00::1", "fd00::2"} {
		b = append(b, netip.MustParseAddr(s).AsSlice()...)
	}
	return plain(append(b, 0, 27, 0, 23))
}

// plain is the checksum of RFC 793 as it stands there: a word at a time.
func plain(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// Version 1 has no pseudo-header; what is no address is no reason to panic.
func TestPseudoHeadersThatDoNotCount(t *testing.T) {
	h := Header{Version: 1, Flags: ACK, Source: 100, Dest: 50, Seq: 1001, Ack: 5000}
	p := &Pseudo{netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")}
	if b := h.AppendTo(nil, []byte("hello"), p); hex.EncodeToString(b) != vectors[3].v1 {
		t.Errorf("version 1 with a pseudo-header is %x", b)
	}
	h.Version = 2
	b := h.AppendTo(nil, nil, &Pseudo{})
	if _, err := h.Parse(b, &Pseudo{}); err != nil {
		t.Error(err)
	}
}

// Checksums of every length, so that every tail is there, are those of the plain definitions.
func TestChecksumsOfAnyLength(t *testing.T) {
	b := make([]byte, 200)
	for i := range b {
		b[i] = byte(255 - i*i)
	}
	for n := FixedLen; n <= len(b); n++ {
		if got, want := Checksum1(b[:n]), plain1(b[:n]); got != want {
			t.Errorf("version 1, %d bytes: %08x; want %08x", n, got, want)
		}
		zeroed := append(slices.Clone(b[:n]), make([]byte, n%2)...)
		zeroed[16], zeroed[17] = 0, 0
		if got, want := Checksum2(b[:n], nil), plain(zeroed); got != want {
			t.Errorf("version 2, %d bytes: %04x; want %04x", n, got, want)
		}
	}
	for n := range FixedLen {
		if Checksum1(b[:n]) != 0 || Checksum2(b[:n], nil) != 0 {
			t.Errorf("%d bytes have a checksum", n)
		}
	}
}

// plain1 is the checksum of version 1 as it stands in RFC 908 §4.2.1: a word at a time.
func plain1(b []byte) uint32 {
	b = append(slices.Clone(b), make([]byte, -len(b)&3)...)
	copy(b[checksum1:], "\x00\x00\x00\x00")
	sum := uint32(0)
	for i := 0; i < len(b); i += 4 {
		sum += uint32(b[i])<<24 | uint32(b[i+1])<<16 | uint32(b[i+2])<<8 | uint32(b[i+3])
		sum = sum<<1 | sum>>31
	}
	return sum
}

// Sums of nothing but ones, where every addition carries.
func TestChecksumsThatCarry(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, 18+65536)
	if got := Checksum2(b, nil); got != 0 {
		t.Errorf("the checksum is %04x; want 0000", got)
	}
}

func equal(a, b *Header) bool {
	x, y := *a, *b
	x.EACKs, y.EACKs = nil, nil
	return slices.Equal(a.EACKs, b.EACKs) && x.Version == y.Version && x.Flags == y.Flags && x.Source == y.Source &&
		x.Dest == y.Dest && x.Seq == y.Seq && x.Ack == y.Ack && x.MaxOutstanding == y.MaxOutstanding &&
		x.MaxSegment == y.MaxSegment && x.Sequenced == y.Sequenced
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
