package wire

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// The fixed part of the acknowledgements in these tests, without the number of entries.
const ackHead = `
	0000     // buffer space
	0000     // max skew
	00000005 // first
	00000009 // previous
	00000021 // serial
	03       // out of sequence
`

var acks = []struct {
	name string
	hex  string
	want Ack
	text string
}{
	{"nothing but the fixed part", ackHead + `00`, Ack{}, ""},
	{"entries", ackHead + `04 01 00 00 01`, Ack{Count: 4, Acks: []byte{1, 0, 0, 1}}, " +--+"},
	{
		"a whole trailer", ackHead + `02 01 01 000000
		0000163c // max MTU 5692
		000005a4 // interface MTU 1444
		00000020 // window 32
		00000004 // packets in a jumbogram`,
		Ack{Count: 2, Acks: []byte{1, 1}, Trailer: Trailer{Words: 4, MaxMTU: 5692, IfMTU: 1444, Window: 32, MaxPackets: 4}},
		" ++ max=5692 mtu=1444 window=32 jumbo=4",
	},
	{
		"sizes only", ackHead + `00 000000 000005a4 000005a4`,
		Ack{Trailer: Trailer{Words: 2, MaxMTU: 1444, IfMTU: 1444}},
		" max=1444 mtu=1444",
	},
	{
		"sizes and window", ackHead + `01 00 010203 000005a4 000005a4 0000000f`,
		Ack{Count: 1, Acks: []byte{0}, Reserved: [3]byte{1, 2, 3}, Trailer: Trailer{Words: 3, MaxMTU: 1444, IfMTU: 1444, Window: 15}},
		" - max=1444 mtu=1444 window=15",
	},
	{
		"padding behind the trailer", ackHead + `00 000000 0000163c 000005a4 00000020 00000004 000000`,
		Ack{Trailer: Trailer{Words: 4, MaxMTU: 5692, IfMTU: 1444, Window: 32, MaxPackets: 4}, Padding: []byte{0, 0, 0}},
		" max=5692 mtu=1444 window=32 jumbo=4 padding=3",
	},
	{
		"more entries announced than there are", ackHead + `ff 01 00`,
		Ack{Count: 255, Acks: []byte{1, 0}},
		" +- (of 255)",
	},
	{
		"a trailer that the entries take", ackHead + `13 000000 000005a4 000005a4 0000000f 00000001`,
		Ack{Count: 19, Acks: []byte{0, 0, 0, 0, 0, 5, 0xa4, 0, 0, 5, 0xa4, 0, 0, 0, 15, 0, 0, 0, 1}},
		" -----+---+----+---+",
	},
}

func TestAcknowledgementsAreAsTheDraftDrawsThem(t *testing.T) {
	for _, tt := range acks {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			want.First, want.Previous, want.Serial, want.Reason = 5, 9, 33, ReasonOutOfSequence
			b := unhex(t, tt.hex)
			got, err := ParseAck(b)
			if err != nil || !equal(&got, &want) {
				t.Errorf("decoded %+v, %v; want %+v", got, err, want)
			}
			if again := want.Append([]byte("x")); !bytes.Equal(again[1:], b) || want.Len() != len(b) {
				t.Errorf("encoded % x with length %d, want % x", again[1:], want.Len(), b)
			}
			if s := got.String(); s != "out-of-sequence first=5 previous=9 serial=33"+tt.text {
				t.Errorf("shown as %s", s)
			}
		})
	}
}

func equal(a, b *Ack) bool {
	x, y := *a, *b
	x.Acks, x.Padding, y.Acks, y.Padding = nil, nil, nil, nil
	return fmt.Sprint(x) == fmt.Sprint(y) && bytes.Equal(a.Acks, b.Acks) && bytes.Equal(a.Padding, b.Padding)
}

