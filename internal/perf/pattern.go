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
	return fmt.Sprintf("the data are damaged: octet %d of a message of queue pair %d arrived as 0x%02x and was sent as 0x%02x", e.Offset, e.QP, e.Got, e.Want)
}

// fill writes the pattern of a seed: no eight octets of it are like those of
// another place or seed, so that what is stale or misplaced shows.
func fill(b []byte, seed uint64) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, mix(&seed))
		b = b[8:]
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], mix(&seed))
	copy(b, last[:])
}

// compare checks that b holds the pattern of a seed.
func compare(b []byte, seed uint64, qp int) error {
	var want [8]byte
	for off := 0; off < len(b); off += 8 {
		binary.LittleEndian.PutUint64(want[:], mix(&seed))
		if off+8 <= len(b) && binary.LittleEndian.Uint64(b[off:]) == binary.LittleEndian.Uint64(want[:]) {
			continue
		}
		for i := off; i < min(off+8, len(b)); i++ {
			if b[i] != want[i-off] {
				return &MismatchError{QP: qp, Offset: i, Want: want[i-off], Got: b[i]}
			}
		}
	}
	return nil
}

// mix is the generator splitmix64.
func mix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
