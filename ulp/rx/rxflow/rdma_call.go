package rxflow

import (
	"fmt"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/stag"
	rdma "urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// An rdmaCall is what is known of a call on a channel.
type rdmaCall struct {
	Call
	dirs [2]rdmaStream // by writer
	told bool
}

// An rdmaStream is what one side writes of a call.
type rdmaStream struct {
	stream
	seq   uint32 // of the last part
	read  uint32 // parts that the other side has said to have read
	ended bool
	last  bool
	offer *rdmaOffer
}

// An rdmaOffer is memory for a part of a stream.
type rdmaOffer struct {
	call    *rdmaCall
	writer  dissect.Side
	seq     uint32
	tag     stag.STag
	to      uint64
	length  uint32
	written uint64
}

// tell reports a call that has ended, or of which nothing more comes.
func (k *rdmaCall) tell(c *rdmaConn, from dissect.Side, at capture.At) {
	k.told = true
	request, reply := &k.dirs[dissect.Client], &k.dirs[dissect.Server]
	k.Whole = request.last && reply.last
	if k.Whole {
		k.Duration = reply.at.Sub(k.Start)
		if k.Code == nil {
			c.sum.Complete++
		}
	}
	c.r.Emit(from, at, &k.Call)
}

// call takes a message about a call.
func (c *rdmaConn) call(from dissect.Side, at capture.At, e *Message) {
	m := &e.Message
	if int(m.Channel) >= len(c.channels) {
		c.blame(ruleRDMAChannel, from, at, "channel %d, and there are %d", m.Channel, len(c.channels))
		return
	}
	part := m.Type == rdma.Data || m.Type == rdma.Placed
	k := c.channels[m.Channel]
	switch {
	case m.Call == 0 && c.whole:
		c.blame(ruleRDMACall, from, at, "%v is about a call, and this has call number 0", m.Type)
		return
	case k != nil && k.Number == m.Call:
	case k != nil && m.Call < k.Number:
		if part && c.whole {
			c.blame(ruleRDMASequence, from, at, "a part of call %d, which is over", m.Call)
		}
		return // what is about a call that has ended may have been on its way
	case from == dissect.Client && part || !c.whole:
		k = c.start(from, at, m, k)
	default:
		c.blame(ruleRDMACall, from, at, "%v for call %d, which the client has not begun", m.Type, m.Call)
		return
	}
	switch m.Type {
	case rdma.Data, rdma.Placed:
		c.part(from, at, e, k)
	case rdma.Offer:
		c.offer(from, at, m, k)
	case rdma.Window:
		c.reads(from, at, m.Seq, k)
	case rdma.Abort:
		c.sum.side(from).aborted(m.Code)
		if k.Code == nil {
			code := wire.Code(m.Code)
			k.Code, k.By = &code, from
		}
		k.dirs[from].ended = true
		c.settle(k)
	default:
	}
}

// start begins a call on a channel, which has had the call was.
func (c *rdmaConn) start(from dissect.Side, at capture.At, m *rdma.Message, was *rdmaCall) *rdmaCall {
	if was != nil && !was.told {
		if c.whole {
			c.blame(ruleRDMACall, from, at, "call %d begins while call %d continues", m.Call, was.Number)
		}
		was.tell(c, from, at)
	}
	if c.closing && c.whole {
		c.blame(ruleRDMACall, from, at, "call %d begins after CLOSING", m.Call)
	}
	if c.sum.Security != 0 && !c.responded && c.whole {
		c.blame(ruleRDMASecurity, from, at, "call %d begins before the client has proved who it is", m.Call)
	}
	k := &rdmaCall{Call: Call{Channel: m.Channel, Number: m.Call, Service: c.sum.Service, Start: at.Time}}
	c.channels[m.Channel] = k
	c.sum.Calls++
	return k
}

// settle notices that both directions of a call have ended.
func (c *rdmaConn) settle(k *rdmaCall) {
	if k.dirs[0].ended && k.dirs[1].ended && !k.told {
		c.over = k
	}
}

// part takes a part of a stream.
func (c *rdmaConn) part(from dissect.Side, at capture.At, e *Message, k *rdmaCall) {
	m, s := &e.Message, &k.dirs[from]
	if c.whole {
		switch window := uint32(c.private[1-from].Window); {
		case s.ended:
			c.blame(ruleRDMASequence, from, at, "part %d after the last one", m.Seq)
		case m.Seq != s.seq+1:
			c.blame(ruleRDMASequence, from, at, "part %d after part %d", m.Seq, s.seq)
		case m.Type == rdma.Data && m.Seq > s.read+window:
			c.blame(ruleRDMAWindow, from, at, "part %d, and the window is %d parts after %d", m.Seq, window, s.read)
		case m.Type == rdma.Placed:
			c.placed(from, at, m, s.offer)
		}
	}
	if o := s.offer; o != nil && m.Seq >= o.seq {
		delete(c.offers, o.tag)
		s.offer = nil
	}
	s.seq, s.at = max(s.seq, m.Seq), at.Time
	k.side(from).Packets++
	c.data(from, at, e, k)
	if m.Flags&rdma.FlagLast != 0 {
		s.ended, s.last = true, true
		c.settle(k)
	}
}

// placed judges a part that was written to the memory of an offer.
func (c *rdmaConn) placed(from dissect.Side, at capture.At, m *rdma.Message, o *rdmaOffer) {
	switch {
	case o == nil || o.seq != m.Seq:
		c.blame(ruleRDMAPlaced, from, at, "part %d was placed, and there was no offer for it", m.Seq)
	case m.Length > o.length:
		c.blame(ruleRDMAPlaced, from, at, "%d bytes were placed where %d were offered", m.Length, o.length)
	case o.written != uint64(m.Length):
		c.blame(ruleRDMAPlaced, from, at, "%d bytes were placed, and RDMA Writes have written %d", m.Length, o.written)
	}
}

// data takes what a part carries.
func (c *rdmaConn) data(from dissect.Side, at capture.At, e *Message, k *rdmaCall) {
	m, n := &e.Message, c.sum.side(from)
	if m.Type == rdma.Placed {
		k.side(from).Bytes += uint64(m.Length)
		n.Bytes += uint64(m.Length)
		k.dirs[from].heads = m.Seq // an opcode is never placed
		return
	}
	data := e.Body
	switch {
	case c.session != nil:
		var err error
		body := append([]byte(nil), e.Body...)
		data, err = c.session.Open(secure.Packet{Call: m.Call, Channel: m.Channel, Seq: m.Seq}, m.Checksum, body)
		if err != nil {
			c.blame(ruleRDMAProof, from, at, "%s", err)
			return
		}
		e.Opened, e.Data = true, len(data)
		n.Opened++
	case c.sum.Security != 0:
		k.side(from).Bytes += uint64(len(data))
		n.Bytes += uint64(len(data))
		return
	}
	k.side(from).Bytes += uint64(len(data))
	n.Bytes += uint64(len(data))
	if from != dissect.Client {
		return
	}
	code, ok := k.dirs[from].opcode(m.Seq, data)
	if !ok {
		return
	}
	k.Opcode, k.HasOp = code, true
	k.Operation = operationName(k.Service, c.r.Port(), code)
	if e.Operation = k.Operation; e.Operation == "" {
		e.Operation = fmt.Sprintf("operation %d", int32(code))
	}
}

// reads takes what a side says to have read.
func (c *rdmaConn) reads(from dissect.Side, at capture.At, seq uint32, k *rdmaCall) {
	s := &k.dirs[1-from]
	if c.whole && seq > s.seq {
		c.blame(ruleRDMAWindow, from, at, "it has read %d parts, and %d were sent", seq, s.seq)
	}
	s.read = max(s.read, seq)
}

// maxOffers bounds the offers that are remembered of a connection.
const maxOffers = 2 * rdma.MaxChannels

// offer takes an offer for what the other side writes.
func (c *rdmaConn) offer(from dissect.Side, at capture.At, m *rdma.Message, k *rdmaCall) {
	writer := 1 - from
	s := &k.dirs[writer]
	if c.whole {
		most := min(c.private[0].Bulk, c.private[1].Bulk)
		can := c.private[from].Features&rdma.FeatureOffer != 0 && c.private[writer].Features&rdma.FeaturePlace != 0
		switch {
		case !can || most == 0:
			c.blame(ruleRDMAOffer, from, at, "offers were not agreed on")
		case m.Length == 0 || m.Length > most:
			c.blame(ruleRDMAOffer, from, at, "an offer of %d bytes; there may be %d", m.Length, most)
		case m.Seq == 0 || m.Seq > s.seq+1:
			c.blame(ruleRDMAOffer, from, at, "an offer for part %d, and part %d was the last one", m.Seq, s.seq)
		case s.offer != nil:
			c.blame(ruleRDMAOffer, from, at, "an offer for part %d, and there is one for part %d", m.Seq, s.offer.seq)
		}
	}
	if m.Seq == 0 {
		return
	}
	c.reads(from, at, min(m.Seq-1, s.seq), k)
	if m.Seq <= s.seq || s.ended || len(c.offers) >= maxOffers {
		return // the writer did not wait for it
	}
	if s.offer != nil {
		delete(c.offers, s.offer.tag)
	}
	s.offer = &rdmaOffer{call: k, writer: writer, seq: m.Seq, tag: stag.STag(m.STag), to: m.TO, length: m.Length}
	if c.offers == nil {
		c.offers = map[stag.STag]*rdmaOffer{}
	}
	c.offers[s.offer.tag] = s.offer
}

// Write takes a part of an RDMA Write.
func (c *rdmaConn) Write(from dissect.Side, at capture.At, tag stag.STag, to uint64, data []byte) string {
	o, n := c.offers[tag], uint64(len(data))
	if n == 0 {
		return "" // MPA's ready-to-receive indication
	}
	if o == nil || o.writer != from || to < o.to || to-o.to > uint64(o.length) || n > uint64(o.length)-(to-o.to) {
		if c.whole {
			c.blame(ruleRDMAPlaced, from, at, "%d bytes were written to STag %v at 0x%x, which were not offered", n, tag, to)
			c.tell()
		}
		return ""
	}
	o.written += n
	return fmt.Sprintf("part %d of call %d on channel %d", o.seq, o.call.Number, o.call.Channel)
}
