package dissect

import (
	"math"

	"urnic/internal/capture"
)

// A capture may hold an FPDU in two versions: one that TCP's checksum refuses, and the one
// that was sent again. So an FPDU that looks wrong is in doubt until the other side has
// acknowledged it: until then, another version may come, and count.

const (
	// maxDoubt bounds how many bytes wait behind an FPDU that is in doubt.
	maxDoubt = 1 << 20
	// maxVersions bounds how many other versions of bytes are kept, and maxVersion
	// their length.
	maxVersions = 16
	maxVersion  = 1 << 16
	// maxMarks bounds how many packets wait.
	maxMarks = 1 << 12
)

// A version is what some bytes of a stream read when they were sent again.
type version struct {
	pos  uint64 // of its first byte
	data []byte
}

// A mark says where the bytes in front of pos were captured.
type mark struct {
	pos uint64
	at  capture.At
}

// A doubt is what a stream knows of FPDUs that may not be what was sent.
type doubt struct {
	open     bool   // the FPDU at the front of the buffer is in doubt
	marks    []mark // of what waits; in order
	acked    uint64 // up to where the other side has acknowledged
	final    uint64 // FPDUs that begin before are judged as they are
	versions []version
	dirty    []span // bytes with a wrong TCP checksum
}

// A span is a part of a stream.
type span struct{ from, to uint64 }

// end returns the position behind what was captured of the stream.
func (s *stream) end() uint64 { return s.pos + uint64(len(s.buf)) }

// soil notes that the TCP checksum of bytes is wrong.
func (s *stream) soil(from, to uint64) {
	d := &s.doubt
	for len(d.dirty) > 0 && d.dirty[0].to <= s.pos {
		d.dirty = d.dirty[1:]
	}
	if n := len(d.dirty); n > 0 && (d.dirty[n-1].to == from || n > maxVersions) {
		d.dirty[n-1].to = to
		return
	}
	d.dirty = append(d.dirty, span{from, to})
}

// soiled reports whether some of the next n bytes had a wrong TCP checksum.
func (s *stream) soiled(n int) bool {
	for _, d := range s.doubt.dirty {
		if d.from < s.pos+uint64(n) && d.to > s.pos {
			return true
		}
	}
	return false
}

// doubts reports whether an FPDU of n bytes at the front of b that looks wrong is to wait.
// What it patches with another version is no longer in doubt: again is true.
func (s *stream) doubts(b []byte, n int) (wait, again bool) {
	if s.mend(b) {
		return false, true
	}
	return s.pos >= s.doubt.final && s.pos+uint64(n) > s.doubt.acked, false
}

// wait adds bytes to those that wait behind the FPDU in doubt.
func (s *stream) wait(at capture.At, b []byte) {
	s.f.a.buffered += len(b)
	s.buf = append(s.buf, b...)
	s.doubt.marks = append(s.doubt.marks, mark{s.end(), at})
	if len(s.buf) > maxDoubt || len(s.doubt.marks) > maxMarks || s.f.a.buffered > maxBuffered {
		s.judge()
	}
}

// judge judges the FPDU in doubt as it is.
func (s *stream) judge() {
	s.doubt.final = s.pos + 1
	s.resume()
}

// resume decodes what has waited.
func (s *stream) resume() {
	if !s.doubt.open {
		return
	}
	s.doubt.open = false
	b := s.buf
	for len(b) > 0 {
		n, again := s.step(s.captured(b), b)
		b = b[n:]
		s.pos += uint64(n)
		if !again {
			break
		}
	}
	s.keep(b)
	marks := s.doubt.marks
	for len(marks) > 0 && marks[0].pos <= s.pos {
		marks = marks[1:]
	}
	if s.doubt.marks = marks; !s.doubt.open {
		s.doubt.marks = nil
	}
}

