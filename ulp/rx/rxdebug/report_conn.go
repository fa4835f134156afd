package rxdebug

import (
	"fmt"
	"net/netip"
	"time"

	"urnic/ulp/rx/wire"
)

// A Conn is a connection of the server.
type Conn struct {
	Peer     string    `json:"peer"` // address and port
	Side     string    `json:"side"` // which the server has: "server" or "client"
	Epoch    string    `json:"epoch,omitempty"`
	CID      string    `json:"cid"`
	Serial   uint32    `json:"serial"`
	Error    int32     `json:"error,omitempty"` // that ended it
	Flags    []string  `json:"flags,omitempty"`
	Index    uint8     `json:"security_index"`
	NatMTU   int32     `json:"nat_mtu"`
	Security *Security `json:"security,omitempty"`
	Calls    []Call    `json:"calls"` // of the four channels
}

// A Security is what the security class of a connection tells.
type Security struct {
	Class           string   `json:"class"` // "rxnull", "rxvab", "rxkad" or "class N"
	Level           string   `json:"level"` // for rxkad "clear", "auth" or "crypt"; else a number
	Flags           []string `json:"flags,omitempty"`
	Expires         string   `json:"expires,omitempty"`
	PacketsReceived uint32   `json:"packets_received"`
	BytesReceived   uint32   `json:"bytes_received"`
	PacketsSent     uint32   `json:"packets_sent"`
	BytesSent       uint32   `json:"bytes_sent"`
}

// A Call is the call of a channel.
type Call struct {
	Number uint32   `json:"number"`
	State  string   `json:"state"`
	Mode   string   `json:"mode,omitempty"` // of a call that there is
	Flags  []string `json:"flags,omitempty"`
	Queues []string `json:"queues,omitempty"` // that hold packets: "input", "output"
}

// Flags, from bit 0 on, as OpenAFS has them.
var (
	connFlags = []string{
		"call waiting", "to be destroyed", "packet checksums", "window known", "reset", "busy", "attach waiting", "call being made",
	}
	callFlags = []string{
		"reader waiting", "waits to allocate", "waits for window", "waits for packets", "waits for thread", "all received", "cleared",
		"queue in use",
	}
	securityFlags = []string{"not allocated", "authenticated", "expired", "packet checksums"}
)

const classRxkad = 3

func newConn(d *wire.DebugConn) Conn {
	c := Conn{
		Peer: d.Addr().String(), Side: "client", CID: fmt.Sprintf("%08x", d.CID), Serial: d.Serial, Error: d.Error,
		Flags: names(uint32(d.Flags), connFlags), Index: d.Security, NatMTU: d.NatMTU, Security: newSecurity(&d.Stats),
	}
	if d.Type != wire.DebugClient {
		c.Side = "server"
	}
	if d.Epoch != 0 {
		c.Epoch = fmt.Sprintf("%08x", d.Epoch)
	}
	for i := range d.Calls {
		call := Call{Number: d.Calls[i], State: state(d.States[i])}
		if d.States[i] != wire.DebugNone {
			call.Mode = mode(d.Modes[i])
			call.Flags = names(uint32(d.CallFlags[i]), callFlags)
			call.Queues = names(uint32(d.Other[i]), []string{"input", "output"})
		}
		c.Calls = append(c.Calls, call)
	}
	return c
}

// newSecurity returns nil for a class that tells nothing.
func newSecurity(d *wire.DebugSecurity) *Security {
	if d.Type == 0 {
		return nil
	}
	s := &Security{
		Class: fmt.Sprintf("class %d", d.Type), Level: fmt.Sprint(d.Level), Flags: names(uint32(d.Flags), securityFlags),
		PacketsReceived: d.PacketsReceived, BytesReceived: d.BytesReceived, PacketsSent: d.PacketsSent, BytesSent: d.BytesSent,
	}
	if classes := [...]string{1: "rxnull", 2: "rxvab", classRxkad: "rxkad"}; int(d.Type) < len(classes) {
		s.Class = classes[d.Type]
	}
	if levels := [...]string{"clear", "auth", "crypt"}; d.Type == classRxkad && int(d.Level) < len(levels) {
		s.Level = levels[d.Level]
	}
	if d.Expires != 0 {
		s.Expires = moment(d.Expires)
	}
	return s
}

