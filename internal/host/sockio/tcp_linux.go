package sockio

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"urnic/internal/host/memfault"
)

// maxPieces is how many pieces one system call takes (IOV_MAX).
const maxPieces = 1024

// tcp drives a TCP connection by its file descriptor. What need not wait does not
// trouble the runtime's poller (Control); what waits does (Read, Write). The
// callbacks are made once, so that nothing is allocated per call; their arguments
// and results pass through the struct. Those of writing belong to the writer, those
// of reading to the reader.
type tcp struct {
	*net.TCPConn
	raw syscall.RawConn

	write struct {
		iov
		pieces [][]byte
		n      int
		err    error
		try    func(fd uintptr)
		wait   func(fd uintptr) bool
	}
	read struct {
		p     []byte
		get   func() []byte
		unget func()
		n     int
		err   error
		try   func(fd uintptr)
		wait  func(fd uintptr) bool
		vain  int  // tries in a row that found nothing
		quiet bool // what comes need not wake the runtime's poller
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
	t.write.try = t.writeNow
	t.write.wait = func(fd uintptr) bool {
		t.writeNow(fd)
		return t.write.n > 0 || t.write.err != nil || empty(t.write.pieces)
	}
	t.read.try = t.tryNow
	t.read.wait = func(fd uintptr) bool {
		r := &t.read
		if r.vain = 0; r.quiet {
			t.hush(int(fd), false)
		}
		r.n, r.err = readNow(int(fd), r.get())
		if r.n == 0 && r.err == nil {
			r.unget()
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
func (t *tcp) Writev(pieces [][]byte, wait bool) (n int, err error) {
	w := &t.write
	w.pieces, w.n, w.err = pieces[:min(len(pieces), maxPieces)], 0, nil
	if wait {
		err = t.raw.Write(w.wait)
	} else {
		err = t.raw.Control(w.try)
	}
	w.pieces = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// writeNow writes what there is room for.
func (t *tcp) writeNow(fd uintptr) {
	w := &t.write
	n, errno := w.writev(int(fd), w.pieces)
	for errno == unix.EINTR {
		n, errno = w.writev(int(fd), w.pieces)
	}
	switch w.n = n; errno {
	case 0, unix.EAGAIN:
	case unix.EFAULT: // the kernel does not say where
		w.err = &memfault.Error{}
	default:
		w.err = errno
	}
}

func empty(pieces [][]byte) bool {
	return !slices.ContainsFunc(pieces, func(p []byte) bool { return len(p) > 0 })
}

// readNow reads once; nothing there is no error.
func readNow(fd int, p []byte) (int, error) {
	n, errno := recv(fd, p)
	for errno == unix.EINTR {
		n, errno = recv(fd, p)
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
	closed := raw.Control(func(fd uintptr) { n, err = readNow(int(fd), p) })
	return n, errors.Join(err, closed)
}

// TryRead implements Stream.
func (t *tcp) TryRead(p []byte) (int, error) {
	r := &t.read
	r.p = p
	err := t.raw.Control(r.try)
	r.p = nil
	if err != nil {
		return 0, err
	}
	return r.n, r.err
}

// tryNow reads what is there, and takes note of those who come again and again.
func (t *tcp) tryNow(fd uintptr) {
	r := &t.read
	if r.n, r.err = readNow(int(fd), r.p); r.n > 0 || r.err != nil {
		r.vain = 0
		return
	}
	if r.vain++; r.vain == spins {
		t.hush(int(fd), true)
	}
}

// spins is how many reads in vain show that somebody spins.
const spins = 256

// hush keeps what comes from waking the runtime's poller, while somebody looks for
// it all the time: the kernel wakes it for each segment, if only one goroutine of
// the process waits for anything at all, and it takes a processor that those who
// spin, or their peers, could use. SO_RCVLOWAT is the number of octets from which
// on the kernel does so; read takes what is there whatever it is. Half of what the
// receive buffer has room for does not change its size (tcp_set_rcvlowat).
func (t *tcp) hush(fd int, on bool) {
	least := 1
	if on {
		size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		if err != nil {
			return
		}
		least = size / 4
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, least) == nil {
		t.read.quiet = on
	}
}

// Polls implements Stream.
func (t *tcp) Polls() bool { return true }

// ReadInto implements Stream.
func (t *tcp) ReadInto(get func() []byte, unget func()) (int, error) {
	r := &t.read
	r.get, r.unget = get, unget
	if err := t.raw.Read(r.wait); err != nil {
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
