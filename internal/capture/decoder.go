package capture

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// maxLayers bounds how deep encapsulations may be nested.
const maxLayers = 32

// The EtherTypes of outer VLAN tags that switches used before IEEE 802.1ad gave them
// 0x88a8. gopacket does not know them.
const (
	etherTypeQinQ1 layers.EthernetType = 0x9100
	etherTypeQinQ2 layers.EthernetType = 0x9200
	etherTypeQinQ3 layers.EthernetType = 0x9300
)

// The raw IP link types of older systems, and that of MPLS, have no names in gopacket.
const (
	linkRawBSD     layers.LinkType = 12
	linkRawOpenBSD layers.LinkType = 14
	linkMPLS       layers.LinkType = 219
)

// A layer says what the next bytes of a packet are.
type layer uint8

const (
	layerOther layer = iota // nothing that could hold TCP
	layerUnread
	layerFragment
	layerEthernet
	layerVLAN
	layerSLL
	layerSLL2
	layerLLC
	layerSNAP
	layerMPLS
	layerPPPoE
	layerPPP
	layerIP // of the version that its first byte says
	layerIP4
	layerIP6
	layerIP6Options // hop-by-hop or destination options
	layerIP6Routing
	layerIP6Fragment
	layerAH
	layerGRE
	layerEtherIP
	layerERSPAN
	layerUDP
	layerVXLAN
	layerGeneve
	layerGTP
	layerRoCE
	layerDatagram // UDP on a port of no encapsulation
	layerRDP
	layerTCP
)

// layerNames are those that a damaged packet is reported under.
var layerNames = [...]string{
	layerEthernet: "Ethernet", layerVLAN: "VLAN", layerSLL: "Linux cooked", layerSLL2: "Linux cooked",
	layerLLC: "LLC", layerSNAP: "SNAP", layerMPLS: "MPLS", layerPPPoE: "PPPoE", layerPPP: "PPP",
	layerIP: "IP", layerIP4: "IPv4", layerIP6: "IPv6", layerIP6Options: "IPv6 options", layerIP6Routing: "IPv6 routing",
	layerIP6Fragment: "IPv6 fragment", layerAH: "IPsec AH", layerGRE: "GRE", layerEtherIP: "EtherIP",
	layerERSPAN: "ERSPAN", layerUDP: "UDP", layerVXLAN: "VXLAN", layerGeneve: "Geneve", layerGTP: "GTP", layerTCP: "TCP",
}

// A decoder decodes packets with gopacket's layers, which it reuses.
type decoder struct {
	eth    layers.Ethernet
	vlan   layers.Dot1Q
	sll    layers.LinuxSLL
	sll2   layers.LinuxSLL2
	llc    layers.LLC
	snap   layers.SNAP
	ip4    layers.IPv4
	ext    layers.IPv6ExtensionSkipper
	gre    layers.GRE
	erspan layers.ERSPANII
	udp    layers.UDP
	vxlan  layers.VXLAN
	geneve layers.Geneve
	gtp    layers.GTPv1U

	src, dst netip.Addr
	missing  int    // bytes of the IP payload that were not captured
	cut      int    // bytes of the packet that were not captured
	unread   Unread // of layerUnread
	current  layer  // the one that is being taken off
	tunnel   bool   // the packet is within UDP, so that it may be something else after all

	joiner joiner
	joined int // fragments that came before and that are a packet together with this one
	now    time.Time
}

func newDecoder() *decoder { return &decoder{} }

// firstLayer returns with what a packet of the link type begins, and the packet
// without what is of no use.
func firstLayer(link layers.LinkType, b []byte) (layer, []byte, bool) {
	switch link {
	case layers.LinkTypeEthernet:
		return layerEthernet, b, true
	case layers.LinkTypeLinuxSLL:
		return layerSLL, b, true
	case layers.LinkTypeLinuxSLL2:
		return layerSLL2, b, true
	case layers.LinkTypePPP:
		return layerPPP, b, true
	case layers.LinkTypePPP_HDLC:
		// Address and control are those of PPP (RFC 1662), or Cisco's, whose
		// protocol is an EtherType.
		if len(b) >= 4 && b[0] != 0xFF {
			return etherLayer(layers.EthernetType(binary.BigEndian.Uint16(b[2:]))), b[4:], true
		}
		return layerPPP, b, true
	case layers.LinkTypePPPEthernet:
		return layerPPPoE, b, true
	case layers.LinkTypeC_HDLC:
		if len(b) < 4 {
			return layerEthernet, nil, true // too short for either
		}
		return etherLayer(layers.EthernetType(binary.BigEndian.Uint16(b[2:]))), b[4:], true
	case linkMPLS:
		return layerMPLS, b, true
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		// The address family in front has a number of its own on each system;
		// the IP version behind it says the same.
		return layerIP, b[min(4, len(b)):], true
	case layers.LinkTypeRaw, linkRawBSD, linkRawOpenBSD, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		return layerIP, b, true
	default:
		return 0, nil, false
	}
}

