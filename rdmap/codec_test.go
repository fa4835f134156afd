package rdmap

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"urnic/ddp"
)

func TestOpcodesAreThoseOfTheRFCs(t *testing.T) {
	for _, tt := range []struct {
		op     Opcode
		code   uint8
		tagged bool
		queue  uint32
		name   string
	}{
		{OpWrite, 0, true, 0, "rdma-write"},
		{OpReadRequest, 1, false, 1, "read-request"},
		{OpReadResponse, 2, true, 0, "read-response"},
		{OpSend, 3, false, 0, "send"},
		{OpSendInvalidate, 4, false, 0, "send-invalidate"},
		{OpSendSE, 5, false, 0, "send-se"},
		{OpSendSEInvalidate, 6, false, 0, "send-se-invalidate"},
		{OpTerminate, 7, false, 2, "terminate"},
		{OpImmediate, 8, false, 0, "immediate"},
		{OpImmediateSE, 9, false, 0, "immediate-se"},
		{OpAtomicRequest, 10, false, 1, "atomic-request"},
		{OpAtomicResponse, 11, false, 3, "atomic-response"},
	} {
		if uint8(tt.op) != tt.code || tt.op.Tagged() != tt.tagged || tt.op.Queue() != tt.queue || tt.op.Name() != tt.name || !tt.op.Valid() {
			t.Errorf("%v: code %d tagged %v queue %d name %s", tt.op, uint8(tt.op), tt.op.Tagged(), tt.op.Queue(), tt.op.Name())
		}
		c := NewControl(tt.op)
		if uint8(c) != 0x40|tt.code || c.Opcode() != tt.op || c.Version() != 1 || c.Reserved() != 0 {
			t.Errorf("%v: control %#02x", tt.op, uint8(c))
		}
	}
	if c := Control(0xBF); c.Reserved() != 3 || c.Version() != 2 || c.Opcode() != 15 {
		t.Errorf("control 0xbf: version %d, reserved %d, opcode %d", c.Version(), c.Reserved(), c.Opcode())
	}
	for op := Opcode(12); op < 16; op++ {
		if op.Valid() {
			t.Errorf("opcode %d counts as assigned", op)
		}
	}
}

func TestBothRDMAPVersionsAreValid(t *testing.T) {
	for v, want := range []bool{true, true, false, false} {
		if c := Control(v<<6 | 3); c.ValidVersion() != want {
			t.Errorf("version %d valid: %v", v, c.ValidVersion())
		}
	}
}

var codecTable = []struct {
	name  string
	value encoding.BinaryAppender
	parse func([]byte) (any, error)
	wire  []byte
}{
	{
		"Read Request",
		ReadRequest{SinkSTag: 0x01020304, SinkTO: 0x1112131415161718, Size: 0x21222324, SrcSTag: 0x31323334, SrcTO: 0x4142434445464748},
		func(b []byte) (any, error) { return ParseReadRequest(b) },
		[]byte{
			1, 2, 3, 4, // SinkSTag
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // SinkTO
			0x21, 0x22, 0x23, 0x24, // RDMARDSZ
			0x31, 0x32, 0x33, 0x34, // SrcSTag
			0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, // SrcTO
		},
	}, {
		"Atomic Request",
		AtomicRequest{Op: AtomicCmpSwap, RequestID: 7, STag: 0x01020304, TO: 8, AddSwap: 9, AddSwapMask: 10, Compare: 11, CompareMask: 12},
		func(b []byte) (any, error) { return ParseAtomicRequest(b) },
		[]byte{
			0, 0, 0, 2, // AOpCode
			0, 0, 0, 7, // Request Identifier
			1, 2, 3, 4, // Remote STag
			0, 0, 0, 0, 0, 0, 0, 8, // Remote TO
			0, 0, 0, 0, 0, 0, 0, 9, // Add or Swap Data
			0, 0, 0, 0, 0, 0, 0, 10, // Add or Swap Mask
			0, 0, 0, 0, 0, 0, 0, 11, // Compare Data
			0, 0, 0, 0, 0, 0, 0, 12, // Compare Mask
		},
	}, {
		"Atomic Response",
		AtomicResponse{RequestID: 7, Original: 0x0102030405060708},
		func(b []byte) (any, error) { return ParseAtomicResponse(b) },
		[]byte{0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8},
	},
}

func TestHeaderCodecs(t *testing.T) {
	for _, tt := range codecTable {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.value.AppendBinary(nil)
			if err != nil || !bytes.Equal(got, tt.wire) {
				t.Errorf("encoded %x, %v; want %x", got, err, tt.wire)
			}
			back, err := tt.parse(tt.wire)
			if err != nil || !reflect.DeepEqual(back, tt.value) {
				t.Errorf("parsed %+v, %v; want %+v", back, err, tt.value)
			}
			for i := range len(tt.wire) {
				if _, err := tt.parse(tt.wire[:i]); err == nil {
					t.Errorf("the first %d octets were parsed", i)
				}
			}
			if _, err := tt.parse(append(tt.wire, 0)); err == nil {
				t.Error("one octet too many was parsed")
			}
		})
	}
}

