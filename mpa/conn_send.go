package mpa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"urnic/internal/host/memfault"
)

const (
	gatherMin = 4 << 10 // bytes of payload from which on it gets its own piece

	measureEvery = 64 // flushes between two looks at the segment size
)

// Post adds one ULPDU, a header and its payload, to what Flush sends. It returns
// false, and accepts nothing, while there is no space for it: Flush frees some. Post
// copies the header. Payload is stable if nothing changes it until Flush has returned;
// it may be sent without a copy. Other payload is copied.
//
// A ULPDU longer than MaxMULPDU is an error (RFC 5044 §3). So is payload that can't be
// read: a *memfault.Error says that nothing was accepted and the connection can
// continue.
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
	if c.out.lost != nil || !c.out.fits(copied, pieces, total) {
		return false, nil
	}
	var err error
	if gather {
		err = c.gather(header, payload, length)
	} else {
		err = c.copyIn(header, payload)
	}
	if err != nil {
		c.out.done()
		return false, err
	}
	c.out.posted += uint64(total)
	if c.recorder != nil {
		last := c.out.pieces[len(c.out.pieces)-1]
		c.out.fpdus = append(c.out.fpdus, last[len(last)-total:])
	}
	return true, nil
}

// copyIn builds the FPDU in the arena.
func (c *Conn) copyIn(header []byte, payload [][]byte) (err error) {
	b, before := c.out.room(), c.framer
	if memfault.Guarded() {
		b, err = c.frameGuarded(b, header, payload)
	} else {
		b, err = c.frame(b, header, payload)
	}
	if err != nil {
		c.framer = before
		return err
	}
	c.out.commit(b)
	return nil
}

// frame appends the FPDU to b.
func (c *Conn) frame(b, header []byte, payload [][]byte) ([]byte, error) {
	if len(payload) == 1 {
		return c.framer.AppendFPDU(b, header, payload[0])
	}
	pieces := make([][]byte, 0, 8)
	return c.framer.AppendFPDU(b, append(append(pieces, header), payload...)...)
}

func (c *Conn) frameGuarded(b, header []byte, payload [][]byte) (_ []byte, err error) {
	defer memfault.End(memfault.Begin(), &err)
	return c.frame(b, header, payload)
}

// gather refers to the payload without a copy.
func (c *Conn) gather(header []byte, payload [][]byte, length int) error {
	b := binary.BigEndian.AppendUint16(c.out.room(), uint16(length))
	b = append(b, header...)
	crc, err := c.sum(b, payload)
	if err != nil {
		return err
	}
	c.out.commit(b)
	for _, p := range payload {
		if len(p) > 0 {
			c.out.refer(p)
		}
	}
	b = append(c.out.room(), zeroPad[:padLen(length)]...)
	if c.framer.CRC {
		crc = UpdateCRC(crc, b)
	}
	c.out.commit(appendCRC(b, crc))
	return nil
}

// sum returns the CRC of what precedes the pad of an FPDU. Without CRC, it only makes
// sure that the payload can be read.
func (c *Conn) sum(b []byte, payload [][]byte) (crc uint32, err error) {
	if !c.framer.CRC {
		for _, p := range payload {
			if err := memfault.Touch(p); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
	crc = UpdateCRC(0, b)
	err = memfault.Do(func() {
		for _, p := range payload {
			crc = UpdateCRC(crc, p)
		}
	})
	return crc, err
}

// Posted returns how many bytes Post has accepted since the beginning.
func (c *Conn) Posted() uint64 { return c.out.posted }

// Accepted returns how many of the posted bytes the stream has accepted. They
// are transferred reliably, or the connection fails (RFC 5041 §3 rule 3).
func (c *Conn) Accepted() uint64 { return c.out.accepted }

// Flush sends what was posted to the stream, and reports whether all of it is
// sent. Without wait, it stops when the stream is full; with wait, it then
// waits until it can send at least something. When it returns, the Conn refers
// to no memory of the ULP any more: it has copied what is left of stable
// payload. A ULP should flush without wait first, to get its memory back soon.
//
// A Responder holds everything back until it has received the Initiator's
// first FPDU (RFC 5044 §7.1.2 rule 4), an Initiator for the time of
// Config.Settle.
//
// If payload can no longer be read, Flush sends what precedes it, and returns a
// *MemoryError from then on.
func (c *Conn) Flush(wait bool) (bool, error) {
	if c.out.octets == 0 {
		return c.out.end()
	}
	defer c.out.settle()
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
		if fault, ok := errors.AsType[*memfault.Error](err); ok && c.out.cutFault(fault) {
			continue
		}
		if err != nil {
			return false, c.failure(err)
		}
		if n == 0 {
			return false, nil
		}
	}
	return c.out.end()
}

// record records what is about to be sent to the stream. If it did so
// afterwards, the peer's answer could be recorded first.
func (c *Conn) record() {
	for i, fpdu := range c.out.fpdus {
		c.recorder.Sent(fpdu)
		c.out.fpdus[i] = nil
	}
	c.out.fpdus = c.out.fpdus[:0]
}
