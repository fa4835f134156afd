package rxflow

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/rx/rxkad"
	rdma "urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
)

// A rdmaPlayer plays the two sides of a connection over iWARP into a recording.
type rdmaPlayer struct {
	t       testing.TB
	file    bytes.Buffer
	w       *capture.Writer
	s       *capture.Stream
	msn     [2]uint32
	session *rxkad.Session
}

// private returns what a side says of itself, unless a test wants something else.
func private() rdma.Private {
	return rdma.Private{
		Features: rdma.FeatureOffer | rdma.FeaturePlace, Service: 73, Epoch: testEpoch, ConnID: testConn,
		Channels: 2, Credits: 8, Window: 3, Receive: 1024, Bulk: 1 << 20,
	}
}

// newRDMAPlayer makes a player that has played the start-up. change may change the private
// data of both sides.
func newRDMAPlayer(t testing.TB, change func(client, server *rdma.Private)) *rdmaPlayer {
	t.Helper()
	p := &rdmaPlayer{t: t}
	w, err := capture.NewWriter(&p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.w, p.s = w, w.Stream(clientAddr, serverAddr, true)
	a, b := private(), private()
	if change != nil {
		change(&a, &b)
	}
	p.frame(client, a.Append(nil), false)
	p.frame(server, b.Append(nil), false)
	p.write(client, 0, 0, 0) // so that the server may send
	return p
}

func (p *rdmaPlayer) raw(from dissect.Side, b []byte) {
	if from == client {
		p.s.Sent(b)
	} else {
		p.s.Received(b)
	}
}

func (p *rdmaPlayer) frame(from dissect.Side, private []byte, rejected bool) {
	p.t.Helper()
	b, err := (&mpa.Frame{Reply: from == server, Rejected: rejected, Revision: 1, PrivateData: private}).AppendBinary(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.raw(from, b)
}

// fpdu plays a DDP segment.
func (p *rdmaPlayer) fpdu(from dissect.Side, s *ddp.Segment) {
	p.t.Helper()
	b, err := s.AppendBinary(nil)
	if err == nil {
		b, err = (&mpa.Framer{}).AppendFPDU(nil, b)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.raw(from, b)
}

// post plays a Send.
func (p *rdmaPlayer) post(from dissect.Side, b []byte) {
	p.t.Helper()
	p.msn[from]++
	c := ddp.NewControl(false, true)
	p.fpdu(from, &ddp.Segment{Control: c, Payload: b, Untagged: ddp.UntaggedHeader{
		Control: c, RsvdULP: [5]byte{byte(rdmap.NewControl(rdmap.OpSend))}, MSN: p.msn[from],
	}})
}

// write plays an RDMA Write.
func (p *rdmaPlayer) write(from dissect.Side, key uint32, to uint64, n int) {
	c := ddp.NewControl(true, true)
	p.fpdu(from, &ddp.Segment{Control: c, Payload: make([]byte, n), Tagged: ddp.TaggedHeader{
		Control: c, RsvdULP: byte(rdmap.NewControl(rdmap.OpWrite)), STag: stag.STag(key), TO: to,
	}})
}

// send plays a message.
func (p *rdmaPlayer) send(from dissect.Side, m rdma.Message, body string) {
	p.t.Helper()
	data := []byte(body)
	if p.session != nil && m.Type == rdma.Data {
		data = append(make([]byte, p.session.Overhead()), data...)
		for len(data)%p.session.Multiple() != 0 || len(data) < p.session.Least() {
			data = append(data, 0)
		}
		sum, err := p.session.Seal(secure.Packet{Call: m.Call, Channel: m.Channel, Seq: m.Seq}, data, len(body))
		if err != nil {
			p.t.Fatal(err)
		}
		m.Checksum ^= sum
	}
	b := make([]byte, rdma.MaxFixed)
	p.post(from, append(b[:m.Put(b)], data...))
}

// data plays a part, which grants a credit.
func (p *rdmaPlayer) data(from dissect.Side, call, seq uint32, flags rdma.Flags, body string) {
	p.send(from, rdma.Message{Type: rdma.Data, Flags: flags, Credits: 1, Call: call, Seq: seq}, body)
}

// call plays a whole call.
func (p *rdmaPlayer) call(n uint32) {
	p.data(client, n, 1, rdma.FlagLast, "\x00\x00\x01\xfe")
	p.data(server, n, 1, rdma.FlagLast, "12345678")
}

// recording returns the capture.
func (p *rdmaPlayer) recording() []byte {
	p.t.Helper()
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.file.Bytes()
}

// login plays challenge and response.
func (p *rdmaPlayer) login(level rxkad.Level, change func(challenge *rxkad.Challenge, response []byte)) {
	p.t.Helper()
	ticket, err := testKeys(p.t).Forge(rxkad.Contents{Name: "alice", Realm: "rx.test"}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	cl, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: ticket, Level: level})
	if err != nil {
		p.t.Fatal(err)
	}
	id := secure.Conn{Epoch: testEpoch, ID: testConn, Index: rxkad.Index, Checksum: true}
	side, err := cl.NewConn(id)
	if err != nil {
		p.t.Fatal(err)
	}
	ch := rxkad.Challenge{Version: 2, Nonce: 77}
	response, err := side.Respond(ch.Append(nil), secure.Calls{1})
	if err != nil {
		p.t.Fatal(err)
	}
	if p.session, err = rxkad.NewSession(ticket.SessionKey, id, level); err != nil {
		p.t.Fatal(err)
	}
	if change != nil {
		change(&ch, response)
	}
	p.send(server, rdma.Message{Type: rdma.Challenge}, string(ch.Append(nil)))
	p.send(client, rdma.Message{Type: rdma.Response}, string(response))
}

func rxkadOnly(a, b *rdma.Private) { a.Security, b.Security = rxkad.Index, rxkad.Index }

// An rdmaFault is a rule that is broken in an otherwise good trace.
type rdmaFault struct {
	name   string
	change func(client, server *rdma.Private)
	play   func(p *rdmaPlayer)
	want   []string
}

var rdmaFaults = []rdmaFault{
	{"limits", func(a, _ *rdma.Private) { a.Credits = 1 }, func(*rdmaPlayer) {}, []string{"rx-rdma-private by client"}},
	{"reply for another connection", func(_, b *rdma.Private) { b.ConnID += 4 }, func(p *rdmaPlayer) { p.call(1) }, []string{"rx-rdma-private by server"}},
	{"reply of another service", func(_, b *rdma.Private) { b.Service = 52 }, func(p *rdmaPlayer) { p.call(1) }, []string{"rx-rdma-private by server"}},
	{"long message", nil, func(p *rdmaPlayer) { p.data(client, 1, 1, 0, strings.Repeat("x", 1024-rdma.HeaderLen+1)) }, []string{"rx-rdma-length by client"}},
	{"short message", nil, func(p *rdmaPlayer) { p.post(client, make([]byte, 15)) }, []string{"rx-rdma-format by client"}},
	{"no credit", nil, func(p *rdmaPlayer) {
		for range 8 {
			p.send(client, rdma.Message{Type: rdma.Ping}, "")
		}
		p.send(server, rdma.Message{Type: rdma.Credit, Credits: 1}, "")
		p.send(client, rdma.Message{Type: rdma.Ping}, "")
		p.send(client, rdma.Message{Type: rdma.Ping}, "")
	}, []string{"rx-rdma-credit by client"}},
	{"too many credits", nil, func(p *rdmaPlayer) {
		p.send(server, rdma.Message{Type: rdma.Credit, Credits: rdma.MaxCredits}, "")
	}, []string{"rx-rdma-credit by server"}},
	{"channel", nil, func(p *rdmaPlayer) {
		p.send(client, rdma.Message{Type: rdma.Data, Channel: 2, Call: 1, Seq: 1}, "abcd")
	}, []string{"rx-rdma-channel by client"}},
	{"call of a server", nil, func(p *rdmaPlayer) { p.data(server, 1, 1, 0, "abcd") }, []string{"rx-rdma-call by server"}},
	{"call 0", nil, func(p *rdmaPlayer) { p.data(client, 0, 1, 0, "abcd") }, []string{"rx-rdma-call by client"}},
	{"call on a channel that is in use", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.data(client, 2, 1, rdma.FlagLast, "abcd")
	}, []string{"rx-rdma-call by client"}},
	{"call after closing", nil, func(p *rdmaPlayer) {
		p.call(1)
		p.send(client, rdma.Message{Type: rdma.Closing}, "")
		p.call(2)
	}, []string{"rx-rdma-call by client"}},
	{"window for no call", nil, func(p *rdmaPlayer) {
		p.call(1)
		p.send(server, rdma.Message{Type: rdma.Window, Call: 2, Seq: 1}, "")
	}, []string{"rx-rdma-call by server"}},
	{"part left out", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, 0, "abcd")
		p.data(client, 1, 3, rdma.FlagLast, "abcd")
	}, []string{"rx-rdma-sequence by client"}},
	{"part after the last one", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.data(client, 1, 2, 0, "abcd")
	}, []string{"rx-rdma-sequence by client"}},
	{"part of an old call", nil, func(p *rdmaPlayer) {
		p.call(1)
		p.call(2)
		p.data(client, 1, 2, 0, "abcd")
	}, []string{"rx-rdma-sequence by client"}},
	{"beyond the window", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, 0, "abcd")
		p.send(server, rdma.Message{Type: rdma.Window, Call: 1, Seq: 1}, "")
		for seq := uint32(2); seq <= 5; seq++ {
			p.data(client, 1, seq, 0, "abcd")
		}
	}, []string{"rx-rdma-window by client"}},
	{"read what was not sent", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, 0, "abcd")
		p.send(server, rdma.Message{Type: rdma.Window, Call: 1, Seq: 2}, "")
	}, []string{"rx-rdma-window by server"}},
	{"offers that nobody wants", func(_, b *rdma.Private) { b.Features = rdma.FeatureOffer }, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 1, 100)
	}, []string{"rx-rdma-offer by client"}},
	{"offer of nothing", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 1, 0)
	}, []string{"rx-rdma-offer by client"}},
	{"offer for a later part", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 2, 100)
	}, []string{"rx-rdma-offer by client"}},
	{"two offers", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 1, 100)
		p.offer(1, 1, 100)
	}, []string{"rx-rdma-offer by client"}},
	{"placed without an offer", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.send(server, rdma.Message{Type: rdma.Placed, Call: 1, Seq: 1, Length: 10}, "")
	}, []string{"rx-rdma-placed by server"}},
	{"placed too much", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 1, 100)
		p.write(server, 0x100, 64, 100)
		p.send(server, rdma.Message{Type: rdma.Placed, Call: 1, Seq: 1, Length: 101}, "")
	}, []string{"rx-rdma-placed by server"}},
	{"placed without writing", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 1, 100)
		p.write(server, 0x100, 64, 99)
		p.send(server, rdma.Message{Type: rdma.Placed, Call: 1, Seq: 1, Length: 100}, "")
	}, []string{"rx-rdma-placed by server"}},
	{"written beyond an offer", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 1, 100)
		p.write(server, 0x100, 65, 100)
	}, []string{"rx-rdma-placed by server"}},
	{"written to an offer for the other side", nil, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
		p.offer(1, 1, 100)
		p.write(client, 0x100, 64, 100)
	}, []string{"rx-rdma-placed by client"}},
	{"challenge without security", nil, func(p *rdmaPlayer) {
		p.send(server, rdma.Message{Type: rdma.Challenge}, "abcd")
	}, []string{"rx-rdma-security by server"}},
	{"response without a challenge", rxkadOnly, func(p *rdmaPlayer) {
		p.send(client, rdma.Message{Type: rdma.Response}, "abcd")
	}, []string{"rx-rdma-security by client"}},
	{"call before the response", rxkadOnly, func(p *rdmaPlayer) {
		p.data(client, 1, 1, rdma.FlagLast, "abcd")
	}, []string{"rx-rdma-security by client"}},
	{"response to another challenge", rxkadOnly, func(p *rdmaPlayer) {
		p.login(rxkad.Crypt, func(c *rxkad.Challenge, _ []byte) { c.Nonce++ })
	}, []string{"rx-rdma-proof by client"}},
	{"response of another connection", rxkadOnly, func(p *rdmaPlayer) {
		p.login(rxkad.Crypt, func(_ *rxkad.Challenge, response []byte) { response[20] ^= 1 })
	}, []string{"rx-rdma-proof by client"}},
	{"checksum", rxkadOnly, func(p *rdmaPlayer) {
		p.login(rxkad.Clear, nil)
		p.send(client, rdma.Message{Type: rdma.Data, Call: 1, Seq: 1, Checksum: 1}, "abcd")
	}, []string{"rx-rdma-proof by client"}},
	{"message after the end", nil, func(p *rdmaPlayer) {
		p.call(1)
		p.send(server, rdma.Message{Type: rdma.Abort, Code: -5}, "")
		p.send(server, rdma.Message{Type: rdma.Ping}, "")
	}, []string{"rx-rdma-end by server"}},
}

