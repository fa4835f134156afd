package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// What the target counts in the segments that it sends: MSN, MO and TO, L, and the
// order of messages and segments (RFC 5041 §4.1, §4.3, §5.2, §5.3).
var ddpCounting = []conformance.Case{
	{
		Clause: "rfc5041-4.1-3", Name: "send",
		Title: "The segment of a Send with which all its data are there has L=1",
		Also:  []string{"rfc5041-4.1-4", "rfc5041-4.1-5"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSend, Data: conformance.Pattern(longMessage)}, service.Post{Op: service.OpSendSE})
			lastOnly(t, s, wire.Send)
			s.Await(wire.SendSE)
		},
	},
	{
		Clause: "rfc5041-4.1-4", Name: "write",
		Title: "The segments of a Write but the one with which all its data are there have L=0, and that has L=1",
		Also:  []string{"rfc5041-4.1-3", "rfc5041-4.1-5"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpWrite, Data: conformance.Pattern(longMessage), Remote: theirs}, service.Post{Op: service.OpSendSE})
			lastOnly(t, s, wire.Write)
			s.Await(wire.SendSE)
		},
	},
	{
		Clause: "rfc5041-4.1-4", Name: "read-response",
		Title: "The segments of a Read Response but the one with which all its data are there have L=0, and that has L=1",
		Also:  []string{"rfc5041-4.1-3", "rfc5041-4.1-5"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(longMessage)
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, longMessage, b.STag, b.TO))
			lastOnly(t, s, wire.ReadResponse)
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5041-4.1-6", Name: "send",
		Title: "The segment of a Send with L=1 has the highest MO",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			segments := longSend(t, opened(t))
			last := segments[len(segments)-1]
			for _, a := range segments[:len(segments)-1] {
				t.Check(a.MO < last.MO, fmt.Sprintf("MOs below that of the last segment, %d", last.MO), "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-7", Name: "sends",
		Title: "The MSNs of Sends of one and of several segments count the messages, not the segments",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			long := service.Post{Op: service.OpSend, Data: conformance.Pattern(longMessage)}
			s.Posts(service.Post{Op: service.OpSend}, long, long, service.Post{Op: service.OpSend, Data: []byte{1}})
			for msn := range uint32(4) {
				a := message(s, wire.Send)[0]
				t.Check(a.MSN == msn+1, fmt.Sprintf("MSN %d", msn+1), "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-7", Name: "by-queue",
		Title: "The MSNs of Sends and of Read Requests that alternate count by queue",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			b := s.Buffer(8)
			read := service.Post{Op: service.OpRead, SGL: []service.Piece{{MR: b.MR, Length: 8}}, Remote: theirs}
			send := service.Post{Op: service.OpSend, Data: []byte{1}}
			s.Posts(send, read, send, read)
			for i, op := range []wire.Opcode{wire.Send, wire.ReadRequest, wire.Send, wire.ReadRequest} {
				a, want := s.Await(op), uint32(i/2+1)
				t.Check(a.MSN == want, fmt.Sprintf("MSN %d on queue %d", want, a.QN), "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-8", Name: "send",
		Title: "The first Send of the target has MSN 1",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSend, Data: []byte{1}})
			firstMSN(t, s.Await(wire.Send))
		},
	},
	{
		Clause: "rfc5041-4.3-8", Name: "read-request",
		Title: "The first Read Request of the target has MSN 1",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			b := s.Buffer(8)
			s.Posts(service.Post{Op: service.OpSend}, service.Post{Op: service.OpRead, SGL: []service.Piece{{MR: b.MR, Length: 8}}, Remote: theirs})
			s.Await(wire.Send)
			firstMSN(t, s.Await(wire.ReadRequest))
		},
	},
	{
		Clause: "rfc5041-4.3-8", Name: "terminate",
		Title: "The Terminate of the target has MSN 1",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			w := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
			w.Wrong = "an STag that nobody gave"
			s.Post(w)
			firstMSN(t, answer(t, s, wire.Terminate))
		},
	},
	{
		Clause: "rfc5041-4.3-10", Name: "send",
		Title: "The MSN is the same in each segment of a Send of several, that comes after another",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			longSend(t, s)
			segments := longSend(t, s)
			for _, a := range segments {
				t.Check(a.MSN == segments[0].MSN, fmt.Sprintf("MSN %d", segments[0].MSN), "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-11", Name: "sends",
		Title: "The first segments of two Sends of several segments have MO 0",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			for range 2 {
				a := longSend(t, s)[0]
				t.Check(a.MO == 0, "MO 0", "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-5.2-6", Name: "send",
		Title: "The MO of each segment of a Send is where its data stand in the message",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSend, Data: counted()})
			stand(t, several(t, message(s, wire.Send)), func(a wire.Arrival) uint64 { return uint64(a.MO) })
		},
	},
	{
		Clause: "rfc5041-5.2-8", Name: "write",
		Title: "The TO of each segment of a Write is the message's, and where its data stand in the message",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpWrite, Data: counted(), Remote: theirs})
			stand(t, several(t, message(s, wire.Write)), func(a wire.Arrival) uint64 { return a.TO - uint64(theirs.TO) })
		},
	},
	{
		Clause: "rfc5041-5.2-8", Name: "read-response",
		Title: "The TO of each segment of a Read Response is the sink's, and where its data stand in the message",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(longMessage)
			t.Try(t.Service().MemoryWrite(t.Context(), b.MR, 0, counted()), "writing into the target's memory")
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, longMessage, b.STag, b.TO))
			stand(t, several(t, message(s, wire.ReadResponse)), func(a wire.Arrival) uint64 { return a.TO - conformance.SinkTO })
		},
	},
	{
		Clause: "rfc5041-5.2-8", Name: "beyond-32-bits",
		Title: "The TO of a Write's segments goes on from 0xffffffff to 0x100000000 within the message",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			const to = 1<<32 - 70_000
			s := opened(t)
			remote := service.Remote{STag: theirs.STag, TO: to}
			s.Posts(service.Post{Op: service.OpWrite, Data: counted(), Remote: remote})
			stand(t, several(t, message(s, wire.Write)), func(a wire.Arrival) uint64 { return a.TO - to })
		},
	},
	{
		Clause: "rfc5041-5.3-2", Name: "mixed",
		Title: "Sends, Writes and Reads leave in the order that the target's program has posted them in, whatever their lengths",
		Also:  []string{"rfc5041-5.3-1"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			b := s.Buffer(8)
			long := conformance.Pattern(longMessage)
			read := service.Post{Op: service.OpRead, SGL: []service.Piece{{MR: b.MR, Length: 8}}, Remote: theirs}
			s.Posts(
				service.Post{Op: service.OpWrite, Data: long, Remote: theirs}, service.Post{Op: service.OpSend}, read,
				service.Post{Op: service.OpSendSE, Data: long}, service.Post{Op: service.OpWrite, Remote: theirs}, read,
				service.Post{Op: service.OpSend, Data: []byte{1}},
			)
			for _, op := range []wire.Opcode{wire.Write, wire.Send, wire.ReadRequest, wire.SendSE, wire.Write, wire.ReadRequest, wire.Send} {
				message(s, op)
			}
		},
	},
	{
		Clause: "rfc5041-5.3-2", Name: "sends",
		Title: "Fifty Sends of different lengths leave in the order that the target's program has posted them in",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			posts := make([]service.Post, 50)
			for i := range posts {
				posts[i] = service.Post{Op: service.OpSend, Data: conformance.Pattern(100 * i)}
			}
			s.Posts(posts...)
			for i := range posts {
				n := len(payload(message(s, wire.Send)))
				t.Check(n == 100*i, fmt.Sprintf("the Send of %d octets", 100*i), "one of %d", n)
			}
		},
	},
	{
		Clause: "rfc5041-5.3-5", Name: "send",
		Title: "The segments of a Send leave in rising order of MO",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			segments := longSend(t, opened(t))
			for i, a := range segments[1:] {
				t.Check(a.MO > segments[i].MO, "rising MOs", "%d behind %d", a.MO, segments[i].MO)
			}
		},
	},
	{
		Clause: "rfc5041-5.3-5", Name: "read-response",
		Title: "The segments of a Read Response leave in rising order of TO",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			segments := longResponse(t, t.Open(conformance.Setup{}))
			for i, a := range segments[1:] {
				t.Check(a.TO > segments[i].TO, "rising TOs", "0x%x behind 0x%x", a.TO, segments[i].TO)
			}
		},
	},
}

