package rds

import (
	"net"
	"time"

	"urnic/ulp/rds/wire"
)

// tcpAcks says which messages a peer's TCP has acknowledged. Linux's RDS over TCP knows no
// other acknowledgements; a peer that says it is urnic acknowledges in headers instead.
type tcpAcks struct {
	conn    net.Conn
	left    func(net.Conn) (uint64, error) // how many written bytes are not acknowledged
	taken   uint64                         // bytes that were taken from the machine
	written uint64                         // bytes of them that TCP has taken
	arrived uint64                         // bytes of them that the peer's TCP has acknowledged
	marks   []mark                         // of messages that are not acknowledged
	timer   *time.Timer                    // that asks TCP, or nil
	waiting bool                           // it will
	delay   time.Duration                  // after which it does
}

// A mark is where a message ends.
type mark struct{ sequence, end uint64 }

// askFirst is how long after messages were written TCP is asked whether they have arrived. It is asked again after
// delays that double up to askLast while nothing more has: a peer that has stalled costs next to nothing.
const askFirst, askLast = 2 * time.Millisecond, time.Second

// sent notes a segment that was taken from the machine.
func (a *tcpAcks) sent(h *wire.Header, bytes int) {
	a.taken += uint64(bytes)
	if h.Kind().Sequenced() {
		a.marks = append(a.marks, mark{h.Sequence, a.taken})
	}
}

// wrote notes bytes that TCP has taken.
func (a *tcpAcks) wrote(bytes int) {
	a.written += uint64(bytes)
	if bytes > 0 && a.delay > askFirst {
		a.delay = 0
	}
}

// acked returns the last message that the peer's TCP has acknowledged wholly, if there is
// a new one.
func (a *tcpAcks) acked() (uint64, bool) {
	left, err := a.left(a.conn)
	if err != nil {
		return 0, false // the connection is closed: what was the last to arrive is not known
	}
	arrived := a.written - min(a.written, left)
	if arrived > a.arrived {
		a.arrived, a.delay = arrived, 0
	}
	n := 0
	for n < len(a.marks) && a.marks[n].end <= arrived {
		n++
	}
	if n == 0 {
		return 0, false
	}
	last := a.marks[n-1].sequence
	a.marks = append(a.marks[:0], a.marks[n:]...)
	return last, true
}

// ask has TCP asked what has arrived, if something has not. The caller has tx.
func (l *tcpLink) ask() {
	a := &l.acks
	if len(a.marks) == 0 || a.waiting && a.delay > 0 {
		return
	}
	a.delay = min(max(askFirst, 2*a.delay), askLast)
	a.waiting = true
	if a.timer == nil {
		a.timer = time.AfterFunc(a.delay, l.asked)
	} else {
		a.timer.Reset(a.delay)
	}
}

// asked tells the machine what has arrived.
func (l *tcpLink) asked() {
	l.tx.Lock()
	l.acks.waiting = false
	var sequence uint64
	var news bool
	if !l.dead {
		sequence, news = l.acks.acked()
		l.ask()
	}
	l.tx.Unlock()
	if l.dirty.Load() {
		l.flush() // who wanted to write meanwhile has left it to the one who had tx
	}
	l.tell(sequence, news)
}

// tell tells the machine up to which message all have arrived, if that is news.
func (l *tcpLink) tell(sequence uint64, news bool) {
	if news {
		l.n.mu.Lock()
		l.path.Acked(l.n.now(), l.id, sequence)
		l.n.unlock()
	}
}
