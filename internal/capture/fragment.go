package capture

import (
	"bytes"
	"container/list"
	"net/netip"
	"slices"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// What fragments of IP packets may make a decoder hold.
const (
	maxJoining      = 1 << 10 // packets that are not whole
	maxJoiningBytes = 16 << 20
	maxFragments    = 1 << 10 // of a packet
	fragmentCost    = 128     // of each, besides its bytes
	// joinFor is how long the fragments of a packet may take to come (RFC 8200 §4.5).
	joinFor = 60 * time.Second
)

// A packetID names an IP packet that was cut into fragments.
type packetID struct {
	src, dst netip.Addr
	id       uint32
	protocol uint8 // of IPv4 (RFC 791 §3.2)
}

// A fragment is a part of an IP packet.
type fragment struct {
	packetID
	offset int
	more   bool // others follow
	next   uint8
	data   []byte
}

// A joiner puts IP packets together whose fragments come in any order.
type joiner struct {
	packets map[packetID]*list.Element // in order
	order   list.List                  // of *joining, the oldest first
	held    int                        // bytes, with fragmentCost
}

// A joining is a packet of which fragments are there.
type joining struct {
	packetID
	since  time.Time
	pieces []part // by offset; none overlaps another
	count  int    // fragments, those that came twice too
	bytes  int
	total  int // the length of the packet; negative until the last fragment is there
	next   uint8
}

// A part is what a fragment holds of its packet.
type part struct {
	offset int
	data   []byte
}

func (p part) end() int { return p.offset + len(p.data) }

// add takes a fragment. If the packet is whole now, it returns its payload, the protocol
// of that, and how many fragments it had.
func (j *joiner) add(f *fragment, now time.Time) (whole []byte, next uint8, count int) {
	j.expire(now)
	end := f.offset + len(f.data)
	if end > maxIPLen || len(f.data) == 0 || f.more && len(f.data)%8 != 0 {
		return nil, 0, 0
	}
	e := j.packets[f.packetID]
	if e == nil {
		if j.packets == nil {
			j.packets = make(map[packetID]*list.Element)
		}
		e = j.order.PushBack(&joining{packetID: f.packetID, since: now, total: -1})
		j.packets[f.packetID] = e
	}
	p := e.Value.(*joining)
	p.count++
	if !p.insert(f, end) {
		return nil, 0, 0
	}
	if p.bytes == 0 { // it contradicted itself
		j.forget(e)
		return nil, 0, 0
	}
	j.held += fragmentCost + len(f.data)
	if p.bytes != p.total {
		for j.held > maxJoiningBytes || j.order.Len() > maxJoining {
			j.forget(j.order.Front())
		}
		return nil, 0, 0
	}
	whole = make([]byte, 0, p.total)
	for _, piece := range p.pieces {
		whole = append(whole, piece.data...)
	}
	j.forget(e)
	return whole, p.next, p.count
}

// insert keeps a copy of a fragment, and reports whether it is new. Fragments that
// overlap, which nobody sends in good faith, leave nothing of the packet (RFC 8200 §4.5):
// then p.bytes is 0.
func (p *joining) insert(f *fragment, end int) bool {
	i, found := slices.BinarySearchFunc(p.pieces, f.offset, func(have part, offset int) int { return have.offset - offset })
	if found && bytes.Equal(p.pieces[i].data, f.data) {
		return false // it came twice
	}
	wrong := found || len(p.pieces) == maxFragments ||
		i < len(p.pieces) && end > p.pieces[i].offset ||
		i > 0 && p.pieces[i-1].end() > f.offset ||
		p.total >= 0 && end > p.total
	if !f.more { // nothing follows the last one, and there is one only
		wrong = wrong || p.total >= 0 || i < len(p.pieces)
		p.total = end
	}
	if wrong {
		p.bytes = 0
		return true
	}
	if f.offset == 0 {
		p.next = f.next
	}
	p.pieces = slices.Insert(p.pieces, i, part{f.offset, bytes.Clone(f.data)})
	p.bytes += len(f.data)
	return true
}

// expire gives packets up whose fragments have not come in time.
func (j *joiner) expire(now time.Time) {
	for e := j.order.Front(); e != nil && now.Sub(e.Value.(*joining).since) > joinFor; e = j.order.Front() {
		j.forget(e)
	}
}

func (j *joiner) forget(e *list.Element) {
	p := e.Value.(*joining)
	for _, piece := range p.pieces {
		j.held -= fragmentCost + len(piece.data)
	}
	delete(j.packets, p.packetID)
	j.order.Remove(e)
}

// join takes a fragment of which all was captured. It returns what follows, if that makes
// the packet whole.
func (d *decoder) join(f *fragment, v6 bool) (layer, []byte, bool) {
	if d.missing > 0 {
		return layerFragment, nil, true
	}
	whole, next, count := d.joiner.add(f, d.now)
	if whole == nil {
		return layerFragment, nil, true
	}
	d.joined += count - 1
	return d.ip(layers.IPProtocol(next), v6), whole, true
}
