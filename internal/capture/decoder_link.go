package capture

import (
	"encoding/binary"

	"github.com/gopacket/gopacket/layers"
)

// cooked returns what follows the header of a Linux cooked capture. Numbers below 0x600
// are Linux's own there.
func (d *decoder) cooked(t layers.EthernetType) layer {
	switch {
	case t == 4:
		return layerLLC
	case t < 0x600:
		return layerOther
	}
	return d.ether(t)
}

// mpls passes over the labels (RFC 3032). What follows has no type: it is IP if it begins
// like that, and otherwise Ethernet, with a control word in front (RFC 4448) or without.
func (d *decoder) mpls(b []byte) (layer, []byte, bool) {
	for bottom := false; !bottom; b = b[4:] {
		if len(b) < 4 {
			return 0, nil, false
		}
		bottom = b[2]&1 != 0
	}
	if len(b) == 0 {
		return 0, nil, false
	}
	switch b[0] >> 4 {
	case 4, 6:
		return layerIP, b, true
	case 0:
		if bridges(b[min(4, len(b)):]) {
			return layerEthernet, b[4:], true
		}
	}
	if bridges(b) {
		return layerEthernet, b, true
	}
	d.unread = Unread{UnreadMPLS, 0}
	return layerUnread, nil, true
}

// bridges reports whether b looks like an Ethernet frame of a known type.
func bridges(b []byte) bool {
	if len(b) < ethLen {
		return false
	}
	t := layers.EthernetType(binary.BigEndian.Uint16(b[12:]))
	return t >= 0x600 && etherLayer(t) != layerUnread
}

// pppoe takes the header of a PPPoE session off (RFC 2516 §4). gopacket's decoder can't
// be reused, and refuses packets that the capture has cut short.
func pppoe(b []byte) (layer, []byte, bool) {
	if len(b) < 6 || b[0] != 0x11 {
		return 0, nil, false
	}
	if b[1] != 0 {
		return layerOther, nil, true // discovery
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	b = b[6:]
	return layerPPP, b[:min(n, len(b))], true
}

// ppp takes the header of PPP off (RFC 1661 §2), and address and control if they are
// there (RFC 1662 §3.1).
func (d *decoder) ppp(b []byte) (layer, []byte, bool) {
	if len(b) >= 2 && b[0] == 0xFF && b[1] == 0x03 {
		b = b[2:]
	}
	if len(b) == 0 {
		return 0, nil, false
	}
	proto, n := uint16(b[0]), 1
	if b[0]&1 == 0 { // not compressed to one byte
		if len(b) < 2 {
			return 0, nil, false
		}
		proto, n = binary.BigEndian.Uint16(b), 2
	}
	b = b[n:]
	switch {
	case proto == 0x0021:
		return layerIP4, b, true
	case proto == 0x0057:
		return layerIP6, b, true
	case proto == 0x0281, proto == 0x0283:
		return layerMPLS, b, true
	case proto >= 0x8000: // link and network control protocols
		return layerOther, nil, true
	}
	d.unread = Unread{UnreadPPP, proto}
	return layerUnread, nil, true
}
