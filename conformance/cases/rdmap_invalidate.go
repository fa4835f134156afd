package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A rdmapTag is memory of the target with an STag that a Send can invalidate, or not.
type rdmapTag struct {
	stag uint32
	to   uint64
	args service.TagArgs // for the test service; zero if it can't tell
}

// A rdmapTagKind is a way to come by one.
type rdmapTagKind struct {
	name, what string
	open       func(t *conformance.T, s *conformance.Stream) rdmapTag
}

// rdmapOpens is the rights of memory that a Send may invalidate.
var rdmapOpens = []string{service.RemoteRead, service.LocalWrite, service.RemoteWrite, service.RemoteInvalidate}

// rdmapInvalidatable is the STags that a Send has to invalidate.
var rdmapInvalidatable = []rdmapTagKind{
	{"region", "a region that is open for that", func(t *conformance.T, _ *conformance.Stream) rdmapTag {
		r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: 64, Access: rdmapOpens})
		if code := service.CodeOf(err); code == service.CodeRefused || code == service.CodeUnsupported {
			t.Skip("the target has no ordinary regions that a Send can invalidate")
		}
		t.Try(err, "opening memory of the target")
		return rdmapTag{uint32(r.STag), uint64(r.TO), service.TagArgs{MR: r.MR}}
	}},
	{"fast-registered", "a fast-registered region", func(t *conformance.T, s *conformance.Stream) rdmapTag {
		return rdmapFast(t, s)
	}},
	{"window-type-2", "a memory window of type 2", func(t *conformance.T, s *conformance.Stream) rdmapTag {
		return rdmapWindow(t, s, 2)
	}},
}

// rdmapFast opens a fast-registered region of the target.
func rdmapFast(t *conformance.T, s *conformance.Stream) rdmapTag {
	rdmapLacks(t, !rdmapFeatures(t).FastRegistration, "fast registration")
	r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: 64, Fast: true})
	t.Try(err, "making a region of the target")
	return rdmapFastAgain(t, s, r.MR)
}

// rdmapFastAgain makes a region valid under a new key.
func rdmapFastAgain(t *conformance.T, s *conformance.Stream, mr int) rdmapTag {
	r, err := t.Service().FastRegister(t.Context(), service.FastRegisterArgs{
		QP: s.QP, MR: mr, Access: rdmapOpens, Key: rdmapKey(t, service.TagArgs{MR: mr}), Timeout: int(t.Timeout().Milliseconds()),
	})
	t.Try(err, "registering memory of the target")
	t.Note("the target opens STag %s, TO %s", r.STag, r.TO)
	return rdmapTag{uint32(r.STag), uint64(r.TO), service.TagArgs{MR: r.MR}}
}

// rdmapKey returns a key that a region or window has not had last.
func rdmapKey(t *conformance.T, args service.TagArgs) uint8 {
	tag, err := t.Service().Tag(t.Context(), args)
	t.Try(err, "asking how an STag stands")
	return uint8(tag.STag) + 1
}

// rdmapWindow binds a memory window of a type.
func rdmapWindow(t *conformance.T, s *conformance.Stream, kind int) rdmapTag {
	rdmapLacks(t, !slices.Contains(rdmapFeatures(t).Windows, kind), fmt.Sprintf("memory windows of type %d", kind))
	c := t.Service()
	r := rdmapRegion(t, 64, service.LocalWrite, service.BindWindow)
	w, err := c.Window(t.Context(), service.WindowArgs{Type: kind})
	t.Try(err, "making a memory window")
	b, err := c.Bind(t.Context(), service.BindArgs{
		QP: s.QP, MW: w.MW, MR: r.MR, Length: 64, Key: rdmapKey(t, service.TagArgs{MW: w.MW}), Timeout: int(t.Timeout().Milliseconds()),
		Access: []string{service.RemoteRead, service.RemoteWrite, service.RemoteInvalidate},
	})
	if service.CodeOf(err) == service.CodeRefused {
		t.Skip("the target has no such windows that a Send can invalidate")
	}
	t.Try(err, "binding a memory window")
	t.Note("the target binds a window: STag %s, TO %s", b.STag, b.TO)
	return rdmapTag{uint32(b.STag), uint64(b.TO), service.TagArgs{MW: w.MW}}
}

