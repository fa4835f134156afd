package wire

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// Headers that Linux has sent, from captures over iWARP: an acknowledgement of message 1, and
// message 1 from port 5000 to port 4000 of no bytes, whose checksums were recorded.
func TestChecksumsAreLinuxs(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    Header
		want uint16
	}{
		{"acknowledgement", Header{Ack: 1}, 0xfffe},
		{"data", Header{Sequence: 1, SourcePort: 5000, DestPort: 4000, Flags: AckRequired}, 0xdad6},
	} {
		b := tt.h.AppendTo(nil, true)
		got, err := ParseHeader(b)
		if err != nil || got.Checksum != tt.want || len(b) != HeaderLen {
			t.Errorf("%s: checksum 0x%04x, %v; want 0x%04x", tt.name, got.Checksum, err, tt.want)
		}
	}
}

// Each field stands at its place, in network byte order.
func TestHeaderLayout(t *testing.T) {
	h := Header{
		Sequence: 0x0102030405060708, Ack: 0x1112131415161718, Len: 0x00012345,
		SourcePort: 0x3132, DestPort: 0x4142, Flags: AckRequired | Retransmitted, Credit: 0x51,
		Padding: [4]byte{0x61, 0x62, 0x63, 0x64}, Extensions: [16]byte{5, 0, 8},
	}
	const want = "0102030405060708" + "1112131415161718" + "00012345" + "3132" + "4142" + "06" + "51" + "61626364" + "0000" +
		"05000800000000000000000000000000"
	b := h.AppendTo([]byte("before"), false)
	if got := hex.EncodeToString(b[6:]); got != want || string(b[:6]) != "before" {
		t.Errorf("the header is\n%s\nwant\n%s", got, want)
	}
	got, err := ParseHeader(b[6:])
	if err != nil || got != h {
		t.Errorf("decoded: %+v, %v\nwant %+v", got, err, h)
	}
}

func TestHeadersThatAreRefused(t *testing.T) {
	whole := (&Header{Sequence: 7, Len: 9, SourcePort: 1, DestPort: 2}).AppendTo(nil, true)
	if _, err := ParseHeader(whole[:HeaderLen-1]); fault(err) != TooShort {
		t.Errorf("47 bytes: %v", err)
	}
	for bit := range 8 * HeaderLen {
		b := append([]byte(nil), whole...)
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := ParseHeader(b); fault(err) != WrongChecksum {
			t.Errorf("bit %d is wrong: %v", bit, err)
		}
	}
	for _, sum := range []bool{true, false} {
		longest := Header{Sequence: 1, Len: MaxMessage, SourcePort: 1, DestPort: 2}
		if _, err := ParseHeader(longest.AppendTo(nil, sum)); err != nil {
			t.Errorf("a message of MaxMessage: %v", err)
		}
		longest.Len++
		if _, err := ParseHeader(longest.AppendTo(nil, sum)); fault(err) != TooLong {
			t.Errorf("a message longer than MaxMessage: %v", err)
		}
	}
}

// fault returns the fault of an error, or one that there is not.
func fault(err error) Fault {
	if e, ok := errors.AsType[*FormatError](err); ok {
		return e.Fault
	}
	return 255
}

func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		h         Header
		want      Kind
		sequenced bool
	}{
		{Header{SourcePort: 5000, DestPort: 4000}, Data, true},
		{Header{SourcePort: ProbePort, DestPort: 4000}, Data, true},
		{Header{SourcePort: 5000}, Ping, true},
		{Header{SourcePort: ProbePort}, Probe, true},
		{Header{DestPort: 5000}, Pong, true},
		{Header{DestPort: ProbePort}, Pong, true},
		{Header{Ack: 3}, Ack, false},
		{Header{Flags: CongestionBitmap, Len: MapLen}, Map, false},
	} {
		if got := tt.h.Kind(); got != tt.want || got.Sequenced() != tt.sequenced {
			t.Errorf("%+v is %v, sequenced %v; want %v, %v", tt.h, got, got.Sequenced(), tt.want, tt.sequenced)
		}
	}
}

