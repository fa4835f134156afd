package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapReads is the cases on the target as the Data Source of Reads (RFC 5040 §5.2).
func rdmapReads() []conformance.Case {
	return slices.Concat(rdmapReadSizes(), rdmapReadEdges(), rdmapReadSinks(), rdmapReadEmpty(), rdmapReadRules)
}

// rdmapReadBack writes n bytes of a buffer from byte off on, reads them, and
// compares.
func rdmapReadBack(t *conformance.T, s *conformance.Stream, b *conformance.Buffer, off, n int) {
	data := conformance.Pattern(n)
	s.Post(wire.Tagged(wire.Write, b.STag, b.TO+uint64(off), data))
	got := s.Read(b.STag, b.TO+uint64(off), n)
	t.Check(bytes.Equal(got, data), fmt.Sprintf("%x", rdmapClip(data)), "%x", rdmapClip(got))
}

// rdmapReadSizes is Reads of many sizes and places.
func rdmapReadSizes() []conformance.Case {
	var out []conformance.Case
	for _, r := range []struct{ off, n int }{{0, 1}, {0, 2}, {0, 3}, {1, 4}, {5, 7}, {8, 8}, {0, 63}, {1, 63}, {63, 1}, {0, 64}} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.2.1-10", Name: fmt.Sprintf("%d-octets-from-octet-%d", r.n, r.off), Needs: conformance.NeedBuffer,
			Also:  []string{"rfc5040-5.2.1-3"},
			Title: fmt.Sprintf("A Read of %d octets from octet %d of a buffer on brings just these", r.n, r.off),
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				rdmapReadBack(t, s, s.Buffer(64), r.off, r.n)
			},
		})
	}
	for _, n := range []int{65535, 65536, 65537, 1 << 20} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.2.1-10", Name: fmt.Sprintf("%d-octets", n), Needs: conformance.NeedService,
			Title: fmt.Sprintf("A Read of %d octets brings them all", n),
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				rdmapReadPattern(t, s, rdmapRegion(t, n+1, service.RemoteRead), n)
			},
		})
	}
	return out
}

// rdmapReadPattern reads the first n bytes of a region of rdmapRegion.
func rdmapReadPattern(t *conformance.T, s *conformance.Stream, r *service.Region, n int) {
	got := s.Read(uint32(r.STag), uint64(r.TO), n)
	want := service.Pattern(rdmapSeed, n)
	t.Check(bytes.Equal(got, want), fmt.Sprintf("the region's %d octets", n), "%d others, that begin with %x", len(got), rdmapClip(got))
}

// rdmapReadEdges is Reads that end at, before and behind the end of the target's
// segments.
func rdmapReadEdges() []conformance.Case {
	var out []conformance.Case
	for segments := 1; segments <= 2; segments++ {
		for _, beside := range []int{-1, 0, 1} {
			out = append(out, conformance.Case{
				Clause: "rfc5040-5.2.1-10", Name: fmt.Sprintf("%d-segments%+d", segments, beside), Needs: conformance.NeedService,
				Title: fmt.Sprintf("A Read of as many octets as fill %d segments, and %+d, brings them all", segments, beside),
				Run: func(t *conformance.T) {
					s := rdmapReading(t, rdmapCut(t))
					const much = 150000
					r := rdmapRegion(t, much, service.RemoteRead)
					s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, much, uint32(r.STag), uint64(r.TO)))
					fill := len(rdmapMessage(t, s, wire.ReadResponse)[0].Payload)
					rdmapReadPattern(t, s, r, min(much, segments*fill+beside))
				},
			})
		}
	}
	return out
}

