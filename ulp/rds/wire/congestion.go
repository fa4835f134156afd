package wire

import (
	"encoding/binary"
	"math/bits"
)

// MapLen is the length of a congestion map, in bytes: a bit for each port.
const MapLen = 1 << 16 / 8

// A CongestionMap has a bit for each port, set if the port is congested. The document has
// 1,024 little-endian words of 64 bits; so port p is bit p mod 8 of byte p/8.
type CongestionMap [MapLen]byte

// Congested reports whether a port is congested.
func (m *CongestionMap) Congested(port uint16) bool { return m[port>>3]&(1<<(port&7)) != 0 }

// Set marks a port as congested, and reports whether it was not.
func (m *CongestionMap) Set(port uint16) bool {
	was := m.Congested(port)
	m[port>>3] |= 1 << (port & 7)
	return !was
}

// Clear marks a port as free, and reports whether it was congested.
func (m *CongestionMap) Clear(port uint16) bool {
	was := m.Congested(port)
	m[port>>3] &^= 1 << (port & 7)
	return was
}

// Ports returns the congested ports in order, up to limit of them.
func (m *CongestionMap) Ports(limit int) []uint16 {
	var ports []uint16
	for i, b := range m {
		for ; b != 0 && len(ports) < limit; b &= b - 1 {
			ports = append(ports, uint16(i<<3+bits.TrailingZeros8(b)))
		}
	}
	return ports
}

// Take replaces the map by one of MapLen bytes, and reports whether a port is free that
// was congested.
func (m *CongestionMap) Take(data []byte) (freed bool) {
	const word = 8
	for i := 0; i < MapLen; i += word {
		was, is := binary.LittleEndian.Uint64(m[i:]), binary.LittleEndian.Uint64(data[i:])
		freed = freed || was&^is != 0
	}
	copy(m[:], data)
	return freed
}
