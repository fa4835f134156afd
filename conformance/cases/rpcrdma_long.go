package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcLong holds Long Calls and Long Replies.
func rpcLong() []conformance.Case {
	return append(longCalls(), longReplies()...)
}

func longCalls() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-3.5.3-2", Name: "null",
			Title: "A Long Call of NULL, in one segment, is answered",
			Run: func(t *conformance.T) {
				r := server(t)
				longCall(r, r.Null(), func(g *rpc.Region) rpc.Chunk { return g.Whole() }, nil)
			},
		},
		{
			Clause: "rfc8166-3.5.3-2", Name: "null-in-pieces",
			Title: "A Long Call of NULL, in segments that end within words, is answered",
			Run: func(t *conformance.T) {
				r := server(t)
				longCall(r, r.Null(), func(g *rpc.Region) rpc.Chunk { return g.Cut(1, 2, 9, len(g.Data)-12) }, nil)
			},
		},
		{
			Clause: "rfc8166-4.2.4-2", Name: "long-call",
			Title: "The XID of a Long Call is in its Read chunk: the reply has it, in header and RPC message",
			Run: func(t *conformance.T) {
				r := server(t)
				a := longCall(r, r.Null(), func(g *rpc.Region) rpc.Chunk { return g.Whole() }, nil)
				t.Check(a.Reply.XID == a.Call.XID, "the call's XID", "0x%08x", a.Reply.XID)
			},
		},
		{
			Clause: "rfc8166-3.5.3-1", Name: "long-call-of-2000",
			Title: "A Long Call that is larger than the inline threshold is answered",
			Run: func(t *conformance.T) {
				r := server(t)
				c := r.Null()
				c.Args = make([]byte, 2000)
				longCall(r, c, func(g *rpc.Region) rpc.Chunk { return g.Whole() }, nil)
			},
		},
		{
			Clause: "rfc8166-3.5.3-2", Name: "with-a-reply-chunk",
			Title: "A Long Call with a Reply chunk is answered",
			Run: func(t *conformance.T) {
				r := server(t)
				longCall(r, r.Null(), func(g *rpc.Region) rpc.Chunk { return g.Whole() }, r.Room(4096).Whole())
			},
		},
	}
	cases = append(cases, ofServer([]conformance.Case{
		{
			Clause: "rfc8166-3.5.3-4", Name: "long-call",
			Title: "Data of a WRITE in a Long Call have their roundup there, and are in the file without it",
			Run: withFile("long-write", 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				data := conformance.Pattern(2001)
				args := append(rpc.WriteHead(f.Handle, 0, 2001), data...)
				args = append(args, make([]byte, rpc.Roundup(2001))...)
				a := longCall(r, r.Call(rpc.Write, args), func(g *rpc.Region) rpc.Chunk { return g.Cut(1000, len(g.Data)-1000) }, nil)
				status, n, err := rpc.ParseWrite(r.Results(a))
				t.Try(err, "parsing the results of WRITE")
				t.Check(status == rpc.OK && n == 2001, "that WRITE takes all octets", "status %d, %d octets", status, n)
				f.Contents = data
				checkFile(t, r, f)
			}),
		},
	}, conformance.NeedExport)...)
	return ofServer(cases, 0)
}

// longCall sends a call as a Long Call, and returns the reply.
func longCall(r *rpc.Requester, c rpc.Call, cut func(*rpc.Region) rpc.Chunk, reply rpc.Chunk) rpc.Answer {
	return r.Do(c, rpc.Chunks{Long: true, Reads: cut(r.Lend(c.Octets())).At(0), Reply: reply})
}

