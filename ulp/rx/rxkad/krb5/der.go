package krb5

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Tags of DER. Kerberos wraps each field of a sequence into a context tag with the
// field's number.
const (
	tagInteger         = 0x02
	tagBitString       = 0x03
	tagOctetString     = 0x04
	tagGeneralizedTime = 0x18
	tagGeneralString   = 0x1b
	tagSequence        = 0x30
	tagApplication     = 0x60
	tagContext         = 0xa0
)

// ErrSyntax says that bytes are not the structure that they should be.
var ErrSyntax = errors.New("krb5: not in the form that Kerberos gives it")

func syntax(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrSyntax, fmt.Sprintf(format, a...))
}

// A der is a row of DER elements that are yet to be read.
type der []byte

// next takes the first element.
func (d *der) next() (tag byte, body der, err error) {
	b := *d
	if len(b) < 2 {
		return 0, nil, syntax("an element is cut short")
	}
	tag, n, head := b[0], int(b[1]), 2
	if tag&0x1f == 0x1f {
		return 0, nil, syntax("a tag beyond 30")
	}
	if n >= 0x80 {
		// A length is in the shortest form (X.690 §10.1), and 3 bytes of it are far
		// more than any ticket has.
		bytes := n & 0x7f
		if bytes == 0 || bytes > 3 || len(b) < head+bytes || b[head] == 0 {
			return 0, nil, syntax("a bad length")
		}
		n = 0
		for _, c := range b[head : head+bytes] {
			n = n<<8 | int(c)
		}
		if n < 0x80 {
			return 0, nil, syntax("a bad length")
		}
		head += bytes
	}
	if n > len(b)-head {
		return 0, nil, syntax("an element of %d bytes, with %d there", n, len(b)-head)
	}
	*d = b[head+n:]
	return tag, b[head : head+n : head+n], nil
}

// expect takes the first element, which has a certain tag.
func (d *der) expect(tag byte) (der, error) {
	got, body, err := d.next()
	if err != nil {
		return nil, err
	}
	if got != tag {
		return nil, syntax("tag %#02x instead of %#02x", got, tag)
	}
	return body, nil
}

// only takes the element that is all there is.
func (d der) only(tag byte) (der, error) {
	body, err := d.expect(tag)
	if err == nil && len(d) > 0 {
		err = syntax("%d bytes too many", len(d))
	}
	return body, err
}

// field takes a field of a sequence, whose content is one element with a tag.
func (d *der) field(number, tag byte) (der, error) {
	body, err := d.expect(tagContext | number)
	if err != nil {
		return nil, err
	}
	return body.only(tag)
}

// optional is field for one that may not be there.
func (d *der) optional(number, tag byte) (body der, there bool, err error) {
	if len(*d) == 0 || (*d)[0] != tagContext|number {
		return nil, false, nil
	}
	body, err = d.field(number, tag)
	return body, err == nil, err
}

// integer reads the body of an INTEGER. It takes what fits into 32 bits, with or without
// a sign: key versions above 2³¹ come in both forms.
func (d der) integer() (int64, error) {
	if len(d) == 0 || len(d) > 5 {
		return 0, syntax("an integer of %d bytes", len(d))
	}
	n := int64(int8(d[0]))
	for _, b := range d[1:] {
		n = n<<8 | int64(b)
	}
	if n < math.MinInt32 || n > math.MaxUint32 {
		return 0, syntax("the integer %d", n)
	}
	return n, nil
}

// int32 is integer for a number with a sign.
func (d der) int32() (int32, error) {
	n, err := d.integer()
	if err == nil && n > math.MaxInt32 {
		err = syntax("the integer %d", n)
	}
	return int32(n), err
}

// kerberosTime is the only form that Kerberos has of a time (RFC 4120 §5.2.3).
const kerberosTime = "20060102150405Z"

func (d der) time() (time.Time, error) {
	t, err := time.Parse(kerberosTime, string(d))
	if err != nil || len(d) != len(kerberosTime) {
		return time.Time{}, syntax("the time %q", string(d))
	}
	return t, nil
}

// element puts the tag and the length in front of a body.
func element(tag byte, body ...[]byte) []byte {
	n := 0
	for _, b := range body {
		n += len(b)
	}
	out := make([]byte, 0, n+5)
	out = append(out, tag)
	switch {
	case n < 0x80:
		out = append(out, byte(n))
	case n <= 0xff:
		out = append(out, 0x81, byte(n))
	case n <= 0xffff:
		out = append(out, 0x82, byte(n>>8), byte(n))
	default:
		out = append(out, 0x83, byte(n>>16), byte(n>>8), byte(n))
	}
	for _, b := range body {
		out = append(out, b...)
	}
	return out
}

func field(number byte, body []byte) []byte { return element(tagContext|number, body) }

func integer(n int64) []byte {
	var body []byte
	for shift := 32; shift >= 0; shift -= 8 {
		// The first nine bits are not all the same (X.690 §8.3.2).
		if len(body) == 0 && shift > 0 {
			if rest := n >> (shift - 1); rest == 0 || rest == -1 {
				continue
			}
		}
		body = append(body, byte(n>>shift))
	}
	return element(tagInteger, body)
}

func generalizedTime(t time.Time) []byte {
	return element(tagGeneralizedTime, []byte(t.UTC().Format(kerberosTime)))
}

func generalString(s string) []byte { return element(tagGeneralString, []byte(s)) }