func TestCheckFindsWhatOneHeaderCanTell(t *testing.T) {
	good := []Header{
		{Sequence: 1, SourcePort: 5000, DestPort: 4000, Len: 1000},
		{Ack: 1},
		{Ack: 1, Credit: 16},
		{Flags: CongestionBitmap, Len: MapLen, Ack: 4},
		{Sequence: 1, SourcePort: 1, Extensions: [16]byte{5, 0, 8}},
	}
	for _, h := range good {
		if err := h.Check(); err != nil {
			t.Errorf("%v: %v", &h, err)
		}
	}
	for _, tt := range []struct {
		h    Header
		want Fault
	}{
		{Header{Flags: CongestionBitmap, Len: MapLen - 1}, WrongMap},
		{Header{Flags: CongestionBitmap | AckRequired, Len: MapLen}, WrongMap},
		{Header{Len: 1}, WrongAck},
		{Header{SourcePort: 5000, DestPort: 4000}, NoSequence},
		{Header{SourcePort: 5000}, NoSequence},
		{Header{Sequence: 1, SourcePort: 1, DestPort: 2, Extensions: [16]byte{5, 0, 8, 5, 0, 4}}, WrongExtension},
	} {
		if err := tt.h.Check(); fault(err) != tt.want {
			t.Errorf("%v: %v; want %v", &tt.h, err, tt.want)
		}
	}
}

func TestFragmentsOfOneMessageMayDifferInAcknowledgementAndCredit(t *testing.T) {
	first := Header{Sequence: 4, Ack: 1, Len: 9000, SourcePort: 5, DestPort: 6, Credit: 16, Checksum: 1}
	next := first
	next.Ack, next.Credit, next.Checksum = 2, 0, 2
	if !first.SameMessage(&next) {
		t.Error("they are taken for two messages")
	}
	for i, change := range []func(*Header){
		func(h *Header) { h.Sequence++ }, func(h *Header) { h.Len-- }, func(h *Header) { h.SourcePort++ }, func(h *Header) { h.DestPort++ },
	} {
		other := next
		change(&other)
		if first.SameMessage(&other) {
			t.Errorf("change %d is not noticed", i)
		}
	}
}

func TestHeaderInWords(t *testing.T) {
	h := Header{Sequence: 1, Ack: 2, Len: 3, SourcePort: 4, DestPort: 5, Flags: AckRequired | 0x40, Credit: 6}
	if got, want := h.String(), "data seq=1 ack=2 len=3 4>5 ACK_REQUIRED|0x40 credit=6"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	h = Header{Sequence: 1, SourcePort: 1, Extensions: [16]byte{5, 0, 8}}
	if got, want := h.String(), "probe seq=1 ack=0 len=0 1>0 NPATHS=8"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&FormatError{TooShort, "why"}).Error(); got != "rds: too short: why" {
		t.Errorf("the error reads %q", got)
	}
	for _, s := range []string{Kind(99).String(), Fault(99).String(), ExtensionType(99).String()} {
		if !strings.HasSuffix(s, " 99") {
			t.Errorf("an unknown value reads %q", s)
		}
	}
}

func TestFlagsInWords(t *testing.T) {
	for _, tt := range []struct {
		f, unknown Flags
		text       string
	}{
		{0, 0, ""},
		{CongestionBitmap | AckRequired | Retransmitted, 0, "CONG_BITMAP|ACK_REQUIRED|RETRANSMITTED"},
		{0x08 | 0x02, 0, "ACK_REQUIRED|HB_PING"},
		{0x10 | 0x20, 0, "HB_PONG|EXTHDR_EXTENSION"},
		{0xc1, 0xc0, "CONG_BITMAP|0xc0"},
	} {
		if tt.f.String() != tt.text || tt.f.Unknown() != tt.unknown {
			t.Errorf("0x%02x: %v, unknown 0x%02x; want %s, 0x%02x", uint8(tt.f), tt.f, uint8(tt.f.Unknown()), tt.text, uint8(tt.unknown))
		}
	}
}

func TestCodecsDoNotAllocate(t *testing.T) {
	h := Header{Sequence: 1, Len: 9, SourcePort: 1, DestPort: 2, Extensions: [16]byte{3, 1, 2, 3, 4, 5, 6, 7, 8}}
	b := make([]byte, 0, HeaderLen)
	if n := testing.AllocsPerRun(100, func() {
		b = h.AppendTo(b[:0], true)
		got, err := ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		x, err := ParseExtensions(got.Extensions)
		if err != nil || x.Dest.RKey() != 0x01020304 {
			t.Fatal(x, err)
		}
		if got.Extensions, err = x.Encode(); err != nil || got.Check() != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
