package rpcrdma

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// IDs of work requests: those of receives name their buffer; those of the send queue
// name what is to be told, or are 0.
const recvID = 1 << 63

// A completer is notified how a work request of the send queue has ended that has asked for
// it. It must not wait.
type completer interface{ completed(wc *rnic.WC) }

// An endpoint is one end of a connection, which makes calls, carries them out, or both.
// One goroutine takes all completions.
type endpoint struct {
	cfg  Config
	dev  *rnic.Device
	pd   *rnic.PD // this connection's alone: no other one reaches its memory (RFC 8166 §8.1.1)
	cq   *rnic.CQ
	qp   *rnic.QP
	mem  arena
	recv receivers
	sq   share // places of the send queue
	out  poster
	log  *slog.Logger

	calls *requester // calls that this side makes, or nil
	serve *responder // calls that the other side makes, or nil

	most       int  // the longest message that may be sent: this direction's inline threshold
	sgl        int  // entries of an SGL
	inline     int  // the longest message that is copied when it is posted
	receives   int  // the longest message that may come: the other direction's
	invalidate bool // both sides know remote invalidation

	local, remote net.Addr
	netid         string

	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it is of no use
	gone   chan struct{} // closed when nothing of it is left
	users  sync.WaitGroup

	mu    sync.Mutex
	err   error // why it has ended, or is ending
	ops   []completer
	spare []uint64 // indexes of ops

	hdr   Header // of the message that is looked at
	stats counters
}

// sendQueue returns how many places the send queue has: for the longest call that the
// limits allow, several times, and an answer to each call beside them.
func sendQueue(cfg *Config, most int) int {
	longest := cfg.Limits.ReadSegments + cfg.Limits.Segments
	return min(2*(longest+8*(cfg.Credits+cfg.ReverseCredits)), most)
}

// newEndpoint makes the objects of a connection, with its receives posted: they are there
// before anything can arrive (RFC 8166 §2.3.2).
func newEndpoint(dev *rnic.Device, cfg Config) (e *endpoint, err error) {
	e = &endpoint{cfg: cfg, dev: dev, log: cfg.Logger, done: make(chan struct{}), gone: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, e.release())
		}
	}()
	if e.pd, err = dev.AllocPD(); err != nil {
		return e, err
	}
	receives, sends := cfg.Credits+cfg.ReverseCredits+1, sendQueue(&cfg, dev.Attr().MaxWR)
	e.sgl = min(8, dev.Attr().MaxSGE)
	e.inline = min(rnic.MaxInline, dev.Attr().MaxInline)
	if e.cq, err = dev.CreateCQ(rnic.CQAttr{Entries: receives + sends}); err != nil {
		return e, err
	}
	e.qp, err = e.pd.CreateQP(rnic.QPAttr{
		SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: sends, MaxRecvWR: receives, MaxInline: e.inline, MaxSGE: e.sgl,
	})
	if err != nil {
		return e, err
	}
	e.out.postAll = e.qp.PostSendAll
	e.sq.limit = sends / 2 // the rest is for what is not waited for
	e.mem.init(e.pd, rnic.LocalWrite|rnic.BindWindow, max(0, cfg.MaxIdle))
	e.recv = receivers{arena: &e.mem, size: cfg.Receive}
	for range receives {
		if err := e.post1(); err != nil {
			return e, err
		}
	}
	return e, nil
}

// post1 posts one receive.
func (e *endpoint) post1() error {
	b, err := e.recv.get()
	if err != nil {
		return err
	}
	if err := e.qp.PostRecv(rnic.RecvWR{ID: b.id, SGL: []rnic.SGE{b.sge(0, len(b.mem))}}); err != nil {
		e.recv.put(b)
		return err
	}
	return nil
}

// repost posts a receive in place of one that a message has taken. If there can't be
// one, the connection is of no use any more.
func (e *endpoint) repost() {
	if err := e.post1(); err != nil {
		e.fail(err)
	}
}

// settle notes what the two sides have said of themselves: what a peer has not said is
// 1,024 bytes (RFC 8797 §4.2, §5.1).
func (e *endpoint) settle(peer []byte) {
	p, _ := FindPrivate(peer)
	own := Private{Invalidate: !e.cfg.NoInvalidate, Send: e.cfg.Send, Receive: e.cfg.Receive}
	if e.cfg.NoPrivate {
		own = Private{Send: DefaultInline, Receive: DefaultInline}
	}
	e.most, e.receives = min(own.Send, p.Receive), min(own.Receive, p.Send)
	e.invalidate = own.Invalidate && p.Invalidate
}

