//go:build !linux

package wire

import "errors"

// EMSS returns how many bytes the target can have in one TCP segment at most,
// if the tester has said that it takes segments of mss bytes.
func (c *Conn) EMSS(int) (int, error) {
	return 0, errors.New("this system does not tell what TCP has negotiated")
}
