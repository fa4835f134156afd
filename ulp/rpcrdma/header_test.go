package rpcrdma_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"urnic/stag"
	"urnic/ulp/rpcrdma"
)

// figure makes bytes of a figure of RFC 8166 §4.7: numbers, and H, L, OO and P, whose
// values count up in the order of their segment.
func figure(t testing.TB, s string) []byte {
	t.Helper()
	var p []byte
	n := uint32(0)
	for f := range strings.FieldsSeq(s) {
		switch f {
		case "HLOO", "PHLOO":
			n++
			if f[0] == 'P' {
				p = binary.BigEndian.AppendUint32(p, position(n))
			}
			p = binary.BigEndian.AppendUint32(p, 0xa0+n)
			p = binary.BigEndian.AppendUint32(p, 0xb0+n)
			p = binary.BigEndian.AppendUint64(p, offset(n))
		default:
			var w uint32
			if _, err := fmt.Sscan(f, &w); err != nil {
				t.Fatal(err)
			}
			p = binary.BigEndian.AppendUint32(p, w)
		}
	}
	return p
}

func position(n uint32) uint32 { return 4 * n }
func offset(n uint32) uint64   { return 0x0102030405060700 + uint64(n) }

func segment(n uint32) rpcrdma.Segment {
	return rpcrdma.Segment{Handle: stag.STag(0xa0 + n), Length: 0xb0 + n, Offset: offset(n)}
}

func read(n uint32) rpcrdma.ReadSegment {
	return rpcrdma.ReadSegment{Position: position(n), Segment: segment(n)}
}

// headers are headers and their bytes, those of §4.7 among them.
var headers = []struct {
	name   string
	header rpcrdma.Header
	octets string
}{
	{"no chunks", rpcrdma.Header{XID: 7, Version: 1, Credits: 32}, "7 1 32 0 0 0 0"},
	{"a Read list", rpcrdma.Header{
		XID: 7, Version: 1, Credits: 32,
		Read: []rpcrdma.ReadSegment{read(1), read(2), read(3)},
	}, "7 1 32 0 1 PHLOO 1 PHLOO 1 PHLOO 0 0 0"},
	{"a Write chunk of three", rpcrdma.Header{
		XID: 7, Version: 1, Credits: 32,
		Write: [][]rpcrdma.Segment{{segment(1), segment(2), segment(3)}},
	}, "7 1 32 0 0 1 3 HLOO HLOO HLOO 0 0"},
	{
		"a Write list",
		rpcrdma.Header{
			XID: 7, Version: 1, Credits: 32,
			Write: [][]rpcrdma.Segment{{segment(1), segment(2), segment(3)}, {segment(4), segment(5)}},
		},
		"7 1 32 0 0 1 3 HLOO HLOO HLOO 1 2 HLOO HLOO 0 0",
	},
	{"a Reply chunk", rpcrdma.Header{
		XID: 7, Version: 1, Credits: 32, Proc: rpcrdma.NoMsg,
		Reply: []rpcrdma.Segment{segment(1), segment(2)}, HasReply: true,
	}, "7 1 32 1 0 0 1 2 HLOO HLOO"},
	{"empty chunks", rpcrdma.Header{
		XID: 7, Version: 1, Credits: 1, HasReply: true,
		Write: [][]rpcrdma.Segment{{}, {segment(1)}},
	}, "7 1 1 0 0 1 0 1 1 HLOO 0 1 0"},
	{
		"all",
		rpcrdma.Header{
			XID: 7, Version: 1, Credits: 1, HasReply: true,
			Read: []rpcrdma.ReadSegment{read(1)}, Write: [][]rpcrdma.Segment{{segment(2)}}, Reply: []rpcrdma.Segment{segment(3)},
		},
		"7 1 1 0 1 PHLOO 0 1 1 HLOO 0 1 1 HLOO",
	},
	{
		"ERR_VERS",
		rpcrdma.Header{XID: 7, Version: 3, Credits: 32, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 2},
		"7 3 32 4 1 1 2",
	},
	{"ERR_CHUNK", rpcrdma.Header{XID: 7, Version: 1, Credits: 32, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}, "7 1 32 4 2"},
}