// addresses notes the addresses of the connection, and its network identifier (RFC 8166
// §9).
func (e *endpoint) addresses() {
	e.local, e.remote, e.netid = e.qp.LocalAddr(), e.qp.RemoteAddr(), "rdma"
	if t, ok := e.local.(*net.TCPAddr); ok && t.IP.To4() == nil && t.IP.To16() != nil {
		e.netid = "rdma6"
	}
}

// op returns the ID of work requests whose completion c is told.
func (e *endpoint) op(c completer) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.spare); n > 0 {
		i := e.spare[n-1]
		e.spare = e.spare[:n-1]
		e.ops[i] = c
		return i + 1
	}
	e.ops = append(e.ops, c)
	return uint64(len(e.ops))
}

// told returns whom a completion is for, and forgets it.
func (e *endpoint) told(id uint64) completer {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.ops[id-1]
	if c != nil {
		e.ops[id-1] = nil
		e.spare = append(e.spare, id-1)
	}
	return c
}

// room returns memory for a message of n bytes. A short one is made in scratch, and copied
// when it is posted; for others there is a block, which is given back when they have
// been sent.
func (e *endpoint) room(scratch []byte, n int) (p []byte, b *block, err error) {
	if n <= e.inline {
		return scratch[:0], nil, nil
	}
	if b, err = e.mem.get(n); err != nil {
		return nil, nil, err
	}
	return b.mem[:0], b, nil
}

// message returns the request that sends a message, for which there was room.
func (e *endpoint) message(p []byte, b *block) rnic.SendWR {
	if b == nil {
		return rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline | rnic.FlagUnsignaled, Inline: p}
	}
	return rnic.SendWR{Op: rnic.OpSend, ID: e.op(b), SGL: []rnic.SGE{b.sge(0, len(p))}}
}

// expect ends the connection unless it is stopped: the other side holds up what is outstanding.
func (e *endpoint) expect() *time.Timer {
	return time.AfterFunc(e.cfg.StallTimeout, func() { e.fail(ErrStalled) })
}

// unsent gives the memory of a message back that is not posted after all.
func (e *endpoint) unsent(wr *rnic.SendWR) {
	if wr.ID != 0 {
		if b, ok := e.told(wr.ID).(*block); ok {
			e.mem.put(b)
		}
	}
}

// fail makes the connection end, for the first reason that there is.
func (e *endpoint) fail(err error) {
	e.mu.Lock()
	first := e.err == nil
	if first {
		e.err = err
	}
	e.mu.Unlock()
	if first {
		e.cancel(err)
	}
}

// cause returns why the connection has ended, or is ending.
func (e *endpoint) cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// run takes completions until the connection ends, and then clears away.
func (e *endpoint) run() {
	var wcs [32]rnic.WC
	for e.ctx.Err() == nil {
		n, err := e.cq.Wait(e.ctx, wcs[:])
		if err != nil {
			e.fail(err)
			break
		}
		for i := range wcs[:n] {
			e.completion(&wcs[i])
		}
		clear(wcs[:n])
	}
	e.finish()
}

// completion looks at one completion.
func (e *endpoint) completion(wc *rnic.WC) {
	switch {
	case wc.Status != rnic.StatusSuccess:
		e.broken(wc)
	case wc.ID&recvID != 0:
		b := e.recv.of(wc.ID)
		e.received(b, b.mem[:wc.ByteLen], wc)
	case wc.ID != 0:
		if c := e.told(wc.ID); c != nil {
			c.completed(wc)
		}
	}
}

// broken ends the connection, of which a request has failed.
func (e *endpoint) broken(wc *rnic.WC) {
	if wc.Status == rnic.StatusRemoteTermination && e.serve != nil && wc.ID&recvID == 0 && wc.ID != 0 {
		e.mu.Lock()
		in, ok := e.ops[wc.ID-1].(*incoming) // which finish gives back
		e.mu.Unlock()
		if ok {
			e.serve.blame(in)
		}
	}
	err := wc.Err()
	if wc.Status == rnic.StatusFlushed {
		if err = e.qp.Err(); err == nil {
			err = ErrPeerClosed
		}
	}
	e.fail(err)
}

