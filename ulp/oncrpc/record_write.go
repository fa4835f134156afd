package oncrpc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"urnic/ulp/oncrpc/xdr"
)

// ErrStalled says that the peer has taken nothing for as long as it may.
var ErrStalled = errors.New("oncrpc: the peer takes no data")

// errLong says that a message is too long for a record of one fragment.
var errLong = fmt.Errorf("oncrpc: a message is longer than a record of one fragment may be, %d octets", maxFragment)

// A recordWriter writes records to a connection: one at a time, and each whole.
type recordWriter struct {
	conn  net.Conn
	stall time.Duration // how long the peer may take nothing

	turn    chan struct{} // holds something while somebody writes
	err     error         // of the connection; under turn, as all below
	mark    [4]byte
	pieces  [][]byte    // of the record
	rest    net.Buffers // those that have not been written
	written int64       // bytes
}

func newRecordWriter(conn net.Conn, stall time.Duration) *recordWriter {
	return &recordWriter{conn: conn, stall: stall, turn: make(chan struct{}, 1)}
}

// end waits for what continues after write has returned, and lets nothing begin any more.
// The connection must be closed.
func (w *recordWriter) end() {
	w.turn <- struct{}{}
	w.err = cmp.Or(w.err, ErrClosed)
	<-w.turn
}

// write writes a message in a vectored write, and uses none of its memory any more when it
// returns. It returns errGivenUp if the context has ended before, with the connection in
// order; errLong; or an error of the connection, which is of no use then.
func (w *recordWriter) write(ctx context.Context, e *xdr.Encoder) error {
	n := e.Len()
	if uint64(n) > maxFragment {
		return errLong
	}
	select {
	case w.turn <- struct{}{}:
	default:
		select {
		case w.turn <- struct{}{}:
		case <-ctx.Done():
			return errGivenUp
		}
	}
	if w.err != nil {
		defer w.pass()
		return w.err
	}
	binary.BigEndian.PutUint32(w.mark[:], lastFragment|uint32(n))
	w.pieces = e.Pieces(append(w.pieces[:0], w.mark[:]))
	w.rest, w.written = w.pieces, 0
	return w.record(ctx)
}

// pass lets somebody else write.
func (w *recordWriter) pass() {
	clear(w.pieces) // holds no memory of the caller
	w.rest = nil
	<-w.turn
}

// unnoticed is a time in which nobody notices that a call has not been given up.
const unnoticed = 2 * time.Millisecond

// record writes what is in rest, and passes.
func (w *recordWriter) record(ctx context.Context) error {
	if ctx.Done() == nil {
		defer w.pass()
		w.err = w.push(context.Background())
		return w.err
	}
	// That the context's end be noticed costs more than to write a record.
	_ = w.conn.SetWriteDeadline(time.Now().Add(min(unnoticed, w.stall))) // if it fails, so does the write
	err := w.some()
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		defer w.pass()
		w.err = err
		return err
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = w.conn.SetWriteDeadline(time.Unix(1, 0)) // as above
	})
	err = w.push(ctx)
	if !stop() {
		<-woken // or else it would wake another one
	}
	switch {
	case !errors.Is(err, errGivenUp):
		defer w.pass()
		w.err = err
		return err
	case w.written == 0: // the peer has not seen that there was one
		defer w.pass()
		return err
	}
	// The others' records can't follow before the whole of this one, whose memory is the
	// caller's again now.
	var left []byte
	for _, p := range w.rest {
		left = append(left, p...)
	}
	clear(w.pieces)
	w.rest = net.Buffers{left}
	go func() {
		defer w.pass()
		w.err = w.push(context.Background())
		if w.err != nil {
			_ = w.conn.Close() // its reader finds out
		}
	}()
	return err
}

// errGivenUp says that the context has ended.
var errGivenUp = errors.New("given up")

// push writes rest, as long as the peer takes some of it and ctx has not ended.
func (w *recordWriter) push(ctx context.Context) error {
	for {
		before := w.written
		if err := w.conn.SetWriteDeadline(time.Now().Add(w.stall)); err != nil {
			return err
		}
		if ctx.Err() != nil { // from now on its end ends the write
			return errGivenUp
		}
		err := w.some()
		switch {
		case err == nil || !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case ctx.Err() != nil:
			return errGivenUp
		case w.written == before:
			return ErrStalled
		}
	}
}

// some writes rest until the connection's deadline.
func (w *recordWriter) some() error {
	n, err := w.rest.WriteTo(w.conn)
	w.written += n
	return err
}
