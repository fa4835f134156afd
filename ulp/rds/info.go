package rds

import (
	"net/netip"
	"reflect"
	"strings"
	"time"
	"unicode"

	"urnic/ulp/rds/machine"
)

// An Info is what a node has at a moment, as rds-info shows it on Linux, and more. Its JSON form is what
// `urnic rds info --json` prints.
type Info struct {
	Addr        netip.Addr       `json:"addr"`
	Generation  uint32           `json:"generation"` // of this life of the node
	Seconds     float64          `json:"seconds"`    // since the node was opened
	Transports  []string         `json:"transports"`
	Sockets     []SocketInfo     `json:"sockets"`     // by port
	Connections []ConnectionInfo `json:"connections"` // in the order in which they were made
	Congested   []uint16         `json:"congested"`   // ports of this node

	Send       QueueInfo `json:"send_queue"`       // not sent yet
	Retransmit QueueInfo `json:"retransmit_queue"` // sent, and not acknowledged
	Receive    QueueInfo `json:"receive_queue"`    // received, and not read

	Memory   MemoryInfo    `json:"memory"`
	Counters []CounterInfo `json:"counters"`
}

// A MemoryInfo says how much a node holds for messages, and how much it may.
type MemoryInfo struct {
	Received      int `json:"received"`       // bytes of messages of all peers that are not read
	ReceivedLimit int `json:"received_limit"` // Config.NodeMemory
	PeerLimit     int `json:"peer_limit"`     // Config.PeerMemory
	Sent          int `json:"sent"`           // bytes of messages that are unsent or not acknowledged
	Receives      int `json:"receives"`       // bytes of the receives that connections over iWARP have posted
	Regions       int `json:"regions"`        // MRs: pieces of memory that peers may access
}

// A SocketInfo describes a socket.
type SocketInfo struct {
	Port          uint16 `json:"port"`
	SendBuffer    int    `json:"send_buffer"`    // bytes
	ReceiveBuffer int    `json:"receive_buffer"` // bytes
	Unsent        int    `json:"unsent"`         // bytes of the send buffer that are in use
	Unread        int    `json:"unread"`         // messages that were received and not read
	UnreadBytes   int    `json:"unread_bytes"`
	Congested     bool   `json:"congested"`
}

// A ConnectionInfo describes a connection to a peer.
type ConnectionInfo struct {
	Peer       netip.Addr `json:"peer"`
	Transport  string     `json:"transport"`
	TOS        uint8      `json:"tos"`
	Generation uint32     `json:"generation"` // of the peer; 0: it has told none
	Negotiated int        `json:"negotiated"` // paths; 0: not known yet
	Waiting    int        `json:"waiting"`    // messages that wait until it is known
	Held       int        `json:"held"`       // bytes of messages of the peer that are not read
	Congested  []uint16   `json:"congested"`  // ports of the peer
	Paths      []PathInfo `json:"paths"`
}

// A PathInfo describes a path of a connection.
type PathInfo struct {
	Index       int    `json:"index"`
	State       string `json:"state"`    // down, connecting or up
	Links       uint64 `json:"links"`    // connections of the transport that there were or were tried
	NextTX      uint64 `json:"next_tx"`  // sequence number of the next new message
	Acked       uint64 `json:"acked"`    // the last that the peer has acknowledged
	NextRX      uint64 `json:"next_rx"`  // the one after the last that was received
	Unsent      int    `json:"unsent"`   // messages
	Unacked     int    `json:"unacked"`  // messages
	Tries       int    `json:"tries"`    // to connect, since the peer was last heard
	Retry       *int64 `json:"retry_ms"` // until the next try; null: none is due
	Paused      bool   `json:"paused"`   // what comes next waits for memory
	FlowControl bool   `json:"flow_control"`
	Credit      int    `json:"credit"` // Sends that the peer has room for
	Owed        int    `json:"owed"`   // receives that the peer is not told of yet
	Error       string `json:"error"`  // why the last link was lost or not made; "" if there is a link
}

// A QueueInfo describes messages of all sockets.
type QueueInfo struct {
	Total    int           `json:"total"`
	Messages []MessageInfo `json:"messages"` // the first ones, as many as were asked for
}

// A MessageInfo describes a message.
type MessageInfo struct {
	Sequence   uint64         `json:"sequence"` // 0: it has none yet
	Bytes      int            `json:"bytes"`
	From       netip.AddrPort `json:"from"`
	To         netip.AddrPort `json:"to"`
	TOS        uint8          `json:"tos"`
	Transport  string         `json:"transport"`
	Path       int            `json:"path"` // of messages that are sent
	Retransmit bool           `json:"retransmit"`
}

