package afs

import (
	"encoding/hex"
	"errors"
	"strings"

	"urnic/ulp/rx/rpc"
)

// UUIDLen is the length of an encoded UUID.
const UUIDLen = 44

// A UUID identifies a file server or a cache manager, whatever addresses it has. The bytes
// are in the order in which they are written down (RFC 9562 §4).
type UUID [16]byte

var errUUID = errors.New("afs: a UUID is 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12")

// ParseUUID returns the UUID that String has written. OpenAFS separates the last two groups
// of its own form (8-4-4-2-2-12) by a hyphen; that is accepted, too.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	p, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(p) != len(u) {
		return u, errUUID
	}
	copy(u[:], p)
	return u, nil
}

// IsZero reports whether u is the nil UUID.
func (u UUID) IsZero() bool { return u == UUID{} }

// String returns the usual form.
func (u UUID) String() string {
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// XDR encodes or decodes u: its numbers of 32, 16 and 16 bits, then eight characters, each of
// them in four bytes.
func (u *UUID) XDR(x *rpc.XDR) {
	low := uint32(u[0])<<24 | uint32(u[1])<<16 | uint32(u[2])<<8 | uint32(u[3])
	mid, high := uint16(u[4])<<8|uint16(u[5]), uint16(u[6])<<8|uint16(u[7])
	x.Uint32(&low)
	x.Uint16(&mid)
	x.Uint16(&high)
	if x.Decoding() {
		*u = UUID{byte(low >> 24), byte(low >> 16), byte(low >> 8), byte(low), byte(mid >> 8), byte(mid), byte(high >> 8), byte(high)}
	}
	for i := 8; i < len(u); i++ {
		c := int8(u[i])
		x.Char(&c)
		if x.Decoding() {
			u[i] = byte(c)
		}
	}
}
