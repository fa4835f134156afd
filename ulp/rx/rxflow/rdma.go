package rxflow

import (
	"errors"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/stag"
	rdma "urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
)

// An rdmaConn follows a connection of Rx over an RNIC.
type rdmaConn struct {
	line
	private  [2]rdma.Private
	has      [2]bool
	begun    bool   // there is a summary
	whole    bool   // all that both sides have sent is known
	credits  [2]int // messages that a side may send
	channels []*rdmaCall
	ended    [2]bool // a side has aborted the connection
	closing  bool    // the client begins no more calls
	offers   map[stag.STag]*rdmaOffer

	challenges []challenge
	responded  bool
	session    Session
	over       *rdmaCall // the call that the present message has ended
}

// New returns what follows a connection of iWARP, if its private data are those of Rx.
func (a *Analyzer) New(r *dissect.Reporter) dissect.Upper {
	return &rdmaConn{line: line{a: a, r: r}}
}

// Frame takes the private data of a start-up frame.
func (c *rdmaConn) Frame(from dissect.Side, at capture.At, private []byte) {
	if !rdma.IsPrivate(private) {
		return
	}
	c.begin()
	if from == dissect.Server && c.r.Connection().MPA.Rejected {
		code, err := rdma.ParseRefusal(private)
		if err != nil {
			c.blame(ruleRDMAPrivate, from, at, "%s", reason(err))
		} else {
			c.r.Emit(from, at, &Refusal{code})
		}
		c.tell()
		return
	}
	p, err := rdma.ParsePrivate(private)
	if err != nil {
		c.blame(ruleRDMAPrivate, from, at, "%s", reason(err))
		c.tell()
		return
	}
	c.private[from], c.has[from] = p, true
	c.r.Emit(from, at, &Private{p})
	if from == dissect.Server && c.has[dissect.Client] {
		c.agree(at, &c.private[dissect.Client], &p)
	}
	c.tell()
}

// begin makes the summary.
func (c *rdmaConn) begin() {
	if !c.begun {
		c.begun, c.sum = true, &Summary{Kind: "rdma"}
		c.r.Connection().Upper = c.sum
	}
}

// agree judges a reply.
func (c *rdmaConn) agree(at capture.At, asked, got *rdma.Private) {
	if got.Epoch != asked.Epoch || got.ConnID != asked.ConnID || got.Security != asked.Security {
		c.blame(ruleRDMAPrivate, dissect.Server, at, "connection %08x/%08x with security index %d, and the request was for %08x/%08x with %d",
			got.Epoch, got.ConnID, got.Security, asked.Epoch, asked.ConnID, asked.Security)
	}
	if upgraded := asked.Features&got.Features&rdma.FeatureUpgrade != 0; got.Service != asked.Service && !upgraded {
		c.blame(ruleRDMAPrivate, dissect.Server, at, "service %d, and the request was for %d without an upgrade", got.Service, asked.Service)
	}
}

// Follows reports whether the connection carries Rx.
func (c *rdmaConn) Follows() bool {
	if !c.begun {
		return false
	}
	client, server := &c.private[dissect.Client], &c.private[dissect.Server]
	c.whole = c.r.Whole() && c.has[0] && c.has[1]
	p := server
	if !c.has[dissect.Server] {
		p = client
	}
	c.sum.Epoch, c.sum.ID, c.sum.Service, c.sum.Security = p.Epoch, p.ConnID, p.Service, p.Security
	c.credits = [2]int{dissect.Client: int(server.Credits), dissect.Server: int(client.Credits)}
	c.channels = make([]*rdmaCall, min(client.Channels, server.Channels))
	if !c.whole {
		c.channels = make([]*rdmaCall, rdma.MaxChannels)
	}
	return true
}

// Send takes a message.
func (c *rdmaConn) Send(from dissect.Side, at capture.At, m *dissect.Sent) {
	n := c.sum.side(from)
	n.Datagrams++
	n.Largest = max(n.Largest, int(m.Length))
	if !m.Whole {
		c.Lost(from)
		return
	}
	msg, body, err := rdma.Parse(m.Octets)
	if err != nil {
		c.blame(ruleRDMAFormat, from, at, "%s", reason(err))
		c.tell()
		return
	}
	e := &Message{Message: msg, Body: body}
	n.count(e)
	c.judge(from, at, e, len(m.Octets))
	if !c.a.Calls {
		c.r.Emit(from, at, e)
	}
	c.tell()
	if k := c.over; k != nil {
		c.over = nil
		k.tell(c, from, at)
	}
}

