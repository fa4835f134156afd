package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// connectionFloods are the cases on many connections that come to nothing (RFC 5044
// §8).
var connectionFloods = []conformance.Case{
	{
		Clause: "rfc5044-8-1", Name: "100-opened-and-closed", Harm: requestCut,
		Title: "After 100 connections that were opened and closed without a word, the target serves another one",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			flood(t, 100, func(c *wire.Conn) { t.Try(c.Close(), "closing") })
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "100-opened-and-reset", Harm: requestCut,
		Title: "After 100 connections that were opened and reset without a word, the target serves another one",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			flood(t, 100, func(c *wire.Conn) { t.Try(c.Reset(), "resetting") })
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "100-reset-behind-the-request", Harm: requestCut,
		Title: "After 100 connections that were reset behind the Request, the target serves another one",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			flood(t, 100, func(c *wire.Conn) {
				t.Try(c.SendFrame(conformance.RequestFor(conformance.Setup{}), ""), "sending the Request")
				t.Try(c.Reset(), "resetting")
			})
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "50-reset-in-operation",
		Title: "After 50 connections that were reset in full operation, the target serves another one",
		Run: func(t *conformance.T) {
			severalAtOnce(t)
			s := t.Open(conformance.Setup{})
			first := s.Conn
			for range 50 {
				s.Hello()
				t.Try(s.Reset(), "resetting")
				s = renew(t, first)
			}
			t.AwaitServed(first)
		},
	},
}

// flood opens n connections to a Responder, one after the other.
func flood(t *conformance.T, n int, end func(c *wire.Conn)) {
	first := t.Dial(conformance.Setup{})
	end(first)
	for range n - 1 {
		end(t.Redial(first))
	}
	t.AwaitServed(first)
}

// floods are the cases on many messages.
var floods = []conformance.Case{
	{
		Clause: "rfc5041-5.2-11", Name: "10000-writes-of-no-octets",
		Title: "10,000 Writes of no octets, to whatever STag, leave the stream as it is",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			bulk(t, s, 10_000, func(i int) wire.Segment { return wire.Tagged(wire.Write, uint32(i), uint64(i)<<32, nil) })
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5040-5.3-6", Name: "500-sends-of-no-octets",
		Title: "500 Sends of no octets take 500 receives, and no more",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			const n = 500
			if depth := t.Service().Hello().Limits.Depth; depth <= n {
				t.Skip("the target's queues hold %d requests at most", depth)
			}
			s := t.Open(conformance.Setup{Recvs: make([]uint32, n+1), QP: service.QPAttr{RecvDepth: n + 1}})
			bulk(t, s, n, func(int) wire.Segment { return wire.Untagged(wire.Send, nil) })
			for range n {
				s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
			}
			s.AwaitAlive()
			s.AwaitNoCompletion(service.RecvQueue, "as all Sends have theirs")
		},
	},
	{
		Clause: "rfc5041-5.2-5", Name: "5000-writes",
		Title: "Of 5,000 Writes to the same place, the last one's data stay",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(light)
			const n = 5_000
			last := conformance.Pattern(light)
			bulk(t, s, n, func(i int) wire.Segment {
				data := bytes.Repeat([]byte{byte(i)}, light)
				if i == n-1 {
					data = last
				}
				return wire.Tagged(wire.Write, b.STag, b.TO, data)
			})
			s.AwaitAlive()
			s.AwaitContents(b, 0, last)
		},
	},
	{
		Clause: "rfc5040-5.2.2-4", Name: "2000-reads",
		Title: "2,000 Reads, always as many at a time as the target takes, are answered in their order",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			if s.IRD == 0 || s.IRD == wire.NoDepth {
				t.Skip("how many Reads the target takes at a time is not known")
			}
			const n = 2_000
			ask := func(i int) { s.Post(conformance.ReadRequest(conformance.SinkSTag, uint64(i), 0, 0, 0)) }
			asked := min(n, int(s.IRD))
			for i := range asked {
				ask(i)
			}
			for i := range n {
				s.AwaitResponse(conformance.SinkSTag, uint64(i), 0)
				if asked < n {
					ask(asked)
					asked++
				}
			}
		},
	},
}

// bulk sends n messages, over TCP many in one of its segments.
func bulk(t *conformance.T, s *conformance.Stream, n int, message func(i int) wire.Segment) {
	var frames [][]byte
	for i := range n {
		seg := s.Due(message(i))
		if !seg.Tagged {
			s.SetMSN(seg.QN, seg.MSN+1)
		}
		frames = append(frames, s.Frame(seg.Octets(), wire.Flaw{}))
	}
	t.Try(s.SendFrames(frames, fmt.Sprintf("%d messages: %s and so on", n, message(0)), ""), "sending")
}

// slowPeers are the cases on peers that don't read what the target sends.
var slowPeers = []conformance.Case{
	{
		Clause: "rfc5042-6.4.3.3-1", Name: "peer-that-does-not-read",
		Title: "While one peer asks for much and reads nothing, another one is served; what the first one gets then is right",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := heavyRegion(t, 7)
			s.Post(conformance.ReadRequest(conformance.SinkSTag, 0, heavy, uint32(b.STag), uint64(b.TO)))
			t.AwaitServed(s.Conn)
			data := s.AwaitResponse(conformance.SinkSTag, 0, heavy)
			t.Check(bytes.Equal(data, service.Pattern(7, heavy)), "the memory's content", "other octets")
		},
	},
	{
		Clause: "rfc5041-5.2-4", Name: "peer-that-reads-late",
		Title: "Sends of the target's program that find the peer's window closed arrive whole and in order once it reads",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello() // so that a Responder may send
			const n = 4
			b := heavyRegion(t, 3)
			piece := func(i int) service.Piece {
				return service.Piece{MR: b.MR, Offset: uint64(i) * heavy / n, Length: heavy / n}
			}
			var posts []service.Post
			for i := range n {
				posts = append(posts, service.Post{Op: service.OpSend, SGL: []service.Piece{piece(i)}})
			}
			s.Posts(posts...)
			t.AwaitServed(s.Conn)
			want := service.Pattern(3, heavy)
			for i := range n {
				m := s.AwaitMessage(wire.Send)
				t.Check(bytes.Equal(m.Payload, want[i*heavy/n:(i+1)*heavy/n]), fmt.Sprintf("the octets of Send %d", i+1), "%d octets, or others", len(m.Payload))
			}
		},
	},
	{
		Clause: "rfc5042-6.4.3.3-1", Name: "peer-that-never-reads",
		Title: "A peer that asks for much and goes away without having read it harms no other one",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			crowd(t, s, 2)
			t.Try(s.Reset(), "resetting")
			t.AwaitServed(s.Conn)
		},
	},
}