// names names the bits that are set. A bit without a name is given as its value.
func names(bits uint32, of []string) []string {
	var set []string
	for i := range 32 {
		switch bit := uint32(1) << i; {
		case bits&bit == 0:
		case i < len(of):
			set = append(set, of[i])
		default:
			set = append(set, fmt.Sprintf("%#x", bit))
		}
	}
	return set
}

func state(s wire.DebugState) string {
	states := [...]string{
		wire.DebugNone: "none", wire.DebugPrecall: "precall", wire.DebugActive: "active", wire.DebugDally: "dally",
		wire.DebugHold: "hold", wire.DebugReset: "reset",
	}
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("state %d", s)
}

func mode(m wire.DebugMode) string {
	modes := [...]string{
		0: "none", wire.DebugSending: "sending", wire.DebugReceiving: "receiving", wire.DebugError: "error", wire.DebugEOF: "eof",
	}
	if int(m) < len(modes) {
		return modes[m]
	}
	return fmt.Sprintf("mode %d", m)
}

// moment is a time of a debug answer, in seconds since 1970.
func moment(s uint32) string { return time.Unix(int64(s), 0).UTC().Format(time.RFC3339) }

// bogusHost returns the address that stands in statistics. OpenAFS turns all of these into
// big-endian words, and the address is in network byte order already: on the little-endian
// machines that servers are, its bytes arrive backwards.
func bogusHost(word int32) string {
	return netip.AddrFrom4([4]byte{byte(word), byte(word >> 8), byte(word >> 16), byte(word >> 24)}).String()
}

// A Peer is an address that the server exchanges packets with, or did so.
type Peer struct {
	Peer          string  `json:"peer"` // address and port
	IdleSince     string  `json:"idle_since,omitempty"`
	References    uint16  `json:"references"`
	RTT           float64 `json:"rtt_ms"`
	Deviation     float64 `json:"rtt_deviation_ms"`
	Timeout       float64 `json:"timeout_seconds"`
	Sent          uint32  `json:"packets_sent"`
	Resent        uint32  `json:"packets_resent"`
	BytesSent     uint64  `json:"bytes_sent"`
	BytesReceived uint64  `json:"bytes_received"`
	IfMTU         uint16  `json:"if_mtu"`
	NatMTU        uint16  `json:"nat_mtu"`
	MaxMTU        uint16  `json:"max_mtu"`
	MTU           uint16  `json:"mtu"`
	CongWindow    uint16  `json:"congestion_window"`   // packets
	Congestions   uint16  `json:"congestion_sequence"` // counts changes of the window
	Jumbo         uint16  `json:"jumbogram"`           // packets in a datagram, now
	IfJumbo       uint16  `json:"if_jumbogram"`        // as the interface allows
	MaxJumbo      uint16  `json:"max_jumbogram"`       // as the peer says
	InSkew        int32   `json:"in_skew"`
	OutSkew       int32   `json:"out_skew"`
	BurstSize     uint8   `json:"burst_size"`
	Burst         uint8   `json:"burst"`
	BurstWait     float64 `json:"burst_wait_seconds"`
	RateFlag      int32   `json:"rate_flag"`
}

func newPeer(d *wire.DebugPeer) Peer {
	p := Peer{
		Peer: d.Addr().String(), References: d.References, RTT: float64(d.RTT) / 8, Deviation: float64(d.Deviation) / 4,
		Timeout: seconds(d.Timeout), Sent: uint32(d.Sent), Resent: uint32(d.Resent), BytesSent: d.BytesSent, BytesReceived: d.BytesReceived,
		IfMTU: d.IfMTU, NatMTU: d.NatMTU, MaxMTU: d.MaxMTU, MTU: d.MTU, CongWindow: d.CongWindow, Congestions: d.CongSequence,
		Jumbo: d.Packets, IfJumbo: d.IfPackets, MaxJumbo: d.MaxPackets, InSkew: d.InSkew, OutSkew: d.OutSkew,
		BurstSize: d.BurstSize, Burst: d.Burst, BurstWait: seconds(d.BurstWait), RateFlag: d.RateFlag,
	}
	if d.IdleSince != 0 {
		p.IdleSince = moment(d.IdleSince)
	}
	return p
}
