package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapOrder is the cases on the order of messages and completions (RFC 5040 §5.1,
// §5.3, §5.5).
func rdmapOrder() []conformance.Case {
	return slices.Concat(rdmapSeen(), rdmapIssued, rdmapCompleted)
}

// rdmapSeen is the cases on what a message finds that those before it have written.
func rdmapSeen() []conformance.Case {
	var out []conformance.Case
	for _, p := range []struct{ n, segment int }{{1, 1}, {64, 64}, {1000, 7}, {65536, 1400}, {300000, 60000}} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.5-1", Name: fmt.Sprintf("write-of-%d-octets-then-send", p.n), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-5.5-7"},
			Title: fmt.Sprintf("When the program gets a Send, the RDMA Write of %d octets before it is in memory", p.n),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				r := rdmapRegion(t, p.n, service.LocalWrite, service.RemoteWrite)
				data := conformance.Pattern(p.n)
				s.Post(conformance.Segments(wire.Tagged(wire.Write, uint32(r.STag), uint64(r.TO), data), p.segment)...)
				s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
				rdmapReceived(t, s, conformance.Pattern(8))
				rdmapHolds(t, r.MR, 0, data, "the data of the RDMA Write, when the Send after it is there")
			},
		}, conformance.Case{
			Clause: "rfc5040-5.5-3", Name: fmt.Sprintf("write-of-%d-octets-then-read", p.n), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-5.5-8"},
			Title: fmt.Sprintf("A Read right behind an RDMA Write of %d octets to the same memory brings what was written", p.n),
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				r := rdmapRegion(t, p.n, service.LocalWrite, service.RemoteWrite, service.RemoteRead)
				data := conformance.Pattern(p.n)
				s.Post(conformance.Segments(wire.Tagged(wire.Write, uint32(r.STag), uint64(r.TO), data), p.segment)...)
				got := s.Read(uint32(r.STag), uint64(r.TO), p.n)
				t.Check(bytes.Equal(got, data), "the data of the RDMA Write", "%d octets that begin with %x", len(got), rdmapClip(got))
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc5040-5.5-3", Name: "send-then-read", Needs: conformance.NeedService,
		Title: "A Read right behind a Send, of the memory that the Send goes into, brings what was sent",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{Recvs: []uint32{}})
			r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteRead)
			_, err := t.Service().Recv(t.Context(), s.QP, service.Recv{SGL: []service.Piece{r.Piece(0, 64)}})
			t.Try(err, "posting a receive")
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(64)))
			got := s.Read(uint32(r.STag), uint64(r.TO), 64)
			t.Check(bytes.Equal(got, conformance.Pattern(64)), "the data of the Send", "%x", rdmapClip(got))
		},
	}, conformance.Case{
		Clause: "rfc5040-5.5-3", Name: "writes-and-reads-by-turns", Needs: conformance.NeedBuffer,
		Title: "RDMA Writes to one place and Reads of it by turns: each Read brings what the Write before it has written",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			b := s.Buffer(64)
			for i := range byte(8) {
				s.Post(wire.Tagged(wire.Write, b.STag, b.TO, bytes.Repeat([]byte{i + 1}, 64)))
				got := s.Read(b.STag, b.TO, 64)
				t.Check(bytes.Equal(got, bytes.Repeat([]byte{i + 1}, 64)), fmt.Sprintf("64 octets of %02x", i+1), "%x", rdmapClip(got))
			}
		},
	})
}

