package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The revision of a start-up frame (RFC 5044 §7.1.1).
func startupRevisions() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc5044-7.1.1-14", Name: "reply-to-revision-1", Roles: conformance.Responder,
			Title: "A Request of revision 1 is answered by a Reply of revision 1",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{Revision: 1})
				o.send(o.frame(), "")
				f, err := o.ReadFrame(t.Timeout())
				if err != nil {
					t.Inconclusive("there is no Reply, as if the target did not speak revision 1: %v", err)
				}
				t.Check(f.Rev == 1, "a Reply of revision 1", "%s", f)
			},
		},
		{
			Clause: "rfc5044-7.1.1-14", Name: "request-of-revision-1", Roles: conformance.Initiator, Needs: conformance.NeedService,
			Title: "A target that is to keep to RFC 5044 sends a Request of revision 1",
			Run: func(t *conformance.T) {
				o := begin(t, revision1(t))
				t.Check(o.request.Rev == 1, "a Request of revision 1", "%s", o.request)
			},
		},
		{
			Clause: "rfc5044-7.1.1-16", Name: "error-to-the-ulp", Needs: conformance.NeedService,
			Title: "A frame of revision 3 closes the connection, and the target's program is told an error",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Rev = 3
				o.send(f, "there is no revision 3")
				o.awaitClosed()
				localError(t)
			},
		},
	}
	for _, rev := range []uint8{0, 3, 255} {
		name := fmt.Sprintf("revision-%d", rev)
		wrong := fmt.Sprintf("there is no revision %d", rev)
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.1-15", Name: name, Also: []string{"rfc5044-7.1.1-14", "rfc5044-7.1.1-16"}, Roles: conformance.Responder,
			Title: fmt.Sprintf("A Request of revision %d makes the target close the connection, or answer with a revision that there is", rev),
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Rev = rev
				o.send(f, wrong)
				reply, err := o.ReadFrame(t.Timeout())
				if err != nil {
					t.Check(o.End() != wire.Open, "that the target closes the connection", "%s", what(err))
					return
				}
				// RFC 5044 §7.1.1: only a target that "cannot interoperate" has to close;
				// but senders "MUST set this field to one", or two since RFC 6581.
				t.Check(reply.Rev == 1 || reply.Rev == 2, "that the target closes the connection, or speaks revision 1 or 2", "%s", reply)
			},
		}, conformance.Case{
			Clause: "rfc5044-7.1.1-16", Name: "reply-of-" + name, Also: []string{"rfc5044-7.1.1-15"}, Roles: conformance.Initiator,
			Title: fmt.Sprintf("A Reply of revision %d makes the target close the connection", rev),
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Rev = rev
				o.send(f, wrong)
				o.awaitClosed()
			},
		})
	}
	return cases
}

// revision1 is a Setup in which a target that is the Initiator asks for revision 1.
func revision1(t *conformance.T) conformance.Setup {
	if !slices.Contains(t.Service().Hello().Features.Revisions, 1) {
		t.Skip("the target does not speak revision 1")
	}
	return conformance.Setup{Revision: 1, ClientFirst: true, Connect: func(a *service.ConnectArgs) { a.Revision = 1 }}
}
