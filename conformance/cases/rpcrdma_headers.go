package cases

import (
	"encoding/binary"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcHeaders holds what is true of every reply.
func rpcHeaders() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-4-1", Name: "reply",
			Title: "The reply to a call without chunks is a header with three empty lists, and a reply of RPC behind it",
			Run: func(t *conformance.T) {
				r := server(t)
				a := r.Do(r.Null(), rpc.Chunks{})
				t.Check(a.Proc == rpc.Msg && len(a.Reads) == 0 && len(a.Writes) == 0 && a.Header.Reply == nil,
					"RDMA_MSG with three empty lists", "%s", a.Header)
				t.Check(len(a.Payload) >= 4 && binary.BigEndian.Uint32(a.Payload) == a.XID, "a Payload stream behind 28 octets", "%x", a.Payload)
			},
		},
		{
			Clause: "rfc8166-4-1", Name: "error",
			Title: "An error message is a header that can be parsed, and nothing behind it",
			Run: func(t *conformance.T) {
				r := server(t)
				m := r.AwaitError(badProcedure(r))
				if m.Invalid != nil {
					t.Fail("an RDMA_ERROR that can be parsed", "%v", m.Invalid)
				}
			},
		},
		{
			Clause: "rfc8166-4.2.1-1", Name: "replies",
			Title: "The XID in the header of each reply is that of the RPC message behind it",
			Run: func(t *conformance.T) {
				r := server(t)
				for _, xid := range []uint32{0, 1, 0x80000000, 0xFFFFFFFF} {
					c := r.Null()
					c.XID = xid
					a := r.Do(c, rpc.Chunks{})
					t.Check(a.Reply.XID == a.XID, "the header's XID in the RPC message", "0x%08x, and 0x%08x in the header", a.Reply.XID, a.XID)
				}
			},
		},
		{
			Clause: "rfc8166-4.2.2-1", Name: "reply",
			Title: "The version of a reply is one",
			Run: func(t *conformance.T) {
				r := server(t)
				a := r.Do(r.Null(), rpc.Chunks{})
				t.Check(a.Version == rpc.Version, "version 1", "%s", a.Header)
			},
		},
		{
			Clause: "rfc8166-4.6.1-1", Name: "replies", Also: []string{"rfc8166-4.6.2-1"},
			Title: "Replies to calls with and without chunks are neither RDMA_MSGP nor followed by RDMA_DONE",
			Run: func(t *conformance.T) {
				r := server(t)
				for _, with := range []rpc.Chunks{{}, {Reply: r.Room(4096).Whole()}, {Writes: []rpc.Chunk{r.Room(4096).Whole()}}, longNull(r)} {
					c := r.Null()
					if with.Long {
						c.XID = binary.BigEndian.Uint32(r.At(with.Reads[0].Segment))
					}
					h := r.Header(c, with)
					r.Send(h, c)
					m := r.Await("a reply")
					t.Check(m.Proc != rpc.MsgP && m.Proc != rpc.Done, "RDMA_MSG, RDMA_NOMSG or RDMA_ERROR", "%s", m.Header)
				}
				r.AwaitSilence("as all calls are answered")
			},
		},
		{
			Clause: "rfc8167-6-1", Name: "server",
			Title: "A server of NFS version 3 makes no calls to its client",
			Run: func(t *conformance.T) {
				r := server(t)
				r.Do(r.Null(), rpc.Chunks{})
				r.AwaitSilence("as NFS version 3 has no calls in the reverse direction")
			},
		},
		{
			Clause: "rfc8166-4.3.3-2", Name: "short-reply",
			Title: "The reply to NULL has the Reply chunk of the call, with the lengths that were used of it",
			Run: func(t *conformance.T) {
				r := server(t)
				room := r.Room(4096)
				given := room.Cut(1000, 96, 3000)
				a := r.Do(r.Null(), rpc.Chunks{Reply: given})
				t.Check(a.Header.Reply != nil, "a Reply chunk", "%s", a.Header)
				n := 0
				if a.Proc == rpc.NoMsg {
					n = len(a.Stream)
				}
				checkChunk(t, "the Reply chunk", given, a.Header.Reply, n)
			},
		},
	}
	return ofServer(cases, 0)
}

// longNull returns the chunks of a Long Call of NULL.
func longNull(r *rpc.Requester) rpc.Chunks {
	return rpc.Chunks{Long: true, Reads: r.Lend(r.Null().Octets()).Whole().At(0)}
}
