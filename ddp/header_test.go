package ddp

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

var segmentTable = []struct {
	name string
	seg  Segment
	wire []byte
}{
	{
		"tagged, last",
		Segment{
			Control: 0xC1,
			Tagged:  TaggedHeader{Control: 0xC1, RsvdULP: 0x40, STag: 0x01020304, TO: 0x1112131415161718},
			Payload: []byte("data"),
		},
		[]byte{
			0xC1, 0x40, // T=1 L=1 DV=1 | RDMAP RV=1 Write
			0x01, 0x02, 0x03, 0x04, // STag
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // TO
			'd', 'a', 't', 'a',
		},
	}, {
		"untagged, not last",
		Segment{
			Control:  0x01,
			Untagged: UntaggedHeader{Control: 0x01, RsvdULP: [5]byte{0x44, 0xA, 0xB, 0xC, 0xD}, QN: 0x01020304, MSN: 0x05060708, MO: 0x090A0B0C},
			Payload:  []byte{},
		},
		[]byte{
			0x01,                 // T=0 L=0 DV=1
			0x44, 10, 11, 12, 13, // RsvdULP: Send with Invalidate, STag
			1, 2, 3, 4, // QN
			5, 6, 7, 8, // MSN
			9, 10, 11, 12, // MO
		},
	}, {
		"reserved bits and version are kept",
		Segment{Control: 0xBE, Tagged: TaggedHeader{Control: 0xBE}, Payload: []byte{}},
		append([]byte{0xBE}, make([]byte, 13)...),
	},
}

func TestSegmentCodec(t *testing.T) {
	for _, tt := range segmentTable {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.seg.AppendBinary(nil)
			if err != nil || !bytes.Equal(got, tt.wire) {
				t.Errorf("encoded %x, %v; want %x", got, err, tt.wire)
			}
			back, err := ParseSegment(tt.wire)
			if err != nil || !reflect.DeepEqual(back, tt.seg) {
				t.Errorf("parsed %+v, %v; want %+v", back, err, tt.seg)
			}
			for i := range back.HeaderLen() {
				var e *Error
				if _, err := ParseSegment(tt.wire[:i]); !errors.As(err, &e) || e.Code != CodeLocalCatastrophic || e.SegmentLen != i {
					t.Errorf("the first %d octets: %v; want a local catastrophic error", i, err)
				}
			}
		})
	}
}

func TestControlField(t *testing.T) {
	for _, tt := range []struct {
		tagged, last bool
		want         Control
	}{{false, false, 0x01}, {false, true, 0x41}, {true, false, 0x81}, {true, true, 0xC1}} {
		c := NewControl(tt.tagged, tt.last)
		if c != tt.want || c.Tagged() != tt.tagged || c.Last() != tt.last || c.Version() != 1 || c.Reserved() != 0 {
			t.Errorf("NewControl(%v, %v) = %#02x", tt.tagged, tt.last, uint8(c))
		}
	}
	if c := Control(0x3C); c.Reserved() != 0xF || c.Version() != 0 || c.Tagged() || c.Last() {
		t.Errorf("%#02x has reserved bits %#x and version %d", uint8(c), c.Reserved(), c.Version())
	}
}

func TestErrorNumbersAreThoseOfRFC5041(t *testing.T) {
	for code, word := range map[Code]uint16{
		CodeLocalCatastrophic: 0x1000,
		CodeInvalidSTag:       0x1100, CodeBaseBounds: 0x1101, CodeSTagNotAssociated: 0x1102, CodeTOWrap: 0x1103, CodeTaggedVersion: 0x1104,
		CodeInvalidQN: 0x1201, CodeMSNNoBuffer: 0x1202, CodeMSNRange: 0x1203, CodeInvalidMO: 0x1204, CodeMessageTooLong: 0x1205, CodeUntaggedVersion: 0x1206,
	} {
		if code.TermWord() != word {
			t.Errorf("%v has Terminate word %#04x; want %#04x", code, code.TermWord(), word)
		}
	}
}

func FuzzParseSegment(f *testing.F) {
	for _, tt := range segmentTable {
		f.Add(tt.wire)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		seg, err := ParseSegment(b)
		if err != nil {
			if len(b) >= UntaggedHeaderLen {
				t.Fatalf("%d octets were refused: %v", len(b), err)
			}
			return
		}
		if got, _ := seg.AppendBinary(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x came back as %x", b, got)
		}
		_ = seg.Tagged.String() + seg.Untagged.String()
	})
}

func BenchmarkParseSegment(b *testing.B) {
	for _, tt := range segmentTable[:2] {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseSegment(tt.wire); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendSegment(b *testing.B) {
	for _, tt := range segmentTable[:2] {
		b.Run(tt.name, func(b *testing.B) {
			buf := make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = tt.seg.AppendBinary(buf[:0])
			}
		})
	}
}

func TestHeadersForPeople(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{TaggedHeader{Control: NewControl(true, true), STag: 0x1234, TO: 0x10}.String(), "tagged last stag=0x00001234 to=0x10"},
		{TaggedHeader{Control: NewControl(true, false)}.String(), "tagged stag=0x00000000 to=0x0"},
		{UntaggedHeader{Control: NewControl(false, true), QN: 1, MSN: 2, MO: 3}.String(), "untagged last qn=1 msn=2 mo=3"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q; want %q", tt.got, tt.want)
		}
	}
}