// etherLayer returns what follows an EtherType; layerUnread if that may hold TCP and
// is not known.
func etherLayer(t layers.EthernetType) layer {
	switch t {
	case layers.EthernetTypeIPv4:
		return layerIP4
	case layers.EthernetTypeIPv6:
		return layerIP6
	case layers.EthernetTypeDot1Q, layers.EthernetTypeQinQ, etherTypeQinQ1, etherTypeQinQ2, etherTypeQinQ3:
		return layerVLAN
	case layers.EthernetTypeMPLSUnicast, layers.EthernetTypeMPLSMulticast:
		return layerMPLS
	case layers.EthernetTypePPPoESession:
		return layerPPPoE
	case layers.EthernetTypePPP:
		return layerPPP
	case layers.EthernetTypeTransparentEthernetBridging:
		return layerEthernet
	case layers.EthernetTypeERSPAN:
		return layerERSPAN
	case layers.EthernetTypeLLC:
		return layerLLC
	default:
		if quiet[t] {
			return layerOther
		}
		return layerUnread
	}
}

// quiet are EtherTypes that carry no IP, though they are in many captures.
var quiet = map[layers.EthernetType]bool{
	layers.EthernetTypeARP: true, layers.EthernetTypePPPoEDiscovery: true, layers.EthernetTypeEthernetCTP: true,
	layers.EthernetTypeCiscoDiscovery: true, layers.EthernetTypeNortelDiscovery: true,
	layers.EthernetTypeLinkLayerDiscovery: true, layers.EthernetTypeEAPOL: true, layers.EthernetTypeMerakiDiscoveryProtocol: true,
	0x0842: true,               // Wake-on-LAN
	0x8035: true,               // Reverse ARP
	0x8808: true,               // Ethernet flow control
	0x8809: true,               // LACP and other slow protocols
	0x8899: true,               // loop detection of switches
	0x88B5: true, 0x88B6: true, // experiments
	0x88E1: true, 0x8912: true, // HomePlug
	0x88F7: true,               // Precision Time Protocol
	0x8902: true,               // connectivity fault management
	0x8906: true, 0x8914: true, // Fibre Channel over Ethernet
	0x8915: true, // RDMA over Converged Ethernet, version 1
	0x893A: true, // IEEE 1905
}

// ipLayer returns what follows an IP header whose protocol is p.
func ipLayer(p layers.IPProtocol, v6 bool) layer {
	switch p {
	case layers.IPProtocolTCP:
		return layerTCP
	case layers.IPProtocolUDP:
		return layerUDP
	case layers.IPProtocolIPv4, layers.IPProtocolIPIP:
		return layerIP4
	case layers.IPProtocolIPv6:
		return layerIP6
	case layers.IPProtocolGRE:
		return layerGRE
	case ProtocolRDP:
		return layerRDP
	case layers.IPProtocolEtherIP:
		return layerEtherIP
	case layers.IPProtocolMPLSInIP:
		return layerMPLS
	case layers.IPProtocolAH:
		return layerAH
	case layers.IPProtocolICMPv4, layers.IPProtocolIGMP, layers.IPProtocolICMPv6, layers.IPProtocolSCTP, layers.IPProtocolOSPF,
		layers.IPProtocolVRRP, layers.IPProtocolUDPLite, layers.IPProtocolNoNextHeader,
		8, 9, 33, 46, 88, 103, 113: // EGP, IGP, DCCP, RSVP, EIGRP, PIM, PGM
		return layerOther
	default:
	}
	if !v6 {
		return layerUnread
	}
	switch p {
	case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Destination, 135, 139, 140: // Mobility, HIP, Shim6
		return layerIP6Options
	case layers.IPProtocolIPv6Routing:
		return layerIP6Routing
	case layers.IPProtocolIPv6Fragment:
		return layerIP6Fragment
	default:
		return layerUnread
	}
}

// next turns what follows into layerUnread with its reason, if it is not known.
func (d *decoder) next(l layer, kind UnreadKind, number uint16) layer {
	if l == layerUnread {
		d.unread = Unread{kind, number}
	}
	return l
}

