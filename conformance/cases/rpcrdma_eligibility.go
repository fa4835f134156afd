package cases

import (
	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcEligibility holds what may be reduced, and what not (RFC 8166 §6.1, RFC 8267).
func rpcEligibility() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-3.4.2-1", Name: "attributes",
			Title: "The attributes that GETATTR returns come inline, though there is a Write chunk",
			Run: func(t *conformance.T) {
				r := server(t)
				checkAttributes(t, r)
			},
		},
		{
			Clause: "rfc8166-6.1-1", Name: "handle",
			Title: "The file handle and the attributes that LOOKUP returns come inline, though there is a Write chunk",
			Run: withFile("lookup", 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(4096)
				a := r.Do(r.Call(rpc.Lookup, rpc.NameArgs(t.Root(), fileName("lookup"))), rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				status, handle, err := rpc.ParseHandle(rpc.Lookup, r.Results(a))
				t.Check(err == nil && status == rpc.OK && string(handle) == string(f.Handle), "the file's handle in the reply", "status %d, handle %x, %v", status, handle, err)
			}),
		},
		{
			Clause: "rfc8166-6.1-2", Name: "name-in-a-read-chunk",
			Title: "A CREATE whose name is reduced, which is not eligible, makes no file",
			Run: func(t *conformance.T) {
				r := server(t)
				name := fileName("reduced-name")
				f := r.NewFile(name, nil)
				f.Remove()
				m := createReduced(r, t.Root(), name)
				made := r.Exists(name)
				if made {
					f.Remove()
				}
				t.Check(!made, "that there is no file", "a file, and %s", m.Header)
			},
		},
		{
			Clause: "rfc8166-6.1-3", Name: "name-in-a-read-chunk",
			Title: "A CREATE whose name is reduced, which is not eligible, is answered with ERR_CHUNK or GARBAGE_ARGS",
			Run: func(t *conformance.T) {
				r := server(t)
				name := fileName("reduced-name-reported")
				f := r.NewFile(name, nil)
				defer f.Remove()
				m := createReduced(r, t.Root(), name)
				const expected = "ERR_CHUNK or GARBAGE_ARGS"
				if m.Proc == rpc.Error {
					t.Check(m.Err == rpc.ErrChunk, expected, "%s", m.Header)
					return
				}
				reply, err := rpc.ParseReply(m.Payload)
				t.Try(err, "parsing the reply")
				t.Check(!reply.Denied && reply.Status == rpc.GarbageArgs, expected, "%s", reply)
			},
		},
	}
	return ofServer(cases, conformance.NeedExport)
}

func checkAttributes(t *conformance.T, r *rpc.Requester) {
	const attributes = 84
	room := r.Room(4096)
	a := r.Do(r.Call(rpc.GetAttr, rpc.HandleArgs(t.Root())), rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
	got := r.Results(a)
	t.Check(len(got) == 4+attributes, "a status and the attributes", "%d octets", len(got))
	t.Check(room.Touched(0) == 0, "an untouched Write chunk", "%d octets in it", room.Touched(0))
}

// createReduced sends a CREATE with its name in a Read chunk, and returns what comes.
func createReduced(r *rpc.Requester, dir []byte, name string) *rpc.Message {
	args := rpc.CreateArgs(dir, name)
	c := r.Call(rpc.Create, args)
	head := len(rpc.Opaque(nil, dir)) + 4 // directory, and the count of the name
	at := len(c.Octets()) - len(args) + head
	data := []byte(name)
	rest := args[head+len(name)+rpc.Roundup(len(name)):]
	c.Args = append(append([]byte(nil), args[:head]...), rest...)
	h := r.Header(c, rpc.Chunks{Reads: r.Lend(data).Whole().At(uint32(at))})
	r.Post(h, c.Octets(), "a Read chunk with a name, which is not eligible")
	return r.Await("an answer to a call that reduces a name")
}