// fetchAddByBit is the pseudocode of RFC 7306 §5.1.1, bit by bit.
func fetchAddByBit(orig, add, mask uint64) (sum uint64) {
	carry := uint64(0)
	for bit := range 64 {
		loc := uint64(1) << bit
		s := carry + orig&loc>>bit + add&loc>>bit
		carry = s >> 1
		if s&1 != 0 {
			sum |= loc
		}
		if mask&loc != 0 {
			carry = 0
		}
	}
	return sum
}

func TestFetchAddFollowsTheRFCsPseudocode(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 306))
	masks := []uint64{0, 1 << 63, 1<<63 | 1<<31, 0x8080808080808080, ^uint64(0)}
	for i := range 2000 {
		orig, add, mask := rng.Uint64(), rng.Uint64(), rng.Uint64()&rng.Uint64()
		if i < len(masks) {
			mask = masks[i]
		}
		r := AtomicRequest{Op: AtomicFetchAdd, AddSwap: add, AddSwapMask: mask}
		if got, want := r.Apply(orig), fetchAddByBit(orig, add, mask); got != want {
			t.Fatalf("%#x + %#x in fields %#x: %#x; want %#x", orig, add, mask, got, want)
		}
	}
	if r := (AtomicRequest{Op: AtomicFetchAdd, AddSwap: 5}); r.Apply(^uint64(0)) != 4 {
		t.Error("mask 0 is not one 64-bit field")
	}
}

func TestCmpSwapComparesAndSwapsUnderMasks(t *testing.T) {
	for _, tt := range []struct {
		orig, cmp, cmpMask, swap, swapMask, want uint64
	}{
		{5, 5, ^uint64(0), 9, ^uint64(0), 9},
		{5, 6, ^uint64(0), 9, ^uint64(0), 5},
		{0x1234, 0xFF34, 0x00FF, 0xABCD, 0xFF00, 0xAB34},
		{0x1234, 0xFF35, 0x00FF, 0xABCD, 0xFF00, 0x1234},
		{1, 2, 0, 7, ^uint64(0), 7}, // nothing is compared
	} {
		r := AtomicRequest{Op: AtomicCmpSwap, Compare: tt.cmp, CompareMask: tt.cmpMask, AddSwap: tt.swap, AddSwapMask: tt.swapMask}
		if got := r.Apply(tt.orig); got != tt.want {
			t.Errorf("%+v: %#x", tt, got)
		}
	}
}

func TestAtomicCode1IsReserved(t *testing.T) {
	for op := range AtomicOp(16) {
		if want := op == 0 || op == 2; op.Valid() != want {
			t.Errorf("%v valid: %v", op, op.Valid())
		}
	}
}

func TestImmediateDataIsExactlyEightOctets(t *testing.T) {
	for n := range 17 {
		data := pattern(n, 1)
		got, err := ParseImmediate(OpImmediate, data)
		if (err == nil) != (n == 8) || err == nil && !bytes.Equal(got[:], data) {
			t.Errorf("%d octets: %x, %v", n, got, err)
		}
	}
}

// header returns a DDP header as a Terminate message carries it.
func header(tagged bool) []byte {
	var b []byte
	if tagged {
		b, _ = ddp.TaggedHeader{Control: 0xC1, RsvdULP: 0x40, STag: 1, TO: 2}.AppendBinary(nil)
	} else {
		b, _ = ddp.UntaggedHeader{Control: 0x41, RsvdULP: [5]byte{0x41}, QN: 1, MSN: 3}.AppendBinary(nil)
	}
	return b
}