func (d *decoder) ether(t layers.EthernetType) layer {
	return d.next(etherLayer(t), UnreadEtherType, uint16(t))
}

func (d *decoder) ip(p layers.IPProtocol, v6 bool) layer {
	return d.next(ipLayer(p, v6), UnreadIPProtocol, uint16(p))
}

// decode finds the TCP segment, the UDP datagram or the packet of RDP in p. Its data alias p.Data, unless it was
// put together from fragments. A panic of one of gopacket's
// layers means a damaged header, as for gopacket's own parser.
func (d *decoder) decode(p *Packet) (s segment, v verdict) {
	d.current = layerOther
	defer func() {
		if recover() != nil {
			s, v = segment{}, d.damaged(d.current)
		}
	}()
	return d.find(p)
}

func (d *decoder) find(p *Packet) (segment, verdict) {
	l, b, ok := firstLayer(p.Link, p.Data)
	if !ok {
		return segment{}, isUnknown
	}
	d.src, d.dst, d.missing, d.tunnel = netip.Addr{}, netip.Addr{}, 0, false
	d.now, d.joined = p.Time, 0
	d.cut = max(0, p.Length-len(p.Data))
	if l == layerUnread { // of a link type whose protocol is an EtherType
		d.unread = Unread{UnreadEtherType, binary.BigEndian.Uint16(p.Data[2:])}
	}
	for range maxLayers {
		switch l {
		case layerOther:
			return segment{}, isOther
		case layerFragment:
			return segment{}, isFragment
		case layerUnread:
			return segment{}, d.give()
		case layerRoCE:
			return d.roce(b)
		case layerDatagram:
			return d.user(b)
		case layerRDP:
			return d.bare(b)
		case layerTCP:
			s, ok := d.segment(b)
			if !ok {
				return segment{}, d.damaged(l)
			}
			return s, isTCP
		default:
		}
		d.current = l
		if l, b, ok = d.step(l, b); !ok {
			return segment{}, d.damaged(d.current)
		}
	}
	d.unread = Unread{UnreadNested, 0}
	return segment{}, d.give()
}

// roce takes what UDP carries on the port of RoCEv2, if all of it is there.
func (d *decoder) roce(b []byte) (segment, verdict) {
	if d.missing > 0 || int(d.udp.Length) != len(b)+8 {
		return segment{}, isOther
	}
	return segment{src: netip.AddrPortFrom(d.src, 0), dst: netip.AddrPortFrom(d.dst, 0), data: b}, isRoCE
}

// give gives a packet up for the reason in d.unread. What UDP carries on the port of an
// encapsulation may be something else, and is no loss.
func (d *decoder) give() verdict {
	if d.tunnel {
		return isOther
	}
	return isUnread
}

// damaged gives a packet up that is too short for a header or has a bad one.
func (d *decoder) damaged(l layer) verdict {
	d.unread = Unread{UnreadDamaged, uint16(l)}
	if d.cut > 0 {
		d.unread = Unread{UnreadShort, 0}
	}
	return d.give()
}

// step takes the header l off the front of b, and returns what follows it. It reports
// false if the header is too short or damaged.
func (d *decoder) step(l layer, b []byte) (layer, []byte, bool) {
	var err error
	switch l {
	case layerEthernet:
		err = d.eth.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		return d.ether(d.eth.EthernetType), d.eth.Payload, err == nil
	case layerVLAN:
		err = d.vlan.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		if d.vlan.Type < 0x600 { // a length: IEEE 802.3
			return layerLLC, d.vlan.Payload, err == nil
		}
		return d.ether(d.vlan.Type), d.vlan.Payload, err == nil
	case layerSLL:
		err = d.sll.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		return d.cooked(d.sll.EthernetType), d.sll.Payload, err == nil
	case layerSLL2:
		err = d.sll2.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		return d.cooked(d.sll2.ProtocolType), d.sll2.Payload, err == nil
	case layerLLC:
		err = d.llc.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		if err == nil && d.llc.DSAP == 0xAA && d.llc.SSAP == 0xAA {
			return layerSNAP, d.llc.Payload, true
		}
		return layerOther, nil, true // spanning tree and its like
	case layerSNAP:
		err = d.snap.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		if len(d.snap.OrganizationalCode) == 3 && d.snap.OrganizationalCode[0]|d.snap.OrganizationalCode[1]|d.snap.OrganizationalCode[2] != 0 {
			return layerOther, nil, err == nil // a protocol of a maker
		}
		return d.ether(d.snap.Type), d.snap.Payload, err == nil
	case layerMPLS:
		return d.mpls(b)
	case layerPPPoE:
		return pppoe(b)
	case layerPPP:
		return d.ppp(b)
	case layerIP, layerIP4, layerIP6:
		return d.internet(l, b)
	case layerIP6Options, layerIP6Routing, layerIP6Fragment, layerAH:
		return d.extension(l, b)
	case layerUDP:
		err = d.udp.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		return d.datagram(), d.udp.Payload, err == nil
	default:
		return d.tunnelled(l, b)
	}
}