// rdmapIssued is the cases on the order in which the target sends.
var rdmapIssued = []conformance.Case{
	{
		Clause: "rfc5040-5.1-3", Name: "writes-in-order", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-5.5-4"},
		Title: "Six RDMA Writes of many sizes are sent in the order in which they were posted",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			var posts []service.Post
			sizes := []int{3000, 1, 70000, 64, 2, 500}
			for i, n := range sizes {
				posts = append(posts, service.Post{Op: service.OpWrite, Data: conformance.Pattern(n), Remote: rdmapRemote(uint64(i) << 20)})
			}
			s.Posts(posts...)
			for i, n := range sizes {
				m := s.AwaitMessage(wire.Write)
				to := rdmapTheirTO + uint64(i)<<20
				t.Check(m.TO == to && bytes.Equal(m.Payload, conformance.Pattern(n)),
					fmt.Sprintf("the RDMA Write of %d octets to TO 0x%x", n, to), "one of %d octets to TO 0x%x", len(m.Payload), m.TO)
			}
		},
	},
	{
		Clause: "rfc5040-5.3-5", Name: "sends-in-order", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-5.5-4"},
		Title: "Six Sends of two kinds and many sizes are sent in the order in which they were posted",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			var posts []service.Post
			sizes := []int{3000, 1, 70000, 64, 2, 500}
			for i, n := range sizes {
				op := service.OpSend
				if i%2 == 1 {
					op = service.OpSendSE
				}
				posts = append(posts, service.Post{Op: op, Data: conformance.Pattern(n)})
			}
			s.Posts(posts...)
			for i, n := range sizes {
				op := wire.Send
				if i%2 == 1 {
					op = wire.SendSE
				}
				m := s.AwaitMessage(op)
				t.Check(bytes.Equal(m.Payload, conformance.Pattern(n)), fmt.Sprintf("the %s of %d octets", op, n), "one of %d", len(m.Payload))
			}
		},
	},
	{
		Clause: "rfc5040-5.5-4", Name: "all-kinds-in-order", Needs: conformance.NeedService,
		Title: "RDMA Write, Send, Read, RDMA Write, Send with SE and Read are sent in the order in which they were posted",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
			read := service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)}
			write := service.Post{Op: service.OpWrite, Data: conformance.Pattern(64), Remote: rdmapRemote(0)}
			s.Posts(write, service.Post{Op: service.OpSend, Data: conformance.Pattern(8)}, read, write, service.Post{Op: service.OpSendSE, Data: conformance.Pattern(8)}, read)
			for _, op := range []wire.Opcode{wire.Write, wire.Send, wire.ReadRequest, wire.Write, wire.SendSE, wire.ReadRequest} {
				m := s.AwaitMessage(op)
				if op == wire.ReadRequest { // at once: a target may hold back what is behind a Read
					rdmapAnswer(t, s, m)
				}
			}
		},
	},
	{
		Clause: "rfc5040-6.1-1", Name: "rdma-messages-only", Needs: conformance.NeedService,
		Title: "Whatever the target sends in operation is RDMA Messages, with opcodes that the RFCs know",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, rdmapCut(t))
			r := rdmapRegion(t, 2000, service.LocalWrite, service.RemoteWrite, service.RemoteRead)
			s.Posts(
				service.Post{Op: service.OpWrite, Data: conformance.Pattern(2000), Remote: rdmapRemote(0)},
				service.Post{Op: service.OpSend, Data: conformance.Pattern(2000)},
				service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 2000)}, Remote: rdmapRemote(0)},
			)
			message := slices.Concat(rdmapMessage(t, s, wire.Write), rdmapMessage(t, s, wire.Send), rdmapMessage(t, s, wire.ReadRequest))
			rdmapAnswer(t, s, message[len(message)-1].Segment)
			s.AwaitAlive()
			for _, f := range s.Faults() {
				t.Check(f.Rule != wire.FaultOpcode && f.Rule != wire.FaultShort && f.Rule != wire.FaultLength, "RDMA Messages and nothing else", "%s", f.What)
			}
		},
	},
	{
		Clause: "rfc5040-5.1-4", Name: "gathered-write", Needs: conformance.NeedService,
		Title: "An RDMA Write that gathers three places is one message to one STag, at TOs that follow each other",
		Run: func(t *conformance.T) {
			rdmapLacks(t, t.Service().Hello().Limits.SGE < 3, "SGLs of three pieces")
			s := rdmapSpeaking(t, conformance.Setup{})
			r := rdmapRegion(t, 256)
			s.Posts(service.Post{
				Op: service.OpWrite, Remote: rdmapRemote(0),
				SGL: []service.Piece{r.Piece(100, 10), r.Piece(0, 7), r.Piece(200, 50)},
			})
			message := rdmapMessage(t, s, wire.Write)
			rdmapBreaks(t, message, "one message to one STag", wire.FaultMessage, wire.FaultTO)
			all := service.Pattern(rdmapSeed, 256)
			want := slices.Concat(all[100:110], all[0:7], all[200:250])
			t.Check(message[0].STag == rdmapTheirSTag && message[0].TO == rdmapTheirTO && bytes.Equal(rdmapPayload(message), want),
				"the 67 octets of the three places", "%d: %x", len(rdmapPayload(message)), rdmapClip(rdmapPayload(message)))
		},
	},
	{
		Clause: "rfc5040-5.1-4", Name: "two-buffers-two-writes", Needs: conformance.NeedService,
		Title: "RDMA Writes to two buffers are two messages",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			for i := range uint32(2) {
				s.Posts(service.Post{Op: service.OpWrite, Data: conformance.Pattern(32), Remote: service.Remote{STag: service.STag(rdmapTheirSTag + i), TO: rdmapTheirTO}})
			}
			for i := range uint32(2) {
				m := s.AwaitMessage(wire.Write)
				t.Check(m.STag == rdmapTheirSTag+i && len(m.Payload) == 32, fmt.Sprintf("32 octets to STag 0x%08x", rdmapTheirSTag+i), "%s", m)
			}
		},
	},
	{
		Clause: "rfc5040-5.2.2-4", Name: "responses-among-requests", Needs: conformance.NeedService,
		Title: "The target's own Sends and its Read Responses keep each their order",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			r := rdmapRegion(t, 64, service.RemoteRead)
			n := uint32(min(s.IRD, 8))
			for i := range n {
				s.Post(conformance.ReadRequest(0x100+i, 0, 64, uint32(r.STag), uint64(r.TO)))
			}
			for i := range n {
				s.Posts(service.Post{Op: service.OpSend, Data: []byte{byte(i)}})
			}
			var sends, responses uint32
			for range 2 * n {
				a, err := s.Answer(t.Timeout())
				if err != nil {
					t.Fail("Sends and Read Responses", "%v", err)
				}
				if a.Opcode == wire.Send {
					t.Check(len(a.Payload) == 1 && uint32(a.Payload[0]) == sends, fmt.Sprintf("Send %d", sends), "%x", a.Payload)
					sends++
					continue
				}
				t.Check(a.Opcode == wire.ReadResponse && a.STag == 0x100+responses, fmt.Sprintf("Read Response %d", responses), "%s", a.Segment)
				responses++
			}
		},
	},
}

