package capture

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// The pcapng blocks that matter here. All others are passed over.
const (
	blockSection        = 0x0A0D0D0A
	blockInterface      = 1
	blockObsoletePacket = 2
	blockSimplePacket   = 3
	blockEnhancedPacket = 6

	byteOrderMagic = 0x1A2B3C4D

	optionEnd        = 0
	optionResolution = 9  // if_tsresol
	optionOffset     = 14 // if_tsoffset

	blockOverhead = 12 // type, length, and length again
	// maxBlock bounds the blocks that are read into memory: a packet with
	// its options.
	maxBlock = maxPacket + 1<<16
	// maxInterfaces bounds what a section makes the Reader remember.
	maxInterfaces = 1 << 12
)

// An ngInterface is what packets need to know of where they were captured.
type ngInterface struct {
	link    layers.LinkType
	snapLen uint32
	units   uint64 // timestamp units in a second
	offset  int64  // seconds to add to each timestamp
}

// time converts a timestamp of the interface.
func (i *ngInterface) time(stamp uint64) time.Time {
	sec, rest := stamp/i.units, stamp%i.units
	hi, lo := bits.Mul64(rest, uint64(time.Second))
	nanos, _ := bits.Div64(hi, lo, i.units) // rest < units, so that it fits
	return time.Unix(int64(sec)+i.offset, int64(nanos)).UTC()
}

// An ng is the state of a pcapng file.
type ng struct {
	order      binary.ByteOrder
	interfaces []ngInterface
}

func (g *ng) next(r *Reader, p *Packet) error {
	for {
		kind, body, err := g.block(r)
		if err != nil {
			return err
		}
		switch kind {
		case blockInterface:
			err = g.addInterface(r, body)
		case blockEnhancedPacket:
			return g.packet(r, p, body, 4)
		case blockObsoletePacket:
			return g.packet(r, p, body, 2)
		case blockSimplePacket:
			return g.simple(r, p, body)
		}
		if err != nil {
			return err
		}
	}
}

// block reads one block and returns its body, or none of a block that is
// passed over. A section header sets the byte order.
func (g *ng) block(r *Reader) (kind uint32, body []byte, err error) {
	h, err := r.start(8)
	if err != nil {
		return 0, nil, err
	}
	var head [8]byte
	copy(head[:], h)
	if binary.LittleEndian.Uint32(head[:]) == blockSection { // reads the same both ways
		return blockSection, nil, g.section(r, head)
	}
	if g.order == nil {
		return 0, nil, r.fail("the capture does not begin with a section header", nil)
	}
	kind = g.order.Uint32(head[:])
	length := g.order.Uint32(head[4:])
	if length < blockOverhead || length%4 != 0 {
		return 0, nil, r.fail(fmt.Sprintf("a block of %d bytes: the capture is damaged", length), nil)
	}
	switch kind {
	case blockInterface, blockEnhancedPacket, blockObsoletePacket, blockSimplePacket:
	default:
		return kind, nil, r.skip(int64(length) - 8)
	}
	if length > maxBlock {
		return 0, nil, r.fail(fmt.Sprintf("a block of %d bytes: the capture is damaged", length), nil)
	}
	body, err = r.take(int(length) - 8)
	if err != nil {
		return 0, nil, err
	}
	end := len(body) - 4
	if again := g.order.Uint32(body[end:]); again != length {
		return 0, nil, r.fail(fmt.Sprintf("a block gives its length as %d and as %d bytes: the capture is damaged", length, again), nil)
	}
	return kind, body[:end], nil
}

