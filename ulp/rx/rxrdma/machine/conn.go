package machine

import (
	"errors"
	"math"
	"time"

	"urnic/internal/ring"
	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
	rxwire "urnic/ulp/rx/wire"
)

// A Conn is one side of a connection.
type Conn struct {
	cfg  Config
	host Host
	now  Time
	err  *AbortError

	// Credits (docs/rx-rdma.md, "Credits").
	credits int // messages that may be sent
	granted int // messages that the peer may send
	owed    int // receives that were posted since the last message

	out      ring.Ring[Out]
	windows  ring.Ring[*Call] // of which a WINDOW is due
	hello    bool             // the first message is due: a responder of MPA may not speak first
	pongDue  bool
	pong     uint32
	pingDue  bool
	pingSeq  uint32
	farewell int32 // the code of the ABORT of the connection that is due
	partDue  bool  // the same
	told     bool  // the peer was told that the connection has failed

	calls   []*Call
	numbers []uint32 // the last call of each channel
	active  int

	heard  Time
	pinged Time

	most    int  // bytes of the longest message that may be sent
	bulk    int  // bytes of the longest offer; 0: there are none
	proved  bool // parts may be sent, or received
	asked   bool // a challenge was sent
	closing bool // a CLOSING was sent
	peerOut bool // a CLOSING was received
}

// New begins a connection.
func New(cfg Config) *Conn {
	if cfg.DeadTime <= 0 {
		cfg.DeadTime = defaultDead
	}
	n := int(min(cfg.Own.Channels, cfg.Peer.Channels))
	c := &Conn{
		cfg: cfg, host: cfg.Host,
		credits: int(cfg.Peer.Credits), granted: int(cfg.Own.Credits),
		calls: make([]*Call, n), numbers: make([]uint32, n),
		most: int(min(cfg.Own.Receive, cfg.Peer.Receive)),
		bulk: int(min(cfg.Own.Bulk, cfg.Peer.Bulk)),
	}
	c.proved = cfg.ClientSecurity == nil && cfg.ServerSecurity == nil
	if cfg.ServerSecurity != nil {
		c.challenge()
	}
	c.hello = cfg.Client
	return c
}

// Err is why the connection has failed, or nil.
func (c *Conn) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// Closing reports whether the connection takes no more calls of the client.
func (c *Conn) Closing() bool { return c.closing || c.peerOut || c.err != nil }

// PeerClosing reports whether the peer has said that it begins no more calls, or takes none.
func (c *Conn) PeerClosing() bool { return c.peerOut }

// Active is how many calls have not ended.
func (c *Conn) Active() int { return c.active }

// Caller is who the client has proved to be.
func (c *Conn) Caller() secure.Caller {
	if s := c.cfg.ServerSecurity; s != nil && c.proved {
		return s.Caller()
	}
	return secure.Caller{}
}

// Begin begins a call of the client. Nothing is sent before there is data.
func (c *Conn) Begin(now Time) (*Call, error) {
	c.now = now
	switch {
	case c.err != nil:
		return nil, c.err
	case c.Closing():
		return nil, ErrClosing
	}
	for i, k := range c.calls {
		if k != nil {
			continue
		}
		if c.numbers[i] >= math.MaxInt32 {
			return nil, ErrClosing // numbers are used up
		}
		c.numbers[i]++
		return c.begin(uint8(i)), nil
	}
	return nil, ErrNoChannel
}

// begin makes the call of a channel.
func (c *Conn) begin(channel uint8) *Call {
	k := &Call{c: c, channel: channel, number: c.numbers[channel], started: c.now, moved: c.now}
	c.calls[channel] = k
	if c.active++; c.active == 1 {
		c.heard = max(c.heard, c.now)
		c.pinged = c.now
	}
	return k
}

// Close says that this side begins no more calls, or accepts none.
func (c *Conn) Close(now Time) {
	c.now = now
	if !c.closing && c.err == nil {
		c.closing = true
		c.out.Push(Out{Msg: wire.Message{Type: wire.Closing}})
	}
}

