package machine

import (
	"errors"

	"urnic/internal/ring"
	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
	rxwire "urnic/ulp/rx/wire"
)

// maxSealed is the most data of a part whose body a class changes: rxkad has 16 bits for
// its length.
const maxSealed = 1<<16 - 1

// protection returns what secures parts, or nil.
func (c *Conn) protection() secure.Protection {
	switch {
	case c.cfg.ClientSecurity != nil:
		return c.cfg.ClientSecurity
	case c.cfg.ServerSecurity != nil:
		return c.cfg.ServerSecurity
	}
	return nil
}

// plain reports whether bodies are sent as they are, so that memory may be written to by
// RDMA (docs/rx-rdma.md, "Security").
func (c *Conn) plain() bool {
	p := c.protection()
	return p == nil || p.Overhead() == 0 && p.Multiple() <= 1 && p.Least() == 0
}

// bulkFor is how long an offer of the direction may be: 0 if there can be none.
func (c *Conn) bulkFor(offering, placing wire.Features) int {
	if offering&wire.FeatureOffer == 0 || placing&wire.FeaturePlace == 0 || !c.plain() {
		return 0
	}
	return c.bulk
}

// room is how much data a part can have, and how much of the body is in front of it.
func (c *Conn) room() (data, overhead int) {
	body := c.most - wire.HeaderLen
	p := c.protection()
	if p == nil {
		return body, 0
	}
	if m := p.Multiple(); m > 1 {
		body -= body % m
	}
	data = body - p.Overhead()
	if p.Overhead() > 0 {
		data = min(data, maxSealed&^7)
	}
	return data, p.Overhead()
}

// seal secures the body of a part, whose data lies in b behind the overhead, and returns
// how long the body has become.
func (c *Conn) seal(m *wire.Message, b []byte, data int) (int, error) {
	p := c.protection()
	if p == nil {
		return data, nil
	}
	n := max(p.Overhead()+data, p.Least())
	if m := p.Multiple(); m > 1 {
		n = (n + m - 1) / m * m
	}
	if n > len(b) {
		return 0, errMemory
	}
	sum, err := p.Seal(secure.Packet{Call: m.Call, Channel: m.Channel, Seq: m.Seq}, b[:n], data)
	m.Checksum = sum
	return n, err
}

// open returns the data of a part.
func (c *Conn) open(m *wire.Message, body []byte) ([]byte, error) {
	p := c.protection()
	if p == nil {
		return body, nil
	}
	return p.Open(secure.Packet{Call: m.Call, Channel: m.Channel, Seq: m.Seq}, m.Checksum, body)
}

// sendBody queues a message of the security class.
func (c *Conn) sendBody(t wire.Type, body []byte) {
	if len(body) > c.most-wire.HeaderLen {
		c.fail(&AbortError{Code: rxwire.RxkadTicketLength, Cause: errLong})
		return
	}
	b := c.host.Buffer()
	if b == nil {
		c.fail(&AbortError{Code: rxwire.CallDead, Cause: errMemory})
		return
	}
	n := copy(b.Mem[wire.HeaderLen:], body)
	c.out.Push(Out{Msg: wire.Message{Type: t}, Buffer: b, Len: wire.HeaderLen + n})
}

// challenge asks the client who it is: the server's first message.
func (c *Conn) challenge() {
	body, err := c.cfg.ServerSecurity.Challenge()
	if err != nil {
		c.fail(&AbortError{Code: codeOf(err), Cause: err})
		return
	}
	c.asked = true
	c.sendBody(wire.Challenge, body)
}

var (
	errTwice    = errors.New("the connection is authenticated already")
	errNotAsked = errors.New("a message of the security class, and the connection has none")
	errEarly    = errors.New("a call before the client has proved who it is")
)

// challenged answers a challenge. Calls have waited for it.
func (c *Conn) challenged(body []byte) {
	switch {
	case !c.cfg.Client:
		c.violated(RuleSecurity, errNotAsked)
		return
	case c.cfg.ClientSecurity == nil:
		c.fail(&AbortError{Code: rxwire.RxkadNoAuth, Cause: errNoClass})
		return
	case c.proved:
		c.violated(RuleSecurity, errTwice)
		return
	}
	var calls secure.Calls
	copy(calls[:], c.numbers)
	response, err := c.cfg.ClientSecurity.Respond(body, calls)
	if err != nil {
		c.fail(&AbortError{Code: codeOf(err), Cause: err})
		return
	}
	waiting := c.out
	c.out = ring.Ring[Out]{}
	c.sendBody(wire.Response, response)
	c.proved = true
	for waiting.Len() > 0 {
		o := waiting.Pop()
		if c.err != nil {
			c.drop(&o)
			continue
		}
		c.out.Push(o)
	}
}

// responded judges a client's response.
func (c *Conn) responded(body []byte) {
	s := c.cfg.ServerSecurity
	switch {
	case s == nil || !c.asked:
		c.violated(RuleSecurity, errNotAsked)
		return
	case c.proved:
		c.violated(RuleSecurity, errTwice)
		return
	}
	if _, err := s.Verify(body, c.cfg.Start.Add(c.now)); err != nil {
		c.fail(&AbortError{Code: codeOf(err), Cause: &ViolationError{RuleProof, err}})
		return
	}
	c.proved = true
}

// admit reports whether the client may begin a call: its ticket may have expired.
func (c *Conn) admit() bool {
	s := c.cfg.ServerSecurity
	if s == nil {
		return true
	}
	if !c.proved {
		c.violated(RuleSecurity, errEarly)
		return false
	}
	if ok, err := s.Authenticated(c.cfg.Start.Add(c.now)); err != nil || !ok {
		if err == nil {
			err = errEarly
		}
		c.fail(&AbortError{Code: codeOf(err), Cause: err})
		return false
	}
	return true
}
