package rxflow

import (
	"encoding/binary"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// A channel is what is known of a channel of a connection.
type channel struct {
	now   *call  // nil before the first
	last  *call  // the one before it, of which the capture may have packets out of order
	begun uint32 // the serial number of the packet with which the client began it
}

// A call is what is known of a call.
type call struct {
	Call
	number uint32
	dirs   [2]stream // by sender
	over   bool      // it has been reported
	at     capture.At
	from   dissect.Side // who has ended it
}

// A stream is what one side has sent of a call.
type stream struct {
	seqs   series
	hashes recent
	last   uint32 // the sequence number of the packet with LAST-PACKET; 0 before it
	start  uint32 // the side's serial number when the call began
	since  uint32 // the same of the call before it on the channel: nothing of this call was sent before
	head   []byte // the beginning of the data, up to the opcode
	heads  uint32 // the last packet that it has of
	first  uint32 // the highest one that this side's acknowledgements name
	named  uint32 // the serial number of the acknowledgement that did
	acked  bool   // there was one
	dead   uint32 // the serial number of an abort
	at     time.Time
}

// whole reports whether all of the stream was captured.
func (s *stream) whole() bool { return s.last != 0 && s.seqs.high == s.last && s.seqs.next() > s.last }

// call returns the call that a packet is about, or nil if that is not known. Data and
// acknowledgements may begin it.
func (c *conn) call(from dissect.Side, at capture.At, h *wire.Header) *call {
	if h.Call == 0 {
		return nil
	}
	ch := &c.channels[h.Channel()]
	if ch.now != nil && ch.now.number == h.Call {
		return ch.now
	}
	if ch.now != nil && h.Call < ch.now.number {
		if k := ch.last; k != nil && k.number == h.Call && h.Type == wire.TypeData {
			k.dirs[from].seqs.add(h.Seq)
		}
		// Serial numbers report that it was not sent before the new call began.
		if h.Type == wire.TypeData && from == dissect.Client && ch.begun != 0 && h.Serial > ch.begun {
			c.blame(ruleCallNumber, from, at, "a packet of call %d on channel %d, which has call %d", h.Call, h.Channel(), ch.now.number)
		}
		return nil
	}
	if h.Type != wire.TypeData && h.Type != wire.TypeAck {
		return nil
	}
	ch.end(c)
	ch.begun = 0
	if from == dissect.Client && h.Type == wire.TypeData {
		ch.begun = h.Serial
	}
	k := &call{number: h.Call, Call: Call{Channel: h.Channel(), Number: h.Call, Service: h.Service, Start: at.Time}}
	for side := range k.dirs {
		k.dirs[side].start = c.dirs[side].serials.high
		if ch.last != nil { // the capture may have packets of two calls out of order
			k.dirs[side].since = ch.last.dirs[side].start
		}
	}
	ch.now = k
	c.sum.Calls++
	return k
}

// end takes leave of the call of a channel.
func (ch *channel) end(c *conn) {
	k := ch.now
	if k == nil {
		return
	}
	ch.now, ch.last = nil, k
	c.a.hashes -= len(k.dirs[0].hashes.slots) + len(k.dirs[1].hashes.slots)
	k.dirs[0].hashes, k.dirs[1].hashes = recent{}, recent{}
	if !k.over {
		k.finish(c, dissect.Client, k.at)
		c.over = c.over[:len(c.over)-1]
		k.tell(c)
	}
}

// finish notices that a call has ended.
func (k *call) finish(c *conn, from dissect.Side, at capture.At) {
	if k.over {
		return
	}
	k.over, k.from, k.at = true, from, at
	c.over = append(c.over, k)
}

// tell reports a call that has ended.
func (k *call) tell(c *conn) {
	request, reply := &k.dirs[dissect.Client], &k.dirs[dissect.Server]
	k.Whole = request.whole() && reply.whole()
	if k.Whole {
		k.Duration = reply.at.Sub(k.Start)
	}
	if k.Whole && k.Code == nil {
		c.sum.Complete++
	}
	c.r.Emit(k.from, k.at, &k.Call)
}

// abort takes an abort of the call.
func (k *call) abort(c *conn, from dissect.Side, at capture.At, h *wire.Header, code wire.Code) {
	k.at = at
	if s := &k.dirs[from]; s.dead == 0 {
		s.dead = h.Serial
	}
	if k.Code == nil && !k.over {
		k.Code, k.By = &code, from
	}
	k.finish(c, from, at)
}

// aside takes a packet that reports that there is another call, or that all has arrived.
func (k *call) aside(c *conn, from dissect.Side, at capture.At, h *wire.Header) {
	k.at = at
	if h.Type == wire.TypeBusy {
		k.Busy++
	}
	if h.Type == wire.TypeAckAll && from == dissect.Client && k.dirs[dissect.Server].last != 0 {
		k.finish(c, from, at)
	}
}

// opcode adds to the beginning of a stream's data, and returns the opcode when it is there.
func (s *stream) opcode(seq uint32, data []byte) (uint32, bool) {
	const size = 4
	if seq != s.heads+1 || len(s.head) == size {
		return 0, false
	}
	s.heads = seq
	s.head = append(s.head, data[:min(len(data), size-len(s.head))]...)
	if len(s.head) < size {
		return 0, false
	}
	return binary.BigEndian.Uint32(s.head), true
}
