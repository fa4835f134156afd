package rpctest

import (
	"io"
	"sync"
)

const window = 32 * 1412 // bytes that wait for a reader before the writer waits: what Rx's usual window holds

// A pipe is one direction of a call.
type pipe struct {
	mu       sync.Mutex
	data     []byte
	ended    bool          // by CloseWrite
	ignored  bool          // nobody reads any more
	err      error         // of an abort
	changed  chan struct{} // closed with each change
	maxChunk int           // bytes that Read returns at once; 0 for any number
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{})} }

// change carries out f, and wakes those that wait.
func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// write returns what is left to write, and a channel to wait for if that is something.
func (p *pipe) write(b []byte) (left []byte, wait chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return b, nil, p.err
	case p.ended:
		return b, nil, io.ErrClosedPipe
	case p.ignored:
		return nil, nil, nil
	}
	n := min(len(b), window-len(p.data))
	if n > 0 {
		p.data = append(p.data, b[:n]...)
		close(p.changed)
		p.changed = make(chan struct{})
	}
	return b[n:], p.changed, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	for left := b; ; {
		var wait chan struct{}
		var err error
		if left, wait, err = p.write(left); err != nil || len(left) == 0 {
			return len(b) - len(left), err
		}
		<-wait
	}
}

// read returns a channel to wait for if there is nothing to read.
func (p *pipe) read(b []byte) (n int, wait chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return 0, nil, p.err
	case len(p.data) > 0:
		if p.maxChunk > 0 {
			b = b[:min(len(b), p.maxChunk)]
		}
		n = copy(b, p.data)
		p.data = p.data[n:]
		close(p.changed)
		p.changed = make(chan struct{})
		return n, nil, nil
	case p.ended:
		return 0, nil, io.EOF
	}
	return 0, p.changed, nil
}

func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, wait, err := p.read(b)
		if wait == nil {
			return n, err
		}
		<-wait
	}
}
