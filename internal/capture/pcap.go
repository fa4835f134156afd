package capture

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// The magic numbers of classic pcap files.
const (
	magicMicros = 0xA1B2C3D4
	magicNanos  = 0xA1B23C4D
)

// A classic is the format of tcpdump's files: a header of 24 bytes, and one of
// 16 before each packet.
type classic struct {
	order binary.ByteOrder
	unit  time.Duration // of the fraction of a second
	link  layers.LinkType
}

func newClassic(r *Reader) (*classic, error) {
	h, err := r.take(24)
	if err != nil {
		return nil, err
	}
	c := &classic{}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(h) {
		case magicMicros:
			c.order, c.unit = order, time.Microsecond
		case magicNanos:
			c.order, c.unit = order, time.Nanosecond
		}
	}
	if c.order == nil {
		r.offset = 0
		return nil, r.fail(fmt.Sprintf("no capture: it begins with %x; give a pcap or pcapng file", h[:4]), nil)
	}
	if major := c.order.Uint16(h[4:]); major != 2 {
		return nil, r.fail(fmt.Sprintf("pcap version %d is unknown", major), nil)
	}
	c.link = layers.LinkType(c.order.Uint32(h[20:])) // the high half reports frame check sequences
	return c, nil
}

func (c *classic) next(r *Reader, p *Packet) error {
	h, err := r.start(16)
	if err != nil {
		return err
	}
	sec, frac := c.order.Uint32(h), c.order.Uint32(h[4:])
	n, length := c.order.Uint32(h[8:]), c.order.Uint32(h[12:])
	if n > maxPacket {
		return r.fail(fmt.Sprintf("a packet of %d bytes: the capture is damaged", n), nil)
	}
	p.Time = time.Unix(int64(sec), int64(frac)*int64(c.unit)).UTC()
	p.Link = c.link
	p.Length = int(length)
	p.Data, err = r.take(int(n))
	return err
}
