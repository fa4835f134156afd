package rpcrdma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// A responder carries out the calls that come over a connection.
type responder struct {
	e         *endpoint
	service   oncrpc.Service
	chunks    bool    // it uses the requester's memory: not in the reverse direction
	pulled    share   // bytes of Read chunks, of this connection
	all       *debt   // the same, of a connection of a Server
	debt      *debt   // what replies hold, of a connection of a Server
	blamed    *blamed // calls that have ended connections, of a Server
	ctx       context.Context
	admission oncrpc.Admission // of the connection, by a Server
	work      chan *incoming   // for workers that wait
	waiting   atomic.Int32

	mu      sync.Mutex
	granted int           // what the next reply grants
	posted  int           // what the requester may have been granted: receives that are posted, and calls in flight
	running int           // calls in flight, for the requester
	busy    int           // calls whose reply is not posted yet
	drained chan struct{} // closed when there are none; no further calls are taken then
	free    []*incoming

	written [64]written // memory of the last replies, to tell whose it was if the requester ends the connection
	replies int
}

// A written is memory that a reply has been written to.
type written struct {
	handle stag.STag
	xid    uint32
}

func newResponder(e *endpoint, s oncrpc.Service, credits int, chunks bool) *responder {
	r := &responder{e: e, service: s, chunks: chunks, granted: credits, posted: credits, ctx: e.ctx, work: make(chan *incoming)}
	r.pulled.limit = e.cfg.MaxPulled
	return r
}

// An incoming is a call that is being carried out.
type incoming struct {
	r      *responder
	hdr    Header
	buffer *receiver // that it has come in
	stream []byte    // without what was moved

	chunks []readChunk
	weight int  // bytes of Read chunks, which are accounted for
	owed   int  // bytes that the reply may hold, which are as well
	slow   bool // the requester's account is marked as slow
	end    outcome
	pulled chan error // gets a value when they are here
	blocks []*block   // memory that goes back after the reply
	adhoc  []*block   // memory that was registered for the reply
	moved  []xdr.Moved

	x     oncrpc.Exchange
	call  oncrpc.Message
	reply xdr.Encoder

	wrs     []rnic.SendWR
	sges    []rnic.SGE
	pieces  []piece
	scratch []byte
	out     Header
	places  int  // of the send queue
	sending bool // the reply is posted

	patience *time.Timer // for what is written to chunks
}

// called takes a call: b is the receive that it has come in.
func (r *responder) called(b *receiver, h *Header, stream []byte, err error) {
	e := r.e
	if err == nil && h.Proc == Error { // "A Responder MUST silently discard RDMA_ERROR procedures" (RFC 8166 §4.2.4)
		e.stats.discarded.Add(1)
		e.recv.put(b)
		e.repost()
		return
	}
	in, ok := r.begin()
	if !ok {
		e.fail(ErrCredits)
		return
	}
	if in == nil {
		e.recv.put(b)
		return
	}
	in.buffer = b
	in.hdr, *h = *h, in.hdr // the memory of its lists stays with it
	in.stream = stream
	if err == nil {
		err = in.check()
	}
	if err != nil {
		e.recv.put(b)
		in.buffer = nil
		in.refuse(err)
		return
	}
	r.start(in)
}

// mostWaiting is how many goroutines of a connection wait for calls, at most.
const mostWaiting = 32

// start has a goroutine carry a call out. One that has done that before is better than a
// new one, whose stack would have to grow first.
func (r *responder) start(in *incoming) {
	select {
	case r.work <- in:
	default:
		r.e.users.Add(1) // nobody waits for them yet
		go r.worker(in)
	}
}

// worker carries a call out, and further ones.
func (r *responder) worker(in *incoming) {
	defer r.e.users.Done()
	for {
		in.carryOut()
		if r.waiting.Add(1) > mostWaiting {
			r.waiting.Add(-1)
			return
		}
		select {
		case in = <-r.work:
			r.waiting.Add(-1)
		case <-r.e.ctx.Done():
			return
		}
	}
}

// begin counts a call in. It returns false if there are more than the requester has been
// granted, and nil if no further ones are taken, as the connection is being closed.
func (r *responder) begin() (*incoming, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.drained != nil:
		return nil, true
	case r.running == r.posted:
		return nil, false
	}
	r.running++
	r.busy++
	if n := len(r.free); n > 0 {
		in := r.free[n-1]
		r.free = r.free[:n-1]
		return in, true
	}
	in := &incoming{r: r, pulled: make(chan error, 1)}
	in.x.Buffer = in.get
	return in, true
}

