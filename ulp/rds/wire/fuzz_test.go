package wire

import (
	"bytes"
	"testing"
)

// What decodes encodes to the same bytes again, whatever it is.
func FuzzHeader(f *testing.F) {
	f.Add((&Header{Sequence: 1, Len: 9, SourcePort: 1, DestPort: 2, Flags: AckRequired}).AppendTo(nil, true))
	f.Add((&Header{Flags: CongestionBitmap, Len: MapLen}).AppendTo(nil, false))
	f.Add((&Header{Sequence: 1, SourcePort: 1, Extensions: [16]byte{5, 0, 8, 6, 0, 0, 0, 1}}).AppendTo(nil, true))
	for _, x := range [][16]byte{
		{5, 0, 8, 6, 0, 0, 0, 7, 8, 0, 15}, {8, 1, 6, 0, 0, 0, 7}, {2, 1, 2, 3, 4, 4, 0, 0, 0, 9, 2}, {7, 0, 0, 0, 1, 9, 1, 2, 3, 4, 1},
	} {
		f.Add((&Header{Sequence: 1, SourcePort: 1, Flags: MoreExtensions, Extensions: x}).AppendTo(nil, true))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			if fault(err) == 255 {
				t.Fatalf("an error without a type: %v", err)
			}
			return
		}
		got := h.AppendTo(nil, h.Checksum != 0)
		if !bytes.Equal(got, b[:HeaderLen]) && (h.Checksum != 0xffff || Sum((*[HeaderLen]byte)(got)) != 0xffff) {
			t.Errorf("%x\nencodes as\n%x", b[:HeaderLen], got)
		}
		_ = h.String()
		if err := h.Check(); err != nil && fault(err) == 255 {
			t.Errorf("an error without a type: %v", err)
		}
		x, err := ParseExtensions(h.Extensions)
		if err != nil {
			return
		}
		again, err := x.Encode()
		if err != nil {
			t.Fatalf("%v does not encode: %v", &x, err)
		}
		// What is skipped does not come again.
		const sent = 1<<(ExtGeneration+1) - 1 | 1<<ExtSportIdx | 1<<ExtUrnic
		want := x
		want.Has &= sent
		if y, err := ParseExtensions(again); err != nil || y != want {
			t.Errorf("%v encodes as %v, %v", &x, &y, err)
		}
	})
}

func FuzzPrivate(f *testing.F) {
	for _, tt := range privates {
		f.Add(unhex(f, tt.hex), tt.want.Source.Is6())
	}
	f.Fuzz(func(t *testing.T, b []byte, ipv6 bool) {
		v, err := ParsePrivate(b, ipv6)
		if err != nil {
			if fault(err) == 255 {
				t.Fatalf("an error without a type: %v", err)
			}
			return
		}
		again, err := v.AppendTo(nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := ParsePrivate(again, v.Source.Unmap().Is6())
		if err != nil || w.Source != v.Source.Unmap() || w.Dest != v.Dest.Unmap() || w.Credit != v.Credit || w.AckSequence != v.AckSequence {
			t.Errorf("%v encodes as %v, %v", &v, &w, err)
		}
		_, _, _ = v.Agree()
	})
}
