//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"slices"

	"urnic/internal/door"
	"urnic/internal/dropin/ack"
	"urnic/rdmap"
	"urnic/rnic"
)

// With the transport ethernet, a request completes for the program when the peer has
// acknowledged it, as on InfiniBand: see package ack. To package rnic, Sends and Writes are
// unsignaled. What is signaled there is the program's Reads and atomics, and the Reads of
// no bytes that acknowledge what is before them. So a completion queue fires when there is
// a completion for the program, and not when the lower layer has taken something.

// extraWRs returns how many requests a send queue of package rnic holds beside the program's:
// the Reads that acknowledge, and one before the queue stops or the connection is closed.
func (e *Engine) extraWRs() int {
	if e.settings.acknowledges() {
		return extraReads + 1
	}
	return 0
}

// extraReads is how many Reads that acknowledge may be outstanding.
const extraReads = 2

// An acknowledger is what a queue pair has for that. The mu of the sendBatch guards it.
type acknowledger struct {
	m   ack.Machine
	how acknowledgment

	requests []ack.Request // of the batch that is being posted
	noReads  bool          // the program has said that it has none, and those that the peer takes are the library's
	own      rnic.WC       // the completion with a status of its own that package rnic has made
	cause    error         // why the stream has ended, once the machine has been told
}

// An acknowledgment is how requests of a queue pair are acknowledged.
type acknowledgment uint8

// The acknowledgments.
const (
	notYet  acknowledgment = iota // there is no connection
	byRead                        // by a Read of no bytes
	byWrite                       // the peer takes no Reads: by a Write of no bytes, which completes with what is before it, as on iWARP
)

// acknowledges reports whether completions are InfiniBand's.
func (s *settings) acknowledges() bool { return s.ethernet && !s.strict }

// depthWithAck returns the IRD or ORD, as rnic.ConnParam has them, with which a peer can be
// asked to acknowledge besides n Reads and atomics of the program.
func (e *Engine) depthWithAck(n int) int {
	if !e.settings.acknowledges() {
		return n
	}
	return min(max(n, 0)+extraReads, rnic.MaxDepth)
}

// told returns what a program gets to know of a depth that was agreed on, of which it has asked for
// so much: the library may have asked for more.
func (q *qp) told(agreed, asked uint32) uint32 {
	if q.send.acks == nil {
		return agreed
	}
	return min(agreed, asked)
}

// request returns what the machine is to know of a request.
func (w *acknowledger) request(t *rnic.SendWR) ack.Request {
	r := ack.Request{ID: t.ID, Opcode: opcodes[t.Op], Signaled: t.Flags&rnic.FlagUnsignaled == 0, Length: total(t.SGL) + uint32(len(t.Inline))}
	switch t.Op {
	case rnic.OpRead, rnic.OpFetchAdd, rnic.OpCmpSwap:
		r.Kind = ack.Read
	case rnic.OpSend, rnic.OpSendInvalidate:
		r.Messages = 1
	case door.OpSendImmediate: // Immediate Data, and the Send
		r.Messages = 2
	case rnic.OpWriteImmediate: // Immediate Data behind the Write
		r.Messages = 1
	case rnic.OpLocalInvalidate, rnic.OpBindWindow:
		r.Kind = ack.Local
	default:
	}
	switch t.Op {
	case rnic.OpRead, rnic.OpFetchAdd, rnic.OpCmpSwap, rnic.OpWrite, rnic.OpWriteImmediate:
		r.STag, r.TO, r.Size = uint32(t.Remote.STag), t.Remote.TO, uint64(r.Length)
	default:
	}
	return r
}

// room reports whether the send queue takes n requests beside those that it has, as the
// program sees it. The caller holds the batch's mu.
func (q *qp) room(n int) bool {
	a := q.send.acks
	if a == nil { // package rnic says it
		return true
	}
	limit := int(q.init.MaxSendWR)
	if a.m.Len()+n <= limit {
		return true
	}
	a.m.Trim(a.m.Oldest(door.Outstanding(q.verbs)))
	return a.m.Len()+n <= limit
}

