package udp

import "net/netip"

const (
	maxBatch  = 64 << 10 // bytes of datagrams of one size that the kernel takes as one
	maxJoined = 60       // and how many, which is less than the kernel's 64
)

// OutboxSize is how many bytes an Outbox has room for.
const OutboxSize = 256 << 10

// An Outbox has datagrams to be sent: messages of one or more datagrams of the same size.
type Outbox struct {
	arena    [OutboxSize]byte
	used     int
	messages []message
}

// A message is datagrams to one destination. All but the last have the same size.
type message struct {
	to        netip.AddrPort
	off, n    int // in the arena
	size      int // of each datagram
	datagrams int
}

// Room returns memory for one more datagram of n bytes, or nil if there is none.
func (o *Outbox) Room(n int) []byte {
	if len(o.arena)-o.used < n {
		return nil
	}
	return o.arena[o.used:]
}

// Add takes the datagram that was put into what Room returned. join lets it go in one
// message with others.
func (o *Outbox) Add(n int, to netip.AddrPort, join bool) {
	if last := len(o.messages) - 1; join && last >= 0 {
		m := &o.messages[last]
		whole := m.n == m.size*m.datagrams // no short datagram has ended it
		if m.to == to && whole && n <= m.size && m.datagrams < maxJoined && m.n+n <= maxBatch-64 {
			m.n += n
			m.datagrams++
			o.used += n
			return
		}
	}
	o.messages = append(o.messages, message{to: to, off: o.used, n: n, size: n, datagrams: 1})
	o.used += n
}

// Len returns how many messages there are.
func (o *Outbox) Len() int { return len(o.messages) }

// Reset empties the outbox.
func (o *Outbox) Reset() { o.used, o.messages = 0, o.messages[:0] }

// A Datagram is one that has arrived.
type Datagram struct {
	From netip.AddrPort
	Data []byte
}
