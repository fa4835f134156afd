package machine

import (
	"encoding/binary"
	"errors"
	"time"

	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/wire"
)

// play runs a schedule: programs in a bad network, then in a good one, until all is at rest.
func (s *sim) play() {
	steps := 10 + s.rng.IntN(50)
	s.open(s.nodes[0], simClient, simListen)
	for range steps {
		s.act(s.nodes[s.rng.IntN(2)])
		s.run(s.now + time.Duration(s.rng.Int64N(int64(pick(s.rng, time.Millisecond, 20*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond)))))
	}
	s.heal()
}

// act has a program do something.
func (s *sim) act(n *simNode) {
	switch k := s.rng.IntN(100); {
	case k < 8:
		s.open(n, simClient+uint16(s.rng.IntN(2)), simListen)
	case k < 14: // both at once
		port := simActive + uint16(s.rng.IntN(2))
		s.open(n, port, port)
		if s.rng.IntN(3) > 0 {
			s.open(s.nodes[1-n.index], port, port)
		}
	case k < 50:
		if c := s.some(n); c != nil {
			for range 1 + s.rng.IntN(8) {
				s.send(c)
			}
		}
	case k < 72:
		s.readSome(n)
	case k < 78:
		if c := s.some(n); c != nil && s.rng.IntN(2) == 0 {
			s.close(c)
		}
	case k < 80:
		if s.rng.IntN(3) == 0 {
			s.reboot(n.index)
		}
	case k < 82:
		s.say("node %d stops to listen", n.index)
		if err := n.listener.Close(s.now); err != nil {
			s.fail("Close of a listener: %v", err)
		}
		s.events(n)
		s.listen(n)
	case k < 88:
		s.forge(n)
	case k < 90:
		if c := s.some(n); c != nil {
			c.Report(s.now, congestion.Report{Window: s.rng.IntN(5), Drops: s.rng.IntN(2)})
		}
	case k < 92:
		if c := s.some(n); c != nil {
			c.SetSendLimit(pick(s.rng, 60, 90, 1000))
		}
	case k < 94 && len(s.net.packets) > 0: // a segment is late
		p := &s.net.packets[s.rng.IntN(len(s.net.packets))]
		p.at = min(p.at+40*time.Millisecond, s.now+lifetime)
	}
	s.after(n)
}

// some returns a connection of a node that has not ended for the program; nil if there is none.
func (s *sim) some(n *simNode) *simConn {
	if len(n.conns) == 0 {
		return nil
	}
	return n.conns[s.rng.IntN(len(n.conns))]
}

func (s *sim) open(n *simNode, local, remote uint16) {
	c, err := n.Open(s.now, OpenConfig{Path: pathTo(1 - n.index), Version: s.version, Port: local, Remote: remote, Params: s.paramsOf(n.index)})
	if err != nil {
		if !errors.Is(err, ErrAlreadyOpen) && !errors.Is(err, ErrResources) {
			s.fail("Open: %v", err)
		}
		return
	}
	s.say("node %d opens %v", n.index, c.Name())
	s.adopt(n, c)
}

// adopt makes a connection known to the program.
func (s *sim) adopt(n *simNode, c *Conn) *simConn {
	x := &simConn{Conn: c, node: n, serial: len(s.conns), cur: c.cur}
	if s.numbers {
		x.seen = map[uint32]bool{}
	}
	c.Arg = x
	s.conns = append(s.conns, x)
	n.conns = append(n.conns, x)
	return x
}

// of returns what is known of a connection.
func (s *sim) of(n *simNode, c *Conn) *simConn {
	if x, ok := c.Arg.(*simConn); ok {
		return x
	}
	return s.adopt(n, c)
}

const headLen = 8

// send sends a message, whose data tell which one it is.
func (s *sim) send(c *simConn) {
	was := c.state
	size := headLen + s.rng.IntN(60)
	if most := c.MaxMessage(); was == Open {
		size = min(size, most)
		if s.rng.IntN(4) == 0 {
			size = most
		}
	}
	data := make([]byte, size)
	c.fill(data, len(c.sent))
	number, full := c.end, !c.room()
	var err error
	if s.rng.IntN(2) == 0 {
		err = c.Send(s.now, data)
	} else {
		buf := c.m.Buffer(size)
		copy(buf, data)
		err = c.SendBuffer(s.now, buf)
	}
	switch {
	case err == nil && was == Open && !full:
		s.say("node %d conn %d sends message %d as %d", c.node.index, c.serial, len(c.sent), number)
		c.sent = append(c.sent, simMessage{seq: number, size: size})
		clear(data) // the machine must not keep it
	case errors.Is(err, ErrWouldBlock) && was == Open && full, errors.Is(err, ErrNotOpen) && was != Open:
	default:
		s.fail("Send in %v, full: %v: %v", was, full, err)
	}
}

// fill writes the data of a message.
func (c *simConn) fill(data []byte, index int) {
	binary.BigEndian.PutUint32(data, uint32(c.serial))
	binary.BigEndian.PutUint32(data[4:], uint32(index))
	for i := headLen; i < len(data); i++ {
		data[i] = byte(c.serial + 7*index + i)
	}
}

// readSome has a program read.
func (s *sim) readSome(n *simNode) {
	for c := n.listener.Accept(); c != nil; c = n.listener.Accept() {
		s.say("node %d accepts %v", n.index, c.Name())
	}
	if c := s.some(n); c != nil {
		s.read(c, 1+s.rng.IntN(12))
	}
}