func longReplies() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-3.5.3-3", Name: "read-2000",
			Title: "A reply with 2000 octets of data, and no Write list, is in the Reply chunk",
			Run: withFile("long-reply", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, res := readWith(t, r, f, 2000, rpc.Chunks{Reply: r.Room(4096).Whole()})
				t.Check(a.Proc == rpc.NoMsg && res.Count == 2000, "RDMA_NOMSG, and 2000 octets in the Reply chunk", "%s, and %d octets", a.Header, res.Count)
				checkContents(t, f, res.Rest[:min(2000, len(res.Rest))])
			}),
		},
		{
			Clause: "rfc8166-3.5.3-1", Name: "read-2000",
			Title: "No reply beyond the inline threshold is sent by a Send",
			Run: withFile("long-reply-send", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, _ := readWith(t, r, f, 2000, rpc.Chunks{Reply: r.Room(4096).Whole()})
				t.Check(a.Length <= rpc.DefaultThreshold, "a Send of at most 1024 octets", "one of %d", a.Length)
			}),
		},
		{
			Clause: "rfc8166-3.3.3-4", Name: "no-private-data",
			Title: "To a requester that says nothing of its receives, no Send is larger than 1024 octets",
			Run: withFile("default-threshold", 2000, func() []byte { return nil }, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, _ := readWith(t, r, f, 2000, rpc.Chunks{Reply: r.Room(4096).Whole()})
				t.Check(a.Length <= rpc.DefaultThreshold, "a Send of at most 1024 octets", "one of %d", a.Length)
			}),
		},
		{
			Clause: "rfc8166-3.5.3-4", Name: "read-2001",
			Title: "A reply in the Reply chunk has the roundup of its data: its length is a multiple of four",
			Run: withFile("long-reply-roundup", 2001, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, res := readWith(t, r, f, 2001, rpc.Chunks{Reply: r.Room(4096).Whole()})
				t.Check(a.Proc == rpc.NoMsg && len(a.Stream)%4 == 0, "a reply in the Reply chunk, of a multiple of four octets", "%s, %d octets", a.Proc, len(a.Stream))
				t.Check(len(res.Rest) == 2004, "2001 octets of data and 3 of roundup", "%d octets", len(res.Rest))
			}),
		},
		{
			Clause: "rfc8166-4.3.3-2", Name: "long-reply-in-segments",
			Title: "The Reply chunk of a Long Reply has all segments of the call's, filled in order, with what is in each",
			Run: withFile("long-reply-segments", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				given := r.Room(8192).Cut(500, 1, 999, 3000, 692, 3000)
				a, res := readWith(t, r, f, 2000, rpc.Chunks{Reply: given})
				t.Check(a.Proc == rpc.NoMsg, "RDMA_NOMSG", "%s", a.Header)
				checkChunk(t, "the Reply chunk", given, a.Header.Reply, len(a.Stream))
				checkContents(t, f, res.Rest[:min(2000, len(res.Rest))])
			}),
		},
		{
			Clause: "rfc8166-4.2.4-1", Name: "long-reply",
			Title: "A Long Reply is an RDMA_NOMSG with a Reply chunk, and neither Read nor Write list",
			Run: withFile("long-reply-lists", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, _ := readWith(t, r, f, 2000, rpc.Chunks{Reply: r.Room(4096).Whole()})
				t.Check(a.Proc == rpc.NoMsg && a.Header.Reply != nil && len(a.Reads) == 0 && len(a.Writes) == 0, "RDMA_NOMSG with a Reply chunk alone", "%s", a.Header)
			}),
		},
		{
			Clause: "rfc8166-4.2.4-2", Name: "long-reply",
			Title: "The Reply chunk of a Long Reply holds all of the Payload stream: it is as long as that",
			Run: withFile("long-reply-stream", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(4096)
				a, res := readWith(t, r, f, 2000, rpc.Chunks{Reply: room.Whole()})
				t.Check(a.Proc == rpc.NoMsg && len(res.Rest) == 2000, "RDMA_NOMSG with all data in the Reply chunk", "%s, %d octets", a.Proc, len(res.Rest))
				t.Check(room.Touched(0) == len(a.Stream), "that as much is written as the reply says", "%d octets, and the reply says %d", room.Touched(0), len(a.Stream))
			}),
		},
		{
			Clause: "rfc8166-4.2.1-1", Name: "long-reply",
			Title: "The XID of a Long Reply's header is that of the RPC message in the Reply chunk",
			Run: withFile("long-reply-xid", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, _ := readWith(t, r, f, 2000, rpc.Chunks{Reply: r.Room(4096).Whole()})
				t.Check(a.Proc == rpc.NoMsg && a.Reply.XID == a.XID, "the header's XID in the RPC message", "0x%08x, and 0x%08x in the header", a.Reply.XID, a.XID)
			}),
		},
		{
			Clause: "rfc8166-4.2.2-1", Name: "long-reply",
			Title: "The version of a Long Reply is one",
			Run: withFile("long-reply-version", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, _ := readWith(t, r, f, 2000, rpc.Chunks{Reply: r.Room(4096).Whole()})
				t.Check(a.Version == rpc.Version, "version 1", "%s", a.Header)
			}),
		},
		{
			Clause: "rfc8166-4.3.3-2", Name: "reply-chunk-and-write-chunk", Also: []string{"rfc8166-4.3.2-1"},
			Title: "With a Write chunk for the data, the reply has none of them: the Reply chunk comes back with what else is in it",
			Run: withFile("both-chunks", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				data, rest := r.Room(2000), r.Room(4096)
				a, res := readWith(t, r, f, 2000, rpc.Chunks{Writes: []rpc.Chunk{data.Whole()}, Reply: rest.Whole()})
				t.Check(len(a.Writes) == 1 && a.Header.Reply != nil, "a Write chunk and a Reply chunk", "%s", a.Header)
				n := rest.Touched(0)
				t.Check(a.Header.Reply.Len() == n, fmt.Sprintf("a Reply chunk of %d octets, as many as were written there", n), "%s", a.Header)
				t.Check(res.Count == 2000 && len(res.Rest) == 0, "2000 octets, in the Write chunk", "%d octets, %d of them in the Payload stream", res.Count, len(res.Rest))
				checkContents(t, f, data.Data)
			}),
		},
	}
	return ofServer(cases, conformance.NeedExport)
}
