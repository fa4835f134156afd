package mpa

import (
	"encoding/binary"
	"fmt"
	"net"
)

const (
	gatherMin = 4 << 10 // octets of payload that are worth a piece of their own

	measureEvery = 64 // flushes between two looks at the segment size
)

// Post adds one ULPDU, a header and its payload, to what Flush hands over. It
// returns false, and takes nothing, while there is no room for it: Flush makes
// some. The header is copied. Payload that is stable, that is, not changed by
// anybody until Flush has returned, may be sent from where it lies; other
// payload is copied.
//
// A ULPDU longer than MaxMULPDU is an error (RFC 5044 §3).
func (c *Conn) Post(header []byte, payload [][]byte, stable bool) (bool, error) {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	length := len(header) + n
	if length > MaxMULPDU {
		return false, &Error{
			Code: CodeLocalCatastrophic, Clause: "RFC 5044 §3",
			Reason: fmt.Sprintf("a ULPDU of %d octets was posted; at most %d are allowed", length, MaxMULPDU),
		}
	}
	gather := stable && n >= gatherMin && !c.framer.Markers && c.recorder == nil
	total, pieces := c.framer.FPDULen(length), 1
	copied := total
	if gather {
		copied, pieces = total-n, len(payload)+2
	}
	if !c.out.fits(copied, pieces, total) {
		return false, nil
	}
	if gather {
		c.gather(header, payload, length)
	} else {
		c.copyIn(header, payload)
	}
	c.out.posted += uint64(total)
	if c.recorder != nil {
		last := c.out.pieces[len(c.out.pieces)-1]
		c.out.fpdus = append(c.out.fpdus, last[len(last)-total:])
	}
	return true, nil
}

// copyIn makes the FPDU in the arena.
func (c *Conn) copyIn(header []byte, payload [][]byte) {
	b := c.out.room()
	if len(payload) == 1 {
		b, _ = c.framer.AppendFPDU(b, header, payload[0]) // its length is checked
	} else {
		pieces := make([][]byte, 0, 8)
		b, _ = c.framer.AppendFPDU(b, append(append(pieces, header), payload...)...)
	}
	c.out.commit(b)
}

// gather leaves the payload where it lies.
func (c *Conn) gather(header []byte, payload [][]byte, length int) {
	b := binary.BigEndian.AppendUint16(c.out.room(), uint16(length))
	b = append(b, header...)
	crc := c.framer.checksum(b)
	c.out.commit(b)
	for _, p := range payload {
		if len(p) > 0 {
			c.out.refer(p)
			if c.framer.CRC {
				crc = UpdateCRC(crc, p)
			}
		}
	}
	b = append(c.out.room(), zeroPad[:padLen(length)]...)
	if c.framer.CRC {
		crc = UpdateCRC(crc, b)
	}
	c.out.commit(appendCRC(b, crc))
}

// Posted returns how many octets Post has taken since the beginning.
func (c *Conn) Posted() uint64 { return c.out.posted }

// Accepted returns how many of the octets posted the stream has taken. Those
// are transferred reliably, or the connection fails (RFC 5041 §3 rule 3).
func (c *Conn) Accepted() uint64 { return c.out.accepted }

// Flush hands what was posted to the stream and reports whether all of it is
// out. Without wait it stops when the stream is full; with wait, it waits then
// until it can do at least something. When it returns, the Conn refers to no
// memory of the ULP any more: what is left of stable payload was copied. So that
// the ULP gets its memory back soon, it flushes without wait first.
//
// A Responder holds everything back until it has received the Initiator's
// first FPDU (RFC 5044 §7.1.2 rule 4), an Initiator for the time of
// Config.Settle.
func (c *Conn) Flush(wait bool) (bool, error) {
	if c.out.octets == 0 {
		return true, nil
	}
	defer c.out.keep()
	if !c.MaySend() {
		if !wait {
			return false, nil
		}
		select {
		case <-c.opened:
		case <-c.done:
			return false, c.failure(net.ErrClosed)
		}
	}
	if c.out.flushes++; c.out.flushes%measureEvery == 0 {
		c.measure()
	}
	c.record()
	for c.out.octets > 0 {
		n, err := c.stream.Writev(c.out.pieces[c.out.written:], wait)
		wait = false // something is done
		c.out.wrote(n)
		if err != nil {
			return false, c.failure(err)
		}
		if n == 0 {
			return false, nil
		}
	}
	c.out.done()
	return true, nil
}

// record records what the stream is about to be given. Afterwards the peer's
// answer could be recorded first.
func (c *Conn) record() {
	for i, fpdu := range c.out.fpdus {
		c.recorder.Sent(fpdu)
		c.out.fpdus[i] = nil
	}
	c.out.fpdus = c.out.fpdus[:0]
}
