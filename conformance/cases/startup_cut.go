package cases

import (
	"errors"
	"fmt"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// requestCut is why these cases come last.
const requestCut = "Linux siw 6.1 stops listening once a connection has ended before its Request was whole"

// Frames that come to no end, or late (RFC 5044 §7.1.2 rules 2, 3, 8 and 10).
func startupCuts() []conformance.Case {
	var cases []conformance.Case
	// Within the Key, behind it, behind the flags, behind Rev, within PD_Length, and
	// before the private data.
	for _, n := range []int{1, 15, 16, 17, 18, 19, 20} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-7.1.2-3", Name: fmt.Sprintf("cut-to-%d-then-fin", n), Also: []string{"rfc5044-7.1.2-2", "rfc5044-8-4"}, Roles: conformance.Responder,
			Harm:  requestCut,
			Title: fmt.Sprintf("A Request of which there is no more than %s when the peer ends its half gets no Reply: the target closes", octets(n)),
			Run:   func(t *conformance.T) { cutThenFin(t, n) },
		}, conformance.Case{
			Clause: "rfc5044-7.1.2-6", Name: fmt.Sprintf("cut-to-%d-then-fin", n), Also: []string{"rfc5044-7.1.2-5", "rfc5044-8-4"}, Roles: conformance.Initiator,
			Title: fmt.Sprintf("A Reply of which there is no more than %s when the peer ends its half brings no connection: the target closes", octets(n)),
			Run:   func(t *conformance.T) { cutThenFin(t, n) },
		})
	}
	for _, n := range []int{0, 1, 16, 19, 20} {
		clause, also := "rfc5044-7.1.2-20", []string(nil)
		if n == 0 {
			clause, also = "rfc5044-7.1.2-19", []string{"rfc5044-7.1.2-20"}
		}
		cases = append(cases, conformance.Case{
			Clause: clause, Name: fmt.Sprintf("silence-after-%d", n), Also: also, Roles: conformance.Responder, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A target that is to wait 50 ms for a Request closes the connection when %s of it have come and no more", octets(n)),
			Run: func(t *conformance.T) {
				o := beginTimed(t, 50*time.Millisecond)
				sendCut(o, n)
				o.awaitClosed()
			},
		}, conformance.Case{
			Clause: "rfc5044-7.1.2-20", Name: fmt.Sprintf("silence-after-%d-of-the-reply", n), Roles: conformance.Initiator, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A target that is to wait 50 ms for a Reply closes the connection when %s of it have come and no more", octets(n)),
			Run: func(t *conformance.T) {
				o := beginTimed(t, 50*time.Millisecond)
				sendCut(o, n)
				o.awaitClosed()
			},
		})
	}
	return append(cases,
		conformance.Case{
			Clause: "rfc5044-7.1.2-20", Name: "octet-after-octet", Needs: conformance.NeedService,
			Title: "A frame that comes octet after octet, each one in time, does not hold the target longer than it is to wait for all: it closes",
			Run:   dribble,
		},
		conformance.Case{
			Clause: "rfc5044-7.1.2-20", Name: "error-to-the-ulp", Needs: conformance.NeedService,
			Title: "When a frame does not come in time, the target's program is told an error",
			Run: func(t *conformance.T) {
				o := beginTimed(t, 50*time.Millisecond)
				o.awaitClosed()
				localError(t)
			},
		},
		conformance.Case{
			Clause: "rfc5044-7.1.2-2", Name: "octet-by-octet", Also: []string{"rfc5044-7.1-2", "rfc5044-7.1.2-16", "rfc5044-7.1.2-17"}, Roles: conformance.Responder,
			Title: "A Request that comes octet by octet is waited for, and answered",
			Run:   func(t *conformance.T) { inPieces(t, 1) },
		},
		conformance.Case{
			Clause: "rfc5044-7.1.2-5", Name: "octet-by-octet", Also: []string{"rfc5044-7.1-2", "rfc5044-7.1.2-18"}, Roles: conformance.Initiator,
			Title: "A Reply that comes octet by octet is waited for, and taken",
			Run:   func(t *conformance.T) { inPieces(t, 1) },
		},
		conformance.Case{
			Clause: "rfc5044-7.1.2-2", Name: "in-two-pieces", Roles: conformance.Responder,
			Title: "A Request that comes in two pieces, wherever it is cut, is answered",
			Run:   inTwoPieces,
		},
		conformance.Case{
			Clause: "rfc5044-7.1.2-5", Name: "in-pieces-of-19", Roles: conformance.Initiator,
			Title: "A Reply that is cut within PD_Length and again behind the first of its private data is taken",
			Run:   func(t *conformance.T) { inPieces(t, 19) },
		},
	)
}

