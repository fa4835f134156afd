package rpcrdma

import (
	"fmt"
	"time"

	"urnic/rnic"
	"urnic/ulp/oncrpc/xdr"
)

// answer sends the reply: bulk data goes into the Write chunks that there are for it, and
// what is too long for a Send into the Reply chunk (RFC 8166 §3.5.3).
func (in *incoming) answer() {
	e := in.r.e
	if err := in.compose(); err != nil {
		in.reset()
		in.refuse(err)
		return
	}
	n := in.out.Len()
	if in.out.Proc == Msg {
		n += in.inline()
	}
	p, b, err := e.room(in.scratch, n)
	if err != nil {
		e.fail(err) // "the Responder MUST close the connection to signal [...] that a reply was lost" (RFC 8166 §4.5.4)
		in.r.finish()
		in.recycle()
		return
	}
	in.out.Credits = in.r.finish()
	p = in.out.Append(p)
	if in.out.Proc == Msg {
		p = in.reply.Reduced(p, func(i int, _ xdr.Bulk) bool { return in.placed(i) })
	}
	if b == nil {
		in.scratch = p
	}
	wr := e.message(p, b)
	if wr.Invalidate = in.tag(); wr.Invalidate != 0 {
		wr.Op = rnic.OpSendInvalidate
	}
	if len(in.wrs) == 0 { // nothing of the call is sent but the message
		e.send(in.r.underWay(), wr)
		in.recycle()
		return
	}
	if wr.ID != 0 {
		e.told(wr.ID)
		in.blocks = append(in.blocks, b)
	}
	in.places = len(in.wrs) + 1
	if err := e.sq.take(e.ctx, in.places); err != nil {
		in.places = 0
		in.abandon()
		return
	}
	in.r.wrote(in.hdr.XID, in.wrs)
	in.sending = true
	wr.ID, wr.Flags = e.op(in), wr.Flags&^rnic.FlagUnsignaled
	in.wrs = append(in.wrs, wr)
	if in.patience == nil {
		in.patience = e.expect()
	}
	in.patience.Reset(in.timeout())
	e.send(in.r.underWay(), in.wrs...)
}

// timeout is how long the requester may take to take the reply: less if it has left others
// untaken before.
func (in *incoming) timeout() time.Duration {
	if in.slow {
		return in.r.e.cfg.StallTimeout / 8
	}
	return in.r.e.cfg.StallTimeout
}

// abandon forgets a call whose reply can't be sent any more, as the connection ends. Its
// memory is registered for the connection until that is over.
func (in *incoming) abandon() {
	in.blocks = in.blocks[:0]
	in.recycle()
}

// reset forgets what has been composed.
func (in *incoming) reset() {
	clear(in.wrs)
	in.wrs, in.sges, in.pieces = in.wrs[:0], in.sges[:0], in.pieces[:0]
}

// placed reports whether a bulk of the reply goes into a Write chunk: each chunk takes
// one, in order, but an empty one, whose result is sent in the stream (RFC 8166
// §4.3.2.1, §4.3.2.3).
func (in *incoming) placed(i int) bool { return i < len(in.hdr.Write) && len(in.hdr.Write[i]) > 0 }

// inline returns how long the reply's stream is without what goes into Write chunks.
func (in *incoming) inline() int {
	n := in.reply.Len()
	for i, b := range in.reply.Bulks() {
		if in.placed(i) {
			n -= padded(b.Len)
		}
	}
	return n
}

// compose makes the header of the reply, and the RDMA Writes in front of it.
func (in *incoming) compose() error {
	h, out := &in.hdr, &in.out
	*out = Header{XID: h.XID, Version: Version, Proc: Msg, Write: h.Write, Reply: h.Reply, HasReply: h.HasReply}
	bulks := in.reply.Bulks()
	for i, chunk := range h.Write {
		if i >= len(bulks) || len(chunk) == 0 || bulks[i].Len == 0 {
			if err := in.fill(chunk); err != nil {
				return err
			}
			continue
		}
		from := len(in.pieces)
		if err := in.register(&bulks[i]); err != nil {
			return err
		}
		if err := in.fill(chunk, in.pieces[from:]...); err != nil {
			return err
		}
	}
	stream := in.inline()
	if out.Len()+stream <= in.r.e.most {
		return in.fill(h.Reply) // "The Responder MAY return the RPC Reply message as a Short message" (RFC 8166 §4.3.3)
	}
	if !h.HasReply {
		return in.chunkError("4.5.3", fmt.Errorf("%w: a stream of %d octets, and no Reply chunk", ErrNoRoom, stream))
	}
	if out.Proc = NoMsg; out.Len() > in.r.e.most {
		return in.chunkError("4.5.3", fmt.Errorf("%w: a header of %d octets", ErrNoRoom, out.Len()))
	}
	return in.long(stream)
}