// offer plays the client's offer for what the server writes.
func (p *rdmaPlayer) offer(call, seq, n uint32) {
	p.send(client, rdma.Message{Type: rdma.Offer, Call: call, Seq: seq, STag: 0x100, TO: 64, Length: n}, "")
}

// Each fault is found, in a trace in which nothing else is wrong, and nobody else is blamed.
func TestPlantedFaultsOverAnRNIC(t *testing.T) {
	for _, f := range rdmaFaults {
		t.Run(f.name, func(t *testing.T) {
			p := newRDMAPlayer(t, f.change)
			f.play(p)
			analyze(t, p.recording()).want(t, f.want...)
		})
	}
}

// bulk plays calls in which data is placed, and calls that are aborted.
func bulk(p *rdmaPlayer) {
	p.call(1)
	p.data(client, 2, 1, rdma.FlagLast, "abcd")
	p.data(server, 2, 1, 0, "beginning")
	p.send(client, rdma.Message{Type: rdma.Demand, Flags: rdma.FlagLarge, Call: 2}, "")
	p.offer(2, 2, 5000)
	p.write(server, 0x100, 64, 1400)
	p.write(server, 0x100, 1464, 600)
	p.send(server, rdma.Message{Type: rdma.Placed, Credits: 2, Call: 2, Seq: 2, Length: 2000}, "")
	p.offer(2, 3, 5000)
	p.data(server, 2, 3, rdma.FlagLast, "end") // it did not wait
	p.data(client, 3, 1, 0, "abcd")
	p.send(server, rdma.Message{Type: rdma.Abort, Call: 3, Code: -6}, "")
	p.send(client, rdma.Message{Type: rdma.Window, Call: 2, Seq: 3}, "") // late
	p.send(client, rdma.Message{Type: rdma.Abort, Call: 3, Code: -6}, "")
	p.call(4)
	p.send(server, rdma.Message{Type: rdma.Ping, Seq: 1}, "")
	p.send(client, rdma.Message{Type: rdma.Pong, Seq: 1, Credits: 4}, "")
	p.send(client, rdma.Message{Type: rdma.Closing}, "")
	p.s.Close(true)
}

