package wire

import (
	"bytes"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"testing"

	"urnic/mpa"
)

// reader returns bytes one piece after another.
func reader(b []byte) func(n int) ([]byte, error) {
	return func(n int) ([]byte, error) {
		if n > len(b) {
			return nil, io.ErrUnexpectedEOF
		}
		p := b[:n]
		b = b[n:]
		return p, nil
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The figures of RFC 5044 §4.4: two FPDUs with 24 zeros as payload.
func TestFPDUsOfTheRFC(t *testing.T) {
	zeros := make([]byte, 24)
	first, second := Untagged(Send, zeros), Untagged(Send, zeros)
	first.MSN = 1
	second.MSN = 2
	f := framer{markers: true, crc: true}
	got := f.frame(first.Octets(), Flaw{})
	want := unhex(t, "00000000"+"002a4143"+"00000000"+"00000000"+"00000001"+"00000000"+hex.EncodeToString(zeros)+"52239983")
	if !bytes.Equal(got, want) {
		t.Errorf("figure 5 is\n%x, not\n%x", got, want)
	}
	f.pos = 512 - 20 // the second's marker stands 20 bytes behind its header
	got = f.frame(second.Octets(), Flaw{})
	want = unhex(t, "002a4143"+"00000000"+"00000000"+"00000002"+"00000000"+"00000014"+hex.EncodeToString(zeros)+"84925898")
	if !bytes.Equal(got, want) {
		t.Errorf("figure 6 is\n%x, not\n%x", got, want)
	}
}

// Two readings of the RFC, this one and that of package mpa, come to the same
// bytes, with markers at all places.
func TestFPDUsAreThoseOfPackageMPA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, markers := range []bool{false, true} {
		f := framer{markers: markers, crc: true}
		d := deframer{markers: markers, crc: true}
		theirs := mpa.Framer{Markers: markers, CRC: true}
		for range 2000 {
			ulpdu := make([]byte, 1+r.IntN(1600))
			for i := range ulpdu {
				ulpdu[i] = byte(r.Uint32())
			}
			got := f.frame(ulpdu, Flaw{})
			want, err := theirs.AppendFPDU(nil, ulpdu)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("an ULPDU of %d octets makes\n%x, in package mpa\n%x, %v", len(ulpdu), got, want, err)
			}
			p, err := d.read(reader(want))
			if err != nil || len(p.Faults) > 0 || !bytes.Equal(p.ULPDU, ulpdu) || !bytes.Equal(p.Octets, want) {
				t.Fatalf("an FPDU of %d octets: %v, %v", len(ulpdu), p.Faults, err)
			}
		}
	}
}

// Whatever is wrong with an FPDU is told, and only that.
func TestWhatIsWrongWithAnFPDUIsTold(t *testing.T) {
	ulpdu := Tagged(Write, 1, 2, make([]byte, 1001)).Octets()
	for _, c := range []struct {
		name string
		flaw Flaw
		want []Rule
	}{
		{"nothing", Flaw{}, nil},
		{"the CRC", Flaw{CRC: func(crc uint32) uint32 { return crc ^ 1 }}, []Rule{FaultCRC}},
		{"the order of its octets", Flaw{BigEndian: true}, []Rule{FaultCRC}},
		{"the pad", Flaw{Pad: 1}, []Rule{FaultPad}},
		{"a marker's reserved field", Flaw{Reserved: 3}, []Rule{FaultMarkerReserved, FaultMarkerReserved, FaultMarkerReserved}},
		{"the second marker", Flaw{Marker: func(n int, p uint16) uint16 { return p + uint16(n&1) }}, []Rule{FaultMarker}},
	} {
		f := framer{markers: true, crc: true}
		d := deframer{markers: true, crc: true}
		b := f.frame(ulpdu, c.flaw)
		p, err := d.read(reader(b))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var rules []Rule
		for _, fault := range p.Faults {
			rules = append(rules, fault.Rule)
		}
		if len(rules) != len(c.want) || len(rules) > 0 && rules[0] != c.want[0] {
			t.Errorf("%s: %v is wrong, not %v", c.name, rules, c.want)
		}
	}
}

func FuzzFPDU(f *testing.F) {
	var fr framer
	f.Add(fr.frame(Untagged(Send, []byte("hello")).Octets(), Flaw{}), false, false)
	f.Add(unhexed("0000000000020102aabbccdd"), true, true)
	f.Add([]byte{0xff, 0xff}, true, true)
	f.Fuzz(func(t *testing.T, b []byte, markers, crc bool) {
		d := deframer{markers: markers, crc: crc}
		p, err := d.read(reader(b))
		if err != nil {
			return
		}
		if len(p.Octets) > len(b) || len(p.Faults) > 0 {
			return
		}
		again := framer{markers: markers, crc: crc}
		got := again.frame(p.ULPDU, Flaw{CRC: func(c uint32) uint32 {
			if crc {
				return c
			}
			return p.CRC
		}})
		if !bytes.Equal(got, b[:len(got)]) {
			t.Errorf("%x is made into %x", b[:len(got)], got)
		}
	})
}

func unhexed(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}
