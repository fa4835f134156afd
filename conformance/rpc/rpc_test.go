package rpc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// bytes returns those that hexadecimal digits stand for, with spaces between them.
func octets(t *testing.T, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The lists stand as RFC 8166 §4.7 draws them: 1 PHLOO … 0, 1 n HLOO … 0, 1 n HLOO.
func TestHeadersAreThoseOfTheRFC(t *testing.T) {
	h, l, o := "00000011 ", "00000022 ", "00000033 00000044 "
	hloo := h + l + o
	seg := Segment{Handle: 0x11, Length: 0x22, Offset: 0x33_00000044}
	fixed := func(proc string) string { return "0a0b0c0d 00000001 00000020 " + proc }
	base := Header{XID: 0x0A0B0C0D, Version: 1, Credits: 32}
	with := func(change func(h *Header)) Header {
		h := base
		change(&h)
		return h
	}
	for _, c := range []struct {
		name, digits string
		h            Header
	}{
		{"no chunks", fixed("00000000") + "00000000 00000000 00000000", base},
		{
			"Read list", fixed("00000000") + "00000001 00000008" + hloo + "00000001 00000008" + hloo + "00000000 00000000 00000000",
			with(func(h *Header) { h.Reads = []ReadSegment{{8, seg}, {8, seg}} }),
		},
		{
			"Write list", fixed("00000000") + "00000000 00000001 00000002" + hloo + hloo + "00000001 00000000 00000000 00000000",
			with(func(h *Header) { h.Writes = []Chunk{{seg, seg}, {}} }),
		},
		{
			"Reply chunk", fixed("00000001") + "00000000 00000000 00000001 00000001" + hloo,
			with(func(h *Header) { h.Proc, h.Reply = NoMsg, Chunk{seg} }),
		},
		{"ERR_VERS", fixed("00000004") + "00000001 00000001 00000002", with(func(h *Header) { h.Proc, h.Err, h.Low, h.High = Error, ErrVers, 1, 2 })},
		{"ERR_CHUNK", fixed("00000004") + "00000002", with(func(h *Header) { h.Proc, h.Err = Error, ErrChunk })},
		{"RDMA_DONE", fixed("00000003"), with(func(h *Header) { h.Proc = Done })},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := octets(t, c.digits)
			if got := c.h.Octets(); !bytes.Equal(got, want) {
				t.Errorf("%x; want %x", got, want)
			}
			got, rest, err := ParseHeader(want)
			if err != nil || len(rest) > 0 || !reflect.DeepEqual(got, c.h) {
				t.Errorf("%+v, %x behind it, %v; want %+v", got, rest, err, c.h)
			}
			for n := range want {
				if _, _, err := ParseHeader(want[:n]); !errors.Is(err, ErrXDR) {
					t.Errorf("%d of its octets: %v", n, err)
				}
			}
		})
	}
}

func TestHeadersThatAreNoXDRAreRefused(t *testing.T) {
	const fixed = "0a0b0c0d 00000001 00000020 "
	for _, digits := range []string{
		fixed + "00000000 00000002 00000000 00000000",
		fixed + "00000000 00000000 00000000 00000001 ffffffff",
		fixed + "00000001 00000000 00000000 00000000 00000000",
		fixed + "00000004 00000003",
		fixed + "00000004 00000002 00000000",
		fixed + "00000005 00000000 00000000 00000000",
	} {
		if h, _, err := ParseHeader(octets(t, digits)); !errors.Is(err, ErrXDR) {
			t.Errorf("%s: %+v, %v", digits, h, err)
		}
	}
}

func TestPrivateDataAreThoseOfTheRFC(t *testing.T) {
	want := octets(t, "f6ab0e18 01 01 07 07")
	p := Offer(8192, FlagR)
	if got := p.Octets(); !bytes.Equal(got, want) {
		t.Errorf("%x; want %x", got, want)
	}
	if got := FindPrivate(append([]byte{1, 2, 3}, want...)); got == nil || *got != p || got.SendSize() != 8192 || !got.Invalidates() {
		t.Errorf("found %v", got)
	}
	for _, b := range [][]byte{nil, want[:7], octets(t, "f6ab0e18 02 01 07 07"), octets(t, "180eabf6 01 01 07 07")} {
		if got := FindPrivate(b); got != nil || got.ReceiveSize() != DefaultThreshold || got.Invalidates() {
			t.Errorf("in %x there is %v", b, got)
		}
	}
}

func TestCallsAndRepliesAreThoseOfTheRFC(t *testing.T) {
	c := Call{XID: 7, Program: NFS, Version: NFS3, Procedure: GetAttr, Args: HandleArgs([]byte("root1"))}
	want := octets(t, "00000007 00000000 00000002 000186a3 00000003 00000001 00000000 00000000 00000000 00000000 00000005 726f6f7431000000")
	if got := c.Octets(); !bytes.Equal(got, want) {
		t.Errorf("%x; want %x", got, want)
	}
	if got, err := ParseCall(want); err != nil || got.XID != 7 || got.Procedure != GetAttr || !bytes.Equal(got.Args, c.Args) {
		t.Errorf("%+v, %v", got, err)
	}
	r := Reply{XID: 7, Status: GarbageArgs, Results: []byte{}}
	want = octets(t, "00000007 00000001 00000000 00000000 00000000 00000004")
	if got := r.Octets(); !bytes.Equal(got, want) {
		t.Errorf("%x; want %x", got, want)
	}
	if got, err := ParseReply(want); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseReply(c.Octets()); err == nil {
		t.Error("a call is taken for a reply")
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(Header{Reads: []ReadSegment{{}}, Writes: []Chunk{{{}}, {}}, Reply: Chunk{{}}}.Octets())
	f.Add(Header{Proc: Error, Err: ErrVers}.Octets())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, rest, err := ParseHeader(b)
		if err != nil || h.Proc == MsgP {
			return
		}
		if got := append(h.Octets(), rest...); !bytes.Equal(got, b) {
			t.Errorf("%x becomes %x", b, got)
		}
	})
}

func FuzzParseMessages(f *testing.F) {
	f.Add(Call{Cred: Root(), Args: HandleArgs([]byte("root"))}.Octets())
	f.Add(Reply{Results: []byte{0, 0, 0, 0}}.Octets())
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = ParseCall(b)
		if r, err := ParseReply(b); err == nil {
			b = r.Results
		}
		_, _ = ParseRead(b)
		_, _, _ = ParseWrite(b)
		_, _, _ = ParseHandle(Create, b)
		_, _ = ParseStatus(b)
		_, _ = (&Filing{Incoming: &Incoming{Call: Call{Args: b}}}).Writing()
		_ = FindPrivate(b)
	})
}
