package rping

import "fmt"

// The sizes of the ping data in bytes, its terminating zero included. rdma-core's
// rping takes 27 to 65535 bytes; its default is the same.
const (
	MinSize     = 16
	MaxSize     = 65536
	DefaultSize = 64
)

// fill makes the ping data of round n: a text, then letters from one that moves
// on with each round, then a zero. It is what rdma-core's rping sends.
func fill(b []byte, n int) {
	const first, last = 'A', 'z'
	k := copy(b, fmt.Sprintf("rdma-ping-%d: ", n))
	c := byte(first + n%(last-first+1))
	for i := k; i < len(b); i++ {
		b[i] = c
		if c++; c > last {
			c = first
		}
	}
	b[len(b)-1] = 0
}

// text returns what of the ping data is printed: all up to the first zero.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