// lastOnly takes segments until the data of a long message are all there: the one
// with which they are has L=1, and no other.
func lastOnly(t *conformance.T, s *conformance.Stream, op wire.Opcode) {
	for n := 0; n < longMessage; {
		a := s.Await(op)
		n += len(a.Payload)
		t.Check(a.Last == (n >= longMessage), fmt.Sprintf("L=1 with octet %d, and not before", longMessage), "L=%t with octet %d", a.Last, n)
	}
}

func firstMSN(t *conformance.T, a wire.Arrival) {
	t.Check(a.MSN == 1, "MSN 1", "%s", a.Segment)
}

// counted returns the data of a long message: no two places in it are alike.
func counted() []byte {
	var b []byte
	for i := range uint32(longMessage / 4) {
		b = binary.BigEndian.AppendUint32(b, i)
	}
	return b
}

// stand makes sure that the segments of counted data say where in the message their
// data stand.
func stand(t *conformance.T, segments []wire.Arrival, offset func(wire.Arrival) uint64) {
	whole := counted()
	for _, a := range segments {
		off, n := offset(a), uint64(len(a.Payload))
		t.Check(off <= longMessage && n <= longMessage-off, "an offset within the message", "%s", a.Segment)
		at := whole[off : off+n]
		t.Check(bytes.Equal(at, a.Payload), fmt.Sprintf("the data from octet %d on, %x", off, head(at)), "%x in %s", head(a.Payload), a.Segment)
	}
}
