package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"urnic/internal/test/tshark"
)

// datagrams returns what a capture has of UDP.
func datagrams(t testing.TB, file []byte) ([]At, []Datagram) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var at []At
	var all []Datagram
	err = ReadDatagrams(t.Context(), r, func(a At, d *Datagram) error {
		kept := *d
		kept.Data = bytes.Clone(d.Data)
		at, all = append(at, a), append(all, kept)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at, all
}

func TestRecordedDatagramsAreReadBack(t *testing.T) {
	none := netip.AddrPort{}
	for _, tc := range []struct {
		from, to netip.AddrPort
		longest  int
	}{
		{netip.MustParseAddrPort("127.0.0.1:7001"), netip.MustParseAddrPort("127.0.0.2:7000"), 65507},
		{netip.MustParseAddrPort("[::1]:7001"), netip.MustParseAddrPort("[fe80::1%eth0]:7000"), 65527},
		{netip.MustParseAddrPort("[::ffff:127.0.0.1]:7001"), netip.MustParseAddrPort("127.0.0.2:7000"), 65507},
		{none, netip.MustParseAddrPort("127.0.0.2:7000"), 65507},
		{netip.MustParseAddrPort("127.0.0.2:7000"), none, 65507},
	} {
		sizes := []int{0, 1, 2, 27, 1444, 5688, tc.longest}
		before := time.Now()
		file := recording(t, func(w *Writer) {
			for _, n := range sizes {
				w.Datagram(tc.from, tc.to, pattern(n)[:n/3], nil, pattern(n)[n/3:])
				w.Datagram(tc.to, tc.from, pattern(n))
			}
			w.Datagram(tc.from, tc.to, pattern(tc.longest+1)) // no packet of IP holds it
		})
		at, all := datagrams(t, file)
		if len(all) != 2*len(sizes) {
			t.Fatalf("%v: %d datagrams", tc.from, len(all))
		}
		for i, d := range all {
			same := d.Src == all[0].Src && d.Dst == all[0].Dst
			if i%2 == 1 { // a stand-in is that of the sender, or of the receiver
				same = (d.Src == all[0].Dst || !tc.to.IsValid()) && (d.Dst == all[0].Src || !tc.from.IsValid())
			}
			if !same || !bytes.Equal(d.Data, pattern(sizes[i/2])) || d.Missing != 0 {
				t.Errorf("%d bytes from %v to %v, want %d", len(d.Data), d.Src, d.Dst, sizes[i/2])
			}
			if at[i].Packet != i+1 || at[i].BadChecksum || at[i].Time.Before(before.Truncate(time.Microsecond)) {
				t.Errorf("datagram %d: %+v", i, at[i])
			}
		}
		if tc.from.IsValid() && all[0].Src != plain(tc.from) || tc.to.IsValid() && all[0].Dst != plain(tc.to) || !all[0].Src.IsValid() || !all[0].Dst.IsValid() {
			t.Errorf("from %v to %v, want %v, %v", all[0].Src, all[0].Dst, tc.from, tc.to)
		}
	}
}

func TestChecksumsOfRecordedDatagramsAreRight(t *testing.T) {
	for family, ends := range families {
		// The sum of one of these is 0.
		file := recording(t, func(w *Writer) {
			for n := range 1 << 16 {
				w.Datagram(ends[0], ends[1], []byte{byte(n >> 8), byte(n)})
			}
		})
		zeros := 0
		for _, p := range packets(t, file) {
			ip := p.Data[ethLen:]
			udp, pseudo := ip[len(ip)-udpLen-2:], []byte{0, protUDP, 0, udpLen + 2}
			if ip[0]>>4 == 4 {
				pseudo = append(pseudo, ip[12:20]...)
				if plainSum(ip[:ip4Len]) != 0 {
					t.Fatalf("%s: IP checksum", family)
				}
			} else {
				pseudo = append(pseudo, ip[8:40]...)
			}
			field := binary.BigEndian.Uint16(udp[6:])
			if field == 0xFFFF {
				zeros++
			}
			if field == 0 || plainSum(pseudo, udp) != 0 {
				t.Fatalf("%s: UDP checksum 0x%04x of %x", family, field, udp[udpLen:])
			}
		}
		if zeros == 0 {
			t.Errorf("%s: no sum is 0", family)
		}
	}
}

func TestChecksumsOfDatagramsAreJudged(t *testing.T) {
	for family, ends := range families {
		frame := frameOf(t, ends, pattern(100))
		at := len(frame) - 100 - udpLen
		edit := func(f func(b []byte)) []byte {
			b := slices.Clone(frame)
			f(b)
			return b
		}
		pseudo := onesSum(protUDP, frame[ethLen+12:ethLen+20])
		if family == "IPv6" {
			pseudo = onesSum(protUDP, frame[ethLen+8:ethLen+40])
		}
		for name, tc := range map[string]struct {
			frame []byte
			bad   bool
		}{
			"right":            {frame, false},
			"none":             {edit(func(b []byte) { b[at+6], b[at+7] = 0, 0 }), false},
			"wrong":            {edit(func(b []byte) { b[at+7] ^= 1 }), true},
			"damaged data":     {edit(func(b []byte) { b[len(b)-1] ^= 1 }), true},
			"left to the card": {edit(func(b []byte) { binary.BigEndian.PutUint16(b[at+6:], ^foldSum(pseudo+100+udpLen)) }), false},
		} {
			c := newCollector()
			c.add(0, tc.frame)
			if len(c.got) != 1 || c.at[0].BadChecksum != tc.bad {
				t.Errorf("%s, %s: %+v", family, name, c.at)
			}
		}
		// Of a damaged datagram that came in fragments, too.
		c := newCollector()
		c.add(0, fragments(edit(func(b []byte) { b[len(b)-1] ^= 1 }), 48, 1)...)
		if len(c.got) != 1 || !c.at[0].BadChecksum {
			t.Errorf("%s, in fragments: %+v", family, c.at)
		}
	}
}

func TestDatagramsThatWereCapturedInPart(t *testing.T) {
	for family, ends := range families {
		frame := frameOf(t, ends, pattern(100))
		c := newCollector()
		c.asm.Add(&Packet{Number: 1, Link: layers.LinkTypeEthernet, Length: len(frame), Data: frame[:len(frame)-30]})
		if len(c.got) != 1 || !bytes.Equal(c.got[0].Data, pattern(100)[:70]) || c.got[0].Missing != 30 || c.at[0].BadChecksum {
			t.Errorf("%s: %+v", family, c.got)
		}
	}
}

func TestReadDatagramsEndsWithAnError(t *testing.T) {
	ends := families["IPv4"]
	file := recording(t, func(w *Writer) {
		for range 3 {
			w.Datagram(ends[0], ends[1], []byte("abc"))
		}
	})
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	n := 0
	err = ReadDatagrams(t.Context(), r, func(At, *Datagram) error {
		n++
		return enough
	})
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestTsharkReadsRecordedDatagrams(t *testing.T) {
	file := recording(t, func(w *Writer) {
		for _, ends := range families {
			w.Datagram(ends[0], ends[1], pattern(1), pattern(1443))
		}
	})
	lines := tshark.LinesOf(t, file, "-d", "udp.port==7000,data", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-e", "udp.srcport", "-e", "udp.length", "-e", "udp.checksum.status")
	for _, l := range lines {
		if l != "7001\t1452\t1" {
			t.Errorf("%q", l)
		}
	}
	if len(lines) != len(families) {
		t.Errorf("%d lines", len(lines))
	}
}