// sendCut sends the first n bytes of an ordinary frame with private data.
func sendCut(o *opening, n int) {
	if n == 0 {
		return
	}
	o.octets(o.frame().Octets()[:n], octets(n)+" of a "+o.name(), "the rest does not come")
}

// withPrivate is a Setup whose frames have private data even if they have no
// enhanced block.
var withPrivate = conformance.Setup{Private: []byte("private data")}

func cutThenFin(t *conformance.T, n int) {
	o := begin(t, withPrivate)
	sendCut(o, n)
	t.Try(o.CloseWrite(), "ending the tester's half")
	o.awaitClosed()
}

// beginTimed begins with a target that waits no longer than the limit for a frame.
func beginTimed(t *conformance.T, limit time.Duration) *opening {
	ms := int(limit.Milliseconds())
	if t.Role() == conformance.Responder {
		t.Try(t.Service().Configure(t.Context(), service.ConfigureArgs{RequestTimeout: ms}), "setting the time limit")
	}
	setup := withPrivate
	setup.Connect = func(a *service.ConnectArgs) { a.ReplyTimeout = ms }
	return begin(t, setup)
}

// dribble sends a frame slowly, and expects that the target does not wait for its
// end.
func dribble(t *conformance.T) {
	const limit, pause = 100 * time.Millisecond, 20 * time.Millisecond
	o := beginTimed(t, limit)
	f := o.frame()
	f.Private = append(f.Private, conformance.Pattern(wire.MaxPrivateData-len(f.Private))...)
	b := f.Octets()
	t.Note("the %s comes an octet every %v", o.name(), pause)
	for i := range b {
		if o.SendRaw(b[i:i+1], fmt.Sprintf("octet %d of a %s", i, o.name()), "") != nil {
			return // it has gone
		}
		_, err := o.ReadFrame(pause)
		switch {
		case errors.Is(err, wire.ErrSilence):
		case err != nil:
			t.Check(o.End() != wire.Open, "that the target closes the connection", "%s", what(err))
			return
		default:
			t.Fail("that the target closes the connection", "a frame")
		}
		if time.Duration(i)*pause > t.Timeout() {
			break
		}
	}
	t.Fail("that the target closes the connection", "nothing, when it had got an octet every %v, and was to wait %v", pause, limit)
}

// inPieces sends an ordinary frame some bytes at a time.
func inPieces(t *conformance.T, size int) {
	o := begin(t, withPrivate)
	f := o.frame()
	if err := o.SendPieces(f.Octets(), size, fmt.Sprintf("%s, in pieces of %s", f, octets(size)), ""); err != nil {
		t.Fail("that the target takes a "+o.name()+" in pieces", "%s", what(err))
	}
	o.enter(f).AwaitAlive()
}

// inTwoPieces sends Requests, each over a connection of its own, each cut at another
// place.
func inTwoPieces(t *conformance.T) {
	for _, n := range []int{1, 15, 16, 17, 18, 19, 20, 22, 24, 30} {
		o := begin(t, withPrivate)
		f := o.frame()
		b := f.Octets()
		o.octets(b[:n], octets(n)+" of a Request", "")
		o.octets(b[n:], "the rest of it", "")
		reply := o.reply()
		t.Check(reply.Flags&wire.FlagR == 0, fmt.Sprintf("a Reply that accepts a Request cut behind %s", octets(n)), "%s", reply)
		t.Try(o.Close(), "closing")
	}
}