// rdmapInvalidating is a Send with Invalidate, with SE or not.
func rdmapInvalidating(op wire.Opcode, stag uint32, data []byte) wire.Segment {
	m := wire.Untagged(op, data)
	m.Invalidate = stag
	return m
}

// rdmapInvalidates is the two opcodes.
var rdmapInvalidates = []struct {
	op   wire.Opcode
	name string
}{{wire.SendInvalidate, ""}, {wire.SendSEInvalidate, "-with-se"}}

// open starts a stream, and opens memory of the kind.
func (k *rdmapTagKind) start(t *conformance.T, setup conformance.Setup) (*conformance.Stream, rdmapTag) {
	rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
	s := rdmapSpeaking(t, setup)
	return s, k.open(t, s)
}

// valid asks the test service whether the STag is valid.
func (g *rdmapTag) valid(t *conformance.T) bool {
	tag, err := t.Service().Tag(t.Context(), g.args)
	t.Try(err, "asking how an STag stands")
	return tag.Valid && uint32(tag.STag) == g.stag
}

// rdmapInvalidation is the cases on Send with Invalidate as it comes (RFC 5040 §5.3,
// §7.2).
func rdmapInvalidation() []conformance.Case {
	var out []conformance.Case
	for i := range rdmapInvalidatable {
		k := &rdmapInvalidatable[i]
		for _, v := range rdmapInvalidates {
			out = append(out, conformance.Case{
				Clause: "rfc5040-5.3-9", Name: k.name + v.name, Needs: conformance.NeedService, Also: []string{"rfc5040-5.3-8", "rfc5040-4.1-3"},
				Title: fmt.Sprintf("A %s invalidates %s when it is delivered: the STag is not valid any more", v.op, k.what),
				Run: func(t *conformance.T) {
					s, tag := k.start(t, conformance.Setup{})
					s.Read(tag.stag, tag.to, 8) // it is open
					s.Post(rdmapInvalidating(v.op, tag.stag, conformance.Pattern(8)))
					rdmapInvalidated(t, s, tag, conformance.Pattern(8))
				},
			}, conformance.Case{
				Clause: "rfc5040-5.3-9", Name: k.name + v.name + "-then-write", Needs: conformance.NeedService,
				Title: fmt.Sprintf("After a %s of %s, an RDMA Write to it is refused: Terminate 0x1100", v.op, k.what),
				Run: func(t *conformance.T) {
					s, tag := k.start(t, conformance.Setup{})
					w := wire.Tagged(wire.Write, tag.stag, tag.to, conformance.Pattern(8))
					w.Wrong = "the STag was invalidated by the Send before"
					s.Post(rdmapInvalidating(v.op, tag.stag, nil), w)
					s.AwaitTerminate(wire.DDPInvalidSTag)
				},
			}, conformance.Case{
				Clause: "rfc5040-5.3-9", Name: k.name + v.name + "-then-read", Needs: conformance.NeedService,
				Title: fmt.Sprintf("After a %s of %s, a Read of it is refused: Terminate 0x0100", v.op, k.what),
				Run: func(t *conformance.T) {
					s, tag := k.start(t, conformance.Setup{})
					r := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 8, tag.stag, tag.to)
					r.Wrong = "the STag was invalidated by the Send before"
					s.Post(rdmapInvalidating(v.op, tag.stag, conformance.Pattern(16)), r)
					s.AwaitTerminate(wire.RDMAPInvalidSTag)
				},
			})
		}
	}
	return slices.Concat(out, rdmapInvalidationRules, rdmapInvalidationRefused())
}

