package rpcrdma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// A requester makes calls on a connection.
type requester struct {
	e       *endpoint
	chunks  bool // it opens memory to the responder: not in the reverse direction
	credits credits
	memory  registry

	mu      sync.Mutex
	pending map[uint32]*call   // by XID; nil for one whose caller has given up
	live    map[*call]struct{} // those that somebody waits for
	free    []*call
	ended   error
}

func newRequester(e *endpoint, asked int, chunks bool) *requester {
	q := &requester{e: e, chunks: chunks, pending: make(map[uint32]*call), live: make(map[*call]struct{})}
	q.credits.init(asked)
	q.memory = registry{strategy: e.cfg.Registration, pd: e.pd, qp: e.qp, arena: &e.mem, most: uint64(e.cfg.MaxSegment)}
	if !e.cfg.NoInvalidate && !e.cfg.NoPrivate {
		q.memory.remote = rnic.RemoteInvalidate
	}
	return q
}

// A call is one that is in flight.
type call struct {
	q    *requester
	xid  uint32
	done chan struct{} // gets a value when it is over, one way or another

	hdr      Header
	wrs      []rnic.SendWR
	scratch  []byte
	regions  []region // open to the responder
	moved    []bool   // which bulks are taken out of the call
	sinks    [][]byte // that have Write chunks
	reply    *block   // memory of the Reply chunk
	longCall *block   // memory of the Read chunk at position zero

	// What it has come to, to be read when done has got a value.
	replied bool // under requester.mu
	buffer  *receiver
	stream  []byte // of the reply, if it has come in a Send
	lengths []int  // of what was placed in the sinks
	length  int    // of the reply, in the Reply chunk
	err     error
	lost    bool // the connection has ended
}

func (q *requester) fresh(xid uint32) *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.free); n > 0 {
		c := q.free[n-1]
		q.free = q.free[:n-1]
		c.xid = xid
		return c
	}
	return &call{q: q, xid: xid, done: make(chan struct{}, 1)}
}

// recycle forgets a call that nobody waits for any more.
func (q *requester) recycle(c *call) {
	e := q.e
	select {
	case <-c.done: // told twice: by its reply, and when the connection ended
	default:
	}
	e.mem.put(c.reply)
	e.mem.put(c.longCall)
	clear(c.wrs[:cap(c.wrs)])
	clear(c.regions[:cap(c.regions)])
	*c = call{
		q: q, done: c.done, hdr: c.hdr, wrs: c.wrs[:0], scratch: c.scratch, regions: c.regions[:0],
		moved: c.moved[:0], lengths: c.lengths[:0],
	}
	q.mu.Lock()
	if len(q.free) < 16 {
		q.free = append(q.free, c)
	}
	q.mu.Unlock()
}

// do carries a call to the responder; see oncrpc.Conn.
func (q *requester) do(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
	e := q.e
	if err := e.enter(); err != nil {
		return nil, &oncrpc.LostError{Err: err}
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := q.credits.take(ctx, 1); err != nil {
		return nil, q.refused(ctx, err)
	}
	c := q.fresh(r.XID)
	defer q.recycle(c)
	places, err := q.post(ctx, c, r)
	if err != nil {
		q.credits.give(1)
		return nil, errors.Join(err, q.close(c))
	}
	defer e.sq.give(places)
	select {
	case <-c.done:
	case <-ctx.Done():
		if q.abandon(c) {
			err = context.Cause(ctx)
		}
	}
	q.mu.Lock()
	delete(q.live, c)
	q.mu.Unlock()
	return q.result(c, err)
}

// refused returns the error of a call that did not get what it needs.
func (q *requester) refused(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return &oncrpc.LostError{Err: err}
	}
	return err
}

// post plans and posts a call. It returns how many places of the send queue it takes, or
// an error if nothing is posted.
func (q *requester) post(ctx context.Context, c *call, r *oncrpc.Request) (places int, err error) {
	if err := c.plan(r); err != nil {
		return 0, fmt.Errorf("rpcrdma: call %08x can't be sent: %w", r.XID, err)
	}
	places = len(c.wrs) + len(c.regions)
	if err := q.e.sq.take(ctx, places); err != nil {
		q.e.unsent(&c.wrs[len(c.wrs)-1])
		return 0, q.refused(ctx, err)
	}
	q.mu.Lock()
	_, again := q.pending[c.xid]
	switch {
	case q.ended != nil:
		err = &oncrpc.LostError{Err: q.ended}
	case again:
		err = ErrXID
	default:
		q.pending[c.xid], q.live[c] = c, struct{}{}
	}
	others := len(q.live)
	q.mu.Unlock()
	if err != nil {
		q.e.sq.give(places)
		q.e.unsent(&c.wrs[len(c.wrs)-1])
		return 0, err
	}
	q.e.send(others, c.wrs...) // if it fails, the connection ends, and the call with it
	return places, nil
}

