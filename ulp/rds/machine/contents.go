package machine

import (
	"encoding/binary"
	"hash/maphash"

	"urnic/ulp/rds/wire"
)

// contents are what the last messages of an anonymous peer were, by a hash of ports, number and data. A link
// may have been taken for another path and have passed its trial: Linux's paths take any number before they have
// received one. Then the number of a message is remembered for the wrong path, but what it was is not.
type contents struct {
	seed maphash.Seed
	seen map[uint64]struct{}
	ring []uint64 // what is in seen, the oldest at next
	next int
}

// recentContents is how many messages contents remembers.
const recentContents = 8192

func (c *contents) hash(h *wire.Header, data []byte) uint64 {
	var of maphash.Hash
	of.SetSeed(c.seed)
	var b [12]byte
	binary.BigEndian.PutUint16(b[:], h.SourcePort)
	binary.BigEndian.PutUint16(b[2:], h.DestPort)
	binary.BigEndian.PutUint64(b[4:], h.Sequence)
	_, _ = of.Write(b[:]) // it does not fail
	_, _ = of.Write(data)
	return of.Sum64()
}

// has reports whether a message is one of those.
func (c *contents) has(h *wire.Header, data []byte) bool {
	if c.seen == nil {
		return false
	}
	_, ok := c.seen[c.hash(h, data)]
	return ok
}

// note remembers a message.
func (c *contents) note(h *wire.Header, data []byte) {
	if c.seen == nil {
		c.seed, c.seen = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	key := c.hash(h, data)
	if _, ok := c.seen[key]; ok {
		return
	}
	c.seen[key] = struct{}{}
	if len(c.ring) < recentContents {
		c.ring = append(c.ring, key)
		return
	}
	delete(c.seen, c.ring[c.next])
	c.ring[c.next] = key
	c.next = (c.next + 1) % recentContents
}