// rdmapReadSinks is Reads for sinks of many names, which are no business of the
// source's.
func rdmapReadSinks() []conformance.Case {
	var out []conformance.Case
	for _, n := range []int{0, 8} {
		for _, sink := range []struct {
			name string
			stag uint32
			to   uint64
		}{
			{"stag-0-to-0", 0, 0},
			{"stag-ffffffff", 0xFFFFFFFF, 1},
			{"stag-deadbe00", 0xDEADBE00, 0x1234567},
			{"to-at-2-63", 1, 1 << 63},
			{"to-near-the-end", 0x80000000, ^uint64(0) - 15},
		} {
			c := conformance.Case{
				Clause: "rfc5040-4.4-2", Name: fmt.Sprintf("%s-%d-octets", sink.name, n),
				Title: fmt.Sprintf("The sink's STag 0x%08x and TO 0x%x come back in the Read Response of %d octets", sink.stag, sink.to, n),
			}
			if n > 0 {
				c.Needs = conformance.NeedBuffer
			}
			c.Run = func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				var source conformance.Buffer
				if n > 0 {
					source = *s.Buffer(64)
				}
				s.Post(conformance.ReadRequest(sink.stag, sink.to, uint32(n), source.STag, source.TO))
				s.AwaitResponse(sink.stag, sink.to, n)
			}
			out = append(out, c)
		}
	}
	return append(out, conformance.Case{
		Clause: "rfc5040-4.4-2", Name: "stag-of-the-target", Needs: conformance.NeedBuffer,
		Title: "The sink's STag is one of the target's own: it is copied all the same",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			b := s.Buffer(64)
			s.Post(conformance.ReadRequest(b.STag, b.TO, 16, b.STag, b.TO+32))
			s.AwaitResponse(b.STag, b.TO, 16)
		},
	})
}

// rdmapReadEmpty is Reads of no bytes, of which STag and TO of the source are not
// validated.
func rdmapReadEmpty() []conformance.Case {
	region := func(access ...string) func(*conformance.T) (uint32, uint64) {
		return func(t *conformance.T) (uint32, uint64) {
			r := rdmapRegion(t, 64, access...)
			return uint32(r.STag), uint64(r.TO)
		}
	}
	var out []conformance.Case
	for _, e := range []struct {
		name, what string
		needs      conformance.Needs
		source     func(t *conformance.T) (stag uint32, to uint64)
	}{
		{"stag-0", "STag 0", 0, func(*conformance.T) (uint32, uint64) { return 0, 0 }},
		{"stag-nobody-gave", "an STag that nobody gave", 0, func(*conformance.T) (uint32, uint64) { return 0xDEADBE00, 0x1000 }},
		{"stag-ffffffff", "STag 0xffffffff and the highest TO", 0, func(*conformance.T) (uint32, uint64) { return 0xFFFFFFFF, ^uint64(0) }},
		{"to-beyond", "a TO beyond the region", conformance.NeedService, func(t *conformance.T) (uint32, uint64) {
			stag, to := region(service.RemoteRead)(t)
			return stag, to + 65
		}},
		{"no-right", "a region that is not open for remote reads", conformance.NeedService, region(service.LocalWrite, service.RemoteWrite)},
		{"deregistered", "a region that was closed", conformance.NeedService, func(t *conformance.T) (uint32, uint64) {
			r := rdmapRegion(t, 64, service.RemoteRead)
			t.Try(t.Service().Deregister(t.Context(), r.MR), "closing a region of the target")
			return uint32(r.STag), uint64(r.TO)
		}},
		{"other-domain", "a region of another protection domain", conformance.NeedService, func(t *conformance.T) (uint32, uint64) {
			r := rdmapForeign(t, service.RemoteRead)
			return uint32(r.STag), uint64(r.TO)
		}},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.2.1-12", Name: e.name, Needs: e.needs, Also: []string{"rfc5040-5.2.1-13"},
			Title: "A Read of no octets from " + e.what + " gets a Read Response of no octets",
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				stag, to := e.source(t)
				m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, stag, to)
				m.Wrong = "its source is no memory for it, which is not to be looked at"
				s.Post(m)
				s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
			},
		})
	}
	return out
}

// rdmapForeign opens memory of the target in another protection domain than that of
// its streams.
func rdmapForeign(t *conformance.T, access ...string) *service.Region {
	pd, err := t.Service().AllocPD(t.Context())
	t.Try(err, "making a protection domain")
	r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: 64, Access: access, PD: pd.PD})
	t.Try(err, "opening memory of the target")
	t.Note("the target opens STag %s, TO %s in another protection domain", r.STag, r.TO)
	return r
}

