package machine

import (
	"fmt"
	"time"

	"urnic/ulp/rds/wire"
)

// A Path has at most one connection of the carrier at a time. Sequence numbers belong
// to the path, and outlive its connections.
type Path struct {
	conn  *Conn
	index int
	state State
	link  Link

	// What is sent.
	first, next                        uint64         // sequence numbers: of the first message, and of the next new one
	acked                              uint64         // the last that the peer has acknowledged
	queue                              fifo[*message] // unsent, those to be sent again first
	unacked                            fifo[*message] // sent, in the order of their sequence numbers
	gone                               int            // messages that were lost in these queues
	current                            *message       // of which some fragments are sent
	offset                             int            // bytes of it that are
	probe                              message        // the probe of this link
	mapDue, probeDue, greetDue, ackDue bool
	mapData                            []byte // of the map that is being sent
	unasked, unaskedBytes              int    // messages since one that asked for an acknowledgement
	asked                              uint64 // the sequence number of that one
	sentMap                            message

	// What is received.
	expected    uint64 // the sequence number after the last that was received
	last        uint64 // the last on this link, new or not
	renumbered  bool   // the peer has begun its numbers anew
	begunByData bool   // the first message on this link was the path's first, and data
	heard       bool   // a segment has come on this link
	in          incoming
	paused      bool // what comes next has to wait

	// Flow control.
	credits bool // it is in use
	credit  int  // Sends that the peer has credits for
	owed    int  // receives that were posted again, and not reported yet
	posted  int  // receives that there were at the beginning
	granted int  // Sends that the peer may still make

	// Messages with RDMA operations, and what is behind them.
	lines    map[pair]*fifo[*message] // they wait for answers
	ready    fifo[*message]           // they have waited
	doomed   bool                     // there may be some in the queue with operations that are not issued again
	confirm  bool                     // a silent operation wants an acknowledgement
	believed bool                     // the peer has acknowledged on this link, if only what it had before

	hasty      uint64   // up to which number a socket waits for acknowledgements
	hastened   *message // the ping that asks for them
	unbelieved bool     // the peer has acknowledged something before it was acquainted

	shaken  bool   // the peer's probe or pong has come on this link
	told    bool   // the peer has told its generation on this link
	greeted bool   // something has come besides the map; on paths but the first, no probe: the peer takes the link for the same path
	check   uint16 // port of a ping on path 0, which shows that the peer of this link still lives; 0: it does
	known   bool   // the peer has answered the probe of this link, and so knows this node's generation
	knock   bool   // the peer will not accept this link, but dial itself
	linked  bool   // there was a link before
	sought  bool   // Transmit was emitted, and Pull has not come to the end since

	since Time // when the link came up

	timer Time
	place int  // among the timers
	why   duty // what the timer is for
	bound time.Duration
	tries int

	failure error // why the last link was lost or not made
}

// A State is the state of a path.
type State uint8

// The states of a path.
const (
	Down       State = iota // there is no link, and none is being made
	Connecting              // a link is being made
	Up
)

