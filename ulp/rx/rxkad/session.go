package rxkad

import (
	"encoding/binary"

	"urnic/ulp/rx/rxkad/fcrypt"
	"urnic/ulp/rx/secure"
)

// maxData is the most data of a packet at the levels auth and crypt, whose security header
// has 16 bits for it.
const maxData = 1<<16 - 1

// A sealer is what all connections with one session key have in common.
type sealer struct {
	cipher fcrypt.Cipher
	iv     uint64 // the key itself begins every chain
}

func newSealer(k Key) *sealer {
	return &sealer{cipher: fcrypt.New(k), iv: binary.BigEndian.Uint64(k[:])}
}

// A Session protects the data packets of a connection, in both directions alike. It does
// not change, so goroutines may seal and open side by side.
type Session struct {
	*sealer
	level Level
	mask  uint64 // goes into each checksum, which so belongs to this connection

	// lenient says that packets may come without checksums, as they do in version 1 of
	// the protocol.
	lenient bool
}

// NewSession returns the session of a connection whose session key is known. Clients and
// servers get theirs from a handshake.
func NewSession(k Key, c secure.Conn, l Level) (*Session, error) {
	if l > Crypt {
		return nil, fail(CodeIllegalLevel, "%s; there are clear, auth and crypt", l)
	}
	s := newSession(newSealer(k), c, l)
	return &s, nil
}

func newSession(s *sealer, c secure.Conn, l Level) Session {
	// The chain over the connection's names; the mask is its last block.
	first := uint64(c.Epoch)<<32 | uint64(c.ID&^3)
	chain := first ^ s.cipher.Encrypt(first^s.iv)
	mask := s.cipher.Encrypt(uint64(c.Index) ^ chain)
	return Session{sealer: s, level: l, mask: mask}
}

// Level is the session's level.
func (s *Session) Level() Level { return s.level }

// Overhead is the length of the security header.
func (s *Session) Overhead() int { return s.level.overhead() }

// Multiple is what the length of a body is a multiple of.
func (s *Session) Multiple() int { return s.level.multiple() }

// Least is the length of the shortest body.
func (s *Session) Least() int { return s.level.least() }

// checksum is of what a packet's header says. It is the same for both directions.
func (s *Session) checksum(p secure.Packet) uint16 {
	names := uint64(p.Call)<<32 | uint64(p.Channel&3)<<30 | uint64(p.Seq&(1<<30-1))
	sum := uint16(s.cipher.Encrypt(names^s.mask) >> 16)
	if sum == 0 {
		return 1 // 0 means that there is no checksum
	}
	return sum
}

// header is the first word of a security header: who the packet is, and how much data it
// has.
func header(p secure.Packet, data int) uint32 {
	return (p.Seq^p.Call)<<16 | uint32(data)
}

// Seal implements [secure.Protection]. Padding is overwritten with zeros, so that nothing
// leaves that was in the buffer before.
func (s *Session) Seal(p secure.Packet, body []byte, data int) (uint16, error) {
	overhead := s.level.overhead()
	if data < 0 || data > len(body)-overhead || len(body) < s.level.least() || len(body)%s.level.multiple() != 0 {
		return 0, fail(CodeDataLength, "a body of %d bytes can't hold %d bytes of data at level %s", len(body), data, s.level)
	}
	if s.level != Clear && data > maxData {
		return 0, fail(CodeDataLength, "%d bytes of data, and a packet at level %s holds %d at most", data, s.level, maxData)
	}
	clear(body[overhead+data:])
	s.seal(p, body, data)
	return s.checksum(p), nil
}

func (s *Session) seal(p secure.Packet, body []byte, data int) {
	switch s.level {
	case Clear:
	case Auth:
		binary.BigEndian.PutUint32(body, header(p, data))
		block := binary.BigEndian.Uint64(body)
		binary.BigEndian.PutUint64(body, s.cipher.Encrypt(block))
	case Crypt:
		// The second word is for a checksum that nobody has ever computed.
		binary.BigEndian.PutUint64(body, uint64(header(p, data))<<32)
		_ = s.cipher.EncryptPCBC(s.iv, body) // Seal has checked the length
	}
}

// Open implements [secure.Protection].
func (s *Session) Open(p secure.Packet, checksum uint16, body []byte) ([]byte, error) {
	if sum := s.checksum(p); checksum != sum && (checksum != 0 || !s.lenient) {
		return nil, fail(CodeSealed, "checksum %#04x of call %d, packet %d should be %#04x", checksum, p.Call, p.Seq, sum)
	}
	if s.level == Clear {
		return body, nil
	}
	if len(body) < s.level.least() {
		return nil, fail(CodePacketShort, "a body of %d bytes at level %s", len(body), s.level)
	}
	if s.level == Auth {
		block := binary.BigEndian.Uint64(body)
		binary.BigEndian.PutUint64(body, s.cipher.Decrypt(block))
	} else if err := s.cipher.DecryptPCBC(s.iv, body); err != nil {
		return nil, &Error{CodeDataLength, err}
	}

	word := binary.BigEndian.Uint32(body)
	if (word^header(p, 0))>>16 != 0 {
		return nil, fail(CodeSealed, "the security header of call %d, packet %d belongs to another packet", p.Call, p.Seq)
	}
	data, room := int(word&maxData), body[s.level.overhead():]
	if data > len(room) {
		return nil, fail(CodeDataLength, "%d bytes of data in a body of %d", data, len(body))
	}
	return room[:data], nil
}
