package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// A rule holds for the whole of a stream. A target may follow it in the first message,
// segment, Marker or window, and break it in a later one. So the rules that other cases
// try at the first opportunity are tried once more by cases whose names say when.
const (
	// before is how many messages precede the one that counts: more than a target
	// treats as a special case.
	before = 20
	// many is more messages than 16 bits count, where so many take little time: Writes and
	// Reads of the tester's, and Sends of the target, of which two cores do 65552 in less
	// than 1 s. Sends to the target are not among them. Each takes a receive, whose
	// completion is a round trip to the test service: they take 4 s to 6 s.
	many = 1<<16 + 16
)

// manyWrites sends n RDMA Writes of no bytes.
func manyWrites(s *conformance.Stream, n int) {
	repeats(s, wire.Tagged(wire.Write, 0, 0, nil), n)
}

// repeats sends a tagged segment n times.
func repeats(s *conformance.Stream, seg wire.Segment, n int) {
	ulpdu := seg.Octets()
	var frames [][]byte
	for range n {
		frames = append(frames, s.Frame(ulpdu, wire.Flaw{}))
	}
	if err := s.SendFrames(frames, fmt.Sprintf("%d times %s", n, seg), ""); err != nil {
		return // taped
	}
}

// readsNothing has the target answer n Reads of no bytes, as many at a time as it
// takes. With how many bytes it does so is not looked at: see Stream.AwaitAlive.
func readsNothing(t *conformance.T, s *conformance.Stream, n int) {
	const expected = "an RDMA Read Response"
	for n > 0 {
		window := min(n, int(s.IRD), 128)
		n -= window
		var frames [][]byte
		for range window {
			seg := s.Due(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
			frames = append(frames, s.Frame(seg.Octets(), wire.Flaw{}))
			s.SetMSN(seg.QN, seg.MSN+1)
		}
		sendFrames(s, frames, fmt.Sprintf("%d Read Requests of no octets", window), "")
		for answered := 0; answered < window; {
			a, err := s.Answer(t.Timeout())
			if err != nil {
				t.Fail(expected, "%s", what(err))
			}
			t.Check(a.Opcode == wire.ReadResponse && a.STag == conformance.SinkSTag, expected, "%s", a.Segment)
			if a.Last {
				answered++
			}
		}
	}
}

// deepReads is a Setup in which the target takes as many Reads at a time as
// readsNothing sends.
func deepReads() conformance.Setup {
	ird := 128
	setup := conformance.Setup{ORD: ird}
	setup.Start.IRD = &ird
	return setup
}

// openLater opens a stream, and memory into which before Writes have gone, and reads
// nothing as often. The memory holds what it held.
func openLater(t *conformance.T, spec conformance.BufferSpec) *memory {
	s := rdmapReading(t, conformance.Setup{})
	m := openMemoryOf(t, s, spec)
	repeats(s, m.write(0, m.want), before)
	readsNothing(t, s, before)
	m.check()
	return m
}

// laterReceives is a Setup with receives of so many bytes for before Sends, and for one
// more.
func laterReceives(n uint32) conformance.Setup {
	return conformance.Setup{Recvs: slices.Repeat([]uint32{n}, before+1)}
}

// sendsBefore sends before Sends of one byte, which are delivered.
func sendsBefore(t *conformance.T, s *conformance.Stream) {
	for i := range before {
		s.Post(wire.Untagged(wire.Send, []byte{byte(i)}))
	}
	for i := range before {
		delivers(t, s, []byte{byte(i)})
	}
}
