package machine

import (
	"math"
	"time"

	"urnic/ulp/rds/wire"
)

// An Info is a snapshot of a machine. It shares nothing with the machine.
type Info struct {
	Counters  Counters
	Held      int // bytes of messages that were received and not read, of all peers
	Sockets   []SocketInfo
	Conns     []ConnInfo
	Congested []uint16 // ports of this node

	PeerMemory, NodeMemory int // as configured

	// The oldest messages of each kind, up to the limit.
	Unsent, Unacked, Unread []MessageInfo
	// How many there are of each kind.
	UnsentTotal, UnackedTotal, UnreadTotal int
}

// A SocketInfo describes a socket.
type SocketInfo struct {
	Port                      uint16
	SendBuffer, ReceiveBuffer int
	Unsent                    int // bytes of the send buffer that are in use
	Messages, Bytes           int // received and not read
	Congested                 bool
}

// A ConnInfo describes a connection.
type ConnInfo struct {
	Key        Key
	Generation uint32 // of the peer; 0: not known
	Agreed     int    // paths; 0: not known yet
	Waiting    int    // messages until it is known
	Held       int    // bytes of the peer's messages that are not read
	Congested  []uint16
	Paths      []PathInfo
}

// A PathInfo describes a path.
type PathInfo struct {
	Index           int
	State           State
	Link            Link
	Next            uint64 // sequence number of the next new message
	Acked           uint64 // the last that the peer has acknowledged
	Received        uint64 // the last that was received
	Queued, Unacked int    // messages
	Tries           int    // to connect, since the last segment of the peer
	Retry           time.Duration
	Waits           bool // a new try begins after Retry
	Paused          bool // what comes next waits for memory
	FlowControl     bool
	Credit, Owed    int   // Sends that the peer has credits for; receives that are not yet reported to it
	Failure         error // why the last link was lost or not made; nil if there is a link
}

// A MessageInfo describes a message.
type MessageInfo struct {
	Sequence   uint64 // 0: it has none yet
	Len        int
	From, To   Endpoint
	TOS        uint8
	Carrier    int
	Path       int  // of what is sent
	Retransmit bool // it is sent again
}

// Info returns a snapshot. It describes up to limit messages of each kind. Its time grows with the number of
// sockets and paths, not with the messages beyond the limit.
func (m *Machine) Info(now Time, limit int) *Info {
	m.at(now)
	i := &Info{
		Counters: m.counters, Held: m.held, Congested: m.local.Ports(math.MaxUint16 + 1),
		PeerMemory: m.cfg.PeerMemory, NodeMemory: m.cfg.NodeMemory,
	}
	for _, port := range m.ports() {
		i.socket(m.sockets[port], limit)
	}
	for _, c := range m.order {
		i.conn(c, limit)
	}
	return i
}

func (i *Info) socket(s *Socket, limit int) {
	i.Sockets = append(i.Sockets, SocketInfo{
		Port: s.port, SendBuffer: s.sendBuffer, ReceiveBuffer: s.receiveBuffer, Unsent: s.unsent,
		Messages: s.queue.len(), Bytes: s.queued, Congested: s.congested,
	})
	i.UnreadTotal += s.queue.len()
	for _, msg := range s.queue.all() {
		if len(i.Unread) >= limit {
			break
		}
		i.Unread = append(i.Unread, MessageInfo{
			Sequence: msg.sequence, Len: len(msg.Data), From: msg.From, To: Endpoint{s.m.cfg.Addr, s.port},
			TOS: msg.TOS, Carrier: msg.Carrier,
		})
	}
}

func (i *Info) conn(c *Conn, limit int) {
	info := ConnInfo{
		Key: c.key, Generation: c.generation, Agreed: c.agreed, Waiting: c.waiting.len(), Held: c.held,
		Congested: c.remote.Ports(limit),
	}
	i.UnsentTotal += c.waiting.len()
	i.Unsent = c.describe(i.Unsent, c.waiting.all(), 0, limit)
	for _, p := range c.paths {
		if msg := p.current; msg != nil && msg != &p.sentMap && msg != &p.probe {
			i.UnsentTotal++ // some of its fragments are sent
			i.Unsent = c.describe(i.Unsent, []*message{msg}, p.index, limit)
		}
		waiting := p.waiting()
		i.UnsentTotal += len(waiting)
		i.Unsent = c.describe(i.Unsent, waiting, p.index, limit)
		i.UnsentTotal += p.queue.len()
		i.Unsent = c.describe(i.Unsent, p.queue.all(), p.index, limit)
		i.UnackedTotal += p.unacked.len()
		i.Unacked = c.describe(i.Unacked, p.unacked.all(), p.index, limit)
		info.Paths = append(info.Paths, p.info())
	}
	i.Conns = append(i.Conns, info)
}

func (p *Path) info() PathInfo {
	i := PathInfo{
		Index: p.index, State: p.state, Link: p.link, Next: p.next, Acked: p.acked, Received: p.expected - 1,
		Queued: len(p.waiting()) + p.queue.len(), Unacked: p.unacked.len(), Tries: p.tries, Paused: p.paused,
		FlowControl: p.credits, Credit: p.credit, Owed: p.owed,
	}
	if p.state != Up {
		i.Failure = p.failure
	}
	if p.state == Down && p.timer != never {
		i.Waits, i.Retry = true, max(0, p.timer-p.conn.m.now)
	}
	return i
}

// describe appends what the oldest messages of a queue are, up to limit in all.
func (c *Conn) describe(list []MessageInfo, queue []*message, path, limit int) []MessageInfo {
	for _, msg := range queue {
		if len(list) >= limit {
			break
		}
		if msg.gone {
			continue
		}
		list = append(list, MessageInfo{
			Sequence: msg.h.Sequence, Len: len(msg.data),
			From: Endpoint{c.m.cfg.Addr, msg.h.SourcePort}, To: Endpoint{c.key.Peer, msg.h.DestPort},
			TOS: c.key.TOS, Carrier: c.key.Carrier, Path: path, Retransmit: msg.h.Flags&wire.Retransmitted != 0,
		})
	}
	return list
}
