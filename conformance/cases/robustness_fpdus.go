package cases

import (
	"fmt"
	"math/rand/v2"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// garbageForFPDUs returns the cases on garbage in full operation. CRCs are in use,
// so that no FPDU is valid (RFC 5044 §4.4).
func garbageForFPDUs() []conformance.Case {
	list := append(shapes(fpduGarbage), shape{"start-up-frame", "a start-up frame, again and again", func() []byte {
		f := conformance.RequestFor(conformance.Setup{}).Octets()
		var octets []byte
		for len(octets) < fpduGarbage {
			octets = append(octets, f...)
		}
		return octets
	}})
	var cases []conformance.Case
	for _, g := range list {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.4-12", Name: "garbage-first-" + g.name,
			Title: fmt.Sprintf("The target ends a stream that begins with %s, and serves another connection", g.what),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				pour(s, g)
				s.AwaitTeardown()
				t.AwaitServed(s.Conn)
			},
		}, conformance.Case{
			Clause: "rfc5044-4.4-12", Name: "garbage-later-" + g.name,
			Title: fmt.Sprintf("The target ends a stream on which %s follow upon FPDUs, keeps its memory, and serves another connection", g.what),
			Needs: conformance.NeedBuffer,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.Buffer(light)
				s.AwaitAlive()
				pour(s, g)
				s.AwaitTeardown()
				s.AwaitUntouched(b)
				t.AwaitServed(s.Conn)
			},
		})
	}
	return cases
}

// pour sends garbage. The target may well end the connection before it has taken
// all.
func pour(s *conformance.Stream, g shape) {
	octets := g.octets()
	_ = s.SendRaw(octets, fmt.Sprintf("%d octets", len(octets)), "no FPDU: "+g.what) // taped
}

// halfFPDUs are the cases on streams that end, or fall silent, in the midst of an
// FPDU (RFC 5044 §6, §8).
var halfFPDUs = []conformance.Case{
	{
		Clause: "rfc5044-6-4", Name: "fin-at-each-octet",
		Title: "Of a Write whose FPDU is cut by FIN, at whatever octet, nothing is placed, and the target serves another connection",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			eachHalf(t, func(s *conformance.Stream) {
				t.Try(s.CloseWrite(), "closing")
				s.AwaitEnd()
			})
		},
	},
	{
		Clause: "rfc5044-6-4", Name: "rst-at-each-octet",
		Title: "Of a Write whose FPDU is cut by RST, at whatever octet, nothing is placed, and the target serves another connection",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			eachHalf(t, func(s *conformance.Stream) { t.Try(s.Reset(), "resetting") })
		},
	},
	{
		Clause: "rfc5044-6-4", Name: "silence-then-the-rest",
		Title: "While an FPDU is half there, nothing of it is placed, and another connection is served; when the rest comes, all is",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			severalAtOnce(t)
			s := t.Open(conformance.Setup{})
			b := s.Buffer(light)
			data := conformance.Pattern(light)
			fpdu := s.Frame(s.Due(wire.Tagged(wire.Write, b.STag, b.TO, data)).Octets(), wire.Flaw{})
			half := len(fpdu) - 5
			t.Try(s.SendRaw(fpdu[:half], fmt.Sprintf("%d octets of a Write's FPDU of %d", half, len(fpdu)), ""), "sending")
			t.AwaitServed(s.Conn)
			s.AwaitUntouched(b)
			t.Try(s.SendRaw(fpdu[half:], "the rest of the FPDU", ""), "sending")
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc5044-6-4", Name: "octet-by-octet",
		Title: "Writes that come octet by octet, each in a TCP segment of its own, are placed like others",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(light)
			data := conformance.Pattern(light)
			for i := range data {
				w := wire.Tagged(wire.Write, b.STag, b.TO+uint64(i), data[i:i+1])
				for j, octet := range s.Frame(s.Due(w).Octets(), wire.Flaw{}) {
					t.Try(s.SendRaw([]byte{octet}, fmt.Sprintf("octet %d of a Write's FPDU", j), ""), "sending")
				}
			}
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	},
}

// eachHalf sends the FPDU of a Write up to each byte but the last one, each on
// a stream of its own that is ended then.
func eachHalf(t *conformance.T, end func(s *conformance.Stream)) {
	severalAtOnce(t)
	first := t.Open(conformance.Setup{})
	b := first.Buffer(light)
	s := first
	for n := 1; ; n++ {
		w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(light))
		w.Wrong = fmt.Sprintf("only %d octets of the FPDU come", n)
		if n == len(s.Frame(w.Octets(), wire.Flaw{})) {
			break
		}
		s.PostExact(w, wire.Flaw{CutTo: n})
		end(s)
		t.Try(s.Close(), "closing")
		first.AwaitUntouched(b)
		s = renew(t, first.Conn)
	}
	t.AwaitServed(first.Conn)
}

// randomSegments returns the cases on valid FPDUs that carry random bytes: none
// of them may touch memory that is not named (RFC 5042 §6.2.1).
func randomSegments() []conformance.Case {
	var cases []conformance.Case
	for _, kind := range []struct {
		name, what string
		ulpdu      func(r *rand.Rand) []byte
	}{
		{"octets", "random octets", func(r *rand.Rand) []byte { return some(r, 1+r.IntN(80)) }},
		{"tagged", "tagged segments with random fields", func(r *rand.Rand) []byte {
			op := []wire.Opcode{wire.Write, wire.ReadResponse}[r.IntN(2)]
			return wire.Tagged(op, r.Uint32(), r.Uint64(), some(r, 1+r.IntN(64))).Octets()
		}},
		{"untagged", "untagged segments with random fields", func(r *rand.Rand) []byte {
			s := wire.Untagged(wire.Opcode(r.IntN(16)), some(r, r.IntN(64)))
			s.QN, s.MSN, s.MO, s.Last = r.Uint32N(5), r.Uint32N(4), r.Uint32N(3)*r.Uint32(), r.IntN(2) == 0
			s.Invalidate = r.Uint32()
			return s.Octets()
		}},
		{"read-requests", "Read Requests and Atomic Requests with random fields", func(r *rand.Rand) []byte {
			op, n := wire.ReadRequest, wire.ReadRequestLen
			if r.IntN(2) == 0 {
				op, n = wire.AtomicRequest, wire.AtomicRequestLen
			}
			s := wire.Untagged(op, some(r, n))
			s.MSN = 1
			return s.Octets()
		}},
	} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5042-6.2.1-1", Name: "random-" + kind.name,
			Title: fmt.Sprintf("On 32 streams, FPDUs with %s change nothing in the target's memory, and it serves another connection", kind.what),
			Needs: conformance.NeedBuffer,
			Run: func(t *conformance.T) {
				severalAtOnce(t)
				first := t.Open(conformance.Setup{})
				b := first.Buffer(light)
				s := first
				for seed := range uint64(32) {
					r := rand.New(rand.NewPCG(seed, 5042))
					for range 4 {
						if s.SendULPDU(kind.ulpdu(r), wire.Flaw{Wrong: "random"}, "an ULPDU with "+kind.what) != nil {
							break // the target has had enough
						}
					}
					if s.CloseWrite() == nil {
						untilEnd(t, s.Conn)
					}
					t.Try(s.Close(), "closing")
					first.AwaitUntouched(b)
					s = renew(t, first.Conn)
				}
				t.AwaitServed(first.Conn)
			},
		})
	}
	return cases
}

// some returns n random bytes.
func some(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
