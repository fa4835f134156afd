package capture

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// wrap puts a packet's IP part under another link layer.
func wrap(p *Packet, link layers.LinkType, head ...byte) *Packet {
	q := *p
	q.Link = link
	q.Data = append(head, p.Data[ethLen:]...)
	return &q
}

func TestLinkTypes(t *testing.T) {
	type linkCase struct {
		link layers.LinkType
		head func(v6 bool) []byte
	}
	etherType := func(v6 bool) []byte {
		if v6 {
			return []byte{0x86, 0xDD}
		}
		return []byte{0x08, 0x00}
	}
	cases := map[string]linkCase{
		"Ethernet": {layers.LinkTypeEthernet, func(v6 bool) []byte { return append(make([]byte, 12), etherType(v6)...) }},
		"VLAN": {layers.LinkTypeEthernet, func(v6 bool) []byte {
			return append(append(make([]byte, 12), 0x81, 0x00, 0x00, 0x07), etherType(v6)...)
		}},
		"QinQ": {layers.LinkTypeEthernet, func(v6 bool) []byte {
			return append(append(make([]byte, 12), 0x88, 0xA8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x09), etherType(v6)...)
		}},
		"Linux cooked": {layers.LinkTypeLinuxSLL, func(v6 bool) []byte {
			return append([]byte{0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}, etherType(v6)...)
		}},
		"Linux cooked 2": {layers.LinkTypeLinuxSLL2, func(v6 bool) []byte {
			return append(etherType(v6), make([]byte, 18)...)
		}},
		"raw":         {layers.LinkTypeRaw, func(bool) []byte { return nil }},
		"raw BSD":     {linkRawBSD, func(bool) []byte { return nil }},
		"raw OpenBSD": {linkRawOpenBSD, func(bool) []byte { return nil }},
		"IPv4":        {layers.LinkTypeIPv4, func(bool) []byte { return nil }},
		"IPv6":        {layers.LinkTypeIPv6, func(bool) []byte { return nil }},
		"loopback":    {layers.LinkTypeNull, func(v6 bool) []byte { return []byte{2, 0, 0, 0} }},
		"loop":        {layers.LinkTypeLoop, func(v6 bool) []byte { return []byte{0, 0, 0, 24} }},
	}
	for name, c := range cases {
		for _, v6 := range []bool{false, true} {
			w := newWire(t)
			a, b := ourAddr, peerAddr
			if v6 {
				a, b = netip.MustParseAddrPort("[2001:db8::1]:40000"), netip.MustParseAddrPort("[2001:db8::2]:7")
			}
			w.ends[0].init(a, b, isnA)
			w.asm.Add(wrap(w.packet(Opener, 0, -1, flagSYN, nil), c.link, c.head(v6)...))
			w.asm.Add(wrap(w.packet(Opener, 0, -1, 0, []byte("abc")), c.link, c.head(v6)...))
			if len(w.all) != 1 {
				t.Errorf("%s v6=%t: %d connections; %+v", name, v6, len(w.all), w.asm.Stats())
				continue
			}
			w.want("a", "abc", "")
		}
	}
}

func TestTrailerOfAShortFrameIsNotData(t *testing.T) {
	w := newWire(t)
	w.handshake()
	p := w.packet(Opener, 0, 0, 0, []byte("abc"))
	p.Data = append(p.Data, 0, 0, 0)
	w.asm.Add(p)
	w.want("a", "abc", "")
}

func TestPacketsOfNoUseAreCounted(t *testing.T) {
	w := newWire(t)
	p := w.packet(Opener, 0, 0, 0, []byte("abc"))
	fragment := *p
	fragment.Data = slices.Clone(p.Data)
	binary.BigEndian.PutUint16(fragment.Data[ethLen+6:], 0x2000) // more fragments
	w.asm.Add(&fragment)

	v6 := newWire(t)
	v6.ends[0].init(netip.MustParseAddrPort("[::1]:2"), netip.MustParseAddrPort("[::2]:1"), 0)
	fragment6 := v6.packet(Opener, 0, 0, 0, []byte("abcdefgh"))
	fragment6.Data[ethLen+6] = 44 // fragment header
	w.asm.Add(fragment6)

	udp := *p
	udp.Data = slices.Clone(p.Data)
	udp.Data[ethLen+9] = 17
	w.asm.Add(&udp)
	for n := range len(p.Data) {
		cut := *p
		cut.Data = p.Data[:n]
		w.asm.Add(&cut)
	}
	unknown := *p
	unknown.Link = layers.LinkTypeIEEE802_11
	w.asm.Add(&unknown)
	w.asm.End()
	st := w.asm.Stats()
	if st.Fragments != 2 || st.Unknown != 1 || st.Packets != 4+len(p.Data) {
		t.Errorf("%+v", st)
	}
	// Of the cut packets those with a whole TCP header count.
	if st.TCP != 3 {
		t.Errorf("%d TCP packets", st.TCP)
	}
}

func TestHopByHopOptionsArePassedOver(t *testing.T) {
	w := newWire(t)
	w.ends[0].init(netip.MustParseAddrPort("[2001:db8::1]:40000"), netip.MustParseAddrPort("[2001:db8::2]:7"), isnA)
	for _, part := range []string{"", "abc", "defgh"} {
		p := w.packet(Opener, 0, -1, flagSYN, nil)
		if part != "" {
			p = w.packet(Opener, strings.Index("abcdefgh", part), -1, 0, []byte(part))
		}
		ip := p.Data[ethLen:]
		ip[6] = 0 // hop-by-hop options come next
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+8)
		options := []byte{protTCP, 0, 1, 4, 0, 0, 0, 0}
		p.Data = slices.Concat(p.Data[:ethLen+ip6Len], options, ip[ip6Len:])
		if part == "defgh" {
			p.Data = p.Data[:len(p.Data)-2]
		}
		w.asm.Add(p)
	}
	w.want("aah", "abcdef??", "")
}
