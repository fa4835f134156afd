package wire

import (
	"bytes"
	"testing"
)

func TestAbortsCarryACode(t *testing.T) {
	for _, tt := range []struct {
		body []byte
		want int32
	}{
		{[]byte{0, 4, 0x14, 5}, 267269},
		{[]byte{0xff, 0xff, 0xfe, 0x39}, -455},
		{[]byte{0, 0, 0, 1, 9, 9}, 1}, // what follows is ignored
		{[]byte{0, 0, 0}, -1},
		{nil, -1},
	} {
		if got := ParseAbort(tt.body); got != tt.want {
			t.Errorf("% x is %d, want %d", tt.body, got, tt.want)
		}
		if len(tt.body) == AbortLen {
			if again := AppendAbort([]byte("x"), tt.want); !bytes.Equal(again[1:], tt.body) {
				t.Errorf("%d encodes as % x, want % x", tt.want, again[1:], tt.body)
			}
		}
	}
}

func TestCodesAreShownByName(t *testing.T) {
	for code, want := range map[Code]string{
		-1:            "RX_CALL_DEAD (-1)",
		-2:            "RX_INVALID_OPERATION (-2)",
		-3:            "RX_CALL_TIMEOUT (-3)",
		-4:            "RX_EOF (-4)",
		-5:            "RX_PROTOCOL_ERROR (-5)",
		-6:            "RX_USER_ABORT (-6)",
		-7:            "RX_ADDRINUSE (-7)",
		-8:            "RX_MSGSIZE (-8)",
		-100:          "RX_RESTARTING (-100)",
		-450:          "RXGEN_CC_MARSHAL (-450)",
		-453:          "RXGEN_SS_UNMARSHAL (-453)",
		-455:          "RXGEN_OPCODE (-455)",
		-457:          "RXGEN_CC_XDRFREE (-457)",
		19270400:      "RXKADINCONSISTENCY (19270400)",
		19270407:      "RXKADBADTICKET (19270407)",
		19270409:      "RXKADEXPIRED (19270409)",
		19270412:      "RXKADILLEGALLEVEL (19270412)",
		19270413:      "RXK+13 (19270413)",
		267269:        "PT+5 (267269)",
		363524:        "VL+4 (363524)",
		5376:          "U+0 (5376)",
		1492325133:    "VOLS+13 (1492325133)",
		0:             "0",
		13:            "13",
		103:           "103",
		-9:            "-9",
		-1 << 31:      "-2147483648",
		1<<31 - 1:     "e___+255 (2147483647)",
		1<<8<<12 | 3:  "1048579", // no character but one in front of others
		0x3f<<20 | 99: "66060387",
	} {
		if got := code.String(); got != want {
			t.Errorf("%d is shown as %s, want %s", int32(code), got, want)
		}
	}
}

func TestVersionsArePaddedTo65Bytes(t *testing.T) {
	long := bytes.Repeat([]byte("v"), 100)
	for _, tt := range []struct{ in, want string }{
		{"", ""}, {"urnic 1", "urnic 1"}, {string(long), string(long[:64])}, {string(long[:64]), string(long[:64])},
	} {
		b := AppendVersion([]byte("x"), tt.in)[1:]
		if len(b) != VersionLen || b[VersionLen-1] != 0 {
			t.Errorf("%q takes %d bytes", tt.in, len(b))
		}
		if got := string(ParseVersion(b)); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	if got := ParseVersion([]byte("no zero")); string(got) != "no zero" {
		t.Errorf("%q", got)
	}
}

func TestAKeepaliveIsAVersionPacketOfOneZeroByte(t *testing.T) {
	for _, tt := range []struct {
		h    Header
		body []byte
		want bool
	}{
		{Header{Type: TypeVersion, Flags: FlagLast}, []byte{0}, true},
		{Header{Type: TypeVersion}, []byte{0}, true},
		{Header{Type: TypeVersion, Flags: FlagClient}, []byte{0}, false},
		{Header{Type: TypeVersion}, []byte{1}, false},
		{Header{Type: TypeVersion}, []byte{0, 0}, false},
		{Header{Type: TypeVersion}, nil, false},
		{Header{Type: TypeDebug}, []byte{0}, false},
	} {
		if got := VersionKeepalive(&tt.h, tt.body); got != tt.want {
			t.Errorf("%v % x: %t", &tt.h, tt.body, got)
		}
	}
}
