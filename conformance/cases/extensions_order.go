package cases

import (
	"fmt"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// atomicOrder: atomics are carried out and answered in turn.
var atomicOrder = []conformance.Case{
	{
		Clause: "rfc7306-5.2.1-10", Name: "fetchadds-in-order", Also: []string{"rfc7306-5.4-6"},
		Title: "Atomic Requests that come at once are carried out in the order sent: each FetchAdd finds what those before it have added",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicWord(t, s, 0)
			n := outstanding(s)
			var posts []wire.Segment
			for i := range n {
				h := fetchAdd(b, 0, 1<<i, 0)
				h.RequestID = uint32(i)
				posts = append(posts, atomicRequest(h))
			}
			s.Post(posts...)
			for i := range n {
				want := uint64(1)<<i - 1
				got := awaitOriginal(t, s, uint32(i))
				t.Check(got == want, fmt.Sprintf("the original value 0x%x for request %d", want, i), "0x%x", got)
			}
		},
	},
	{
		Clause: "rfc7306-5.2.1-10", Name: "cmpswaps-in-order", Also: []string{"rfc7306-5.4-6"},
		Title: "Atomic Requests that come at once are carried out in the order sent: each CmpSwap compares with what the one before it has left",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicWord(t, s, 0)
			n := outstanding(s)
			var posts []wire.Segment
			for i := range n {
				posts = append(posts, atomicRequest(cmpSwap(b, 0, uint64(i), uint64(i+1))))
			}
			s.Post(posts...)
			for range n {
				awaitOriginal(t, s, requestID)
			}
			s.AwaitContents(b, 0, inMemory(t, uint64(n)))
		},
	},
	{
		Clause: "rfc7306-5.2.2-6", Name: "responses-in-order", Also: []string{"rfc7306-5.4-7"},
		Title: "Atomic Responses come in the order of the requests, whatever their identifiers and words",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicBuffer(s, 8*conformance.DefaultDepth)
			n := outstanding(s)
			var posts []wire.Segment
			for i := range n {
				h := atomicKinds[i%2].on(b, 8*(n-1-i))
				h.RequestID = uint32(i*7919) % 101
				posts = append(posts, atomicRequest(h))
			}
			s.Post(posts...)
			for i := range n {
				awaitOriginal(t, s, uint32(i*7919)%101)
			}
		},
	},
	{
		Clause: "rfc7306-5.4-7", Name: "reads-between", Also: []string{"rfc7306-5.2.2-6", "rfc5040-5.5-10"},
		Title: "Reads and atomics that come at once are answered in the order of the requests (RFC 7306 §7)",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			needDepth(t, s, 7)
			b := s.BufferOf(conformance.BufferSpec{Length: 8192, Access: twoRights})
			setWord(t, b, 0, 0)
			const stag, to = conformance.SinkSTag, conformance.SinkTO
			s.Post(
				conformance.ReadRequest(stag, to, 8192, b.STag, b.TO),
				atomicRequest(fetchAdd(b, 0, 1, 0)),
				conformance.ReadRequest(stag, to, 0, 0, 0),
				atomicRequest(fetchAdd(b, 0, 1, 0)),
				atomicRequest(cmpSwap(b, 0, 2, 3)),
				conformance.ReadRequest(stag, to, 8, b.STag, b.TO+8),
				atomicRequest(fetchAdd(b, 0, 1, 0)),
			)
			s.AwaitResponse(stag, to, 8192)
			originals := []uint64{awaitOriginal(t, s, requestID)}
			s.AwaitResponse(stag, to, 0)
			originals = append(originals, awaitOriginal(t, s, requestID), awaitOriginal(t, s, requestID))
			s.AwaitResponse(stag, to, 8)
			originals = append(originals, awaitOriginal(t, s, requestID))
			for i, got := range originals {
				t.Check(got == uint64(i), fmt.Sprintf("the original value %d", i), "%d", got)
			}
		},
	},
}

