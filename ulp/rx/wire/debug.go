package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// A DebugType says what a debug request asks for (draft §6).
type DebugType int32

// The types of debug requests.
const (
	DebugGetBasic    DebugType = 1 + iota // DebugBasic
	DebugGetConn                          // DebugConn, of connections that do something
	DebugGetAllConns                      // DebugConn, of all
	DebugGetStats                         // DebugStats
	DebugGetPeer                          // DebugPeer
)

var debugNames = [...]string{
	DebugGetBasic: "basic", DebugGetConn: "connection", DebugGetAllConns: "any connection", DebugGetStats: "statistics",
	DebugGetPeer: "peer",
}

func (t DebugType) String() string {
	if DebugGetBasic <= t && t <= DebugGetPeer {
		return debugNames[t]
	}
	return fmt.Sprintf("debug type %d", int32(t))
}

// The versions of the debug protocol: the letter in DebugBasic. A server of a later version
// answers what one of an earlier version does, and more (draft, appendix A).
const (
	DebugVersionMin      = 'L' // the first; the fields of DebugConn from States on have no gap before them
	DebugVersionAllConns = 'M' // DebugGetAllConns, DebugGetStats
	DebugVersionWaiters  = 'N' // DebugBasic.Waiting
	DebugVersionIdle     = 'O' // DebugBasic.IdleThreads
	DebugVersionTypes    = 'P' // counts of packets for 13 types, and not for 11
	DebugVersionPeer     = 'Q' // DebugGetPeer
	DebugVersionWaited   = 'R' // DebugBasic.Waited
	DebugVersionPackets  = 'S' // DebugBasic.Packets
	DebugVersion         = DebugVersionPackets
)

// Lengths of the bodies of debug packets, in bytes.
const (
	DebugRequestLen = 8
	DebugBadTypeLen = 8
	DebugBasicLen   = 56
	DebugConnLen    = 176
	DebugOldConnLen = 172 // of version L
	DebugStatsLen   = 284
	DebugPeerLen    = 132
)

// DebugEnd stands in DebugConn.CID and DebugPeer.Host of a reply to an index beyond the
// list.
const DebugEnd uint32 = 0xffffffff

// debugBadType stands in both words of the reply to a type that the server does not know.
const debugBadType = -8

// A DebugRequest is the body of a debug packet with FlagClient.
type DebugRequest struct {
	Type  DebugType
	Index int32 // in the list of connections or peers, from 0
}

// ParseDebugRequest decodes a debug request.
func ParseDebugRequest(b []byte) (DebugRequest, error) {
	if len(b) < DebugRequestLen {
		return DebugRequest{}, &ShortError{What: "debug request", Have: len(b), Want: DebugRequestLen}
	}
	return DebugRequest{
		Type:  DebugType(binary.BigEndian.Uint32(b)),
		Index: int32(binary.BigEndian.Uint32(b[4:])),
	}, nil
}

// Append appends the request to b.
func (r DebugRequest) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.Type))
	return binary.BigEndian.AppendUint32(b, uint32(r.Index))
}

// IsDebugBadType reports whether the reply to a debug request says that the server does not
// know its type.
func IsDebugBadType(b []byte) bool {
	return len(b) == DebugBadTypeLen && int32(binary.BigEndian.Uint32(b)) == debugBadType
}

// AppendDebugBadType appends the reply to a request of an unknown type to b.
func AppendDebugBadType(b []byte) []byte {
	return DebugRequest{Type: debugBadType, Index: debugBadType}.Append(b)
}

// address turns the four bytes of an IPv4 address, as debug replies have them, into an
// address.
func address(host uint32) netip.Addr {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], host)
	return netip.AddrFrom4(a)
}
