package cases

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// ddpOrder is the cases on segments that come in another order than they were sent in (RFC 5041 §3, §5.3, §5.4). TCP
// can't show that.
var ddpOrder = []conformance.Case{
	{
		Clause: "rfc5041-5.3-4", Name: "sends-in-reverse", Over: conformance.RDP,
		Title: "Three Sends that come last first are delivered in the order in which they were sent",
		Also:  []string{"rfc5041-3-6", "rfc5041-4.1-7", "rfc5041-5.4-1"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := disordered(t, []uint32{8, 8, 8})
			sends := [][]byte{[]byte("first"), []byte("the 2nd"), []byte("3rd")}
			var frames [][]byte
			for _, data := range sends {
				frames = append(frames, inTurn(s, wire.Untagged(wire.Send, data)))
			}
			slices.Reverse(frames)
			sendFrames(s, frames, "three Sends, the last one first", "")
			for _, data := range sends {
				delivers(t, s, data)
			}
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "first-segment-last", Over: conformance.RDP,
		Title: "A Send of three segments whose first one comes last is not delivered before that, and whole then",
		Also:  []string{"rfc5041-3-6", "rfc5041-4.1-7"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := disordered(t, []uint32{64})
			data := conformance.Pattern(24)
			frames := cut(s, wire.Untagged(wire.Send, data), 8)
			sendFrames(s, frames[1:], "the second and the third segment of a Send", "")
			nothingYet(t, s)
			sendFrames(s, frames[:1], "the first segment", "")
			delivers(t, s, data)
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "behind-a-write-that-is-missing", Over: conformance.RDP,
		Title: "A Send is not delivered before the Write that was sent before it is placed",
		Also:  []string{"rfc5041-3-6", "rfc5041-4.1-7"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := disordered(t, []uint32{8})
			b := s.Buffer(64)
			data := conformance.Pattern(64)
			frames := append(cut(s, wire.Tagged(wire.Write, b.STag, b.TO, data), 32), inTurn(s, wire.Untagged(wire.Send, data[:8])))
			sendFrames(s, frames[1:], "the second segment of a Write, and a Send", "")
			nothingYet(t, s)
			sendFrames(s, frames[:1], "the first segment of the Write", "")
			delivers(t, s, data[:8])
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc5041-5.2-5", Name: "write-in-reverse", Over: conformance.RDP,
		Title: "A Write of eight segments that come last first is placed whole",
		Also:  []string{"rfc5041-3-6"},
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := disordered(t, nil)
			b := s.Buffer(64)
			data := conformance.Pattern(64)
			frames := cut(s, wire.Tagged(wire.Write, b.STag, b.TO, data), 8)
			slices.Reverse(frames)
			sendFrames(s, frames, "the eight segments of a Write, the last one first", "")
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc5041-5.3-4", Name: "read-before-its-write", Over: conformance.RDP,
		Title: "A Read Request that overtakes the Write before it reads what that has written",
		Also:  []string{"rfc5041-3-6", "rfc5041-5.4-1"},
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := disordered(t, nil)
			b := s.Buffer(64)
			data := conformance.Pattern(64)
			write := inTurn(s, wire.Tagged(wire.Write, b.STag, b.TO, data))
			read := inTurn(s, conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 64, b.STag, b.TO))
			sendFrames(s, [][]byte{read, write}, "a Read Request, and the Write that was sent before it", "")
			got := s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 64)
			t.Check(bytes.Equal(got, data), "what the Write has written", "%x", head(got))
		},
	},
	{
		Clause: "rfc5041-5.3-4", Name: "reads-in-reverse", Over: conformance.RDP,
		Title: "Four Read Requests that come last first are answered in the order in which they were sent",
		Also:  []string{"rfc5041-3-6", "rfc5040-5.2.2-4"},
		Run: func(t *conformance.T) {
			s := disordered(t, nil)
			const n = 4
			if s.IRD < n {
				t.Skip("the target takes %d Reads at a time", s.IRD)
			}
			var frames [][]byte
			for i := range uint64(n) {
				frames = append(frames, inTurn(s, conformance.ReadRequest(conformance.SinkSTag, i, 0, 0, 0)))
			}
			slices.Reverse(frames)
			sendFrames(s, frames, "four Read Requests of no octets, the last one first", "")
			for i := range uint64(n) {
				s.AwaitResponse(conformance.SinkSTag, i, 0)
			}
		},
	},
	{
		Clause: "rfc5041-5.3-4", Name: "any-order", Over: conformance.RDP,
		Title: "Of twenty Sends of three segments and twenty Writes in a random order, each is placed, and the Sends are delivered in their order",
		Also:  []string{"rfc5041-3-6", "rfc5041-5.2-5", "rfc5041-5.4-1"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			const n, size = 20, 24
			s := disordered(t, slices.Repeat([]uint32{size}, n))
			b := s.Buffer(n * size)
			all := conformance.Pattern(n * size)
			var frames [][]byte
			for i := range n {
				data := all[i*size : (i+1)*size]
				frames = append(frames, inTurn(s, wire.Tagged(wire.Write, b.STag, b.TO+uint64(i*size), data)))
				frames = append(frames, cut(s, wire.Untagged(wire.Send, data), size/3)...)
			}
			r := rand.New(rand.NewPCG(5041, uint64(t.Role())))
			r.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
			sendFrames(s, frames, fmt.Sprintf("%d segments of Sends and Writes in a random order", len(frames)), "")
			for i := range n {
				delivers(t, s, all[i*size:(i+1)*size])
			}
			s.AwaitContents(b, 0, all)
		},
	},
	{
		Clause: "rfc5041-5.3-3", Name: "segment-again", Over: conformance.RDP,
		Title: "A Send whose segment comes a second time, with the same number, is delivered once",
		Also:  []string{"rfc5041-3-13"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := disordered(t, []uint32{8, 8})
			data := conformance.Pattern(8)
			frame := inTurn(s, wire.Untagged(wire.Send, data))
			sendFrames(s, [][]byte{frame}, "a Send", "")
			delivers(t, s, data)
			sendFrames(s, [][]byte{frame}, "the same segment", "its number has come before")
			c, err := t.Service().Completion(t.Context(), s.QP, service.RecvQueue, t.Quiet())
			t.Check(err != nil || c.Status != service.StatusSuccess, "that the Send is delivered once", "a second one, of %d octets", lengthOf(c))
		},
	},
	{
		Clause: "rfc5041-3-10", Name: "end-before-a-send", Over: conformance.RDP,
		Title: "When the end of the tester's half comes before its last Send, the Send is delivered, and the program told that the stream was closed",
		Also:  []string{"rfc5041-3-6"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := disordered(t, []uint32{8})
			data := conformance.Pattern(8)
			frame := inTurn(s, wire.Untagged(wire.Send, data))
			closes(t, s)
			sendFrames(s, [][]byte{frame}, "the Send that was sent before the end", "")
			delivers(t, s, data)
			s.AwaitEnd()
			e := tellsProgram(t, s)
			t.Check(e.Type == service.EventClosed, "the event that the stream was closed", "%s: %s", e.Type, e.Text)
		},
	},
}

