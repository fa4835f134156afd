package cases

import (
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A rdmapBadRead is a Read whose source is no memory for it.
type rdmapBadRead struct {
	clause, name string
	title        string // A Read of … is refused
	needs        conformance.Needs
	codes        []wire.Code
	source       func(t *conformance.T, s *conformance.Stream) (stag uint32, to uint64, n uint32)
}

// rdmapBeside is a Read of n bytes, off bytes behind the beginning of a buffer of 64.
func rdmapBeside(off int64, n uint32) func(*conformance.T, *conformance.Stream) (uint32, uint64, uint32) {
	return func(_ *conformance.T, s *conformance.Stream) (uint32, uint64, uint32) {
		b := s.BufferOf(conformance.BufferSpec{Length: 64, AtEnd: off >= 64})
		return b.STag, b.TO + uint64(off), n
	}
}

func rdmapOfRegion(open func(*conformance.T) *service.Region) func(*conformance.T, *conformance.Stream) (uint32, uint64, uint32) {
	return func(t *conformance.T, _ *conformance.Stream) (uint32, uint64, uint32) {
		r := open(t)
		return uint32(r.STag), uint64(r.TO), 8
	}
}

// rdmapSomeSTag is the codes for an STag that the target never gave, but that may name
// memory that isn't for the peer: what the bits of an STag mean is the target's affair.
var rdmapSomeSTag = []wire.Code{wire.RDMAPInvalidSTag, wire.RDMAPNotAssociated, wire.RDMAPRights, wire.RDMAPBounds}

var rdmapBadReads = []rdmapBadRead{
	{
		"rfc5040-7.2-9", "stag-nobody-gave", "an STag that nobody gave", 0,
		[]wire.Code{wire.RDMAPInvalidSTag},
		func(*conformance.T, *conformance.Stream) (uint32, uint64, uint32) { return 0xDEADBE00, 0, 8 },
	},
	{
		"rfc5040-7.2-9", "stag-0", "STag 0", 0, rdmapSomeSTag,
		func(*conformance.T, *conformance.Stream) (uint32, uint64, uint32) { return 0, 0, 1 },
	},
	{
		"rfc5040-7.2-9", "stag-deregistered", "a region that was closed", conformance.NeedService,
		[]wire.Code{wire.RDMAPInvalidSTag},
		rdmapOfRegion(func(t *conformance.T) *service.Region {
			r := rdmapRegion(t, 64, service.RemoteRead)
			t.Try(t.Service().Deregister(t.Context(), r.MR), "closing a region of the target")
			return r
		}),
	},
	{
		"rfc5040-7.2-9", "other-key", "the STag of a buffer with its lowest bit changed", conformance.NeedBuffer, rdmapSomeSTag,
		func(_ *conformance.T, s *conformance.Stream) (uint32, uint64, uint32) {
			b := s.Buffer(64)
			return b.STag ^ 0x01, b.TO, 8
		},
	},
	{
		"rfc5040-7.2-10", "other-domain", "a region of another protection domain", conformance.NeedService,
		[]wire.Code{wire.RDMAPNotAssociated},
		rdmapOfRegion(func(t *conformance.T) *service.Region { return rdmapForeign(t, service.RemoteRead) }),
	},
	{
		"rfc5040-7.2-10", "other-stream", "a region that is for another stream", conformance.NeedService,
		[]wire.Code{wire.RDMAPNotAssociated},
		rdmapOfRegion(func(t *conformance.T) *service.Region { return rdmapOfOtherStream(t, service.RemoteRead) }),
	},
	{
		"rfc5040-5.2.1-11", "no-right", "a region that is not open for remote reads", conformance.NeedService,
		[]wire.Code{wire.RDMAPRights},
		rdmapOfRegion(func(t *conformance.T) *service.Region {
			return rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
		}),
	},
	{
		"rfc5040-5.2.1-11", "local-memory", "a region that is not open for the peer at all", conformance.NeedService,
		[]wire.Code{wire.RDMAPRights, wire.RDMAPInvalidSTag},
		rdmapOfRegion(func(t *conformance.T) *service.Region { return rdmapRegion(t, 64, service.LocalWrite) }),
	},
	{"rfc5040-7.2-11", "one-octet-before", "8 octets from one before the buffer", conformance.NeedBuffer, []wire.Code{wire.RDMAPBounds, wire.RDMAPWrap}, rdmapBeside(-1, 8)},
	{"rfc5040-7.2-11", "at-the-end", "an octet right behind the buffer", conformance.NeedBuffer, []wire.Code{wire.RDMAPBounds}, rdmapBeside(64, 1)},
	{"rfc5040-7.2-11", "far-behind", "8 octets at a TO far behind the buffer", conformance.NeedBuffer, []wire.Code{wire.RDMAPBounds}, rdmapBeside(1<<40, 8)},
	{"rfc5040-7.2-12", "end-one-octet-beyond", "as many octets as the buffer has, from its second octet on", conformance.NeedBuffer, []wire.Code{wire.RDMAPBounds}, func(_ *conformance.T, s *conformance.Stream) (uint32, uint64, uint32) {
		b := s.BufferAtEnd(64)
		return b.STag, b.TO + 1, uint32(b.Length)
	}},
	{"rfc5040-7.2-12", "one-octet-too-many", "one octet more than the buffer has", conformance.NeedBuffer, []wire.Code{wire.RDMAPBounds}, func(_ *conformance.T, s *conformance.Stream) (uint32, uint64, uint32) {
		b := s.BufferAtEnd(64)
		return b.STag, b.TO, uint32(b.Length) + 1
	}},
	{"rfc5040-7.2-12", "64-kib-more", "64 KiB more than the buffer has", conformance.NeedBuffer, []wire.Code{wire.RDMAPBounds}, func(_ *conformance.T, s *conformance.Stream) (uint32, uint64, uint32) {
		b := s.BufferAtEnd(64)
		return b.STag, b.TO, uint32(b.Length) + 65536
	}},
	{"rfc5040-7.2-12", "largest-size", "2^32-1 octets", conformance.NeedBuffer, []wire.Code{wire.RDMAPBounds}, rdmapBeside(0, 0xFFFFFFFF)},
	{
		// The TO is out of range as well.
		"rfc5040-7.2-13", "to-wraps", "8 octets at a TO that wraps with them", conformance.NeedBuffer,
		[]wire.Code{wire.RDMAPWrap, wire.RDMAPBounds},
		func(_ *conformance.T, s *conformance.Stream) (uint32, uint64, uint32) {
			return s.Buffer(64).STag, ^uint64(0) - 3, 8
		},
	},
	{
		// A sum that wraps is not in the range, either.
		"rfc5040-7.2-13", "to-in-range-wraps", "so many octets of a region at high TOs that the TO wraps", conformance.NeedService,
		[]wire.Code{wire.RDMAPWrap, wire.RDMAPBounds},
		func(t *conformance.T, s *conformance.Stream) (uint32, uint64, uint32) {
			rdmapLacks(t, !rdmapFeatures(t).Base, "regions whose TOs begin anywhere")
			b := s.BufferOf(conformance.BufferSpec{Length: 4096, Base: ^uint64(0) - 8191})
			return b.STag, b.TO + 64, 0xFFFFFFFF
		},
	},
}

// rdmapOfOtherStream opens memory of the target that only another stream may use.
func rdmapOfOtherStream(t *conformance.T, access ...string) *service.Region {
	rdmapLacks(t, !rdmapFeatures(t).StreamMR, "regions for one stream")
	c := t.Service()
	qp, err := c.CreateQP(t.Context(), service.QPAttr{})
	t.Try(err, "making another queue pair")
	r, err := c.Register(t.Context(), service.RegisterArgs{Length: 64, Access: access, QP: qp.QP})
	t.Try(err, "opening memory of the target")
	t.Note("the target opens STag %s, TO %s for another stream", r.STag, r.TO)
	return r
}

// rdmapReadsRefused is the cases on Reads whose source is validated (RFC 5040 §7.2).
func rdmapReadsRefused() []conformance.Case {
	out := make([]conformance.Case, 0, len(rdmapBadReads)+3)
	for _, r := range rdmapBadReads {
		out = append(out, conformance.Case{
			Clause: r.clause, Name: r.name, Needs: r.needs, Also: []string{"rfc5040-5.2.1-11"},
			Title: "A Read of " + r.title + " is refused: Terminate " + conformance.Codes(r.codes...),
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				stag, to, n := r.source(t, s)
				s.Hello()
				m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, n, stag, to)
				m.Wrong = "it reads " + r.title
				s.Post(m)
				s.AwaitTerminate(r.codes...)
			},
		})
		if r.clause == "rfc5040-5.2.1-11" {
			out[len(out)-1].Also = nil
		}
	}
	return slices.Concat(out, rdmapRequestFields)
}

