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
		n, errno := w.writev(int(fd), w.pieces)
		for errno == unix.EINTR {
			n, errno = w.writev(int(fd), w.pieces)
		}
		w.n = n
		switch errno {
		case 0:
		case unix.EAGAIN:
			return !w.wait
		default:
			w.err = errno
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
func (t *tcp) readNow(fd uintptr) { t.read.n, t.read.err = readNow(fd, t.read.p) }

func readNow(fd uintptr, p []byte) (int, error) {
	n, errno := recv(int(fd), p)
	for errno == unix.EINTR {
		n, errno = recv(int(fd), p)
	}
	switch {
	case errno == unix.EAGAIN:
		return 0, nil
	case errno != 0:
		return 0, errno
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// tryTCP reads what is there into p.
func tryTCP(c *net.TCPConn, p []byte) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Read(func(fd uintptr) bool {
		n, err = readNow(fd, p)
		return true
	})
	return n, errors.Join(err, closed)
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
