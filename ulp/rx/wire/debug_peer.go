package wire

import (
	"encoding/binary"
	"net/netip"
)

// A DebugPeer is the reply to DebugGetPeer.
type DebugPeer struct {
	Host          uint32 // IPv4; DebugEnd: there is no peer with the request's index
	Port          uint16
	IfMTU         uint16
	IdleSince     uint32 // seconds since 1970
	References    uint16
	BurstSize     uint8
	Burst         uint8
	BurstWait     DebugTime
	RTT           int32 // in 1/8 ms
	Deviation     int32 // of the RTT, in 1/4 ms
	Timeout       DebugTime
	Sent          int32 // data packets
	Resent        int32
	InSkew        int32
	OutSkew       int32
	RateFlag      int32
	NatMTU        uint16
	MaxMTU        uint16
	MaxPackets    uint16 // in a datagram, as the peer says
	IfPackets     uint16 // in a datagram, as the interface allows
	MTU           uint16
	CongWindow    uint16
	Packets       uint16 // in a datagram, now
	CongSequence  uint16
	BytesSent     uint64
	BytesReceived uint64
	Reserved      [10]int32
}

// End reports whether the reply says that the list has ended.
func (d *DebugPeer) End() bool { return d.Host == DebugEnd }

// Addr is the peer's address.
func (d *DebugPeer) Addr() netip.AddrPort { return netip.AddrPortFrom(address(d.Host), d.Port) }

// ParseDebugPeer decodes a reply to DebugGetPeer.
func ParseDebugPeer(b []byte) (DebugPeer, error) {
	if len(b) < DebugPeerLen {
		return DebugPeer{}, &ShortError{What: "debug reply of a peer", Have: len(b), Want: DebugPeerLen}
	}
	r := reader(b)
	d := DebugPeer{
		Host:          r.u32(),
		Port:          r.u16(),
		IfMTU:         r.u16(),
		IdleSince:     r.u32(),
		References:    r.u16(),
		BurstSize:     r.u8(),
		Burst:         r.u8(),
		BurstWait:     r.time(),
		RTT:           r.i32(),
		Deviation:     r.i32(),
		Timeout:       r.time(),
		Sent:          r.i32(),
		Resent:        r.i32(),
		InSkew:        r.i32(),
		OutSkew:       r.i32(),
		RateFlag:      r.i32(),
		NatMTU:        r.u16(),
		MaxMTU:        r.u16(),
		MaxPackets:    r.u16(),
		IfPackets:     r.u16(),
		MTU:           r.u16(),
		CongWindow:    r.u16(),
		Packets:       r.u16(),
		CongSequence:  r.u16(),
		BytesSent:     r.u64(),
		BytesReceived: r.u64(),
	}
	r.words(d.Reserved[:])
	return d, nil
}

// Append appends the reply to b.
func (d *DebugPeer) Append(b []byte) []byte {
	b = appendUints(b, d.Host)
	b = appendShorts(b, d.Port, d.IfMTU)
	b = appendUints(b, d.IdleSince)
	b = appendShorts(b, d.References)
	b = append(b, d.BurstSize, d.Burst)
	b = d.BurstWait.append(b)
	b = appendWords(b, []int32{d.RTT, d.Deviation})
	b = d.Timeout.append(b)
	b = appendWords(b, []int32{d.Sent, d.Resent, d.InSkew, d.OutSkew, d.RateFlag})
	b = appendShorts(b, d.NatMTU, d.MaxMTU, d.MaxPackets, d.IfPackets, d.MTU, d.CongWindow, d.Packets, d.CongSequence)
	b = binary.BigEndian.AppendUint64(b, d.BytesSent)
	b = binary.BigEndian.AppendUint64(b, d.BytesReceived)
	return appendWords(b, d.Reserved[:])
}
