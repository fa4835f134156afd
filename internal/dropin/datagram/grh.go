package datagram

import (
	"encoding/binary"
	"net/netip"
)

// GRHLen is the length of a Global Routing Header, for which each receive of a UD queue
// pair has room before the message (struct ibv_grh).
const GRHLen = 40

// nextIBA is the next header of a GRH: a transport header of InfiniBand follows.
const nextIBA = 0x1b

// PutGRH writes the GRH of a message of n bytes, from one address to another. There is
// none on the wire: these are the addresses of UDP, as GIDs.
func PutGRH(b *[GRHLen]byte, from, to netip.Addr, n int) {
	*b = [GRHLen]byte{0: 6 << 4, 6: nextIBA, 7: 64}
	binary.BigEndian.PutUint16(b[4:], uint16(n))
	*(*[16]byte)(b[8:]) = from.As16()
	*(*[16]byte)(b[24:]) = to.As16()
}
