package cases

import (
	"bytes"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// The lengths of an FPDU's and a DDP segment's parts (RFC 5044 §4.1, RFC 5041 §4.2).
const (
	lengthLen   = 2
	taggedLen   = 14
	untaggedLen = 18
	crcLen      = 4
	markerLen   = 4
	maxULPDU    = wire.MaxULPDU
	mulpduRFC   = 1442 // of the usual EMSS of 1448 bytes
)

// A memory is a buffer of the target, as the stream shows it.
type memory struct {
	t    *conformance.T
	s    *conformance.Stream
	b    *conformance.Buffer
	want []byte
}

// openMemory opens n bytes, and looks at what they hold.
func openMemory(t *conformance.T, s *conformance.Stream, n int) *memory {
	return openMemoryOf(t, s, conformance.BufferSpec{Length: n})
}

// openMemoryOf is openMemory with more to say of the buffer.
func openMemoryOf(t *conformance.T, s *conformance.Stream, spec conformance.BufferSpec) *memory {
	b := s.BufferOf(spec)
	return &memory{t: t, s: s, b: b, want: s.Read(b.STag, b.TO, b.Length)}
}

// write returns a Write of data to offset off, and notes that they have to be there.
func (m *memory) write(off int, data []byte) wire.Segment {
	copy(m.want[off:], data)
	return wire.Tagged(wire.Write, m.b.STag, m.b.TO+uint64(off), data)
}

// check reads the buffer, and makes sure that all that was written is there, and
// nothing else has changed. The Read is carried out after the Writes before it (RFC
// 5040 §5.5).
func (m *memory) check() {
	got := m.s.Read(m.b.STag, m.b.TO, m.b.Length)
	m.t.Check(bytes.Equal(got, m.want), "what was written, and nothing else in the buffer", "this: %s", differ(got, m.want))
}

// merged returns the FPDUs of segments as they stand one behind the other in the
// stream. Only tagged segments keep their numbers right.
func merged(s *conformance.Stream, segments ...wire.Segment) []byte {
	var b []byte
	for _, seg := range segments {
		b = append(b, s.Frame(seg.Octets(), wire.Flaw{})...)
	}
	return b
}

// sendFrames sends what Stream.Frame has returned. What can't be sent, as the target has gone, is on the tape.
func sendFrames(s *conformance.Stream, frames [][]byte, what, wrong string) {
	if err := s.SendFrames(frames, what, wrong); err != nil {
		return // taped
	}
}

// sendRaw sends bytes. What can't be sent, as the target has gone, is on the tape.
func sendRaw(s *conformance.Stream, b []byte, what, wrong string) {
	if err := s.SendRaw(b, what, wrong); err != nil {
		return // taped
	}
}

// filler is FPDUs that do nothing, n bytes of them or some more: they fill what a
// wrong length announces.
func filler(s *conformance.Stream, n int) []byte {
	var b []byte
	for len(b) < n {
		b = append(b, merged(s, wire.Tagged(wire.Write, 0, 0, nil))...)
	}
	return b
}

// endHalf ends the tester's half, so that the target need not wait for that.
func endHalf(s *conformance.Stream) {
	if err := s.CloseWrite(); err != nil {
		return // it is gone
	}
}
