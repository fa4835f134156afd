package rds

import (
	"net"
	"time"

	"urnic/ulp/rds/wire"
)

// tcpAcks says which messages a peer's TCP has acknowledged. Linux's RDS over TCP knows no
// other acknowledgements; a peer that tells its generation acknowledges in headers instead.
type tcpAcks struct {
	conn    net.Conn
	taken   uint64 // bytes that were taken from the machine
	written uint64 // bytes of them that TCP has taken
	marks   []mark // of messages that are not acknowledged
	waiting bool   // a timer will ask TCP
}

// A mark is where a message ends.
type mark struct{ sequence, end uint64 }

// askTCP is how long after messages were written TCP is asked whether they have arrived.
const askTCP = 2 * time.Millisecond

// sent notes a segment that was taken from the machine.
func (a *tcpAcks) sent(h *wire.Header, bytes int) {
	a.taken += uint64(bytes)
	if h.Kind().Sequenced() {
		a.marks = append(a.marks, mark{h.Sequence, a.taken})
	}
}

// acked returns the last message that the peer's TCP has acknowledged wholly, if there is
// a new one.
func (a *tcpAcks) acked() (uint64, bool) {
	left, err := unacknowledged(a.conn)
	if err != nil {
		return 0, false // the connection is closed: what was the last to arrive is not known
	}
	arrived := a.written - min(a.written, left)
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

// ask asks TCP what has arrived, and has it asked again while something has not. The
// caller has tx.
func (l *tcpLink) ask() {
	if len(l.acks.marks) == 0 || l.acks.waiting {
		return
	}
	l.acks.waiting = true
	time.AfterFunc(askTCP, l.asked)
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
