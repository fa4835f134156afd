package rds

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"urnic/internal/host/sockio"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// A tcpLink is a connection of RDS over TCP. One goroutine reads. Whoever has something to
// send writes, until the socket is full; then a goroutine continues, and ends with what there is to send.
type tcpLink struct {
	s    sockio.Stream
	n    *Node
	path *machine.Path
	id   machine.Link

	tx    sync.Mutex // of whoever writes
	out   outgoing   // under tx
	acks  tcpAcks    // under tx
	dead  bool       // under tx: the link has ended
	dirty atomic.Bool
	full  atomic.Bool   // the socket is; the writer continues
	over  chan struct{} // closed when the link ends
	lost  chan struct{} // closed when it cannot be written to
	end   sync.Once
	goes  sync.WaitGroup // the writer

	in     reader
	room   chan struct{} // there may be memory again
	record Recording     // or nil
}

// batch is how many bytes are taken from the machine at once.
const batch = 256 << 10

// outgoing is what was taken from the machine and not written.
type outgoing struct {
	headers []byte
	pieces  [][]byte
	held    []*buffer // what the pieces lie in
}

func newTCPLink(c net.Conn) *tcpLink {
	return &tcpLink{s: sockio.New(c), acks: tcpAcks{conn: c, left: unacknowledged}, over: make(chan struct{}), lost: make(chan struct{}), room: make(chan struct{}, 1)}
}

func (l *tcpLink) params() machine.Params { return machine.Params{} }

func (l *tcpLink) attach(n *Node, p *machine.Path, id machine.Link) { l.n, l.path, l.id = n, p, id }

func (l *tcpLink) replaced() {}

func (l *tcpLink) abort() { l.end.Do(func() { close(l.over); _ = l.s.Abort() }) }

// conclude ends the link when what has come is read. The node is locked.
func (l *tcpLink) conclude() {
	if l.acks.conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		l.abort()
	}
}

// rest reads what has come on a link that is concluded; nothing is no error.
func (l *tcpLink) rest(get func() []byte, unget func()) (int, error) {
	if l.s.Polls() {
		return l.s.TryRead(get())
	}
	// A connection that is not one of the kernel's can't tell what there is: what comes within a moment is.
	if err := l.acks.conn.SetReadDeadline(time.Now().Add(moment)); err != nil {
		return 0, err
	}
	n, err := l.s.ReadInto(get, unget)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

// moment is how long after its end something of a connection may come that is not one of the kernel's.
const moment = 100 * time.Millisecond

func (l *tcpLink) resume() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// flush writes what there is. If somebody writes already, that one looks again.
func (l *tcpLink) flush() {
	l.dirty.Store(true)
	for !l.full.Load() && l.dirty.Load() && l.tx.TryLock() {
		l.transmit(false)
		l.tx.Unlock()
	}
}

// transmit writes until there is nothing left. Without wait, it leaves the rest to the
// writer when the socket is full.
func (l *tcpLink) transmit(wait bool) {
	l.dirty.Store(false)
	for !l.dead && l.fill() {
		n, err := l.s.Writev(l.out.pieces, wait)
		l.out.wrote(n)
		if len(l.out.pieces) == 0 {
			l.out.held = leaveAll(l.out.held)
		}
		l.acks.wrote(n)
		l.ask()
		switch {
		case err != nil:
			l.dead = true
			close(l.lost)
			if !severed(err) {
				l.abort()
			}
		case len(l.out.pieces) > 0 && !wait:
			l.full.Store(true)
			l.goes.Go(l.writer)
			return
		}
	}
}

// severed reports whether an error of writing says that the peer has ended the connection, or
// this side its half. The reader continues then: what has come is not read yet, and TCP may have acknowledged it.
func severed(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ETIMEDOUT)
}

// writer continues where the socket was full.
func (l *tcpLink) writer() {
	l.tx.Lock()
	l.transmit(true)
	l.full.Store(false)
	l.tx.Unlock()
	if l.dirty.Load() {
		l.flush()
	}
}

// fill takes segments from the machine, if all that was taken is written. It reports
// whether there is something to write.
func (l *tcpLink) fill() bool {
	o := &l.out
	if len(o.pieces) > 0 {
		return true
	}
	o.headers, o.pieces = o.headers[:0], o.pieces[:0]
	l.n.mu.Lock()
	var seg machine.Segment
	now := l.n.now()
	told := l.path.Conn().Acknowledges()
	for size := 0; size < batch && len(o.headers) < 64*wire.HeaderLen && l.path.Pull(now, l.id, &seg); {
		if cap(o.headers) == 0 {
			o.headers = make([]byte, 0, 64*wire.HeaderLen)
		}
		at := len(o.headers)
		o.headers = seg.Header.AppendTo(o.headers, false)
		o.pieces = append(o.pieces, o.headers[at:])
		if len(seg.Data) > 0 {
			o.pieces = append(o.pieces, seg.Data)
		}
		o.held = hold(o.held, seg.Memory)
		size += wire.HeaderLen + len(seg.Data)
		if !told {
			l.acks.sent(&seg.Header, wire.HeaderLen+len(seg.Data))
		} else {
			l.acks.taken += uint64(wire.HeaderLen + len(seg.Data))
		}
	}
	l.n.unlock()
	if l.record != nil {
		l.record.Sent(o.pieces...)
	}
	return len(o.pieces) > 0
}

