package dissect

import (
	"bytes"
	"encoding/binary"
	"errors"

	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/mpa"
)

// streamingLimit bounds how far into a stream a start-up frame is searched: MPA
// may start after an exchange of the ULP's own (RFC 5044 §7.1.3).
const streamingLimit = 64 << 10

// The keys with which start-up frames begin (RFC 5044 §7.1.1).
var (
	requestKey = key(false)
	replyKey   = key(true)
)

func key(reply bool) []byte {
	b, _ := (&mpa.Frame{Reply: reply}).AppendBinary(nil)
	return b[:keyLen]
}

const keyLen = 16

// beginsWithKey reports whether b begins with either key, or may do so when
// there is more of it.
func beginsWithKey(b []byte) (yes, maybe bool) {
	if len(b) >= keyLen {
		return bytes.HasPrefix(b, requestKey) || bytes.HasPrefix(b, replyKey), false
	}
	return false, bytes.HasPrefix(requestKey, b) || bytes.HasPrefix(replyKey, b)
}

// search looks at the first bytes of a stream.
func (s *stream) search(b []byte) (int, bool) {
	yes, maybe := beginsWithKey(b)
	direct := false
	if !yes && !maybe {
		direct, maybe = s.upon(b)
	}
	switch {
	case yes:
		s.phase = phaseFrame
	case maybe:
		return 0, false
	case direct:
	case s.f.tcp.FromStart[s.id] && !s.f.unknown:
		s.phase = phaseStreaming
	default:
		s.blind()
	}
	return 0, true
}

// streaming looks for a Request behind other bytes. One is taken for a Request
// only if it is well formed, and if the other side then sends a Reply.
func (s *stream) streaming(at capture.At, b []byte) (int, bool) {
	i := bytes.Index(b, requestKey)
	if i < 0 {
		n := max(0, len(b)-keyLen+1)
		if s.pos+uint64(n) > streamingLimit {
			s.off(at, 0, "")
		}
		return n, false
	}
	f, _, err := mpa.ParseFrame(b[i:])
	switch {
	case errors.Is(err, mpa.ErrIncomplete):
		return i, false
	case err != nil || f.Revision != mpa.Revision1 && f.Revision != mpa.Revision2:
		return i + 1, true
	}
	s.phase, s.f.tentative = phaseFrame, true
	return i, true
}

// frame takes a start-up frame off the front of b.
func (s *stream) frame(at capture.At, b []byte) (int, bool) {
	f := s.f
	yes, maybe := beginsWithKey(b)
	if f.tentative && f.con == nil && !yes && !maybe {
		// The other side continues with something else: that was no Request.
		s.phase = phaseStreaming
		s.peer().off(at, 0, "")
		return 0, true
	}
	frame, n, err := mpa.ParseFrame(b)
	if yes && !f.tentative {
		if f.request == nil && err == nil && frame.Reply {
			f.client = 1 - s.id
		} else if f.request == nil {
			f.client = s.id
		}
		f.recognise(at, IWARP)
	}
	switch {
	case errors.Is(err, mpa.ErrIncomplete):
		return 0, false
	case err != nil && f.con == nil:
		s.off(at, 0, "")
		return 0, true
	case err != nil:
		f.violate(ruleFrame, s.id, at, "%s", reason(err))
		s.off(at, len(b), "its start-up frame is malformed")
		return len(b), false
	}
	frame.PrivateData = bytes.Clone(frame.PrivateData)
	if frame.Reply {
		f.tookReply(s, at, &frame, b[:n])
	} else {
		f.tookRequest(s, at, &frame, b[:n])
	}
	return n, true
}

func (f *follower) emitFrame(s *stream, at capture.At, frame *mpa.Frame, raw []byte) {
	f.a.emit(&Event{Kind: KindFrame, Conn: f.con, At: at, From: f.side(s.id), Frame: frame, FrameRaw: raw})
	f.frameAbove(s, at, frame)
}

