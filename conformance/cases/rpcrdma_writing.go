package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcWriteChunks holds what a server makes of Write chunks.
func rpcWriteChunks() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-4.3.2-1", Name: "read",
			Title: "The data of READ are in the Write chunk, and not in the reply",
			Run: withFile("read", 4096, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(4096)
				_, res := readWith(t, r, f, 4096, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				t.Check(res.Status == rpc.OK && res.Count == 4096, "4096 octets", "status %d, %d octets", res.Status, res.Count)
				t.Check(len(res.Rest) == 0, "nothing behind the count of the data", "%d octets", len(res.Rest))
				checkContents(t, f, room.Data)
			}),
		},
		{
			Clause: "rfc8166-4.3.2-1", Name: "few-octets",
			Title: "The data of READ are in the Write chunk even if they would fit into the reply",
			Run: withFile("few-octets", 8, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(8)
				_, res := readWith(t, r, f, 8, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				t.Check(len(res.Rest) == 0, "nothing behind the count of the data", "%d octets", len(res.Rest))
				checkContents(t, f, room.Data)
			}),
		},
		{
			Clause: "rfc8166-3.4.4.1-1", Name: "read",
			Title: "The count of READ's data stays in the Payload stream",
			Run: withFile("count", 1000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(1000)
				_, res := readWith(t, r, f, 1000, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				t.Check(res.Length == 1000, "the count of the data, 1000, in the Payload stream", "%d", res.Length)
				t.Check(room.Data[0] == f.Contents[0], "the first octet of the file as the first of the chunk", "%d", room.Data[0])
			}),
		},
		{
			Clause: "rfc8166-3.4.4.4-1", Name: "read",
			Title: "The Write chunk has the data of READ, and nothing of what else it returns",
			Run: withFile("one-item", 1000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(4096)
				a, _ := readWith(t, r, f, 1000, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				t.Check(len(a.Writes) == 1 && a.Writes[0].Len() == 1000, "a Write chunk of 1000 octets", "%s", a.Header)
				checkContents(t, f, room.Data[:1000])
			}),
		},
		{
			Clause: "rfc8166-3.4.6-2", Name: "segments",
			Title: "The Write chunk of the reply has all segments of the call's, filled in order, with what is in each",
			Run: withFile("segments", 1500, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(4096)
				given := room.Cut(1, 1000, 700, 300, 2000)
				a, _ := readWith(t, r, f, 1500, rpc.Chunks{Writes: []rpc.Chunk{given}})
				t.Check(len(a.Writes) == 1, "one Write chunk", "%s", a.Header)
				checkChunk(t, "the Write chunk", given, a.Writes[0], 1500)
				checkContents(t, f, room.Data[:1500])
			}),
		},
		{
			Clause: "rfc8166-3.4.6-2", Name: "two-regions",
			Title: "Segments of several STags are filled in the order of the chunk, and come back in it",
			Run: withFile("two-regions", 1500, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				first, second := r.Room(700), r.Room(2000)
				given := rpc.Chunk{second.Segment(0, 1000), first.Segment(0, 700)}
				a, _ := readWith(t, r, f, 1500, rpc.Chunks{Writes: []rpc.Chunk{given}})
				t.Check(len(a.Writes) == 1, "one Write chunk", "%s", a.Header)
				checkChunk(t, "the Write chunk", given, a.Writes[0], 1500)
				checkContents(t, f, append(bytes.Clone(second.Data[:1000]), first.Data[:500]...))
			}),
		},
		{
			Clause: "rfc8166-4.3.2.2-3", Name: "attributes",
			Title: "GETATTR has no eligible result: its Write chunk comes back with all segments empty",
			Run: withFile("attributes", 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				given := r.Room(4096).Cut(1000, 3096)
				a := r.Do(r.Call(rpc.GetAttr, rpc.HandleArgs(f.Handle)), rpc.Chunks{Writes: []rpc.Chunk{given}})
				t.Check(len(a.Writes) == 1, "one Write chunk", "%s", a.Header)
				checkChunk(t, "the Write chunk", given, a.Writes[0], 0)
			}),
		},
		{
			Clause: "rfc8166-4.3.2.2-3", Name: "failed-read",
			Title: "A READ that fails has no data: its Write chunk comes back with all segments empty",
			Run: withFile("failed-read", 4, modest, func(t *conformance.T, r *rpc.Requester, _ *rpc.File) {
				given := r.Room(4096).Cut(1000, 3096)
				a := r.Do(r.Call(rpc.Read, rpc.ReadArgs(t.Root(), 0, 4096)), rpc.Chunks{Writes: []rpc.Chunk{given}})
				res := readResult(t, r, a)
				if res.Status == rpc.OK {
					t.Inconclusive("a directory can be read as a file")
				}
				t.Check(len(a.Writes) == 1, "one Write chunk", "%s", a.Header)
				checkChunk(t, "the Write chunk", given, a.Writes[0], 0)
			}),
		},
		{
			Clause: "rfc8166-4.3.2.2-3", Name: "second-chunk",
			Title: "READ has one eligible result: the second Write chunk comes back with all segments empty",
			Run: withFile("second-chunk", 1000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				first, second := r.Room(1000), r.Room(1000)
				given := []rpc.Chunk{first.Whole(), second.Cut(500, 500)}
				a, _ := readWith(t, r, f, 1000, rpc.Chunks{Writes: given})
				t.Check(len(a.Writes) == 2, "two Write chunks", "%s", a.Header)
				checkChunk(t, "the first Write chunk", given[0], a.Writes[0], 1000)
				checkChunk(t, "the second Write chunk", given[1], a.Writes[1], 0)
			}),
		},
		{
			Clause: "rfc8166-4.3.2.3-1", Name: "read",
			Title: "Of an empty Write chunk, the data of READ come inline",
			Run: withFile("empty-chunk", 100, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				_, res := readWith(t, r, f, 100, rpc.Chunks{Writes: []rpc.Chunk{{}}})
				t.Check(res.Status == rpc.OK && len(res.Rest) >= 100, "the data behind their count", "status %d, %d octets", res.Status, len(res.Rest))
				checkContents(t, f, res.Rest[:100])
			}),
		},
		{
			Clause: "rfc8166-4.3.2.3-2", Name: "read",
			Title: "An empty Write chunk comes back as an empty Write chunk",
			Run: withFile("empty-chunk-back", 100, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, _ := readWith(t, r, f, 100, rpc.Chunks{Writes: []rpc.Chunk{{}}})
				t.Check(len(a.Writes) == 1 && len(a.Writes[0]) == 0, "one empty Write chunk", "%s", a.Header)
			}),
		},
		{
			Clause: "rfc8166-3.4.4.4-2", Name: "read-behind-a-write",
			Title: "Of data that are not a multiple of four octets, nothing is left behind the count, no roundup either",
			Run: withFile("roundup", 1001, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				_, res := readWith(t, r, f, 1001, rpc.Chunks{Writes: []rpc.Chunk{r.Room(1001).Whole()}})
				t.Check(res.Status == rpc.OK && res.Count == 1001, "1001 octets", "status %d, %d octets", res.Status, res.Count)
				t.Check(len(res.Rest) == 0, "nothing behind the count of the data", "%d octets", len(res.Rest))
			}),
		},
	}
	for n := 1; n <= 8; n++ {
		size := 1000 + n
		cases = append(cases, conformance.Case{
			Clause: "rfc8166-3.4.6.2-2", Name: fmt.Sprintf("read-%d", size),
			Title: "No roundup is written into a Write chunk that has room for it",
			Run: withFile(fmt.Sprintf("no-roundup-%d", size), size, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(size + 8)
				readWith(t, r, f, size, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				t.Check(room.Touched(0) == size, fmt.Sprintf("that %d octets are written", size), "%d", room.Touched(0))
			}),
		}, conformance.Case{
			Clause: "rfc8166-3.4.6.2-3", Name: fmt.Sprintf("read-%d", size),
			Title: "The returned Write chunk is as long as the data, without roundup",
			Run: withFile(fmt.Sprintf("chunk-length-%d", size), size, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				given := r.Room(size+8).Cut(size-3, 11)
				a, res := readWith(t, r, f, size, rpc.Chunks{Writes: []rpc.Chunk{given}})
				t.Check(int(res.Count) == size && len(a.Writes) == 1, "all octets, in one Write chunk", "%d octets, %s", res.Count, a.Header)
				checkChunk(t, "the Write chunk", given, a.Writes[0], size)
			}),
		})
	}
	return ofServer(cases, conformance.NeedExport)
}
