package machine

import (
	"io"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A receiver is the side of a call that receives data.
type receiver struct {
	packets places[inPacket] // from the first that was not read
	have    uint32           // first sequence number that has not arrived
	last    uint32           // that of the last packet; 0: not known
	top     uint32           // the highest that has arrived
	window  uint32           // as announced
	offset  int              // bytes of the first packet that were read
	closed  bool             // what arrives is dropped

	got, read int  // packets that arrived, and were read, since the last acknowledgement
	ackDue    bool // at once
	ackAt     Time // later; 0: nothing to acknowledge
	endAt     Time // when the end of a call is acknowledged; 0: it was, or is not reached
	reason    wire.Reason
	trigger   uint32 // serial number of what is acknowledged
	pongDue   bool
	pong      uint32 // serial number of the ping
}

// An inPacket is a packet that has arrived. A slot whose buf is nil waits for one.
type inPacket struct {
	buf, data []byte
	checksum  uint16
	sealed    bool // it can't be opened before the caller is known
}

func (r *receiver) init() {
	r.packets.base, r.have = 1, 1
	r.window = firstWindow
}

// started reports whether the first packet has come.
func (r *receiver) started() bool { return r.have > 1 }

// arrived reports whether all packets have come.
func (r *receiver) arrived() bool { return r.last != 0 && r.have > r.last }

// complete reports whether all packets were read, or dropped after they had
// arrived.
func (r *receiver) complete() bool {
	return r.last != 0 && (r.packets.base > r.last || r.closed && r.arrived())
}

// release gives the memory back, and drops what comes.
func (r *receiver) release(k *Call) {
	for r.packets.n > 0 {
		r.free(k, r.packets.at(r.packets.base))
		r.packets.drop()
	}
	r.packets.base = max(r.packets.base, r.have)
	r.closed = true
}

// free releases the memory of a packet.
func (r *receiver) free(k *Call, p *inPacket) {
	if p.buf == nil {
		return
	}
	m := k.c.m
	m.charge(p, -cap(p.buf))
	m.pool.put(p.buf)
	*p = inPacket{}
}

// charge counts memory of packets.
func (m *Machine) charge(p *inPacket, n int) {
	m.memory += n
	if p.sealed {
		m.suspect += n
	}
}

// data processes a data packet.
func (k *Call) data(h *wire.Header, body []byte) {
	m, r := k.c.m, &k.in
	if k.err != nil {
		k.answerAbort()
		return
	}
	last := h.Flags&wire.FlagLast != 0
	switch {
	case h.Seq == 0:
		m.stats.Drops.Seq++
		return
	case k.client && (!k.out.wrote || k.out.next != k.out.packets.end()):
		// A server replies after it has read the request (draft §8).
		k.tell(&AbortError{Code: wire.ProtocolError, Cause: errEarly})
		return
	case h.Seq < r.packets.base || r.closed && r.arrived():
		m.stats.Duplicates++
		k.ack(wire.ReasonDuplicate, h.Serial)
		return
	case h.Seq-r.packets.base >= max(r.window, firstWindow):
		m.stats.Drops.Window++
		k.ack(wire.ReasonExceedsWindow, h.Serial)
		return
	case r.last != 0 && (h.Seq > r.last || last && h.Seq != r.last), last && h.Seq < r.top:
		k.tell(&AbortError{Code: wire.ProtocolError, Cause: errTwoLasts})
		return
	case r.packets.has(h.Seq) && r.packets.at(h.Seq).buf != nil:
		m.stats.Duplicates++
		k.ack(wire.ReasonDuplicate, h.Serial)
		return
	case !k.room(h.Seq, len(body)):
		m.stats.Drops.NoSpace++
		k.ack(wire.ReasonNoSpace, h.Serial)
		return
	}
	if k.client {
		k.ackedAll() // the reply acknowledges the whole request (draft §4, DATA)
	}
	hole := h.Seq > r.have
	if !k.place(h, body) {
		return
	}
	m.stats.Data++
	k.moved = m.now
	if last {
		r.last = h.Seq
	}
	r.top = max(r.top, h.Seq)
	had := r.have
	for r.packets.has(r.have) && r.packets.at(r.have).buf != nil {
		r.have++
	}
	k.acknowledge(h, hole)
	if r.have != had {
		if r.closed {
			r.release(k)
		}
		k.offer()
		k.change()
	}
}

// room reports whether there is memory for a packet. What is next in turn is always accepted
// for a call that a program holds and that has nothing to read, so that every such call
// continues.
func (k *Call) room(seq uint32, n int) bool {
	m, r := k.c.m, &k.in
	n = capacity(n)
	if k.c.serverSec != nil && k.c.secured == nil && m.suspect+n > m.cfg.Unverified {
		return false
	}
	return m.memory+n <= m.cfg.Memory || (k.client || k.offered) && seq == r.have && seq == r.packets.base
}

// place copies a packet to its slot. It returns false if that ended the call.
func (k *Call) place(h *wire.Header, body []byte) bool {
	m, r, c := k.c.m, &k.in, k.c
	buf := m.pool.get(max(1, len(body)))[:len(body)]
	copy(buf, body)
	p := inPacket{buf: buf[:len(body):cap(buf)], data: buf, checksum: h.Checksum}
	p.sealed = c.serverSec != nil && c.secured == nil
	if !p.sealed && !k.open(h.Seq, &p) {
		m.pool.put(buf)
		return false
	}
	r.packets.extend(h.Seq)
	*r.packets.at(h.Seq) = p
	m.charge(&p, cap(p.buf))
	return true
}

// open checks and decrypts a packet. A packet that fails ends the connection.
func (k *Call) open(seq uint32, p *inPacket) bool {
	c := k.c
	if c.secured == nil {
		return true
	}
	if c.serverSec != nil {
		if _, err := c.serverSec.Authenticated(c.m.wall()); err != nil {
			c.fail(&AbortError{Code: codeOf(err), Cause: err}, true)
			return false
		}
	}
	data, err := c.secured.Open(secure.Packet{Call: k.number, Channel: k.channel, Seq: seq}, p.checksum, p.buf)
	if err != nil {
		c.m.stats.Drops.Seal++
		c.fail(&AbortError{Code: codeOf(err), Cause: err}, true)
		return false
	}
	p.data = data
	c.opened.add(data)
	return true
}

// unseal opens the packets that arrived before the caller was known.
func (k *Call) unseal() {
	r, m := &k.in, k.c.m
	for seq := r.packets.base; r.packets.has(seq); seq++ {
		p := r.packets.at(seq)
		if p.buf == nil || !p.sealed {
			continue
		}
		m.suspect -= cap(p.buf)
		p.sealed = false
		if !k.open(seq, p) {
			return
		}
	}
	k.offer()
	k.change()
}

// acknowledge decides when a packet is acknowledged, and with which reason (draft §5).
func (k *Call) acknowledge(h *wire.Header, hole bool) {
	r := &k.in
	switch {
	case h.Flags&wire.FlagRequestAck != 0:
		k.ack(wire.ReasonRequested, h.Serial)
	case hole:
		k.ack(wire.ReasonOutOfSequence, h.Serial)
	default:
		r.got++
		if r.got > 1 {
			k.ack(wire.ReasonIdle, h.Serial)
			return
		}
		delay := ackDelay
		if k.client && h.Flags&wire.FlagLast != 0 {
			delay = lastAckDelay // the end of the call will acknowledge it
		}
		k.ackLater(delay)
	}
}

// ack makes an acknowledgement be sent at once, together with that of what else
// has just arrived.
func (k *Call) ack(reason wire.Reason, serial uint32) {
	r := &k.in
	// Of packets that came together, one is named. A hole or a packet that was asked to be
	// acknowledged says most.
	if !r.ackDue || rank(reason) >= rank(r.reason) {
		r.reason, r.trigger = reason, serial
	}
	r.ackDue = true
	k.c.wake()
}

// rank orders reasons by what a sender learns from them.
func rank(r wire.Reason) int {
	switch r {
	case wire.ReasonOutOfSequence, wire.ReasonNoSpace, wire.ReasonExceedsWindow:
		return 4
	case wire.ReasonRequested:
		return 3
	case wire.ReasonDuplicate:
		return 2
	case wire.ReasonIdle:
		return 1
	default:
		return 0
	}
}

// ackLater makes an acknowledgement be sent after a while, if none is sent
// before.
func (k *Call) ackLater(delay Time) {
	r := &k.in
	if at := k.c.m.now + delay; !r.ackDue && (r.ackAt == 0 || at < r.ackAt) {
		r.ackAt = at
	}
}

// Read reads data of the peer into p. It returns 0 bytes and no error if there is none
// yet, and io.EOF after the last. A client reads after CloseWrite.
func (k *Call) Read(now Time, p []byte) (int, error) {
	m, r := k.c.m, &k.in
	m.tick(now)
	switch {
	case k.err != nil:
		return 0, k.err
	case k.ended:
		return 0, ErrEnded
	case k.client && !k.out.wrote, !k.client && k.out.began():
		return 0, ErrOrder
	}
	n := 0
	for r.packets.n > 0 && r.packets.at(r.packets.base).buf != nil {
		q := r.packets.at(r.packets.base)
		moved := copy(p[n:], q.data[r.offset:])
		n += moved
		r.offset += moved
		if r.offset < len(q.data) {
			break
		}
		k.readOne()
	}
	if n > 0 {
		k.moved = m.now
	}
	if n == 0 && r.complete() {
		return 0, io.EOF
	}
	// Nothing is left to read: the sender may have sent all that its window holds, which is 32
	// packets for OpenAFS, whatever the receiver's window is.
	if r.read > mostUnacked && r.packets.n == 0 && !r.complete() {
		k.ack(wire.ReasonDelay, 0)
	}
	return n, nil
}

// readOne removes the first packet, which was read.
func (k *Call) readOne() {
	r := &k.in
	r.free(k, r.packets.at(r.packets.base))
	r.packets.drop()
	r.offset = 0
	// A small window until the reader has begun, and a large one from then on.
	r.window = uint32(k.c.m.cfg.Window)
	if r.complete() {
		if k.client {
			// The next call on the channel acknowledges the reply, or this does.
			r.endAt = k.c.m.now + endAckDelay
			r.ackAt = 0
			k.rearm()
		}
		return
	}
	r.read++
	if r.read > int(r.window)/4 {
		k.ack(wire.ReasonDelay, 0)
		return
	}
	k.ackLater(ackDelay)
	k.rearm()
}

// Readable reports whether Read would return something.
func (k *Call) Readable() bool {
	r := &k.in
	return k.err != nil || r.complete() || r.packets.n > 0 && r.packets.at(r.packets.base).buf != nil
}

// putAck appends the acknowledgement of what has arrived (draft §9.2).
func (k *Call) putAck(b []byte, reason wire.Reason, serial uint32) []byte {
	r, p := &k.in, k.c.peer
	var list [wire.MaxAcks]byte
	n := 0
	for seq := r.packets.base; seq <= r.top && n < len(list); seq++ {
		list[n] = 0
		if r.packets.has(seq) && r.packets.at(seq).buf != nil {
			list[n] = 1
		}
		n++
	}
	first := r.packets.base
	if r.closed && r.arrived() {
		first, n = r.last+1, 0
	}
	a := wire.Ack{
		First: first, Previous: r.top, Serial: serial, Reason: reason, Count: uint8(n), Acks: list[:n],
		Trailer: wire.Trailer{
			Words:      4,
			MaxMTU:     uint32(max(p.link, jumboSize(jumboLimit)+wire.JumboHeaderLen)),
			IfMTU:      uint32(p.link),
			Window:     r.window,
			MaxPackets: jumboLimit,
		},
	}
	return a.Append(b)
}