func TestTerminateCarriesWhatFigure10Says(t *testing.T) {
	read, _ := ReadRequest{Size: 64}.AppendBinary(nil)
	for _, tt := range []struct {
		name  string
		err   Error
		hdrct byte
		len   int
	}{
		{"RDMAP local catastrophic", Error{Code: CodeLocalCatastrophic, Header: header(true), SegmentLen: 20}, 0, 4},
		{"remote protection, Read Request", Error{Code: CodeBaseBounds, Header: header(false), SegmentLen: 46, RDMAHeader: read}, 0xE0, 4 + 2 + 18 + 28},
		{"remote protection, Send with Invalidate", Error{Code: CodeCannotInvalidate, Header: header(false), SegmentLen: 18}, 0xC0, 4 + 2 + 18},
		{"remote operation", Error{Code: CodeUnexpectedOpcode, Header: header(true), SegmentLen: 20}, 0xC0, 4 + 2 + 14},
		{"remote operation, no message", Error{Code: CodeStreamCatastrophic}, 0, 4},
		{"DDP", Error{Code: TermCode(ddp.CodeInvalidSTag.TermWord()), Header: header(true), SegmentLen: 78}, 0xC0, 4 + 2 + 14},
		{"DDP local catastrophic", Error{Code: TermCode(ddp.CodeLocalCatastrophic.TermWord()), SegmentLen: 3}, 0, 4},
		{"DDP, on a Read Request", Error{Code: 0x1101, Header: header(false), SegmentLen: 46, RDMAHeader: read}, 0xC0, 4 + 2 + 18},
		{"MPA", Error{Code: 0x2002, Header: header(true), SegmentLen: 20}, 0, 4},
		{"LLP, of another error type", Error{Code: 0x2102, Header: header(true), SegmentLen: 20}, 0, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			term := tt.err.Terminate()
			wire, err := term.AppendBinary(nil)
			if err != nil || len(wire) != tt.len || wire[2] != tt.hdrct || wire[3] != 0 || binary.BigEndian.Uint16(wire) != uint16(tt.err.Code) {
				t.Fatalf("%x, %v; want %d octets and HdrCt %#02x", wire, err, tt.len, tt.hdrct)
			}
			if tt.hdrct != 0 && binary.BigEndian.Uint16(wire[4:]) != uint16(tt.err.SegmentLen) {
				t.Errorf("DDP Segment Length %d; want %d", binary.BigEndian.Uint16(wire[4:]), tt.err.SegmentLen)
			}
			back, err := ParseTerminate(wire)
			if err != nil || back.Code != tt.err.Code || back.String() != term.String() {
				t.Errorf("parsed %+v, %v", back, err)
			}
			for i := range len(wire) {
				if _, err := ParseTerminate(wire[:i]); err == nil {
					t.Errorf("the first %d octets were parsed", i)
				}
			}
		})
	}
}

func TestTerminateFromSIWIsUnderstood(t *testing.T) {
	wire := append([]byte{0x11, 0x00, 0x03, 0x00, 0x00, 0x40}, header(true)...)
	term, err := ParseTerminate(wire)
	if err != nil || !term.SIWLayout() || !term.M() || !term.D() || term.R() || !bytes.Equal(term.DDPHeader, header(true)) {
		t.Errorf("parsed %+v, %v", term, err)
	}
	if got, _ := term.AppendBinary(nil); !bytes.Equal(got, wire) {
		t.Errorf("encoded %x; want %x", got, wire)
	}
}

func TestReservedHeaderControlBitsAreIgnored(t *testing.T) {
	for hdrct := range byte(0x20) { // 0x03 and 0x07 are siw's, but not without the headers
		wire := []byte{0x02, 0x07, hdrct, 0xFF}
		term, err := ParseTerminate(wire)
		if err != nil || term.M() || term.D() || term.R() || term.SIWLayout() {
			t.Errorf("%#02x: parsed %+v, %v", hdrct, term, err)
		}
		if got, _ := term.AppendBinary(nil); !bytes.Equal(got, wire) {
			t.Errorf("encoded %x; want %x", got, wire)
		}
	}
	wire := append([]byte{0x02, 0x07, 0xDF, 0xFF, 0, 20}, header(true)...)
	if term, err := ParseTerminate(wire); err != nil || !term.M() || !term.D() || term.R() || term.SegmentLen != 20 {
		t.Errorf("parsed %+v, %v", term, err)
	}
}

// M alone announces a length without a header; D wants its place even so.
func TestEitherBitAnnouncesTheSegmentLength(t *testing.T) {
	for _, wire := range [][]byte{
		{0x02, 0x07, 0x80, 0, 0, 20},
		append([]byte{0x02, 0x07, 0x40, 0, 0, 20}, header(true)...),
	} {
		term, err := ParseTerminate(wire)
		if err != nil || term.SegmentLen != 20 || len(term.Rest) != 0 || (len(term.DDPHeader) > 0) != term.D() {
			t.Errorf("%x: parsed %+v, %v", wire, term, err)
		}
		if got, _ := term.AppendBinary(nil); !bytes.Equal(got, wire) {
			t.Errorf("encoded %x; want %x", got, wire)
		}
	}
}

// R announces the Read Request, where RFC 5040 has the bit and where siw has it.
func TestReadRequestHeaderIsAnnouncedByR(t *testing.T) {
	read, _ := ReadRequest{Size: 64}.AppendBinary(nil)
	for hdrct, want := range map[byte]bool{0xE0: true, 0xC0: false, 0x07: true, 0x03: false} {
		wire := append(append([]byte{0x01, 0x01, hdrct, 0, 0, 46}, header(false)...), read...)
		term, err := ParseTerminate(wire)
		if err != nil || term.R() != want || (len(term.RDMAHeader) > 0) != want {
			t.Errorf("HdrCt %#02x: R %v, %d octets of header, %v; want %v", hdrct, term.R(), len(term.RDMAHeader), err, want)
		}
	}
}

