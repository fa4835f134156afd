package rdpfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
)

// offsetLen is how many bytes of a message are its offset, on a connection that is not sequenced.
const offsetLen = 8

// atOnce is about how many bytes are read and sent at once.
const atOnce = 256 << 10

// ErrEarly says that the peer has closed the connection before the end of the file.
var ErrEarly = errors.New("rdpfile: the peer has closed the connection before the end of the file")

// Send sends what r has, until io.EOF, and waits until the peer has accepted all. It returns how many bytes of the file were
// handed over. Each Read is sent at once. Finish is to follow it; after an error, Conn.Abort.
func Send(ctx context.Context, c *rdp.Conn, r io.Reader) (int64, error) {
	n, err := send(ctx, c, r)
	if errors.Is(err, machine.ErrNotOpen) {
		if why := c.Err(); why != nil {
			err = why
		}
	}
	if errors.Is(err, machine.ErrReset) {
		err = fmt.Errorf("%w: %w", ErrEarly, err)
	}
	return n, err
}

func send(ctx context.Context, c *rdp.Conn, r io.Reader) (sent int64, err error) {
	f, err := newFramer(c)
	if err != nil {
		return 0, err
	}
	for {
		n, end := r.Read(f.in)
		messages := f.frame(f.in[:n], sent)
		k, err := c.SendAll(ctx, messages...)
		for _, m := range messages[:k] {
			sent += int64(len(m) - f.prefix)
		}
		switch {
		case err != nil:
			return sent, err
		case errors.Is(end, io.EOF):
			return sent, confirm(ctx, c, sent)
		case end != nil:
			return sent, end
		}
	}
}

// confirm waits until the peer has accepted all.
func confirm(ctx context.Context, c *rdp.Conn, sent int64) error {
	if sent == 0 { // the peer may not know that the connection is open
		if _, err := c.Probe(ctx); err != nil {
			return err
		}
	}
	if err := c.Flush(ctx); err != nil {
		return err
	}
	if c.Status().State != machine.Open {
		return machine.ErrNotOpen
	}
	return nil
}

// A framer makes messages of bytes.
type framer struct {
	prefix   int // bytes of offset in each message
	room     int // bytes of the file in each message
	in       []byte
	arena    []byte
	messages [][]byte
}

func newFramer(c *rdp.Conn) (*framer, error) {
	f := &framer{}
	if !c.Sequenced() {
		f.prefix = offsetLen
	}
	s := c.Status()
	if s.State != machine.Open {
		return nil, machine.ErrNotOpen
	}
	if f.room = s.Room - f.prefix; f.room < 1 {
		return nil, fmt.Errorf("rdpfile: messages of %d bytes have no room for data behind their offset: let the segments be larger", s.Room)
	}
	count := max(1, atOnce/f.room)
	f.in = make([]byte, count*f.room)
	f.arena = make([]byte, 0, count*(f.room+f.prefix))
	return f, nil
}

// frame makes messages of data that begins at an offset of the file. They are valid until the next call.
func (f *framer) frame(data []byte, offset int64) [][]byte {
	f.arena, f.messages = f.arena[:0], f.messages[:0]
	for len(data) > 0 {
		n := min(len(data), f.room)
		at := len(f.arena)
		if f.prefix > 0 {
			f.arena = binary.BigEndian.AppendUint64(f.arena, uint64(offset))
		}
		f.arena = append(f.arena, data[:n]...)
		f.messages = append(f.messages, f.arena[at:])
		data, offset = data[n:], offset+int64(n)
	}
	return f.messages
}

// Linger is for how long Finish may stay: long enough for a few losses on most paths.
const Linger = 500 * time.Millisecond

// closes is how often Finish sends the RST again.
const closes = 4

// Finish closes the connection: that is the end of the file. The RST is sent again a few times within d, at
// growing intervals, as it may be lost; d of 0 sends it once. The end of the context ends the wait.
func Finish(ctx context.Context, c *rdp.Conn, d time.Duration) {
	c.Close() //nolint:errcheck // the peer may have reset it
	if d <= 0 {
		return
	}
	wait := d / (1<<closes - 1)
	t := time.NewTimer(wait)
	defer t.Stop()
	for range closes {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		c.RepeatClose()
		wait *= 2
		t.Reset(wait)
	}
}