// hand posts the first n requests of the batch, or with all set either these or none. The
// caller holds the batch's mu.
func (q *qp) hand(n int, all bool) error {
	b, a := &q.send, q.send.acks
	post := q.verbs.PostSend
	if all {
		post = q.verbs.PostSendAll
	}
	at := q.engine.timelineNow()
	if a == nil {
		err := post(b.wrs[:n]...)
		q.noteSends(at, n, all, err)
		return err
	}
	before := a.m.Mark()
	a.requests = a.requests[:0]
	for i := range n {
		t := &b.wrs[i]
		r := a.request(t)
		a.requests = append(a.requests, r)
		if t.ID = a.m.Post(r); !a.m.Tells() {
			t.Flags |= rnic.FlagUnsignaled
		}
	}
	last := n
	if q.mayAsk() && a.m.Wants() {
		if last++; last > len(b.wrs) {
			b.grow(last)
		}
		a.ask(&b.wrs[n])
	}
	err := post(b.wrs[:last]...)
	q.noteSends(at, last, all, err)
	if err == nil {
		return nil
	}
	a.m.Withdraw(before)
	refused, posted := (*rnic.WRError)(nil), 0
	if errors.As(err, &refused) && !all {
		posted = min(refused.Index, n)
	}
	for i := range posted {
		a.m.Post(a.requests[i])
	}
	q.acknowledge()
	if refused != nil && refused.Index < n {
		refused.ID = a.requests[refused.Index].ID
	} else if posted == n { // only what is to acknowledge was refused
		return nil
	}
	return err
}

// handOne posts one request. The caller does not hold the batch's mu.
func (q *qp) handOne(wr *rnic.SendWR) error {
	b := &q.send
	b.mu.Lock()
	defer b.mu.Unlock()
	if !q.room(1) {
		return fmt.Errorf("post send: QP 0x%x: %w", q.num, rnic.ErrQueueFull)
	}
	if len(b.wrs) == 0 {
		b.grow(1)
	}
	b.wrs[0] = *wr
	return q.hand(1, false)
}

// mayAsk reports whether it is known how the peer acknowledges. The caller holds the batch's
// mu.
func (q *qp) mayAsk() bool {
	a := q.send.acks
	if a.how != notYet {
		return true
	}
	p, connected := q.verbs.Params()
	switch {
	case !connected:
		return false
	case p.ORD > 0:
		a.how = byRead
		a.noReads = p.ORD <= extraReads && q.noDepth.Load()
		if uint32(p.ORD) >= q.asked.ord.Load()+extraReads { // else it would be one of the program's
			a.m.Stagger(max(int(q.init.MaxSendWR)/2, 1))
		}
	default:
		a.how = byWrite
		q.engine.log.printf(logWarning, "QP 0x%x: the peer accepts no RDMA Reads (its IRD is 0): requests complete when TCP has accepted them, not when the peer has", q.num)
	}
	return true
}

// allows refuses Reads and atomics of a program that has said that it has none: those that may
// be outstanding are the library's. The caller holds the batch's mu.
func (q *qp) allows(t *rnic.SendWR) error {
	a := q.send.acks
	if a == nil || t.Op != rnic.OpRead && t.Op != rnic.OpFetchAdd && t.Op != rnic.OpCmpSwap {
		return nil
	}
	if q.noDepth.Load() && q.met.Load() || q.mayAsk() && a.noReads {
		return errNoDepth
	}
	return nil
}

var errNoDepth = errors.New("a Read or an atomic, of which none may be outstanding: set max_rd_atomic or initiator_depth")

// ask makes t the request that is acknowledged together with all before it.
func (w *acknowledger) ask(t *rnic.SendWR) {
	*t = rnic.SendWR{ID: w.m.Ask(), Op: rnic.OpRead}
	if w.how == byWrite {
		t.Op = rnic.OpWrite
	}
}

