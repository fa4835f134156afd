package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapLaterFences is requests that wait for those before them, after many others that
// did, and after many Reads (RFC 5040 §5.5).
func rdmapLaterFences() []conformance.Case {
	out := []conformance.Case{fenceBehindReads}
	for _, f := range []struct {
		name, what string
		set        func(p *service.Post)
	}{
		{"read-fence", "for the Reads before them", func(p *service.Post) { p.ReadFence = true }},
		{"local-fence", "for all requests before them", func(p *service.Post) { p.LocalFence = true }},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.5-9", Name: f.name + "-again-and-again", Needs: conformance.NeedService,
			Title: fmt.Sprintf("%d Sends, RDMA Writes and Reads that are to wait %s are each sent when the Read before them is answered, and not before", before+1, f.what),
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, conformance.Setup{})
				r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
				read := service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)}
				kinds := []service.Post{
					{Op: service.OpSend, Data: conformance.Pattern(8)},
					{Op: service.OpWrite, Data: conformance.Pattern(8), Remote: rdmapRemote(0)},
					read,
				}
				opcodes := []wire.Opcode{wire.Send, wire.Write, wire.ReadRequest}
				for i := range before + 1 {
					fenced := kinds[i%len(kinds)]
					f.set(&fenced)
					ids := s.Posts(read, fenced)
					request := s.AwaitMessage(wire.ReadRequest)
					s.AwaitAlive() // its response would come after what does not wait
					if i == before {
						s.AwaitQuiet("as the Read is not answered")
					}
					rdmapAnswer(t, s, request)
					if m := s.AwaitMessage(opcodes[i%len(kinds)]); m.Opcode == wire.ReadRequest {
						rdmapAnswer(t, s, m)
					}
					rdmapInOrder(t, s, ids)
				}
			},
		})
	}
	return out
}

// fenceBehindReads is the case on a request that waits for more Reads than two, after
// many that are over.
var fenceBehindReads = conformance.Case{
	Clause: "rfc5040-5.5-9", Name: "read-fence-later", Needs: conformance.NeedService,
	Title: fmt.Sprintf("After %d Reads, a Send that is to wait for eight is sent when the last of them is answered, and not before", 2*before),
	Run: func(t *conformance.T) {
		const window = 8
		s := rdmapSpeaking(t, conformance.Setup{})
		r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
		posts := make([]service.Post, window)
		for i := range posts {
			posts[i] = service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)}
		}
		requests := func() []wire.Segment {
			out := make([]wire.Segment, window)
			for i := range out {
				out[i] = s.AwaitMessage(wire.ReadRequest)
			}
			return out
		}
		for range 2 * before / window {
			ids := s.Posts(posts...)
			for _, request := range requests() {
				rdmapAnswer(t, s, request)
			}
			rdmapInOrder(t, s, ids)
		}
		ids := s.Posts(append(posts, service.Post{Op: service.OpSend, Data: conformance.Pattern(8), ReadFence: true})...)
		for i, request := range requests() {
			s.AwaitAlive() // its response would come after a Send that does not wait
			if i == window-1 {
				s.AwaitQuiet("as the last Read is not answered")
			}
			rdmapAnswer(t, s, request)
		}
		s.AwaitMessage(wire.Send)
		rdmapInOrder(t, s, ids)
	},
}