// finish counts a call out, before its reply is sent, and provides for the next one:
// "an increase in receive resources is effected before the next RPC Reply message is
// sent" (RFC 8166 §3.3.1). It returns how many calls the reply grants.
func (r *responder) finish() uint32 {
	r.mu.Lock()
	r.running--
	more := 1
	if r.posted > r.granted { // the requester learns by this reply that there is one less
		r.posted--
		more = 0
	}
	for r.posted < r.granted {
		r.posted++
		more++
	}
	granted := r.granted
	r.mu.Unlock()
	for range more {
		r.e.repost()
	}
	return uint32(granted)
}

// recycle forgets a call whose reply has been sent.
func (in *incoming) recycle() {
	e, r := in.r.e, in.r
	for i, b := range in.blocks {
		e.mem.put(b)
		in.blocks[i] = nil
	}
	for i, b := range in.adhoc {
		e.mem.drop(b)
		in.adhoc[i] = nil
	}
	in.x.Return()
	if in.buffer != nil {
		e.recv.put(in.buffer)
	}
	if in.weight > 0 {
		r.pulled.give(in.weight)
		if r.all != nil {
			r.all.give(in.weight, unsent)
		}
	}
	if in.places > 0 {
		e.sq.give(in.places)
	}
	if in.owed > 0 {
		r.debt.give(in.owed, in.end)
	}
	in.reply.Reset()
	in.reset()
	clear(in.moved)
	clear(in.pieces[:cap(in.pieces)])
	in.buffer, in.stream, in.weight, in.places, in.sending, in.call = nil, nil, 0, 0, false, oncrpc.Message{}
	in.owed, in.slow, in.end = 0, false, unsent
	in.chunks, in.blocks, in.adhoc, in.moved = in.chunks[:0], in.blocks[:0], in.adhoc[:0], in.moved[:0]
	r.mu.Lock()
	if r.busy--; r.busy == 0 && r.drained != nil {
		close(r.drained)
	}
	if len(r.free) < r.granted {
		r.free = append(r.free, in)
	}
	r.mu.Unlock()
}

// get returns memory for bulk data of the reply, from which it can be sent.
func (in *incoming) get(n int) []byte {
	if n <= 0 {
		return nil
	}
	b, err := in.r.e.mem.get(n)
	if err != nil {
		return make([]byte, n) // it is registered when it is sent, or the connection has ended
	}
	in.blocks = append(in.blocks, b)
	return b.mem[:n:n]
}

// run carries a call out whose arguments are all here.
func (in *incoming) run() {
	r, e := in.r, in.r.e
	e.stats.served.Add(1)
	in.call = oncrpc.Message{Stream: in.stream, Moved: in.moved}
	in.x.Call, in.x.Netid, in.x.Local, in.x.Remote = &in.call, e.netid, e.local, e.remote
	in.x.Peer, in.x.Account = r.admission.Peer, r.admission.Account
	ctx := r.ctx
	if e.cfg.Context != nil {
		ctx = e.cfg.Context(ctx, &in.x)
	}
	switch err := r.service.Serve(ctx, &in.x, &in.reply); {
	case errors.Is(err, oncrpc.ErrNoReply):
		r.finish()
		in.recycle()
	case err != nil:
		e.fail(fmt.Errorf("rpcrdma: the service ends the connection: %w", err))
		r.finish()
		in.recycle()
	default:
		in.answer()
	}
}

// reserve waits until there may be as much memory as the reply can need: as long as the
// chunks that the call has for it.
func (in *incoming) reserve() (err error) {
	if in.r.debt == nil {
		return nil
	}
	n := 0
	count := func(chunk []Segment) {
		for i := range chunk {
			n = min(n+int(min(chunk[i].Length, maxMessage)), in.r.e.cfg.MaxMessage)
		}
	}
	for _, chunk := range in.hdr.Write {
		count(chunk)
	}
	if count(in.hdr.Reply); n == 0 { // it fits into a Send
		return nil
	}
	if in.slow, err = in.r.debt.take(in.r.e.ctx, n); err == nil {
		in.owed = n
	}
	return err
}

// refuse answers a call with an RDMA_ERROR, or not at all (RFC 8166 §4.5).
func (in *incoming) refuse(err error) {
	r, e := in.r, in.r.e
	var bad *HeaderError
	granted := r.finish()
	if !errors.As(err, &bad) || bad.Code == 0 {
		e.stats.discarded.Add(1)
		in.recycle()
		return
	}
	e.stats.refused.Add(1)
	e.log.Debug("a call is refused", "peer", e.remote, "error", err)
	in.out = Header{XID: bad.XID, Version: bad.Version, Credits: granted, Proc: Error, Err: bad.Code, Low: Version, High: Version}
	in.scratch = in.out.Append(in.scratch[:0])
	e.send(1, e.message(in.scratch, nil))
	in.recycle()
}

