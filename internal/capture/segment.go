package capture

import (
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// A segment is one TCP segment as it was captured.
type segment struct {
	src, dst netip.AddrPort
	seq, ack uint32
	syn, fin bool
	rst, ok  bool // ok: the acknowledgement is valid
	data     []byte
	missing  uint32 // octets of payload behind data that were not captured
}

// size returns how many octets of payload the segment had.
func (s *segment) size() uint32 { return uint32(len(s.data)) + s.missing }

// A verdict says what a packet is to the Assembler.
type verdict int

const (
	isTCP      verdict = iota
	isFragment         // of an IP packet
	isOther            // something else than TCP, or damaged
	isUnknown          // its link type is not known
)

// The raw IP link types of older systems have no names in gopacket.
const (
	linkRawBSD     layers.LinkType = 12
	linkRawOpenBSD layers.LinkType = 14
)

// A decoder takes packets apart with gopacket's layers, which it reuses.
type decoder struct {
	eth  layers.Ethernet
	vlan layers.Dot1Q
	sll  layers.LinuxSLL
	sll2 layers.LinuxSLL2
	ip4  layers.IPv4
	ip6  layers.IPv6
	tcp  layers.TCP

	parsers map[gopacket.LayerType]*gopacket.DecodingLayerParser // by first layer
	found   []gopacket.LayerType
}

func newDecoder() *decoder {
	return &decoder{parsers: make(map[gopacket.LayerType]*gopacket.DecodingLayerParser)}
}

// firstLayer returns the layer with which a packet of the link type begins,
// and the packet without what gopacket need not see.
func firstLayer(link layers.LinkType, b []byte) (gopacket.LayerType, []byte) {
	switch link {
	case layers.LinkTypeEthernet:
		return layers.LayerTypeEthernet, b
	case layers.LinkTypeLinuxSLL:
		return layers.LayerTypeLinuxSLL, b
	case layers.LinkTypeLinuxSLL2:
		return layers.LayerTypeLinuxSLL2, b
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		// The address family in front has a number of its own on each system;
		// the IP version behind it says the same.
		return ipLayer(b[min(4, len(b)):])
	case layers.LinkTypeRaw, linkRawBSD, linkRawOpenBSD, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		return ipLayer(b)
	default:
		return gopacket.LayerTypeZero, nil
	}
}

func ipLayer(b []byte) (gopacket.LayerType, []byte) {
	if len(b) > 0 && b[0]>>4 == 6 {
		return layers.LayerTypeIPv6, b
	}
	return layers.LayerTypeIPv4, b
}

func (d *decoder) parser(first gopacket.LayerType) *gopacket.DecodingLayerParser {
	p := d.parsers[first]
	if p == nil {
		p = gopacket.NewDecodingLayerParser(first)
		p.SetDecodingLayerContainer(gopacket.DecodingLayerArray(nil))
		for _, l := range []gopacket.DecodingLayer{&d.tcp, &d.ip4, &d.ip6, &d.eth, &d.vlan, &d.sll, &d.sll2} {
			p.AddDecodingLayer(l)
		}
		p.IgnoreUnsupported = true
		d.parsers[first] = p
	}
	return p
}

// decode finds the TCP segment in p. Its data alias p.Data.
func (d *decoder) decode(p *Packet) (segment, verdict) {
	first, b := firstLayer(p.Link, p.Data)
	if first == gopacket.LayerTypeZero {
		return segment{}, isUnknown
	}
	d.found = d.found[:0]
	if err := d.parser(first).DecodeLayers(b, &d.found); err != nil {
		return segment{}, isOther
	}
	var s segment
	var src, dst netip.Addr
	var whole, have int // octets of the IP payload, and of those the captured ones
	for _, l := range d.found {
		switch l {
		case layers.LayerTypeIPv4:
			if d.ip4.Flags&layers.IPv4MoreFragments != 0 || d.ip4.FragOffset != 0 {
				return segment{}, isFragment
			}
			src, dst = addr(d.ip4.SrcIP), addr(d.ip4.DstIP)
			whole, have = int(d.ip4.Length)-len(d.ip4.Contents), len(d.ip4.Payload)
		case layers.LayerTypeIPv6:
			if d.ip6.NextLayerType() == layers.LayerTypeIPv6Fragment {
				return segment{}, isFragment
			}
			src, dst = addr(d.ip6.SrcIP), addr(d.ip6.DstIP)
			whole, have = int(d.ip6.Length), len(d.ip6.Payload)
			if d.ip6.HopByHop != nil {
				whole -= d.ip6.HopByHop.ActualLength
			}
		case layers.LayerTypeTCP:
			s = segment{
				src: netip.AddrPortFrom(src, uint16(d.tcp.SrcPort)),
				dst: netip.AddrPortFrom(dst, uint16(d.tcp.DstPort)),
				seq: d.tcp.Seq, ack: d.tcp.Ack,
				syn: d.tcp.SYN, fin: d.tcp.FIN, rst: d.tcp.RST, ok: d.tcp.ACK,
				data: d.tcp.Payload,
			}
			if whole > have {
				s.missing = uint32(whole - have)
			}
			return s, isTCP
		}
	}
	return segment{}, isOther
}

func addr(ip []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a
}