// rdmapAnswer answers a Read Request of the target with bytes of zero.
func rdmapAnswer(t *conformance.T, s *conformance.Stream, request wire.Segment) {
	h, err := wire.ParseReadHeader(request.Payload)
	t.Check(err == nil, "an RDMA Read Request Header", "less than 28 octets")
	s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, make([]byte, h.Length)))
}

// rdmapCompleted is the cases on the order in which the target's requests complete.
var rdmapCompleted = []conformance.Case{
	{
		Clause: "rfc5040-5.5-6", Name: "sends-and-writes", Needs: conformance.NeedService,
		Title: "Sends and RDMA Writes complete in the order in which they were posted",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			var posts []service.Post
			for i := range 6 {
				op := service.OpSend
				if i%2 == 1 {
					op = service.OpWrite
				}
				posts = append(posts, service.Post{Op: op, Data: conformance.Pattern(100 * (6 - i)), Remote: rdmapRemote(0)})
			}
			rdmapInOrder(t, s, s.Posts(posts...))
		},
	},
	{
		Clause: "rfc5040-5.5-6", Name: "send-behind-a-read", Needs: conformance.NeedService,
		Title: "A Send behind a Read does not complete before the Read, even if it was sent before the Read's response has come",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
			ids := s.Posts(
				service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)},
				service.Post{Op: service.OpSend, Data: conformance.Pattern(8)},
			)
			request := s.AwaitMessage(wire.ReadRequest)
			held := false
			if a, err := s.Answer(t.Quiet()); err == nil {
				t.Check(a.Opcode == wire.Send, "the Send, or nothing before the Read is answered", "%s", a.Segment)
			} else {
				held = true
			}
			s.AwaitNoCompletion(service.SendQueue, "as the Read, the first request, is not answered")
			rdmapAnswer(t, s, request)
			rdmapInOrder(t, s, ids)
			if held {
				s.AwaitMessage(wire.Send)
			}
		},
	},
	{
		Clause: "rfc5040-5.5-9", Name: "read-fence", Needs: conformance.NeedService,
		Title: "A Send that is to wait for the Reads before it is sent when the Read is answered, and not before",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
			ids := s.Posts(
				service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)},
				service.Post{Op: service.OpSend, Data: conformance.Pattern(8), ReadFence: true},
			)
			request := s.AwaitMessage(wire.ReadRequest)
			s.AwaitQuiet("as the Send has to wait for the Read")
			rdmapAnswer(t, s, request)
			s.AwaitMessage(wire.Send)
			rdmapInOrder(t, s, ids)
		},
	},
	{
		Clause: "rfc5040-5.5-9", Name: "read-fence-of-a-write", Needs: conformance.NeedService,
		Title: "An RDMA Write that is to wait for two Reads before it is sent when both are answered, and not before",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
			read := service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)}
			ids := s.Posts(read, read, service.Post{Op: service.OpWrite, Data: conformance.Pattern(8), Remote: rdmapRemote(0), ReadFence: true})
			first, second := s.AwaitMessage(wire.ReadRequest), s.AwaitMessage(wire.ReadRequest)
			rdmapAnswer(t, s, first)
			s.AwaitQuiet("as the RDMA Write has to wait for the second Read")
			rdmapAnswer(t, s, second)
			s.AwaitMessage(wire.Write)
			rdmapInOrder(t, s, ids)
		},
	},
}

// rdmapInOrder makes sure that requests complete, with success and in their order.
func rdmapInOrder(t *conformance.T, s *conformance.Stream, ids []uint64) {
	for _, id := range ids {
		c := s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
		t.Check(c.ID == id, fmt.Sprintf("the completion of request %d", id), "that of request %d, %s", c.ID, c.Op)
	}
}
