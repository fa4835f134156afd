package machine

import (
	"cmp"
	"slices"
)

// An Operation is an RDMA operation that the carrier carries out before a message. It
// is for one call of Send.
//
// The peer answers a Read and an atomic. Their message, and what the same socket has sent
// to the same port behind it, wait for the answer; messages of other pairs of sockets pass
// by. The message of a Write is sent at once behind it.
//
// An operation ends with a Settled effect. It has no error if the answer has arrived, or
// if the peer has acknowledged what followed the Write.
type Operation struct {
	Arg      any  // the carrier's
	Answered bool // the peer answers: a Read or an atomic
	Once     bool // it must not be carried out twice: an atomic
	Silent   bool // no message follows

	msg     *message
	key     pair // of the message
	link    Link // that it was issued on last
	issued  bool // on the present link
	done    bool // answered
	doomed  bool // it is not issued again
	settled bool // its end was reported
	tries   int  // how often it was issued
}

// maxTries is how often an operation is issued, each time on another link. An operation
// that breaks each link must end, even if nothing shows that it is to blame; links that
// are cut by chance must not end it.
const maxTries = 100

// A pair is a socket and the port that it sends to.
type pair struct {
	socket *Socket
	dest   uint16
}

func (msg *message) pair() pair { return pair{msg.socket, msg.h.DestPort} }

// awaits reports whether the message waits for an answer.
func (msg *message) awaits() bool { return msg.op != nil && msg.op.Answered && !msg.op.done }

// unissued reports whether the message has an operation that must be issued before it.
func (msg *message) unissued() bool { return msg.op != nil && !msg.op.issued && !msg.op.done }

// postpones reports whether the operation of a message, and all behind it, have to wait: until it is
// known that the peer has not restarted, as cookies are of a life; and, if the operation was issued on
// an earlier link, what the peer had received there.
func (p *Path) postpones(msg *message) bool {
	return msg.unissued() && !msg.gone && (!p.shaken || msg.h.Sequence != 0 && !p.believed)
}

// Doomed reports whether the operation was issued on a link that was lost, and can't be repeated.
func (op *Operation) Doomed() bool { return op.doomed }

// over reports whether nothing more has to be sent: for a silent operation that is answered.
func (msg *message) over() bool { return msg.op != nil && msg.op.Silent && msg.op.done }

// issue builds a segment with the operation of the current message.
func (p *Path) issue(s *Segment) {
	msg := p.current
	op := msg.op
	op.issued, op.link = true, p.link
	op.tries++
	p.conn.m.counters.Operations++
	*s = Segment{Op: op}
	switch {
	case op.Answered:
		p.current = nil // it is in its line
	case op.Silent:
		p.sentWhole()
		p.confirm = true
	}
}

// line puts a message behind those of its pair that wait for answers, if there are any, or
// if it waits itself. It reports whether it has.
func (p *Path) line(msg *message) bool {
	key := msg.pair()
	line := p.lines[key]
	switch {
	case line == nil && !msg.awaits():
		return false
	case line == nil:
		if p.lines == nil {
			p.lines = map[pair]*fifo[*message]{}
		}
		line = &fifo[*message]{}
		p.lines[key] = line
	}
	line.push(msg)
	return true
}

// advance sends the messages of a line that no longer wait for an answer.
func (p *Path) advance(key pair) {
	line := p.lines[key]
	if line == nil {
		return
	}
	for line.len() > 0 && (line.first().gone || !line.first().awaits()) {
		msg := line.pop()
		switch {
		case msg.gone:
			p.conn.m.finish(msg)
		case msg.over():
			msg.gone = true
			p.conn.m.finish(msg)
		default:
			p.ready.push(msg)
		}
	}
	if line.len() == 0 {
		delete(p.lines, key)
	}
	p.transmit()
}

// waiting returns the messages that wait for answers, and those that have and are not sent.
func (p *Path) waiting() []*message {
	all := slices.Clone(p.ready.all())
	n := len(all)
	for _, line := range p.lines {
		all = append(all, line.all()...)
	}
	slices.SortFunc(all[n:], func(a, b *message) int { return cmp.Compare(a.id, b.id) })
	return all
}

// Done reports how an operation of a link has ended: the answer has arrived, or, with an error, it
// has failed. It counts also when the link is lost, until the operation is issued on another one.
func (p *Path) Done(now Time, link Link, op *Operation, err error) {
	m := p.conn.m
	m.at(now)
	msg := op.msg
	if msg == nil || op.link != link || op.done {
		return
	}
	switch {
	case err != nil && !msg.gone:
		m.lost(msg, err)
		if p.current == msg && p.offset == 0 {
			p.current = nil
			m.finish(msg)
		}
	case err == nil && !op.Answered:
		return // acknowledgements tell
	default:
		op.done, op.doomed = true, false
		m.settle(msg, nil)
	}
	p.advance(op.key)
}

// beginConfirm makes a ping behind silent operations, which asks for an acknowledgement.
func (p *Path) beginConfirm() bool {
	p.confirm = false
	return p.ping() != nil && p.beginMessage()
}

// confirmed notes that the peer has acknowledged on this link: it tells what it had
// received on those before.
func (p *Path) confirmed() {
	if !p.believed {
		p.believed = true
		p.transmit()
	}
}

// settle says how the operation of a message has ended.
func (m *Machine) settle(msg *message, err error) {
	if op := msg.op; op != nil && !op.settled {
		op.settled = true
		if err != nil {
			m.counters.OperationsFailed++
		}
		m.emit(Effect{Kind: Settled, Op: op, Err: err})
	}
}

// bury drops the messages whose operations can't be issued again after a link, and those before
// it. They wait for its end, as by then the owner may know why they have failed.
func (p *Path) bury(link Link) {
	if !p.doomed {
		return
	}
	p.doomed = false
	for _, msg := range p.queue.all() {
		switch {
		case msg.op == nil || !msg.op.doomed:
		case msg.op.link <= link:
			p.conn.m.lost(msg, ErrOperation)
		default:
			p.doomed = true
		}
	}
}

// again prepares an operation for the next link. It reports false if it must not be issued again, so
// that its message is lost. A Read is repeated; an atomic is not. A Write is repeated if the peer
// reports on the next link what it has received: once the message behind the Write has arrived, the
// memory must not be written any more. A peer that sends its generation does so; Linux does not.
func (op *Operation) again(c *Conn) bool {
	switch {
	case !op.issued || op.done:
		return true
	case op.Once || op.tries >= maxTries || !op.Answered && c.generation == 0:
		op.doomed = true
		return false
	}
	op.issued = false
	return true
}