// A piece is data in registered memory.
type piece struct {
	block  *block
	off, n int
}

// fill writes pieces to a chunk, one after the other from its beginning, and makes its
// lengths say so (RFC 8166 §3.4.6). What fills bulk data up in the stream is not written
// (§3.4.6.2).
func (in *incoming) fill(chunk []Segment, pieces ...piece) error {
	total := 0
	for _, p := range pieces {
		total += p.n
	}
	if err := in.fits(chunk, total); err != nil {
		return err
	}
	for i := range chunk {
		s := &chunk[i]
		room := int(min(s.Length, maxMessage))
		to := rnic.Remote{STag: s.Handle, TO: s.Offset}
		s.Length = 0
		for from := len(in.sges); room > 0 && len(pieces) > 0; {
			p := &pieces[0]
			n := min(p.n, room)
			if n > 0 {
				in.sges = append(in.sges, p.block.sge(p.off, n))
				s.Length += uint32(n)
				room -= n
			}
			if p.off, p.n = p.off+n, p.n-n; p.n == 0 {
				pieces = pieces[1:]
			}
			if len(in.sges)-from == in.r.e.sgl || (room == 0 || len(pieces) == 0) && len(in.sges) > from {
				to.TO = in.write(to, in.sges[from:])
				from = len(in.sges)
			}
		}
	}
	return nil
}

// fits refuses data that are longer than a chunk.
func (in *incoming) fits(chunk []Segment, n int) error {
	room := 0
	for i := range chunk {
		room = min(room+int(min(chunk[i].Length, maxMessage)), maxMessage)
	}
	if n > room {
		return in.chunkError("4.5.3", fmt.Errorf("%w: %d octets into a chunk of %d", ErrNoRoom, n, room))
	}
	return nil
}

// write appends an RDMA Write, and returns the TO behind it.
func (in *incoming) write(to rnic.Remote, sgl []rnic.SGE) uint64 {
	in.wrs = append(in.wrs, rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled, SGL: sgl, Remote: to})
	for i := range sgl {
		to.TO += uint64(sgl[i].Length)
	}
	return to.TO
}

// leastGathered is from how many bytes on it is better to send bulk data from where it is
// than to copy it.
const leastGathered = 4096

// long writes the stream, without what goes into Write chunks, to the Reply chunk. Bulk
// data that is in it is sent from where it lies.
func (in *incoming) long(stream int) error {
	apart := func(i int, b xdr.Bulk) bool { return in.placed(i) || b.Len >= leastGathered }
	bulks := in.reply.Bulks()
	gathered := 0
	for i, b := range bulks {
		if !in.placed(i) && apart(i, b) {
			gathered += padded(b.Len)
		}
	}
	rest := stream - gathered
	b, err := in.r.e.mem.get(rest + len(zeros)) // the zeros that fill bulk data up stand at the end
	if err != nil {
		in.r.e.fail(err)
		return err
	}
	in.blocks = append(in.blocks, b)
	in.reply.Reduced(b.mem[:0], apart)
	clear(b.mem[rest:][:len(zeros)])
	from, moved := 0, 0 // of the rest; what is moved elsewhere before a bulk
	in.pieces = in.pieces[:0]
	for i, bulk := range bulks {
		if !apart(i, bulk) {
			continue
		}
		n := bulk.Len
		if !in.placed(i) {
			at := bulk.Position - moved
			in.pieces = append(in.pieces, piece{b, from, at - from})
			if err := in.register(&bulk); err != nil {
				return err
			}
			in.pieces = append(in.pieces, piece{b, rest, padded(n) - n})
			from = at
		}
		moved += padded(n)
	}
	return in.fill(in.hdr.Reply, append(in.pieces, piece{b, from, rest - from})...)
}

// register appends the pieces of a bulk.
func (in *incoming) register(b *xdr.Bulk) error {
	for _, data := range b.Pieces {
		if len(data) == 0 {
			continue
		}
		p, err := in.registered(data)
		if err != nil {
			return err
		}
		in.pieces = append(in.pieces, p)
	}
	return nil
}

// registered returns where data lies in registered memory: in what Exchange.Buffer has
// returned, or what the call has come in; other memory is registered until the
// reply is sent.
func (in *incoming) registered(data []byte) (piece, error) {
	for _, b := range in.blocks {
		if off := b.offset(data); off >= 0 {
			return piece{b, off, len(data)}, nil
		}
	}
	if off := in.buffer.offset(data); off >= 0 {
		return piece{&in.buffer.block, off, len(data)}, nil
	}
	b, err := in.r.e.mem.register(data)
	if err != nil {
		in.r.e.fail(err)
		return piece{}, err
	}
	in.adhoc = append(in.adhoc, b)
	return piece{b, 0, len(data)}, nil
}
