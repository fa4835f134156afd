package cases

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcOverRDMA holds the cases of RPC-over-RDMA (RFC 8166, 8797, 8167).
func rpcOverRDMA() []conformance.Case {
	return slices.Concat(
		rpcCredits(), rpcHeaders(), rpcErrors(), rpcMalformed(), rpcDiscarded(), rpcReadChunks(), rpcWriteChunks(),
		rpcLong(), rpcEligibility(), rpcMemory(), rpcPrivate(), rpcClient(), rpcClientDiscards(), rpcClientChunks(),
	)
}

// ofServer makes cases for targets that are servers.
func ofServer(cases []conformance.Case, needs conformance.Needs) []conformance.Case {
	for i := range cases {
		cases[i].Roles = conformance.Responder
		cases[i].Needs |= conformance.NeedRPC | needs
	}
	return cases
}

// largeReply is how many bytes the tester takes at once where it offers more than the
// default.
const largeReply = 8192

// modest is the private data of a tester that takes and sends 1024 bytes, and whose
// STags are not to be invalidated.
func modest() []byte { return rpc.Offer(rpc.DefaultThreshold, 0).Octets() }

// invalidating is that of one whose STags may be invalidated.
func invalidating() []byte { return rpc.Offer(rpc.DefaultThreshold, rpc.FlagR).Octets() }

// server connects to a target that is a server.
func server(t *conformance.T) *rpc.Requester { return rpc.Connect(t, modest()) }

// fileName returns a name that no other case uses.
func fileName(of string) string {
	return "urnic-conform-" + strings.NewReplacer("/", "-", ".", "-").Replace(of)
}

// withFile runs a case with a file of n bytes.
func withFile(name string, n int, private func() []byte, run func(t *conformance.T, r *rpc.Requester, f *rpc.File)) func(t *conformance.T) {
	return func(t *conformance.T) {
		r := rpc.Connect(t, private())
		f := r.NewFile(fileName(name), conformance.Pattern(n))
		defer f.Remove()
		run(t, r, f)
	}
}

// readWith reads the first n bytes of a file, with chunks for the result.
func readWith(t *conformance.T, r *rpc.Requester, f *rpc.File, n int, with rpc.Chunks) (rpc.Answer, rpc.ReadResult) {
	return readAt(t, r, f, 0, n, with)
}

func readAt(t *conformance.T, r *rpc.Requester, f *rpc.File, off, n int, with rpc.Chunks) (rpc.Answer, rpc.ReadResult) {
	a := r.Do(r.Call(rpc.Read, rpc.ReadArgs(f.Handle, uint64(off), uint32(n))), with)
	return a, readResult(t, r, a)
}

func readResult(t *conformance.T, r *rpc.Requester, a rpc.Answer) rpc.ReadResult {
	res, err := rpc.ParseRead(r.Results(a))
	t.Try(err, "parsing the results of READ")
	return res
}

// checkChunk fails the case unless a chunk of the reply is that of the call,
// with lengths that fill it in order with n bytes.
func checkChunk(t *conformance.T, what string, given, got rpc.Chunk, n int) {
	want := make(rpc.Chunk, len(given))
	for i, s := range given {
		want[i] = s
		want[i].Length = min(s.Length, uint32(n))
		n -= int(want[i].Length)
	}
	t.Check(slices.EqualFunc(want, got, sameSegment), fmt.Sprintf("%s %s", what, want), "%s", got)
}

// sameSegment reports whether two segments are the same; where an empty one lies is not
// looked at.
func sameSegment(a, b rpc.Segment) bool {
	return a.Handle == b.Handle && a.Length == b.Length && a.Offset == b.Offset
}

// checkContents fails the case unless bytes are those of the file.
func checkContents(t *conformance.T, f *rpc.File, got []byte) {
	t.Check(bytes.Equal(got, f.Contents[:len(got)]), "the file's contents", "%d octets that differ", len(got))
}
