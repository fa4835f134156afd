package rdmap

// A slot is an untagged buffer of RDMAP's own.
type slot struct {
	size int
	b    [max(AtomicRequestLen, MaxTerminateLen)]byte
}

// Len implements ddp.Buffer.
func (b *slot) Len() uint64 { return uint64(b.size) }

// Place implements ddp.Buffer.
func (b *slot) Place(off uint32, p []byte) error {
	copy(b.b[off:b.size], p)
	return nil
}

// slots are the buffers of one queue, used in turn. There are as many as
// messages have been outstanding at a time: mostly one.
type slots struct {
	size  int // of a buffer
	all   []slot
	first int // that of the oldest message that is not delivered
}

// at returns the buffer of the message that follows that many others.
func (s *slots) at(ahead uint32) *slot {
	if int(ahead) >= len(s.all) {
		all := make([]slot, max(int(ahead)+1, 2*len(s.all)))
		n := copy(all, s.all[s.first:])
		copy(all[n:], s.all[:s.first])
		for i := range all {
			all[i].size = s.size
		}
		s.all, s.first = all, 0
	}
	return &s.all[(s.first+int(ahead))%len(s.all)]
}

// take returns the first bytes of the buffer of the message that is delivered.
func (s *slots) take(length uint32) []byte {
	b := &s.all[s.first]
	s.first = (s.first + 1) % len(s.all)
	return b.b[:length]
}