// judge judges a message.
func (c *rdmaConn) judge(from dissect.Side, at capture.At, e *Message, length int) {
	m := &e.Message
	if c.whole {
		if most := c.private[1-from].Receive; uint32(length) > most {
			c.blame(ruleRDMALength, from, at, "a message of %d bytes; the %v's receives have %d", length, 1-from, most)
		}
		c.credit(from, at, m)
		if c.ended[from] {
			c.blame(ruleRDMAEnd, from, at, "%v after the connection was aborted", m.Type)
		}
	}
	switch m.Type {
	case rdma.Challenge, rdma.Response:
		c.secure(from, at, e)
	case rdma.Closing:
		c.closing = c.closing || from == dissect.Client
	case rdma.Credit, rdma.Ping, rdma.Pong:
	default:
		if m.Type == rdma.Abort && m.Call == 0 {
			c.ended[from] = true
			c.sum.side(from).aborted(m.Code)
			return
		}
		c.call(from, at, e)
	}
}

// credit judges whether a side may send a message.
func (c *rdmaConn) credit(from dissect.Side, at capture.At, m *rdma.Message) {
	c.credits[from]--
	if c.credits[from] < 0 {
		c.blame(ruleRDMACredit, from, at, "%v without a credit", m.Type)
		c.credits[from] = 0
	}
	c.credits[1-from] += int(m.Credits)
	if n := c.credits[1-from]; n > rdma.MaxCredits {
		c.blame(ruleRDMACredit, from, at, "it grants %d messages in all; the most are %d", n, rdma.MaxCredits)
	}
}

// secure takes a challenge, or the response to it.
func (c *rdmaConn) secure(from dissect.Side, at capture.At, e *Message) {
	index := c.sum.Security
	if e.Type == rdma.Challenge {
		if from == dissect.Client || index == 0 || c.responded {
			c.blame(ruleRDMASecurity, from, at, "a challenge that nobody expects: security index %d", index)
			return
		}
		nonce, level, text, err := readChallenge(index, e.Body)
		if err != nil {
			c.blame(ruleRDMAProof, from, at, "%s", err)
			return
		}
		e.Text = text
		if len(c.challenges) < maxChallenges {
			c.challenges = append(c.challenges, challenge{nonce, level})
		}
		return
	}
	if from == dissect.Server || index == 0 || c.whole && len(c.challenges) == 0 {
		c.blame(ruleRDMASecurity, from, at, "a response that nobody has asked for")
		return
	}
	c.responded = true
	text, err := readResponse(index, e.Body)
	if e.Text = text; err != nil {
		c.blame(ruleRDMAProof, from, at, "%s", err)
		return
	}
	keys := c.a.class(index)
	if keys == nil {
		return
	}
	s, err := keys.Session(secure.Conn{Epoch: c.sum.Epoch, ID: c.sum.ID, Index: index, Checksum: true}, e.Body)
	if _, ok := errors.AsType[*KeyError](err); ok {
		e.Text += ", which the keys do not open: " + err.Error()
		return
	}
	if err != nil {
		c.blame(ruleRDMAProof, from, at, "%s", err)
		return
	}
	e.Text = s.String()
	c.session, c.sum.Caller = s, s.String()
	nonce, level := s.Answers()
	for _, ch := range c.challenges {
		if ch.nonce == nonce && ch.level <= level {
			return
		}
	}
	if c.whole {
		c.blame(ruleRDMAProof, from, at, "the response answers another challenge, or its level %d is too low", level)
	}
}

// Lost takes notice that not all is known of what a side has sent.
func (c *rdmaConn) Lost(dissect.Side) { c.whole = false }

// Read takes a Read Request, which Rx does not use.
func (c *rdmaConn) Read(dissect.Side, capture.At, stag.STag, uint64, uint32) (any, string) {
	return nil, ""
}

// ReadData takes what answers a Read.
func (c *rdmaConn) ReadData(dissect.Side, capture.At, any, uint64, []byte) {}

// End takes leave of the connection.
func (c *rdmaConn) End(at capture.At) {
	for _, k := range c.channels {
		if k != nil && !k.told {
			k.tell(c, dissect.Client, at)
		}
	}
	c.channels = nil
}