var stateNames = [...]string{"down", "connecting", "up"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// A Link is one connection of a path. Each has a higher number than those before.
type Link uint64

// A duty is what a path does when its timer expires.
type duty uint8

const (
	reconnect duty = iota
	giveUpHandshake
	nudge
)

// Params are the parameters of a new link.
type Params struct {
	Generation uint32 // the peer's, of a carrier that introduces; 0: not known

	Ack     uint64 // the last sequence number that the peer says it has received; 0: it does not say
	Granted int    // receives that this node has posted; 0: no flow control
	Credit  int    // receives that the peer has posted; 0: no flow control
}

func newPath(c *Conn, index int) *Path {
	first := c.m.first
	return &Path{conn: c, index: index, first: first, next: first, acked: first - 1, expected: 1, timer: never, unasked: c.m.cfg.AckEvery}
}

// Conn returns the connection that the path belongs to.
func (p *Path) Conn() *Conn { return p.conn }

// Index returns the path's number, from 0.
func (p *Path) Index() int { return p.index }

// State returns the path's state, and its current link.
func (p *Path) State() (State, Link) { return p.state, p.link }

// Received returns the last sequence number that was received of a life of the peer, for
// the private data that accept a connection over RDMA. It is 0 if the peer has sent
// another generation, or none, as then it may have forgotten what it sent.
func (p *Path) Received(generation uint32) uint64 {
	if generation == 0 || generation != p.conn.generation {
		return 0
	}
	return p.expected - 1
}

// Up reports that a link is up: the one that an effect or Request named.
func (p *Path) Up(now Time, link Link, params Params) {
	m := p.conn.m
	m.at(now)
	if link != p.link || p.state != Connecting {
		return
	}
	p.state, p.since = Up, m.now
	p.heard, p.last, p.shaken, p.told, p.known, p.greeted = false, 0, false, false, false, false
	p.mapDue = p.index == 0 || p.conn.acks() // urnic takes no map on another path, but who follows it knows RDS by it
	p.probeDue, p.ackDue = p.index == 0 && !p.conn.carrier.Introduces, false
	p.believed, p.confirm = false, false
	p.bury(link - 1)
	p.greetDue = p.index > 0 && p.conn.generation != 0
	p.unasked, p.unaskedBytes = m.cfg.AckEvery, 0
	p.credits = params.Credit > 0 && params.Granted > 0
	p.credit, p.granted, p.posted, p.owed = params.Credit, params.Granted, params.Granted, 0
	m.counters.Connects++
	if !p.knock {
		if p.linked {
			m.counters.Reconnects++
		}
		p.linked = true
	}
	m.report(Event{Kind: Connected, Peer: p.conn.key.Peer, TOS: p.conn.key.TOS, Path: p.index})
	m.set(p, never)
	if p.conn.acquainted && params.Ack > 0 && params.Ack < p.next { // else it may be of an earlier life of this node
		p.acknowledged(params.Ack)
	}
	switch {
	case p.conn.carrier.Introduces:
		p.introduced(params.Generation)
	case p.index == 0:
		p.why = giveUpHandshake
		m.set(p, m.now+m.cfg.Handshake)
	}
	p.verify()
	p.transmit()
	if next := p.index + 1; next < len(p.conn.paths) {
		p.conn.paths[next].want()
	}
}

// Down reports that a link is lost, or that it could not be set up; and, after a Hangup effect,
// that nothing of it is left. Call Done before it for the operations that have failed.
func (p *Path) Down(now Time, link Link, why error) {
	p.conn.m.at(now)
	defer p.conn.forget()
	if link == p.link && p.state != Down {
		p.lost(why)
	}
	p.bury(link)
}

// lost puts what was sent back into the queue, and begins a new link.
func (p *Path) lost(why error) {
	m := p.conn.m
	p.failure = why
	if p.state == Connecting {
		p.tries++
	}
	if p.state == Up {
		m.counters.Losses++
		m.report(Event{Kind: Disconnected, Peer: p.conn.key.Peer, TOS: p.conn.key.TOS, Path: p.index, Err: why})
	}
	p.state, p.conn.since = Down, m.now
	p.sought, p.hasty, p.hastened, p.unbelieved = false, 0, nil, false // what is sent again asks itself
	p.abandon()
	p.requeue()
	p.retry(why)
}

// hangUp ends the link for a reason of this side.
func (p *Path) hangUp(why error) {
	if p.state == Down {
		return
	}
	p.conn.m.emit(Effect{Kind: Hangup, Path: p, Link: p.link, Err: why})
	p.lost(why)
}

// violated ends the link, as the peer has broken a rule.
func (p *Path) violated(r Rule, err error, format string, args ...any) {
	m := p.conn.m
	v := &Violation{Peer: p.conn.key.Peer, Rule: r, Err: err}
	if format != "" {
		v.Reason = fmt.Sprintf(format, args...)
	}
	m.counters.Violations++
	m.report(Event{Kind: PeerViolation, Peer: p.conn.key.Peer, TOS: p.conn.key.TOS, Err: v})
	p.hangUp(v)
}

// Malformed reports that what has arrived over a link is no header: err is a
// *wire.FormatError.
func (p *Path) Malformed(now Time, link Link, err error) {
	p.Broken(now, link, RuleFormat, err)
}

// Broken reports that the peer has broken a rule that the carrier checks.
func (p *Path) Broken(now Time, link Link, rule Rule, err error) {
	p.conn.m.at(now)
	if link == p.link && p.state == Up {
		p.violated(rule, err, "")
	}
}

// requeue puts what was sent and not acknowledged in front of the queue. It will be sent
// with its old sequence numbers, so that the peer drops what it has.
func (p *Path) requeue() {
	again := make([]*message, 0, p.unacked.len()+1+p.queue.len())
	add := func(msg *message) {
		switch {
		case msg == &p.probe:
		case msg.socket == nil: // it is lost, or a pong, or asks for acknowledgements
			p.conn.m.finish(msg)
		default:
			if msg.op != nil && !msg.op.again(p.conn) {
				p.doomed = true
			}
			if msg.h.Sequence != 0 {
				msg.h.Flags |= wire.Retransmitted | wire.AckRequired
			}
			again = append(again, msg)
		}
	}
	for _, msg := range p.unacked.all() {
		add(msg)
	}
	if p.current != nil && p.current != &p.sentMap {
		add(p.current)
	}
	for _, msg := range p.waiting() {
		add(msg)
	}
	p.ready.replace(nil)
	clear(p.lines)
	for _, msg := range p.queue.all() {
		if msg.socket == nil {
			p.conn.m.finish(msg)
			continue
		}
		again = append(again, msg)
	}
	p.current, p.offset, p.mapData = nil, 0, nil
	p.unacked.replace(nil)
	p.queue.replace(again)
}

// transmit asks the owner to call Pull.
func (p *Path) transmit() {
	if p.state == Up && !p.sought {
		p.sought = true
		p.conn.m.emit(Effect{Kind: Transmit, Path: p})
	}
}