// disordered opens a stream over RDP on which segments are placed in the order in which they come. The receives may be nil.
func disordered(t *conformance.T, recvs []uint32) *conformance.Stream {
	return t.Open(conformance.Setup{Recvs: recvs, Unsequenced: true})
}

// inTurn returns a message of one segment with the numbers that are due, which is sent later.
func inTurn(s *conformance.Stream, seg wire.Segment) []byte {
	seg = s.Due(seg)
	if !seg.Tagged {
		s.SetMSN(seg.QN, seg.MSN+1)
	}
	return s.Frame(seg.Octets(), wire.Flaw{})
}

// cut is inTurn of a message in segments of n bytes.
func cut(s *conformance.Stream, m wire.Segment, n int) [][]byte {
	m = s.Due(m)
	if !m.Tagged {
		s.SetMSN(m.QN, m.MSN+1)
	}
	var frames [][]byte
	for _, seg := range conformance.Segments(m, n) {
		frames = append(frames, s.Frame(seg.Octets(), wire.Flaw{}))
	}
	return frames
}

// nothingYet makes sure that no receive completes for a while.
func nothingYet(t *conformance.T, s *conformance.Stream) {
	const expected = "no completion before all segments have come"
	c, err := t.Service().Completion(t.Context(), s.QP, service.RecvQueue, t.Quiet())
	if service.CodeOf(err) == service.CodeTimeout {
		return
	}
	t.Try(err, "looking for a completion of the target")
	t.Fail(expected, "one of %d octets with status %s", c.Length, c.Status)
}

// lengthOf returns the length of a completion, which may be none.
func lengthOf(c *service.Completion) uint64 {
	if c == nil {
		return 0
	}
	return uint64(c.Length)
}
