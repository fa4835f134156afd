package cases

import (
	"bytes"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// A writeForm is how a WRITE's data are handed over.
type writeForm struct {
	name, title string
	clause      string
	harm        string
	n           int                              // bytes of data
	chunk       func(data *rpc.Region) rpc.Chunk // of the region, which has room for padding behind the data
	long        bool
}

func writes() []writeForm {
	whole := func(n int) func(*rpc.Region) rpc.Chunk {
		return func(g *rpc.Region) rpc.Chunk { return g.Cut(n) }
	}
	return []writeForm{
		{name: "even", n: 4096, chunk: whole(4096), clause: "rfc8166-3.4.5-1", title: "4096 octets in one segment"},
		{name: "position", n: 2000, chunk: whole(2000), clause: "rfc8166-3.4.5-2", title: "2000 octets behind a file handle"},
		{name: "odd", n: 2001, chunk: whole(2001), clause: "rfc8166-3.4.5.2-3", title: "2001 octets without roundup"},
		{name: "one", n: 1, chunk: whole(1), clause: "rfc8166-3.4.5.2-3", title: "one octet without roundup"},
		{name: "padded", n: 2001, chunk: whole(2004), clause: "rfc8166-3.4.5.2-2", title: "2001 octets with their roundup in the segment"},
		{
			name: "padded-by-a-segment", n: 2001, clause: "rfc8166-3.4.5.2-2", title: "2001 octets with their roundup in a segment of its own",
			chunk: func(g *rpc.Region) rpc.Chunk { return g.Cut(2001, 3) },
		},
		{
			name: "uneven-segments", n: 2001, clause: "rfc8166-3.4.4.1-2", title: "2001 octets in segments of 1, 999, 2, 998 and 1",
			chunk: func(g *rpc.Region) rpc.Chunk { return g.Cut(1, 999, 2, 998, 1) },
		},
		{
			name: "sixteen-segments", n: 1600, clause: "rfc8166-3.4.4.1-2", title: "1600 octets in 16 segments that lie in memory in falling order",
			chunk: func(g *rpc.Region) rpc.Chunk {
				c := make(rpc.Chunk, 16)
				for i := range c {
					c[15-i] = g.Segment(i*100, 100)
				}
				// The bytes are those of the file in the order of the list.
				data := bytes.Clone(g.Data[:1600])
				for i := range c {
					copy(g.Data[(15-i)*100:], data[i*100:(i+1)*100])
				}
				return c
			},
		},
		{
			name: "empty-segment", n: 2001, clause: "rfc8166-3.4.4.1-2", title: "2001 octets in two segments, with an empty one between them",
			harm:  "the kernel of Linux 6.1 follows a null pointer: a thread of its NFS server dies, with what it holds",
			chunk: func(g *rpc.Region) rpc.Chunk { return g.Cut(1000, 0, 1001) },
		},
		{name: "long-and-even-chunk", n: 2000, chunk: whole(2000), long: true, clause: "rfc8166-3.5.3-2", title: "2000 octets of a Long Call that is reduced"},
		{name: "long-and-chunk", n: 2001, chunk: whole(2001), long: true, clause: "rfc8166-3.5.3-2", title: "2001 octets of a Long Call that is reduced"},
	}
}

// rpcReadChunks holds what a server makes of Read chunks.
func rpcReadChunks() []conformance.Case {
	var cases []conformance.Case
	for _, w := range writes() {
		cases = append(cases, conformance.Case{
			Clause: w.clause, Name: "write-" + w.name, Harm: w.harm,
			Title: "A WRITE with its data in a Read chunk has them in the file: " + w.title,
			Run: withFile("write-"+w.name, 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				data := conformance.Pattern(w.n + 7)[7:]
				region := r.Lend(append(bytes.Clone(data), make([]byte, 8)...))
				a := writeFrom(r, f, w.n, w.chunk(region), w.long)
				t.Check(!a.Reply.Denied && a.Reply.Status == rpc.Success, "that WRITE takes all octets", "%s", a.Reply)
				status, n, err := rpc.ParseWrite(a.Reply.Results)
				t.Try(err, "parsing the results of WRITE")
				t.Check(status == rpc.OK && int(n) == w.n, "that WRITE takes all octets", "status %d, %d octets", status, n)
				region.Over = true
				f.Contents = data
				checkFile(t, r, f)
			}),
		})
	}
	cases = append(cases, []conformance.Case{
		{
			Clause: "rfc8166-4.3.1-1", Name: "reply-to-a-read-chunk",
			Title: "The Read list of the reply is empty, though that of the call is not",
			Run: withFile("empty-read-list", 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a := writeFrom(r, f, 2000, r.Lend(conformance.Pattern(2000)).Whole(), false)
				t.Check(len(a.Reads) == 0, "an empty Read list", "%s", a.Header)
			}),
		},
		{
			Clause: "rfc8166-4.5.2-2", Name: "chunk-shorter-than-its-count",
			Title: "A WRITE of 2000 octets whose chunk has 1000 is answered with GARBAGE_ARGS",
			Run: withFile("short-chunk", 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				checkGarbage(t, writeFrom(r, f, 2000, r.Lend(conformance.Pattern(1000)).Whole(), false))
			}),
		},
	}...)
	return ofServer(cases, conformance.NeedExport)
}

// writeFrom has the target write n bytes, which are in a Read chunk, at the beginning
// of the file.
func writeFrom(r *rpc.Requester, f *rpc.File, n int, chunk rpc.Chunk, long bool) rpc.Answer {
	c := r.Call(rpc.Write, rpc.WriteHead(f.Handle, 0, uint32(n)))
	message := c.Octets()
	with := rpc.Chunks{Reads: chunk.At(uint32(len(message)))}
	if long {
		with.Long = true
		with.Reads = append(r.Lend(message).Whole().At(0), with.Reads...)
	}
	return r.Do(c, with)
}

// checkFile reads the file, piece by piece and inline, and compares it.
func checkFile(t *conformance.T, r *rpc.Requester, f *rpc.File) {
	const inline = 512
	for off := 0; off < len(f.Contents); off += inline {
		want := f.Contents[off:min(off+inline, len(f.Contents))]
		_, res := readAt(t, r, f, off, len(want), rpc.Chunks{})
		got := res.Rest[:min(len(res.Rest), len(want))]
		t.Check(res.Status == rpc.OK && bytes.Equal(got, want), "in the file what was written", "status %d, and %d octets that differ from octet %d on", res.Status, len(got), off)
	}
}
