package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// The reserved bits of a start-up frame, and R where it means nothing (RFC 5044
// §7.1.1).
func startupFlags() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc5044-7.1.1-13", Name: "sent-as-zero",
			Title: "The reserved bits of the target's frame are zero",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.request
				if t.Role() == conformance.Responder {
					o.send(o.frame(), "")
					f = o.reply()
				}
				checkReserved(t, f)
			},
		},
		{
			Clause: "rfc5044-7.1.1-13", Name: "not-echoed", Roles: conformance.Responder,
			Title: "The reserved bits of the Reply are zero, whatever those of the Request are",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Flags |= wire.Reserved
				o.send(f, "all reserved bits are set")
				checkReserved(t, o.reply())
			},
		},
		{
			Clause: "rfc5044-7.1.1-13", Name: "not-echoed-in-revision-1", Roles: conformance.Responder,
			Title: "In revision 1, which has five reserved bits, those of the Reply are zero, whatever those of the Request are",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{Revision: 1})
				f := o.frame()
				f.Flags |= wire.Reserved | wire.FlagS
				o.send(f, "all reserved bits are set")
				checkReserved(t, o.reply())
			},
		},
		{
			Clause: "rfc5044-7.1.1-13", Name: "fifth-bit-of-revision-1", Roles: conformance.Responder,
			Title: "In a Request of revision 1, the bit that is S in revision 2 is reserved: it is ignored",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{Revision: 1})
				f := o.frame()
				f.Flags |= wire.FlagS
				o.send(f, "a reserved bit is set, which must be ignored")
				awaitOperation(t, o.enter(f))
			},
		},
		{
			Clause: "rfc5044-7.1.1-13", Name: "fifth-bit-of-revision-1-in-the-reply", Roles: conformance.Initiator, Needs: conformance.NeedService,
			Title: "In a Reply of revision 1, the bit that is S in revision 2 is reserved: it is ignored",
			Run: func(t *conformance.T) {
				o := begin(t, revision1(t))
				f := o.frame()
				f.Flags |= wire.FlagS
				o.send(f, "a reserved bit is set, which must be ignored")
				awaitOperation(t, o.enter(f))
			},
		},
		{
			Clause: "rfc5044-7.1.2-16", Name: "reply-accepts", Roles: conformance.Responder,
			Title: "An ordinary Request is answered by a Reply with R=0",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				o.send(o.frame(), "")
				f := o.reply()
				t.Check(f.Flags&wire.FlagR == 0, "a Reply with R=0", "%s", f)
			},
		},
		{
			Clause: "rfc5044-7.1.2-16", Name: "r-in-the-request", Roles: conformance.Responder,
			Title: "R in a Request is not looked at: the Reply has R=0, and the connection works",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Flags |= wire.FlagR
				o.send(f, "R is set, which means nothing in a Request")
				reply := o.reply()
				t.Check(reply.Flags&wire.FlagR == 0, "a Reply with R=0", "%s", reply)
				s := t.NewStream(o.Conn, f, reply)
				s.IRD = depthOf(reply)
				s.AwaitAlive()
			},
		},
		{
			Clause: "rfc5044-7.1.2-1", Name: "r-of-the-request", Roles: conformance.Initiator,
			Title: "The target's Request is a valid one: R, which belongs to the Reply, is zero",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				t.Check(o.request.Flags&wire.FlagR == 0, "a Request with R=0", "%s", o.request)
			},
		},
	}
	for bit := range 4 {
		mask := uint8(1) << bit
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.1-13", Name: fmt.Sprintf("ignored-0x%02x", mask),
			Title: fmt.Sprintf("Reserved bit 0x%02x of the tester's frame is ignored: the connection works", mask),
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Flags |= mask
				o.send(f, "a reserved bit is set, which must be ignored")
				o.enter(f).AwaitAlive()
			},
		})
	}
	return cases
}

// checkReserved makes sure that a frame's reserved bits are zero: RFC 6581 §6 has
// made one of revision 1's the bit S.
func checkReserved(t *conformance.T, f wire.Frame) {
	mask := uint8(wire.Reserved)
	if f.Rev < 2 {
		mask |= wire.FlagS
	}
	t.Check(f.Flags&mask == 0, "that the reserved bits are zero", "%s", f)
}
