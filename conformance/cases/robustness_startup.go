package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// garbageForFrames returns the cases on garbage in place of a start-up frame (RFC
// 5044 §7.1.2 rule 5).
func garbageForFrames() []conformance.Case {
	list := append(shapes(frameGarbage),
		shape{"frame-of-the-other-kind", "a frame with the other key", nil},
		shape{"key-of-lower-case", "the key in lower case", func() []byte { return []byte("mpa id req frame\x40\x01\x00\x00") }},
		// Whoever looks for private data before he looks at the Key finds that there are none.
		shape{"key-one-octet-late", "the key, one octet late", func() []byte { return []byte("\x00MPA ID Req Frame\x40\x00\x00\x00") }},
		shape{"key-of-sixteen-keys", "a key that begins again and again", func() []byte { return []byte("MPA MPA MPA MPA \x40\x01\x00\x00") }},
	)
	var cases []conformance.Case
	for _, g := range list {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.2-9", Name: "garbage-" + g.name,
			Title: fmt.Sprintf("The target closes a connection on which %s come in place of a start-up frame, and serves another one", g.what),
			Run: func(t *conformance.T) {
				c := t.Connect(conformance.Setup{})
				other := wire.ReplyKey
				if t.Role() == conformance.Initiator {
					_, err := c.ReadFrame(t.Timeout())
					t.Try(err, "waiting for the Request")
					other = wire.RequestKey
				}
				octets := wire.Frame{Key: other, Rev: 1, Flags: wire.FlagC}.Octets()
				if g.octets != nil {
					octets = g.octets()
				}
				t.Try(c.SendRaw(octets, fmt.Sprintf("%d octets", len(octets)), "no start-up frame: "+g.what), "sending")
				awaitClose(t, c, wire.Frame{}, wire.Frame{})
				t.AwaitServed(c)
			},
		})
	}
	return cases
}

// brokenStartups are the cases on start-ups that end too early (RFC 5044 §7.1.2
// rule 10, §8).
var brokenStartups = []conformance.Case{
	{
		Clause: "rfc5044-8-1", Name: "fin-at-each-octet-of-the-request", Harm: requestCut,
		Title: "A Request that is cut by FIN, at whatever octet, makes the target close the connection, and it serves another one",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			eachCut(t, func(c *wire.Conn) {
				if err := c.CloseWrite(); err != nil { // the target has closed before
					t.Note("closing: %v", err)
				}
				awaitClose(t, c, wire.Frame{}, wire.Frame{})
			})
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "rst-at-each-octet-of-the-request", Harm: requestCut,
		Title: "A target whose peer resets the connection, at whatever octet of the Request, serves another one",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			eachCut(t, func(c *wire.Conn) { t.Try(c.Reset(), "resetting") })
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "fin-at-each-octet-of-the-reply",
		Title: "A Reply that is cut by FIN, at whatever octet, makes the target close the connection, and it connects anew",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			eachCut(t, func(c *wire.Conn) {
				t.Try(c.CloseWrite(), "closing")
				awaitClose(t, c, wire.Frame{}, wire.Frame{})
			})
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "rst-at-each-octet-of-the-reply",
		Title: "A target whose peer resets the connection, at whatever octet of the Reply, connects anew",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			eachCut(t, func(c *wire.Conn) { t.Try(c.Reset(), "resetting") })
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "rst-behind-the-reply",
		Title: "A target whose peer resets the connection as soon as start-up is done serves another one",
		Run: func(t *conformance.T) {
			c := t.Connect(conformance.Setup{})
			if t.Role() == conformance.Responder {
				t.Try(c.SendFrame(conformance.RequestFor(conformance.Setup{}), ""), "sending the Request")
			}
			f, err := c.ReadFrame(t.Timeout())
			t.Try(err, "waiting for the target's frame")
			if t.Role() == conformance.Initiator {
				t.Try(c.SendFrame(conformance.ReplyFor(conformance.Setup{}, f), ""), "sending the Reply")
			}
			t.Try(c.Reset(), "resetting")
			t.AwaitServed(c)
		},
	},
	{
		Clause: "rfc5044-7.1.2-20", Name: "many-that-fall-silent",
		Title: "Connections that fall silent at whatever octet of a Request are all given up after a while, and the target serves another one",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			configures(t, service.ConfigureArgs{RequestTimeout: 200})
			first := t.Dial(conformance.Setup{})
			request := conformance.RequestFor(conformance.Setup{}).Octets()
			silent := []*wire.Conn{first}
			for n := 1; n < len(request); n++ {
				c := t.Redial(first)
				t.Try(c.SendRaw(request[:n], fmt.Sprintf("%d octets of a Request", n), "the rest does not come"), "sending")
				silent = append(silent, c)
			}
			for _, c := range silent {
				awaitClose(t, c, wire.Frame{}, wire.Frame{})
			}
			t.AwaitServed(first)
		},
	},
}

// eachCut sends the tester's frame of start-up up to each byte, each on a
// connection of its own that is ended then.
func eachCut(t *conformance.T, end func(c *wire.Conn)) {
	var first *wire.Conn
	for n := 0; ; n++ {
		var c *wire.Conn
		if first == nil || t.Role() == conformance.Initiator {
			c = t.Connect(conformance.Setup{})
		} else {
			c = t.Redial(first)
		}
		if first == nil {
			first = c
		}
		octets := conformance.RequestFor(conformance.Setup{}).Octets()
		if t.Role() == conformance.Initiator {
			request, err := c.ReadFrame(t.Timeout())
			t.Try(err, "waiting for the Request")
			octets = conformance.ReplyFor(conformance.Setup{}, request).Octets()
		}
		if n == len(octets) { // a frame that is whole is for other cases
			break
		}
		if n > 0 {
			t.Try(c.SendRaw(octets[:n], fmt.Sprintf("%d octets of a start-up frame", n), "the rest does not come"), "sending")
		}
		end(c)
		t.Try(c.Close(), "closing")
	}
	t.AwaitServed(first)
}
