package rpcrdma_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"urnic/ulp/rpcrdma"
)

func TestPrivateDataHasTheOctetsOfItsFigure(t *testing.T) {
	for want, v := range map[string]rpcrdma.Private{
		"f6ab0e1801010303": {Invalidate: true, Send: 4096, Receive: 4096},
		"f6ab0e1801000000": {Send: 1024, Receive: 1024},
		"f6ab0e180101ff07": {Invalidate: true, Send: 256 << 10, Receive: 8192},
	} {
		if got := hex.EncodeToString(v.Append(nil)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		octets, _ := hex.DecodeString(want)
		if got, found := rpcrdma.FindPrivate(octets); !found || got != v {
			t.Errorf("%s: got %+v", want, got)
		}
	}
}

func TestSizesAreBroughtIntoTheirRange(t *testing.T) {
	got := rpcrdma.Private{Send: 4095, Receive: 1 << 20}.Append(nil)
	if !bytes.Equal(got[6:], []byte{2, 255}) {
		t.Errorf("got %x", got)
	}
	if got := (rpcrdma.Private{Send: -1, Receive: 100}).Append(nil); !bytes.Equal(got[6:], []byte{0, 0}) {
		t.Errorf("got %x", got)
	}
}

// RFC 8797 §5.2: at any alignment, behind what others have written; §5.1: else the
// defaults; §4: reserved bits mean nothing.
func TestPrivateDataIsFoundWhereverItIs(t *testing.T) {
	full := rpcrdma.Private{Invalidate: true, Send: 4096, Receive: 8192}
	none := rpcrdma.Private{Send: 1024, Receive: 1024}
	for octets, want := range map[string]rpcrdma.Private{
		"f6ab0e1801010307":                 full,
		"00f6ab0e1801010307":               full,
		"f6f6abf6ab0e18010103070000":       full,
		"f6ab0e1801ff0307":                 full,
		"f6ab0e1801fe0307":                 {Send: 4096, Receive: 8192},
		"":                                 none,
		"00112233":                         none,
		"f6ab0e18010103":                   none, // cut off
		"f6ab0e1802010307":                 none, // of another version
		"180eabf601010307":                 none,
		"f6ab0e19010103070102030405060708": none,
	} {
		p, err := hex.DecodeString(octets)
		if err != nil {
			t.Fatal(err)
		}
		got, found := rpcrdma.FindPrivate(p)
		if got != want || found != (want != none) {
			t.Errorf("%s: got %+v, %v", octets, got, found)
		}
	}
}

func FuzzPrivate(f *testing.F) {
	f.Add([]byte("\xf6\xab\x0e\x18\x01\x01\x03\x03"))
	f.Fuzz(func(t *testing.T, p []byte) {
		v, found := rpcrdma.FindPrivate(p)
		if v.Send < 1024 || v.Send > rpcrdma.MaxInline || v.Receive < 1024 || v.Receive > rpcrdma.MaxInline {
			t.Fatalf("got %+v", v)
		}
		if again, ok := rpcrdma.FindPrivate(v.Append(nil)); !ok || again != v || !found && v.Invalidate {
			t.Fatalf("got %+v, then %+v", v, again)
		}
	})
}