// rdmapInvalidated makes sure that a Send with Invalidate was delivered, and did what
// it is for.
func rdmapInvalidated(t *conformance.T, s *conformance.Stream, tag rdmapTag, data []byte) {
	c := rdmapReceived(t, s, data)
	t.Check(uint32(c.Invalidated) == tag.stag, fmt.Sprintf("that the program is told that STag 0x%08x was invalidated", tag.stag), "STag %s", c.Invalidated)
	t.Check(!tag.valid(t), "that the STag is not valid any more", "that it is")
}

var rdmapInvalidationRules = []conformance.Case{
	{
		Clause: "rfc5040-5.3-8", Name: "not-before-delivery", Needs: conformance.NeedService,
		Title: "A Send with Invalidate in two segments invalidates when the second one is there, and not before",
		Run: func(t *conformance.T) {
			s, tag := rdmapInvalidatable[1].start(t, conformance.Setup{Recvs: []uint32{64}})
			parts := conformance.Segments(rdmapInvalidating(wire.SendInvalidate, tag.stag, conformance.Pattern(64)), 63)
			s.Post(parts[0])
			rdmapNoCompletion(t, s, service.RecvQueue, "as the Send is not whole")
			t.Check(tag.valid(t), "that the STag is valid until the Send is delivered", "that it is not")
			s.Post(parts[1])
			rdmapInvalidated(t, s, tag, conformance.Pattern(64))
		},
	},
	{
		Clause: "rfc5040-5.3-9", Name: "read-before-it-is-answered", Needs: conformance.NeedService,
		Title: "A Read before the Send with Invalidate, which has been answered, had the data; the stream goes on after the Send",
		Run: func(t *conformance.T) {
			s, tag := rdmapInvalidatable[1].start(t, conformance.Setup{})
			s.Read(tag.stag, tag.to, 64)
			s.Post(rdmapInvalidating(wire.SendInvalidate, tag.stag, nil))
			rdmapInvalidated(t, s, tag, nil)
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5040-5.3-9", Name: "only-that-stag", Needs: conformance.NeedService,
		Title: "A Send with Invalidate leaves other STags open",
		Run: func(t *conformance.T) {
			s, tag := rdmapInvalidatable[1].start(t, conformance.Setup{})
			other := rdmapFast(t, s)
			s.Post(rdmapInvalidating(wire.SendInvalidate, tag.stag, nil))
			rdmapInvalidated(t, s, tag, nil)
			s.Read(other.stag, other.to, 64)
		},
	},
	{
		Clause: "rfc5040-5.3-9", Name: "region-opened-anew", Needs: conformance.NeedService,
		Title: "A region that was invalidated and is fast-registered anew is open under its new STag",
		Run: func(t *conformance.T) {
			s, tag := rdmapInvalidatable[1].start(t, conformance.Setup{})
			s.Post(rdmapInvalidating(wire.SendInvalidate, tag.stag, nil))
			rdmapInvalidated(t, s, tag, nil)
			again := rdmapFastAgain(t, s, tag.args.MR)
			s.Read(again.stag, again.to, 64)
		},
	},
	{
		Clause: "rfc5040-5.3-8", Name: "without-a-receive", Needs: conformance.NeedService,
		Title: "A Send with Invalidate that finds no receive is not delivered, and invalidates nothing",
		Run: func(t *conformance.T) {
			s, tag := rdmapInvalidatable[1].start(t, conformance.Setup{Recvs: []uint32{}})
			m := rdmapInvalidating(wire.SendInvalidate, tag.stag, conformance.Pattern(8))
			m.Wrong = "no receive is posted"
			s.Post(m)
			a, err := s.Answer(t.Quiet())
			t.Check(err != nil || a.Opcode == wire.Terminate, "a Terminate, or nothing", "%s", a.Segment)
			t.Check(tag.valid(t), "that the STag is still valid", "that it is not")
		},
	},
	{
		Clause: "rfc5040-5.3-8", Name: "too-long", Needs: conformance.NeedService,
		Title: "A Send with Invalidate that is longer than the receive is refused, Terminate 0x1205, and invalidates nothing",
		Run: func(t *conformance.T) {
			s, tag := rdmapInvalidatable[1].start(t, conformance.Setup{Recvs: []uint32{16}})
			m := rdmapInvalidating(wire.SendInvalidate, tag.stag, conformance.Pattern(17))
			m.Wrong = "the receive has 16 octets"
			s.Post(m)
			s.AwaitTerminate(wire.DDPTooLong)
			t.Check(tag.valid(t), "that the STag is still valid", "that it is not")
		},
	},
}

// Codes for STags that can't be invalidated. RFC 5040 §5.3 names one for those that are
// not the stream's, which stands twice in its table; for those that are not valid at
// all, it settles none.
var (
	rdmapNotTheirs = []wire.Code{wire.RDMAPCantInvalidate, wire.RDMAPCantInvalidateOp}
	rdmapNotValid  = []wire.Code{wire.RDMAPInvalidSTag, wire.RDMAPNotAssociated, wire.RDMAPCantInvalidate, wire.RDMAPCantInvalidateOp}
)

// rdmapInvalidationRefused is the cases on STags that are not to be invalidated.
func rdmapInvalidationRefused() []conformance.Case {
	var out []conformance.Case
	for _, r := range []struct {
		clause, name, what string
		codes              []wire.Code
		stag               func(t *conformance.T, s *conformance.Stream) uint32
	}{
		{"rfc5040-7.2-4", "stag-nobody-gave", "an STag that nobody gave", rdmapNotValid, func(*conformance.T, *conformance.Stream) uint32 { return 0xDEADBE00 }},
		{"rfc5040-7.2-4", "stag-0", "STag 0", rdmapNotValid, func(*conformance.T, *conformance.Stream) uint32 { return 0 }},
		{"rfc5040-7.2-4", "deregistered", "a region that was closed", rdmapNotValid, func(t *conformance.T, _ *conformance.Stream) uint32 {
			r := rdmapRegion(t, 64, service.RemoteRead)
			t.Try(t.Service().Deregister(t.Context(), r.MR), "closing a region of the target")
			return uint32(r.STag)
		}},
		{"rfc5040-7.2-4", "stale-key", "a fast-registered region's STag before this one", rdmapNotValid, func(t *conformance.T, s *conformance.Stream) uint32 {
			tag := rdmapFast(t, s)
			err := t.Service().Invalidate(t.Context(), service.InvalidateArgs{QP: s.QP, STag: service.STag(tag.stag), Timeout: int(t.Timeout().Milliseconds())})
			t.Try(err, "invalidating an STag of the target")
			rdmapFastAgain(t, s, tag.args.MR)
			return tag.stag
		}},
		{"rfc5040-7.2-4", "already-invalidated", "an STag that a Send before has invalidated", rdmapNotValid, func(t *conformance.T, s *conformance.Stream) uint32 {
			tag := rdmapFast(t, s)
			s.Post(rdmapInvalidating(wire.SendInvalidate, tag.stag, nil))
			rdmapInvalidated(t, s, tag, nil)
			return tag.stag
		}},
		{"rfc5040-7.2-4", "unbound-window", "a memory window of type 2 that was invalidated", rdmapNotValid, func(t *conformance.T, s *conformance.Stream) uint32 {
			tag := rdmapWindow(t, s, 2)
			s.Post(rdmapInvalidating(wire.SendInvalidate, tag.stag, nil))
			rdmapInvalidated(t, s, tag, nil)
			return tag.stag
		}},
		{"rfc5040-7.2-5", "other-domain", "a region of another protection domain", rdmapNotTheirs, func(t *conformance.T, _ *conformance.Stream) uint32 {
			return uint32(rdmapForeign(t, rdmapOpens...).STag)
		}},
		{"rfc5040-7.2-5", "other-stream", "a region that is for another stream", rdmapNotTheirs, func(t *conformance.T, _ *conformance.Stream) uint32 {
			return uint32(rdmapOfOtherStream(t, rdmapOpens...).STag)
		}},
	} {
		for _, v := range rdmapInvalidates {
			out = append(out, conformance.Case{
				Clause: r.clause, Name: r.name + v.name, Needs: conformance.NeedService, Also: []string{"rfc5040-5.3-8"},
				Title: fmt.Sprintf("A %s of %s is refused: Terminate %s", v.op, r.what, conformance.Codes(r.codes...)),
				Run: func(t *conformance.T) {
					rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
					s := rdmapSpeaking(t, conformance.Setup{Recvs: []uint32{16, 16}})
					m := rdmapInvalidating(v.op, r.stag(t, s), conformance.Pattern(8))
					m.Wrong = "it invalidates " + r.what
					s.Post(m)
					s.AwaitTerminate(r.codes...)
				},
			})
		}
	}
	out = append(out, conformance.Case{
		Clause: "rfc5040-5.3-9", Name: "other-domain-stays-open", Needs: conformance.NeedService,
		Title: "A Send with Invalidate of a region of another protection domain leaves that valid",
		Run: func(t *conformance.T) {
			rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
			s := rdmapSpeaking(t, conformance.Setup{})
			r := rdmapForeign(t, rdmapOpens...)
			m := rdmapInvalidating(wire.SendInvalidate, uint32(r.STag), nil)
			m.Wrong = "it invalidates a region of another protection domain"
			s.Post(m)
			s.AwaitTerminate(rdmapNotTheirs...)
			tag := rdmapTag{uint32(r.STag), uint64(r.TO), service.TagArgs{MR: r.MR}}
			t.Check(tag.valid(t), "that the STag is still valid", "that it is not")
		},
	})
	for _, v := range rdmapInvalidates {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.3-9", Name: "right-missing" + v.name, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A %s of a region that was not opened for that either invalidates it, as it is the stream's, or is refused as STag that cannot be invalidated", v.op),
			Run: func(t *conformance.T) {
				rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
				s := rdmapSpeaking(t, conformance.Setup{})
				r := rdmapRegion(t, 64, service.RemoteRead, service.LocalWrite, service.RemoteWrite)
				tag := rdmapTag{uint32(r.STag), uint64(r.TO), service.TagArgs{MR: r.MR}}
				rdmapEitherWay(t, s, v.op, tag)
			},
		}, conformance.Case{
			Clause: "rfc5040-5.3-9", Name: "window-type-1" + v.name, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A %s of a memory window of type 1 either invalidates it, or is refused as STag that cannot be invalidated", v.op),
			Run: func(t *conformance.T) {
				rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
				s := rdmapSpeaking(t, conformance.Setup{})
				rdmapEitherWay(t, s, v.op, rdmapWindow(t, s, 1))
			},
		})
	}
	return out
}

// rdmapEitherWay sends a Send with Invalidate that the target may carry out or refuse:
// which STags can be invalidated, beyond whose they are, is the affair of its verbs.
func rdmapEitherWay(t *conformance.T, s *conformance.Stream, op wire.Opcode, tag rdmapTag) {
	s.Post(rdmapInvalidating(op, tag.stag, conformance.Pattern(8)), conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
	a, err := s.Answer(t.Timeout())
	expected := "that the STag is invalidated, or a Terminate with " + conformance.Codes(rdmapNotTheirs...)
	if err != nil {
		t.Fail(expected, "%v", err)
	}
	if a.Opcode == wire.ReadResponse {
		rdmapInvalidated(t, s, tag, conformance.Pattern(8))
		return
	}
	h, err := wire.ParseTerminate(a.Payload)
	t.Check(a.Opcode == wire.Terminate && err == nil && slices.Contains(rdmapNotTheirs, h.Code), expected, "%s", a.Segment)
	t.Check(tag.valid(t), "that the STag is still valid after the Terminate", "that it is not")
}
