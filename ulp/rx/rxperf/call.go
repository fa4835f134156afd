package rxperf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"urnic/ulp/rx"
)

// Do makes the call that a request describes, which is no File, with a buffer for its data.
// It fails if the server returns other than it should.
func Do(ctx context.Context, conn rx.Conn, r *Request, buf []byte) error {
	if len(buf) == 0 {
		return errors.New("rxperf: no buffer for the data")
	}
	call, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(exchange(call, r, buf), call.Close())
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // and not the code that the call was aborted with
	}
	return err
}

func exchange(call rx.Call, r *Request, buf []byte) error {
	head := r.Append(make([]byte, 0, 32))
	if n := int(r.Send); n > 0 && n <= len(buf)-len(head) { // one write for all
		head = append(head, buf[:n]...)
		if _, err := call.Write(head); err != nil {
			return err
		}
	} else {
		if _, err := call.Write(head); err != nil {
			return err
		}
		if err := give(call, int64(r.Send), buf); err != nil {
			return err
		}
	}
	if err := call.CloseWrite(); err != nil {
		return err
	}
	return reply(call, int64(r.Receive), buf)
}

// reply reads the reply: so many bytes, and the word at its end.
func reply(c io.Reader, n int64, buf []byte) error {
	var tail [4]byte // the last bytes that came
	got := int64(0)
	for {
		m, err := c.Read(buf)
		got += int64(m)
		if m >= len(tail) {
			copy(tail[:], buf[m-len(tail):m])
		} else if m > 0 {
			copy(tail[:], tail[m:])
			copy(tail[len(tail)-m:], buf[:m])
		}
		if got > n+int64(len(tail)) {
			return fmt.Errorf("rxperf: the server returns more than %d bytes and the end mark", n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if got != n+int64(len(tail)) || binary.BigEndian.Uint32(tail[:]) != magic {
		return fmt.Errorf("rxperf: the server returns %d bytes that end with %x: want %d and %08x", got, tail, n, magic)
	}
	return nil
}