// tookRequest takes an MPA Request (RFC 5044 §7.1.2 rules 1 and 2).
func (f *follower) tookRequest(s *stream, at capture.At, frame *mpa.Frame, raw []byte) {
	if f.request != nil {
		f.violate(ruleRole, s.id, at, "an MPA Request in answer to one: both sides are Initiators")
		s.off(at, 0, "both sides are Initiators")
		s.peer().off(at, 0, "both sides are Initiators")
		return
	}
	f.request, f.client = frame, s.id
	s.phase = phaseHeld
	if o := s.peer(); o.phase != phaseOff {
		o.keep(nil)
		o.phase = phaseFrame
	}
	if f.tentative {
		return // until there is a Reply
	}
	f.announceRequest(at, raw)
}

func (f *follower) announceRequest(at capture.At, raw []byte) {
	s := &f.streams[f.client]
	f.con.MPA.take(Client, f.request)
	f.emitFrame(s, at, f.request, raw)
	f.checkRequest(at)
}

// tookReply takes an MPA Reply (RFC 5044 §7.1.2 rule 3).
func (f *follower) tookReply(s *stream, at capture.At, frame *mpa.Frame, raw []byte) {
	if f.request == nil {
		o := s.peer()
		f.con.MPA.take(Server, frame)
		f.emitFrame(s, at, frame, raw)
		if f.tcp.FromStart[o.id] && !o.lost && o.phase != phaseHunt {
			f.violate(ruleRole, s.id, at, "an MPA Reply, and no Request came before it")
			s.off(at, 0, "a Reply without a Request")
			o.off(at, 0, "a Reply without a Request")
			return
		}
		f.unsettled(at, "the MPA Request was not captured")
		return
	}
	f.reply = frame
	if f.tentative {
		f.tentative = false
		f.recognise(at, IWARP)
		b, _ := f.request.AppendBinary(nil)
		f.announceRequest(at, b)
	}
	f.con.MPA.take(Server, frame)
	f.emitFrame(s, at, frame, raw)
	f.checkReply(at)
	f.settle(at)
}

// settle begins Full Operation with what the two frames settled.
func (f *follower) settle(at capture.At) {
	f.unknown = false
	if f.reply.Rejected {
		f.rejected = true
		for i := range f.streams {
			f.streams[i].phase = phaseOff
		}
		f.streams[f.client].keep(nil)
		f.note(1-f.client, at, "the server rejected the connection: what follows is the ULP's")
		return
	}
	client, server := &f.streams[f.client], &f.streams[1-f.client]
	crc := f.request.CRC || f.reply.CRC
	client.d = mpa.Deframer{CRC: crc, Markers: f.reply.Markers}
	server.d = mpa.Deframer{CRC: crc, Markers: f.request.Markers}
	for i := range f.streams {
		s := &f.streams[i]
		if s.phase == phaseOff {
			continue
		}
		s.phase = phaseFPDU
		for q := range s.queues {
			s.queues[q] = queue{known: true, next: 1} // "The initial value for MSN MUST be one": RFC 5041 §4.3
		}
	}
	if client.phase == phaseFPDU {
		client.feed(at, nil)
	}
}

// held keeps bytes that came before the Reply.
func (s *stream) held(at capture.At, b []byte) (int, bool) {
	if !s.early && s.f.con != nil {
		s.early = true
		s.f.violate(ruleEarly, s.id, at, "%s between the MPA Request and the Reply: the Initiator can't know yet how to send FPDUs", plural.Count(len(b), "byte"))
	}
	if len(b) > maxEarly {
		s.off(at, len(b), "it sent too much before any MPA Reply")
		return len(b), false
	}
	return 0, false
}

// take adds what a start-up frame says.
func (m *Startup) take(from Side, f *mpa.Frame) {
	m.Seen[from] = true
	m.Revision = f.Revision
	m.CRC = m.CRC || f.CRC
	m.Markers[from] = f.Markers
	m.Private[from] = len(f.ULPData())
	m.Enhanced = f.Enhanced
	m.IRD, m.ORD, m.P2P, m.RTR = 0, 0, false, 0 // this frame counts
	if from == Server {
		m.Rejected = f.Rejected
	}
	if f.Enhanced {
		if e, err := mpa.ParseEnhanced(f.PrivateData); err == nil {
			m.IRD, m.ORD, m.P2P, m.RTR = e.IRD, e.ORD, e.PeerToPeer, e.RTR
		}
	}
}

