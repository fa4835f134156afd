package cases

import (
	"fmt"
	"runtime"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

const minMULPDU = 128 // RFC 5044 §3

// How large the target's ULPDUs are (RFC 5044 §3, §4.5, §5.1).
func framingMULPDU() []conformance.Case {
	var cases []conformance.Case
	// An EMSS of each remainder modulo 4, and one of more than 512 bytes more.
	for _, mss := range []int{1000, 1001, 1002, 1003, 1460} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.5-2", Name: fmt.Sprintf("mss-%d", mss), Also: []string{"rfc5044-3-2", "rfc5044-3-8", "rfc5044-5.1-2"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("To a tester that takes TCP segments of %s, the target sends no ULPDU larger than EMSS - (6 + EMSS mod 4)", octets(mss)),
			Run: func(t *conformance.T) {
				largest, emss := largestULPDU(t, mss, false)
				most := emss - (6 + emss%4)
				t.Check(largest <= most, fmt.Sprintf("ULPDUs of at most %d octets, as EMSS is %d", most, emss), "one of %d", largest)
			},
		}, conformance.Case{
			Clause: "rfc5044-4.5-1", Name: fmt.Sprintf("mss-%d", mss), Also: []string{"rfc5044-3-2", "rfc5044-3-8", "rfc5044-5.1-2"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("To a tester that takes TCP segments of %s and wants Markers, the target sends no ULPDU larger than EMSS - (6 + 4*ceil(EMSS/512) + EMSS mod 4)", octets(mss)),
			Run: func(t *conformance.T) {
				largest, emss := largestULPDU(t, mss, true)
				most := emss - (6 + 4*((emss+511)/512) + emss%4)
				t.Check(largest <= most, fmt.Sprintf("ULPDUs of at most %d octets, as EMSS is %d", most, emss), "one of %d", largest)
			},
		})
	}
	for _, n := range []int{minMULPDU, 1000, mulpduRFC} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-3-8", Name: fmt.Sprintf("mulpdu-%d", n), Also: []string{"rfc5044-3-1", "rfc5044-3-2"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A target whose MULPDU is %d sends a long Read Response in ULPDUs of no more than that, one in each FPDU", n),
			Run: func(t *conformance.T) {
				needMULPDU(t)
				var setup conformance.Setup
				setup.Start.MULPDU = n
				s := t.Open(setup)
				for _, a := range readLong(t, s, 20_000) {
					t.Check(len(a.FPDU.ULPDU) <= n, fmt.Sprintf("ULPDUs of at most %s", octets(n)), "one of %d", len(a.FPDU.ULPDU))
				}
			},
		})
	}
	return append(cases,
		conformance.Case{
			Clause: "rfc5044-4.5-5", Name: "as-large-as-possible", Needs: conformance.NeedService,
			Title: "In a long Read Response, to a tester that takes TCP segments of 1000 octets, the largest ULPDUs have as many octets as MULPDU allows",
			Run: func(t *conformance.T) {
				largest, emss := largestULPDU(t, 1000, false)
				most := emss - (6 + emss%4)
				t.Check(largest == most, fmt.Sprintf("ULPDUs of %d octets, as EMSS is %d", most, emss), "none larger than %d", largest)
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.5-3", Name: "mss-88", Also: []string{"rfc5044-3-3"}, Needs: conformance.NeedService,
			Title: "To a tester that takes TCP segments of no more than 88 octets, the target's MULPDU is 128: no segment of a long message is smaller but its last",
			Run: func(t *conformance.T) {
				needSegmentSize(t)
				for _, a := range readLong(t, t.Open(conformance.Setup{MSS: 88}), 2000) {
					checkNotSmall(t, a)
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.5-4", Name: "messages-of-many-lengths", Also: []string{"rfc5044-3-3"}, Needs: conformance.NeedService,
			Title: "Of messages of many lengths that fill TCP segments nearly, one behind the other, no segment has a ULPDU of less than 128 octets but the last of each",
			Run:   manyLengths,
		},
		conformance.Case{
			Clause: "rfc5044-3-4", Name: "long-read-response", Also: []string{"rfc5044-3-3", "rfc5044-3-1"}, Needs: conformance.NeedService,
			Title: "In a Read Response of 200000 octets no ULPDU has more than 64768, though MULPDU may be as much",
			Run: func(t *conformance.T) {
				var setup conformance.Setup
				if t.Service().Hello().Features.MULPDU {
					setup.Start.MULPDU = maxULPDU
				}
				for _, a := range readLong(t, t.Open(setup), 200_000) {
					t.Check(len(a.FPDU.ULPDU) <= maxULPDU, "ULPDUs of at most 64768 octets", "one of %d", len(a.FPDU.ULPDU))
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-3-3", Name: "whatever-emss", Also: []string{"rfc5044-3-4", "rfc5044-3-2"}, Needs: conformance.NeedService,
			Title: "As EMSS grows with use, on some paths beyond 65000 octets, no ULPDU has more than 64768",
			Run: func(t *conformance.T) {
				const length = 300_000
				s := t.Open(conformance.Setup{})
				b := s.Buffer(length)
				for range 4 {
					for range 20 {
						s.AwaitAlive()
					}
					for _, a := range readFrom(t, s, b, length) {
						t.Check(len(a.FPDU.ULPDU) <= maxULPDU, "ULPDUs of at most 64768 octets", "one of %d", len(a.FPDU.ULPDU))
					}
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.1-1", Name: "long-write", Also: []string{"rfc5044-3-1", "rfc5044-4.4-9"}, Needs: conformance.NeedService,
			Title: "The FPDUs of a Write of 200000 octets of the target's have the lengths and CRCs that they need, and its data are whole",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				sendsLongWrite(t, s)
				checkFaults(t, s, wire.FaultPad, wire.FaultCRC, wire.FaultLength)
			},
		},
	)
}

// needSegmentSize skips a case if the tester can't say how large TCP segments it
// takes.
func needSegmentSize(t *conformance.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the tester can't limit TCP segments on %s", runtime.GOOS)
	}
}

// largestULPDU has the target send a long Read Response in TCP segments of a size,
// and returns the largest ULPDU in it, and EMSS.
func largestULPDU(t *conformance.T, mss int, markers bool) (largest, emss int) {
	needSegmentSize(t)
	setup := conformance.Setup{MSS: mss}
	var s *conformance.Stream
	if markers {
		s = marked(t, setup)
	} else {
		s = t.Open(setup)
	}
	emss, err := s.EMSS(mss)
	t.Try(err, "asking TCP what it has negotiated")
	for _, a := range readLong(t, s, 10*mss) {
		largest = max(largest, len(a.FPDU.ULPDU))
	}
	return largest, emss
}

// readLong reads n bytes of the target's memory, and returns the segments of
// the response.
func readLong(t *conformance.T, s *conformance.Stream, n int) []wire.Arrival {
	return readFrom(t, s, s.Buffer(n), n)
}

// readFrom reads the first n bytes of a buffer, and returns the segments of the
// response.
func readFrom(t *conformance.T, s *conformance.Stream, b *conformance.Buffer, n int) []wire.Arrival {
	s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, uint32(n), b.STag, b.TO))
	var all []wire.Arrival
	got := 0
	for {
		a := s.Await(wire.ReadResponse)
		all = append(all, a)
		got += len(a.Payload)
		if a.Last || got >= n {
			t.Check(got == n && a.Last, fmt.Sprintf("a Read Response of %s", octets(n)), "one of %d", got)
			return all
		}
	}
}

// checkNotSmall makes sure that a segment is the last of its message, or has a ULPDU
// that is as large as the least MULPDU.
func checkNotSmall(t *conformance.T, a wire.Arrival) {
	n := len(a.FPDU.ULPDU)
	t.Check(a.Last || n >= minMULPDU, "ULPDUs of 128 octets or more before the last of a message", "one of %d", n)
}

// manyLengths has the target write messages that leave less and less room in a TCP
// segment, as fast as it can.
func manyLengths(t *conformance.T) {
	needSegmentSize(t)
	s := t.Open(conformance.Setup{MSS: 1460})
	const longest, messages = 3000, 60
	r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: longest})
	t.Try(err, "opening memory of the target")
	if t.Role() == conformance.Responder {
		s.Hello()
	}
	posts := make([]service.Post, messages)
	for i := range posts {
		n := uint32(1300 + i*11)
		posts[i] = service.Post{
			Op: service.OpWrite, SGL: []service.Piece{r.Piece(0, n)}, Unsignaled: i < messages-1,
			Remote: service.Remote{STag: conformance.SinkSTag, TO: conformance.SinkTO},
		}
	}
	s.Posts(posts...)
	for done := 0; done < messages; {
		a := s.Await(wire.Write)
		checkNotSmall(t, a)
		if a.Last {
			done++
		}
	}
}