// close closes the regions of a call that was never posted.
func (q *requester) close(c *call) error {
	var errs []error
	for i := range c.regions {
		c.regions[i].open = false
		c.regions[i].out = false
		errs = append(errs, q.memory.release(&c.regions[i], false))
	}
	return errors.Join(errs...)
}

// abandon gives a call up whose caller waits no longer, and returns when the responder can
// reach its memory no more. It keeps its credit until the reply comes: the responder
// still has the call. It reports whether it was without a reply.
//
// If the responder then uses the memory, which it can't know to be closed, the connection
// ends (RFC 8166 §8.1.4).
func (q *requester) abandon(c *call) bool {
	q.mu.Lock()
	abandoned := !c.replied && !c.lost
	var closing bool
	if abandoned {
		q.pending[c.xid] = nil
		closing = q.invalidate(c)
	}
	q.mu.Unlock()
	if abandoned && !closing {
		return true
	}
	// The other side may hold up an invalidation by taking nothing of what is sent.
	patience := time.AfterFunc(q.e.cfg.Patience, func() { q.e.fail(ErrHeld) })
	<-c.done
	patience.Stop()
	return abandoned
}

// invalidate posts requests that close the regions of a call, which is done when they are
// carried out. It reports whether there are any. The caller holds mu.
func (q *requester) invalidate(c *call) bool {
	wrs := c.invalidations()
	if len(wrs) == 0 {
		return false
	}
	last := &wrs[len(wrs)-1]
	last.ID, last.Flags = q.e.op(c), 0
	q.e.send(1, wrs...) // if it fails, the connection ends, and the call with it
	return true
}

// completed implements completer: the regions are closed.
func (c *call) completed(*rnic.WC) {
	for i := range c.regions {
		c.regions[i].open = false
	}
	c.over()
}

// over notifies whoever waits for the call, once.
func (c *call) over() {
	select {
	case c.done <- struct{}{}:
	default:
	}
}

// replied takes a message that is a reply, or would be one: b is the receive that it has
// come in, h its header. "If errors are detected in the RPC-over-RDMA header of an RPC
// Reply message, a Requester MUST silently discard the message" (RFC 8166 §4.5).
func (q *requester) replied(b *receiver, h *Header, stream []byte, err error, invalidated stag.STag) {
	e := q.e
	q.mu.Lock()
	c, known := q.pending[h.XID]
	if invalidated != 0 && (c == nil || !c.invalidated(invalidated)) {
		q.mu.Unlock()
		e.fail(ErrInvalidated)
		return
	}
	if err == nil && c != nil {
		err = c.accept(h, stream)
	}
	if err != nil || !known {
		q.mu.Unlock()
		e.stats.discarded.Add(1)
		e.log.Debug("a reply is discarded", "xid", h.XID, "error", err)
		e.recv.put(b)
		e.repost()
		return
	}
	delete(q.pending, h.XID)
	closing := false
	if c != nil {
		c.replied = true
		if h.Proc == Msg {
			c.buffer, c.stream = b, stream
		}
		closing = q.invalidate(c)
	} else {
		e.stats.late.Add(1)
	}
	q.mu.Unlock()
	e.repost()
	q.credits.grant(h.Credits)
	q.credits.give(1)
	if c == nil || h.Proc != Msg {
		e.recv.put(b)
	}
	if c != nil && !closing {
		c.over()
	}
}

// invalidated notes that the responder has closed a region. It reports whether it is
// one of the call.
func (c *call) invalidated(s stag.STag) bool {
	for i := range c.regions {
		if r := &c.regions[i]; r.open && r.tag == s {
			r.open = false
			return true
		}
	}
	return false
}

// What can be wrong with a reply.
var (
	errReadList  = errors.New("a reply has no Read list (RFC 8166 §4.3.1)")
	errOthers    = errors.New("its chunks are not those of the call (RFC 8166 §3.4.6, §4.3.3)")
	errXIDs      = errors.New("the header has another XID than the stream (RFC 8166 §4.2.1)")
	errTwo       = errors.New("both the message and the Reply chunk hold a stream")
	errNoReply   = errors.New("there is no Reply chunk that holds the stream (RFC 8166 §4.2.4)")
	errPlacement = errors.New("a chunk is not filled from its beginning (RFC 8166 §3.4.6)")
)

