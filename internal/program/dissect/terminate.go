package dissect

import (
	"bytes"
	"slices"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/rdmap"
)

// historyLen is how many segments of a stream are remembered: a Terminate
// shows the header of the one that is wrong.
const historyLen = 128

// A history remembers the headers of the last segments of a stream.
type history struct {
	at   int
	all  bool // the history holds all segments that there were
	list [historyLen]sent
	n    int
}

// A sent is a segment of which a Terminate may speak.
type sent struct {
	header [ddp.UntaggedHeaderLen]byte
	n      uint8
	length uint16 // of the segment, header included
}

func (s *stream) remember(seg *Segment) {
	if s.recent == nil {
		s.recent = &history{all: !s.lost}
	}
	h := s.recent
	e := &h.list[h.at]
	n := seg.DDP.HeaderLen()
	copy(e.header[:], seg.ULPDU[:n])
	e.n, e.length = uint8(n), uint16(len(seg.ULPDU))
	h.at = (h.at + 1) % historyLen
	if h.n < historyLen {
		h.n++
	} else {
		h.all = false
	}
}

// find returns the lengths of the segments with that header, and whether the
// history is sure to know.
func (h *history) find(header []byte) (lengths []uint16, sure bool) {
	if h == nil {
		return nil, false
	}
	for i := range h.n {
		if e := &h.list[i]; bytes.Equal(e.header[:e.n], header) {
			lengths = append(lengths, e.length)
		}
	}
	return lengths, h.all
}

// terminate judges a Terminate message (RFC 5040 §4.8).
func (s *stream) terminate(at capture.At, m *Message) {
	f := s.f
	s.terminated = true
	t, err := rdmap.ParseTerminate(m.head)
	if err != nil {
		f.violate(ruleTerminate, s.id, at, "%s", reason(err))
		return
	}
	m.Terminate = &t
	if !t.Code.Defined() {
		f.violate(ruleTermCode, s.id, at, "Terminate code 0x%04x is not defined", uint16(t.Code))
	}
	if t.SIWLayout() {
		f.violate(ruleTerminate, s.id, at, "the header control bits stand at the low end of their byte (0x%02x), as Linux siw sends them", t.HdrCt)
		return // by the RFC, nothing of the rest is announced
	}
	if t.HdrCt&0x1F != 0 || t.Rsvd != 0 {
		f.violate(ruleTerminate, s.id, at, "reserved bits are set in the Terminate control field (bytes %02x %02x)", t.HdrCt, t.Rsvd)
	}
	if !t.D() {
		return
	}
	lengths, sure := s.peer().recent.find(t.DDPHeader)
	if len(lengths) == 0 {
		if sure && !s.peer().lost {
			f.violate(ruleTermHeader, s.id, at, "the DDP header in the Terminate, %x, was not sent", t.DDPHeader)
		}
		return
	}
	if !t.M() {
		return
	}
	if slices.Contains(lengths, t.SegmentLen) {
		return
	}
	f.violate(ruleTermLength, s.id, at, "DDP Segment Length %d in the Terminate; the segment had %s", t.SegmentLen, plural.Count(lengths[0], "byte"))
}
