package wire

import "encoding/binary"

// Packets iterates over the packets of one data datagram; see SplitData.
type Packets struct {
	h     Header
	rest  []byte
	n     int // packets returned
	done  bool
	plain bool
	err   error
}

// SplitData returns an iterator over the packets of a datagram with the header h of type
// TypeData. A jumbogram has several (draft §7): a body of JumboBody bytes, then for each
// further packet a short header and its body. Any other datagram has one.
//
// A datagram with FlagJumbo that is too short for two packets is one packet, as with
// OpenAFS; Linux refuses it.
func SplitData(h Header, body []byte) Packets {
	plain := h.Flags&FlagJumbo == 0 || h.Type != TypeData || len(body) < JumboBody+JumboHeaderLen
	return Packets{h: h, rest: body, plain: plain}
}

// Next returns the next packet, with the header that it would have alone. The sequence and
// serial numbers rise by one; flags and checksum come from the short header; the user
// status of all but the first is 0. All packets have the direction of the datagram,
// whatever FlagClient says in a short header. The body aliases the datagram.
func (p *Packets) Next() (h Header, body []byte, ok bool) {
	if p.done {
		return Header{}, nil, false
	}
	h, body = p.h, p.rest
	switch {
	case p.plain || h.Flags&FlagJumbo == 0:
		p.done = true
	case len(body) < JumboBody+JumboHeaderLen:
		p.err = &JumboError{Packet: p.n + 1, Have: len(body), Want: JumboBody + JumboHeaderLen}
		p.done = true
		return Header{}, nil, false
	default:
		short := body[JumboBody:]
		body = body[:JumboBody:JumboBody]
		p.h.Seq++
		p.h.Serial++
		p.h.UserStatus = 0
		p.h.Flags = Flags(short[0]) // short[1] is reserved
		p.h.Checksum = binary.BigEndian.Uint16(short[2:])
		p.rest = short[JumboHeaderLen:]
	}
	p.n++
	return h, body, true
}

// Err returns a *JumboError if the datagram ends inside one of its packets. The packets
// that Next has returned are whole.
func (p *Packets) Err() error { return p.err }

// AppendJumboHeader appends to b the short header of the next packet of a jumbogram.
func AppendJumboHeader(b []byte, flags Flags, checksum uint16) []byte {
	b = append(b, byte(flags), 0)
	return binary.BigEndian.AppendUint16(b, checksum)
}
