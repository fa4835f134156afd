package rxkad

import (
	"bytes"
	"crypto/des"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

// The last byte of the first field tells the order of bytes of the numbers.
const flagLittleEndian = 1

// oldLength is a length that old tickets may have whatever they hold.
const oldLength = 56

var errOldForm = errors.New("it does not have the form of a ticket: another key, or a changed ticket")

// openOldTicket decrypts and reads an old ticket.
func openOldTicket(k Key, ticket []byte) (c Contents, err error) {
	if len(ticket)%des.BlockSize != 0 {
		return c, fail(CodeBadTicket, "an old ticket of %d bytes", len(ticket))
	}
	plain := bytes.Clone(ticket)
	if err := desPCBC(k, plain, false); err != nil {
		return c, &Error{CodeBadKey, err}
	}
	return parseOldTicket(plain)
}

// parseOldTicket reads an old ticket:
//
//	flags           1
//	name            with a zero byte behind it, as the two that follow
//	instance
//	realm
//	host            4   the client's IPv4 address
//	session key     8
//	lifetime        1
//	start           4   seconds since 1970
//	service         with a zero byte behind it, as its instance
//	instance
//	zeros           up to a multiple of 8
func parseOldTicket(b []byte) (c Contents, err error) {
	r := fields{b: b}
	var order binary.ByteOrder = binary.BigEndian
	if r.take(1)[0]&flagLittleEndian != 0 {
		order = binary.LittleEndian
	}
	c.Name = r.name()
	c.Instance = r.name()
	c.Realm = r.name()
	c.Host = order.Uint32(r.take(4))
	c.SessionKey = Key(r.take(8))
	lifetime := r.take(1)[0]
	start := order.Uint32(r.take(4))
	c.Service = r.name()
	c.ServiceInstance = r.name()

	length := roundUp(len(b) - len(r.b))
	if r.bad || c.Name == "" || c.Service == "" || length != len(b) && len(b) != oldLength {
		return Contents{}, &Error{CodeBadTicket, errOldForm}
	}
	if start != 0 {
		c.Start = fromSeconds(start)
	}
	c.End = endOf(start, lifetime)
	return c, nil
}

// fields reads the parts of an old ticket. When one is not there, bad is set, and this
// and what follows is zero.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if f.bad || len(f.b) < n {
		f.bad = true
		return make([]byte, n)
	}
	field := f.b[:n]
	f.b = f.b[n:]
	return field
}

func (f *fields) name() string {
	n := bytes.IndexByte(f.b, 0)
	if n < 0 || n > maxName {
		f.bad = true
		return ""
	}
	return string(f.take(n + 1)[:n])
}

// makeOldTicket makes an old ticket. Its end is later than c's unless there is a lifetime
// that fits.
func makeOldTicket(k Key, c *Contents) ([]byte, error) {
	start, err := startSeconds(c.Start)
	if err != nil {
		return nil, err
	}
	lifetime := byte(lifetimeForever)
	if !c.End.IsZero() {
		var ok bool
		if lifetime, ok = lifetimeOf(c.End.Sub(fromSeconds(start))); !ok {
			return nil, fmt.Errorf("rxkad: an old ticket can't be valid from %s to %s: use up to 30 days, or no end", stamp(c.Start), stamp(c.End))
		}
	}
	service := c.Service
	if service == "" {
		service = "afs"
	}
	b := []byte{0}
	for _, name := range []string{c.Name, c.Instance, c.Realm} {
		b = append(append(b, name...), 0)
	}
	b = binary.BigEndian.AppendUint32(b, c.Host)
	b = append(b, c.SessionKey[:]...)
	b = append(b, lifetime)
	b = binary.BigEndian.AppendUint32(b, start)
	for _, name := range []string{service, c.ServiceInstance} {
		b = append(append(b, name...), 0)
	}
	b = append(b, make([]byte, roundUp(len(b))-len(b))...)
	if err := desPCBC(k, b, true); err != nil {
		return nil, &Error{CodeBadKey, err}
	}
	return b, nil
}

func roundUp(n int) int { return (n + 7) &^ 7 }

var errWeakKey = errors.New("the service's DES key is a weak one: make a new key")

// desPCBC encrypts or decrypts whole blocks in place. The key is the initial vector too.
func desPCBC(k Key, data []byte, encrypt bool) error {
	if k.odd().weak() {
		return errWeakKey
	}
	c, err := des.NewCipher(k[:])
	if err != nil {
		return err
	}
	chain := k
	for ; len(data) >= des.BlockSize; data = data[des.BlockSize:] {
		block := data[:des.BlockSize]
		before := Key(block)
		if encrypt {
			subtle.XORBytes(block, block, chain[:])
			c.Encrypt(block, block)
		} else {
			c.Decrypt(block, block)
			subtle.XORBytes(block, block, chain[:])
		}
		subtle.XORBytes(chain[:], before[:], block)
	}
	return nil
}
