package machine

import (
	"errors"
	"fmt"

	"urnic/internal/ring"
	"urnic/ulp/rx/rxrdma/wire"
)

// An incoming is the stream that the peer writes.
type incoming struct {
	parts   ring.Ring[part]
	seq     uint32 // of the last part that came
	read    uint32 // parts up to it were read
	told    uint32 // the same, as the peer was told
	due     bool   // a WINDOW is queued
	last    bool   // the last part has come
	ended   bool   // it has, or an ABORT
	discard bool   // nothing of it is wanted any more
	large   bool   // the peer was told that this side makes offers
	offer   Offering
}

// A part is one that was not read to its end.
type part struct {
	slot int
	seq  uint32
	data []byte
}

// An OfferState says what has become of an offer.
type OfferState uint8

// The states.
const (
	NoOffer OfferState = iota
	Offered            // the peer may write to it
	Filled             // it has written
	Void               // it has not, and will not
)

// An Offering is the offer that this side has made.
type Offering struct {
	State  OfferState
	Len    int
	Filled int // bytes
	seq    uint32
}

// end says that the peer does not write to an offer any more.
func (in *incoming) end() {
	if in.offer.State == Offered {
		in.offer.State = Void
	}
}

// arrived takes a part, and reports whether it stays in its receive.
func (k *Call) arrived(slot int, m *wire.Message, data []byte) bool {
	in := &k.in
	kept := false
	if m.Type == wire.Placed {
		if in.offer.State != Offered || in.offer.seq != m.Seq || int64(m.Length) > int64(in.offer.Len) {
			k.c.violated(RulePlaced, fmt.Errorf("%d bytes of part %d were not offered", m.Length, m.Seq))
			return false
		}
		in.offer.State, in.offer.Filled = Filled, int(m.Length)
	} else if in.offer.State == Offered {
		if in.offer.seq != m.Seq {
			k.c.violated(RuleSequence, errors.New("an offer was passed over"))
			return false
		}
		in.offer.State = Void // the writer did not wait for it
	}
	in.seq = m.Seq
	k.moved = k.c.now
	if m.Type == wire.Data && len(data) > 0 && k.err == nil && !in.discard && !k.ended {
		in.parts.Push(part{slot, m.Seq, data})
		kept = true
	} else if in.parts.Len() == 0 {
		in.read = m.Seq
	}
	if k.c.cfg.Client && k.err == nil && !k.out.dropping && !k.out.closing {
		k.out.dropping = true // the server has read enough of the request
		k.out.drop(k.c)
		k.c.host.Writable(k)
	}
	if m.Flags&wire.FlagLast != 0 {
		in.last, in.ended = true, true
	} else if !kept && k.err == nil {
		k.window()
	}
	k.c.host.Readable(k)
	k.settle()
	return kept
}

// consume drops the oldest part, which was read.
func (k *Call) consume() {
	p := k.in.parts.Pop()
	k.c.host.Free(p.slot)
	k.in.read = p.seq
	if k.in.parts.Len() == 0 {
		k.in.read = k.in.seq // an empty part may have followed
	}
	k.window()
}

// window has the peer told what was read, if it is much (docs/rx-rdma.md, "Windows").
func (k *Call) window() {
	in := &k.in
	if !in.due && !in.ended && in.read-in.told >= max(1, uint32(k.c.cfg.Own.Window)/2) {
		in.due = true
		k.c.windows.Push(k)
	}
}

// demand has the peer told how this side reads, for a Read of n bytes that has found data
// (docs/rx-rdma.md, "Bulk").
func (k *Call) demand(n int) {
	if !k.in.large && !k.in.ended && k.MayOffer(n) > 0 {
		k.tell(true)
	}
}

func (k *Call) tell(large bool) {
	k.in.large = large
	m := wire.Message{Type: wire.Demand, Channel: k.channel, Call: k.number}
	if large {
		m.Flags = wire.FlagLarge
	}
	k.c.out.Push(Out{Msg: m, call: k})
}

// MayOffer is how many of n bytes can be offered to the peer; 0: it is not worth it.
func (k *Call) MayOffer(n int) int {
	most := k.c.bulkFor(k.c.cfg.Own.Features, k.c.cfg.Peer.Features)
	if k.err != nil || k.in.ended || most == 0 || n < k.c.cfg.LeastBulk || n < 1 {
		return 0
	}
	return min(n, most)
}

// Wait says that a Read of n bytes waits, and no offer is made for it.
func (k *Call) Wait(now Time, n int) {
	k.c.now = now
	if k.in.large && k.err == nil && !k.in.ended && k.MayOffer(n) == 0 {
		k.tell(false)
	}
}

// Offer offers memory for the next part. It reports whether it did: it does not if
// something has come meanwhile, or there is an offer.
func (k *Call) Offer(now Time, stag uint32, to uint64, length int) bool {
	k.c.now = now
	in := &k.in
	if k.MayOffer(length) < length || in.parts.Len() > 0 || in.discard || k.ended || in.offer.State != NoOffer {
		return false
	}
	in.offer = Offering{State: Offered, Len: length, seq: in.seq + 1}
	in.told, in.large = in.seq, true // an offer says what was read, too
	k.c.out.Push(Out{call: k, Msg: wire.Message{
		Type: wire.Offer, Channel: k.channel, Call: k.number, Seq: in.seq + 1, STag: stag, TO: to, Length: uint32(length),
	}})
	return true
}

// Offering is what has become of the offer.
func (k *Call) Offering() Offering { return k.in.offer }

// Taken forgets the offer, whose memory the peer can't reach any more.
func (k *Call) Taken() { k.in.offer = Offering{} }

// discard wants no more of the stream: what comes is dropped, so that the peer can
// continue.
func (k *Call) discard() {
	if k.in.discard {
		return
	}
	k.in.discard = true
	k.drain()
	if k.in.ended {
		return
	}
	k.window()
	if k.in.large {
		k.tell(false)
	}
}