func TestHeadersHaveTheOctetsOfTheFigures(t *testing.T) {
	for _, c := range headers {
		t.Run(c.name, func(t *testing.T) {
			want := figure(t, c.octets)
			if got := c.header.Append(nil); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", hex.Dump(got), hex.Dump(want))
			}
			if n := c.header.Len(); n != len(want) {
				t.Errorf("Len: got %d, want %d", n, len(want))
			}
			var h rpcrdma.Header
			rest, err := h.Decode(append(want, "stream"...), rpcrdma.Limits{})
			if err != nil || string(rest) != "stream" {
				t.Fatalf("got %q, %v", rest, err)
			}
			if !same(&h, &c.header) {
				t.Errorf("got %+v\nwant %+v", h, c.header)
			}
		})
	}
}

// same compares what headers say.
func same(a, b *rpcrdma.Header) bool {
	said := func(h *rpcrdma.Header) string {
		return fmt.Sprint(h.XID, h.Version, h.Credits, h.Proc, h.Read, h.Write, h.Reply, h.HasReply, h.Err, h.Low, h.High)
	}
	return said(a) == said(b)
}

func TestHeadersOfObsoleteProceduresAreWrittenForTests(t *testing.T) {
	for octets, h := range map[string]rpcrdma.Header{
		"7 1 32 2 4096 8192 0 0 0": {XID: 7, Version: 1, Credits: 32, Proc: rpcrdma.MsgP, Align: 4096, Threshold: 8192},
		"7 1 32 3":                 {XID: 7, Version: 1, Credits: 32, Proc: rpcrdma.Done},
	} {
		if got := h.Append(nil); !bytes.Equal(got, figure(t, octets)) || h.Len() != len(got) {
			t.Errorf("%v: got %x of %d", h.Proc, got, h.Len())
		}
	}
}

