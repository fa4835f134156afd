package rawudp

import "encoding/binary"

const (
	headLen = 24

	// MaxSize is the largest datagram.
	MaxSize = 16384
	// MinSize is the smallest one.
	MinSize = headLen

	maxWindow = 64 // datagrams that a sender may be ahead
	minWindow = 4
	every     = maxWindow / 4 // datagrams between two counts, at most
)

// window is how many datagrams of a size a sender may be ahead of what is known to have come:
// so many that they fit a socket's buffer as the system grants it by default.
func window(size int) uint32 {
	const room = 128 << 10
	return uint32(min(max(room/size, minWindow), maxWindow))
}

type kind uint32

const (
	echo kind = iota
	data
	count
	pull
)

type packet struct {
	token  uint64
	kind   kind
	number uint32
	amount uint64
}

func (p *packet) put(b []byte) {
	binary.BigEndian.PutUint64(b, p.token)
	binary.BigEndian.PutUint32(b[8:], uint32(p.kind))
	binary.BigEndian.PutUint32(b[12:], p.number)
	binary.BigEndian.PutUint64(b[16:], p.amount)
}

func parse(b []byte) (p packet, ok bool) {
	if len(b) < headLen {
		return p, false
	}
	return packet{
		binary.BigEndian.Uint64(b), kind(binary.BigEndian.Uint32(b[8:])), binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint64(b[16:]),
	}, true
}
