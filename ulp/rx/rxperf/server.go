package rxperf

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"urnic/ulp/rx"
	"urnic/ulp/rx/wire"
)

// Service returns the service, for an endpoint. As with OpenAFS, its clients must show that
// they have their address before the first call is served.
func Service() rx.Service {
	return rx.Service{ID: ServiceID, Handler: rx.Stream(Serve), Reach: true}
}

// buffers are for the data, whose contents matter to nobody.
var buffers = sync.Pool{New: func() any { return new([maxSize]byte) }}

// Serve serves a call.
func Serve(_ context.Context, c io.ReadWriter) error {
	r, err := ReadRequest(c)
	if err != nil {
		return err
	}
	buf := buffers.Get().(*[maxSize]byte)
	defer buffers.Put(buf)
	if r.Command == File {
		return serveFile(c, r, buf)
	}
	if err := take(c, int64(r.Send), size(buf, r.ReadSize)); err != nil {
		return err
	}
	if err := give(c, int64(r.Receive), size(buf, r.WriteSize)); err != nil {
		return err
	}
	_, err = c.Write(binary.BigEndian.AppendUint32(nil, magic))
	return err
}

// serveFile moves data as a list says.
func serveFile(c io.ReadWriter, r Request, buf *[maxSize]byte) error {
	reads, wrote := true, false
	for _, words := range r.List {
		if words == 0 {
			reads = !reads
			continue
		}
		n := 4 * int64(words)
		if !reads {
			if err := give(c, n, size(buf, r.WriteSize)); err != nil {
				return err
			}
			wrote = true
			continue
		}
		if wrote { // Rx has one turn in a call
			return fail(wire.InvalidOperation, "the list wants to send after it has received, which Rx can't")
		}
		if err := take(c, n, size(buf, r.ReadSize)); err != nil {
			return err
		}
	}
	return nil
}

// size is the part of a buffer that a request wants to be used; all of it, if the request
// does not care.
func size(buf *[maxSize]byte, n uint32) []byte {
	if n == 0 {
		return buf[:]
	}
	return buf[:n]
}

// take reads so many bytes.
func take(c io.Reader, n int64, buf []byte) error {
	for n > 0 {
		got, err := c.Read(buf[:min(int64(len(buf)), n)])
		n -= int64(got)
		if n > 0 && errors.Is(err, io.EOF) {
			return fail(wire.SSUnmarshal, "%d bytes of the data are missing", n)
		}
		if err != nil && n > 0 {
			return err
		}
	}
	return nil
}

// give writes so many bytes.
func give(c io.Writer, n int64, buf []byte) error {
	for n > 0 {
		wrote, err := c.Write(buf[:min(int64(len(buf)), n)])
		if err != nil {
			return err
		}
		n -= int64(wrote)
	}
	return nil
}