func TestTerminateToleratesTrailingOctets(t *testing.T) {
	wire := append([]byte{0x02, 0x07, 0, 0}, make([]byte, 46)...)
	term, err := ParseTerminate(wire)
	if err != nil || term.Code != CodeStreamCatastrophic || len(term.Rest) != 46 {
		t.Errorf("parsed %+v, %v", term, err)
	}
}

func TestTermCodeParts(t *testing.T) {
	c := TermCode(0x1203)
	if c.Layer() != LayerDDP || c.EType() != 2 || c.Code() != 3 || c.LocalCatastrophic() {
		t.Errorf("%v: layer %d type %d code %d", c, c.Layer(), c.EType(), c.Code())
	}
	if !TermCode(0x0042).LocalCatastrophic() {
		t.Error("error type 0 of layer 0 is local catastrophic, whatever its code")
	}
}

func FuzzParseHeaders(f *testing.F) {
	for _, tt := range codecTable {
		f.Add(tt.wire)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, tt := range codecTable {
			v, err := tt.parse(b)
			if err != nil {
				if _, ok := errors.AsType[*Error](err); !ok {
					t.Fatalf("%s: untyped error %v", tt.name, err)
				}
				continue
			}
			if got, _ := v.(encoding.BinaryAppender).AppendBinary(nil); !bytes.Equal(got, b) {
				t.Fatalf("%s: %x came back as %x", tt.name, b, got)
			}
		}
	})
}

func FuzzParseTerminate(f *testing.F) {
	f.Add([]byte{0x02, 0x07, 0, 0})
	f.Add(append([]byte{0x11, 0x00, 0xC0, 0x00, 0x00, 0x40}, header(true)...))
	f.Add(append([]byte{0x12, 0x00, 0x03, 0x00, 0x00, 0x40}, header(false)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		term, err := ParseTerminate(b)
		if err != nil {
			return
		}
		if got, _ := term.AppendBinary(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x came back as %x", b, got)
		}
		_ = term.String()
	})
}

// What siw sends for an error, by the captures of it, and what RFC 5040 has for
// that error.
func TestReasonOfATerminateFromSIWIsUnderstood(t *testing.T) {
	for _, tt := range []struct {
		code  TermCode
		hdrct uint8
		want  TermCode
	}{
		{0x1100, 0x03, 0x1100}, // Write with a bad STag
		{0x1101, 0x03, 0x1101}, // out of bounds
		{0x1000, 0x07, 0x0100}, // Read with a bad STag
		{0x1001, 0x07, 0x0101},
		{0x2102, 0x03, 0x1202}, // no receive posted
		{0x2007, 0x03, 0x0207}, // more Reads than IRD
		{0x0202, 0x00, 0x2002}, // bad CRC, without headers
		{0x2106, 0x00, 0x1206}, // DDP version
		{0x2002, 0x00, 0x2002}, // by an RNIC that keeps the RFC
		{0x1202, 0xC0, 0x1202},
		{0x1000, 0x00, 0x1000},
		{0x0142, 0x00, 0x0142}, // defined neither way
	} {
		term := Terminate{Code: tt.code, HdrCt: tt.hdrct}
		if tt.hdrct != 0 {
			term.DDPHeader = header(true)
		}
		if got := term.Reason(); got != tt.want {
			t.Errorf("0x%04x with HdrCt 0x%02x means %v; want %v", uint16(tt.code), tt.hdrct, got, tt.want)
		}
		if s := term.String(); (tt.want != tt.code) != strings.Contains(s, "siw") {
			t.Errorf("%q", s)
		}
	}
}

// The codes that RFC 5040 Figure 9, RFC 5041 §7.2 and RFC 6581 §8 define.
func TestDefinedTerminateCodes(t *testing.T) {
	known := map[TermCode]bool{}
	for c := range TermCode(0x100) {
		known[c] = true // local catastrophic: any code
	}
	for _, c := range []TermCode{
		0x0100, 0x0101, 0x0102, 0x0103, 0x0104, 0x0109, 0x01FF,
		0x0205, 0x0206, 0x0207, 0x0208, 0x0209, 0x02FF,
		0x1000, 0x1100, 0x1101, 0x1102, 0x1103, 0x1104,
		0x1201, 0x1202, 0x1203, 0x1204, 0x1205, 0x1206,
		0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007,
	} {
		known[c] = true
	}
	for c := range 1 << 16 {
		if got := TermCode(c).Defined(); got != known[TermCode(c)] {
			t.Errorf("0x%04x: %t", c, got)
		}
	}
}
