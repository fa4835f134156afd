package capture

import (
	"fmt"

	"github.com/gopacket/gopacket/layers"
)

// An UnreadKind says why a packet could not be decoded though it may hold TCP.
type UnreadKind uint8

// The kinds of packets that can't be decoded.
const (
	UnreadShort      UnreadKind = iota // the capture kept too little of it
	UnreadDamaged                      // a header of Number's protocol is damaged
	UnreadEtherType                    // Number is an EtherType
	UnreadIPProtocol                   // Number is a protocol of IP
	UnreadPPP                          // Number is a protocol of PPP
	UnreadMPLS                         // what follows the MPLS labels is neither IP nor Ethernet
	UnreadGRE                          // Number is a version of GRE
	UnreadNested                       // more headers than are followed
	UnreadMore                         // kinds beyond those that are distinguished
)

// An Unread says why a packet was passed over that may hold TCP.
type Unread struct {
	Kind   UnreadKind
	Number uint16
}

// String returns what the packet holds, or what is wrong with it, in a few words.
func (u Unread) String() string {
	switch u.Kind {
	case UnreadShort:
		return "cut short within the TCP header"
	case UnreadDamaged:
		return "damaged " + layerNames[u.Number] + " header"
	case UnreadEtherType:
		return fmt.Sprintf("EtherType 0x%04x", u.Number)
	case UnreadIPProtocol:
		return fmt.Sprintf("IP protocol %d (%v)", u.Number, layers.IPProtocol(u.Number))
	case UnreadPPP:
		return fmt.Sprintf("PPP protocol 0x%04x", u.Number)
	case UnreadMPLS:
		return "MPLS with something else than IP or Ethernet"
	case UnreadGRE:
		return fmt.Sprintf("GRE version %d", u.Number)
	case UnreadNested:
		return fmt.Sprintf("more than %d headers", maxLayers)
	default:
		return "other reasons"
	}
}
