package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// atomicity: no atomic comes between the read and the write of another one. That
// takes atomics which meet: bursts of them on two streams at a time.
var atomicity = []conformance.Case{
	{
		Clause: "rfc7306-5.3-1", Name: "fetchadds-of-two-streams", Also: []string{"rfc7306-5.4-2"},
		Title: "FetchAdds of two streams on one word lose none: each finds another value, and the sum is right",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			streams := twoStreams(t)
			b := atomicWord(t, streams[0], 0)
			seen := map[uint64]bool{}
			bursts(t, streams, func(_, _ int) wire.AtomicHeader { return fetchAdd(b, 0, 1, 0) },
				func(_, _ int, original uint64) { another(t, seen, original) })
			streams[0].AwaitContents(b, 0, inMemory(t, uint64(len(seen))))
		},
	},
	{
		Clause: "rfc7306-5-1", Name: "cmpswaps-of-two-streams", Also: []string{"rfc7306-5.3-1", "rfc7306-5.4-2"},
		Title: "Of the CmpSwaps of two streams that compare with the same value, one at most swaps",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			streams := twoStreams(t)
			b := atomicWord(t, streams[0], 0)
			// The lower half counts, the upper one tells who has counted last.
			won := map[int]int{}
			bursts(t, streams,
				func(stream, i int) wire.AtomicHeader {
					h := cmpSwap(b, 0, uint64(i), uint64(i+1)|uint64(stream+1)<<32)
					h.CompareMask = 0xFFFFFFFF
					return h
				},
				func(_, i int, original uint64) {
					if uint32(original) == uint32(i) {
						won[i]++
						t.Check(won[i] == 1, "that one stream at most swaps each value", "value %d was swapped by both", i)
					}
				})
			t.Check(won[0] == 1, "that one stream swaps the first value", "none")
		},
	},
	{
		Clause: "rfc7306-5.4-2", Name: "through-two-stags", Also: []string{"rfc7306-5-1"},
		Title: "FetchAdds of two streams on one word lose none, though one has the STag of a region and the other one that of a window on it",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			needWindow(t, 1)
			streams := twoStreams(t)
			b := streams[0].BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite, service.RemoteAtomic, service.BindWindow}})
			setWord(t, b, 0, 0)
			through := []*conformance.Buffer{b, bindWindow(t, streams[0], newWindow(t, 1), b, 0, 64, service.RemoteAtomic)}
			seen := map[uint64]bool{}
			bursts(t, streams, func(stream, _ int) wire.AtomicHeader { return fetchAdd(through[stream], 0, 1, 0) },
				func(_, _ int, original uint64) { another(t, seen, original) })
			streams[0].AwaitContents(b, 0, inMemory(t, uint64(len(seen))))
		},
	},
}

// another makes sure that an original value has not come before.
func another(t *conformance.T, seen map[uint64]bool, original uint64) {
	t.Check(!seen[original], "another original value in each response", "0x%x twice", original)
	seen[original] = true
}

// A burst is as many atomics at a time as a target may take, of which there are
// some rounds.
const (
	burst  = 128
	rounds = 8
)

// twoStreams opens two streams that take bursts, as far as the target lets them.
func twoStreams(t *conformance.T) []*conformance.Stream {
	needAtomics(t)
	ird := max(1, min(burst, t.Service().Hello().Limits.IRD))
	setup := conformance.Setup{ORD: burst, Start: service.Start{IRD: &ird}}
	return []*conformance.Stream{t.Open(setup), t.Open(setup)}
}

// bursts has the streams carry out atomics, many at a time, and tells the original
// values.
func bursts(t *conformance.T, streams []*conformance.Stream, request func(stream, i int) wire.AtomicHeader, got func(stream, i int, original uint64)) {
	n := min(int(streams[0].IRD), int(streams[1].IRD), burst)
	for round := range rounds {
		var frames [2][][]byte
		for k, s := range streams {
			for i := range n {
				r := atomicRequest(request(k, round*n+i))
				r.MSN = uint32(round*n + i + 1)
				frames[k] = append(frames[k], s.Frame(r.Octets(), wire.Flaw{}))
			}
		}
		for k, s := range streams {
			t.Try(s.SendFrames(frames[k], fmt.Sprintf("%d Atomic Requests at once", n), ""), "sending Atomic Requests")
		}
		for k, s := range streams {
			for i := range n {
				got(k, round*n+i, awaitOriginal(t, s, requestID))
			}
		}
	}
}
