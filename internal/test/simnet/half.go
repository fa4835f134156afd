package simnet

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"
)

// A half is one direction of a stream.
type half struct {
	faults Faults
	limit  int // octets that may be on their way

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	rng     *rand.Rand
	chunks  []chunk // on their way, in order
	size    int     // octets in chunks
	written int64   // octets taken since the beginning
	lastAt  time.Time
	stalled bool
	ended   bool  // the writer has sent its FIN
	err     error // both ends get it, after what was already readable is dropped
}

// A chunk is what one write took; it may be read from a given time on.
type chunk struct {
	data []byte
	at   time.Time
}

func newHalf(f Faults, limit int) *half {
	return &half{faults: f, limit: limit, changed: make(chan struct{}), rng: f.rand()}
}

// signal wakes whoever waits. The caller holds mu.
func (h *half) signal() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// fail ends the direction with an error at both of its ends.
func (h *half) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
		h.chunks, h.size = nil, 0
		h.signal()
	}
}

// end marks the end of the stream: the reader gets io.EOF after the rest. After
// a reset there is nothing to end.
func (h *half) end() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, syscall.ECONNRESET) {
		return syscall.ENOTCONN
	}
	if !h.ended {
		h.ended = true
		h.signal()
	}
	return nil
}

// put takes as much of the pieces as it likes. cut reports that the octet at
// which the connection breaks was among them.
func (h *half) put(pieces [][]byte) (n int, cut bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return 0, false, h.err
	}
	if h.ended {
		return 0, false, syscall.EPIPE
	}
	offered := 0
	for _, p := range pieces {
		offered += len(p)
	}
	room := min(h.limit-h.size, offered)
	if room <= 0 {
		return 0, false, nil
	}
	room = part(h.rng, h.faults.ShortWrites, room)
	data := make([]byte, 0, room)
	for _, p := range pieces {
		data = append(data, p[:min(len(p), room-len(data))]...)
	}
	first := h.written + 1
	h.written += int64(len(data))
	within := func(at int64) bool { return at >= first && at <= h.written }
	if within(h.faults.CorruptAt) {
		data[h.faults.CorruptAt-first] ^= 1 << h.rng.IntN(8)
	}
	if within(h.faults.StallAt) {
		h.stalled = true
		data = data[:h.faults.StallAt-first]
	} else if h.stalled {
		data = nil
	}
	if within(h.faults.CutAt) {
		data, cut = data[:min(int64(len(data)), h.faults.CutAt-first)], true
	}
	if len(data) > 0 {
		h.chunks = append(h.chunks, chunk{data, h.arrival()})
		h.size += len(data)
	}
	h.signal()
	return room, cut, nil
}

// arrival returns when what is written now can be read.
func (h *half) arrival() time.Time {
	at := time.Now().Add(h.faults.Latency)
	if h.faults.Jitter > 0 {
		at = at.Add(time.Duration(h.rng.Int64N(int64(h.faults.Jitter))))
	}
	if at.Before(h.lastAt) {
		at = h.lastAt
	}
	h.lastAt = at
	return at
}

// take reads what has arrived into p. Zero octets and no error mean that there
// is nothing yet.
func (h *half) take(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return 0, h.err
	}
	now := time.Now()
	n, limit := 0, part(h.rng, h.faults.ShortReads, min(len(p), h.arrived(now)))
	for n < limit && len(h.chunks) > 0 && !h.chunks[0].at.After(now) {
		c := &h.chunks[0]
		k := copy(p[n:limit], c.data)
		n += k
		if c.data = c.data[k:]; len(c.data) == 0 {
			h.chunks = h.chunks[1:]
		}
	}
	h.size -= n
	if n > 0 {
		h.signal()
		return n, nil
	}
	if h.ended && len(h.chunks) == 0 && !h.stalled {
		return 0, io.EOF
	}
	return 0, nil
}

// arrived returns how many octets can be read now. The caller holds mu.
func (h *half) arrived(now time.Time) int {
	n := 0
	for _, c := range h.chunks {
		if c.at.After(now) {
			break
		}
		n += len(c.data)
	}
	return n
}

// A ready function reports whether its caller need not wait any more.
type ready func(h *half) bool

func readable(h *half) bool {
	if h.err != nil {
		return true
	}
	if len(h.chunks) > 0 {
		return !h.chunks[0].at.After(time.Now())
	}
	return h.ended && !h.stalled
}

func writable(h *half) bool { return h.err != nil || h.ended || h.size < h.limit }

// wait waits until ok, or until d has passed.
func (h *half) wait(ok ready, d *deadline) error {
	for {
		if d.over() {
			return os.ErrDeadlineExceeded
		}
		h.mu.Lock()
		if ok(h) {
			h.mu.Unlock()
			return nil
		}
		changed := h.changed
		var arrival <-chan time.Time
		if len(h.chunks) > 0 {
			if left := time.Until(h.chunks[0].at); left > 0 {
				arrival = time.After(left)
			}
		}
		h.mu.Unlock()
		select {
		case <-changed:
		case <-arrival:
		case <-d.passed():
			return os.ErrDeadlineExceeded
		}
	}
}
