package rxkad

import (
	"slices"

	"urnic/ulp/rx/secure"
)

// SealAsItIs is Seal, but what is in the padding stays there.
func (s *Session) SealAsItIs(p secure.Packet, body []byte, data int) uint16 {
	s.seal(p, body, data)
	return s.checksum(p)
}

// FirstStrong is how a key is chosen among candidates.
var FirstStrong = firstStrong

// Weak reports whether a key is weak.
func (k Key) Weak() bool { return k.weak() }

// Odd is k with odd parity.
func (k Key) Odd() Key { return k.odd() }

// WithoutParity shortens triple DES keys.
var WithoutParity = withoutParity

// Lifetimes are those of old tickets from 128 on.
var Lifetimes = lifetimes

// EndOf and LifetimeOf translate lifetimes of old tickets.
var (
	EndOf      = endOf
	LifetimeOf = lifetimeOf
)

// OpenTicket opens a ticket.
func (k *Keyring) OpenTicket(version uint32, ticket []byte) (Contents, uint32, error) {
	return k.open(version, ticket)
}

// EncryptOld encrypts what is to be an old ticket.
func EncryptOld(k Key, b []byte) []byte {
	b = append(b, make([]byte, roundUp(len(b))-len(b))...)
	if err := desPCBC(k, b, true); err != nil {
		panic(err)
	}
	return b
}

// ResponseChecksum is the checksum of a response's head.
var ResponseChecksum = responseChecksum

// Reseal changes what is encrypted of a response of version 2. change sees the head, all but
// the ticket.
func (s *Session) Reseal(b []byte, change func(head []byte)) []byte {
	b = slices.Clone(b)
	sealed := b[sealedStart : sealedStart+sealedLength]
	_ = s.cipher.DecryptPCBC(s.iv, sealed) // whole blocks
	change(b[:responseHead])
	_ = s.cipher.EncryptPCBC(s.iv, sealed)
	return b
}
