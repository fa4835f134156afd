package machine

import (
	"math"

	"urnic/ulp/rx/rxrdma/wire"
)

// Posted says that receives were posted.
func (c *Conn) Posted(n int) { c.owed += n }

// Pull fills in what is to be sent next, and reports whether there is something. With the
// last credit, only what grants the peer some is sent (docs/rx-rdma.md, "Credits").
func (c *Conn) Pull(now Time, o *Out) bool {
	c.now = now
	for c.credits > 1 || c.credits == 1 && (c.owed > 0 || c.partDue) {
		if !c.next(o) {
			return false
		}
		if k := o.call; k != nil && k.err != nil {
			c.drop(o) // the call has failed
			if o.Msg.Flags&wire.FlagLast == 0 || k.aborted {
				continue // an ABORT follows
			}
			k.aborted = true
			*o = Out{Msg: k.abortMessage(k.err.Code)} // the peer waits for the end of the stream
		}
		o.Msg.Credits = uint16(min(c.owed, math.MaxUint16))
		c.owed -= int(o.Msg.Credits)
		c.granted += int(o.Msg.Credits)
		c.credits--
		if o.Buffer != nil {
			o.Msg.Put(o.Buffer.Mem)
		}
		return true
	}
	return false
}

// window makes a WINDOW, if one is due.
func (c *Conn) window(o *Out) bool {
	for c.windows.Len() > 0 {
		k := c.windows.Pop()
		k.in.due = false
		if k.err == nil && !k.in.ended {
			k.in.told = k.in.read
			o.Msg = wire.Message{Type: wire.Window, Channel: k.channel, Call: k.number, Seq: k.in.read}
			return true
		}
	}
	return false
}

// next finds what is to be sent.
func (c *Conn) next(o *Out) bool {
	*o = Out{}
	switch {
	case c.partDue:
		c.partDue = false
		o.Msg = wire.Message{Type: wire.Abort, Code: c.farewell}
	case c.err != nil:
		return false
	case c.hello:
		c.hello = false
		o.Msg = wire.Message{Type: wire.Credit}
	case c.pongDue:
		c.pongDue = false
		o.Msg = wire.Message{Type: wire.Pong, Seq: c.pong}
	case c.window(o):
	case c.out.Len() > 0 && (c.proved || !c.cfg.Client):
		*o = c.out.Pop()
	case c.pingDue:
		c.pingDue = false
		c.pingSeq++
		o.Msg = wire.Message{Type: wire.Ping, Seq: c.pingSeq}
	case c.owed >= max(2, int(c.cfg.Own.Credits)/4), c.owed > 0 && c.granted <= 2:
		// With less, two CREDITs could answer each other forever.
		o.Msg = wire.Message{Type: wire.Credit}
	default:
		return false
	}
	return true
}
