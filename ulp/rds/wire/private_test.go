package wire

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What Linux sent, of each family, and what a node of this module sends.
var privates = []struct {
	name string
	hex  string
	want Private
}{
	{"IPv4", "0a090001" + "0a090002" + "0301" + "0003" + "00000000" + "0000000000000000" + "00000000" + "00000000", Private{
		Source: netip.MustParseAddr("10.9.0.1"), Dest: netip.MustParseAddr("10.9.0.2"), Major: 3, Minor: 1, MinorMask: 3,
	}},
	{"IPv6", "fd090000000000000000000000000001" + "fd090000000000000000000000000002" + "0301" + "0003" + "05000000" +
		"0000000000000007" + "00000020" + "00000000", Private{
		Source: netip.MustParseAddr("fd09::1"), Dest: netip.MustParseAddr("fd09::2"), Major: 3, Minor: 1, MinorMask: 3,
		TOS: 5, AckSequence: 7, Credit: 32,
	}},
}

// A node tells its generation where Linux has padding.
func TestPrivateGeneration(t *testing.T) {
	v := privates[0].want
	v.Generation = 0x01020304
	b, err := v.AppendTo(nil)
	if want := privates[0].hex[:56] + "01020304"; err != nil || hex.EncodeToString(b) != want {
		t.Errorf("%x, %v; want %s", b, err, want)
	}
	if got, err := ParsePrivate(b, false); err != nil || got != v {
		t.Errorf("%v, %v; want %v", &got, err, &v)
	}
}

func TestPrivateLayout(t *testing.T) {
	for _, tt := range privates {
		b := unhex(t, tt.hex)
		ipv6 := tt.want.Source.Is6()
		if want := map[bool]int{false: PrivateLen4, true: PrivateLen6}[ipv6]; len(b) != want {
			t.Fatalf("%s: %d bytes", tt.name, len(b))
		}
		got, err := ParsePrivate(b, ipv6)
		if err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", tt.name, &got, err, &tt.want)
		}
		again, err := got.AppendTo(nil)
		if err != nil || string(again) != string(b) {
			t.Errorf("%s: %x, %v; want %x", tt.name, again, err, b)
		}
		// The RDMA CM pads, and the padding of the structure itself need not be there.
		for _, padded := range [][]byte{append(slices.Clip(b), 0, 0, 0), b[:len(b)-4]} {
			if got, err := ParsePrivate(padded, ipv6); err != nil || got != tt.want {
				t.Errorf("%s of %d bytes: %v, %v", tt.name, len(padded), &got, err)
			}
		}
		if _, err := ParsePrivate(b[:len(b)-5], ipv6); fault(err) != TooShort {
			t.Errorf("%s of %d bytes: %v", tt.name, len(b)-5, err)
		}
	}
}

func TestPrivateNamesHosts(t *testing.T) {
	for _, addr := range []string{"00000000", "ffffffff", "e0000001"} {
		for _, at := range []int{0, 8} {
			s := privates[0].hex[:at] + addr + privates[0].hex[at+8:]
			if v, err := ParsePrivate(unhex(t, s), false); fault(err) != WrongAddress {
				t.Errorf("%v: %v", &v, err)
			}
		}
	}
	mapped := "00000000000000000000ffff0a090001" + privates[1].hex[32:]
	if v, err := ParsePrivate(unhex(t, mapped), true); fault(err) != WrongAddress {
		t.Errorf("%v: %v", &v, err)
	}
	for _, v := range []Private{
		{},
		{Source: netip.MustParseAddr("10.9.0.1")},
		{Source: netip.MustParseAddr("10.9.0.1"), Dest: netip.MustParseAddr("fd09::2")},
	} {
		if b, err := v.AppendTo(nil); fault(err) != WrongAddress || len(b) != 0 {
			t.Errorf("%v: %x, %v", &v, b, err)
		}
	}
	// An address of IPv4 that stands in one of IPv6 is one of IPv4.
	v := privates[0].want
	v.Source = netip.AddrFrom16(v.Source.As16())
	if b, err := v.AppendTo(nil); err != nil || hex.EncodeToString(b) != privates[0].hex {
		t.Errorf("%x, %v", b, err)
	}
}

func TestVersionsThatAgree(t *testing.T) {
	for _, tt := range []struct {
		major, minor uint8
		mask         uint16
		wantMajor    uint8
		wantMinor    uint8
		refused      bool
	}{
		{3, 1, 3, 3, 1, false},
		{3, 1, 0, 3, 1, false}, // the mask is not asked
		{4, 1, 3, 4, 1, false},
		{4, 1, 1, 4, 0, false},
		{4, 9, 2, 4, 1, false},
		{4, 1, 4, 0, 0, true},
		{3, 0, 1, 0, 0, true},
		{5, 1, 3, 0, 0, true},
		{0, 0, 0, 0, 0, true},
	} {
		v := Private{Major: tt.major, Minor: tt.minor, MinorMask: tt.mask}
		major, minor, err := v.Agree()
		if major != tt.wantMajor || minor != tt.wantMinor || (err != nil) != tt.refused || tt.refused && fault(err) != WrongVersion {
			t.Errorf("%d.%d mask %#x: %d.%d, %v", tt.major, tt.minor, tt.mask, major, minor, err)
		}
	}
}
