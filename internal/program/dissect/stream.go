package dissect

import (
	"errors"

	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/mpa"
	"urnic/rdmap"
)

// A phase says what a stream's bytes are.
type phase uint8

const (
	phaseSearch    phase = iota // the stream's first bytes: perhaps a start-up frame
	phaseStreaming              // a start-up frame may follow other bytes
	phaseFrame                  // a start-up frame must come
	phaseHeld                   // FPDUs, but the settings are not yet known
	phaseFPDU                   // FPDUs
	phaseHunt                   // FPDUs, but the beginning of the next must be found
	phaseDirect                 // of a ULP that TCP carries without iWARP
	phaseOff                    // not decoded
)

// maxEarly bounds what is kept of a stream whose settings are not known.
const maxEarly = 128 << 10

// A stream is one direction of a connection.
type stream struct {
	f     *follower
	id    capture.Side
	phase phase
	buf   []byte // what can't be decoded before more is there
	pos   uint64 // of the next byte to decode, in the stream
	skip  int    // bytes to pass over: the rest of a damaged FPDU
	at    capture.At

	begun     bool   // origin is set
	origin    uint64 // where the first FPDU began
	d         mpa.Deframer
	raw       []byte // an FPDU with markers, as it was before they were taken out
	hunt      hunter
	doubt     doubt
	badBefore bool // the CRC of the FPDU before was bad
	early     bool // bytes came too early, and that was reported
	finished  bool
	midway    bool // the stream was picked up behind its beginning

	fpdus      int
	lost       bool // bytes of FPDUs are missing, so that not all messages are known
	losses     int  // how often
	toldLost   bool // what the ULP was notified of lost and losses
	toldLosses int
	terminated bool
	after      bool // something followed the Terminate, and that was reported

	queues [rdmap.NumQueues]queue
	tagged [numSlots]*Message

	asked  asked    // Reads and Atomics
	full   bool     // there were too many of them, and that was said
	recent *history // the headers of recent segments
}

func (s *stream) peer() *stream { return &s.f.streams[1-s.id] }

// feed decodes what can be decoded of the next bytes and keeps the rest.
func (s *stream) feed(at capture.At, b []byte) {
	s.at = at
	if at.BadChecksum {
		s.soil(s.end(), s.end()+uint64(len(b)))
	}
	if s.doubt.open {
		s.wait(at, b)
		return
	}
	if n := min(s.skip, len(b)); n > 0 {
		s.skip -= n
		s.pos += uint64(n)
		s.undecoded(n)
		b = b[n:]
	}
	if len(s.buf) > 0 {
		s.f.a.buffered += len(b)
		s.buf = append(s.buf, b...)
		b = s.buf
	}
	for len(b) > 0 {
		n, again := s.step(at, b)
		b = b[n:]
		s.pos += uint64(n)
		if !again {
			break
		}
	}
	if s.f.a.buffered+len(b) > maxBuffered {
		s.off(at, len(b), "too many connections at a time hold half an FPDU")
		b = nil
	}
	s.keep(b)
	if s.doubt.open {
		s.doubt.marks = append(s.doubt.marks[:0], mark{s.end(), at})
	}
}

// keep makes b what is left to decode.
func (s *stream) keep(b []byte) {
	s.f.a.buffered += len(b) - len(s.buf)
	if len(b) == 0 && cap(s.buf) > 16<<10 {
		s.buf = nil
		return
	}
	s.buf = append(s.buf[:0], b...)
}

// step decodes the front of b. It returns how many bytes it took and whether
// another step makes sense.
func (s *stream) step(at capture.At, b []byte) (int, bool) {
	switch s.phase {
	case phaseSearch:
		return s.search(b)
	case phaseStreaming:
		return s.streaming(at, b)
	case phaseFrame:
		return s.frame(at, b)
	case phaseHeld:
		return s.held(at, b)
	case phaseFPDU:
		return s.fpdu(at, b)
	case phaseHunt:
		return s.search4FPDU(at, b, false)
	case phaseDirect:
		return s.directly(at, b)
	default: // phaseOff
		if s.f.con != nil && !s.f.rejected {
			s.f.con.Undecoded += uint64(len(b))
		}
		return len(b), false
	}
}