// section reads the rest of a section header.
func (g *ng) section(r *Reader, head [8]byte) error {
	b, err := r.take(16)
	if err != nil {
		return err
	}
	switch uint32(byteOrderMagic) {
	case binary.LittleEndian.Uint32(b):
		g.order = binary.LittleEndian
	case binary.BigEndian.Uint32(b):
		g.order = binary.BigEndian
	default:
		return r.fail("the section header's byte order is unknown", nil)
	}
	if major := g.order.Uint16(b[4:]); major != 1 {
		return r.fail(fmt.Sprintf("pcapng version %d is unknown", major), nil)
	}
	length := g.order.Uint32(head[4:])
	if length < 28 || length%4 != 0 {
		return r.fail(fmt.Sprintf("a section header of %d bytes: the capture is damaged", length), nil)
	}
	g.interfaces = g.interfaces[:0]
	return r.skip(int64(length) - 24)
}

func (g *ng) addInterface(r *Reader, b []byte) error {
	if len(b) < 8 {
		return r.fail("an interface description is too short: the capture is damaged", nil)
	}
	if len(g.interfaces) == maxInterfaces {
		return r.fail(fmt.Sprintf("more than %d interfaces in a section", maxInterfaces), nil)
	}
	i := ngInterface{link: layers.LinkType(g.order.Uint16(b)), snapLen: g.order.Uint32(b[4:]), units: 1e6}
	for b = b[8:]; len(b) >= 4; {
		code, n := g.order.Uint16(b), int(g.order.Uint16(b[2:]))
		padded := 4 + (n+3)&^3
		if code == optionEnd || padded > len(b) {
			break
		}
		value := b[4 : 4+n]
		switch {
		case code == optionResolution && n >= 1:
			units, ok := unitsPerSecond(value[0])
			if !ok {
				return r.fail(fmt.Sprintf("a timestamp resolution of 0x%02x is out of reach", value[0]), nil)
			}
			i.units = units
		case code == optionOffset && n >= 8:
			i.offset = int64(g.order.Uint64(value))
		}
		b = b[padded:]
	}
	g.interfaces = append(g.interfaces, i)
	return nil
}

// unitsPerSecond interprets if_tsresol: a negative power of ten, or of two if
// the highest bit is set.
func unitsPerSecond(res byte) (uint64, bool) {
	if res&0x80 != 0 {
		n := res & 0x7F
		return 1 << n, n < 64
	}
	units := uint64(1)
	for range res {
		if units > 1e18 {
			return 0, false
		}
		units *= 10
	}
	return units, true
}

// packet takes the packet out of an enhanced packet block, or of its obsolete
// predecessor; they differ in how wide the interface's number is.
func (g *ng) packet(r *Reader, p *Packet, b []byte, width int) error {
	if len(b) < 20 {
		return r.fail("a packet block is too short: the capture is damaged", nil)
	}
	id := g.order.Uint32(b)
	if width == 2 {
		id = uint32(g.order.Uint16(b))
	}
	if int64(id) >= int64(len(g.interfaces)) {
		return r.fail(fmt.Sprintf("a packet names interface %d of %d: the capture is damaged", id, len(g.interfaces)), nil)
	}
	i := &g.interfaces[id]
	stamp := uint64(g.order.Uint32(b[4:]))<<32 | uint64(g.order.Uint32(b[8:]))
	n := g.order.Uint32(b[12:])
	if int64(n) > int64(len(b)-20) || n > maxPacket {
		return r.fail(fmt.Sprintf("a packet of %d bytes in a block of %d: the capture is damaged", n, len(b)), nil)
	}
	p.Time, p.Link, p.Length, p.Data = i.time(stamp), i.link, int(g.order.Uint32(b[16:])), b[20:20+n]
	return nil
}

// simple takes the packet out of a simple packet block, which has no time.
func (g *ng) simple(r *Reader, p *Packet, b []byte) error {
	if len(b) < 4 || len(g.interfaces) == 0 {
		return r.fail("a simple packet block without length or interface: the capture is damaged", nil)
	}
	length := g.order.Uint32(b)
	n := min(int64(length), int64(len(b)-4))
	if snap := g.interfaces[0].snapLen; snap != 0 {
		n = min(n, int64(snap))
	}
	p.Link, p.Length, p.Data = g.interfaces[0].link, int(length), b[4:4+n]
	return nil
}
