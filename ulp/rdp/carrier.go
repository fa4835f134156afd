package rdp

import "net/netip"

// A Carrier moves segments between endpoints, and may lose, repeat, delay and reorder them. [UDP], [RawIP] and
// [Network.Carrier] make them. An Endpoint takes its carrier over, and closes it.
type Carrier interface {
	// LocalAddr returns the address that segments come from; its port is 0 if the carrier has none.
	LocalAddr() netip.AddrPort
	// MaxSegment returns the largest segment that the carrier takes, counted as RFC 908 §4.3.2 does: with 20 bytes for the
	// header of IP.
	MaxSegment() int

	// buffer returns how many bytes of segments that have arrived the carrier keeps, or 0 if it does not tell.
	buffer() int
	// mtu returns how large a packet to a host may be, as far as the system knows; 0: it does not know. headers returns how
	// much of it is not RDP's.
	mtu(host netip.AddrPort) int
	headers(host netip.AddrPort) int
	// path returns where segments for a host go.
	path(host netip.AddrPort) (netip.AddrPort, error)
	// local returns the address that names this end in the machine; it may be the zero Addr.
	local() netip.Addr
	// receive waits for segments and calls each for those that have come, and unreachable for those that were sent to
	// hosts at which nobody is, as the network says. A long segment may be cut.
	receive(each func(from netip.AddrPort, segment []byte), unreachable func(host netip.AddrPort, segment []byte)) error
	// newBatch returns an empty batch of segments to send.
	newBatch() batch
	// freeBatch takes a batch back.
	freeBatch(batch)
	close() error
}

// A batch is segments that are sent together.
type batch interface {
	// room returns memory for a segment of n bytes, or nil if the batch has none.
	room(n int) []byte
	// add takes the n bytes that were put into what room returned.
	add(n int, to netip.AddrPort)
	// empty reports whether there is nothing to send.
	empty() bool
	// send sends and empties the batch. What the system refuses is lost, as in a network.
	send() error
}

// ipHeader is how many bytes of IP's header count as part of a segment (RFC 908 §4.3.2), whatever carries it.
const ipHeader = 20

// ipHeaderOf returns how many bytes the header of IP really has.
func ipHeaderOf(a netip.Addr) int {
	if a.Unmap().Is6() {
		return 40
	}
	return ipHeader
}

// largest is the largest segment without the header of IP: 16 bits of data length and of a maximum segment size.
const largest = 1<<16 - 1