func TestWhatIsShownOfAnRNIC(t *testing.T) {
	p := newRDMAPlayer(t, nil)
	bulk(p)
	var text, lines, ladder bytes.Buffer
	var s dissect.Summary
	f := analyze(t, p.recording(), dissect.Text(&text, dissect.Options{}), dissect.JSON(&lines, dissect.Options{}), dissect.Ladder(&ladder, dissect.Options{}))
	f.want(t)
	s.Add("bulk", f.Result)
	if err := errors.Join(s.WriteTable(&text), s.WriteJSON(&lines)); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[*bytes.Buffer][]string{
		&text: {
			"> RX private data epoch=90000001 connection=00001000 service=73 security=0 features=offer+place channels=2 credits=8 window=3 receive=1024 bulk=1048576\n",
			"> RX DATA 0/1 seq=1 LAST credits=1 len=4 pt.ListMax\n",
			"> RX OFFER 0/2 seq=2 len=5000 stag=0x00000100 to=0x40\n",
			"(part 2 of call 2 on channel 0)\n",
			"< RX PLACED 0/2 seq=2 len=2000 credits=2\n",
			"< RX call 0/1 service=73 pt.ListMax: request 4 bytes in 1 packet; reply 8 bytes in 1 packet; ",
			"< RX call 0/2 service=73 operation 1633837924: request 4 bytes in 1 packet; reply 2012 bytes in 3 packets; ",
			"> RX call 0/3 service=73 operation 1633837924: request 4 bytes in 1 packet; reply 0 bytes in 0 packets; aborted by the server: RX_USER_ABORT (-6)\n",
			"epoch 90000001, connection 00001000, service 73, security index 0; 4 calls, 3 of them complete\n",
			"server: 7 messages, 2028 bytes of data; by type: 1 ABORT, 4 DATA, 1 PING, 1 PLACED; aborted 1 times: RX_USER_ABORT (-6)\n",
		},
		&lines:  {`"event":"rx-private"`, `"event":"rx-rdma","connection":1,`, `"ulp":"Rx","ulp_summary":{"kind":"rdma","epoch":"0x90000001"`},
		&ladder: {"|-- RX OFFER 0/2 seq=2 len=5000 stag=0x00000100 to=0x40 --"},
	} {
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("no %q in\n%s", w, out)
			}
		}
	}
}

