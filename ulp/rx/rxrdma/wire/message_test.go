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

func faultOf(err error) Fault {
	if e, ok := errors.AsType[*FormatError](err); ok && e.Error() != "" {
		return e.Fault
	}
	return 0
}

var messages = []struct {
	name string
	hex  string
	want Message
	body string
	text string
}{
	{
		"the whole request of a call", `
		01 01    // DATA, LAST
		0003     // credits
		02 00    // channel, reserved
		beef     // checksum
		00000007 // call
		00000001 // seq
		0000000a // body`,
		Message{Type: Data, Flags: FlagLast, Credits: 3, Channel: 2, Checksum: 0xbeef, Call: 7, Seq: 1},
		"\x00\x00\x00\x0a", "DATA call=7/2 seq=1 LAST credits=3",
	},
	{
		"a part that was written", `
		02 00 0000 01 00 0001 00000002 00000009
		00100000 // length`,
		Message{Type: Placed, Channel: 1, Checksum: 1, Call: 2, Seq: 9, Length: 1 << 20},
		"", "PLACED call=2/1 seq=9 length=1048576",
	},
	{
		"an offer", `
		03 00 0000 01 00 0000 00000002 00000009
		00001234         // STag
		00200000         // length
		00000000deadbeef // TO`,
		Message{Type: Offer, Channel: 1, Call: 2, Seq: 9, STag: 0x1234, Length: 2 << 20, TO: 0xdeadbeef},
		"", "OFFER call=2/1 seq=9 stag=0x00001234 length=2097152 to=0xdeadbeef",
	},
	{
		"a demand for large parts", `04 02 0000 00 00 0000 00000001 00000000`,
		Message{Type: Demand, Flags: FlagLarge, Call: 1},
		"", "DEMAND call=1/0 LARGE",
	},
	{
		"a window", `05 00 0008 03 00 0000 00000001 00000008`,
		Message{Type: Window, Credits: 8, Channel: 3, Call: 1, Seq: 8},
		"", "WINDOW call=1/3 seq=8 credits=8",
	},
	{
		"an abort", `06 00 0000 03 00 0000 00000001 00000000 fffffffa`,
		Message{Type: Abort, Channel: 3, Call: 1, Code: -6},
		"", "ABORT call=1/3 code=-6",
	},
	{
		"a challenge", `07 00 0000 00 00 0000 00000000 00000000 00000002 12345678`,
		Message{Type: Challenge},
		"\x00\x00\x00\x02\x12\x34\x56\x78", "CHALLENGE",
	},
	{
		"a response", `08 00 0001 00 00 0000 00000000 00000000 ff`,
		Message{Type: Response, Credits: 1},
		"\xff", "RESPONSE credits=1",
	},
	{"a credit", `09 00 0004 00 00 0000 00000000 00000000`, Message{Type: Credit, Credits: 4}, "", "CREDIT credits=4"},
	{"a ping", `0a 00 0000 00 00 0000 00000000 00000005`, Message{Type: Ping, Seq: 5}, "", "PING seq=5"},
	{"a pong", `0b 00 0000 00 00 0000 00000000 00000005`, Message{Type: Pong, Seq: 5}, "", "PONG seq=5"},
	{"the end", `0c 00 0000 00 00 0000 00000000 00000000`, Message{Type: Closing}, "", "CLOSING"},
}

func TestMessagesAreAsThePageDrawsThem(t *testing.T) {
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			got, body, err := Parse(b)
			if err != nil || got != tt.want || string(body) != tt.body {
				t.Errorf("decoded %v, %q, %v; want %v, %q", &got, body, err, &tt.want, tt.body)
			}
			var room [MaxFixed]byte
			n := tt.want.Put(room[:])
			if again := append(room[:n:n], tt.body...); !bytes.Equal(again, b) {
				t.Errorf("encoded % x, want % x", again, b)
			}
			if s := got.String(); s != tt.text {
				t.Errorf("shown as %s, want %s", s, tt.text)
			}
			for n := range len(b) - len(body) {
				if _, _, err := Parse(b[:n]); faultOf(err) != TooShort {
					t.Errorf("%d bytes: %v", n, err)
				}
			}
			if _, _, err := Parse(append(b, 0)); tt.body == "" && faultOf(err) != TooLong {
				t.Errorf("a byte more: %v", err)
			}
		})
	}
}