// chunkError returns the error that refuses a call for its chunks.
func (in *incoming) chunkError(clause string, err error) error {
	return &HeaderError{XID: in.hdr.XID, Version: Version, Code: ErrChunk, Clause: clause, Err: err}
}

// What can be wrong with the chunks of a call.
var (
	ErrReverse  = errors.New("there are no chunks in the reverse direction")
	ErrNoCall   = errors.New("there is no Read chunk at position zero that holds the call")
	ErrTwoCalls = errors.New("both the message and a Read chunk at position zero hold the call")
	ErrMixedXID = errors.New("the header has another XID than the stream")
	ErrNotCall  = errors.New("it is no call")
	ErrOrder    = errors.New("some Read chunks overlap, or are not in the order of their positions")
	ErrBeyond   = errors.New("the position of a Read chunk is beyond the end of the stream")
	ErrHuge     = errors.New("its Read chunks are longer than allowed")
	ErrNoReads  = errors.New("the connection was set up without RDMA Read")
	ErrNoRoom   = errors.New("the reply does not fit into what the call has provided")
	ErrBlamed   = errors.New("an earlier try of the call has ended the connection")
)

// check refuses a call that can't be carried out.
func (in *incoming) check() error {
	r, h := in.r, &in.hdr
	if !r.chunks && (len(h.Read) > 0 || len(h.Write) > 0 || h.HasReply || h.Proc == NoMsg) {
		return in.chunkErrorIn("RFC 8167 §5.3", ErrReverse)
	}
	if r.blamed != nil && r.blamed.take(r.e.remote, h.XID) {
		return in.chunkError("4.5.3", ErrBlamed)
	}
	if err := in.group(); err != nil {
		return err
	}
	if h.Proc == Msg {
		return in.checkCall(in.stream)
	}
	return nil
}

// chunkErrorIn is chunkError for a clause of another document.
func (in *incoming) chunkErrorIn(clause string, err error) error {
	return in.chunkError("4.5.2", fmt.Errorf("%w (%s)", err, clause))
}

// checkCall refuses a stream that is not the header's call.
func (in *incoming) checkCall(stream []byte) error {
	switch {
	case len(stream) < 8:
		return in.chunkError("4.5.2", ErrShort)
	case binary.BigEndian.Uint32(stream) != in.hdr.XID: // RFC 8166 §4.2.1
		return in.chunkError("4.5.2", ErrMixedXID)
	case oncrpc.MessageType(binary.BigEndian.Uint32(stream[4:])) != oncrpc.TypeCall:
		return in.chunkError("4.5.2", ErrNotCall)
	}
	return nil
}

// underWay returns how many calls are being carried out.
func (r *responder) underWay() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy
}

// lost ends what waits, as the connection has ended.
func (r *responder) lost(err error) {
	r.blameWriter()
	r.pulled.close(err)
}

// wrote notes memory that a reply is written to.
func (r *responder) wrote(xid uint32, wrs []rnic.SendWR) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range wrs {
		r.written[r.replies%len(r.written)] = written{wrs[i].Remote.STag, xid}
		r.replies++
	}
}

// blameWriter finds the call whose memory the requester did not let a reply be written to,
// and has ended the connection.
func (r *responder) blameWriter() {
	s, ok := r.e.qp.Refused()
	if !ok || r.blamed == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.written {
		if w := &r.written[i]; w.handle == s && r.replies > 0 {
			r.blamed.add(r.e.remote, w.xid)
			return
		}
	}
}

// blame notes that a call has ended the connection by its chunks.
func (r *responder) blame(in *incoming) {
	if r.blamed != nil {
		r.blamed.add(r.e.remote, in.hdr.XID)
	}
}

// tag returns an STag of the call that the reply may invalidate, or 0: any that is
// "associated only with the Transaction ID" (RFC 8797 §4.1).
func (in *incoming) tag() stag.STag {
	if !in.r.e.invalidate || !in.r.chunks {
		return 0
	}
	h := &in.hdr
	for _, c := range h.Write {
		if len(c) > 0 {
			return c[0].Handle
		}
	}
	if len(h.Read) > 0 {
		return h.Read[0].Handle
	}
	if len(h.Reply) > 0 {
		return h.Reply[0].Handle
	}
	return 0
}
