package llpwire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"urnic/mpa"
)

// The messages of docs/ddp-over-rdp.md.
func TestMessagesOnTheWire(t *testing.T) {
	o := Offer{IRD: 4, ORD: 0x0102, Private: []byte("hello")}
	b := o.Message(Request)
	if got, want := hex.EncodeToString(b[:len(b)-TrailerLen]), "0100000000000000"+"0004"+"0102"+"68656c6c6f"; got != want {
		t.Errorf("a request is %s; want %s", got, want)
	}
	k, number, body, err := Parse(b)
	if err != nil || k != Request || number != 0 {
		t.Fatalf("%d, %d, %v", k, number, err)
	}
	got, err := ParseOffer(body)
	if err != nil || got.IRD != o.IRD || got.ORD != o.ORD || !bytes.Equal(got.Private, o.Private) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[Kind]string{Request: "request", Accept: "accept", Reject: "reject", Segment: "segment", End: "end", 0: "kind 0", 6: "kind 6"} {
		if k.String() != want {
			t.Errorf("%d is %v; want %s", uint8(k), k, want)
		}
	}
}

func TestWrongMessagesAreRefused(t *testing.T) {
	whole := (&Offer{}).Message(Request)
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		var e *mpa.Error
		if _, _, _, err := Parse(bad); !errors.As(err, &e) || e.Code != mpa.CodeCRC {
			t.Errorf("byte %d is damaged: %v", i, err)
		}
	}
	for name, b := range map[string][]byte{
		"short":           whole[:Overhead-1],
		"kind 0":          Seal([]byte{0, 0, 0, 0, 0, 0, 0, 0}),
		"an unknown kind": Seal([]byte{byte(numKinds), 0, 0, 0, 0, 0, 0, 0}),
		"bytes not zero":  Seal([]byte{byte(Segment), 0, 1, 0, 0, 0, 0, 0}),
	} {
		var e *mpa.Error
		if _, _, _, err := Parse(b); !errors.As(err, &e) || e.Code != mpa.CodeStartup {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, n := range []int{0, offerLen - 1, offerLen + MaxPrivateData + 1} {
		if _, err := ParseOffer(make([]byte, n)); err == nil {
			t.Errorf("an offer of %d bytes is taken", n)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add((&Offer{1, 2, []byte("x")}).Message(Accept))
	f.Add(Seal([]byte{byte(End), 0, 0, 0, 0, 0, 0, 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= TrailerLen { // damage is the least interesting
			b = Seal(b[:len(b)-TrailerLen])
		}
		k, number, body, err := Parse(b)
		if err != nil {
			return
		}
		again := make([]byte, HeaderLen, len(b))
		PutHeader(again, k, number)
		if again = Seal(append(again, body...)); !bytes.Equal(again, b) {
			t.Errorf("%x is made of %x", again, b)
		}
		if o, err := ParseOffer(body); err == nil {
			if m := o.Message(k); number == 0 && !bytes.Equal(m, b) {
				t.Errorf("%x is made of %x", m, b)
			}
		}
	})
}