func TestUnknownTypesAreErrors(t *testing.T) {
	for _, typ := range []Type{0, Closing + 1, 255} {
		b := make([]byte, HeaderLen)
		b[0] = byte(typ)
		if m, _, err := Parse(b); faultOf(err) != WrongType || m.Type != typ || m.String() == "" {
			t.Errorf("%v: %v", typ, err)
		}
	}
}

var private = Private{
	Features: FeatureOffer | FeatureUpgrade, Service: 73, Epoch: 0xb8123456, ConnID: 0x7a10, Security: 2, Channels: 4,
	Credits: 40, Window: 8, Receive: 32768, Bulk: 4 << 20,
}

const privateHex = `
	5278524e // magic
	01       // version
	05       // offer, upgrade
	0049     // service
	b8123456 // epoch
	00007a10 // connection
	02       // security
	04       // channels
	0028     // credits
	0008     // window
	0000     // reserved
	00008000 // receive
	00400000 // bulk`

func TestPrivateDataAreAsThePageDrawsThem(t *testing.T) {
	b := unhex(t, privateHex)
	if again := private.Append(nil); !bytes.Equal(again, b) || len(b) != PrivateLen {
		t.Errorf("encoded % x, want % x", again, b)
	}
	got, err := ParsePrivate(append(bytes.Clone(b), 0, 0))
	if err != nil || got != private || !IsPrivate(b) {
		t.Errorf("decoded %+v, %v", got, err)
	}
	for n := range PrivateLen {
		if _, err := ParsePrivate(b[:n]); faultOf(err) != TooShort {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, tt := range []struct {
		at    int
		value byte
		want  Fault
	}{
		{0, 0, WrongMagic},
		{4, 2, WrongVersion},
		{17, 0, WrongLimits},
		{17, 65, WrongLimits},
		{19, 3, WrongLimits},
		{21, 0, WrongLimits},
		{24, 1, WrongLimits},
		{26, 1, WrongLimits},
		{28, 255, WrongLimits},
	} {
		bad := bytes.Clone(b)
		if bad[tt.at] = tt.value; tt.at == 26 {
			bad[26] = 0
		}
		if _, err := ParsePrivate(bad); faultOf(err) != tt.want {
			t.Errorf("byte %d is %d: %v", tt.at, tt.value, err)
		}
	}
}

func TestRefusalsCarryACode(t *testing.T) {
	b := unhex(t, "5278524e 01 000000 fffffffe")
	if again := AppendRefusal(nil, -2); !bytes.Equal(again, b) || len(b) != RefusalLen {
		t.Errorf("encoded % x, want % x", again, b)
	}
	if code, err := ParseRefusal(b); code != -2 || err != nil {
		t.Errorf("decoded %d, %v", code, err)
	}
	for n := range RefusalLen {
		if _, err := ParseRefusal(b[:n]); faultOf(err) != TooShort {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if Fault(0).String() == TooShort.String() || Fault(99).String() == "" {
		t.Error("a fault has a wrong name")
	}
}

func TestCodecsDoNotAllocate(t *testing.T) {
	b := unhex(t, messages[2].hex)
	var room [MaxFixed]byte
	if n := testing.AllocsPerRun(100, func() {
		m, _, err := Parse(b)
		if err != nil || m.Put(room[:]) != len(b) {
			t.Error("it does not decode")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What decodes encodes to the same bytes, but for the reserved one.
func FuzzMessage(f *testing.F) {
	for _, tt := range messages {
		f.Add(unhex(f, tt.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, body, err := Parse(b)
		if err != nil {
			if faultOf(err) == 0 {
				t.Errorf("% x: %v", b, err)
			}
			return
		}
		var room [MaxFixed]byte
		n := m.Put(room[:])
		want := bytes.Clone(b)
		want[5] = 0
		if again := append(room[:n:n], body...); !bytes.Equal(again, want) || m.String() == "" {
			t.Errorf("% x encodes as % x", b, again)
		}
	})
}

func FuzzPrivate(f *testing.F) {
	f.Add(unhex(f, privateHex))
	f.Add(AppendRefusal(nil, -100))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePrivate(b)
		if err == nil {
			want := bytes.Clone(b[:PrivateLen])
			want[22], want[23] = 0, 0
			if again := p.Append(nil); !bytes.Equal(again, want) {
				t.Errorf("% x encodes as % x", b, again)
			}
		} else if faultOf(err) == 0 {
			t.Errorf("% x: %v", b, err)
		}
		code, err := ParseRefusal(b)
		if err == nil && !bytes.Equal(AppendRefusal(nil, code)[8:], b[8:RefusalLen]) {
			t.Errorf("% x is %d", b, code)
		}
	})
}
