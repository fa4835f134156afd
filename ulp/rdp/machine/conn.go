package machine

import "urnic/ulp/rdp/congestion"

// A Conn is a connection: the connection record of RFC 908 §3.2.4.
type Conn struct {
	// Arg is for the owner's use.
	Arg any

	m        *Machine
	name     Name
	p        *Params   // as the Open request had them; those of a listener are shared
	listener *Listener // that it waits at for Accept; nil for an active open, or when accepted
	err      error     // why it has ended; a *ConnError

	state    State
	active   bool // by an active open
	closed   bool // by us: Close, or an error of the peer's; RST has been sent
	half     bool // counts as half-open
	ordered  bool // sequenced delivery, as both SYNs together say
	synDue   bool
	synTries uint8
	restarts uint8
	told     uint8 // events that Events has yet to return, by their kinds
	inReady  bool  // in the machine's queue of those that may have something to send

	// Timers, and where the connection is among the machine's.
	rings     Time
	spot      int32 // from 1; 0: nowhere
	synAt     Time  // when SYN or SYN,ACK is sent again
	restartAt Time  // before which an open does not begin again
	lingers   Time  // how long CLOSE-WAIT lasts at least
	closeAt   Time  // the end of CLOSE-WAIT
	ackAt     Time  // when an acknowledgement can't wait longer; never: none waits

	// Sending. Numbers from una to nxt are sent, those up to end wait for the window.
	iss      uint32 // SND.ISS
	una      uint32 // SND.UNA
	nxt      uint32 // SND.NXT
	end      uint32
	limit    uint16 // Params.SendLimit, or what the path is found to carry
	peer     limits // window is SND.MAX, segment is SBUF.MAX
	out      out
	unacked  int32 // messages that no acknowledgement names, also those that are not sent yet
	wants    bool  // Send has been refused
	urgent   bool  // one retransmission does not wait for the congestion window
	silent   uint8 // timeouts since the peer was heard
	backoff  uint8 // timeouts since something was acknowledged
	rtt      rtt
	control  congestion.Controller
	order    uint32 // of the next transmission
	top      uint32 // of the latest transmission that was acknowledged, plus one
	round    uint32 // of the first transmission after the congestion window was last reduced
	epoch    uint32 // how often something was acknowledged
	progress Time   // when something was last acknowledged, or sent with nothing unacknowledged

	// Receiving.
	irs     uint32 // RCV.IRS
	cur     uint32 // RCV.CUR: the last number acknowledged in sequence
	got     record // numbers above cur that were accepted: RCVDSEQNO
	read    *record
	latest  uint32   // the number that was accepted last
	whole   uint32   // the last number up to which all were accepted; cur, if reading does not matter
	claimed uint32   // the highest number of an RST, or irs
	held    [][]byte // sequenced: data that waits for what is before it, by number
	nHeld   int32    // of them
	nNulls  int32    // entries of the queue that are NULs
	queue   queue    // for Receive
	ackDue  bool     // an acknowledgement must be sent
	waiting uint8    // segments that wait for their acknowledgement
	answers uint8    // to what is outside of the window, since something was inside
	doubtAt Time     // when the next of them may be sent
	heard   Time     // when a segment of the peer was last inside the window
	stats   Stats
}

// conn makes a connection. It is not among the machine's yet.
func (m *Machine) conn(n Name, p *Params) *Conn {
	c := &Conn{m: m, name: n, p: p, limit: uint16(p.SendLimit), ackAt: never, synAt: never, heard: m.now, progress: m.now, doubtAt: m.now}
	c.rtt.timeout = m.cfg.RTOInitial
	return c
}

// begin begins the record with an initial sequence number (RFC 908 p.21).
func (c *Conn) begin(iss uint32) { c.iss, c.una, c.nxt, c.end = iss, iss, iss+1, iss+1 }

// Name returns what names the connection.
func (c *Conn) Name() Name { return c.name }

// State returns the state.
func (c *Conn) State() State { return c.state }

// Err returns why the connection has ended: a *ConnError, or nil if it has not, or was closed
// by Close.
func (c *Conn) Err() error { return c.err }

