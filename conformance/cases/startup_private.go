package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Private data and their length (RFC 5044 §7.1.1, §7.1.2 rule 9).
func startupPrivateData() []conformance.Case {
	var cases []conformance.Case
	for _, n := range []int{0, 1, 511, 512} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.1-19", Name: fmt.Sprintf("revision-1-%d", n), Roles: conformance.Responder,
			Also:  []string{"rfc5044-7.1.1-17", "rfc5044-7.1.2-11", "rfc5044-7.1.2-12"},
			Title: fmt.Sprintf("A Request of revision 1 with %s of private data is accepted, and FPDUs follow it", octets(n)),
			Run:   func(t *conformance.T) { acceptsPrivate(t, conformance.Setup{Revision: 1}, n) },
		}, conformance.Case{
			Clause: "rfc5044-7.1.1-19", Name: fmt.Sprintf("revision-1-%d-in-the-reply", n), Roles: conformance.Initiator, Needs: conformance.NeedService,
			Also:  []string{"rfc5044-7.1.1-17", "rfc5044-7.1.2-11", "rfc5044-7.1.2-12"},
			Title: fmt.Sprintf("A Reply of revision 1 with %s of private data is accepted, and FPDUs follow it", octets(n)),
			Run:   func(t *conformance.T) { acceptsPrivate(t, revision1(t), n) },
		})
	}
	for _, n := range []int{1, 507, 508} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.1-19", Name: fmt.Sprintf("enhanced-%d", n),
			Also:  []string{"rfc5044-7.1.1-17", "rfc5044-7.1.2-11", "rfc5044-7.1.2-12"},
			Title: fmt.Sprintf("A frame with %s of private data behind the enhanced block is accepted, and FPDUs follow it", octets(n)),
			Run:   func(t *conformance.T) { acceptsPrivate(t, conformance.Setup{}, n) },
		})
	}
	for _, n := range []int{1, 508} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.2-13", Name: fmt.Sprintf("delivered-%d", n), Needs: conformance.NeedService,
			Also:  []string{"rfc5044-7.1.1-17", "rfc5044-7.1.2-12"},
			Title: fmt.Sprintf("The target's program is given the %s of private data that PD_Length counts, and no other", octets(n)),
			Run: func(t *conformance.T) {
				most(t, n, 2)
				private := conformance.Pattern(n)
				o := begin(t, conformance.Setup{Private: private})
				f := o.frame()
				o.send(f, "")
				o.enter(f)
				_, params, err := t.Started()
				t.Try(err, "asking for the private data")
				t.Check(bytes.Equal(params.PrivateData, private), fmt.Sprintf("private data %x", private), "%x", []byte(params.PrivateData))
			},
		})
	}
	for _, n := range []int{0, 1, 508} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.1-17", Name: fmt.Sprintf("sent-%d", n), Needs: conformance.NeedService,
			Also:  []string{"rfc5044-7.1.1-19"},
			Title: fmt.Sprintf("PD_Length of the target's frame counts the %s of its program's private data", octets(n)),
			Run:   func(t *conformance.T) { sendsPrivate(t, conformance.Setup{}, n) },
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc5044-7.1.1-17", Name: "sent-512-with-revision-1", Needs: conformance.NeedService,
		Also:  []string{"rfc5044-7.1.1-19"},
		Title: "PD_Length of the target's frame of revision 1 counts the 512 octets of its program's private data",
		Run: func(t *conformance.T) {
			setup := conformance.Setup{Revision: 1}
			if t.Role() == conformance.Initiator {
				setup = revision1(t)
			}
			sendsPrivate(t, setup, 512)
		},
	})
	return append(cases, wrongLengths()...)
}

// most skips a case if the target does not take n bytes of private data.
func most(t *conformance.T, n, revision int) {
	limit := t.Service().Hello().Limits.PrivateData
	if revision == 1 {
		limit += wire.EnhancedLen
	}
	if n > limit {
		t.Skip("the target takes at most %s of private data", octets(limit))
	}
}

// acceptsPrivate sends a frame with n bytes of private data, and expects full
// operation. Who refuses more than his program has room for is right by rule 9
// of RFC 5044 §7.1.2; with the test service it is known how much that is.
func acceptsPrivate(t *conformance.T, setup conformance.Setup, n int) {
	if t.HasService() {
		most(t, n, int(setup.Revision))
	}
	setup.Private = conformance.Pattern(n)
	o := begin(t, setup)
	f := o.frame()
	o.send(f, "")
	if n > 0 && !t.HasService() && t.Role() == conformance.Responder {
		reply, err := o.ReadFrame(t.Timeout())
		if err != nil {
			t.Inconclusive("there is no Reply, as if the target's program had no room for %s: %v", octets(n), err)
		}
		t.Check(reply.Flags&wire.FlagR == 0, "a Reply that accepts", "%s", reply)
		awaitOperation(t, t.NewStream(o.Conn, f, reply))
		return
	}
	awaitOperation(t, o.enter(f))
}

