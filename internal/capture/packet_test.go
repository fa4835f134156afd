package capture

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// A packetCollector keeps what an Assembler finds of RDP over IP.
type packetCollector struct {
	got []Datagram
	at  []At
}

func collectPackets(asm *Assembler) *packetCollector {
	c := &packetCollector{}
	asm.RDP = func(at At, d *Datagram) {
		kept := *d
		kept.Data = bytes.Clone(d.Data)
		c.got, c.at = append(c.got, kept), append(c.at, at)
	}
	return c
}

func TestRecordedPacketsAreReadBack(t *testing.T) {
	v4, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	for _, tc := range []struct {
		from, to netip.Addr
		longest  int
	}{
		{v4, other, 65515},
		{netip.MustParseAddr("::1"), netip.MustParseAddr("fe80::1%eth0"), 65535},
		{netip.MustParseAddr("::ffff:127.0.0.1"), other, 65515},
		{netip.Addr{}, other, 65515},
		{other, netip.Addr{}, 65515},
	} {
		sizes := []int{0, 1, 18, 1400, tc.longest}
		file := recording(t, func(w *Writer) {
			for _, n := range sizes {
				w.Packet(tc.from, tc.to, ProtocolRDP, pattern(n)[:n/3], nil, pattern(n)[n/3:])
			}
			w.Packet(tc.from, tc.to, ProtocolRDP, pattern(tc.longest+1)) // no packet of IP holds it
			w.Packet(tc.from, tc.to, 99, pattern(10))                    // not RDP
		})
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		asm := NewAssembler(func(*Conn) Consumer { return nil })
		c := collectPackets(asm)
		if err := asm.ReadAll(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if len(c.got) != len(sizes) {
			t.Fatalf("%v: %d packets", tc.from, len(c.got))
		}
		for i, d := range c.got {
			if !bytes.Equal(d.Data, pattern(sizes[i])) || d.Missing != 0 || d.Src.Port() != 0 || d.Dst.Port() != 0 || c.at[i].Packet != i+1 {
				t.Errorf("%d bytes from %v to %v, want %d", len(d.Data), d.Src, d.Dst, sizes[i])
			}
			if from := d.Src.Addr(); tc.from.IsValid() && from != tc.from.Unmap() || !from.IsValid() || !d.Dst.Addr().IsValid() {
				t.Errorf("from %v, want %v", from, tc.from)
			}
		}
	}
}

// Segments are recorded over UDP if they have ports of it, and over IP else.
func TestRecordedSegments(t *testing.T) {
	a, b, none := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2"), netip.AddrPort{}
	file := recording(t, func(w *Writer) {
		w.Segment(netip.AddrPortFrom(a, 0), netip.AddrPortFrom(b, 0), pattern(20))
		w.Segment(netip.AddrPortFrom(a, 1), netip.AddrPortFrom(b, 2), pattern(21))
		w.Segment(none, netip.AddrPortFrom(b, 2), pattern(22))
		w.Segment(none, netip.AddrPortFrom(b, 0), pattern(23))
		w.Segment(none, none, pattern(24))
	})
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	asm := NewAssembler(func(*Conn) Consumer { return nil })
	c := collectPackets(asm)
	var sizes []int
	asm.UDP = func(_ At, d *Datagram) { sizes = append(sizes, len(d.Data)) }
	if err := asm.ReadAll(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sizes, []int{21, 22, 24}) || len(c.got) != 2 || len(c.got[0].Data) != 20 || len(c.got[1].Data) != 23 {
		t.Errorf("UDP %d, IP %+v", sizes, c.got)
	}
}

// Packets that came in fragments, or of which the capture has only a part.
func TestPacketsInPieces(t *testing.T) {
	for family, ends := range families {
		file := recording(t, func(w *Writer) { w.Packet(ends[0].Addr(), ends[1].Addr(), ProtocolRDP, pattern(100)) })
		frame := packets(t, file)[0].Data
		asm := NewAssembler(func(*Conn) Consumer { return nil })
		c := collectPackets(asm)
		for _, f := range fragments(frame, 48, 1) {
			asm.Add(&Packet{Link: layers.LinkTypeEthernet, Length: len(f), Data: f})
		}
		asm.Add(&Packet{Link: layers.LinkTypeEthernet, Length: len(frame), Data: frame[:len(frame)-30]})
		if len(c.got) != 2 || !bytes.Equal(c.got[0].Data, pattern(100)) || !bytes.Equal(c.got[1].Data, pattern(70)) || c.got[1].Missing != 30 {
			t.Errorf("%s: %+v", family, c.got)
		}
	}
}