// Sequenced reports whether data is delivered in the order of its numbers. It holds once the
// connection is open.
func (c *Conn) Sequenced() bool { return c.ordered }

// ours are the limits that our SYN announces. RCV.MAX is the parameter of the Open request;
// SND.MAX comes from the peer alone.
func (c *Conn) ours() limits {
	return limits{uint16(c.p.Window), uint16(c.p.MaxSegment), c.p.Sequenced || c.ordered}
}

// adopt sets what the peer's SYN says (L3, S3, S4). The connection is sequenced if either side
// has requested it.
func (c *Conn) adopt(seq uint32, l limits) {
	c.irs, c.cur, c.whole, c.latest, c.claimed = seq, seq, seq, seq, seq
	c.peer = l
	c.ordered = c.p.Sequenced || l.sequenced
}

// window is RCV.MAX.
func (c *Conn) window() uint32 { return uint32(c.p.Window) }

// sendMax is the largest segment that may be sent, with 20 bytes for IP.
func (c *Conn) sendMax() int { return int(min(c.peer.segment, c.limit)) }

// SetSendLimit changes Params.SendLimit for this connection, when the path is found to carry more
// or less. What Send has already accepted is sent as it is.
func (c *Conn) SetSendLimit(n int) { c.limit = uint16(min(max(n, minSegment), maxSegment)) }

// opened enters OPEN: the peer has acknowledged our SYN (S3, R5).
func (c *Conn) opened() {
	c.una = c.iss + 1
	c.synDue, c.synAt = false, never
	c.unhalf()
	c.heard, c.progress = c.m.now, c.m.now
	if c.control = c.p.Congestion(); c.control == nil {
		c.control = congestion.None()
	}
	if c.p.AckRead {
		c.read = &record{}
	}
	c.m.counters.Opened++
	c.enter(Open, nil)
	c.tell(Writable)
	if c.listener != nil {
		c.listener.opened(c)
	}
}

// unhalf stops counting the connection as half-open.
func (c *Conn) unhalf() {
	if c.half {
		c.half = false
		c.m.halfOpen--
	}
}

// fail sets why the connection ends.
func (c *Conn) fail(why error) {
	if c.err == nil {
		c.err = &ConnError{c.name, why}
	}
}

// rst sends an RST with a number.
func (c *Conn) rst(seq uint32) {
	c.m.sendRaw(rawSegment{name: c.name, flags: rstFlag, seq: seq})
}

// closeWait enters CLOSE-WAIT (U5, O2, O5). What was not acknowledged is dropped; what was
// accepted can still be read.
func (c *Conn) closeWait() {
	c.dropOut()
	c.dropHeld()
	c.ackDue, c.ackAt = false, never
	c.closeAt = max(c.m.now+c.m.cfg.CloseWait, c.lingers)
	c.enter(CloseWait, c.err)
	c.tell(Readable)
	c.arm()
}

// release enters CLOSED: the record is freed (T2, S1, R2, O4).
func (c *Conn) release(why error) {
	if why != nil {
		c.fail(why)
	}
	c.dropOut()
	c.dropHeld()
	c.unhalf()
	c.synDue, c.ackDue, c.synAt, c.ackAt = false, false, never, never
	c.m.timers.stop(c)
	delete(c.m.conns, c.name)
	if l := c.listener; l != nil && c.state == SynRcvd {
		l.pending--
		c.listener = nil
	}
	c.enter(Closed, c.err)
	c.tell(Readable)
}

// dropOut forgets what was not acknowledged.
func (c *Conn) dropOut() {
	c.out.drop(&c.m.pool, c.una, c.end)
	c.end = c.nxt
	c.una = c.nxt
}

// wake makes Pull look at the connection.
func (c *Conn) wake() {
	if !c.inReady {
		c.inReady = true
		c.m.ready.Push(c)
	}
}

// ackNow makes the next Pull send an acknowledgement.
func (c *Conn) ackNow() {
	c.ackDue, c.ackAt = true, never
	c.wake()
}

// Report passes a report of code in the path to the congestion controller.
func (c *Conn) Report(now Time, r congestion.Report) {
	c.m.tick(now)
	if c.control != nil {
		c.control.Reported(c.m.now, r)
		c.wake()
	}
}
