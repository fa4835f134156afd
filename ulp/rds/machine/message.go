package machine

import (
	"net/netip"

	"urnic/ulp/rds/wire"
)

// A message is one to be sent: of a socket, a pong, or a probe.
type message struct {
	h      wire.Header // its sequence number is 0 until it is sent first
	data   []byte
	op     *Operation // precedes it, or nil
	id     uint64
	free   func() // releases data
	memory Memory // what data lie in, or nil
	socket *Socket
	conn   *Conn    // of a message of a socket
	path   *Path    // whose queue it has entered
	after  *message // in the list of the socket
	before *message

	pong *Conn // it answers a ping of this peer

	urgent bool // it asks for an acknowledgement
	hasty  bool // the same, as its socket waits for all to be acknowledged

	gone bool // its socket no longer wants it: it is dropped when that is possible
}

// cost is how many bytes of a send buffer or receive queue a message of n bytes uses. An
// empty message uses memory too.
func cost(n int) int { return max(n, 256) }

// An Endpoint is a port of a node.
type Endpoint struct {
	Addr netip.Addr
	Port uint16
}

// A Message is one that was received.
type Message struct {
	From       Endpoint
	TOS        uint8
	Carrier    int
	Data       []byte
	Extensions wire.Extensions

	conn     *Conn  // whose memory it takes
	sequence uint64 // of its path; 0: it came from this node
}
