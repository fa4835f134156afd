package rxref

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"urnic/ulp/rx/rpc"
)

// maxChunk is how many bytes are read or written at once.
const maxChunk = 1 << 20

var chunks = sync.Pool{New: func() any { return new([maxChunk]byte) }}

// chunk is the length of the next piece from a place on. Pieces end where the stream stops
// or fails.
func (h *How) chunk(at uint64) int {
	n := min(h.Length-at, maxChunk)
	for _, border := range []uint64{uint64(h.PauseAt), uint64(h.FailAt)} {
		if at < border && at+n > border {
			n = border - at
		}
	}
	return int(n)
}

// border does what is to be done at a place of the stream.
func (h *How) border(ctx context.Context, at uint64) error {
	if h.PauseMS != 0 && at == uint64(h.PauseAt) {
		if err := sleep(ctx, h.PauseMS); err != nil {
			return err
		}
	}
	if h.FailCode != 0 && at == uint64(h.FailAt) {
		return &rpc.Code{Number: h.FailCode}
	}
	return nil
}

// sleep waits for so many milliseconds, or until the call has failed.
func sleep(ctx context.Context, ms uint32) error {
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take reads a stream. It counts in s what it has read.
func (h *How) take(ctx context.Context, r io.Reader, s *Seen) error {
	b := chunks.Get().(*[maxChunk]byte)
	defer chunks.Put(b)
	for {
		if err := h.border(ctx, s.Length); err != nil || s.Length == h.Length {
			return err
		}
		piece := b[:h.chunk(s.Length)]
		n, err := io.ReadFull(r, piece)
		s.Bad += mismatches(piece[:n], s.Length)
		s.Length += uint64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
}

// give writes a stream. It counts in s what it has written.
func (h *How) give(ctx context.Context, w io.Writer, s *Seen) error {
	for {
		if err := h.border(ctx, s.Length); err != nil || s.Length == h.Length {
			return err
		}
		n, err := w.Write(bytesAt(s.Length, h.chunk(s.Length)))
		s.Length += uint64(n)
		if err != nil {
			return err
		}
	}
}