// With the keys, what is protected is opened over an RNIC as well.
func TestProtectedMessagesAreOpened(t *testing.T) {
	for _, level := range []rxkad.Level{rxkad.Clear, rxkad.Auth, rxkad.Crypt} {
		p := newRDMAPlayer(t, rxkadOnly)
		p.login(level, nil)
		p.call(1)
		file := p.recording()
		f := analyze(t, file)
		f.want(t)
		if len(f.calls) != 1 || f.calls[0].Operation != "pt.ListMax" || f.calls[0].Reply.Bytes != 8 {
			t.Errorf("%v: %+v", level, f.calls)
		}
		if s := f.Connections[0].Upper.(*Summary); !strings.HasPrefix(s.Caller, "alice@rx.test, level ") || s.Client.Opened+s.Server.Opened != 2 {
			t.Errorf("%v: %+v", level, s)
		}
		f = analyzeWith(t, file, &Analyzer{})
		f.want(t)
		if len(f.calls) != 1 || f.calls[0].HasOp {
			t.Errorf("%v without keys: %+v", level, f.calls)
		}
	}
}

func TestRefusalOverAnRNIC(t *testing.T) {
	p := &rdmaPlayer{t: t}
	w, err := capture.NewWriter(&p.file)
	if err != nil {
		t.Fatal(err)
	}
	a := private()
	p.w, p.s = w, w.Stream(clientAddr, serverAddr, true)
	p.frame(client, a.Append(nil), false)
	p.frame(server, rdma.AppendRefusal(nil, -2), true)
	var text bytes.Buffer
	analyze(t, p.recording(), dissect.Text(&text, dissect.Options{})).want(t)
	if !strings.Contains(text.String(), "< RX refused: RX_INVALID_OPERATION (-2)\n") {
		t.Error(text.String())
	}
}

