package datagram

// A Stream is the order of what a UC queue pair receives. A message of which a part is
// missing is lost as a whole, and its receive is there for the next one. The zero
// Stream waits for the beginning of a message.
type Stream struct {
	within       bool
	sequence     uint32 // of the fragment that is expected
	offset, size uint32
}

// A Place is what is to be done with a fragment.
type Place struct {
	Reason Reason // Taken, or Incomplete if the fragment is of no use
	First  bool   // the message begins
	Last   bool   // the message is complete
	Lost   bool   // one that had begun is lost
}

// Next decides on a fragment of n bytes.
func (s *Stream) Next(h *Header, n int) (p Place) {
	if s.within && h.Sequence == s.sequence && h.Offset == s.offset && h.Length == s.size {
		s.offset += uint32(n)
		s.sequence++
		if s.offset == s.size {
			s.within, p.Last = false, true
		}
		return p
	}
	p.Lost, s.within = s.within, false
	if h.Offset != 0 {
		p.Reason = Incomplete
		return p
	}
	p.First = true
	if h.Whole(n) {
		p.Last = true
		return p
	}
	*s = Stream{within: true, sequence: h.Sequence + 1, offset: uint32(n), size: h.Length}
	return p
}

// Reset forgets the message that has begun.
func (s *Stream) Reset() { *s = Stream{} }
