package mpa

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	// EnhancedLen is the length of the enhanced block in bytes.
	EnhancedLen = 4
	// MaxDepth is the largest IRD or ORD that fits into the block.
	MaxDepth = 0x3FFE
	// DepthNotNegotiated instead of an IRD or ORD says that the ULP
	// negotiates that value itself (RFC 6581 §9.1).
	DepthNotNegotiated = 0x3FFF

	depthMask      = 0x3FFF
	flagPeerToPeer = 0x8000 // A, over IRD
	flagRTRSend    = 0x4000 // B, over IRD
	flagRTRWrite   = 0x8000 // C, over ORD
	flagRTRRead    = 0x4000 // D, over ORD
)

// An RTR is a set of ready-to-receive indications: the kinds of empty message
// with which an Initiator may open a peer-to-peer connection (RFC 6581 §9.2).
type RTR uint8

// The ready-to-receive indications.
const (
	RTRSend  RTR = 1 << iota // B: zero-length FPDU (Send)
	RTRWrite                 // C: zero-length RDMA Write
	RTRRead                  // D: zero-length RDMA Read

	RTRAll = RTRSend | RTRWrite | RTRRead
)

// String lists the members of the set.
func (r RTR) String() string {
	if r == 0 {
		return "none"
	}
	var names []string
	for _, k := range []struct {
		bit  RTR
		name string
	}{{RTRSend, "Send"}, {RTRWrite, "Write"}, {RTRRead, "Read"}} {
		if r&k.bit != 0 {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, "+")
}

// Enhanced is the block with which the Private Data of an enhanced frame
// begins (RFC 6581 §9).
type Enhanced struct {
	PeerToPeer bool // A: peer-to-peer model; else client-server
	RTR        RTR  // B, C, D; without PeerToPeer sent as zero and ignored on receipt
	IRD        uint16
	ORD        uint16
}

// AppendBinary appends the EnhancedLen bytes of e to b. It fails if IRD or ORD
// does not fit into 14 bits.
func (e Enhanced) AppendBinary(b []byte) ([]byte, error) {
	if e.IRD > depthMask || e.ORD > depthMask {
		return b, fmt.Errorf("mpa: IRD %d, ORD %d: at most %d can be said", e.IRD, e.ORD, MaxDepth)
	}
	ird, ord := e.IRD, e.ORD
	if e.PeerToPeer {
		ird |= flagPeerToPeer
		if e.RTR&RTRSend != 0 {
			ird |= flagRTRSend
		}
		if e.RTR&RTRWrite != 0 {
			ord |= flagRTRWrite
		}
		if e.RTR&RTRRead != 0 {
			ord |= flagRTRRead
		}
	}
	b = binary.BigEndian.AppendUint16(b, ird)         // A(1) B(1) IRD(14)
	return binary.BigEndian.AppendUint16(b, ord), nil // C(1) D(1) ORD(14)
}

// ParseEnhanced reads the enhanced block at the front of a frame's Private
// Data. It fails with CodeStartup if pd is too short to hold one.
func ParseEnhanced(pd []byte) (Enhanced, error) {
	if len(pd) < EnhancedLen {
		return Enhanced{}, startupError("RFC 6581 §6", "S is set, but %d octets of private data can't hold the enhanced block", len(pd))
	}
	ird, ord := binary.BigEndian.Uint16(pd), binary.BigEndian.Uint16(pd[2:])
	e := Enhanced{PeerToPeer: ird&flagPeerToPeer != 0, IRD: ird & depthMask, ORD: ord & depthMask}
	if !e.PeerToPeer {
		return e, nil // B, C and D "MUST be ignored" with A = 0: RFC 6581 §9.2
	}
	if ird&flagRTRSend != 0 {
		e.RTR |= RTRSend
	}
	if ord&flagRTRWrite != 0 {
		e.RTR |= RTRWrite
	}
	if ord&flagRTRRead != 0 {
		e.RTR |= RTRRead
	}
	return e, nil
}

// String shows the block in one line.
func (e Enhanced) String() string {
	s := fmt.Sprintf("ird=%d ord=%d", e.IRD, e.ORD)
	if e.PeerToPeer {
		s += " p2p rtr=" + e.RTR.String()
	}
	return s
}