// FuzzRNIC: whatever the two sides send each other, the analysis ends and can be shown. Each
// message of the input has a byte for its kind and two for its length in front.
func FuzzRNIC(f *testing.F) {
	script := func(play func(p *rdmaPlayer)) []byte {
		p := newRDMAPlayer(f, nil)
		play(p)
		var b []byte
		_ = analyzeWith(f, p.recording(), &Analyzer{}, func(e *dissect.Event) error {
			if m, ok := e.Upper.(*Message); ok {
				head := make([]byte, rdma.MaxFixed)
				raw := append(head[:m.Put(head)], m.Body...)
				b = append(append(b, byte(e.From), 0, byte(len(raw))), raw...)
			}
			return nil
		})
		return b
	}
	f.Add(script(bulk))
	for _, fault := range rdmaFaults {
		if fault.change == nil {
			f.Add(script(fault.play))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newRDMAPlayer(t, func(a, b *rdma.Private) { a.Credits, b.Credits = 100, 100 })
		for n := 0; len(b) > 3 && n < 200; n++ {
			size := min(int(b[1]&3)<<8|int(b[2]), len(b)-3)
			from := dissect.Side(b[0] & 1)
			switch {
			case b[0]&2 == 0:
				p.post(from, b[3:3+size])
			case size > 0:
				p.write(from, 0x100, uint64(b[3]), size)
			}
			b = b[3+size:]
		}
		o := dissect.Options{}
		r := analyze(t, p.recording(), dissect.Text(io.Discard, o), dissect.JSON(io.Discard, o), dissect.Ladder(io.Discard, o))
		calls := 0
		for _, c := range r.Connections {
			calls += c.Upper.(*Summary).Calls
		}
		if calls != len(r.calls) {
			t.Errorf("%d calls began, %d are told of", calls, len(r.calls))
		}
	})
}