// off ends the decoding of a stream, of which n bytes are at hand.
func (s *stream) off(at capture.At, n int, reason string) {
	s.phase, s.lost = phaseOff, true
	if s.f.con != nil {
		s.f.con.Undecoded += uint64(n)
		s.f.note(s.id, at, "the rest of what the %v sent is not decoded: %s", s.f.side(s.id), reason)
	}
}

// begin remembers where the stream of FPDUs begins: markers count from there.
func (s *stream) begin() {
	if !s.begun {
		s.begun, s.origin = true, s.pos
	}
}

// fpdu takes an FPDU off the front of b (RFC 5044 §6).
func (s *stream) fpdu(at capture.At, b []byte) (int, bool) {
	s.begin()
	total := s.d.FPDULen(b)
	if total == 0 || len(b) < total {
		return 0, len(b) > 0 && s.mend(b)
	}
	raw := b[:total]
	if s.d.Markers {
		s.raw = append(s.raw[:0], raw...)
		raw = s.raw
	}
	before := s.d
	ulpdu, _, err := s.d.Next(b)
	if !s.f.unknown && (err != nil || !s.d.CRC && !plausibleULPDU(ulpdu)) {
		wait, again := s.doubtful(b, before, total, raw)
		if wait || again {
			s.doubt.open = wait
			return 0, again
		}
	}
	e, typed := errors.AsType[*mpa.Error](err)
	switch {
	case err == nil:
		s.badBefore = false
		s.segment(at, raw, ulpdu)
	case typed && e.Code == mpa.CodeCRC && s.f.unknown:
		// Nobody can blame the sender: there may be markers.
		s.blind()
		return 0, true
	case typed && e.Code == mpa.CodeCRC:
		if s.badBefore && !s.plausible(before, raw) {
			// Two in a row, and the second doesn't look like an FPDU: the
			// length of the first was wrong.
			s.startHunt(at)
			return 0, s.phase != phaseOff
		}
		s.d.Skip(total)
		s.badCRC(at, before, raw, e.Reason)
	default:
		s.f.violate(ruleMarker, s.id, at, "%s", reason(err))
		// "MUST NOT pass or deliver any additional FPDUs": RFC 5044 §8
		s.off(at, len(b), "its markers and lengths disagree on where FPDUs begin")
		return len(b), false
	}
	return total, true
}

// doubtful takes an FPDU that looks wrong back, and reports whether it is to wait, or
// whether another version of it makes it sound.
func (s *stream) doubtful(b []byte, before mpa.Deframer, total int, raw []byte) (wait, again bool) {
	after := s.d
	if s.d.Markers { // they were taken out
		closed := append([]byte(nil), b[:total]...)
		copy(b, raw)
		s.d = before
		if wait, again = s.doubts(b, total); !wait && !again {
			copy(b, closed)
			s.d = after
		}
		return wait, again
	}
	s.d = before
	if wait, again = s.doubts(b, total); !wait && !again {
		s.d = after
	}
	return wait, again
}

// badCRC reports an FPDU whose CRC is wrong. Nothing in it is believed, but
// where it ends; it counts for what it seems to be.
func (s *stream) badCRC(at capture.At, d mpa.Deframer, raw []byte, reason string) {
	s.badBefore = true
	s.f.busy = true
	s.f.con.BadCRC++
	if s.soiled(len(raw)) {
		s.f.note(s.id, at, "the CRC of an FPDU is wrong, and so is the TCP checksum of the bytes: the capture doesn't hold what the %v sent", s.f.side(s.id))
	} else {
		s.f.violate(ruleCRC, s.id, at, "%s", reason)
	}
	d.CRC = false
	ulpdu, _, err := d.Next(append([]byte(nil), raw...))
	if err == nil {
		seg := s.newSegment(raw, ulpdu)
		seg.BadCRC = true
		s.count(&seg)
		s.f.a.emit(&Event{Kind: KindSegment, Conn: s.f.con, At: at, From: s.f.side(s.id), Segment: &seg})
	}
	s.fpdus++
	s.f.con.Undecoded += uint64(len(raw))
	s.lose()
	s.f.settled()
}

// reason returns what an error of a codec found, without its prefix.
func reason(err error) string {
	if e, ok := errors.AsType[*mpa.Error](err); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*rdmap.Error](err); ok {
		return e.Reason
	}
	return err.Error()
}

