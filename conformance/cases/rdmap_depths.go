package cases

import (
	"fmt"
	"slices"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapHuge is more bytes than TCP keeps for a tester that does not read: a
// Read Response of it stays under way until the tester does.
const rdmapHuge = 8 << 20

// rdmapBeyondIRD is the codes with which a Read beyond IRD can be refused: DDP has no
// buffer for it, or RDMAP doesn't take it, for which there is no code of its own.
var rdmapBeyondIRD = []wire.Code{wire.DDPNoBuffer, wire.DDPMSNRange, wire.RDMAPCatastrophic, wire.RDMAPOther}

// rdmapReadsTaken is the cases on how many Reads the target takes at a time (RFC 5040
// §5.2.2, §6.1).
func rdmapReadsTaken() []conformance.Case {
	out := []conformance.Case{
		{
			Clause: "rfc5040-5.2.2-2", Name: "as-many-as-ird", Also: []string{"rfc5040-6.1-2"},
			Title: "As many Reads as the target has said that it takes, sent together, are all answered",
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				n := uint32(min(s.IRD, 1024))
				for range n {
					s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
				}
				for range n {
					s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
				}
			},
		},
		{
			Clause: "rfc5040-5.2.1-2", Name: "places-become-free",
			Title: "A Read Request takes one place of queue 1, and leaves it with its response: three times as many Reads as IRD are answered",
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				for range 3 {
					n := uint32(min(s.IRD, 64))
					for range n {
						s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
					}
					for range n {
						s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
					}
				}
			},
		},
		{
			Clause: "rfc5040-6.1-5", Name: "ird-0", Needs: conformance.NeedService, Also: []string{"rfc5040-5.2.2-2"},
			Title: "A target that takes no Reads refuses one, of no octets too",
			Run: func(t *conformance.T) {
				none := 0
				s := t.Open(conformance.Setup{Start: service.Start{IRD: &none}})
				if s.IRD != 0 {
					t.Skip("the target takes %d Reads, though its program wants none", s.IRD)
				}
				s.Hello()
				m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
				m.Wrong = "the target's IRD is 0"
				s.Post(m)
				s.AwaitTerminate(rdmapBeyondIRD...)
			},
		},
	}
	for _, ird := range []int{1, 4} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.2.2-2", Name: fmt.Sprintf("ird-%d-under-way", ird), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-6.1-2"},
			Title: fmt.Sprintf("%d Reads are taken while the response to the first can't leave, and all are answered", ird),
			Run: func(t *conformance.T) {
				s, source := rdmapHeldUp(t, ird)
				rdmapAwaitTaken(t, s, ird)
				for i := range ird {
					s.AwaitResponse(0x100+uint32(i), 0, source(i))
				}
				s.AwaitAlive()
			},
		}, conformance.Case{
			Clause: "rfc5040-6.1-5", Name: fmt.Sprintf("one-more-than-ird-%d", ird), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-5.2.1-2"},
			Title: fmt.Sprintf("Of %d Reads, while the response to the first can't leave, the last is refused, or waits outside", ird+1),
			Run: func(t *conformance.T) {
				s, _ := rdmapHeldUp(t, ird)
				m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
				m.Wrong = "one more than the target's IRD"
				s.Post(m)
				rdmapRefusesOneMore(t, s, 0, ird)
			},
		})
	}
	return out
}

// rdmapHeldUp opens a stream with a target that takes so many Reads, and sends them as
// rdmapHoldUp does.
func rdmapHeldUp(t *conformance.T, ird int) (s *conformance.Stream, source func(i int) int) {
	s = rdmapTakes(t, ird)
	return s, rdmapHoldUp(t, s, ird)
}

// rdmapTakes opens a stream with a target that takes so many Reads at a time.
func rdmapTakes(t *conformance.T, ird int) *conformance.Stream {
	unhurried(t)
	s := t.Open(conformance.Setup{Start: service.Start{IRD: &ird}})
	if int(s.IRD) != ird {
		t.Skip("the target takes %d Reads, though its program wants %d", s.IRD, ird)
	}
	return s
}

// rdmapHoldUp sends so many Reads. The response to the first can't leave before the
// tester reads. source tells the length of each.
func rdmapHoldUp(t *conformance.T, s *conformance.Stream, reads int) (source func(i int) int) {
	r := rdmapRegion(t, rdmapHuge, service.RemoteRead)
	source = func(i int) int {
		if i == 0 {
			return rdmapHuge
		}
		return 64 + i
	}
	for i := range reads {
		s.Post(conformance.ReadRequest(0x100+uint32(i), 0, uint32(source(i)), uint32(r.STag), uint64(r.TO)))
	}
	return source
}