// AbortAll aborts all calls.
func (c *Conn) AbortAll(now Time, code rxwire.Code) {
	c.now = now
	for _, k := range c.calls {
		if k != nil {
			k.abort(&AbortError{Code: code})
		}
	}
}

// Lost ends the connection, as there is no way to the peer any more. Calls fail with -1
// (docs/rx-rdma.md, "The end of a connection").
func (c *Conn) Lost(now Time, cause error) {
	c.now = now
	c.told = true
	c.fail(&AbortError{Code: rxwire.CallDead, Cause: cause})
}

// violated ends the connection, as the peer has broken a rule.
func (c *Conn) violated(r Rule, err error) {
	c.fail(&AbortError{Code: rxwire.ProtocolError, Cause: &ViolationError{r, err}})
}

// fail ends the connection, and with it all calls.
func (c *Conn) fail(err *AbortError) {
	if c.err != nil {
		return
	}
	err.Conn = true
	c.err = err
	for c.out.Len() > 0 {
		o := c.out.Pop()
		c.drop(&o)
	}
	if !c.told && !err.Remote {
		c.partDue, c.farewell = true, int32(err.Code)
	}
	c.told = true
	for _, k := range c.calls {
		if k != nil {
			k.lose(err)
		}
	}
	c.host.Vacant()
}

// drop gives up what will not be sent.
func (c *Conn) drop(o *Out) {
	if o.Buffer != nil {
		c.host.Release(o.Buffer)
	}
	if o.Place != nil {
		o.Place.Over = true
		o.Place.call.placing--
		c.host.Writable(o.Place.call)
	}
}

// Done says that a Place was carried out: its memory is not used any more.
func (c *Conn) Done(now Time, p *Place) {
	c.now = now
	if p.Over {
		return
	}
	p.Over = true
	p.call.placing--
	p.call.moved = now
	c.host.Writable(p.call)
}

// Deadline is when Advance is to be called, and whether it is at all.
func (c *Conn) Deadline() (Time, bool) {
	at := never
	if c.err != nil {
		return 0, false
	}
	if c.waits() {
		at = min(c.heard+c.cfg.DeadTime, c.pinged+c.interval())
	}
	if !c.proved {
		at = min(at, c.cfg.DeadTime)
	}
	for _, k := range c.calls {
		if k != nil {
			at = min(at, k.deadline())
		}
	}
	return at, at != never
}

func (c *Conn) interval() time.Duration { return max(c.cfg.DeadTime/pings, time.Millisecond) }

// waits reports whether the peer is expected to be alive.
func (c *Conn) waits() bool { return c.active > 0 || !c.proved }

// Advance does what is due (docs/rx-rdma.md, "Time").
func (c *Conn) Advance(now Time) {
	c.now = now
	if c.err != nil {
		return
	}
	if c.waits() {
		if now >= c.heard+c.cfg.DeadTime || !c.proved && now >= c.cfg.DeadTime {
			c.fail(&AbortError{Code: rxwire.CallDead, Cause: errSilent})
			return
		}
		if now >= c.pinged+c.interval() {
			c.pinged = now
			if now >= c.heard+c.interval() {
				c.pingDue = true
			}
		}
	}
	for _, k := range c.calls {
		if k != nil && c.err == nil {
			k.advance()
		}
	}
}

// vacate frees the channel of a call whose two directions have ended.
func (c *Conn) vacate(k *Call) {
	if c.calls[k.channel] == k {
		c.calls[k.channel] = nil
		c.active--
		c.host.Vacant()
	}
}

// codeOf is the code of an abort for an error of a security class.
func codeOf(err error) rxwire.Code {
	if e, ok := errors.AsType[secure.Error](err); ok {
		return rxwire.Code(e.AbortCode())
	}
	return rxwire.RxkadInconsistent
}