// internet takes an IP header off.
func (d *decoder) internet(l layer, b []byte) (layer, []byte, bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	version := b[0] >> 4
	if l == layerIP4 && version != 4 || l == layerIP6 && version != 6 {
		return 0, nil, false
	}
	switch version {
	case 4:
		jumbo := len(b) >= 4 && b[2] == 0 && b[3] == 0 // left to the network card: gopacket takes all there is
		if err := d.ip4.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
			return 0, nil, false
		}
		d.src, d.dst = addr(d.ip4.SrcIP), addr(d.ip4.DstIP)
		d.missing = max(0, int(d.ip4.Length)-len(d.ip4.Contents)-len(d.ip4.Payload))
		if jumbo {
			d.missing = d.cut
		}
		if d.ip4.Flags&layers.IPv4MoreFragments != 0 || d.ip4.FragOffset != 0 {
			return d.join(&fragment{
				packetID: packetID{src: d.src, dst: d.dst, id: uint32(d.ip4.Id), protocol: uint8(d.ip4.Protocol)},
				offset:   int(d.ip4.FragOffset) * 8, more: d.ip4.Flags&layers.IPv4MoreFragments != 0,
				next: uint8(d.ip4.Protocol), data: d.ip4.Payload,
			}, false)
		}
		return d.ip(d.ip4.Protocol, false), d.ip4.Payload, true
	case 6:
		return d.internet6(b)
	}
	return 0, nil, false
}

func (d *decoder) internet6(b []byte) (layer, []byte, bool) {
	if len(b) < 40 {
		return 0, nil, false
	}
	// gopacket takes hop-by-hop options for a part of this header, and refuses packets
	// whose length was left to the network card.
	d.src, d.dst = addr(b[8:24]), addr(b[24:40])
	payload := b[40:]
	switch n := int(binary.BigEndian.Uint16(b[4:])); {
	case n == 0: // a jumbogram (RFC 2675), or left to the network card
		d.missing = d.cut
	case n < len(payload):
		d.missing, payload = 0, payload[:n]
	default:
		d.missing = n - len(payload)
	}
	return d.ip(layers.IPProtocol(b[6]), true), payload, true
}

// extension takes an IPv6 extension header off (RFC 8200 §4), or that of IPsec AH.
func (d *decoder) extension(l layer, b []byte) (layer, []byte, bool) {
	if len(b) < 8 {
		return 0, nil, false
	}
	switch l {
	case layerAH: // RFC 4302 §2.2: in words of four bytes, minus 2
		n := (int(b[1]) + 2) * 4
		if n > len(b) {
			return 0, nil, false
		}
		return d.ip(layers.IPProtocol(b[0]), d.dst.Is6()), b[n:], true
	case layerIP6Fragment:
		if binary.BigEndian.Uint16(b[2:])&^6 != 0 {
			return d.join(&fragment{
				packetID: packetID{src: d.src, dst: d.dst, id: binary.BigEndian.Uint32(b[4:])},
				offset:   int(binary.BigEndian.Uint16(b[2:]) &^ 7), more: b[3]&1 != 0, next: b[0], data: b[8:],
			}, true)
		}
		return d.ip(layers.IPProtocol(b[0]), true), b[8:], true // all of the packet (RFC 6946)
	default:
	}
	if err := d.ext.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
		return 0, nil, false
	}
	if l == layerIP6Routing {
		d.route(d.ext.Contents)
	}
	return d.ip(d.ext.NextHeader, true), d.ext.Payload, true
}

// route takes the packet's final destination from a routing header: it is what TCP sees
// (RFC 8200 §8.1). While the packet is in transit, the IPv6 header has that of the next hop.
func (d *decoder) route(h []byte) {
	kind, left := h[2], int(h[3])
	if left == 0 || len(h) < 24 {
		return
	}
	switch kind {
	case 0: // RFC 2460 §4.4: the last address
		d.dst, _ = netip.AddrFromSlice(h[len(h)-16:][:16])
	case 2, 4: // RFC 6275 §6.4; RFC 8754 §2: the first one
		d.dst, _ = netip.AddrFromSlice(h[8:24])
	}
}

func addr(ip []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a
}