// captured returns where the last byte of the FPDU at the front of b was captured.
func (s *stream) captured(b []byte) capture.At {
	pos := s.pos + uint64(len(b))
	if n := s.d.FPDULen(b); s.phase == phaseFPDU && n > 0 && n < len(b) {
		pos = s.pos + uint64(n)
	}
	for _, m := range s.doubt.marks {
		if m.pos >= pos {
			return m.at
		}
	}
	return s.at
}

// acknowledged takes notice that all but the last left bytes are acknowledged. What is in
// doubt is then what the other side has taken.
func (s *stream) acknowledged(left int) {
	d := &s.doubt
	if end := s.end(); uint64(left) <= end {
		d.acked = end - uint64(left)
	}
	if d.open && s.pos+uint64(max(1, s.d.FPDULen(s.buf))) <= d.acked {
		s.resume()
	}
}

// differs takes another version of bytes, the first of which lies back bytes before the
// end.
func (s *stream) differs(at capture.At, back int, b []byte) {
	d := &s.doubt
	end := s.end()
	if uint64(back) > end || end-uint64(back)+uint64(len(b)) <= s.pos || len(d.versions) >= maxVersions || len(b) > maxVersion || s.f.a.buffered+len(b) > maxBuffered {
		return
	}
	s.setVersions(append(d.versions, version{end - uint64(back), append([]byte(nil), b...)}))
	// If its length is what was wrong, an FPDU may seem to lack bytes.
	if s.phase == phaseFPDU && (s.mend(s.buf) || d.open && s.relength()) {
		s.at = at
		d.open = true
		s.resume()
	}
}

// setVersions makes v what is kept of other versions, and counts its bytes.
func (s *stream) setVersions(v []version) {
	for _, old := range s.doubt.versions {
		s.f.a.buffered -= len(old.data)
	}
	for _, kept := range v {
		s.f.a.buffered += len(kept.data)
	}
	s.doubt.versions = v
}

// mend patches b with other versions of its bytes if that makes a sound FPDU of its
// front: with all of them, or with one.
func (s *stream) mend(b []byte) bool {
	all := s.doubt.versions
	for len(all) > 0 && all[0].pos+uint64(len(all[0].data)) <= s.pos {
		all = all[1:]
	}
	if s.setVersions(all); len(all) == 0 {
		return false
	}
	try := func(versions []version) bool {
		c := append([]byte(nil), b...)
		for _, v := range versions {
			s.patch(c, v)
		}
		if !s.sound(c) {
			return false
		}
		copy(b, c)
		return true
	}
	if try(all) {
		s.setVersions(nil)
		return true
	}
	for i := range all {
		if try(all[i : i+1]) {
			s.setVersions(append(append([]version(nil), all[:i]...), all[i+1:]...))
			return true
		}
	}
	return false
}

// relength takes other versions for the FPDU in doubt if they give it another length, so
// that it is not there to its end yet. It reports whether they do.
func (s *stream) relength() bool {
	c := append([]byte(nil), s.buf...)
	for _, v := range s.doubt.versions {
		s.patch(c, v)
	}
	if s.d.FPDULen(c) == s.d.FPDULen(s.buf) {
		return false
	}
	copy(s.buf, c)
	s.setVersions(nil)
	return true
}

// patch puts a version into bytes that begin at s.pos.
func (s *stream) patch(b []byte, v version) {
	data := v.data
	if v.pos < s.pos {
		data = data[min(s.pos-v.pos, uint64(len(data))):]
		v.pos = s.pos
	}
	if at := v.pos - s.pos; at < uint64(len(b)) {
		copy(b[at:], data)
	}
}

// sound reports whether a sound FPDU is at the front of b.
func (s *stream) sound(b []byte) bool {
	d := s.d
	n := d.FPDULen(b)
	if n == 0 || n > len(b) {
		return false
	}
	raw := append([]byte(nil), b[:n]...)
	if _, _, err := d.Next(append([]byte(nil), raw...)); err != nil {
		return false
	}
	return s.d.CRC || s.plausible(s.d, raw)
}

// settleAll has all be judged as it is, because nothing more comes.
func (s *stream) settleAll() {
	s.doubt.final = math.MaxUint64
	s.resume()
}
