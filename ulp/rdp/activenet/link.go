package activenet

import (
	"math/rand/v2"
	"time"
)

// A LinkConfig describes a link.
type LinkConfig struct {
	Rate  int64         // bits per second; 0: no limit, and no queue
	Delay time.Duration // from one end to the other
	Queue int           // how many packets wait at most, besides the one being sent; 0: 100
	Loss  float64       // share of packets that are lost on the way
}

const defaultQueue = 100

// A Link leads from a node to another, in one direction. Packets wait for it in a queue, whose
// program, if there is one, sees them first.
type Link struct {
	net      *Network
	cfg      LinkConfig
	from, to *Node
	program  Program
	random   *rand.Rand

	queue []*Packet
	busy  bool
	Stats LinkStats

	// What is done with a packet later, as values.
	enqueueLater, sentLater, forwardLater func(*Packet)
}

// LinkStats counts what a link has done. Packets that a program has delayed are counted when they
// come to the queue.
type LinkStats struct {
	Packets  int // that came to the queue's program
	Overflow int // dropped because the queue was full
	Dropped  int // dropped by the program
	Marked   int // marked by the program
	Reports  int // sent by the program
	Lost     int // on the way

	Cross        int // packets of cross traffic that came
	CrossDropped int // of them: dropped or lost

	Bytes int // that were sent

	MaxQueue int // the most packets that have waited

	area    float64 // packets · nanoseconds
	changed time.Duration
}

// Link adds a link from a node to another.
func (n *Network) Link(from, to *Node, cfg LinkConfig) *Link {
	if cfg.Queue <= 0 {
		cfg.Queue = defaultQueue
	}
	l := &Link{net: n, cfg: cfg, from: from, to: to, random: n.random(uint64(len(n.links)) + 1)}
	l.enqueueLater, l.sentLater, l.forwardLater = l.enqueue, l.sent, n.forward
	n.links = append(n.links, l)
	from.links = append(from.links, l)
	return l
}

// Both adds a link in each direction, and returns that from a to b first.
func (n *Network) Both(a, b *Node, cfg LinkConfig) (*Link, *Link) {
	return n.Link(a, b, cfg), n.Link(b, a, cfg)
}

// Load puts a program into the node that the link leaves. It sees each packet that is to take the
// link. nil takes it away.
func (l *Link) Load(p Program) { l.program = p }

// Config returns what the link is like.
func (l *Link) Config() LinkConfig { return l.cfg }

// Queue returns how many packets wait.
func (l *Link) Queue() int { return len(l.queue) }

// Now returns the time.
func (l *Link) Now() time.Duration { return l.net.now }

// Node returns the node that the link leaves.
func (l *Link) Node() *Node { return l.from }

// Random returns the link's source of randomness.
func (l *Link) Random() *rand.Rand { return l.random }

// MeanQueue returns how many packets have waited on average since the time 0.
func (l *Link) MeanQueue() float64 {
	l.account()
	if l.net.now == 0 {
		return 0
	}
	return l.Stats.area / float64(l.net.now)
}

// account adds the time for which the queue was as long as it is.
func (l *Link) account() {
	l.Stats.area += float64(len(l.queue)) * float64(l.net.now-l.Stats.changed)
	l.Stats.changed = l.net.now
}

// arrive has the program see a packet that is to take the link.
func (l *Link) arrive(p *Packet) {
	l.Stats.Packets++
	if p.Flow == nil {
		l.Stats.Cross++
	}
	if l.program == nil {
		l.enqueue(p)
		return
	}
	a := l.program.Arrive(l, p)
	if a.Mark {
		l.Stats.Marked++
		p.Marked = true
	}
	switch {
	case a.Drop:
		l.Stats.Dropped++
		l.drop(p)
	case a.Delay > 0:
		l.net.schedule(event{at: l.net.now + a.Delay, pass: l.enqueueLater, packet: p})
	default:
		l.enqueue(p)
	}
}

func (l *Link) enqueue(p *Packet) {
	if l.cfg.Rate <= 0 {
		l.leave(p)
		return
	}
	if !l.busy {
		l.transmit(p)
		return
	}
	if len(l.queue) >= l.cfg.Queue {
		l.Stats.Overflow++
		l.drop(p)
		return
	}
	l.account()
	l.queue = append(l.queue, p)
	l.Stats.MaxQueue = max(l.Stats.MaxQueue, len(l.queue))
}

// drop ends a packet.
func (l *Link) drop(p *Packet) {
	switch {
	case p.Flow == nil:
		l.Stats.CrossDropped++
	case p.Data:
		p.Flow.Stats.Dropped++
	}
	l.net.release(p)
}

// transmit puts a packet on the link, and the next one that waits after it.
func (l *Link) transmit(p *Packet) {
	l.busy = true
	l.net.schedule(event{at: l.net.now + l.TransmitTime(p.Bytes), pass: l.sentLater, packet: p})
}

func (l *Link) sent(p *Packet) {
	l.leave(p)
	if len(l.queue) == 0 {
		l.busy = false
		return
	}
	l.account()
	next := l.queue[0]
	l.queue = l.queue[1:]
	l.transmit(next)
}

// TransmitTime returns how long the link takes for so many bytes.
func (l *Link) TransmitTime(bytes int) time.Duration {
	if l.cfg.Rate <= 0 {
		return 0
	}
	return time.Duration(int64(bytes) * 8 * int64(time.Second) / l.cfg.Rate)
}

// leave is when the last bit of a packet is on the link.
func (l *Link) leave(p *Packet) {
	l.Stats.Bytes += p.Bytes
	if l.cfg.Loss > 0 && l.random.Float64() < l.cfg.Loss {
		l.Stats.Lost++
		l.drop(p)
		return
	}
	l.net.schedule(event{at: l.net.now + l.cfg.Delay, pass: l.forwardLater, packet: p})
}

// forward takes a packet from the end of a link to the next one, or delivers it.
func (n *Network) forward(p *Packet) {
	p.path = p.path[1:]
	if len(p.path) > 0 {
		p.path[0].arrive(p)
		return
	}
	if p.Flow != nil {
		p.Flow.deliver(p)
	}
	n.release(p)
}

// inject has a packet begin its path.
func (n *Network) inject(p Packet, path []*Link) {
	p.path = path
	path[0].arrive(n.packet(p))
}
