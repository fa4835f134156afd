package rxflow

import (
	"hash/maphash"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// data takes a data packet.
func (c *conn) data(from dissect.Side, at capture.At, p *Packet, fits bool) {
	h := &p.Header
	k := c.call(from, at, h)
	if h.Seq == 0 {
		c.blame(ruleSequence, from, at, "data packets have sequence numbers from 1 on, and this has 0")
		return
	}
	if k == nil {
		return
	}
	k.at = at
	s := &k.dirs[from]
	c.ended(from, at, h, k)
	if s.seqs.has(h.Seq) {
		p.Again = true
		c.sum.side(from).Again++
		k.side(from).Again++
	}
	c.same(from, at, p, s)
	c.last(from, at, h, s)
	d := &c.dirs[from]
	if n := s.seqs.high + 1; !p.Again && fits && h.Seq > n && d.serials.missing() <= s.since {
		c.blame(ruleSequence, from, at, "sequence number %d, and the one before it in the call is %d", h.Seq, n-1)
	}
	c.window(from, at, h, k, p.Again)
	if !s.seqs.add(h.Seq) {
		return
	}
	s.at = at.Time
	k.side(from).Packets++
	c.open(from, at, p, k)
}

// ended judges data that was sent after an abort. Serial numbers report that it was.
func (c *conn) ended(from dissect.Side, at capture.At, h *wire.Header, k *call) {
	for _, dead := range []uint32{k.dirs[from].dead, c.dirs[from].dead} {
		if dead != 0 && h.Serial > dead {
			c.blame(ruleAfterAbort, from, at, "data of call %d, which this side has aborted", h.Call)
			return
		}
	}
}

// same judges whether a packet that was sent again is the same. (draft §5.2)
func (c *conn) same(from dissect.Side, at capture.At, p *Packet, s *stream) {
	if p.Missing > 0 {
		return
	}
	hash := maphash.Bytes(c.a.seed, p.Body)
	if was := s.hashes.find(p.Header.Seq); was != nil {
		if was.hash != hash {
			c.blame(ruleAgain, from, at, "sequence number %d was sent again with another content", p.Header.Seq)
		}
		return
	}
	before := len(s.hashes.slots)
	if c.a.hashes < maxHashes {
		s.hashes.put(sent{number: p.Header.Seq, hash: hash})
		c.a.hashes += len(s.hashes.slots) - before
	}
}

// last judges LAST-PACKET.
func (c *conn) last(from dissect.Side, at capture.At, h *wire.Header, s *stream) {
	is := h.Flags&wire.FlagLast != 0
	switch {
	case s.last != 0 && h.Seq > s.last:
		c.blame(ruleLast, from, at, "sequence number %d behind %d, which had LAST-PACKET", h.Seq, s.last)
	case s.last == h.Seq && !is:
		c.blame(ruleLast, from, at, "sequence number %d was sent again without LAST-PACKET", h.Seq)
	case is && s.last == 0 && s.seqs.high > h.Seq:
		c.blame(ruleLast, from, at, "LAST-PACKET with sequence number %d, and %d was sent before", h.Seq, s.seqs.high)
	case is && s.last == 0 && s.seqs.has(h.Seq):
		c.blame(ruleLast, from, at, "sequence number %d was sent before without LAST-PACKET", h.Seq)
	case is && s.last != 0 && h.Seq != s.last:
		c.blame(ruleLast, from, at, "LAST-PACKET with sequence number %d, after %d", h.Seq, s.last)
	}
	if is && s.last == 0 {
		s.last = h.Seq
	}
}

// window judges whether a packet is beyond what the other side has allowed (draft §5.4).
func (c *conn) window(from dissect.Side, at capture.At, h *wire.Header, k *call, again bool) {
	peer, d := &k.dirs[1-from], &c.dirs[1-from]
	if again || d.window == 0 || !peer.acked {
		return
	}
	beyond := func() bool { return h.Seq >= max(peer.first, 1)+d.window }
	c.doubt(ruleWindow, from, at, peer.since, beyond, "sequence number %d; the %v's window is %d packets from %d on", h.Seq, 1-from, d.window, max(peer.first, 1))
}
