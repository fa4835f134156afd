package rxkad

import (
	"encoding/binary"
	"math"

	"urnic/ulp/rx/secure"
)

// A response proves that the client knows the session key in its ticket.
//
//	version 2:  2 | 0 |
//	            encrypted: epoch | connection | checksum | security index |
//	                       four call numbers | nonce + 1 | level      (40 bytes)
//	            | ticket's version | ticket's length | ticket
//	version 1:  encrypted: nonce + 1 | level                           (8 bytes)
//	            | ticket's version | ticket's length | ticket
type response struct {
	version int
	calls   secure.Calls // version 2 only
	nonce   uint32       // of the challenge, and 1 more
	level   Level
	ticket  Ticket // without its session key
}

const (
	responseHead  = 8 + sealedLength + 8 // all but the ticket
	responseHead1 = sealedLength1 + 8
	sealedStart   = 8
	sealedLength  = 40
	sealedLength1 = 8
	checksumField = sealedStart + 8
)

// append appends the body of a response packet to b.
func (r *response) append(b []byte, s *sealer, c secure.Conn) []byte {
	start := len(b)
	if r.version == 1 {
		sealed := s.cipher.Encrypt(uint64(r.nonce)<<32 | uint64(r.level))
		b = binary.BigEndian.AppendUint64(b, sealed)
	} else {
		for _, word := range [12]uint32{
			2, 0,
			c.Epoch, c.ID &^ 3, 0, uint32(c.Index),
			r.calls[0], r.calls[1], r.calls[2], r.calls[3],
			r.nonce, uint32(r.level),
		} {
			b = binary.BigEndian.AppendUint32(b, word)
		}
	}
	b = binary.BigEndian.AppendUint32(b, r.ticket.Version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.ticket.Data)))
	if r.version != 1 {
		head := b[start:]
		binary.BigEndian.PutUint32(head[checksumField:], responseChecksum(head))
		_ = s.cipher.EncryptPCBC(s.iv, head[sealedStart:sealedStart+sealedLength]) // whole blocks
	}
	return append(b, r.ticket.Data...)
}

// responseChecksum is of all but the ticket, unencrypted, and with zero for itself.
func responseChecksum(head []byte) uint32 {
	sum := uint32(1000003)
	for i, b := range head {
		if i >= checksumField && i < checksumField+4 {
			b = 0
		}
		sum = sum*0x10204081 + uint32(b)
	}
	return sum
}

// parseResponse reads what is not encrypted. The ticket aliases b.
func parseResponse(version int, b []byte) (*response, error) {
	head := responseHead
	if version == 1 {
		head = responseHead1
	}
	if len(b) < head {
		return nil, fail(CodePacketShort, "a response of %d bytes", len(b))
	}
	r := &response{version: version}
	r.ticket.Version = binary.BigEndian.Uint32(b[head-8:])
	length, rest := binary.BigEndian.Uint32(b[head-4:]), b[head:]
	if length < minTicket || length > maxTicket {
		return nil, fail(CodeTicketLength, "a ticket of %d bytes: they have from %d to %d", length, minTicket, maxTicket)
	}
	// Version 2 may be padded.
	if int(length) > len(rest) || version == 1 && int(length) < len(rest) {
		return nil, fail(CodePacketShort, "a ticket of %d bytes, and %d are there", length, len(rest))
	}
	r.ticket.Data = rest[:length]
	return r, nil
}

// open decrypts the rest with the session key of the ticket.
func (r *response) open(b []byte, s *sealer, c secure.Conn) error {
	if r.version == 1 {
		sealed := s.cipher.Decrypt(binary.BigEndian.Uint64(b))
		r.nonce, r.level = uint32(sealed>>32), Level(uint32(sealed))
		return nil
	}
	head := [responseHead]byte(b)
	sealed := head[sealedStart : sealedStart+sealedLength]
	_ = s.cipher.DecryptPCBC(s.iv, sealed) // whole blocks
	word := func(i int) uint32 { return binary.BigEndian.Uint32(sealed[4*i:]) }
	if word(2) != responseChecksum(head[:]) {
		return fail(CodeSealed, "the response's checksum is wrong")
	}
	if word(0) != c.Epoch || word(1) != c.ID&^3 || word(3) != uint32(c.Index) {
		return fail(CodeSealed, "the response is for connection %08x/%08x with security index %d", word(0), word(1), word(3))
	}
	for i := range r.calls {
		if r.calls[i] = word(4 + i); r.calls[i] > math.MaxInt32 {
			return fail(CodeSealed, "the response has the call number %d", r.calls[i])
		}
	}
	r.nonce, r.level = word(8), Level(word(9))
	return nil
}
