package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcDiscarded holds what a server silently discards.
func rpcDiscarded() []conformance.Case {
	var cases []conformance.Case
	for _, n := range []int{1, 4, 16, 20, 24, 27} {
		cases = append(cases, conformance.Case{
			Clause: "rfc8166-4.5-1", Name: fmt.Sprintf("message-of-%d", n),
			Title: "A message that is shorter than the shortest header is silently discarded",
			Run: func(t *conformance.T) {
				r := server(t)
				r.Do(r.Null(), rpc.Chunks{})
				h := r.Header(r.Null(), rpc.Chunks{})
				r.PostOctets(h.Octets()[:n], fmt.Sprintf("%d octets", n), "no whole header")
				r.AwaitDiscarded()
			},
		})
	}
	for _, e := range []struct {
		clause, name, title string
		h                   rpc.Header
	}{
		{"rfc8166-4.2.4-4", "err-chunk", "RDMA_ERROR with ERR_CHUNK", rpc.Header{Proc: rpc.Error, Err: rpc.ErrChunk}},
		{"rfc8166-4.2.4-4", "err-vers", "RDMA_ERROR with ERR_VERS", rpc.Header{Proc: rpc.Error, Err: rpc.ErrVers, Low: 1, High: 1}},
		{"rfc8166-4.5-7", "error-77", "RDMA_ERROR with an error that there is not", rpc.Header{Proc: rpc.Error, Err: 77}},
		{"rfc8166-4.6.2-2", "done", "RDMA_DONE", rpc.Header{Proc: rpc.Done}},
	} {
		cases = append(cases, conformance.Case{
			Clause: e.clause, Name: e.name,
			Title: e.title + " from a requester is silently discarded",
			Run: func(t *conformance.T) {
				r := server(t)
				r.Do(r.Null(), rpc.Chunks{})
				h := e.h
				h.XID, h.Version, h.Credits = r.Null().XID, rpc.Version, 32
				r.Post(h, make([]byte, 12), "a message that a requester does not send") // 28 bytes at least
				r.AwaitDiscarded()
			},
		})
	}
	return ofServer(cases, 0)
}
