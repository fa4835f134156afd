package rpc

import (
	"errors"
	"io"
)

// A Stream is a split call of a client, with results of type R.
type Stream[R any] struct {
	client  *Client
	op      string
	most    int
	results func(*R) Value
	call    Call
	ended   bool // CloseWrite was called
}

// Write sends data of the request.
func (s *Stream[R]) Write(p []byte) (int, error) {
	n, err := s.call.Write(p)
	return n, s.failure(err)
}

// CloseWrite ends the request. Read and Finish do it if the caller does not.
func (s *Stream[R]) CloseWrite() error {
	if s.ended {
		return nil
	}
	s.ended = true
	return s.failure(s.call.CloseWrite())
}

// Read reads data of the reply. What it does not read are the results, for Finish. It returns
// io.EOF at the end of the reply.
func (s *Stream[R]) Read(p []byte) (int, error) {
	if err := s.CloseWrite(); err != nil {
		return 0, err
	}
	n, err := s.call.Read(p)
	return n, s.failure(err)
}

// Finish reads the rest of the reply, which is the results, and ends the call.
func (s *Stream[R]) Finish() (R, error) {
	var r, none R
	defer s.call.Close() //nolint:errcheck // the reply has been read, or its error is known
	if err := s.CloseWrite(); err != nil {
		return none, err
	}
	k := codecs.Get().(*codec)
	defer k.free()
	var err error
	k.in, err = readAll(k.in[:0], s.call, s.most)
	if err == nil {
		err = k.decode(k.in, s.results(&r), true)
	} else if !errors.Is(err, ErrLong) {
		return none, s.failure(err)
	}
	if err != nil {
		s.call.Abort(ErrClientUnmarshal.Number) //nolint:errcheck // the reply is of no use, whatever becomes of the call
		return none, &Error{Op: s.client.name(s.op), Code: ErrClientUnmarshal, Err: err}
	}
	return r, nil
}

// Close ends the call, which is aborted unless its reply was read to the end.
func (s *Stream[R]) Close() error { return s.failure(s.call.Close()) }

// failure makes an *Error of an error of the call.
func (s *Stream[R]) failure(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.EOF itself says that there is no more
		return err
	}
	return s.client.Codes.failure(s.client.name(s.op), err)
}

const readSize = 2048 // bytes that are read at once: a little more than an Rx packet has

// readAll appends what r has, up to io.EOF, to p. It fails with ErrLong if that are more than
// most bytes.
func readAll(p []byte, r io.Reader, most int) ([]byte, error) {
	for {
		if len(p) > most {
			return p, ErrLong
		}
		if cap(p)-len(p) < readSize/2 {
			p = append(p, make([]byte, max(readSize, len(p)))...)[:len(p)]
		}
		n, err := r.Read(p[len(p):min(cap(p), most+1)])
		p = p[:len(p)+n]
		if err == io.EOF {
			if len(p) > most {
				return p, ErrLong
			}
			return p, nil
		}
		if err != nil {
			return p, err
		}
	}
}
