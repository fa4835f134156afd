package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// badProcedure sends a call whose header has a procedure that there is not.
func badProcedure(r *rpc.Requester) rpc.Header {
	c := r.Null()
	h := r.Header(c, rpc.Chunks{})
	h.Proc = 5
	r.Post(h, c.Octets(), "a procedure that there is not")
	return h
}

// badVersion sends a call of another version.
func badVersion(r *rpc.Requester, version uint32) rpc.Header {
	c := r.Null()
	h := r.Header(c, rpc.Chunks{})
	h.Version = version
	r.Post(h, c.Octets(), "a version that there is not")
	return h
}

// rpcErrors holds what is true of every error message.
func rpcErrors() []conformance.Case {
	var cases []conformance.Case
	for _, version := range []uint32{0, 2, 3, 0x01000000, 0xFFFFFFFF} {
		name := fmt.Sprintf("version-%08x", version)
		cases = append(cases, conformance.Case{
			Clause: "rfc8166-4.5.1-1", Name: name,
			Title: "A call of another version is answered with ERR_VERS and a range that has 1, and the connection goes on",
			Run: func(t *conformance.T) {
				r := server(t)
				m := r.AwaitError(badVersion(r, version))
				const expected = "ERR_VERS with a range of versions that has 1, and not the one sent"
				t.Check(m.Invalid == nil && m.Err == rpc.ErrVers && m.Low <= rpc.Version && rpc.Version <= m.High, expected, "%s", m.Header)
				t.Check(version < m.Low || version > m.High, expected, "%s", m.Header)
				r.Do(r.Null(), rpc.Chunks{})
			},
		}, conformance.Case{
			Clause: "rfc8166-4.5-5", Name: name,
			Title: "The error message for a call of another version has that version",
			Run: func(t *conformance.T) {
				r := server(t)
				m := r.AwaitError(badVersion(r, version))
				t.Check(m.Version == version, fmt.Sprintf("version %d", version), "%s", m.Header)
			},
		})
	}
	cases = append(cases, []conformance.Case{
		{
			Clause: "rfc8166-4.5.1-1", Name: "header-of-28-octets",
			Title: "Another version may have anything behind its first four words: a message of them, and no RPC message, gets ERR_VERS too",
			Run: func(t *conformance.T) {
				r := server(t)
				h := r.Header(r.Null(), rpc.Chunks{})
				h.Version = 2
				b := h.Octets()
				copy(b[16:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
				r.PostOctets(b, h.String(), "a version that there is not, and lists that make no sense")
				m := r.AwaitError(h)
				t.Check(m.Err == rpc.ErrVers, "ERR_VERS", "%s", m.Header)
			},
		},
		{
			Clause: "rfc8166-4.5-4", Name: "chunk",
			Title: "The error message for a procedure that there is not has the XID of the request",
			Run:   func(t *conformance.T) { checkErrorXID(t, badProcedure) },
		},
		{
			Clause: "rfc8166-4.5-4", Name: "version",
			Title: "The error message for a version that there is not has the XID of the request",
			Run: func(t *conformance.T) {
				checkErrorXID(t, func(r *rpc.Requester) rpc.Header { return badVersion(r, 2) })
			},
		},
		{
			Clause: "rfc8166-4.5-5", Name: "chunk",
			Title: "The error message for a procedure that there is not has version one",
			Run: func(t *conformance.T) {
				r := server(t)
				m := r.AwaitError(badProcedure(r))
				t.Check(m.Version == rpc.Version, "version 1", "%s", m.Header)
			},
		},
		{
			Clause: "rfc8166-4.5-6", Name: "chunk",
			Title: "A procedure that there is not is answered with the procedure RDMA_ERROR",
			Run: func(t *conformance.T) {
				r := server(t)
				r.AwaitError(badProcedure(r))
			},
		},
		{
			Clause: "rfc8166-4.5-6", Name: "version",
			Title: "A version that there is not is answered with the procedure RDMA_ERROR",
			Run: func(t *conformance.T) {
				r := server(t)
				r.AwaitError(badVersion(r, 2))
			},
		},
		{
			Clause: "rfc8166-4.6.1-2", Name: "msgp",
			Title: "RDMA_MSGP is answered with ERR_CHUNK",
			Run: func(t *conformance.T) {
				r := server(t)
				c := r.Null()
				h := r.Header(c, rpc.Chunks{})
				h.Proc, h.Align, h.Threshold = rpc.MsgP, 8, 1024
				r.Post(h, c.Octets(), "a procedure that is not to be used")
				m := r.AwaitError(h)
				t.Check(m.Err == rpc.ErrChunk, "ERR_CHUNK", "%s", m.Header)
			},
		},
		{
			Clause: "rfc8166-4.5.2-2", Name: "short-arguments", Needs: conformance.NeedExport,
			Title: "A call whose arguments end too early is answered with GARBAGE_ARGS",
			Run: func(t *conformance.T) {
				r := server(t)
				args := rpc.HandleArgs(t.Root())
				a := r.Do(r.Call(rpc.GetAttr, args[:len(args)-4]), rpc.Chunks{})
				checkGarbage(t, a)
			},
		},
	}...)
	return ofServer(cases, 0)
}

func checkErrorXID(t *conformance.T, wrong func(*rpc.Requester) rpc.Header) {
	r := server(t)
	r.Do(r.Null(), rpc.Chunks{})
	h := wrong(r)
	m := r.AwaitError(h)
	t.Check(m.XID == h.XID, fmt.Sprintf("XID 0x%08x", h.XID), "%s", m.Header)
}

func checkGarbage(t *conformance.T, a rpc.Answer) {
	t.Check(!a.Reply.Denied && a.Reply.Status == rpc.GarbageArgs && a.Proc == rpc.Msg, "RDMA_MSG with GARBAGE_ARGS", "%s with %s", a.Proc, a.Reply)
}
