package dissect

import (
	"encoding/binary"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
)

const (
	// huntLimit bounds how many bytes are searched for FPDUs in a stream
	// that may not be iWARP at all; crcLimit, over how many CRCs are computed.
	huntLimit = 16 << 20
	crcLimit  = 256 << 20
	// minULPDU is the shortest DDP segment.
	minULPDU = ddp.TaggedHeaderLen
)

// A hunter searches a stream for the beginning of an FPDU.
type hunter struct {
	unknown  bool // whether the stream is iWARP at all is to be found out
	markers  bool // by markers; else by CRC
	searched int  // bytes passed
	checked  int  // bytes over which CRCs were computed
}

// startHunt is called where an FPDU ought to begin, but it is not known where.
func (s *stream) startHunt(at capture.At) {
	switch {
	case s.d.Markers:
		s.hunt = hunter{markers: true}
	case s.d.CRC:
		s.hunt = hunter{}
	default:
		s.off(at, 0, "without CRCs and markers there is no telling where the next FPDU begins")
		return
	}
	s.phase = phaseHunt
	s.badBefore = false
	s.lose()
}

// unsettled is called when the settings of start-up can't be known. With CRCs
// and without markers, FPDUs are recognised nevertheless.
func (f *follower) unsettled(at capture.At, why string) {
	f.note(f.client, at, "%s: FPDUs are decoded only if they have CRCs and no markers", why)
	f.unknown = true
	for i := range f.streams {
		s := &f.streams[i]
		if s.phase == phaseSearch && s.pos == 0 && !s.lost {
			continue // its start-up frame may still come
		}
		if s.phase != phaseOff && s.phase != phaseHunt {
			s.blind()
		}
	}
}

// blind begins the search in a stream of which only its FPDUs can tell what
// they are.
func (s *stream) blind() {
	s.phase, s.hunt = phaseHunt, hunter{unknown: true}
	s.midway = true
	s.f.unknown = true
	s.lose()
}

// search4FPDU looks for an FPDU in b. last reports that nothing more will come.
func (s *stream) search4FPDU(at capture.At, b []byte, last bool) (int, bool) {
	var n int
	var found bool
	if s.hunt.markers {
		n, found = s.byMarkers(b)
	} else {
		n, found = s.byCRC(b, last)
	}
	s.undecoded(n)
	s.hunt.searched += n
	if !found {
		if s.hunt.unknown && s.hunt.searched > huntLimit || s.hunt.checked > crcLimit {
			s.off(at, len(b)-n, "no FPDU was found")
			return len(b), false
		}
		return n, false
	}
	if s.f.con == nil {
		s.f.client = capture.Opener
		s.f.recognise(at, IWARP)
		s.f.note(s.id, at, "picked up in mid-stream: recognised by the CRCs of its FPDUs; which side is the client is a guess")
	}
	if s.hunt.unknown {
		s.f.con.MPA.CRC = true
		s.d = mpa.Deframer{CRC: true}
		s.origin = s.pos + uint64(n)
	} else {
		d := mpa.Deframer{CRC: s.d.CRC, Markers: s.d.Markers}
		d.Skip(int((s.pos + uint64(n) - s.origin) % mpa.MarkerInterval))
		s.d = d
	}
	s.f.note(s.id, at, "FPDUs of the %v are decoded again", s.f.side(s.id))
	s.phase = phaseFPDU
	return n, true
}

// byMarkers follows a marker to the FPDU that it points to (RFC 5044 §4.3). It
// returns where in b that begins, its leading marker included, or how many
// bytes of b are of no use.
func (s *stream) byMarkers(b []byte) (int, bool) {
	clock := int((s.pos - s.origin) % mpa.MarkerInterval) // at b[0]
	for m := (mpa.MarkerInterval - clock) % mpa.MarkerInterval; m+mpa.MarkerLen <= len(b); m += mpa.MarkerInterval {
		ptr := int(binary.BigEndian.Uint16(b[m+2:]) &^ 3)
		start := m - ptr
		if ptr > 0 && (clock+start)%mpa.MarkerInterval == mpa.MarkerLen {
			start -= mpa.MarkerLen // the marker in front belongs to the FPDU
		}
		if start >= 0 {
			return start, true
		}
	}
	return max(0, len(b)-mpa.MaxFPDULen), false
}

// byCRC finds an FPDU whose CRC is right, or two in a row if nothing else tells
// that the stream is iWARP. It returns where it begins, or how many bytes of b
// are of no use.
func (s *stream) byCRC(b []byte, last bool) (int, bool) {
	step := 1
	if !s.hunt.unknown {
		step = 4 // FPDUs are multiples of four bytes long
	}
	i := 0
	if off := int((s.pos - s.origin) % uint64(step)); off > 0 {
		i = step - off
	}
	for ; i+2+minULPDU <= len(b); i += step {
		ok, wait := s.candidate(b[i:], last)
		if ok {
			return i, true
		}
		if wait {
			break
		}
	}
	return min(i, len(b)), false
}

// candidate judges whether an FPDU begins at b[0], or whether more bytes must
// be awaited to tell.
func (s *stream) candidate(b []byte, last bool) (ok, wait bool) {
	d := mpa.Deframer{CRC: true}
	need := 1
	if s.hunt.unknown {
		need = 2
	}
	for ; need > 0; need-- {
		if !plausible(b) {
			return false, len(b) < 2+minULPDU && !last
		}
		if len(b) < d.FPDULen(b) {
			return false, !last
		}
		s.hunt.checked += d.FPDULen(b)
		_, n, err := d.Next(b)
		if err != nil {
			return false, false
		}
		b = b[n:]
		if len(b) == 0 && need > 1 {
			return false, !last
		}
	}
	return true, false
}

// plausible reports whether b looks like the beginning of an FPDU without
// markers that carries an RDMA message.
func plausible(b []byte) bool {
	if len(b) < 2+minULPDU {
		return false
	}
	length := int(binary.BigEndian.Uint16(b))
	if length < minULPDU || length > mpa.MaxMULPDU {
		return false
	}
	c, r := ddp.Control(b[2]), rdmap.Control(b[3])
	op := r.Opcode()
	if c.Version() != ddp.Version || c.Reserved() != 0 || r.Reserved() != 0 || !r.ValidVersion() ||
		!op.Valid() || op.Tagged() != c.Tagged() {
		return false
	}
	if c.Tagged() {
		return true
	}
	return length >= ddp.UntaggedHeaderLen && binary.BigEndian.Uint32(b[8:]) == op.Queue()
}

// plausible is the same for an FPDU where one is expected, and of which markers
// may be part.
func (s *stream) plausible(d mpa.Deframer, raw []byte) bool {
	d.CRC = false
	ulpdu, _, err := d.Next(append([]byte(nil), raw...))
	if err != nil {
		return false
	}
	return plausibleULPDU(ulpdu)
}

// plausibleULPDU reports whether a ULPDU looks like one that carries an RDMA message.
func plausibleULPDU(ulpdu []byte) bool {
	head := binary.BigEndian.AppendUint16(make([]byte, 0, 2+ddp.UntaggedHeaderLen), uint16(len(ulpdu)))
	return plausible(append(head, ulpdu[:min(len(ulpdu), ddp.UntaggedHeaderLen)]...))
}
