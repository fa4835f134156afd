package cases

import (
	"bytes"
	"errors"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// longReadLen is how many bytes a Read is for that is under way while the tester does not
// read: more than TCP keeps for it, so that the target stops in the midst.
const longReadLen = 16 << 20

// protectionLongRead: memory that is taken back while a long Read of it is being answered.
var protectionLongRead = []conformance.Case{
	revokedUnderRead("deregistered-during-a-long-read", "the deregistration",
		func(_ *conformance.T, s *conformance.Stream) *conformance.Buffer {
			return s.BufferOf(conformance.BufferSpec{Length: longReadLen, Access: []string{service.RemoteRead}})
		},
		func(t *conformance.T, _ *conformance.Stream, b *conformance.Buffer) { deregister(t, b) }),
	revokedUnderRead("invalidated-during-a-long-read", "the invalidation",
		func(t *conformance.T, s *conformance.Stream) *conformance.Buffer {
			needFast(t)
			s.Hello()
			r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: longReadLen, Fast: true, Fill: conformance.Fill})
			t.Try(err, "making a region of the target")
			return fastRegister(t, s, r.MR, longReadLen, []string{service.RemoteRead}, uint8(r.STag)+1)
		},
		func(t *conformance.T, _ *conformance.Stream, b *conformance.Buffer) {
			// On a stream of its own: this one's requests wait behind the response.
			other := t.Open(conformance.Setup{})
			other.Hello()
			invalidated(t, other, b.STag)
		}),
}

// revokedUnderRead has the target's program take memory back while the target answers a
// long Read of it, and then write something else there. None of that may be sent.
func revokedUnderRead(name, what string, open func(*conformance.T, *conformance.Stream) *conformance.Buffer, revoke func(*conformance.T, *conformance.Stream, *conformance.Buffer)) conformance.Case {
	return conformance.Case{
		Clause: "rfc5040-7.2-9", Name: name, Also: []string{"rfc5041-8.3-2", "rfc5041-8.3.1-5", "rfc5040-8.1.1-5"}, Needs: conformance.NeedService,
		Title: "Of a long Read with " + what + " of its source in the midst, nothing is sent that stands there afterwards: the stream ends",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := open(t, s)
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, longReadLen, b.STag, b.TO))
			n := len(s.Await(wire.ReadResponse).Payload) // it is under way
			revoke(t, s, b)
			secret := bytes.Repeat([]byte{^byte(conformance.Fill)}, 4096)
			t.Try(t.Service().MemoryWrite(t.Context(), b.MR, uint64(longReadLen-len(secret)), secret), "writing into the target's memory")
			for n < longReadLen {
				a, err := s.Next(t.Timeout())
				if errors.As(err, new(*wire.EndError)) || err == nil && a.Opcode == wire.Terminate {
					return
				}
				t.Check(err == nil, "that the stream ends", "%v", err)
				t.Check(a.Opcode == wire.ReadResponse, "the Read Response until the stream ends", "%s", a.Segment)
				n += len(a.Payload)
				t.Check(!bytes.Contains(a.Payload, secret[:1]), "that nothing is sent which stands in memory only since "+what, "%s", a.Segment)
			}
			t.Inconclusive("the target had the whole response on its way before %s", what)
		},
	}
}
