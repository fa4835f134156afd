package capture

import (
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// The UDP ports of encapsulations. 8472 is what Linux takes for VXLAN unless it is told
// otherwise.
const (
	portGTPU       = 2152
	portVXLAN      = 4789
	portVXLANLinux = 8472
	portGeneve     = 6081
	portRoCE       = 4791 // no encapsulation, but RDMA by itself
)

// datagram returns what a UDP datagram carries, by its port.
func (d *decoder) datagram() layer {
	switch d.udp.DstPort {
	case portVXLAN, portVXLANLinux:
		return layerVXLAN
	case portGeneve:
		return layerGeneve
	case portGTPU:
		return layerGTP
	case portRoCE:
		return layerRoCE
	}
	return layerDatagram
}

// tunnelled takes the header of an encapsulation within IP or UDP off.
func (d *decoder) tunnelled(l layer, b []byte) (layer, []byte, bool) {
	var err error
	switch l {
	case layerGRE:
		err = d.gre.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		switch {
		case err != nil:
			return 0, nil, false
		case d.gre.Version > 1:
			return d.next(layerUnread, UnreadGRE, uint16(d.gre.Version)), nil, true
		case d.gre.Protocol == layers.EthernetTypeERSPAN && len(d.gre.Contents) == 4:
			return layerEthernet, d.gre.Payload, true // ERSPAN type I has no header
		case len(d.gre.Payload) == 0:
			return layerOther, nil, true // an acknowledgement of PPTP, or a keepalive
		}
		return d.ether(d.gre.Protocol), d.gre.Payload, true
	case layerERSPAN:
		err = d.erspan.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		return layerEthernet, d.erspan.Payload, err == nil
	case layerEtherIP:
		if len(b) < 2 {
			return 0, nil, false
		}
		return layerEthernet, b[2:], true
	default:
	}
	// What comes within UDP is what it seems to be only if its header is sound. From
	// there on, what can't be decoded is reported.
	d.tunnel = true
	switch l {
	case layerVXLAN:
		err = d.vxlan.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		if err != nil || !d.vxlan.ValidIDFlag || b[0]&^0x88 != 0 {
			return layerOther, nil, true
		}
		d.tunnel = false
		return layerEthernet, d.vxlan.Payload, true
	case layerGeneve:
		err = d.geneve.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		if err != nil || d.geneve.Version != 0 || d.geneve.OAMPacket {
			return layerOther, nil, true
		}
		l = d.ether(d.geneve.Protocol)
		return l, d.geneve.Payload, true
	default: // GTP
		err = d.gtp.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		if err != nil || d.gtp.Version != 1 || d.gtp.MessageType != 255 {
			return layerOther, nil, true
		}
		return layerIP, d.gtp.Payload, true
	}
}