var rdmapReadRules = []conformance.Case{
	{
		Clause: "rfc5040-5.2.1-4", Name: "not-delivered", Needs: conformance.NeedService,
		Title: "Reads are answered without the program: it gets no completion, and no receive is taken",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{Recvs: []uint32{64}})
			r := rdmapRegion(t, 64, service.RemoteRead)
			rdmapReadPattern(t, s, r, 64)
			s.AwaitAlive()
			s.AwaitNoCompletion(service.RecvQueue, "as nothing was sent to the program")
			s.AwaitNoCompletion(service.SendQueue, "as the program has posted nothing")
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(64)))
			rdmapReceived(t, s, conformance.Pattern(64))
		},
	},
	{
		Clause: "rfc5040-5.2-1", Name: "one-response-each", Needs: conformance.NeedBuffer,
		Title: "Each Read Request gets one Read Response: that of the next one follows at once",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			b := s.Buffer(64)
			for i := range uint32(5) {
				s.Post(conformance.ReadRequest(0x100+i, uint64(i), 8, b.STag, b.TO))
				s.AwaitResponse(0x100+i, uint64(i), 8)
			}
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5040-5.2.2-5", Name: "one-tagged-buffer", Needs: conformance.NeedService,
		Title: "All segments of a Read Response name one STag, at offsets that follow each other",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, rdmapCut(t))
			rdmapReadPattern(t, s, rdmapRegion(t, 300000, service.RemoteRead), 300000)
		},
	},
	{
		Clause: "rfc5040-5.2.1-7", Name: "answered-in-order", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-5.2.2-4", "rfc5040-5.5-10"},
		Title: "Read Requests of many sizes, sent together, are answered in their order",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			r := rdmapRegion(t, 300000, service.RemoteRead)
			sizes := []uint32{200000, 1, 0, 70000, 3, 0, 300000, 8}
			sizes = sizes[:min(len(sizes), int(s.IRD))]
			for i, n := range sizes {
				s.Post(conformance.ReadRequest(0x100+uint32(i), uint64(i), n, uint32(r.STag), uint64(r.TO)))
			}
			for i, n := range sizes {
				s.AwaitResponse(0x100+uint32(i), uint64(i), int(n))
			}
		},
	},
	{
		Clause: "rfc5040-5.2.2-4", Name: "empty-ones-in-order",
		Also:  []string{"rfc5040-5.2.1-7"},
		Title: "As many empty Reads as the target takes, sent together, are answered in their order",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			n := uint32(min(s.IRD, 64))
			for i := range n {
				s.Post(conformance.ReadRequest(0x100+i, uint64(i), 0, 0, 0))
			}
			for i := range n {
				s.AwaitResponse(0x100+i, uint64(i), 0)
			}
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5040-5.5-3", Name: "half-a-request-is-not-processed",
		Also:  []string{"rfc5040-5.5-8"},
		Title: "A Read Request in two segments is not answered before the second one is there",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			parts := conformance.Segments(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0), 20)
			s.Post(parts[0])
			s.AwaitQuiet("as half a Read Request is not delivered")
			s.Post(parts[1])
			s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
		},
	},
	{
		Clause: "rfc5040-5.2.1-3", Name: "request-in-many-segments", Needs: conformance.NeedBuffer,
		Title: "A Read Request in seven segments is put together, and answered",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			b := s.Buffer(64)
			s.Post(conformance.Segments(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 64, b.STag, b.TO), 4)...)
			s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 64)
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5040-4.4-1", Name: "request-of-27-octets", Needs: conformance.NeedBuffer,
		Title: "A Read Request whose header lacks an octet is refused",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			b := s.Buffer(64)
			s.Hello()
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 8, b.STag, b.TO)
			m.Payload, m.Wrong = m.Payload[:27], "the header lacks its last octet"
			s.Post(m)
			s.AwaitTeardown()
		},
	},
	{
		Clause: "rfc5040-4.4-1", Name: "empty-request",
		Title: "A Read Request of no octets is refused",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			s.Hello()
			m := wire.Untagged(wire.ReadRequest, nil)
			m.Wrong = "it has no RDMA Read Request Header"
			s.Post(m)
			s.AwaitTeardown()
		},
	},
}
