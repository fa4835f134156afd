package rpcrdma

import (
	"context"

	"urnic/rnic"
	"urnic/ulp/oncrpc/xdr"
)

// A readChunk is a Read chunk of a call: segments of the header's Read list.
type readChunk struct {
	position int
	length   int // bytes
	segments []ReadSegment
	memory   *block
}

// group finds the Read chunks in the Read list: successive segments of one position, "in
// list order" (RFC 8166 §3.4.5). Their positions ascend, and no chunk reaches into the
// next one; nothing may be longer than allowed.
func (in *incoming) group() error {
	h := &in.hdr
	end, total := 0, 0 // where the last chunk ends in the stream, and how much it is without the call
	for i := 0; i < len(h.Read); {
		c := readChunk{position: int(h.Read[i].Position)}
		if uint64(h.Read[i].Position) > maxMessage {
			return in.chunkError("3.4.5", ErrBeyond)
		}
		from := i
		for ; i < len(h.Read) && int(h.Read[i].Position) == c.position; i++ {
			if uint64(h.Read[i].Length) > uint64(in.r.e.cfg.MaxMessage-total) {
				return in.chunkError("8.1.4", ErrHuge) // "not obliged to pull Read chunks that are unreasonably large"
			}
			c.length += int(h.Read[i].Length)
			total += int(h.Read[i].Length)
		}
		c.segments = h.Read[from:i]
		switch {
		case c.position == 0 && h.Proc == Msg:
			return in.chunkError("3.5.3", ErrTwoCalls)
		case c.position == 0 && len(in.chunks) > 0, c.position > 0 && c.position < end:
			return in.chunkError("3.4.5", ErrOrder)
		case c.position > 0:
			end = c.position + padded(c.length)
		}
		in.chunks = append(in.chunks, c)
	}
	in.weight = total
	stream := len(in.stream)
	if h.Proc == NoMsg {
		if len(in.chunks) == 0 || in.chunks[0].position != 0 {
			return in.chunkError("4.5.2", ErrNoCall)
		}
		if in.chunks[0].length == 0 {
			return in.chunkError("4.5.2", ErrShort)
		}
		stream = in.chunks[0].length
	}
	for _, c := range in.chunks {
		if c.position == 0 {
			continue
		}
		if c.position > stream {
			return in.chunkError("3.4.5", ErrBeyond)
		}
		stream += padded(c.length)
	}
	if params, ok := in.r.e.qp.Params(); total > 0 && ok && params.ORD == 0 {
		return in.chunkError("4.5.3", ErrNoReads)
	}
	return nil
}

// carryOut fetches the Read chunks of a call, if there are any, and runs it. A call that
// waits for memory of its reply holds no memory of Read chunks, which others may want.
func (in *incoming) carryOut() {
	if err := in.reserve(); err != nil { // the connection has ended
		in.r.finish()
		in.recycle()
		return
	}
	if in.weight == 0 {
		in.run()
		return
	}
	if err := in.pull(in.r.e.ctx); err != nil {
		in.refuse(err)
		return
	}
	for i := range in.chunks {
		c := &in.chunks[i]
		if c.memory == nil { // an argument of no bytes is in the stream as well
			continue
		}
		data := c.memory.mem[:c.length:c.length]
		if c.position == 0 {
			in.stream = data
			continue
		}
		in.moved = append(in.moved, xdr.Moved{Position: c.position, Data: data})
	}
	if in.hdr.Proc == NoMsg {
		if err := in.checkCall(in.stream); err != nil {
			in.refuse(err)
			return
		}
	}
	in.run()
}

// pull fetches the Read chunks by RDMA Read, a segment at a time: as many at once as
// the connection's ORD allows, which the RNIC sees to.
func (in *incoming) pull(ctx context.Context) error {
	r, e := in.r, in.r.e
	weight := in.weight
	in.weight = 0
	if err := r.pulled.take(ctx, weight); err != nil {
		return err
	}
	if r.all != nil {
		if _, err := r.all.take(ctx, weight); err != nil {
			r.pulled.give(weight)
			return err
		}
	}
	in.weight = weight
	for i := range in.chunks {
		c := &in.chunks[i]
		if c.length == 0 {
			continue
		}
		var err error
		if c.memory, err = e.mem.get(c.length); err != nil {
			e.fail(err)
			return err
		}
		in.blocks = append(in.blocks, c.memory)
		at := 0
		for _, s := range c.segments {
			if s.Length == 0 {
				continue
			}
			in.sges = append(in.sges, c.memory.sge(at, int(s.Length)))
			in.wrs = append(in.wrs, rnic.SendWR{
				Op: rnic.OpRead, Flags: rnic.FlagUnsignaled, SGL: in.sges[len(in.sges)-1:],
				Remote: rnic.Remote{STag: s.Handle, TO: s.Offset},
			})
			at += int(s.Length)
		}
	}
	n := len(in.wrs)
	if err := e.sq.take(ctx, n); err != nil {
		return err
	}
	defer e.sq.give(n)
	id := e.op(in)
	for i := range in.wrs {
		in.wrs[i].ID = id // the one that fails says so
	}
	in.wrs[n-1].Flags = 0
	e.send(in.r.underWay(), in.wrs...)
	clear(in.wrs)
	in.wrs, in.sges = in.wrs[:0], in.sges[:0]
	defer e.expect().Stop()
	select {
	case err := <-in.pulled:
		return err
	case <-e.done: // no memory is touched any more
		return e.cause()
	}
}

// completed implements completer: the Read chunks are here, or the reply is sent.
func (in *incoming) completed(wc *rnic.WC) {
	if wc.Op == rnic.OpRead {
		in.pulled <- nil
		return
	}
	in.patience.Stop()
	if in.end != cut {
		in.end = taken
	}
	in.recycle()
}
