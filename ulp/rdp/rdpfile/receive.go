package rdpfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
)

// Errors of Receive and ReceiveAt.
var (
	// ErrShort says that the peer has closed the connection before everything had come that it has sent.
	ErrShort = errors.New("rdpfile: the peer has ended the connection in the middle of the file")
	// ErrHoles says that messages on a connection that is not sequenced do not make a file.
	ErrHoles = errors.New("rdpfile: the peer has left parts of the file out")
)

// Bounds of what a peer can make a receiver hold on a connection that is not sequenced.
const (
	maxPieces = 1 << 16  // pieces that wait, or holes between pieces
	maxHeld   = 64 << 20 // bytes that wait for what is before them
	maxOffset = 1 << 62
)

// receivedAtOnce is how many messages are taken at once.
const receivedAtOnce = 64

// Receive writes a file in order, until the peer closes the connection. It returns how many bytes it has written. If the error is
// nil, that is the whole file. If it is not, and not ErrHoles either, what was written has no holes.
func Receive(ctx context.Context, c *rdp.Conn, w io.Writer) (int64, error) {
	return receive(ctx, c, &inOrder{w: w})
}

// ReceiveAt is Receive that writes what comes where it belongs. It returns the size of the file.
func ReceiveAt(ctx context.Context, c *rdp.Conn, w io.WriterAt) (int64, error) {
	return receive(ctx, c, &anyOrder{w: w})
}

func receive(ctx context.Context, c *rdp.Conn, a assembly) (int64, error) {
	err := takeAll(ctx, c, a)
	n, whole := a.size()
	reset, gone := errors.Is(err, machine.ErrReset), errors.Is(err, machine.ErrUnreachable)
	switch {
	case (reset || gone) && c.Status().Short:
		return n, fmt.Errorf("%w: %w", ErrShort, err)
	case reset && !whole:
		return n, ErrHoles
	case reset:
		return n, nil
	case !whole:
		return n, fmt.Errorf("%w (%w)", err, ErrHoles)
	}
	return n, err
}

// takeAll takes messages until the connection has ended. The error says why.
func takeAll(ctx context.Context, c *rdp.Conn, a assembly) error {
	ordered := c.Sequenced()
	var offset int64
	batch := make([]rdp.Message, 0, receivedAtOnce)
	for {
		if err := c.AwaitMessage(ctx); err != nil {
			return err
		}
		var end error
		batch, end = c.TryReceiveAll(batch[:0])
		for _, msg := range batch {
			data := msg.Data
			if !ordered {
				var err error
				if data, offset, err = split(data); err != nil {
					return err
				}
			}
			if err := a.put(data, offset); err != nil {
				return err
			}
			offset += int64(len(data))
		}
		if err := a.flush(); err != nil {
			return err
		}
		c.Free(batch...)
		if end != nil && !errors.Is(end, machine.ErrWouldBlock) {
			return end
		}
	}
}

// split takes the offset off a message.
func split(data []byte) (rest []byte, offset int64, err error) {
	if len(data) < offsetLen {
		return nil, 0, fmt.Errorf("rdpfile: a message of %d bytes has no offset: the peer does not send a file on a connection that is not sequenced", len(data))
	}
	at := binary.BigEndian.Uint64(data)
	if rest = data[offsetLen:]; at > maxOffset {
		return nil, 0, fmt.Errorf("rdpfile: a message is for offset %d: the peer does not send a file", at)
	}
	return rest, int64(at), nil
}