// acknowledge asks the peer for an acknowledgment if one is wanted. The caller holds the
// batch's mu.
func (q *qp) acknowledge() {
	if q.send.acks.m.Wants() && q.mayAsk() && q.verbs.State() == rnic.RTS { // else over is told
		q.postAsk()
	}
}

// postAsk posts what is acknowledged together with all before it. The caller holds the
// batch's mu.
func (q *qp) postAsk() {
	b, a := &q.send, q.send.acks
	if len(b.wrs) == 0 {
		b.grow(1)
	}
	before := a.m.Mark()
	a.ask(&b.wrs[0])
	at := q.engine.timelineNow()
	if err := q.verbs.PostSend(b.wrs[:1]...); err != nil { // the stream is over, which is told in other ways
		a.m.Withdraw(before)
		q.engine.log.printf(logDebug, "%v", err)
		return
	}
	q.noteHidden(at, &b.wrs[0])
}

// linked is notified that there is a connection: requests may have been posted before. The
// caller holds no lock.
func (q *qp) linked() {
	q.engine.timeline.Connected(q.verbs)
	if q.send.acks == nil {
		return
	}
	q.send.mu.Lock()
	defer q.send.mu.Unlock()
	q.acknowledge()
}

// lastRead posts a Read of no bytes before the queue stops or the connection is closed, if
// there is one. Its answer comes behind what the peer has sent before, with the peer's own
// Reads of that kind, which would find a connection that is being closed. The caller holds
// no lock.
func (q *qp) lastRead() {
	a := q.send.acks
	if a == nil || q.verbs.State() != rnic.RTS || q.state.Load() == qpsSQD {
		return
	}
	b := &q.send
	b.mu.Lock()
	defer b.mu.Unlock()
	if !q.mayAsk() || a.how != byRead {
		return
	}
	if len(b.wrs) == 0 {
		b.grow(1)
	}
	before := a.m.Mark()
	b.wrs[0] = rnic.SendWR{ID: a.m.Skip(), Op: rnic.OpRead, Flags: rnic.FlagUnsignaled}
	at := q.engine.timelineNow()
	if err := q.verbs.PostSend(b.wrs[:1]...); err != nil {
		a.m.Withdraw(before)
		return
	}
	q.noteHidden(at, &b.wrs[0])
}

// beforeStop asks for an acknowledgment of all that was posted, before the queue stops: none
// could be asked for then. The caller holds no lock.
func (q *qp) beforeStop() {
	a := q.send.acks
	if a == nil {
		return
	}
	q.send.mu.Lock()
	defer q.send.mu.Unlock()
	if a.m.Waits() && q.mayAsk() {
		q.postAsk()
	}
}

// stopped is notified that a queue which was stopped has completed all requests that were begun.
// For those that nothing can acknowledge before it continues, that the lower layer has taken
// them must do. The caller holds no lock.
func (q *qp) stopped() {
	a, c := q.send.acks, q.engine.cqs.get(q.init.SendCQ)
	if a == nil || c == nil {
		return
	}
	c.mu.Lock()
	q.send.mu.Lock()
	if n := door.Outstanding(q.verbs); a.m.Waits() || n > 0 {
		a.m.Answered(a.m.Oldest(n) - 1)
		q.emit(c)
	}
	q.send.mu.Unlock()
	due := len(c.stash) > 0
	c.mu.Unlock()
	if due {
		door.Fire(c.verbs)
	}
}

// hearSend is notified that package rnic has completed a request of the send queue. The caller
// holds the mu of the completion queue.
func (q *qp) hearSend(c *completionQueue, wc *rnic.WC) {
	b, a := &q.send, q.send.acks
	b.mu.Lock()
	defer b.mu.Unlock()
	if wc.Status != rnic.StatusSuccess {
		own := wc.Status != rnic.StatusFlushed
		if _, is := a.m.Failed(wc.ID, own); is && own {
			a.own = *wc
		}
		c.conclude(q)
		return
	}
	a.m.Answered(wc.ID)
	q.emit(c)
	q.acknowledge()
}