// lose takes notice of bytes that are not known.
func (s *stream) lose() {
	s.lost = true
	s.losses++
	if m := s.queues[rdmap.OpSend.Queue()].open; m != nil {
		s.release(m)
	}
	s.queues = [rdmap.NumQueues]queue{}
	s.tagged = [numSlots]*Message{}
}

// hole takes notice of n bytes that were not captured.
func (s *stream) hole(at capture.At, n int) {
	s.settleAll()
	s.setVersions(nil)
	s.doubt = doubt{}
	s.at = at
	if s.phase != phaseOff || s.f.con != nil {
		s.f.note(s.id, at, "not captured: %s that the %v sent", plural.Count(n, "byte"), s.f.side(s.id))
	}
	switch s.phase {
	case phaseFPDU:
		s.holeInFPDU(at, n)
	case phaseHunt:
		s.undecoded(n + len(s.buf))
		s.pos += uint64(len(s.buf) + n)
		s.keep(nil)
	case phaseOff:
		if !s.f.rejected {
			s.undecoded(n)
		}
	default:
		s.pos += uint64(len(s.buf) + n)
		s.keep(nil)
		s.lost = true
		s.f.unsettled(at, "part of its start-up was not captured")
	}
}

func (s *stream) undecoded(n int) {
	if s.f.con != nil {
		s.f.con.Undecoded += uint64(n)
	}
}

// holeInFPDU continues behind the FPDU in which the hole lies, if it lies within
// one; else the next FPDU must be searched.
func (s *stream) holeInFPDU(at capture.At, n int) {
	s.begin()
	have := len(s.buf)
	gone := n - min(s.skip, n) // beyond what is skipped anyway
	s.skip -= n - gone
	s.undecoded(n + have)
	s.lose()
	if gone == 0 {
		s.pos += uint64(n)
		return
	}
	total := s.d.FPDULen(s.buf)
	s.pos += uint64(have + n)
	s.keep(nil)
	if total > 0 && have+gone <= total {
		s.d.Skip(total)
		s.skip = total - have - gone
		return
	}
	s.startHunt(at)
}

// finish takes notice that no more bytes come; fin reports that the sender said
// so.
func (s *stream) finish(at capture.At, fin bool) {
	if s.finished {
		return
	}
	s.finished = true
	s.settleAll()
	if s.phase == phaseHunt {
		b := s.buf
		for len(b) > 0 {
			n, again := s.step2(at, b)
			b = b[n:]
			s.pos += uint64(n)
			if !again {
				break
			}
		}
		s.keep(b)
	}
	if s.f.con == nil {
		return
	}
	s.unfinished(at, fin)
	if len(s.buf) == 0 {
		return
	}
	side := s.f.side(s.id)
	if s.phase != phaseFrame {
		s.undecoded(len(s.buf))
	}
	switch {
	case s.phase == phaseFrame && fin:
		s.f.violate(ruleFrame, s.id, at, "the %v closed its direction after %s of an MPA start-up frame", side, plural.Count(len(s.buf), "byte"))
	case s.phase == phaseFrame:
		s.f.note(s.id, at, "the start-up frame of the %v is cut short after %s", side, plural.Count(len(s.buf), "byte"))
	case s.phase == phaseFPDU && fin && !s.f.unknown:
		s.f.violate(ruleCutFPDU, s.id, at, "the %v closed its direction after %s of an FPDU of %d", side, plural.Count(len(s.buf), "byte"), s.d.FPDULen(s.buf))
	case s.phase == phaseFPDU:
		s.f.note(s.id, at, "the last FPDU of the %v is cut short after %s", side, plural.Count(len(s.buf), "byte"))
	case s.phase == phaseHeld:
		s.f.note(s.id, at, "not decoded: %s that the %v sent before any MPA Reply", plural.Count(len(s.buf), "byte"), side)
	}
	s.keep(nil)
}

// step2 is step for the last bytes of a stream: it does not wait for more.
func (s *stream) step2(at capture.At, b []byte) (int, bool) {
	if s.phase == phaseHunt {
		return s.search4FPDU(at, b, true)
	}
	return s.step(at, b)
}
