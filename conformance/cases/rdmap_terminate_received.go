package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapTerminatesReceived is the cases on Terminates that the target gets (RFC 5040
// §5.4).
func rdmapTerminatesReceived() []conformance.Case {
	return slices.Concat(rdmapTellCodes(), rdmapTellHeaders(), rdmapTerminateEffects, rdmapBadTerminates())
}

// rdmapTelling is a Terminate of the tester's.
func rdmapTelling(h wire.TerminateHeader) wire.Segment {
	return wire.Untagged(wire.Terminate, h.Octets())
}

// rdmapTellCodes is Terminates of all layers, of which the program has to be told.
func rdmapTellCodes() []conformance.Case {
	var out []conformance.Case
	for _, code := range []wire.Code{
		wire.LocalCatastrophic, 0x0033, wire.RDMAPInvalidSTag, wire.RDMAPBounds, wire.RDMAPRights, wire.RDMAPNotAssociated, wire.RDMAPWrap,
		wire.RDMAPCantInvalidate, wire.RDMAPProtectionOther, wire.RDMAPVersion, wire.RDMAPOpcode, wire.RDMAPCatastrophic, wire.RDMAPGlobal,
		wire.RDMAPCantInvalidateOp, wire.RDMAPOther, wire.DDPCatastrophic, wire.DDPInvalidSTag, wire.DDPBounds, wire.DDPInvalidQN, wire.DDPTooLong,
		wire.MPAClosed, wire.MPACRC, wire.MPAMarker,
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.4-6", Name: fmt.Sprintf("code-%04x", uint16(code)), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-5.4-5"},
			Title: fmt.Sprintf("The program is told of a Terminate with %s", code),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				s.Post(rdmapTelling(wire.TerminateHeader{Code: code}))
				if code&0xFF00 != wire.LocalCatastrophic {
					rdmapTold(t, code)
					return
				}
				e := rdmapEvent(t, service.EventTerminated) // the code means nothing
				t.Check(e.Failure != nil && e.Failure.Terminate != nil && e.Failure.Terminate.Word()&0xFF00 == 0,
					"that the program is told of a local catastrophic error of RDMAP", "%s", e.Text)
			},
		})
	}
	return out
}

// rdmapTellHeaders is Terminates with all parts that there can be.
func rdmapTellHeaders() []conformance.Case {
	write := wire.Tagged(wire.Write, 0x01020304, 0x1112131415161718, nil).Octets()
	read := conformance.ReadRequest(0x01020304, 0x1112131415161718, 64, 0x21222324, 0x3132333435363738)
	read.MSN = 1
	length := func(n int, rest ...[]byte) []byte {
		return slices.Concat(append([][]byte{{byte(n >> 8), byte(n)}}, rest...)...)
	}
	var out []conformance.Case
	for _, p := range []struct {
		name, what string
		h          wire.TerminateHeader
	}{
		{"length-only", "M set, and a length", wire.TerminateHeader{Code: wire.DDPBounds, Control: wire.TermM, Tail: length(40)}},
		{"tagged-header", "M and D set, and a tagged header", wire.TerminateHeader{Code: wire.DDPBounds, Control: wire.TermM | wire.TermD, Tail: length(78, write)}},
		{"untagged-header", "M and D set, and an untagged header", wire.TerminateHeader{Code: wire.DDPNoBuffer, Control: wire.TermM | wire.TermD, Tail: length(46, read.Header())}},
		{"all-headers", "M, D and R set, and all headers", wire.TerminateHeader{Code: wire.RDMAPBounds, Control: wire.TermM | wire.TermD | wire.TermR, Tail: length(46, read.Octets())}},
		{"zeros-in-place-of-headers", "no bit set, and zeros where headers could be", wire.TerminateHeader{Code: wire.RDMAPOpcode, Tail: make([]byte, 48)}},
		{"length-without-m", "D set and M not: the length is there all the same", wire.TerminateHeader{Code: wire.DDPBounds, Control: wire.TermD, Tail: length(0, write)}},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.4-6", Name: p.name, Needs: conformance.NeedService,
			Title: "The program is told of a Terminate with " + p.what,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				s.Post(rdmapTelling(p.h))
				rdmapTold(t, p.h.Code)
			},
		})
	}
	for _, bits := range []struct {
		control, rest uint8
	}{{0x10, 0}, {0, 0xFF}, {0x1C, 0x81}} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-4.8-4", Name: fmt.Sprintf("reserved-bits-%02x%02x-received", bits.control, bits.rest), Needs: conformance.NeedService,
			Title: fmt.Sprintf("The reserved bits of a Terminate are %02x%02x: they are ignored, and the program is told of it", bits.control, bits.rest),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				m := rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPOther, Control: bits.control, Rest: bits.rest})
				m.Wrong = "reserved bits are set, which is to be ignored"
				s.Post(m)
				rdmapTold(t, wire.RDMAPOther)
			},
		})
	}
	return out
}