// accept notes what a reply says, or returns why it is none.
func (c *call) accept(h *Header, stream []byte) error {
	if h.Proc == Error {
		c.err = &RefusedError{XID: h.XID, Code: h.Err, Low: h.Low, High: h.High}
		return nil
	}
	if len(h.Read) > 0 {
		return errReadList
	}
	if len(h.Write) > 0 && len(h.Write) != len(c.hdr.Write) {
		return errOthers
	}
	c.lengths = c.lengths[:0]
	for i, chunk := range h.Write {
		n, err := placed(chunk, c.hdr.Write[i])
		if err != nil {
			return err
		}
		c.lengths = append(c.lengths, n)
	}
	reply, err := 0, error(nil)
	if h.HasReply {
		if reply, err = placed(h.Reply, c.hdr.Reply); err != nil {
			return err
		}
	}
	if h.Proc == Msg {
		switch {
		case reply > 0:
			return errTwo
		case len(stream) < 4 || binary.BigEndian.Uint32(stream) != h.XID:
			return errXIDs
		}
		return nil
	}
	if reply < 4 {
		return errNoReply
	}
	c.length = reply
	return nil
}

// placed returns how many bytes a responder has written to a chunk that was offered to
// it: "contiguously and in segment array order" (RFC 8166 §3.4.6).
func placed(chunk, offered []Segment) (n int, err error) {
	if len(chunk) != len(offered) {
		return 0, errOthers
	}
	full := true
	for i, s := range chunk {
		o := &offered[i]
		switch {
		case s.Handle != o.Handle || s.Offset != o.Offset || s.Length > o.Length:
			return 0, errOthers
		case !full && s.Length > 0:
			return 0, errPlacement
		}
		full = s.Length == o.Length
		n += int(s.Length)
	}
	return n, nil
}

// lost ends all calls, as the connection has ended. No peer can reach their memory any
// more.
func (q *requester) lost(err error) {
	q.credits.close(err)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = err
	for c := range q.live {
		c.lost = true
		c.over()
	}
	clear(q.pending)
}

// result returns what has become of a call that is over, when its memory is the
// caller's again.
func (q *requester) result(c *call, err error) (*oncrpc.Message, error) {
	e := q.e
	for i := range c.regions {
		if err := q.release(&c.regions[i], c.lost); err != nil {
			// "The Requester MUST close the connection to protect that memory" (RFC 8166
			// §4.5.4).
			e.fail(err)
			<-e.done
			c.lost = true
		}
	}
	if err == nil {
		err = c.err
	}
	if err == nil && c.lost && !c.replied {
		err = &oncrpc.LostError{Err: e.cause()}
	}
	if err == nil && c.stream == nil && binary.BigEndian.Uint32(c.reply.mem) != c.xid {
		err = fmt.Errorf("rpcrdma: the reply to call %08x can't be used: %w", c.xid, errXIDs)
	}
	if err != nil {
		if c.buffer != nil {
			e.recv.put(c.buffer)
		}
		return nil, err
	}
	m := &oncrpc.Message{Stream: c.stream}
	if b := c.buffer; b != nil {
		m.Free = func() { e.recv.put(b) }
	} else {
		b := c.reply
		c.reply = nil
		m.Stream, m.Free = b.mem[:c.length], func() { e.mem.put(b) }
	}
	m.Moved = c.results()
	return m, nil
}

// results says where the results are that have sinks. "A Responder does not reduce a
// DDP-eligible result data item into an available Write chunk" (RFC 8166 §6.1): a chunk
// that is unused, or missing in the reply, is one of a result of no bytes, or of
// none; whether it is, shows when the results are decoded.
func (c *call) results() []xdr.Moved {
	if len(c.sinks) == 0 {
		return nil
	}
	moved := make([]xdr.Moved, len(c.sinks))
	for i, sink := range c.sinks {
		n := 0
		if len(c.lengths) > 0 {
			n = c.lengths[i]
		}
		moved[i] = xdr.Moved{Position: xdr.Next, Data: sink[:n:n]}
		if len(sink) == 0 { // it had an empty chunk, which is none to be used (§4.3.2.3)
			moved[i].Position = xdr.Inline
		}
	}
	return moved
}

// release closes a region of a call that is over, if it is not closed yet. The
// other side may hold that up.
func (q *requester) release(r *region, ended bool) error {
	if !r.open || ended {
		return q.memory.release(r, ended)
	}
	patience := time.AfterFunc(q.e.cfg.Patience, func() { q.e.fail(ErrHeld) })
	defer patience.Stop()
	return q.memory.release(r, ended)
}
