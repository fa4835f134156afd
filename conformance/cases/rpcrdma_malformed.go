package cases

import (
	"encoding/binary"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// A malformation is a call whose header can't be parsed, though its first four words
// can.
type malformation struct {
	name, title string
	octets      func(r *rpc.Requester) (h rpc.Header, b []byte)
}

// lists returns the words behind the first four of a header: Read list, Write list
// and Reply chunk, or what should be.
func lists(of ...uint32) func(r *rpc.Requester) (rpc.Header, []byte) {
	return func(r *rpc.Requester) (rpc.Header, []byte) {
		h := r.Header(r.Null(), rpc.Chunks{})
		b := h.Octets()[:16]
		for _, w := range of {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return h, b
	}
}

// call is lists with a Payload stream behind it.
func call(of ...uint32) func(r *rpc.Requester) (rpc.Header, []byte) {
	return func(r *rpc.Requester) (rpc.Header, []byte) {
		h, b := lists(of...)(r)
		c := r.Null()
		c.XID = h.XID
		return h, append(b, c.Octets()...)
	}
}

// noSTag is one that nobody has given, and that is not to be used.
const noSTag = 0xBADBAD00

func malformations() []malformation {
	return []malformation{
		{"procedure-5", "a procedure that there is not", procedure(5)},
		{"procedure-all-ones", "a procedure that there is not", procedure(0xFFFFFFFF)},
		{"nomsg-without-chunks", "an RDMA_NOMSG with three empty lists", func(r *rpc.Requester) (rpc.Header, []byte) {
			h := r.Header(r.Null(), rpc.Chunks{Long: true})
			return h, h.Octets()
		}},
		{"read-list-2", "a Read list that begins with 2 in place of 0 or 1", func(r *rpc.Requester) (rpc.Header, []byte) {
			lent := r.Lend(make([]byte, 4)).Whole()[0] // for who takes 2 for 1
			return call(2, 40, lent.Handle, lent.Length, uint32(lent.Offset>>32), uint32(lent.Offset), 0, 0, 0)(r)
		}},
		{"write-list-2", "a Write list that begins with 2 in place of 0 or 1", call(0, 2, 0, 0, 0)},
		{"reply-chunk-2", "a Reply chunk that begins with 2 in place of 0 or 1", call(0, 0, 2, 0)},
		{"read-list-cut", "a Read list that ends within an entry", lists(1, 4, noSTag, 16)},
		{"read-list-without-end", "a Read list that goes on behind the message", lists(1, 4, noSTag, 16, 0, 0, 1)},
		{"write-list-cut", "a Write chunk of two segments, one of which is there", lists(0, 1, 2, noSTag, 16, 0, 0)},
		{"write-list-without-end", "a Write list that goes on behind the message", lists(0, 1, 1, noSTag, 16, 0, 0, 1)},
		{"write-chunk-of-4-billion", "a Write chunk that says it has 2^32-1 segments", lists(0, 1, 0xFFFFFFFF, noSTag, 16, 0, 0)},
		{"write-chunk-of-2-to-28", "a Write chunk whose segments have 2^32 octets in all", lists(0, 1, 1<<28, 0, 0, 0, 0)},
		{"reply-chunk-cut", "a Reply chunk of two segments, one of which is there", lists(0, 0, 1, 2, noSTag, 16, 0, 0)},
		{"reply-chunk-of-4-billion", "a Reply chunk that says it has 2^32-1 segments", lists(0, 0, 1, 0xFFFFFFFF, noSTag, 16, 0, 0)},
		{"no-reply-chunk-word", "a header that ends behind its Write chunk", lists(0, 1, 1, noSTag, 16, 0, 0, 0)},
		{"position-2", "a Read chunk whose position is no multiple of four", call(1, 38, noSTag, 16, 0, 0, 0, 0, 0)},
	}
}

func procedure(p rpc.Proc) func(r *rpc.Requester) (rpc.Header, []byte) {
	return func(r *rpc.Requester) (rpc.Header, []byte) {
		c := r.Null()
		h := r.Header(c, rpc.Chunks{})
		h.Proc = p
		return h, append(h.Octets(), c.Octets()...)
	}
}

// rpcMalformed holds a case for each malformation, as RFC 8166 §4.5 and §4.5.2 see it.
func rpcMalformed() []conformance.Case {
	var cases []conformance.Case
	for _, m := range malformations() {
		send := func(t *conformance.T) (*rpc.Requester, rpc.Header) {
			r := server(t)
			r.Do(r.Null(), rpc.Chunks{})
			h, b := m.octets(r)
			r.PostOctets(b, h.String(), m.title)
			return r, h
		}
		cases = append(cases, conformance.Case{
			Clause: "rfc8166-4.5-2", Name: m.name,
			Title: "Answered with RDMA_ERROR, and the connection goes on: " + m.title,
			Run: func(t *conformance.T) {
				r, h := send(t)
				r.AwaitError(h)
				r.Do(r.Null(), rpc.Chunks{})
			},
		}, conformance.Case{
			Clause: "rfc8166-4.5.2-1", Name: m.name,
			Title: "Answered with ERR_CHUNK: " + m.title,
			Run: func(t *conformance.T) {
				r, h := send(t)
				e := r.AwaitError(h)
				t.Check(e.Err == rpc.ErrChunk && e.XID == h.XID, "ERR_CHUNK for the call's XID", "%s", e.Header)
			},
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc8166-4.5.2-1", Name: "other-xid",
		Title: "An XID that is not that of the RPC message: ERR_CHUNK, or a reply to the header's XID alone (§4.2.1)",
		Run: func(t *conformance.T) {
			r := server(t)
			c := r.Null()
			h := r.Header(c, rpc.Chunks{})
			h.XID += 0x1000
			r.Post(h, c.Octets(), "another XID than the RPC message's")
			const expected = "ERR_CHUNK, or a reply that has the header's XID throughout"
			m := r.Await(expected)
			t.Check(m.XID == h.XID, expected, "%s", m.Header)
			if m.Proc == rpc.Error {
				t.Check(m.Err == rpc.ErrChunk, expected, "%s", m.Header)
				return
			}
			a := r.Answered(m, h)
			t.Check(a.Reply.XID == h.XID, expected, "an RPC message with XID 0x%08x", a.Reply.XID)
		},
	})
	return ofServer(cases, 0)
}