// read reads at most so many messages, and judges what it gets.
func (s *sim) read(c *simConn, most int) {
	for range most {
		queued := c.Status().Queued
		msg, err := c.Receive()
		if (err == nil) != (queued > 0) {
			s.fail("Status says that %d are queued, and Receive %v (I16)", queued, err)
		}
		if err != nil {
			if ended := c.state == Closed || c.state == CloseWait; errors.Is(err, ErrWouldBlock) == ended {
				s.fail("Receive in %v: %v", c.state, err)
			}
			return
		}
		s.judge(c, msg)
	}
}

// take is a Sink.
func (s *sim) take(c *Conn, msg Message) bool {
	if s.rng.IntN(4) == 0 {
		return false
	}
	msg.Data = append([]byte(nil), msg.Data...)
	s.judge(s.of(s.nodes[0].lifeOf(c), c), msg)
	return true
}

// lifeOf returns the life of a node that a connection is of.
func (n *simNode) lifeOf(c *Conn) *simNode {
	for _, n := range n.sim.nodes {
		if n.Machine == c.m {
			return n
		}
	}
	panic("a machine that is no node's")
}

// judge verifies that a message is the right one (I2, I3, I8, I9).
func (s *sim) judge(c *simConn, msg Message) {
	for i := range max(1, msg.Nulls) {
		if c.seen != nil {
			if c.seen[msg.Seq+i] {
				s.fail("the number %d comes twice", msg.Seq+i)
			}
			c.seen[msg.Seq+i] = true
		}
	}
	if msg.Nulls > 0 {
		return
	}
	if len(msg.Data) < headLen || int(binary.BigEndian.Uint32(msg.Data)) >= len(s.conns) {
		s.fail("what is delivered was never sent (I3)")
	}
	from, index := s.conns[binary.BigEndian.Uint32(msg.Data)], int(binary.BigEndian.Uint32(msg.Data[4:]))
	if index >= len(from.sent) {
		s.fail("what is delivered was never sent (I3)")
	}
	was := &from.sent[index]
	want := make([]byte, was.size)
	from.fill(want, index)
	s.say("node %d conn %d reads message %d of conn %d", c.node.index, c.serial, index, from.serial)
	switch {
	case string(want) != string(msg.Data):
		s.fail("message %d of conn %d is delivered with other contents (I3)", index, from.serial)
	case from.iss != c.irs || from.irs != c.iss || from.node.index == c.node.index:
		s.fail("conn %d delivers message %d of conn %d, which is not its peer (I8, I9)", c.serial, index, from.serial)
	case was.seq != msg.Seq:
		s.fail("message %d has the number %d; it was sent with %d", index, msg.Seq, was.seq)
	case was.got != nil && (s.cookies == CookiesNever || was.got == c):
		s.fail("message %d of conn %d is delivered twice (I2)", index, from.serial)
	case c.Sequenced() && index != c.read:
		s.fail("message %d of conn %d is delivered, and %d is next (I2)", index, from.serial, c.read)
	}
	was.got = c
	c.read++
	c.m.Free(msg.Data)
}

func (s *sim) close(c *simConn) {
	was := c.state
	err := c.Close(s.now)
	s.say("node %d conn %d is closed in %v: %v", c.node.index, c.serial, was, err)
	switch {
	case was == CloseWait && errors.Is(err, ErrClosing), was == Closed && errors.Is(err, ErrNotOpen):
	case err == nil && was != CloseWait && was != Closed:
		c.closed = true
	default:
		s.fail("Close in %v: %v", was, err)
	}
	if c.queue.n > 0 {
		s.fail("there is something to read after Close")
	}
}

// reboot ends a life of a node, and begins another one.
func (s *sim) reboot(i int) {
	s.say("node %d reboots", i)
	s.nodes[i] = s.start(i)
}

// forge has somebody send an RST or a SYN outside of the window (I19).
func (s *sim) forge(n *simNode) {
	c := s.some(n)
	if c == nil || c.state != Open {
		return
	}
	h := wire.Header{Version: s.version, Flags: pick(s.rng, wire.RST, wire.RST|wire.ACK, wire.SYN, wire.SYN|wire.ACK), Source: c.name.Remote, Dest: c.name.Local, Ack: c.una}
	h.Seq = c.cur - uint32(s.rng.IntN(1000))
	if s.rng.IntN(2) == 0 {
		h.Seq = c.cur + 2*c.window() + 1 + uint32(s.rng.IntN(1000))
	}
	if n.cfg.StrictReset && s.rng.IntN(2) == 0 {
		h.Seq = c.cur + 2 + uint32(s.rng.IntN(20))
	}
	if h.Flags&wire.SYN != 0 {
		h.MaxOutstanding, h.MaxSegment = 7, 700
	}
	s.say("somebody sends conn %d %v", c.serial, &h)
	s.net.forged = true
	before, acks := c.essence(), c.stats.Acks
	n.Receive(s.now, pathTo(1-n.index), h.AppendTo(nil, nil, nil))
	if after := c.essence(); after != before {
		s.fail("a forged segment changes conn %d from %+v to %+v (I19)", c.serial, before, after)
	}
	s.transmit(n)
	if c.stats.Acks > acks+1 {
		s.fail("a forged segment draws %d acknowledgements (I19)", c.stats.Acks-acks)
	}
}