func TestHeadersThatCannotBeUsed(t *testing.T) {
	const discard = rpcrdma.ErrCode(0)
	many := strings.Repeat(" 1 PHLOO", 5)
	for name, c := range map[string]struct {
		octets string
		code   rpcrdma.ErrCode
		err    error
	}{
		"shorter than a header":       {"7 1 32 0 0 0", discard, rpcrdma.ErrShort},
		"nothing":                     {"", discard, rpcrdma.ErrShort},
		"another version":             {"7 2 32 0 0 0 0", rpcrdma.ErrVers, rpcrdma.ErrVersion},
		"version 0, and no procedure": {"7 0 32 9 0 0 0", rpcrdma.ErrVers, rpcrdma.ErrVersion},
		"no such procedure":           {"7 1 32 5 0 0 0", rpcrdma.ErrChunk, rpcrdma.ErrProc},
		"RDMA_MSGP":                   {"7 1 32 2 4096 8192 0 0 0", rpcrdma.ErrChunk, rpcrdma.ErrObsolete},
		"RDMA_DONE":                   {"7 1 32 3 0 0 0", discard, rpcrdma.ErrObsolete},
		"RDMA_NOMSG without chunks":   {"7 1 32 1 0 0 0", rpcrdma.ErrChunk, rpcrdma.ErrNoStream},
		"a mark of 2":                 {"7 1 32 0 2 0 0", rpcrdma.ErrChunk, rpcrdma.ErrMark},
		"a mark of 2, Write list":     {"7 1 32 0 0 2 0", rpcrdma.ErrChunk, rpcrdma.ErrMark},
		"a mark of 2, Reply chunk":    {"7 1 32 0 0 0 2", rpcrdma.ErrChunk, rpcrdma.ErrMark},
		"a Read list without end":     {"7 1 32 0 1 PHLOO", rpcrdma.ErrChunk, rpcrdma.ErrShort},
		"half a Read segment":         {"7 1 32 0 1 4 0", rpcrdma.ErrChunk, rpcrdma.ErrShort},
		"a position of 2":             {"7 1 32 0 1 2 1 1 0 0 0 0 0", rpcrdma.ErrChunk, rpcrdma.ErrPosition},
		"too many Read segments":      {"7 1 32 0" + many + " 0 0 0", rpcrdma.ErrChunk, rpcrdma.ErrMany},
		"too many Write chunks":       {"7 1 32 0 0 1 0 1 0 1 0 0 0", rpcrdma.ErrChunk, rpcrdma.ErrMany},
		"too many segments":           {"7 1 32 0 0 1 2 HLOO HLOO 1 2 HLOO HLOO 0 0", rpcrdma.ErrChunk, rpcrdma.ErrMany},
		"too many with the Reply":     {"7 1 32 0 0 1 2 HLOO HLOO 0 1 2 HLOO HLOO", rpcrdma.ErrChunk, rpcrdma.ErrMany},
		"a count of 2^32-1":           {"7 1 32 0 0 1 4294967295 HLOO 0 0", rpcrdma.ErrChunk, rpcrdma.ErrMany},
		"a count beyond the end":      {"7 1 32 0 0 1 3 HLOO HLOO", rpcrdma.ErrChunk, rpcrdma.ErrShort},
		"no such error":               {"7 1 32 4 3 0 0", discard, rpcrdma.ErrWhy},
		"ERR_VERS without versions":   {"7 1 32 4 1", discard, rpcrdma.ErrShort},
		"RDMA_ERROR without a reason": {"7 1 32 4", discard, rpcrdma.ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			var h rpcrdma.Header
			rest, err := h.Decode(figure(t, c.octets), rpcrdma.Limits{ReadSegments: 4, WriteChunks: 2, Segments: 3})
			var e *rpcrdma.HeaderError
			if !errors.As(err, &e) || !errors.Is(err, c.err) || e.Code != c.code || rest != nil {
				t.Fatalf("got %v, want %v with code %v", err, c.err, c.code)
			}
			if e.Clause == "" || c.code != 0 && e.XID != 7 {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// A server has to take a position-zero chunk, another Read chunk and a Write chunk, of 16
// segments each (RFC 8267 §6.4.2).
func TestDefaultLimitsAreThoseOfAServer(t *testing.T) {
	h := rpcrdma.Header{XID: 1, Version: 1, HasReply: true, Write: [][]rpcrdma.Segment{nil}}
	for n := range uint32(32) {
		s := read(n)
		s.Position = n / 16 * 4
		h.Read = append(h.Read, s)
	}
	for n := range uint32(16) {
		h.Write[0] = append(h.Write[0], segment(n))
		h.Reply = append(h.Reply, segment(n))
	}
	var got rpcrdma.Header
	if _, err := got.Decode(h.Append(nil), rpcrdma.Limits{}); err != nil || !same(&got, &h) {
		t.Errorf("got %v", err)
	}
}

func TestDecodingForgetsTheLastHeader(t *testing.T) {
	var h rpcrdma.Header
	for _, c := range append(headers, headers...) {
		if _, err := h.Decode(append(figure(t, c.octets), make([]byte, 12)...), rpcrdma.Limits{}); err != nil || !same(&h, &c.header) {
			t.Errorf("%s: got %+v, %v", c.name, h, err)
		}
	}
}

func TestHeadersTakeNoMemory(t *testing.T) {
	p := figure(t, "7 1 1 0 1 PHLOO 0 1 1 HLOO 0 1 1 HLOO")
	var h rpcrdma.Header
	out := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := h.Decode(p, rpcrdma.Limits{}); err != nil {
			t.Fatal(err)
		}
		out = h.Append(out[:0])
	}); n != 0 || !bytes.Equal(out, p) {
		t.Errorf("got %v allocations, %x", n, out)
	}
}

func TestNumbersHaveTheNamesOfTheRFC(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"RDMA_MSG": rpcrdma.Msg, "RDMA_NOMSG": rpcrdma.NoMsg, "RDMA_MSGP": rpcrdma.MsgP, "RDMA_DONE": rpcrdma.Done,
		"RDMA_ERROR": rpcrdma.Error, "procedure 5": rpcrdma.Proc(5),
		"ERR_VERS": rpcrdma.ErrVers, "ERR_CHUNK": rpcrdma.ErrChunk, "error 3": rpcrdma.ErrCode(3),
	} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzHeader(f *testing.F) {
	for _, c := range headers {
		f.Add(figure(f, c.octets))
	}
	f.Add(figure(f, "7 1 32 2 4096 8192 0 0 0"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var h, again rpcrdma.Header
		rest, err := h.Decode(p, rpcrdma.Limits{})
		if err != nil {
			if e, ok := errors.AsType[*rpcrdma.HeaderError](err); !ok || e.Clause == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		out := h.Append(nil)
		if !bytes.Equal(append(out, rest...), p) || h.Len() != len(out) {
			t.Fatalf("got %x with %x, want %x", out, rest, p)
		}
		if _, err := again.Decode(out, rpcrdma.Limits{}); err != nil && len(out) >= 28 || err == nil && !same(&again, &h) {
			t.Fatalf("again: %v", err)
		}
	})
}
