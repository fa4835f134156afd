package machine

import (
	"errors"
	"fmt"

	"urnic/ulp/rx/rxrdma/wire"
	rxwire "urnic/ulp/rx/wire"
)

// Received takes a message that lies in a receive. The receive belongs to the connection
// until Host.Free.
func (c *Conn) Received(now Time, slot int, b []byte) {
	c.now = now
	if c.err != nil {
		c.host.Free(slot)
		return
	}
	m, body, err := wire.Parse(b)
	switch {
	case err != nil:
		c.violated(RuleFormat, err)
	case c.granted == 0:
		c.violated(RuleCredit, errors.New("there is no credit for its message"))
	default:
		c.granted--
		c.credits += int(m.Credits)
		c.heard = now
		if c.credits > wire.MaxCredits {
			c.violated(RuleCredit, fmt.Errorf("it grants %d messages in all", c.credits))
			break
		}
		if (m.Type == wire.Data || m.Type == wire.Placed) && m.Call != 0 {
			c.part(slot, &m, body)
			return
		}
		c.message(&m, body)
	}
	c.host.Free(slot)
}

// message takes a message that is no part of a stream.
func (c *Conn) message(m *wire.Message, body []byte) {
	switch m.Type {
	case wire.Challenge:
		c.challenged(body)
	case wire.Response:
		c.responded(body)
	case wire.Ping:
		c.pongDue, c.pong = true, m.Seq
	case wire.Pong, wire.Credit: // what counts is that it has come
	case wire.Closing:
		c.peerOut = true
		c.host.Vacant()
	case wire.Abort:
		if m.Call == 0 {
			c.fail(&AbortError{Code: rxwire.Code(m.Code), Remote: true})
			return
		}
		c.about(m)
	default:
		c.about(m)
	}
}

// about takes a message that is about a call.
func (c *Conn) about(m *wire.Message) {
	switch {
	case int(m.Channel) >= len(c.calls):
		c.violated(RuleChannel, fmt.Errorf("channel %d of %d", m.Channel, len(c.calls)))
		return
	case !c.proved:
		c.violated(RuleSecurity, errEarly)
		return
	case m.Type == wire.Abort && !c.cfg.Client && m.Call > c.numbers[m.Channel] && c.calls[m.Channel] == nil:
		// The client has given up before anything was sent. The answer frees its channel.
		c.numbers[m.Channel] = m.Call
		c.out.Push(Out{Msg: wire.Message{Type: wire.Abort, Channel: m.Channel, Call: m.Call, Code: m.Code}})
		return
	case m.Call == 0 || m.Call > c.numbers[m.Channel]:
		c.violated(RuleCall, fmt.Errorf("%v for call %d, and the channel's last one is %d", m.Type, m.Call, c.numbers[m.Channel]))
		return
	}
	k := c.calls[m.Channel]
	if k == nil || k.number != m.Call {
		return // it has ended, and the peer did not know yet
	}
	switch m.Type {
	case wire.Window:
		k.acknowledged(m.Seq)
	case wire.Offer:
		k.offered(m)
	case wire.Demand:
		k.out.large = m.Flags&wire.FlagLarge != 0
		k.push()
		c.host.Writable(k)
	case wire.Abort:
		k.abortedBy(rxwire.Code(m.Code))
	default:
	}
}

// part takes a part of a stream.
func (c *Conn) part(slot int, m *wire.Message, body []byte) {
	k := c.callOf(m)
	if k == nil {
		c.host.Free(slot)
		return
	}
	in := &k.in
	switch {
	case in.ended:
		c.violated(RuleSequence, errors.New("a part after the last one"))
	case m.Seq != in.seq+1:
		c.violated(RuleSequence, fmt.Errorf("part %d after part %d", m.Seq, in.seq))
	case m.Type == wire.Data && m.Seq-in.told > uint32(c.cfg.Own.Window):
		c.violated(RuleWindow, fmt.Errorf("part %d, and up to %d the window has %d", m.Seq, in.told, c.cfg.Own.Window))
	default:
		data, err := c.open(m, body)
		if err != nil {
			c.fail(&AbortError{Code: codeOf(err), Cause: &ViolationError{RuleProof, err}})
			break
		}
		if k.arrived(slot, m, data) {
			return // it stays in its receive
		}
	}
	c.host.Free(slot)
}

// callOf returns the call of a part, which a client may begin with it; nil if the part is
// for nobody.
func (c *Conn) callOf(m *wire.Message) *Call {
	if int(m.Channel) >= len(c.calls) {
		c.violated(RuleChannel, fmt.Errorf("channel %d of %d", m.Channel, len(c.calls)))
		return nil
	}
	k, last := c.calls[m.Channel], c.numbers[m.Channel]
	switch {
	case k != nil && k.number == m.Call:
		return k
	case c.cfg.Client || m.Call <= last:
		c.violated(RuleSequence, fmt.Errorf("a part of call %d, which is over or never was", m.Call))
		return nil
	case k != nil:
		c.violated(RuleCall, fmt.Errorf("call %d begins while call %d goes on", m.Call, last))
		return nil
	case !c.admit():
		return nil
	}
	c.numbers[m.Channel] = m.Call
	k = c.begin(m.Channel)
	c.host.Begun(k)
	return k
}
