package rpc

import (
	"encoding/binary"
	"fmt"
)

// words appends integers of 32 bits.
func words(b []byte, of ...uint32) []byte {
	for _, w := range of {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// hyper appends an integer of 64 bits.
func hyper(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// Opaque appends variable-length opaque data with their roundup (RFC 4506 §4.10).
func Opaque(b, data []byte) []byte {
	b = append(words(b, uint32(len(data))), data...)
	return append(b, make([]byte, Roundup(len(data)))...)
}

// Roundup returns how many bytes of padding stand behind n bytes of opaque data.
func Roundup(n int) int { return -n & 3 }

// A decoder takes XDR apart. Once something was wrong, it returns zeros.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrXDR, fmt.Sprintf(format, args...))
	}
	d.rest = nil
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.fail("%d octets where %d should be", len(d.rest), n)
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) word() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// more takes the word that says whether something optional is there: 0 or 1.
func (d *decoder) more(what string) bool {
	v := d.word()
	if v > 1 {
		d.fail("%s: %d where 0 or 1 says whether it goes on", what, v)
	}
	return v == 1 && d.err == nil
}

func (d *decoder) opaque(most int) []byte {
	n := d.word()
	if uint64(n) > uint64(most) {
		d.fail("%d octets where %d are allowed", n, most)
		return nil
	}
	b := d.take(int(n))
	for _, pad := range d.take(Roundup(len(b))) {
		if pad != 0 {
			d.fail("roundup of %d", pad)
			return nil
		}
	}
	return b
}
