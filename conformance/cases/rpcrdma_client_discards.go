package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcClientDiscards holds what a client silently discards while it waits for a reply,
// which then comes.
func rpcClientDiscards() []conformance.Case {
	discarded := []struct {
		clause, name, title string
		octets              func(h rpc.Header, r rpc.Reply) []byte
	}{
		{"rfc8166-4.5-3", "procedure-5", "a procedure that there is not", func(h rpc.Header, r rpc.Reply) []byte {
			h.Proc = 5
			return append(h.Octets(), r.Octets()...)
		}},
		{"rfc8166-4.5-3", "version-2", "a version that there is not", func(h rpc.Header, r rpc.Reply) []byte {
			h.Version = 2
			return append(h.Octets(), r.Octets()...)
		}},
		{"rfc8166-4.5-3", "write-list-2", "a Write list that begins with 2 in place of 0 or 1", func(h rpc.Header, r rpc.Reply) []byte {
			b := rpc.Header{XID: h.XID, Version: h.Version, Credits: h.Credits}.Octets()
			b[23] = 2
			return append(b, r.Octets()...)
		}},
		{"rfc8166-4.5-3", "write-chunk-of-4-billion", "a Write chunk that says it has 2^32-1 segments", func(h rpc.Header, _ rpc.Reply) []byte {
			b := rpc.Header{XID: h.XID, Version: h.Version, Credits: h.Credits}.Octets()
			return append(append(b[:20], 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF), b[24:]...)
		}},
		{"rfc8166-4.5-3", "reply-chunk-cut", "a Reply chunk of two segments, one of which is there", func(h rpc.Header, _ rpc.Reply) []byte {
			h = rpc.Header{XID: h.XID, Version: h.Version, Credits: h.Credits, Reply: rpc.Chunk{{}, {}}}
			b := h.Octets()
			return b[:len(b)-16]
		}},
		{"rfc8166-4.5-3", "nomsg-without-chunks", "an RDMA_NOMSG with three empty lists", func(h rpc.Header, _ rpc.Reply) []byte {
			return rpc.Header{XID: h.XID, Version: h.Version, Credits: h.Credits, Proc: rpc.NoMsg}.Octets()
		}},
		{"rfc8166-4.5-7", "error-77-to-a-client", "RDMA_ERROR with an error that there is not", func(h rpc.Header, _ rpc.Reply) []byte {
			h.Proc, h.Err = rpc.Error, 77
			return append(h.Octets(), make([]byte, 8)...)
		}},
		{"rfc8166-4.6.1-3", "msgp", "RDMA_MSGP", func(h rpc.Header, r rpc.Reply) []byte {
			h.Proc, h.Align, h.Threshold = rpc.MsgP, 8, 1024
			return append(h.Octets(), r.Octets()...)
		}},
		{"rfc8166-4.6.2-2", "done-to-a-client", "RDMA_DONE", func(h rpc.Header, _ rpc.Reply) []byte {
			h.Proc = rpc.Done
			return append(h.Octets(), make([]byte, 12)...)
		}},
	}
	for _, n := range []int{1, 4, 16, 24, 27} {
		discarded = append(discarded, struct {
			clause, name, title string
			octets              func(h rpc.Header, r rpc.Reply) []byte
		}{"rfc8166-4.5-1", fmt.Sprintf("reply-of-%d", n), "a message that is shorter than the shortest header", func(h rpc.Header, _ rpc.Reply) []byte {
			return h.Octets()[:n]
		}})
	}
	var cases []conformance.Case
	for _, d := range discarded {
		cases = append(cases, conformance.Case{
			Clause: d.clause, Name: d.name,
			Title: "A client that waits for its reply silently discards " + d.title + ", and takes the reply that follows",
			Run: withCall(modest(), func(_ *conformance.T, s *rpc.Server, in *rpc.Incoming) {
				s.PostOctets(d.octets(s.ReplyHeader(in), rpc.Reply{XID: in.XID}), d.title, "to be discarded")
				s.AwaitSilence(noRepeat)
				s.Reply(in)
				s.AwaitGoesOn("the reply")
			}),
		})
	}
	return ofClient(cases)
}