// What DDP validates of a Read Request (RFC 5040 §7.2, RFC 5041 §7.1).
var rdmapRequestFields = []conformance.Case{
	{
		Clause: "rfc5040-7.2-6", Name: "msn-0-first",
		Title: "A first Read Request with MSN 0 is refused: Terminate 0x1202 or 0x1203",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			s.Hello()
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.Wrong = "the first MSN is 1"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(wire.DDPNoBuffer, wire.DDPMSNRange)
		},
	},
	{
		Clause: "rfc5040-7.2-6", Name: "msn-repeated",
		Title: "A Read Request with the MSN of the one before is refused: Terminate 0x1202 or 0x1203",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			s.AwaitAlive()
			s.SetMSN(1, 1)
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.Wrong = "the MSN was used before"
			s.Post(m)
			s.AwaitTerminate(wire.DDPNoBuffer, wire.DDPMSNRange)
		},
	},
	{
		Clause: "rfc5040-7.2-6", Name: "mo-beyond-the-buffer",
		Title: "A Read Request at MO 65536 is refused: Terminate 0x1204 or 0x1205",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			s.Hello()
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.MO, m.Wrong = 65536, "no request is that long"
			s.Post(m)
			s.AwaitTerminate(wire.DDPInvalidMO, wire.DDPTooLong)
		},
	},
	{
		Clause: "rfc5040-7.2-6", Name: "request-of-1000-octets",
		Title: "A Read Request of 1000 octets is refused",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			s.Hello()
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.Payload, m.Wrong = append(m.Payload, make([]byte, 972)...), "it has 28 octets, and no ULP payload"
			s.Post(m)
			s.AwaitTeardown()
		},
	},
}