// conclude notes that the stream of a queue pair is over: once package rnic has nothing
// more, what is left completes. The caller holds mu.
func (c *completionQueue) conclude(q *qp) {
	if !slices.Contains(c.due, q) {
		c.due = append(c.due, q)
	}
}

// settle completes what is left on streams that are over. The caller holds mu.
func (c *completionQueue) settle() {
	for len(c.due) > 0 {
		c.settleOne(c.due[0])
	}
}

// settleOne is settle for one queue pair, if its stream is over. The caller holds mu.
func (c *completionQueue) settleOne(q *qp) {
	if at := slices.Index(c.due, q); at >= 0 {
		c.due = slices.Delete(c.due, at, at+1)
		q.end(c)
	}
}

// end has the machine judge the end of the stream. The caller holds the mu of the completion
// queue.
func (q *qp) end(c *completionQueue) {
	a := q.send.acks
	q.send.mu.Lock()
	defer q.send.mu.Unlock()
	a.cause = q.verbs.Err()
	a.m.End(q.verdict(a.cause))
	q.emit(c)
}

// emit gives the program what has completed. The caller holds the mu of the completion queue
// and that of the batch.
func (q *qp) emit(c *completionQueue) {
	a := q.send.acks
	for {
		done, some := a.m.Next()
		if !some {
			return
		}
		out := WC{ID: done.ID, Opcode: done.Opcode, QPN: q.num}
		tell := true
		switch done.Outcome {
		case ack.Success:
			out.ByteLen = done.Length
		case ack.Own:
			wc := a.own
			wc.ID = done.ID
			q.explain(&wc, &out, &done)
		case ack.Blamed:
			tell = q.tellBlamed(c, &done, &out)
		case ack.Flushed:
			tell = q.flushed(c, &out, a.cause)
		}
		if tell {
			c.put(&out)
		}
	}
}

// tellBlamed says what has gone wrong with the request because of which the stream has
// ended, or reports false if the program is not to hear of it yet.
func (q *qp) tellBlamed(c *completionQueue, done *ack.Completion, out *WC) bool {
	a := q.send.acks
	if _, refused := errors.AsType[*rdmap.PeerError](a.cause); refused {
		q.explain(&rnic.WC{ID: done.ID, Status: rnic.StatusRemoteTermination, Cause: a.cause}, out, done)
		return true
	}
	if q.met.Load() {
		return q.flushed(c, out, a.cause) // it fails later, see withholds
	}
	out.Status = wcRetryExceeded
	q.engine.log.printf(logWarning, "QP 0x%x: request %d completes with status %d: the peer is not there, or not any more: %v", q.num, out.ID, out.Status, a.cause)
	return true
}

// over is notified that the connection has ended. Requests that package rnic has completed, and
// that nothing acknowledges, may be what the peer has refused; those that are signaled wait
// for an end. The caller holds no lock.
func (q *qp) over() {
	a, c := q.send.acks, q.engine.cqs.get(q.init.SendCQ)
	if a == nil || c == nil {
		return
	}
	c.mu.Lock()
	q.send.mu.Lock()
	_, refused := errors.AsType[*rdmap.PeerError](q.verbs.Err())
	due := (refused && a.m.Len() > 0 || a.m.Waits()) && door.Outstanding(q.verbs) == 0
	q.send.mu.Unlock()
	if due {
		c.conclude(q)
	}
	c.mu.Unlock()
	if due {
		door.Fire(c.verbs)
	}
}

// forgetSends makes the send queue as new.
func (q *qp) forgetSends() {
	a := q.send.acks
	if a == nil {
		return
	}
	q.send.mu.Lock()
	defer q.send.mu.Unlock()
	a.m.Reset()
	a.how, a.noReads, a.own, a.cause = notYet, false, rnic.WC{}, nil
}
