package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

func rpcCredits() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-3.3.1-3", Name: "as-many-calls-as-granted",
			Title: "As many calls at once as the first reply grants are all answered",
			Run: func(t *conformance.T) {
				r := server(t)
				r.Do(r.Null(), rpc.Chunks{})
				const most = 512 // what nobody grants by mistake
				n := min(int(r.Credits), most)
				waiting := map[uint32]rpc.Header{}
				_ = r.Together(func() {
					for range n {
						c := r.Null()
						waiting[c.XID] = r.Header(c, rpc.Chunks{})
						r.Send(waiting[c.XID], c)
					}
				}) // if they can't be sent, replies are missing
				for len(waiting) > 0 {
					m := r.Await("a reply to each call")
					h, ok := waiting[m.XID]
					t.Check(ok, "a reply to each call", "%s", m.Header)
					r.Answered(m, h)
					delete(waiting, m.XID)
				}
			},
		},
		{
			Clause: "rfc8166-3.3.1-3", Name: "calls-at-every-grant",
			Title: "While replies come, calls go out up to what the last one grants, and all are answered",
			Run: func(t *conformance.T) {
				r := server(t)
				r.Do(r.Null(), rpc.Chunks{})
				const rounds = 200
				waiting := map[uint32]rpc.Header{}
				for sent := 0; sent < rounds || len(waiting) > 0; {
					for sent < rounds && len(waiting) < min(int(r.Credits), 32) {
						c := r.Null()
						waiting[c.XID] = r.Header(c, rpc.Chunks{})
						r.Send(waiting[c.XID], c)
						sent++
					}
					m := r.Await("a reply to each call")
					h, ok := waiting[m.XID]
					t.Check(ok, "a reply to each call", "%s", m.Header)
					r.Answered(m, h)
					delete(waiting, m.XID)
				}
			},
		},
		{
			Clause: "rfc8166-3.3.1-2", Name: "in-an-error",
			Title: "RDMA_ERROR, too, grants credits",
			Run: func(t *conformance.T) {
				r := server(t)
				h := badProcedure(r)
				m := r.AwaitError(h)
				t.Check(m.Credits > 0, "credits of 1 or more", "%s", m.Header)
			},
		},
		{
			Clause: "rfc8166-3.3.3-3", Name: "call-of-1024",
			Title: "A call whose Send has 1024 octets is answered",
			Run: func(t *conformance.T) {
				r := server(t)
				c := r.Null()
				h := r.Header(c, rpc.Chunks{})
				fill := rpc.DefaultThreshold - len(h.Octets()) - len(c.Octets())
				c.Args = make([]byte, fill)
				r.Send(h, c)
				r.AwaitReply(h)
			},
		},
	}
	for _, asked := range []uint32{0, 1, 0xFFFFFFFF} {
		cases = append(cases, conformance.Case{
			Clause: "rfc8166-3.3.1-2", Name: fmt.Sprintf("asked-for-%d", asked),
			Title: "A reply grants credits, however many are asked for",
			Run: func(t *conformance.T) {
				r := server(t)
				c := r.Null()
				h := r.Header(c, rpc.Chunks{})
				h.Credits = asked
				r.Send(h, c)
				a := r.AwaitReply(h)
				t.Check(a.Credits > 0, "credits of 1 or more", "%s", a.Header)
			},
		})
	}
	return ofServer(cases, 0)
}