func TestBufferSpaceAndSkewStandInFront(t *testing.T) {
	a, err := ParseAck(unhex(t, `0008 0102 00000001 00000000 00000000 09 00`))
	if err != nil || a.BufferSpace != 8 || a.MaxSkew != 0x102 || a.First != 1 || a.Reason != ReasonIdle {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAnAcknowledgementShorterThan18BytesIsAnError(t *testing.T) {
	b := unhex(t, acks[0].hex)
	for n := range ackFixed {
		if a, err := ParseAck(b[:n]); !short(err, n, ackFixed) {
			t.Errorf("%d bytes: %v, %v", n, &a, err)
		}
	}
}

// The trailers of all ages of the protocol count, and whatever is too little for the next
// word is padding.
func TestATrailerHasAsManyWordsAsThereAre(t *testing.T) {
	const entries = 3
	fixed := unhex(t, ackHead+`03 01 01 00`)
	for extra := range 40 {
		b := append(bytes.Clone(fixed), make([]byte, extra)...)
		for i := range extra {
			b[len(fixed)+i] = byte(i + 1)
		}
		want := 0
		switch {
		case extra >= 3+16:
			want = 4
		case extra >= 3+12:
			want = 3
		case extra >= 3+8:
			want = 2
		}
		padding := extra
		if want > 0 {
			padding = extra - 3 - want*4
		}
		a, err := ParseAck(b)
		if err != nil || a.Trailer.Words != want || len(a.Padding) != padding || len(a.Acks) != entries {
			t.Fatalf("%d bytes: %d words, padding %d, %d entries, %v; want %d, %d, %d",
				extra, a.Trailer.Words, len(a.Padding), len(a.Acks), err, want, padding, entries)
		}
		words := []uint32{a.Trailer.MaxMTU, a.Trailer.IfMTU, a.Trailer.Window, a.Trailer.MaxPackets}
		for i, w := range words {
			if i >= want && w != 0 || i < want && byte(w) != byte(3+4*i+4) {
				t.Errorf("%d bytes: word %d is %08x", extra, i, w)
			}
		}
		if again := a.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%d bytes: % x encodes as % x", extra, b, again)
		}
	}
}

// With each number of entries that are announced and each that are there, the smaller one
// counts, and encoding gives back what was there.
func TestLyingCountsTakeWhatIsThere(t *testing.T) {
	for _, count := range []int{0, 1, 17, 254, 255} {
		for there := range 300 {
			b := append(unhex(t, ackHead), byte(count))
			b = append(b, bytes.Repeat([]byte{1}, there)...)
			a, err := ParseAck(b)
			if err != nil || len(a.Acks) != min(count, there) || int(a.Count) != count {
				t.Fatalf("%d announced, %d there: %d entries, count %d, %v", count, there, len(a.Acks), a.Count, err)
			}
			if again := a.Append(nil); !bytes.Equal(again, b) {
				t.Fatalf("%d announced, %d there: encodes differently", count, there)
			}
		}
	}
}

func TestOnlyTheLowestBitOfAnEntryCounts(t *testing.T) {
	for entry, want := range map[byte]bool{0: false, 1: true, 2: false, 3: true, 0xfe: false, 0xff: true} {
		if Held(entry) != want {
			t.Errorf("entry %02x: held is %t", entry, Held(entry))
		}
	}
}

func TestATrailerOfAnotherNumberOfWordsIsLeftOutOrWhole(t *testing.T) {
	for words, want := range map[int]int{-1: 18, 0: 18, 1: 18, 2: 29, 3: 33, 4: 37, 5: 37} {
		a := Ack{Trailer: Trailer{Words: words, Window: 32}}
		if b := a.Append(nil); len(b) != want || a.Len() != want {
			t.Errorf("%d words take %d bytes, Len %d; want %d", words, len(b), a.Len(), want)
		}
	}
}

func TestEntriesOfAnAcknowledgementHaveNoRoomToGrowInto(t *testing.T) {
	b := unhex(t, acks[2].hex)
	a, err := ParseAck(b)
	if err != nil {
		t.Fatal(err)
	}
	was := slices.Clone(b)
	_ = append(a.Acks, 7, 7)
	if !bytes.Equal(b, was) {
		t.Errorf("appending to the entries changes what follows them")
	}
}