// What a Terminate brings about, and that there is always room for it.
var rdmapTerminateEffects = []conformance.Case{
	{
		Clause: "rfc5040-5.4-5", Name: "ends-the-stream",
		Also:  []string{"rfc5040-7-2"},
		Title: "A Terminate makes the target end the connection",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			s.AwaitEnd()
		},
	},
	{
		Clause: "rfc5040-5.4-5", Name: "state", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-7-1"},
		Title: "After a Terminate the target's queue pair is not in operation any more",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapHasFailed(t, s)
		},
	},
	{
		Clause: "rfc5040-5.4-6", Name: "receives-complete-in-error", Needs: conformance.NeedService,
		Title: "After a Terminate, the receives that are posted complete, and not with success",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64, 64, 64}})
			s.Hello()
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapFlushed(t, s, 3)
		},
	},
	{
		Clause: "rfc5040-5.4-6", Name: "read-completes-in-error", Needs: conformance.NeedService,
		Title: "A Terminate because of the target's Read completes the Read, and not with success",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapPostFetch(t, s, 64, 64)
			request := s.AwaitMessage(wire.ReadRequest)
			n := rdmapUntaggedLen + len(request.Payload)
			s.Post(rdmapTelling(wire.TerminateHeader{
				Code: wire.RDMAPInvalidSTag, Control: wire.TermM | wire.TermD | wire.TermR,
				Tail: slices.Concat([]byte{0, byte(n)}, request.Octets()),
			}))
			rdmapTold(t, wire.RDMAPInvalidSTag)
			f.fails(t, s)
		},
	},
	{
		Clause: "rfc5040-5.4-4", Name: "without-receives-and-reads", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-5.4-3"},
		Title: "There is room for a Terminate where no receive is posted and no Read is taken",
		Run: func(t *conformance.T) {
			none := 0
			s := t.Open(conformance.Setup{Recvs: []uint32{}, Start: service.Start{IRD: &none}})
			s.Hello()
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapTold(t, wire.RDMAPGlobal)
		},
	},
	{
		Clause: "rfc5040-5.4-4", Name: "while-a-response-is-held-up", Needs: conformance.NeedService,
		Title: "There is room for a Terminate while all Reads are taken, and none is answered yet",
		Run: func(t *conformance.T) {
			s, _ := rdmapHeldUp(t, 4)
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapDrain(t, s)
			rdmapTold(t, wire.RDMAPGlobal)
		},
	},
	{
		Clause: "rfc5040-5.4-3", Name: "takes-no-receive", Needs: conformance.NeedService,
		Title: "A Terminate takes the buffer of queue 2, and none of the program's receives",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64}})
			s.Hello()
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapTold(t, wire.RDMAPGlobal)
			rdmapFlushed(t, s, 1)
		},
	},
	{
		Clause: "rfc5040-5.4-3", Name: "in-two-segments", Needs: conformance.NeedService,
		Title: "A Terminate in two segments is put together, and the program is told of it",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			write := wire.Tagged(wire.Write, 0x01020304, 0x1112131415161718, nil).Octets()
			m := rdmapTelling(wire.TerminateHeader{Code: wire.DDPBounds, Control: wire.TermM | wire.TermD, Tail: append([]byte{0, 78}, write...)})
			s.Post(conformance.Segments(m, 12)...)
			rdmapTold(t, wire.DDPBounds)
		},
	},
	{
		Clause: "rfc5040-7-3", Name: "no-write-after-a-terminate", Needs: conformance.NeedService,
		Title: "An RDMA Write behind the tester's Terminate is not placed: the stream has ended",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			s.Hello()
			w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(64))
			w.Wrong = "the tester has ended the stream"
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}), w)
			t.Try(s.CloseWrite(), "closing the tester's half")
			s.AwaitEnd()
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5040-5.5-5", Name: "send-after-the-end", Needs: conformance.NeedService,
		Title: "A Send and an RDMA Write that are posted when the stream has ended do not complete with success",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapHasFailed(t, s)
			t.Try(s.CloseWrite(), "closing the tester's half")
			for _, op := range []string{service.OpSend, service.OpWrite} {
				_, err := t.Service().Post(t.Context(), s.QP, service.Post{Op: op, Data: conformance.Pattern(8), Remote: rdmapRemote(0)})
				if err != nil {
					continue // it is not even taken
				}
				c := rdmapCompletion(t, s, service.SendQueue)
				t.Check(c.Status != service.StatusSuccess, "that the request does not complete with success", "%s with status %s", c.Op, c.Status)
			}
		},
	},
}

// rdmapBadTerminates is messages on queue 2 that are no Terminates. RFC 5040 §7.1 does
// not say that a Terminate has to answer.
func rdmapBadTerminates() []conformance.Case {
	var out []conformance.Case
	for _, p := range []struct {
		name, what string
		payload    []byte
	}{
		{"empty", "is empty", nil},
		{"three-octets", "has three octets", []byte{0, 0, 0}},
		{"length-missing", "announces a length that isn't there", wire.TerminateHeader{Code: wire.DDPBounds, Control: wire.TermM}.Octets()},
		{"header-cut", "announces a DDP header that ends early", wire.TerminateHeader{Code: wire.DDPBounds, Control: wire.TermM | wire.TermD, Tail: make([]byte, 12)}.Octets()},
		{"rdma-header-missing", "announces an RDMA header that isn't there", wire.TerminateHeader{Code: wire.RDMAPBounds, Control: wire.TermM | wire.TermD | wire.TermR, Tail: make([]byte, 20)}.Octets()},
		{"too-long", "has 1200 octets", make([]byte, 1200)},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-7.2-1", Name: "terminate-" + p.name,
			Title: "A Terminate that " + p.what + " ends the stream all the same",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				m := wire.Untagged(wire.Terminate, p.payload)
				m.Wrong = "it " + p.what
				s.Post(m)
				s.AwaitTeardown()
			},
		})
	}
	return out
}
