package sockio

import (
	"io"
	"net"
	"slices"
	"sync"

	"urnic/internal/host/memfault"
)

// bufferLimit is how many octets a buffered stream takes before it says that
// it is full.
const bufferLimit = 256 << 10

// buffered is a Stream over any net.Conn: a goroutine writes what Writev took.
type buffered struct {
	net.Conn

	mu     sync.Mutex
	out    []byte        // taken, not yet with the writer
	err    error         // of the writer, or why nothing more is taken
	ending bool          // CloseWrite was called: out is the last
	change chan struct{} // closed and replaced when something above changes

	done    chan struct{} // closed when the writer is gone
	started bool
}

func newBuffered(c net.Conn) *buffered {
	return &buffered{Conn: c, change: make(chan struct{}), done: make(chan struct{})}
}

// signal wakes whoever waits for a change. The caller holds mu.
func (b *buffered) signal() {
	close(b.change)
	b.change = make(chan struct{})
}

// Writev implements Stream.
func (b *buffered) Writev(pieces [][]byte, wait bool) (int, error) {
	for {
		b.mu.Lock()
		if b.err != nil || b.ending {
			err := b.err
			b.mu.Unlock()
			if err == nil {
				err = net.ErrClosed
			}
			return 0, err
		}
		n, offered := 0, 0
		var fault error
		for _, p := range pieces {
			offered += len(p)
			at, k := len(b.out), min(len(p), bufferLimit-len(b.out))
			b.out = slices.Grow(b.out, k)[:at+k]
			if fault = memfault.Copy(b.out[at:], p[:k]); fault != nil {
				b.out = b.out[:at]
				break
			}
			if n += k; k < len(p) {
				break
			}
		}
		if n > 0 {
			if !b.started {
				b.started = true
				go b.writeOut()
			}
			b.signal()
		}
		change := b.change
		b.mu.Unlock()
		if n > 0 || offered == 0 || !wait || fault != nil {
			return n, fault
		}
		<-change
	}
}

// writeOut is the goroutine that writes. It ends after CloseWrite or an error;
// Close makes its Write fail.
func (b *buffered) writeOut() {
	defer close(b.done)
	var buf []byte
	for {
		b.mu.Lock()
		for len(b.out) == 0 && b.err == nil && !b.ending {
			change := b.change
			b.mu.Unlock()
			<-change
			b.mu.Lock()
		}
		if b.err != nil || len(b.out) == 0 {
			b.mu.Unlock()
			return
		}
		buf, b.out = b.out, buf[:0]
		b.signal()
		b.mu.Unlock()
		if _, err := b.Write(buf); err != nil {
			b.fail(err)
			return
		}
	}
}

func (b *buffered) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		b.signal()
	}
}

// TryRead implements Stream. A net.Conn can't tell whether there is something
// to read, so there never is.
func (b *buffered) TryRead([]byte) (int, error) { return 0, nil }

// Polls implements Stream.
func (b *buffered) Polls() bool { return false }

// ReadInto implements Stream.
func (b *buffered) ReadInto(get func() []byte, _ func()) (int, error) {
	n, err := b.Read(get())
	if n > 0 {
		return n, nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return 0, err
}

// MSS implements Stream.
func (b *buffered) MSS() int { return 0 }

// CloseWrite implements Stream. It waits until all that was taken is written.
func (b *buffered) CloseWrite() error {
	b.mu.Lock()
	b.ending = true
	b.signal()
	started := b.started
	b.mu.Unlock()
	if started {
		<-b.done
	}
	b.mu.Lock()
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return closeWrite(b.Conn)
}

// Abort implements Stream.
func (b *buffered) Abort() error { return b.end(abort) }

// Close implements Stream.
func (b *buffered) Close() error { return b.end(net.Conn.Close) }

func (b *buffered) end(how func(net.Conn) error) error {
	b.fail(net.ErrClosed)
	err := how(b.Conn)
	b.mu.Lock()
	started := b.started
	b.mu.Unlock()
	if started {
		<-b.done
	}
	return err
}
