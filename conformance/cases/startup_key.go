package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The Key of a start-up frame (RFC 5044 §7.1.1, §7.1.2 rules 5 and 8).
func startupKeys() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc5044-7.1.1-1", Name: "request-key", Also: []string{"rfc5044-7.1.2-1"}, Roles: conformance.Initiator,
			Title: "The target's Request begins with the Key MPA ID Req Frame",
			Run:   ownKey(wire.RequestKey),
		},
		{
			Clause: "rfc5044-7.1.1-3", Name: "reply-key", Roles: conformance.Responder,
			Title: "The target's Reply begins with the Key MPA ID Rep Frame",
			Run:   ownKey(wire.ReplyKey),
		},
		{
			Clause: "rfc5044-7.1.1-2", Name: "reply-key", Roles: conformance.Responder,
			Title: "A Reply in place of the Request is no Request: the target closes the connection",
			Run:   wrongKey(wire.ReplyKey),
		},
		{
			Clause: "rfc5044-7.1.2-10", Name: "request-key", Also: []string{"rfc5044-7.1.1-4"}, Roles: conformance.Initiator,
			Title: "A Request in place of the Reply shows that both sides are Initiators: the target closes the connection",
			Run:   wrongKey(wire.RequestKey),
		},
		{
			Clause: "rfc5044-7.1.1-2", Name: "another-protocol", Also: []string{"rfc5044-7.1.2-3"}, Roles: conformance.Responder,
			Title: "A request of HTTP in place of the MPA Request makes the target close the connection",
			Run:   wrongOctets([]byte("GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n"), "a request of HTTP"),
		},
		{
			Clause: "rfc5044-7.1.1-4", Name: "another-protocol", Also: []string{"rfc5044-7.1.2-6"}, Roles: conformance.Initiator,
			Title: "An answer of HTTP in place of the MPA Reply makes the target close the connection",
			Run:   wrongOctets([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), "an answer of HTTP"),
		},
		{
			Clause: "rfc5044-7.1.1-2", Name: "zeros", Roles: conformance.Responder,
			Title: "A Request of zeros makes the target close the connection",
			Run:   wrongOctets(make([]byte, wire.FrameLen), "20 zeros"),
		},
		{
			Clause: "rfc5044-7.1.1-4", Name: "zeros", Roles: conformance.Initiator,
			Title: "A Reply of zeros makes the target close the connection",
			Run:   wrongOctets(make([]byte, wire.FrameLen), "20 zeros"),
		},
		{
			Clause: "rfc5044-7.1.2-9", Name: "error-to-the-ulp", Also: []string{"rfc5044-8-4"}, Needs: conformance.NeedService,
			Title: "A wrong Key closes the connection, and the target's program is told an error",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Key = "MPA ID XXX Frame"
				o.send(f, "the Key is neither a Request's nor a Reply's")
				o.awaitClosed()
				localError(t)
			},
		},
		{
			Clause: "rfc5044-8-8", Name: "code-of-a-wrong-key", Also: []string{"rfc5044-8-4"}, Needs: conformance.NeedService,
			Title: "After a wrong Key the target's program is told MPA's error 4",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{})
				f := o.frame()
				f.Key = "MPA ID XXX Frame"
				o.send(f, "the Key is neither a Request's nor a Reply's")
				e := localError(t)
				const expected = "that the target's program is told MPA's error 4"
				t.Check(e.Failure != nil, expected, "only %q", e.Message)
				t.Check(e.Failure.MPACode == 4, expected, "error %d", e.Failure.MPACode)
			},
		},
		{
			Clause: "rfc5044-8-5", Name: "no-time-is-lost", Needs: conformance.NeedService,
			Title: "A target that would wait a minute for a frame closes the connection at once when the Key is wrong",
			Run: func(t *conformance.T) {
				if t.Role() == conformance.Responder {
					err := t.Service().Configure(t.Context(), service.ConfigureArgs{RequestTimeout: 60_000})
					t.Try(err, "setting the time limit")
				}
				o := begin(t, conformance.Setup{Connect: func(a *service.ConnectArgs) { a.ReplyTimeout = 60_000 }})
				f := o.frame()
				f.Key = "MPA ID XXX Frame"
				o.send(f, "the Key is neither a Request's nor a Reply's")
				o.awaitClosed()
			},
		},
		{
			Clause: "rfc5044-7.1.2-3", Name: "no-second-try", Roles: conformance.Responder,
			Title: "A Request that is right, behind one with a wrong Key, gets no Reply: the target has closed and left MPA",
			Run:   secondTry,
		},
		{
			Clause: "rfc5044-7.1.2-6", Name: "no-second-try", Roles: conformance.Initiator,
			Title: "A Reply that is right, behind one with a wrong Key, brings no connection: the target has closed and left MPA",
			Run:   secondTry,
		},
	}
	// The first and the last byte, and of each word: a space, the bytes in which the
	// Keys differ, and those in which they do not.
	for _, i := range []int{0, 3, 4, 7, 9, 10, 15} {
		request, reply := []byte(wire.RequestKey), []byte(wire.ReplyKey)
		request[i] ^= 0x20
		reply[i] ^= 0x20
		name := fmt.Sprintf("octet-%d", i)
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.1-2", Name: name, Also: []string{"rfc5044-7.1.2-3", "rfc5044-8-4", "rfc5044-8-5"}, Roles: conformance.Responder,
			Title: fmt.Sprintf("A Request whose Key is wrong in octet %d alone makes the target close the connection", i),
			Run:   wrongKey(string(request)),
		}, conformance.Case{
			Clause: "rfc5044-7.1.1-4", Name: name, Also: []string{"rfc5044-7.1.2-6", "rfc5044-8-4", "rfc5044-8-5"}, Roles: conformance.Initiator,
			Title: fmt.Sprintf("A Reply whose Key is wrong in octet %d alone makes the target close the connection", i),
			Run:   wrongKey(string(reply)),
		})
	}
	return cases
}

// ownKey looks at the Key of the frame that the target sends.
func ownKey(key string) func(*conformance.T) {
	return func(t *conformance.T) {
		o := begin(t, conformance.Setup{})
		f := o.request
		if t.Role() == conformance.Responder {
			o.send(o.frame(), "")
			f = o.reply()
		}
		t.Check(f.Key == key, fmt.Sprintf("a frame with the Key %q", key), "%s", f)
	}
}

// wrongKey sends an ordinary frame with another Key.
func wrongKey(key string) func(*conformance.T) {
	return func(t *conformance.T) {
		o := begin(t, conformance.Setup{})
		f := o.frame()
		f.Key = key
		o.send(f, "the Key of a "+o.name()+" is another one")
		o.awaitClosed()
	}
}

// wrongOctets sends something in place of a frame.
func wrongOctets(b []byte, what string) func(*conformance.T) {
	return func(t *conformance.T) {
		o := begin(t, conformance.Setup{})
		o.octets(b, what, "it is no "+o.name())
		o.awaitClosed()
	}
}

// secondTry sends a frame with a wrong Key, and an ordinary one behind it.
func secondTry(t *conformance.T) {
	o := begin(t, conformance.Setup{})
	f := o.frame()
	wrong := f
	wrong.Key = "MPA ID XXX Frame"
	o.octets(append(wrong.Octets(), f.Octets()...), "a "+o.name()+" with a wrong Key, and an ordinary one", "the first one's Key")
	o.awaitClosed()
}
