package rxkad

import "encoding/binary"

// A Challenge is what a server asks an unknown client.
//
//	version 2:  2 | nonce | least level | 0
//	version 1:      nonce | least level
type Challenge struct {
	Version int // of the protocol
	Nonce   uint32
	Level   Level // the least that the server wants
}

const (
	challengeLength  = 16
	challengeLength1 = 8
)

// ParseChallenge reads the body of a challenge packet. The error is an [*Error].
func ParseChallenge(b []byte) (Challenge, error) {
	if len(b) == challengeLength1 {
		return Challenge{
			Version: 1,
			Nonce:   binary.BigEndian.Uint32(b),
			Level:   Level(binary.BigEndian.Uint32(b[4:])),
		}, nil
	}
	if len(b) < challengeLength {
		return Challenge{}, fail(CodePacketShort, "a challenge of %d bytes", len(b))
	}
	if v := binary.BigEndian.Uint32(b); v != 2 {
		return Challenge{}, fail(CodeInconsistency, "a challenge of version %d; there are 1 and 2", v)
	}
	return Challenge{
		Version: 2,
		Nonce:   binary.BigEndian.Uint32(b[4:]),
		Level:   Level(binary.BigEndian.Uint32(b[8:])),
	}, nil
}

// Append appends the body of a challenge packet to b.
func (c Challenge) Append(b []byte) []byte {
	if c.Version != 1 {
		b = binary.BigEndian.AppendUint32(b, 2)
	}
	b = binary.BigEndian.AppendUint32(b, c.Nonce)
	b = binary.BigEndian.AppendUint32(b, uint32(c.Level))
	if c.Version != 1 {
		b = binary.BigEndian.AppendUint32(b, 0)
	}
	return b
}
