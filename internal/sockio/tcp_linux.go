package sockio

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxPieces is how many pieces one system call takes (IOV_MAX).
const maxPieces = 1024

// tcp drives a TCP connection by its file descriptor. The callbacks that the
// runtime calls with the descriptor are made once, so that nothing is allocated
// per call; their arguments and results pass through the struct. Those of
// writing belong to the writer, those of reading to the reader.
type tcp struct {
	*net.TCPConn
	raw syscall.RawConn

	write struct {
		iov
		pieces [][]byte
		wait   bool
		n      int
		err    error
		call   func(fd uintptr) bool
	}
	read struct {
		p     []byte
		get   func() []byte
		unget func()
		n     int
		err   error
		try   func(fd uintptr) bool
		wait  func(fd uintptr) bool
	}
	mss     int
	readMSS func(fd uintptr)
}

func newTCP(c *net.TCPConn) (Stream, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	t := &tcp{TCPConn: c, raw: raw}
	t.write.call = func(fd uintptr) bool {
		w := &t.write
		w.n, w.err = ignoringIntr(func() (int, error) { return w.writev(int(fd), w.pieces) })
		if errors.Is(w.err, unix.EAGAIN) {
			w.n, w.err = 0, nil
			return !w.wait
		}
		return true
	}
	t.read.try = func(fd uintptr) bool {
		t.readNow(fd)
		return true
	}
	t.read.wait = func(fd uintptr) bool {
		t.read.p = t.read.get()
		t.readNow(fd)
		if t.read.n == 0 && t.read.err == nil {
			t.read.unget()
			return false
		}
		return true
	}
	t.readMSS = func(fd uintptr) {
		t.mss, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
		if err != nil {
			t.mss = 0
		}
	}
	return t, nil
}

// Writev implements Stream.
func (t *tcp) Writev(pieces [][]byte, wait bool) (int, error) {
	w := &t.write
	w.pieces, w.wait, w.n, w.err = pieces[:min(len(pieces), maxPieces)], wait, 0, nil
	err := t.raw.Write(w.call)
	w.pieces = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// readNow reads once; nothing there is no error.
func (t *tcp) readNow(fd uintptr) {
	r := &t.read
	r.n, r.err = ignoringIntr(func() (int, error) { return unix.Read(int(fd), r.p) })
	switch {
	case errors.Is(r.err, unix.EAGAIN):
		r.n, r.err = 0, nil
	case r.err != nil:
		r.n = 0
	case r.n == 0 && len(r.p) > 0:
		r.err = io.EOF
	}
}

// TryRead implements Stream.
func (t *tcp) TryRead(p []byte) (int, error) {
	t.read.p = p
	return t.result(t.raw.Read(t.read.try))
}

// Polls implements Stream.
func (t *tcp) Polls() bool { return true }

// ReadInto implements Stream.
func (t *tcp) ReadInto(get func() []byte, unget func()) (int, error) {
	t.read.get, t.read.unget = get, unget
	return t.result(t.raw.Read(t.read.wait))
}

func (t *tcp) result(err error) (int, error) {
	r := &t.read
	r.p = nil
	if err != nil {
		return 0, err
	}
	return r.n, r.err
}

// MSS implements Stream.
func (t *tcp) MSS() int {
	if t.raw.Control(t.readMSS) != nil {
		return 0
	}
	return t.mss
}

// Abort implements Stream.
func (t *tcp) Abort() error { return abort(t.TCPConn) }

// ignoringIntr repeats a call that a signal has interrupted.
func ignoringIntr(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
