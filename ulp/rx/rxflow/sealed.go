package rxflow

import (
	"bytes"
	"errors"
	"fmt"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// What a connection keeps of what it can't open yet.
const (
	maxSealedPackets = 256
	maxChallenges    = 8
)

// A sealedPacket is a data packet that came before what opens it.
type sealedPacket struct {
	from dissect.Side
	at   capture.At
	h    wire.Header
	body []byte
	call *call
}

// A challenge is one that a server has sent.
type challenge struct {
	nonce, level uint32
}

// class returns what opens the packets of a security class, or nil.
func (a *Analyzer) class(index uint8) Security {
	for _, s := range a.Security {
		if s.Index() == index {
			return s
		}
	}
	return nil
}

// challenge takes a challenge.
func (c *conn) challenge(from dissect.Side, at capture.At, p *Packet) {
	nonce, level, text, err := readChallenge(c.security, p.Body)
	if err != nil {
		c.blame(ruleCredentials, from, at, "%s", err)
		return
	}
	if p.Text = text; text == "" || len(c.challenges) == maxChallenges {
		return
	}
	c.challenges = append(c.challenges, challenge{nonce, level})
}

// response takes the response to a challenge, and opens what waits for it.
func (c *conn) response(from dissect.Side, at capture.At, p *Packet) {
	text, err := readResponse(c.security, p.Body)
	p.Text = text
	if err != nil {
		c.blame(ruleCredentials, from, at, "%s", err)
		return
	}
	if c.keys == nil || from != dissect.Client {
		return
	}
	s, err := c.keys.Session(c.secured(), p.Body)
	if err != nil {
		if _, ok := errors.AsType[*KeyError](err); ok {
			p.Text += ", which the keys do not open: " + err.Error()
			return
		}
		c.blame(ruleCredentials, from, at, "%s", err)
		return
	}
	p.Text = s.String()
	c.asked(from, at, s)
	c.session, c.sum.Caller = s, s.String()
	for _, w := range c.sealed {
		c.a.sealed -= len(w.body)
		c.opened(w.from, w.at, &Packet{Header: w.h, Body: w.body}, w.call, w.body)
	}
	c.sealed = nil
}

// asked judges whether a response answers a challenge. It does if none was captured.
func (c *conn) asked(from dissect.Side, at capture.At, s Session) {
	nonce, level := s.Answers()
	if len(c.challenges) == 0 || len(c.challenges) == maxChallenges {
		return
	}
	unasked := func() bool {
		for _, ch := range c.challenges {
			if ch.nonce == nonce {
				return false
			}
		}
		return true
	}
	c.doubt(ruleCredentials, from, at, 0, unasked, "the response answers a challenge that was not made")
	for _, ch := range c.challenges {
		if ch.nonce == nonce && level < ch.level {
			c.blame(ruleCredentials, from, at, "the response has level %d, and the server wants %d", level, ch.level)
			return
		}
	}
}

// open takes what a data packet carries, if that can be had already.
func (c *conn) open(from dissect.Side, at capture.At, p *Packet, k *call) {
	switch {
	case c.security == 0 || p.Missing > 0 || c.keys == nil:
		k.side(from).Bytes += uint64(p.Length)
		c.sum.side(from).Bytes += uint64(p.Length)
		if c.security == 0 {
			c.operation(from, p, k, p.Body)
		}
	case c.session != nil:
		c.scratch = append(c.scratch[:0], p.Body...)
		c.opened(from, at, p, k, c.scratch)
	case len(c.sealed) < maxSealedPackets && c.a.sealed+len(p.Body) <= maxSealed:
		c.a.sealed += len(p.Body)
		c.sealed = append(c.sealed, sealedPacket{from, at, p.Header, bytes.Clone(p.Body), k})
	}
}

// opened opens a packet. It overwrites body, which is a copy.
func (c *conn) opened(from dissect.Side, at capture.At, p *Packet, k *call, body []byte) {
	h := &p.Header
	data, err := c.session.Open(secure.Packet{Call: h.Call, Channel: h.Channel(), Seq: h.Seq}, h.Checksum, body)
	if err != nil {
		c.blame(ruleProtection, from, at, "%s", err)
		return
	}
	p.Opened, p.Data = true, len(data)
	n := c.sum.side(from)
	n.Opened++
	n.Bytes += uint64(len(data))
	k.side(from).Bytes += uint64(len(data))
	c.operation(from, p, k, data)
}

// operation takes what a request asks for.
func (c *conn) operation(from dissect.Side, p *Packet, k *call, data []byte) {
	if from != dissect.Client {
		return
	}
	code, ok := k.dirs[from].opcode(p.Header.Seq, data)
	if !ok {
		return
	}
	k.Opcode, k.HasOp = code, true
	k.Operation = operationName(k.Service, c.r.Port(), code)
	p.Operation = k.Operation
	if p.Operation == "" {
		p.Operation = fmt.Sprintf("operation %d", int32(code))
	}
}

// unseal lets go of what was never opened.
func (c *conn) unseal() {
	for _, w := range c.sealed {
		c.a.sealed -= len(w.body)
	}
	c.sealed = nil
}
