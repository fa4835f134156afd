package wire

import (
	"net/netip"
	"testing"
)

// What every segment goes through allocates nothing.
func TestTheHotPathDoesNotAllocate(t *testing.T) {
	room := make([]byte, 0, 2*MaxHeader)
	data := make([]byte, 100)
	p := &Pseudo{netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00::2")}
	syn := Header{Flags: SYN | ACK, Source: 1, Dest: 2, MaxOutstanding: 32, MaxSegment: 1400}
	eack := Header{Flags: ACK | EACK, Source: 1, Dest: 2, EACKs: make([]uint32, MaxEACKs)}
	back := Header{EACKs: make([]uint32, 0, MaxEACKs)}
	for version := uint8(1); version <= 2; version++ {
		syn.Version, eack.Version = version, version
		for name, f := range map[string]func(){
			"SYN": func() {
				b := syn.AppendTo(room, nil, p)
				if _, err := back.Parse(b, p); err != nil || len(b) != syn.Len() {
					t.Error(err)
				}
			},
			"EACK and data": func() {
				b := eack.AppendTo(room, data, nil)
				if d, err := back.Parse(b, nil); err != nil || len(d) != len(data) || EACKRoom(1400, len(d)) != MaxEACKs {
					t.Error(err)
				}
			},
			"Check": func() {
				if err := eack.Check(100); err != nil || !eack.Numbered(100) {
					t.Error(err)
				}
			},
		} {
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("version %d, %s: %v allocations", version, name, n)
			}
		}
	}
}

// Data that is where it goes already is not moved.
func TestDataInItsPlace(t *testing.T) {
	h := Header{Version: 2, Flags: ACK, Source: 1, Dest: 2}
	room := make([]byte, 3+FixedLen+5)
	data := room[3+FixedLen:]
	copy(data, "hello")
	b := h.AppendTo(room[:3], data, nil)
	if got, err := h.Parse(b[3:], nil); err != nil || string(got) != "hello" || &got[0] != &data[0] {
		t.Errorf("%q, %v", got, err)
	}
}

func BenchmarkAppendTo(b *testing.B) {
	benchmark(b, func(h *Header, room, data []byte) { h.AppendTo(room, data, nil) })
}

func BenchmarkParse(b *testing.B) {
	var segment []byte
	back := Header{EACKs: make([]uint32, 0, MaxEACKs)}
	benchmark(b, func(h *Header, room, data []byte) {
		if len(segment) != h.Len()+len(data) || segment[0]&versionMask != h.Version {
			segment = h.AppendTo(room, data, nil)
		}
		if _, err := back.Parse(segment, nil); err != nil {
			b.Fatal(err)
		}
	})
}

// benchmark measures f with segments of some sizes.
func benchmark(b *testing.B, f func(h *Header, room, data []byte)) {
	room := make([]byte, 0, MaxHeader+MaxData)
	for _, bm := range []struct {
		name  string
		n     int
		eacks int
	}{{"ACK", 0, 0}, {"EACK32", 0, 32}, {"data1400", 1400, 0}, {"data65000", 65000, 0}} {
		for version := uint8(1); version <= 2; version++ {
			h := Header{Version: version, Flags: ACK, Source: 1, Dest: 2, EACKs: make([]uint32, bm.eacks)}
			if bm.eacks > 0 {
				h.Flags |= EACK
			}
			data := make([]byte, bm.n)
			b.Run(bm.name+"/v"+string('0'+version), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(h.Len() + bm.n))
				for b.Loop() {
					f(&h, room, data)
				}
			})
		}
	}
}
