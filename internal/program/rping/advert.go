package rping

import (
	"encoding/binary"
	"fmt"

	"urnic/internal/host/plural"
	"urnic/rnic"
	"urnic/stag"
)

// advertLen is the length of an advertisement in bytes.
const advertLen = 16

// An advert tells the peer of a buffer. It goes over the wire in network byte
// order.
type advert struct {
	remote rnic.Remote
	size   uint32
}

func (a advert) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, a.remote.TO)
	b = binary.BigEndian.AppendUint32(b, uint32(a.remote.STag))
	return binary.BigEndian.AppendUint32(b, a.size)
}

func parseAdvert(b []byte) (advert, error) {
	if len(b) != advertLen {
		return advert{}, fmt.Errorf("rping: a message of %s came; the peer's program is not rping, whose messages have %d", plural.Count(len(b), "byte"), advertLen)
	}
	return advert{
		remote: rnic.Remote{TO: binary.BigEndian.Uint64(b), STag: stag.STag(binary.BigEndian.Uint32(b[8:]))},
		size:   binary.BigEndian.Uint32(b[12:]),
	}, nil
}
