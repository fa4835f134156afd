package perf

import (
	"encoding/binary"
	"fmt"
)

// A MismatchError says that what arrived is not what was sent.
type MismatchError struct {
	QP, Offset int
	Want, Got  byte
}

// Error says where the two differ first.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("the data are damaged: byte %d of a message of queue pair %d arrived as 0x%02x and was sent as 0x%02x", e.Offset, e.QP, e.Got, e.Want)
}

// A MissingError says that a message left nothing where it had to arrive.
type MissingError struct {
	QP      int
	Message uint64 // from 0 on
	Came    uint64 // messages that were found
	Of      uint64 // messages that had been sent
}

// Error says which message it was, and how many were found.
func (e *MissingError) Error() string {
	return fmt.Sprintf("the data are damaged: message %d of queue pair %d did not arrive, and %d of %d were found so far", e.Message+1, e.QP, e.Came, e.Of)
}

// variants is how many contents messages have. It is a prime, so that messages in the
// same place, which are a power of two apart, differ, and below 256, so that all of them
// differ in their first byte.
const variants = 251

// variant returns the content of message n of a queue pair: it begins with that word of
// the pattern. Where messages lie a word apart, the one before has left there the word
// behind its own first one, and variant does not go from one word to the next.
func variant(n uint64) int { return int(n * 37 % variants) }

// wordAt returns a word of the pattern of a seed: no word is like another one of the same
// or of another seed but by chance, and neighbours differ in their first byte.
func wordAt(seed uint64, i int) (w [wordLen]byte) {
	state := seed + uint64(i)*splitmix
	binary.LittleEndian.PutUint64(w[:], mix(&state))
	w[0] = byte(seed) + byte(i%variants)
	return w
}

// wordLen is how many bytes a word of the pattern has.
const wordLen = 8

// fill writes the pattern of a seed.
func fill(b []byte, seed uint64) {
	for i := 0; len(b) > 0; i++ {
		w := wordAt(seed, i)
		b = b[copy(b, w[:]):]
	}
}

// begins reports whether b is where a message of some content has arrived.
func begins(b []byte, seed uint64, variant int) bool {
	w := wordAt(seed, variant)
	n := min(len(b), wordLen)
	return string(b[:n]) == string(w[:n])
}

// compare checks that b holds the message of some content.
func compare(b []byte, seed uint64, variant, qp int) error {
	for off := 0; off < len(b); off += wordLen {
		want := wordAt(seed, variant+off/wordLen)
		for i := off; i < min(off+wordLen, len(b)); i++ {
			if b[i] != want[i-off] {
				return &MismatchError{QP: qp, Offset: i, Want: want[i-off], Got: b[i]}
			}
		}
	}
	return nil
}

// splitmix is by how much the state of the generator grows.
const splitmix = 0x9e3779b97f4a7c15

// mix is the generator splitmix64.
func mix(state *uint64) uint64 {
	*state += splitmix
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