// checkFrame judges what Request and Reply have in common.
func (f *follower) checkFrame(from capture.Side, at capture.At, frame *mpa.Frame) (mpa.Enhanced, bool) {
	if frame.Reserved != 0 {
		f.violate(ruleReserved, from, at, "reserved flags 0x%02x are set", frame.Reserved)
	}
	if frame.Revision != mpa.Revision1 && frame.Revision != mpa.Revision2 {
		f.violate(ruleRevision, from, at, "revision %d; there are 1 and 2", frame.Revision)
	}
	if !frame.Enhanced {
		return mpa.Enhanced{}, false
	}
	e, err := mpa.ParseEnhanced(frame.PrivateData)
	if err != nil {
		f.violate(ruleEnhanced, from, at, "%s", reason(err))
		return mpa.Enhanced{}, false
	}
	if pd := frame.PrivateData; !e.PeerToPeer && (binary.BigEndian.Uint16(pd)|binary.BigEndian.Uint16(pd[2:]))&0xC000 != 0 {
		f.violate(ruleFlagsBCD, from, at, "control flags B, C, D are set (bytes %x), but A is not", pd[:mpa.EnhancedLen])
	}
	return e, true
}

// checkRequest judges an MPA Request.
func (f *follower) checkRequest(at capture.At) {
	if f.request.Rejected {
		f.violate(ruleRequestR, f.client, at, "the Request has R=1")
	}
	f.checkFrame(f.client, at, f.request)
}

// checkReply judges an MPA Reply by itself and by the Request (RFC 6581 §9,
// §10), and sets what follows from the two.
func (f *follower) checkReply(at capture.At) {
	from := 1 - f.client
	e, ok := f.checkFrame(from, at, f.reply)
	if f.reply.Enhanced != f.request.Enhanced {
		f.violate(ruleEchoS, from, at, "the Request has S=%d, the Reply has S=%d", bit(f.request.Enhanced), bit(f.reply.Enhanced))
	}
	if !ok || !f.request.Enhanced {
		return
	}
	req, err := mpa.ParseEnhanced(f.request.PrivateData)
	if err != nil {
		return
	}
	if e.PeerToPeer != req.PeerToPeer {
		f.violate(ruleEchoA, from, at, "the Request has A=%d, the Reply has A=%d", bit(req.PeerToPeer), bit(e.PeerToPeer))
	}
	if f.reply.Rejected {
		return
	}
	if e.PeerToPeer && e.RTR == 0 {
		f.violate(ruleFlagsBCD, from, at, "the Reply has A=1 and none of B, C, D: at least one must be set")
	}
	for _, d := range []struct {
		request, reply         uint16
		requestName, replyName string
		atMost                 bool
	}{
		{req.IRD, e.ORD, "IRD", "ORD", true},
		{req.ORD, e.IRD, "ORD", "IRD", false},
	} {
		switch {
		case d.request == mpa.DepthNotNegotiated && d.reply != mpa.DepthNotNegotiated:
			f.violate(ruleDepths, from, at, "the Request leaves %s to the ULP (0x3fff), but the Reply has %s %d", d.requestName, d.replyName, d.reply)
		case d.atMost && d.request != mpa.DepthNotNegotiated && d.reply > d.request:
			f.violate(ruleDepths, from, at, "the Reply has %s %d, above the Initiator's %s %d", d.replyName, d.reply, d.requestName, d.request)
		}
	}
	if e.IRD != mpa.DepthNotNegotiated {
		f.limit[f.client] = int(e.IRD)
	}
	if e.ORD != mpa.DepthNotNegotiated {
		f.limit[1-f.client] = int(e.ORD)
	}
	if e.PeerToPeer && req.PeerToPeer {
		f.p2p, f.rtr = true, e.RTR&req.RTR
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
