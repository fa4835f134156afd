package datagram

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// examples are datagrams, those of docs/datagrams.md among them.
var examples = map[string]struct {
	Header
	payload string
}{
	"75524447 01010000 00008001 00004001 11111111 00000000 00000001 00000005 00000000 fe9a0b28 68656c6c6f": {
		Header{Op: Send, Dest: 0x8001, Source: 0x4001, Key: 0x11111111, Sequence: 1, Length: 5}, "hello",
	},
	"75524447 01010001 00ffffff 00004001 00000007 01020304 00000000 00001000 00000ffd 97359c0c 616263": {
		Header{Op: Send, Flags: Immediate, Dest: Multicast, Source: 0x4001, Key: 7, Imm: [4]byte{1, 2, 3, 4}, Length: MTU, Offset: MTU - 3}, "abc",
	},
	"75524447 01030000 00000000 00000000 00000000 00000000 00000010 00000200 00000000 ee8d4f4b": {
		Header{Op: Ack, Sequence: 16, Length: 512}, "",
	},
	"75524447 01040001 00008001 00004001 00000007 01020304 00000002 00000005 00000000 5e26ee65 00007f00 12345678 0000002a 68656c6c6f": {
		Header{Op: UCWrite, Flags: Immediate, Dest: 0x8001, Source: 0x4001, Key: 7, Imm: [4]byte{1, 2, 3, 4}, Sequence: 2, Length: 5, Address: 0x7f0012345678, RKey: 42}, "hello",
	},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func packet(h Header, payload string) []byte {
	b := append(make([]byte, h.Len()), payload...)
	h.Put(b)
	return b
}

func TestHeadersHaveOneForm(t *testing.T) {
	for s, want := range examples {
		b := unhex(t, s)
		if got := packet(want.Header, want.payload); string(got) != string(b) {
			t.Errorf("%+v is\n%x; want\n%x", want.Header, got, b)
		}
		h, payload, err := Parse(b)
		if err != nil || h != want.Header || string(payload) != want.payload || !Intact(b) {
			t.Errorf("%s: %+v, %q, %v", s, h, payload, err)
		}
	}
}

// The page shows the bytes that are compared here.
func TestThePageShowsTheBytes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/datagrams.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(string(page)), " ")
	for s := range examples {
		if !strings.Contains(shown, s) {
			t.Errorf("docs/datagrams.md does not show %s", s)
		}
	}
}

func TestHeadersThatBreakARuleAreRefused(t *testing.T) {
	good := Header{Op: Send, Dest: 1, Source: 2, Key: 3, Length: 5}
	for name, change := range map[string]func(b []byte){
		"magic":                   func(b []byte) { b[0] ^= 1 },
		"version":                 func(b []byte) { b[4] = 2 },
		"operation 0":             func(b []byte) { b[5] = 0 },
		"operation 5":             func(b []byte) { b[5] = 5 },
		"unknown flag":            func(b []byte) { b[7] = 8 },
		"data without flag":       func(b []byte) { b[20] = 1 },
		"destination of 25 bits":  func(b []byte) { b[8] = 1 },
		"source of 25 bits":       func(b []byte) { b[12] = 1 },
		"longer than the MTU":     func(b []byte) { b[30] = 0x20 },
		"payload behind the end":  func(b []byte) { b[35] = 1 },
		"offset behind the end":   func(b []byte) { b[32] = 0xff },
		"payload of more than it": func(b []byte) { b[31] = 4 },
	} {
		b := packet(good, "hello")
		if change(b); true {
			if _, _, err := Parse(b); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for n := range HeaderLen {
		if _, _, err := Parse(packet(good, "hello")[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if Intact(make([]byte, n)) {
			t.Errorf("%d bytes are intact", n)
		}
	}
	for name, h := range map[string]Header{
		"an empty fragment":   {Op: Send, Dest: 1, Length: 5},
		"a Write that is cut": {Op: UCWrite, Dest: 1, Length: 5},
		"a PSN of 25 bits":    {Op: UCSend, Dest: 1, Key: 1 << 24},
		"an Ack with numbers": {Op: Ack, Dest: 1, Length: 1},
		"an Ack with flags":   {Op: Ack, Flags: AskAck, Length: 1},
	} {
		if _, _, err := Parse(packet(h, "")); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Parse(packet(Header{Op: Ack, Length: 1}, "x")); !errors.Is(err, ErrMalformed) {
		t.Errorf("an Ack with a payload: %v", err)
	}
}

func TestTheCRCIsCRC32c(t *testing.T) {
	for s := range examples {
		b := unhex(t, s)
		covered := append(append([]byte(nil), b[:crcAt]...), b[HeaderLen:]...)
		if want := crc32.Checksum(covered, crc32.MakeTable(crc32.Castagnoli)); binary.BigEndian.Uint32(b[crcAt:]) != want {
			t.Errorf("%s has not 0x%x", s, want)
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	b := packet(Header{Op: Send, Dest: 1, Source: 2, Key: 3, Length: 5}, "hello")
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if Intact(b) {
			t.Errorf("bit %d may be wrong", i)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	if !Intact(b) {
		t.Error("what is not damaged is")
	}
}

func TestCodecAllocatesNothing(t *testing.T) {
	b := packet(Header{Op: Send, Dest: 1, Source: 2, Key: 3, Length: 5}, "hello")
	var grh [GRHLen]byte
	from := netip.MustParseAddr("192.0.2.1")
	if n := testing.AllocsPerRun(100, func() {
		h, _, err := Parse(b)
		if err != nil || !Intact(b) {
			t.Fatal(err)
		}
		h.Put(b)
		PutGRH(&grh, from, from, 5)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestGRHHasTheAddresses(t *testing.T) {
	var b [GRHLen]byte
	PutGRH(&b, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::2"), 0x1234)
	const want = "60000000 12341b40 0000000000000000 0000ffffc0000201 20010db800000000 0000000000000002"
	if got := hex.EncodeToString(b[:]); got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%s; want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for s := range examples {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := Parse(b)
		if err != nil {
			return
		}
		n := uint64(len(payload))
		if n > MaxPayload || uint64(h.Offset)+n > uint64(h.Length) || h.Op == Send && h.Length > MTU || h.Dest > maxNumber || h.Source > maxNumber {
			t.Errorf("%+v with %d bytes", h, n)
		}
		again := append(make([]byte, h.Len()), payload...)
		h.Put(again)
		if string(again[:crcAt]) != string(b[:crcAt]) || Intact(b) != (string(again) == string(b)) {
			t.Errorf("%+v is\n%x; was\n%x", h, again, b)
		}
	})
}
