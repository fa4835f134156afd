//go:build !linux

package wire

import "errors"

// EMSS returns how many octets the target can have in one TCP segment at most, if
// the tester has said that it takes segments of mss octets.
func (c *Conn) EMSS(int) (int, error) {
	return 0, errors.New("this system does not tell what TCP has negotiated")
}