// rdmapAwaitTaken waits until the target has received so many Read Requests. It is
// left at that if the target doesn't count them.
func rdmapAwaitTaken(t *conformance.T, s *conformance.Stream, n int) {
	for deadline := time.Now().Add(t.Timeout()); time.Now().Before(deadline); {
		st := s.TargetState()
		t.Check(st.State == service.StateRTS, fmt.Sprintf("that %d Reads are taken", n), "a stream in state %s", st.State)
		if got, counted := st.Received["read-request"]; !counted || got.Messages >= uint64(n) {
			return
		}
	}
	t.Fail(fmt.Sprintf("that %d Reads are taken", n), "%d", s.TargetState().Received["read-request"].Messages)
}

// rdmapRefusesOneMore judges what becomes of one Read more than the target takes, once
// it has answered some. It may leave it in TCP's buffers until it has room.
func rdmapRefusesOneMore(t *conformance.T, s *conformance.Stream, answered, ird int) {
	var st *service.State
	for deadline := time.Now().Add(t.Quiet()); ; {
		st = s.TargetState()
		if st.State != service.StateRTS || time.Now().After(deadline) {
			break
		}
	}
	if taken := st.Received["read-request"].Messages; st.State == service.StateRTS {
		t.Check(taken <= uint64(answered+ird), fmt.Sprintf("that no more than %d Reads are taken", answered+ird), "%d", taken)
	}
	expected := "at most " + fmt.Sprint(ird) + " Read Responses and a Terminate with " + conformance.Codes(rdmapBeyondIRD...)
	for responses := 0; ; {
		a, err := s.Answer(t.Timeout())
		if err != nil {
			t.Fail(expected, "%v", err)
		}
		switch {
		case a.Opcode == wire.ReadResponse && a.Last:
			responses++
			if responses > ird {
				t.Check(st.State == service.StateRTS, expected, "%d Read Responses", responses)
				return // the last one has waited for its turn
			}
		case a.Opcode == wire.ReadResponse:
		default:
			t.Check(a.Opcode == wire.Terminate, expected, "%s", a.Segment)
			h, err := wire.ParseTerminate(a.Payload)
			t.Check(err == nil && slices.Contains(rdmapBeyondIRD, h.Code), expected, "one with %s", h.Code)
			return
		}
	}
}

// rdmapReadsBegun is the cases on how many Reads the target begins at a time (RFC 5040
// §6.1).
func rdmapReadsBegun() []conformance.Case {
	var out []conformance.Case
	for _, ord := range []int{1, 2, 5} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-6.1-3", Name: fmt.Sprintf("ord-%d", ord), Needs: conformance.NeedService,
			Title: fmt.Sprintf("A target that may have %d Reads outstanding sends so many Read Requests before the first is answered", ord),
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, rdmapShallow(ord))
				rdmapBegin(t, s, ord, ord)
			},
		}, conformance.Case{
			Clause: "rfc5040-6.1-4", Name: fmt.Sprintf("ord-%d", ord), Needs: conformance.NeedService,
			Title: fmt.Sprintf("A target that may have %d Reads outstanding sends no further Read Request before one is answered, and then one", ord),
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, rdmapShallow(ord))
				fetches := rdmapBegin(t, s, ord, ord+2)
				s.AwaitQuiet(fmt.Sprintf("as %d Reads are outstanding", ord))
				for i, f := range fetches {
					s.Post(f.response(conformance.Pattern(f.n)))
					if next := i + ord; next < len(fetches) {
						fetches[next].request(t, s)
					}
				}
				for _, f := range fetches {
					f.succeeds(t, s, conformance.Pattern(f.n))
				}
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc5040-6.1-4", Name: "ord-0", Needs: conformance.NeedService,
		Title: "A target that may have no Read outstanding sends no Read Request",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, rdmapShallow(0))
			r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
			_, err := t.Service().Post(t.Context(), s.QP, service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)})
			if service.CodeOf(err) != service.CodeRefused {
				t.Try(err, "posting a Read")
			}
			a, err := s.Answer(t.Quiet())
			t.Check(err != nil || a.Opcode != wire.ReadRequest, "that no Read Request comes", "%s", a.Segment)
		},
	})
}

// rdmapShallow is a Setup with which the target may have so many Reads outstanding:
// the tester takes no more, and the target's program wants no more.
func rdmapShallow(ord int) conformance.Setup {
	ours := ord
	if ord == 0 {
		ours = -1
	}
	return conformance.Setup{IRD: ours, Start: service.Start{ORD: &ord}}
}

// rdmapBegin has the target post so many Reads, and takes the Read Requests that may
// come before the first response.
func rdmapBegin(t *conformance.T, s *conformance.Stream, ord, reads int) []*rdmapFetch {
	if p := s.TargetState().Params; p != nil && int(p.ORD) != ord {
		t.Skip("the target's ORD is %d, though its program wants %d", p.ORD, ord)
	}
	var fetches []*rdmapFetch
	var posts []service.Post
	for range reads {
		f := &rdmapFetch{sink: rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite), n: 64}
		fetches, posts = append(fetches, f), append(posts, f.post(0))
	}
	for i, id := range s.Posts(posts...) {
		fetches[i].id = id
	}
	for i := range min(ord, reads) {
		fetches[i].request(t, s)
	}
	return fetches
}
