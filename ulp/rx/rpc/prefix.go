package rpc

import (
	"errors"
	"io"

	"urnic/ulp/oncrpc/xdr"
)

// maxPrefix is how many bytes the arguments of a split call have at most. They are decoded
// again with each packet until they are whole, so that they must not be many.
const maxPrefix = 8 << 10

// decodePrefix reads from r until v is whole. It returns what was read behind v.
func (k *codec) decodePrefix(r io.Reader, v Value, most int) (rest []byte, err error) {
	p := make([]byte, 0, min(most, readSize))
	for ended := false; ; {
		err := k.decode(p, v, false)
		if err == nil {
			return p[k.d.At():], nil
		}
		if ended || len(p) == most || !errors.Is(err, xdr.ErrShort) {
			return nil, err
		}
		if len(p) == cap(p) {
			p = append(p, make([]byte, min(len(p), most-len(p)))...)[:len(p)]
		}
		n, err := r.Read(p[len(p):min(cap(p), most)])
		p = p[:len(p)+n]
		if err == io.EOF { //nolint:errorlint // io.EOF itself says that there is no more
			ended = true
		} else if err != nil {
			return nil, err
		}
	}
}

// argsFailure is the error of a call whose arguments were not read or not decoded.
func argsFailure(name string, err error) error {
	var bad *xdr.Error
	if errors.As(err, &bad) || errors.Is(err, ErrLong) {
		return &Error{Op: name, Code: ErrServerUnmarshal, Err: err}
	}
	return err
}

// data is a call whose arguments have been read, and rest behind them.
type data struct {
	rest []byte
	io.ReadWriter
}

func (d *data) Read(p []byte) (int, error) {
	if len(d.rest) > 0 {
		n := copy(p, d.rest)
		d.rest = d.rest[n:]
		return n, nil
	}
	return d.ReadWriter.Read(p)
}
