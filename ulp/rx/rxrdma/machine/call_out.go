package machine

import (
	"errors"
	"fmt"

	"urnic/ulp/rx/rxrdma/wire"
	rxwire "urnic/ulp/rx/wire"
)

// An outgoing is the stream that this side writes.
type outgoing struct {
	seq      uint32  // of the last part that was queued
	read     uint32  // the peer has read all up to it
	held     *Buffer // a part that is not full
	fill     int     // bytes of it
	closing  bool    // the program has written all
	ended    bool    // the last part was queued, or an ABORT
	dropping bool    // the peer wants no more of it
	large    bool    // the peer reads in large pieces
	offer    offer
}

// An offer is memory of the peer for a part.
type offer struct {
	seq    uint32 // 0: there is none
	stag   uint32
	to     uint64
	length uint32
}

// drop gives up what is held.
func (o *outgoing) drop(c *Conn) {
	if o.held != nil {
		c.host.Release(o.held)
		o.held, o.fill = nil, 0
	}
}

// open reports whether the window has room for a part.
func (k *Call) open() bool { return k.out.seq-k.out.read < uint32(k.c.cfg.Peer.Window) }

// Write writes to the stream. What does not fill a message is held until more is written,
// or Flush or CloseWrite is called, as Rx does. It returns how much it has taken: 0 and no
// error if the peer takes no more for the time being.
func (k *Call) Write(now Time, p []byte) (n int, err error) {
	k.c.now = now
	if err := k.writable(); err != nil {
		return 0, err
	}
	if k.out.dropping {
		return len(p), nil
	}
	room, overhead := k.c.room()
	for len(p) > 0 {
		if k.placeable(len(p)) {
			if k.out.held != nil && k.open() {
				k.flush(false)
			}
			return n, k.Err()
		}
		if k.out.fill == room && !k.open() {
			return n, nil
		}
		if k.out.fill == room {
			k.flush(false)
			if k.err != nil {
				return n, k.err
			}
		}
		if k.out.held == nil {
			if k.out.held = k.c.host.Buffer(); k.out.held == nil {
				k.c.fail(&AbortError{Code: rxwire.CallDead, Cause: errMemory})
				return n, k.c.err
			}
		}
		m := copy(k.out.held.Mem[wire.HeaderLen+overhead:][k.out.fill:room], p)
		k.out.fill += m
		n += m
		p = p[m:]
	}
	if k.out.fill == room && k.open() {
		k.flush(false)
	}
	return n, k.Err()
}

// writable returns why nothing can be written.
func (k *Call) writable() error {
	switch {
	case k.err != nil:
		return k.err
	case k.ended:
		return ErrEnded
	case k.out.closing:
		return ErrWritten
	case !k.c.cfg.Client && !k.in.discard && !k.in.ended:
		k.discard() // a reply begins: the rest of the request is dropped
	}
	return nil
}

// placeable reports whether n bytes wait for memory that the peer offers.
func (k *Call) placeable(n int) bool {
	return k.out.large && n >= max(1, k.c.cfg.LeastBulk) && k.c.bulkFor(k.c.cfg.Peer.Features, k.c.cfg.Own.Features) > 0
}

// Offered is how many of n bytes can be written to memory of the peer at once.
func (k *Call) Offered(n int) int {
	if !k.placeable(n) {
		return 0
	}
	return min(n, k.offer())
}

// offer is how many bytes of the next part can be written to memory of the peer.
func (k *Call) offer() int {
	if k.writable() != nil || k.out.dropping || k.out.held != nil || k.out.offer.seq == 0 {
		return 0
	}
	return int(k.out.offer.length)
}

// Place sends a part by an RDMA Write of p.Len bytes, for which Offered must have room, to
// the memory that the peer offers. It reports whether it did. The memory that is written
// belongs to the connection until p.Over.
func (k *Call) Place(now Time, p *Place) bool {
	k.c.now = now
	if p.Len < 1 || p.Len > k.offer() {
		return false
	}
	o := &k.out.offer
	p.STag, p.TO, p.call = o.stag, o.to, k
	k.out.seq++
	m := wire.Message{Type: wire.Placed, Channel: k.channel, Call: k.number, Seq: k.out.seq, Length: uint32(p.Len)}
	*o = offer{}
	if _, err := k.c.seal(&m, nil, 0); err != nil {
		k.c.fail(&AbortError{Code: codeOf(err), Cause: err})
		return false
	}
	k.placing++
	k.moved = now
	k.c.out.Push(Out{Msg: m, Place: p, call: k})
	return true
}

