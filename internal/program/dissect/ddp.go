package dissect

import (
	"fmt"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
)

// A DDP is a connection whose DDP segments something else carries than MPA over TCP. Segments may arrive in any order
// (RFC 5041 §5.3), and are numbered. Whoever follows the layer below shows each one when it arrives, and delivers it when all
// before it are known or lost. From there on, they are judged as those of MPA are.
type DDP struct{ f *follower }

// DDP says that the connection of r carries DDP over RDP. What the connection has as summary becomes that of the layer below.
// It may be called once.
func (r *Reporter) DDP() *DDP {
	f := r.f
	f.carries = true
	f.con.Transport = RDP
	f.a.result.Total.Direct--
	f.con.LLP, f.con.Upper = f.con.Upper, nil
	f.request, f.reply = nil, nil
	if f.a.ulp != nil {
		f.upper = f.a.ulp.New(&Reporter{f})
	}
	return &DDP{f}
}

// stream returns what a side sends.
func (d *DDP) stream(from Side) *stream { return &d.f.streams[(&Reporter{d.f}).side(from)] }

// FromStart says that the first message of a side will be the first one of its stream. "The initial value for MSN MUST be one": RFC 5041 §4.3
func (d *DDP) FromStart(from Side) {
	s := d.stream(from)
	for q := range s.queues {
		s.queues[q] = queue{known: true, next: 1}
	}
}

// PickedUp says that the capture lacks the beginning of what a side has sent.
func (d *DDP) PickedUp(from Side) {
	s := d.stream(from)
	s.midway = true
	s.lose()
}

// An Offer is what a message of start-up says in DDP over RDP.
type Offer struct {
	Kind     string // "request", "accept" or "reject"
	IRD, ORD uint16
	Private  []byte
}

const reject = "reject"

// Rejects reports whether the offer rejects a connection.
func (o *Offer) Rejects() bool { return o.Kind == reject }

func (o *Offer) String() string {
	return fmt.Sprintf("DDP over RDP: %s IRD=%d ORD=%d pd=%d", o.Kind, o.IRD, o.ORD, len(o.Private))
}

// Offer takes the client's request, or the server's answer.
func (d *DDP) Offer(from Side, at capture.At, o *Offer, raw []byte) {
	f, m := d.f, &d.f.con.MPA
	// For the ULP, it is what MPA's frame of revision 2 is.
	frame := &mpa.Frame{Reply: from == Server, CRC: true, Rejected: o.Rejects(), PrivateData: o.Private}
	if from == Client {
		f.request = frame
	} else {
		f.reply, m.Rejected, f.rejected = frame, o.Rejects(), o.Rejects()
	}
	m.Seen[from], m.CRC, m.Enhanced = true, true, true
	m.IRD, m.ORD, m.Private[from] = o.IRD, o.ORD, len(o.Private)
	f.a.emit(&Event{Kind: KindFrame, Conn: f.con, At: at, From: from, Offer: o, FrameRaw: raw})
	if f.upper != nil {
		f.upper.Frame(from, at, o.Private)
	}
}

// Limit says how many Reads and Atomics a side may have outstanding.
func (d *DDP) Limit(from Side, n int) { d.f.limit[(&Reporter{d.f}).side(from)] = n }

// Arrive shows a segment, and judges what needs no other one. Raw is the message that carries it.
func (d *DDP) Arrive(from Side, at capture.At, number uint64, raw, ulpdu []byte) {
	s := d.stream(from)
	s.f.busy = true
	seg := s.numbered(number, raw, ulpdu)
	s.show(at, &seg)
	s.checkAlone(at, &seg)
	s.f.settled()
}

// Damaged shows a segment whose CRC is wrong. Nothing in it is believed; it counts for what it seems to be.
func (d *DDP) Damaged(from Side, at capture.At, number uint64, raw, ulpdu []byte) {
	s := d.stream(from)
	seg := s.numbered(number, raw, ulpdu)
	seg.BadCRC = true
	s.show(at, &seg)
}

// BadCRC counts a message whose CRC is wrong, and that can't be decoded.
func (d *DDP) BadCRC(n int) {
	d.f.con.BadCRC++
	d.f.con.Undecoded += uint64(n)
}

// Deliver takes a segment in its turn. It arrived at of, and now all before it is known.
func (d *DDP) Deliver(from Side, of, now capture.At, number uint64, ulpdu []byte) {
	s := d.stream(from)
	f := s.f
	s.at = now
	f.busy = true
	f.late, f.of = true, of
	f.above() // it decides before the first message whether it follows the connection
	seg := s.numbered(number, nil, ulpdu)
	s.checkAfter(now)
	if seg.Whole {
		s.message(now, &seg)
	}
	f.late = false
	f.settled()
}

// numbered decodes a segment.
func (s *stream) numbered(number uint64, raw, ulpdu []byte) Segment {
	seg := s.newSegment(raw, ulpdu)
	seg.Number = int(number)
	return seg
}

// Lose takes notice of segments of a side that are not known.
func (d *DDP) Lose(from Side) { d.stream(from).lose() }

// Late says that the capture has something of a side later than the other side had it. What answers what is then not known.
func (d *DDP) Late(from Side) { d.stream(from).lost = true }

// Close says that a side has ended its direction, and that all of it is delivered.
func (d *DDP) Close(from Side, at capture.At) {
	s := d.stream(from)
	s.finish(at, true)
	s.f.a.emit(&Event{Kind: KindClose, Conn: s.f.con, At: at, From: from})
}

// Reset says that the layer below was closed before both directions had ended.
func (d *DDP) Reset(from Side, at capture.At) {
	d.f.a.emit(&Event{Kind: KindClose, Conn: d.f.con, At: at, From: from, Reset: true})
}

// closeOfDDP shows the end of a direction, or of both.
func (e *Event) closeOfDDP() string {
	if e.Reset {
		return "DDP over RDP: aborted"
	}
	return "DDP over RDP: end"
}

// Doubtful reports whether a segment that is to be delivered would break a rule unless the other side has sent something that is not
// known yet: a response without a request, a request beyond what may be outstanding, a Terminate that shows what was not sent.
func (d *DDP) Doubtful(from Side, ulpdu []byte) bool {
	s := d.stream(from)
	o := s.peer()
	seg := s.numbered(0, nil, ulpdu)
	if !seg.Whole || s.unsure() {
		return false // then nobody is blamed
	}
	switch seg.Op {
	case rdmap.OpReadRequest, rdmap.OpAtomicRequest:
		limit := s.f.limit[s.id]
		return limit >= 0 && s.asked.len() >= limit
	case rdmap.OpReadResponse:
		t, n := &seg.DDP.Tagged, len(seg.DDP.Payload)
		if !seg.DDP.Control.Tagged() || s.tagged[slotRead] != nil {
			return false
		}
		p := o.asked.findRead(t.STag, t.TO, n == 0 && seg.DDP.Control.Last())
		return p == nil || p != o.asked.first()
	case rdmap.OpAtomicResponse:
		r, err := rdmap.ParseAtomicResponse(seg.DDP.Payload)
		if err != nil {
			return false
		}
		p := o.asked.find(askKey{atomic: true, to: uint64(r.RequestID)})
		return p == nil || p != o.asked.first()
	case rdmap.OpTerminate:
		t, err := rdmap.ParseTerminate(seg.DDP.Payload)
		if err != nil || !t.D() {
			return false
		}
		lengths, sure := o.recent.find(t.DDPHeader)
		return sure && len(lengths) == 0
	default:
		return false
	}
}
