package service

import (
	"bufio"
	"bytes"
	"errors"
)

// ErrLine is the error of [ReadLine] for a line that is too long.
var ErrLine = errors.New("a line is too long")

// ReadLine reads a line of at most limit bytes, without its end. The result is
// the caller's.
func ReadLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > limit+1 {
			return nil, ErrLine
		}
		line = append(line, piece...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		default:
			return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
		}
	}
}
