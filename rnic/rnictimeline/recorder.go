package rnictimeline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"urnic/internal/capture"
	"urnic/rnic"
)

// Bounds of what a Recorder writes. What comes later is counted in Left.
const (
	MostEvents   = 1 << 20   // events
	MostRecorded = 256 << 20 // bytes of the recording
)

const (
	bufferLen  = 64 << 10
	flushEvery = 100 * time.Millisecond
)

// A Recorder records what happens to the work requests of a device. Its methods are safe for concurrent
// use, and take little time; nil records nothing.
type Recorder struct {
	events *os.File
	record *bounded
	done   chan struct{}
	wg     sync.WaitGroup

	mu     sync.Mutex // of what follows
	buffer []byte
	count  int
	left   uint64
	err    error
	closed bool
	linked map[uint32]string // addresses of queue pairs that were noted
}

// Start begins to record into a directory, which it makes if there is none, and changes a configuration for that, with
// which a device is to be opened. Record and Trace that are there get what they got before.
func Start(dir string, cfg *rnic.Config) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("rnictimeline: %w", err)
	}
	r := &Recorder{done: make(chan struct{}), linked: map[uint32]string{}}
	for n := 0; ; n++ {
		name := filepath.Join(dir, fmt.Sprintf("%d-%d", os.Getpid(), n))
		f, err := os.OpenFile(name+".events", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("rnictimeline: %w", err)
		}
		packets, err := capture.Create(name + ".pcapng")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("rnictimeline: %w", err), f.Close())
		}
		r.events, r.record = f, &bounded{file: packets, next: cfg.Record}
		break
	}
	r.buffer = append(make([]byte, 0, bufferLen), magic[:]...)
	cfg.Record = r.record
	before := cfg.Trace
	cfg.Trace = func(t rnic.Trace) {
		if before != nil {
			before(t)
		}
		if !t.Sent && t.Err == nil {
			r.Note(Event{Kind: Delivered, RDMAP: t.Op, QPN: t.QPN, Length: t.Length, Time: time.Now()})
		}
	}
	r.wg.Go(r.flushNowAndThen)
	return r, nil
}

func (r *Recorder) flushNowAndThen() {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = r.Flush() // Close tells
		case <-r.done:
			return
		}
	}
}

// Note adds an event.
func (r *Recorder) Note(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.count >= MostEvents {
		r.left++
		return
	}
	r.count++
	r.buffer = e.Append(r.buffer)
	if len(r.buffer) > bufferLen-EventLen {
		r.flush()
	}
}

// Connected notes the addresses of a queue pair's connection, if they are new.
func (r *Recorder) Connected(q *rnic.QP) {
	if r == nil {
		return
	}
	local, remote := q.LocalAddr(), q.RemoteAddr()
	if local == nil || remote == nil {
		return
	}
	name := local.String() + " " + remote.String()
	r.mu.Lock()
	known := r.linked[q.Num()] == name
	r.linked[q.Num()] = name
	r.mu.Unlock()
	if !known {
		now := time.Now()
		r.Note(Event{Kind: LocalAddr, QPN: q.Num(), Addr: addrOf(local), Time: now})
		r.Note(Event{Kind: RemoteAddr, QPN: q.Num(), Addr: addrOf(remote), Time: now})
	}
}

// addrOf is an address as the recording has it.
func addrOf(a net.Addr) netip.AddrPort { return capture.AddrPort(a) }

// Flush writes what is buffered.
func (r *Recorder) Flush() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	return r.err
}

// flush is Flush under mu.
func (r *Recorder) flush() {
	if len(r.buffer) > 0 && r.err == nil {
		_, r.err = r.events.Write(r.buffer)
	}
	r.buffer = r.buffer[:0]
}

// Left returns how many events, and how many bytes of the recording, there were beyond the bounds.
func (r *Recorder) Left() (events, bytes uint64) {
	if r == nil {
		return 0, 0
	}
	r.mu.Lock()
	events = r.left
	r.mu.Unlock()
	r.record.mu.Lock()
	defer r.record.mu.Unlock()
	return events, r.record.left
}

// Close ends the recording. The device is to be closed before.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	was := r.closed
	r.closed = true
	r.mu.Unlock()
	if was {
		return nil
	}
	close(r.done)
	r.wg.Wait()
	return errors.Join(r.Flush(), r.events.Close(), r.record.file.Close())
}

// A bounded is a recording that takes no more than MostRecorded bytes.
type bounded struct {
	file *os.File
	next io.Writer // gets everything, or nil

	mu      sync.Mutex
	written int
	left    uint64
}

// Write writes whole packets, as rnic.Config.Record has them.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		if n, err := b.next.Write(p); err != nil {
			return n, err
		}
	}
	if b.left > 0 || b.written+len(p) > MostRecorded {
		b.left += uint64(len(p))
		return len(p), nil
	}
	b.written += len(p)
	return b.file.Write(p)
}

func sortByTime(all []Event) {
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
}
