package capture

import (
	"encoding/binary"
	"net/netip"
)

const (
	ethLen  = 14
	ip4Len  = 20
	ip6Len  = 40
	tcpLen  = 20
	protTCP = 6

	maxIPLen = 1<<16 - 1 // largest IPv4 packet, and largest IPv6 payload

	// windowScale lets the synthetic windows cover a gigabyte, so that no
	// analysis finds them full.
	windowScale = 14
	window      = 1<<16 - 1
)

// The TCP flags that a recording uses.
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagPSH = 0x08
	flagACK = 0x10
)

// A half is the sending side of a recorded connection: the headers of its
// packets, as far as they are always the same, and its place in the stream.
type half struct {
	header [ethLen + ip6Len + tcpLen]byte
	ipLen  int    // of the IP header
	sum    uint64 // of the TCP pseudo-header's fixed part and of the ports
	seq    uint32 // of the next byte that this side sends
	acked  uint32 // what this side has acknowledged to the other
	ipID   uint16
	closed bool // sent its FIN
}

// maxPayload returns how many bytes one packet carries.
func (h *half) maxPayload() int {
	if h.ipLen == ip6Len {
		return maxIPLen - tcpLen
	}
	return maxIPLen - ip4Len - tcpLen
}

// init fills in what is the same in all packets from one endpoint to the other.
func (h *half) init(from, to netip.AddrPort, isn uint32) {
	h.seq = isn
	var b []byte
	b, h.sum, _ = appendNetwork(h.header[:0], from.Addr(), to.Addr(), protTCP, 0)
	h.ipLen = len(b) - ethLen
	tcp := h.header[len(b):]
	binary.BigEndian.PutUint16(tcp[0:], from.Port())
	binary.BigEndian.PutUint16(tcp[2:], to.Port())
	binary.BigEndian.PutUint16(tcp[14:], window)
}

// appendNetwork appends the headers of Ethernet and IP in front of n bytes of a protocol. It
// returns the sum of the protocol's pseudo-header without the length, and false if n is too
// much for IP.
func appendNetwork(b []byte, from, to netip.Addr, protocol uint8, n int) ([]byte, uint64, bool) {
	src, dst := from.As16(), to.As16()
	// Locally administered MAC addresses that show the end of the IP address.
	b = append(b, 0x02, 0x00, dst[12], dst[13], dst[14], dst[15])
	b = append(b, 0x02, 0x00, src[12], src[13], src[14], src[15])
	at := len(b) + 2
	if from.Is4() && to.Is4() {
		length := ip4Len + n
		b = append(b, 0x08, 0x00,
			0x45, 0, byte(length>>8), byte(length), // version 4, header of five words
			0, 0, 0x40, 0, // don't fragment
			64, protocol, 0, 0) // time to live
		b = append(b, src[12:]...)
		b = append(b, dst[12:]...)
		binary.BigEndian.PutUint16(b[at+10:], foldSum(onesSum(0, b[at:])))
		return b, onesSum(uint64(protocol), b[at+12:]), length <= maxIPLen
	}
	b = append(b, 0x86, 0xDD,
		0x60, 0, 0, 0,
		byte(n>>8), byte(n), protocol, 64) // hop limit
	b = append(b, src[:]...)
	b = append(b, dst[:]...)
	return b, onesSum(uint64(protocol), b[at+8:]), n <= maxIPLen
}

// appendHeaders appends room for the headers of one packet.
func (h *half) appendHeaders(b []byte) []byte {
	return append(b, h.header[:ethLen+h.ipLen+tcpLen]...)
}

// finish fills in the headers of the packet p, which has options bytes of TCP
// options and the payload in place. The packet sends from seq on.
func (h *half) finish(p []byte, options int, seq, ack uint32, flags byte) {
	ip := p[ethLen:]
	tcp := ip[h.ipLen:]
	if h.ipLen == ip4Len {
		h.ipID++
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], h.ipID)
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], foldSum(onesSum(0, ip[:ip4Len])))
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(tcp)))
	}
	binary.BigEndian.PutUint32(tcp[4:], seq)
	binary.BigEndian.PutUint32(tcp[8:], ack)
	tcp[12] = byte((tcpLen + options) / 4 << 4)
	tcp[13] = flags
	binary.BigEndian.PutUint16(tcp[16:], 0)
	binary.BigEndian.PutUint16(tcp[16:], foldSum(onesSum(h.sum+uint64(len(tcp)), tcp)))
}