// Flush sends what is held.
func (k *Call) Flush(now Time) error {
	k.c.now = now
	if err := k.writable(); err != nil {
		return err
	}
	if k.out.held != nil && k.open() {
		k.flush(false)
	}
	return k.Err()
}

// CloseWrite ends the stream.
func (k *Call) CloseWrite(now Time) error {
	k.c.now = now
	if err := k.writable(); err != nil {
		return err
	}
	k.closeWrite()
	return k.Err()
}

func (k *Call) closeWrite() {
	if !k.out.closing && k.err == nil {
		k.out.closing = true
		k.push()
	}
}

// push sends what waits for the window, if there is room.
func (k *Call) push() {
	if k.err != nil || k.out.ended || !k.open() {
		return
	}
	if k.out.closing {
		k.flush(true)
	} else if room, _ := k.c.room(); k.out.fill == room {
		k.flush(false)
	}
}

// flush queues the part that is held, or an empty one.
func (k *Call) flush(last bool) {
	k.out.seq++
	m := wire.Message{Type: wire.Data, Channel: k.channel, Call: k.number, Seq: k.out.seq}
	if last {
		m.Flags = wire.FlagLast
	}
	o := Out{Msg: m, Buffer: k.out.held, call: k}
	if o.Buffer == nil && k.c.protection() != nil {
		if o.Buffer = k.c.host.Buffer(); o.Buffer == nil {
			k.c.fail(&AbortError{Code: rxwire.CallDead, Cause: errMemory})
			return
		}
	}
	data := k.out.fill
	k.out.held, k.out.fill = nil, 0
	if k.out.offer.seq != 0 {
		k.out.offer = offer{} // it was for this part
	}
	if o.Buffer != nil {
		n, err := k.c.seal(&o.Msg, o.Buffer.Mem[wire.HeaderLen:k.c.most], data)
		if err != nil {
			k.c.host.Release(o.Buffer)
			k.c.fail(&AbortError{Code: codeOf(err), Cause: err})
			return
		}
		o.Len = wire.HeaderLen + n
	}
	k.moved = k.c.now
	k.c.out.Push(o)
	if last {
		k.out.ended = true
		k.settle()
	}
}

// acknowledged notes that the peer has read parts.
func (k *Call) acknowledged(seq uint32) {
	switch {
	case seq > k.out.seq:
		k.c.violated(RuleWindow, fmt.Errorf("it has read %d parts of %d", seq, k.out.seq))
		return
	case seq <= k.out.read:
		return
	}
	k.out.read = seq
	k.moved = k.c.now
	k.push()
	k.c.host.Writable(k)
}

// offered takes an offer.
func (k *Call) offered(m *wire.Message) {
	most := k.c.bulkFor(k.c.cfg.Peer.Features, k.c.cfg.Own.Features)
	switch {
	case most == 0:
		k.c.violated(RuleOffer, errors.New("offers were not agreed on"))
		return
	case m.Length == 0 || int64(m.Length) > int64(most):
		k.c.violated(RuleOffer, fmt.Errorf("%d bytes; there may be %d", m.Length, most))
		return
	case m.Seq == 0 || m.Seq > k.out.seq+1 || m.Seq == k.out.offer.seq:
		k.c.violated(RuleOffer, fmt.Errorf("it is for part %d, and the next one is %d", m.Seq, k.out.seq+1))
		return
	}
	k.out.large = true
	k.acknowledged(m.Seq - 1)
	if m.Seq == k.out.seq+1 && !k.out.ended {
		k.out.offer = offer{seq: m.Seq, stag: m.STag, to: m.TO, length: m.Length}
	}
	k.c.host.Writable(k)
}
