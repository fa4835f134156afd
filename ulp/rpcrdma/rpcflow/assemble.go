package rpcflow

import (
	"encoding/binary"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rpcrdma"
)

// A stream is a Payload stream with what chunks have moved put back in its place.
type stream struct {
	octets  []byte
	moved   uint64 // bytes of chunks that hold a data item
	long    bool   // the stream itself came in a chunk
	thin    bool   // some of it is not known, and is missing
	missing uint64 // how much
	items   []item
}

// An item is a data item that was moved.
type item struct {
	at     int // in the stream
	length uint64
}

// add adds bytes of which length is known, and perhaps not all of the contents.
func (s *stream) add(data []byte, length uint64) {
	if uint64(len(data)) < length {
		s.thin = true
		s.missing += length - uint64(len(data))
	}
	s.octets = append(s.octets, data[:min(uint64(len(data)), length)]...)
}

// length returns how long the whole message is.
func (s *stream) length() uint64 { return uint64(len(s.octets)) + s.missing }

// roundUp fills an item up to a multiple of four, if the chunk does not hold what fills it
// up (RFC 8166 §3.4.5.2).
func (s *stream) roundUp(length uint64) {
	s.octets = append(s.octets, make([]byte, -length&3)...)
}

// assembleCall puts a call together (RFC 8166 §3.4.5, §3.5.3).
func (c *conn) assembleCall(k *call, inline []byte, at capture.At) *stream {
	h := k.header
	s := &stream{long: h.Proc == rpcrdma.NoMsg}
	var chunks []chunk
	for i := range h.Read {
		if n := len(chunks); n == 0 || chunks[n-1].position != h.Read[i].Position {
			chunks = append(chunks, chunk{position: h.Read[i].Position})
		}
		chunks[len(chunks)-1].regions = append(chunks[len(chunks)-1].regions, k.regions[i])
	}
	if len(chunks) > 0 && chunks[0].position == 0 {
		if s.long {
			var zero stream
			zero.addRegions(chunks[0].regions)
			inline, s.thin, s.missing = zero.octets, zero.thin, zero.missing
		} else {
			c.r.Violate(ruleLongCall, k.from, k.at, "XID %08x has a Read chunk at 0 and a stream behind the header", h.XID)
		}
		chunks = chunks[1:]
	} else if s.long {
		c.r.Violate(ruleLongCall, k.from, k.at, "XID %08x is an RDMA_NOMSG without a Read chunk at 0", h.XID)
	}
	for i := range chunks {
		ch := &chunks[i]
		from := s.length()
		if uint64(ch.position) < from || uint64(ch.position)-from > uint64(len(inline)) {
			if !s.thin {
				c.r.Violate(rulePosition, k.from, at, "XID %08x has a Read chunk at %d, where the stream before it ends at %d and %d bytes of it are left",
					h.XID, ch.position, from, len(inline))
			}
			break
		}
		n := uint64(ch.position) - from
		s.add(inline[:n], n)
		inline = inline[n:]
		length := s.addRegions(ch.regions)
		s.items = append(s.items, item{int(ch.position), length})
		s.moved += length
		s.roundUp(length)
	}
	s.add(inline, uint64(len(inline)))
	return s
}

// A chunk is a Read chunk.
type chunk struct {
	position uint32
	regions  []*region
}

// addRegions adds what was read of a chunk, and returns how long it is.
func (s *stream) addRegions(regions []*region) (length uint64) {
	for _, r := range regions {
		if s.thin { // the bytes behind a gap would stand in a wrong place
			s.missing += uint64(r.seg.Length)
		} else {
			s.add(r.span.data, uint64(r.seg.Length))
		}
		length += uint64(r.seg.Length)
	}
	return length
}

// assembleReply puts a reply together (RFC 8166 §3.4.6.1, §3.5.3). k may be nil.
func (c *conn) assembleReply(k *call, h *rpcrdma.Header, inline []byte, from dissect.Side, at capture.At) *stream {
	s := &stream{}
	if h.Proc == rpcrdma.NoMsg {
		s.long = true
		if k != nil {
			s.addWritten(k.reply, h.Reply)
		} else {
			s.missing, s.thin = sum(h.Reply), true
		}
	} else {
		s.add(inline, uint64(len(inline)))
	}
	if k == nil || k.rpc == nil {
		return s
	}
	// Which results they are is known to the upper layer's binding only.
	for i := range min(len(h.Write), len(k.write)) {
		length := sum(h.Write[i])
		if length == 0 {
			continue
		}
		s.moved += length
		place, ok := k.rpc.resultPlace(s)
		if !ok {
			s.missing += length
			s.thin = true
			continue
		}
		rest := append([]byte(nil), s.octets[place:]...)
		s.octets = s.octets[:place]
		if want := uint64(binary.BigEndian.Uint32(s.octets[place-4:])); want != length {
			c.r.Violate(ruleWriteLen, from, at, "the reply to XID %08x has an item of %d bytes, of which %d are in Write chunk %d", h.XID, want, length, i+1)
		}
		s.addWritten(k.write[i], h.Write[i])
		s.items = append(s.items, item{place, length})
		s.roundUp(length)
		s.octets = append(s.octets, rest...)
	}
	return s
}

// addWritten adds what was written to a chunk, by the lengths of the reply.
func (s *stream) addWritten(regions []*region, said []rpcrdma.Segment) {
	for i, w := range said {
		switch n := uint64(w.Length); {
		case i >= len(regions) || s.thin:
			s.missing += n
			s.thin = s.thin || n > 0
		default:
			s.add(regions[i].span.data, n)
		}
	}
}