// finish ends what is outstanding, when the connection has ended, and gives everything
// back.
func (e *endpoint) finish() {
	e.qp.Abort() // from here on no memory is touched
	err := e.cause()
	e.sq.close(err)
	if e.calls != nil {
		e.calls.lost(err)
	}
	if e.serve != nil {
		e.serve.lost(err)
	}
	close(e.done)
	e.users.Wait()
	for i := range e.ops { // of replies that will not be sent to their end
		if in, ok := e.told(uint64(i + 1)).(*incoming); ok && in.sending {
			in.end = cut
			in.completed(&rnic.WC{Op: rnic.OpSend})
		}
	}
	if err := e.release(); err != nil {
		e.log.Error("the connection is not given back", "error", err)
	}
	close(e.gone)
}

// release gives the objects of the connection back.
func (e *endpoint) release() error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	e.cancel(ErrClosed)
	if e.qp != nil {
		note(e.qp.Close())
	}
	if e.calls != nil {
		note(e.calls.memory.close())
	}
	note(e.mem.close())
	if e.cq != nil {
		note(e.cq.Close())
	}
	if e.pd != nil {
		note(e.pd.Close())
	}
	return errors.Join(errs...)
}

// enter keeps the objects of the connection until leave. It returns why there is none.
func (e *endpoint) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	e.users.Add(1)
	return nil
}

func (e *endpoint) leave() { e.users.Done() }

// close ends the connection gracefully, and waits until nothing is left of it.
func (e *endpoint) close(cause error) error {
	e.mu.Lock()
	if e.err == nil {
		e.err = cause
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Patience)
	defer cancel()
	err := e.qp.Disconnect(ctx)
	e.cancel(cause)
	<-e.gone
	if state := (*rnic.StateError)(nil); errors.As(err, &state) || errors.Is(err, rnic.ErrNoStream) || errors.Is(err, rnic.ErrNotMade) {
		return nil // it had ended before
	}
	return err
}

// received takes a message. Which direction it belongs to, the header tells, or the
// stream behind it (RFC 8167 §5.1, §5.2).
func (e *endpoint) received(b *receiver, message []byte, wc *rnic.WC) {
	e.stats.received.Add(1)
	stream, err := e.hdr.Decode(message, e.cfg.Limits)
	kind := e.kind(stream, err)
	switch {
	case kind == oncrpc.TypeCall && e.serve != nil:
		if wc.Invalidated != 0 { // only replies do that
			e.fail(ErrInvalidated)
			return
		}
		e.serve.called(b, &e.hdr, stream, err)
	case kind == oncrpc.TypeReply && e.calls != nil:
		e.calls.replied(b, &e.hdr, stream, err, wc.Invalidated)
	default:
		e.discard(b, wc)
	}
}

// discard drops a message that is for nobody.
func (e *endpoint) discard(b *receiver, wc *rnic.WC) {
	e.stats.discarded.Add(1)
	if wc.Invalidated != 0 {
		e.fail(ErrInvalidated)
		return
	}
	e.recv.put(b)
	e.repost()
}

// kind tells a call from a reply. Of messages that don't say what they are, those to who
// has dialed are replies, and those to whoever has accepted are calls.
func (e *endpoint) kind(stream []byte, err error) oncrpc.MessageType {
	forward := oncrpc.TypeReply
	if e.serve != nil && e.serve.chunks {
		forward = oncrpc.TypeCall
	}
	switch {
	case e.hdr.Proc == Error && err == nil:
		return oncrpc.TypeReply
	case err != nil || e.hdr.Proc != Msg:
		if forward == oncrpc.TypeReply && len(e.hdr.Read) > 0 { // no reply has a Read list (RFC 8166 §4.3.1)
			return oncrpc.TypeCall
		}
		return forward
	}
	d := xdr.NewDecoder(stream)
	d.Uint32()
	switch t := oncrpc.MessageType(d.Uint32()); {
	case d.Err() != nil, t != oncrpc.TypeCall && t != oncrpc.TypeReply:
		return forward
	default:
		return t
	}
}