// A CounterInfo is a counter with its name.
type CounterInfo struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// Info returns what the node has. It describes up to messages of each queue. The node is
// locked meanwhile, for a time that grows with its sockets and connections.
func (n *Node) Info(messages int) *Info {
	n.mu.Lock()
	m := n.m.Info(n.now(), max(0, messages))
	seconds, regions := n.now().Seconds(), n.mrs
	n.mu.Unlock()
	i := &Info{
		Addr: n.cfg.Addr, Generation: n.cfg.Generation, Seconds: seconds,
		Sockets: []SocketInfo{}, Connections: []ConnectionInfo{}, Congested: listed(m.Congested),
		Memory:   MemoryInfo{Received: m.Held, ReceivedLimit: m.NodeMemory, PeerLimit: m.PeerMemory, Regions: regions},
		Counters: counters(&m.Counters),
	}
	for _, t := range n.cfg.Transports {
		i.Transports = append(i.Transports, t.Name())
		if w, is := t.(*IWARP); is {
			i.Memory.Receives += int(w.posted.Load())
		}
	}
	for _, s := range m.Sockets {
		i.Memory.Sent += s.Unsent
		i.Sockets = append(i.Sockets, SocketInfo{
			Port: s.Port, SendBuffer: s.SendBuffer, ReceiveBuffer: s.ReceiveBuffer, Unsent: s.Unsent,
			Unread: s.Messages, UnreadBytes: s.Bytes, Congested: s.Congested,
		})
	}
	for _, c := range m.Conns {
		i.Connections = append(i.Connections, i.connection(&c))
	}
	i.Send = i.queue(m.Unsent, m.UnsentTotal)
	i.Retransmit = i.queue(m.Unacked, m.UnackedTotal)
	i.Receive = i.queue(m.Unread, m.UnreadTotal)
	return i
}

func (i *Info) connection(c *machine.ConnInfo) ConnectionInfo {
	out := ConnectionInfo{
		Peer: c.Key.Peer, Transport: i.Transports[c.Key.Carrier], TOS: c.Key.TOS, Generation: c.Generation,
		Negotiated: c.Agreed, Waiting: c.Waiting, Held: c.Held, Congested: listed(c.Congested),
	}
	for _, p := range c.Paths {
		path := PathInfo{
			Index: p.Index, State: p.State.String(), Links: uint64(p.Link), NextTX: p.Next, Acked: p.Acked, NextRX: p.Received + 1,
			Unsent: p.Queued, Unacked: p.Unacked, Tries: p.Tries, Paused: p.Paused,
			FlowControl: p.FlowControl, Credit: p.Credit, Owed: p.Owed,
		}
		if p.Failure != nil {
			path.Error = p.Failure.Error()
		}
		if p.Waits {
			path.Retry = new(p.Retry.Round(time.Millisecond).Milliseconds())
		}
		out.Paths = append(out.Paths, path)
	}
	return out
}

func (i *Info) queue(messages []machine.MessageInfo, total int) QueueInfo {
	q := QueueInfo{Total: total, Messages: []MessageInfo{}}
	for _, m := range messages {
		q.Messages = append(q.Messages, MessageInfo{
			Sequence: m.Sequence, Bytes: m.Len, From: netip.AddrPortFrom(m.From.Addr, m.From.Port), To: netip.AddrPortFrom(m.To.Addr, m.To.Port),
			TOS: m.TOS, Transport: i.Transports[m.Carrier], Path: m.Path, Retransmit: m.Retransmit,
		})
	}
	return q
}

// listed returns a list that is not null in JSON.
func listed(ports []uint16) []uint16 { return append([]uint16{}, ports...) }

// counters names all counters as their fields are named: "PingsDropped" is "pings_dropped".
func counters(c *machine.Counters) []CounterInfo {
	var list []CounterInfo
	v := reflect.ValueOf(c).Elem()
	for field := range v.Type().Fields() {
		var name strings.Builder
		for k, r := range field.Name {
			if unicode.IsUpper(r) && k > 0 {
				name.WriteByte('_')
			}
			name.WriteRune(unicode.ToLower(r))
		}
		list = append(list, CounterInfo{name.String(), v.FieldByIndex(field.Index).Uint()})
	}
	return list
}