// sendsPrivate gives the target's program n bytes of private data to send.
func sendsPrivate(t *conformance.T, setup conformance.Setup, n int) {
	most(t, n, int(setup.Revision))
	private := conformance.Pattern(n)
	setup.Start.PrivateData = service.Hex(private)
	o := begin(t, setup)
	f := o.request
	mine := o.frame()
	o.send(mine, "")
	var s *conformance.Stream
	if t.Role() == conformance.Responder {
		f = o.reply()
		s = t.NewStream(o.Conn, mine, f)
	} else {
		s = o.enter(mine)
	}
	_, got, _ := f.Enhanced()
	t.Check(bytes.Equal(got, private), fmt.Sprintf("a frame with private data %x", private), "%s: %x", f, got)
	awaitOperation(t, s)
}

// wrongLengths is the cases on a PD_Length that is too large, or that does not fit
// the data.
func wrongLengths() []conformance.Case {
	var cases []conformance.Case
	refused := []string{"rfc5044-7.1.2-11", "rfc5044-7.1.2-14", "rfc5044-8-4"}
	for _, n := range []int{513, 65535} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.1-18", Name: fmt.Sprintf("pd-length-%d", n), Also: refused,
			Title: fmt.Sprintf("A frame with %s of private data, the enhanced block among them, makes the target close the connection", octets(n)),
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{Private: conformance.Pattern(n - wire.EnhancedLen)})
				f := o.frame()
				f.Private = append(f.Private, conformance.Pattern(n-len(f.Private))...) // if there is no block
				o.send(f, "at most 512 octets of private data are allowed")
				o.awaitClosed()
			},
		})
	}
	return append(cases,
		conformance.Case{
			Clause: "rfc5044-7.1.1-18", Name: "revision-1-pd-length-513", Also: refused, Roles: conformance.Responder,
			Title: "A Request of revision 1 with 513 octets of private data makes the target close the connection",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{Revision: 1, Private: conformance.Pattern(513)})
				o.send(o.frame(), "at most 512 octets of private data are allowed")
				o.awaitClosed()
			},
		},
		conformance.Case{
			Clause: "rfc5044-7.1.1-18", Name: "fewer-octets-then-fin", Also: refused, Harm: requestCut,
			Title: "A frame that ends before PD_Length says so makes the target close the connection",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{Private: conformance.Pattern(8)})
				f := o.frame()
				f.Length = len(f.Private) + 1
				o.send(f, "PD_Length counts one octet more than there are")
				t.Try(o.CloseWrite(), "ending the tester's half")
				o.awaitClosed()
			},
		},
		conformance.Case{
			Clause: "rfc5044-7.1.1-18", Name: "more-octets", Also: []string{"rfc5044-7.1.2-11", "rfc5044-7.1.2-13", "rfc5044-7.1-1"},
			Title: "Octets behind the private data that PD_Length counts are not passed over: the target closes, or takes them for an FPDU that is none",
			Run:   moreOctets,
		},
	)
}

// moreOctets sends more private data than PD_Length counts. A target need not see
// that at once: what follows a frame may be taken for the first FPDU. As that it has
// a wrong CRC, so that in the end nothing works.
func moreOctets(t *conformance.T) {
	o := begin(t, conformance.Setup{Private: []byte{0, 2, 0xFF, 0xFF, 0, 0, 0, 0}})
	f := o.frame()
	lie := f
	if lie.Length = len(f.Private) - 8; lie.Length == 0 {
		lie.Length = -1 // which stands for 0
	}
	o.send(lie, "PD_Length counts 8 octets fewer than there are")
	if t.Role() == conformance.Responder {
		reply, err := o.ReadFrame(t.Timeout())
		if err != nil {
			t.Check(o.End() != wire.Open, "that the target closes the connection", "%s", what(err))
			return
		}
		awaitNoAnswer(t, t.NewDoomed(o.Conn, f, reply))
		return
	}
	awaitNoAnswer(t, t.NewDoomed(o.Conn, o.request, f))
}

// awaitNoAnswer sends a Read of no bytes, and makes sure that it is not answered,
// but that the target ends the stream. Messages of the target's own are let pass.
func awaitNoAnswer(t *conformance.T, s *conformance.Stream) {
	s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
	const expected = "that the target ends the stream"
	for {
		a, err := s.Next(t.Timeout())
		switch {
		case err != nil:
			t.Check(s.End() != wire.Open, expected, "%s", what(err))
			return
		case a.Opcode == wire.Terminate:
			return
		case a.Opcode == wire.ReadResponse:
			t.Fail(expected, "%s", a.Segment)
		}
	}
}
