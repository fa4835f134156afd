package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// unhex decodes hexadecimal digits; spaces, line ends and what follows // are for the reader.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "//")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// short reports whether err is a *ShortError about so many bytes.
func short(err error, have, want int) bool {
	e, ok := errors.AsType[*ShortError](err)
	return ok && e.Have == have && e.Want == want && e.What != ""
}

var headers = []struct {
	name string
	hex  string
	want Header
	text string
}{
	{
		"the last data packet of a client", `
		db0acbc4 // epoch
		2c1e71b6 // connection ID 2c1e71b4, channel 2
		00000007 // call
		00000003 // sequence
		00000011 // serial
		01       // data
		07       // client, request-ack, last
		01       // user status
		02       // security index
		beef     // checksum
		0034     // service`,
		Header{
			Epoch: 0xdb0acbc4, CID: 0x2c1e71b6, Call: 7, Seq: 3, Serial: 17, Type: TypeData,
			Flags: FlagClient | FlagRequestAck | FlagLast, UserStatus: 1, Security: 2, Checksum: 0xbeef, Service: 52,
		},
		"data epoch=db0acbc4 cid=2c1e71b4/2 call=7 seq=3 serial=17 CLIENT-INITIATED|REQUEST-ACK|LAST-PACKET status=1 security=2 checksum=beef service=52",
	},
	{
		"an acknowledgement of a server", `
		5b0acbc4 2c1e71b4 00000001 00000000 00000009
		02 // ack
		20 // slow start
		00 00 0000 0049`,
		Header{Epoch: 0x5b0acbc4, CID: 0x2c1e71b4, Call: 1, Serial: 9, Type: TypeAck, Flags: FlagSlowStart, Service: 73},
		"ack epoch=5b0acbc4 cid=2c1e71b4/0 call=1 serial=9 SLOW-START-OK security=0 service=73",
	},
	{
		"a type and flags that the draft does not have", `
		00000001 00000003 00000000 00000000 00000000
		0e d0 00 00 0000 0000`,
		Header{Epoch: 1, CID: 3, Type: 14, Flags: 0xd0},
		"type 14 epoch=00000001 cid=00000000/3 call=0 serial=0 0x10|0x40|0x80 security=0 service=0",
	},
}

func TestHeadersAreAsTheDraftDrawsThem(t *testing.T) {
	for _, tt := range headers {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			got, err := ParseHeader(append(bytes.Clone(b), "the body"...))
			if err != nil || got != tt.want {
				t.Errorf("decoded %v, %v; want %v", &got, err, &tt.want)
			}
			if again := tt.want.Append([]byte("x")); !bytes.Equal(again, append([]byte("x"), b...)) {
				t.Errorf("encoded % x, want % x", again[1:], b)
			}
			if s := got.String(); s != tt.text {
				t.Errorf("shown as %s, want %s", s, tt.text)
			}
		})
	}
}

func TestTheConnectionIDHasTheChannelInItsLowBits(t *testing.T) {
	for channel := range uint32(Channels) {
		h := Header{CID: 0xfffffffc | channel}
		if uint32(h.Channel()) != channel || h.ConnID() != 0xfffffffc {
			t.Errorf("channel %d of %08x, want %d of fffffffc", h.Channel(), h.ConnID(), channel)
		}
	}
}

func TestTheHighBitOfTheEpochFreesAConnectionOfItsAddress(t *testing.T) {
	for epoch, want := range map[uint32]bool{0x7fffffff: false, 0x80000000: true, 0xffffffff: true, 0: false} {
		if h := (Header{Epoch: epoch}); h.AnyAddress() != want {
			t.Errorf("epoch %08x: any address is %t", epoch, h.AnyAddress())
		}
	}
}

func TestTheClientsFlagIsTheLowestBit(t *testing.T) {
	for flags, want := range map[Flags]bool{0: false, 1: true, 0xfe: false, 0xff: true} {
		if h := (Header{Flags: flags}); h.FromClient() != want {
			t.Errorf("flags %02x: from the client is %t", uint8(flags), h.FromClient())
		}
	}
}

func TestAHeaderShorterThan28BytesIsAnError(t *testing.T) {
	b := unhex(t, headers[0].hex)
	for n := range HeaderLen {
		h, err := ParseHeader(b[:n])
		if !short(err, n, HeaderLen) || h != (Header{}) {
			t.Errorf("%d bytes: %v, %v", n, &h, err)
		}
	}
}

func TestAHeaderIsNotPutIntoTooLittleRoom(t *testing.T) {
	b := make([]byte, HeaderLen-1)
	(&Header{Epoch: 0xffffffff}).Put(b)
	if !bytes.Equal(b, make([]byte, len(b))) {
		t.Errorf("% x was written", b)
	}
}

func TestNamesAreThoseOfTheDraft(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{TypeData.String(), "data"},
		{TypeVersion.String(), "version"},
		{Type(0).String(), "type 0"},
		{Type(14).String(), "type 14"},
		{ReasonRequested.String(), "requested"},
		{ReasonIdle.String(), "idle"},
		{Reason(0).String(), "reason 0"},
		{Reason(10).String(), "reason 10"},
		{FlagJumbo.Names(TypeData), "JUMBO-PACKET"},
		{FlagSlowStart.Names(TypeAck), "SLOW-START-OK"},
		{FlagJumbo.Names(TypeAbort), "0x20"},
		{Flags(0).Names(TypeData), ""},
		{(FlagClient | FlagMore).Names(TypeBusy), "CLIENT-INITIATED|MORE-PACKETS"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	// The values are on the wire (draft §9).
	for i, typ := range []Type{
		TypeData, TypeAck, TypeBusy, TypeAbort, TypeAckAll, TypeChallenge, TypeResponse, TypeDebug,
		TypeParams1, TypeParams2, TypeParams3, TypeParams4, TypeVersion,
	} {
		if int(typ) != i+1 || !typ.Known() {
			t.Errorf("%v is %d, want %d", typ, uint8(typ), i+1)
		}
	}
	for i, reason := range []Reason{
		ReasonRequested, ReasonDuplicate, ReasonOutOfSequence, ReasonExceedsWindow, ReasonNoSpace,
		ReasonPing, ReasonPingResponse, ReasonDelay, ReasonIdle,
	} {
		if int(reason) != i+1 {
			t.Errorf("%v is %d, want %d", reason, uint8(reason), i+1)
		}
	}
}