// wrote takes off what the socket has taken.
func (o *outgoing) wrote(n int) {
	i := 0
	for i < len(o.pieces) && n >= len(o.pieces[i]) {
		n -= len(o.pieces[i])
		i++
	}
	rest := o.pieces[i:]
	if len(rest) > 0 {
		rest[0] = rest[0][n:]
	}
	k := copy(o.pieces, rest)
	clear(o.pieces[k:])
	o.pieces = o.pieces[:k]
}

// serve reads until the link ends.
func (l *tcpLink) serve() error {
	err := l.in.run(l)
	if l.tx.TryLock() { // else it is sent again
		sequence, news := l.acks.acked()
		l.tx.Unlock()
		l.tell(sequence, news)
	}
	l.abort()
	l.ended(err)
	l.tx.Lock()
	l.dead = true
	l.tx.Unlock()
	l.goes.Wait()
	l.tx.Lock()
	leaveAll(l.out.held)
	l.out = outgoing{}
	if l.acks.timer != nil {
		l.acks.timer.Stop()
	}
	l.tx.Unlock()
	return err
}

// A reader decodes a stream.
type reader struct {
	scratch []byte // while there is something in it
	head    []byte // a part of a header
	body    []byte // of the message that is being received, what has not come
	n       int    // bytes of it
	long    bool   // the last message was
}

const (
	// large is from how many missing bytes on a message is read to its place, without a copy.
	large = 16 << 10
	// ahead is how much is read where many messages may be, and little how much where a large
	// one is expected, most of which is then read to its place.
	ahead, little = 64 << 10, 256
)

// buffer returns where to read to. The pool has the memory while nothing comes.
func (r *reader) buffer(p *bytesPool) []byte {
	if len(r.body) >= large {
		return r.body
	}
	n := ahead
	if r.long {
		n = little
	}
	r.scratch = p.alloc(n)
	return r.scratch
}

// giveUp gives back what buffer has returned.
func (r *reader) giveUp(p *bytesPool) {
	if r.scratch != nil {
		p.back(r.scratch)
		r.scratch = nil
	}
}

func (r *reader) run(l *tcpLink) error {
	pool := l.n.bytes
	get := func() []byte { return r.buffer(pool) }
	unget := func() { r.giveUp(pool) }
	defer unget()
	for {
		n, err := l.s.ReadInto(get, unget)
		if errors.Is(err, os.ErrDeadlineExceeded) { // conclude has set it
			unget()
			if n, err = l.rest(get, unget); n == 0 && err == nil {
				err = errDrained
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return err
		}
		b := r.body
		if r.scratch != nil {
			b = r.scratch
		}
		if l.record != nil {
			l.record.Received(b[:n])
		}
		if r.scratch == nil {
			if r.body = b[n:]; len(r.body) == 0 {
				r.whole(l)
			}
			continue
		}
		err = r.take(l, b[:n])
		r.giveUp(pool)
		if err != nil {
			return err
		}
	}
}

// whole says that a message is there.
func (r *reader) whole(l *tcpLink) {
	l.n.mu.Lock()
	l.path.Fill(l.n.now(), l.id, r.n)
	l.n.unlock()
	r.body, r.n = nil, 0
}

// errDrained says why a link has ended that was drained.
var errDrained = errors.New("rds: the peer has made a new connection")

var errLinkGone = errors.New("rds: the connection was ended")

// take takes bytes in.
func (r *reader) take(l *tcpLink, b []byte) error {
	l.n.mu.Lock()
	defer func() { l.n.unlock() }()
	for len(b) > 0 {
		if len(r.body) > 0 {
			k := copy(r.body, b)
			r.body, b = r.body[k:], b[k:]
			if len(r.body) == 0 {
				l.path.Fill(l.n.now(), l.id, r.n)
				r.body, r.n = nil, 0
			}
			continue
		}
		k := min(wire.HeaderLen-len(r.head), len(b))
		r.head, b = append(r.head, b[:k]...), b[k:]
		if len(r.head) < wire.HeaderLen {
			continue
		}
		h, err := wire.ParseHeader(r.head)
		r.head = r.head[:0]
		if err != nil {
			l.path.Malformed(l.n.now(), l.id, err)
			return err
		}
		for {
			buf, verdict := l.path.Begin(l.n.now(), l.id, &h, int(h.Len))
			if verdict == machine.Dead {
				return errLinkGone
			}
			if verdict == machine.Take {
				r.long = len(buf) >= large
				if r.body, r.n = buf, len(buf); r.n == 0 {
					l.path.Fill(l.n.now(), l.id, 0)
				}
				break
			}
			// The reader would find out that the peer is gone, did it not wait. What it has not read yet is
			// sent again; but not by a peer that knows TCP's acknowledgements only, as TCP has acknowledged it.
			lost := l.lost
			if !l.path.Conn().Acknowledges() {
				lost = nil
			}
			l.n.unlock()
			var gone error
			select {
			case <-l.room:
			case <-l.over:
				gone = errLinkGone
			case <-lost:
				gone = errLinkGone
			}
			if l.n.mu.Lock(); gone != nil {
				return gone
			}
		}
	}
	return nil
}
