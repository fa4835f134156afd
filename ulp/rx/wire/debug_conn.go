package wire

import "net/netip"

// A DebugConn is the reply to DebugGetConn and DebugGetAllConns.
type DebugConn struct {
	Host      uint32 // IPv4
	CID       uint32 // DebugEnd: there is no connection with the request's index
	Serial    uint32
	Calls     [Channels]uint32 // numbers
	Error     int32            // the code that the connection ended with
	Port      uint16
	Flags     uint8
	Type      DebugSide
	Security  uint8 // index
	Reserved1 [3]byte
	States    [Channels]DebugState
	Modes     [Channels]DebugMode
	CallFlags [Channels]uint8
	Other     [Channels]DebugQueues
	Stats     DebugSecurity
	Epoch     uint32
	NatMTU    int32
	Reserved  [9]int32
}

// A DebugSecurity is what the security class counts for a connection.
type DebugSecurity struct {
	Type            uint8
	Level           uint8
	Reserved1       [10]byte
	Flags           int32
	Expires         uint32 // seconds since 1970
	PacketsReceived uint32
	PacketsSent     uint32
	BytesReceived   uint32
	BytesSent       uint32
	Reserved        [10]int32
}

// DebugConnChecksums is the flag of a [DebugConn] whose packets have checksums.
const DebugConnChecksums uint8 = 1 << 2

// Flags of a [DebugSecurity].
const (
	DebugAuthenticated int32 = 1 << 1
	DebugChecksums     int32 = 1 << 3 // packets have checksums
)

// A DebugSide is the side of a connection that the server has.
type DebugSide uint8

// The sides.
const (
	DebugClient DebugSide = iota
	DebugServer
)

// A DebugState is the state of a call.
type DebugState uint8

// The states.
const (
	DebugNone    DebugState = iota // no call
	DebugPrecall                   // waits for a thread
	DebugActive
	DebugDally // done; kept to recognise duplicates
	DebugHold  // done; the reply is not acknowledged yet
	DebugReset
)

// A DebugMode is what a call does.
type DebugMode uint8

// The modes.
const (
	DebugSending DebugMode = 1 + iota
	DebugReceiving
	DebugError
	DebugEOF
)

// DebugQueues say which queues of a call have packets.
type DebugQueues uint8

// The queues.
const (
	DebugInput DebugQueues = 1 << iota
	DebugOutput
)

// End reports whether the reply says that the list has ended.
func (d *DebugConn) End() bool { return d.CID == DebugEnd }

// Addr is the peer's address.
func (d *DebugConn) Addr() netip.AddrPort { return netip.AddrPortFrom(address(d.Host), d.Port) }

// ParseDebugConn decodes a reply to DebugGetConn or DebugGetAllConns of a server with the
// version that its DebugBasic tells. In version L and before, nothing stands between the
// security index and the states of the calls, and the reply has neither Epoch nor NatMTU.
func ParseDebugConn(b []byte, version byte) (DebugConn, error) {
	old := version <= DebugVersionMin
	want := DebugConnLen
	if old {
		want = DebugOldConnLen
	}
	if len(b) < want {
		return DebugConn{}, &ShortError{What: "debug reply of a connection", Have: len(b), Want: want}
	}
	r := reader(b)
	d := DebugConn{Host: r.u32(), CID: r.u32(), Serial: r.u32()}
	for i := range d.Calls {
		d.Calls[i] = r.u32()
	}
	d.Error, d.Port, d.Flags, d.Type, d.Security = r.i32(), r.u16(), r.u8(), DebugSide(r.u8()), r.u8()
	if !old {
		copy(d.Reserved1[:], r.take(3))
	}
	for i := range d.States {
		d.States[i] = DebugState(r.u8())
	}
	for i := range d.Modes {
		d.Modes[i] = DebugMode(r.u8())
	}
	copy(d.CallFlags[:], r.take(Channels))
	for i := range d.Other {
		d.Other[i] = DebugQueues(r.u8())
	}
	if old {
		copy(d.Reserved1[:], r.take(3)) // what follows is aligned again
	}
	d.Stats = r.security()
	if old {
		return d, nil
	}
	d.Epoch, d.NatMTU = r.u32(), r.i32()
	r.words(d.Reserved[:])
	return d, nil
}

func (r *reader) security() (s DebugSecurity) {
	s.Type, s.Level = r.u8(), r.u8()
	copy(s.Reserved1[:], r.take(len(s.Reserved1)))
	s.Flags, s.Expires = r.i32(), r.u32()
	s.PacketsReceived, s.PacketsSent, s.BytesReceived, s.BytesSent = r.u32(), r.u32(), r.u32(), r.u32()
	r.words(s.Reserved[:])
	return s
}

// Append appends the reply to b, as DebugVersion has it.
func (d *DebugConn) Append(b []byte) []byte {
	b = appendUints(b, d.Host, d.CID, d.Serial)
	b = appendUints(b, d.Calls[:]...)
	b = appendUints(b, uint32(d.Error))
	b = append(b, byte(d.Port>>8), byte(d.Port), d.Flags, byte(d.Type), d.Security)
	b = append(b, d.Reserved1[:]...)
	for _, s := range d.States {
		b = append(b, byte(s))
	}
	for _, m := range d.Modes {
		b = append(b, byte(m))
	}
	b = append(b, d.CallFlags[:]...)
	for _, q := range d.Other {
		b = append(b, byte(q))
	}
	b = append(b, d.Stats.Type, d.Stats.Level)
	b = append(b, d.Stats.Reserved1[:]...)
	b = appendUints(b, uint32(d.Stats.Flags), d.Stats.Expires,
		d.Stats.PacketsReceived, d.Stats.PacketsSent, d.Stats.BytesReceived, d.Stats.BytesSent)
	b = appendWords(b, d.Stats.Reserved[:])
	b = appendUints(b, d.Epoch, uint32(d.NatMTU))
	return appendWords(b, d.Reserved[:])
}