// outstanding is how many atomics a case has outstanding: as many as the target
// takes, up to DefaultDepth.
func outstanding(s *conformance.Stream) int { return min(int(s.IRD), conformance.DefaultDepth) }

func needDepth(t *conformance.T, s *conformance.Stream, n int) {
	if int(s.IRD) < n {
		t.Skip("the target takes %d Reads at a time, and the case needs %d", s.IRD, n)
	}
}

// large is so much that a response of that size fills all buffers of a TCP
// connection whose receiver doesn't read: the target can't get it off.
const large = 8 << 20

// atomicDepth: buffers of queue 1.
func atomicDepth() []conformance.Case {
	three := 3
	setup := conformance.Setup{Start: service.Start{IRD: &three}}
	return []conformance.Case{
		{
			Clause: "rfc7306-5.2.2-3", Name: "ird-shared-by-reads-and-atomics",
			Title: "With IRD 3, a Read whose response can't get off and two atomics behind it are all answered, in order",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, setup)
				needDepth(t, s, 3)
				big := s.Buffer(large)
				b := atomicWord(t, s, 0)
				s.Post(
					conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, large, big.STag, big.TO),
					atomicRequest(fetchAdd(b, 0, 1, 0)), atomicRequest(fetchAdd(b, 0, 1, 0)),
				)
				s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, large)
				for want := range uint64(2) {
					got := awaitOriginal(t, s, requestID)
					t.Check(got == want, fmt.Sprintf("the original value %d", want), "%d", got)
				}
			},
		},
		{
			Clause: "rfc7306-5.2.1-4", Name: "one-atomic-too-many", Also: []string{"rfc7306-8.2-1", "rfc7306-5.2.2-3"},
			Title: "With IRD 3, a third atomic behind a Read whose response can't get off finds no buffer: Terminate 0x1202 or 0x1203, and it is not carried out",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, setup)
				needDepth(t, s, 3)
				big := s.Buffer(large)
				b := atomicWord(t, s, 0)
				extra := atomicBuffer(s, 64)
				s.Post(
					conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, large, big.STag, big.TO),
					atomicRequest(fetchAdd(b, 0, 1, 0)), atomicRequest(fetchAdd(b, 0, 1, 0)),
					alien(atomicRequest(fetchAdd(extra, 0, 1, 0)), "it is one more than the target's IRD"),
				)
				awaitOverrun(t, s, 3)
				s.AwaitUntouched(extra)
			},
		},
	}
}

// beforeReading waits until the target has seen that something is wrong, or might
// have: as soon as the tester reads, the target can answer, and has room again.
func beforeReading(t *conformance.T, s *conformance.Stream) {
	for deadline := time.Now().Add(t.Quiet()); time.Now().Before(deadline); {
		if s.TargetState().State != service.StateRTS {
			return
		}
	}
}

// awaitOverrun waits for the Terminate that tells of one request too many on queue
// 1, which responses may come before. It is inconclusive with a target that has
// more buffers for atomics than its IRD.
func awaitOverrun(t *conformance.T, s *conformance.Stream, ird int) {
	const expected = "a Terminate with 0x1202 or 0x1203"
	beforeReading(t, s)
	for atomics := 0; ; {
		a, err := s.Next(t.Timeout())
		if err != nil {
			t.Fail(expected, "%s", err)
		}
		switch a.Opcode {
		case wire.ReadResponse:
		case wire.AtomicResponse:
			if atomics++; atomics == ird {
				t.Inconclusive("the target has buffers for more atomics than its IRD: RFC 7306 §5.2.2 leaves their number to ULPs")
			}
		case wire.Terminate:
			h, err := wire.ParseTerminate(a.Payload)
			t.Check(err == nil && (h.Code == wire.DDPNoBuffer || h.Code == wire.DDPMSNRange), expected, "%s", a.Segment)
			return
		default:
			t.Fail(expected, "%s", a.Segment)
		}
	}
}
