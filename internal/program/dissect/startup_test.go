package dissect

import (
	"strings"
	"testing"

	"urnic/mpa"
	"urnic/rdmap"
)

// plainFrame returns a frame of revision 1.
func plainFrame(reply bool, pd string) mpa.Frame {
	return mpa.Frame{Reply: reply, Revision: 1, PrivateData: []byte(pd)}
}

// enhancedFrame returns an enhanced frame.
func enhancedFrame(reply bool, e mpa.Enhanced) mpa.Frame {
	return mpa.Frame{Reply: reply, Revision: 2, Enhanced: true, PrivateData: enhanced(e, "")}
}

// p2p returns the enhanced block of the peer-to-peer model.
func p2p(rtr mpa.RTR) mpa.Enhanced {
	return mpa.Enhanced{PeerToPeer: true, RTR: rtr, IRD: 1, ORD: 1}
}

func TestRuleOfStartup(t *testing.T) {
	for _, tc := range []struct {
		name string
		play func(sc *script)
		want []string
	}{
		{"revision 1", func(sc *script) {
			sc.frame(plainFrame(false, "hello"))
			sc.frame(plainFrame(true, "world"))
			sc.send(Client, 1)
			sc.send(Server, 1)
		}, nil},
		{"unenhanced revision 2", func(sc *script) {
			sc.frame(mpa.Frame{Revision: 2})
			sc.frame(mpa.Frame{Reply: true, Revision: 2})
		}, nil},
		{"rejected, and the ULP goes on", func(sc *script) {
			sc.frame(plainFrame(false, ""))
			sc.frame(mpa.Frame{Reply: true, Revision: 1, Rejected: true})
			sc.raw(Client, []byte("something else"))
			sc.raw(Server, []byte("of the ULP"))
		}, nil},
		{"frames in many segments", func(sc *script) {
			for _, reply := range []bool{false, true} {
				f := plainFrame(reply, "private")
				b, _ := f.AppendBinary(nil)
				for i := range b {
					sc.raw(map[bool]Side{false: Client, true: Server}[reply], b[i:i+1])
				}
			}
			sc.send(Client, 3)
		}, nil},

		{"reserved flags", func(sc *script) {
			sc.frame(mpa.Frame{Revision: 1, Reserved: 0x10})
			sc.frame(mpa.Frame{Reply: true, Revision: 2, Reserved: 0x08})
		}, []string{"startup-reserved RFC 5044 §7.1.1 by client", "startup-reserved RFC 5044 §7.1.1 by server"}},
		{"revision 0 and 3", func(sc *script) {
			sc.frame(mpa.Frame{Revision: 0})
			sc.frame(mpa.Frame{Reply: true, Revision: 3})
		}, []string{"startup-revision RFC 5044 §7.1.1 by client", "startup-revision RFC 5044 §7.1.1 by server"}},
		{"R in a Request", func(sc *script) {
			sc.frame(mpa.Frame{Revision: 1, Rejected: true})
		}, []string{"request-rejected-flag RFC 5044 §7.1.1 by client"}},
		{"too much private data", func(sc *script) {
			f := plainFrame(false, "")
			b, _ := f.AppendBinary(nil)
			b[18], b[19] = 2, 1
			sc.raw(Client, append(b, make([]byte, 513)...))
		}, []string{"startup-frame RFC 5044 §7.1.1 by client"}},
		{"frame cut by the end of its stream", func(sc *script) {
			f := plainFrame(false, "private")
			b, _ := f.AppendBinary(nil)
			sc.raw(Client, b[:22])
		}, []string{"startup-frame RFC 5044 §7.1.1 by client"}},
		{"no Reply, but other bytes", func(sc *script) {
			sc.frame(plainFrame(false, ""))
			sc.raw(Server, []byte("HTTP/1.1 400 Bad Request"))
			sc.raw(Server, []byte("and more"))
		}, []string{"startup-frame RFC 5044 §7.1.1 by server"}},
		{"both sides are Initiators", func(sc *script) {
			sc.frame(plainFrame(false, ""))
			f := plainFrame(false, "")
			b, _ := f.AppendBinary(nil)
			sc.raw(Server, b)
		}, []string{"startup-role RFC 5044 §7.1.2 by server"}},
		{"Reply without a Request", func(sc *script) {
			sc.frame(plainFrame(true, ""))
		}, []string{"startup-role RFC 5044 §7.1.2 by server"}},
		{"FPDU before the Reply", func(sc *script) {
			sc.frame(plainFrame(false, ""))
			sc.send(Client, 5)
			sc.send(Client, 5)
			sc.frame(plainFrame(true, ""))
			sc.send(Server, 5)
		}, []string{"octets-before-reply RFC 5044 §7.1.2 by client"}},
		{"Responder sends first", func(sc *script) {
			sc.start(false, false)
			sc.send(Server, 5)
			sc.send(Server, 5)
			sc.send(Client, 5)
		}, []string{"responder-first RFC 5044 §7.1.2 by server"}},

		{"S without a block", func(sc *script) {
			sc.frame(mpa.Frame{Revision: 2, Enhanced: true, PrivateData: []byte("abc")})
		}, []string{"enhanced-block RFC 6581 §6 by client"}},
		{"enhanced Reply to a plain Request", func(sc *script) {
			sc.frame(mpa.Frame{Revision: 2})
			sc.frame(enhancedFrame(true, mpa.Enhanced{}))
		}, []string{"enhanced-echo RFC 6581 §10 by server"}},
		{"plain Reply to an enhanced Request", func(sc *script) {
			sc.frame(enhancedFrame(false, mpa.Enhanced{}))
			sc.frame(mpa.Frame{Reply: true, Revision: 2, Rejected: true})
		}, []string{"enhanced-echo RFC 6581 §10 by server"}},
		{"A is not echoed", func(sc *script) {
			sc.frame(enhancedFrame(false, p2p(mpa.RTRAll)))
			sc.frame(enhancedFrame(true, mpa.Enhanced{IRD: 1, ORD: 1}))
			sc.send(Client, 5) // needs to be no RTR
		}, []string{"peer-to-peer-echo RFC 6581 §9.2 by server"}},
		{"B, C, D without A", func(sc *script) {
			sc.frame(mpa.Frame{Revision: 2, Enhanced: true, PrivateData: []byte{0x40, 0, 0, 0}})
			sc.frame(mpa.Frame{Reply: true, Revision: 2, Enhanced: true, PrivateData: []byte{0, 0, 0x80, 0}})
		}, []string{"rtr-flags RFC 6581 §9.2 by client", "rtr-flags RFC 6581 §9.2 by server"}},
		{"Reply with A and none of B, C, D", func(sc *script) {
			sc.frame(enhancedFrame(false, p2p(mpa.RTRAll)))
			sc.frame(enhancedFrame(true, p2p(0)))
		}, []string{"rtr-flags RFC 6581 §9.2 by server"}},
		{"ORD above the Initiator's IRD", func(sc *script) {
			sc.startWith(false, false, mpa.Enhanced{IRD: 3, ORD: 7}, mpa.Enhanced{IRD: 2, ORD: 4})
		}, []string{"ird-ord RFC 6581 §9.1 by server"}},
		{"rejection that asks for more IRD", func(sc *script) {
			sc.frame(enhancedFrame(false, mpa.Enhanced{IRD: 3}))
			f := enhancedFrame(true, mpa.Enhanced{ORD: 9})
			f.Rejected = true
			sc.frame(f)
		}, nil},
		{"IRD and ORD left to the ULP", func(sc *script) {
			d := uint16(mpa.DepthNotNegotiated)
			sc.startWith(false, false, mpa.Enhanced{IRD: d, ORD: d}, mpa.Enhanced{IRD: d, ORD: d})
			for range 100 {
				sc.read(Client, 1, 1, 1)
			}
		}, nil},
		{"Reply settles what was left to the ULP", func(sc *script) {
			d := uint16(mpa.DepthNotNegotiated)
			sc.startWith(false, false, mpa.Enhanced{IRD: d, ORD: d}, mpa.Enhanced{IRD: 128, ORD: 128})
		}, []string{"ird-ord RFC 6581 §9.1 by server", "ird-ord RFC 6581 §9.1 by server"}},

		{"RTR is a Write", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRAll), p2p(mpa.RTRWrite))
			sc.message(Client, rdmap.OpWrite, nil)
			sc.send(Server, 5)
		}, nil},
		{"RTR is a Read", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRRead), p2p(mpa.RTRAll))
			sc.read(Client, 1, 1, 0)
			sc.respond(Server, 1, 1, 0)
		}, nil},
		{"RTR is a Send", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRSend), p2p(mpa.RTRSend))
			sc.send(Client, 0)
		}, nil},
		{"no RTR in the peer-to-peer model", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRAll), p2p(mpa.RTRAll))
			sc.send(Client, 5)
			sc.message(Client, rdmap.OpWrite, nil)
		}, []string{"rtr RFC 6581 §9.2 by client"}},
		{"RTR that the Responder does not take", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRAll), p2p(mpa.RTRWrite))
			sc.send(Client, 0)
		}, []string{"rtr RFC 6581 §9.2 by client"}},
		{"RTR with data", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRAll), p2p(mpa.RTRAll))
			sc.read(Client, 1, 1, 5)
		}, []string{"rtr RFC 6581 §9.2 by client"}},
		{"RTR of several segments", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRAll), p2p(mpa.RTRAll))
			sc.segment(Client, rdmap.OpWrite, false, nil)
			sc.segment(Client, rdmap.OpWrite, true, []byte("x"))
		}, []string{"rtr RFC 6581 §9.2 by client"}},
		{"no matching RTR", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRSend), p2p(mpa.RTRRead))
			sc.message(Client, rdmap.OpTerminate, []byte{0x20, 0x07, 0, 0})
		}, nil},
		{"no matching RTR, and no Terminate", func(sc *script) {
			sc.startWith(false, false, p2p(mpa.RTRSend), p2p(mpa.RTRRead))
			sc.send(Client, 0)
		}, []string{"rtr RFC 6581 §9.2 by client"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc := newScript(t)
			tc.play(sc)
			sc.close()
			o := sc.end()
			o.want(t, tc.want...)
			o.only(t)
		})
	}
}

func TestSummaryOfStartup(t *testing.T) {
	sc := newScript(t)
	req := mpa.Frame{Revision: 2, CRC: true, Enhanced: true, PrivateData: enhanced(mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRAll, IRD: 7, ORD: 8}, "four")}
	rep := mpa.Frame{Reply: true, Revision: 2, Markers: true, Enhanced: true, PrivateData: enhanced(mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRWrite, IRD: 5, ORD: 6}, "fifteen bytes..")}
	sc.frame(req)
	sc.frame(rep)
	sc.framers = [2]mpa.Framer{{CRC: true, Markers: true}, {CRC: true}}
	sc.message(Client, rdmap.OpWrite, nil)
	sc.message(Client, rdmap.OpWrite, make([]byte, 3000))
	sc.send(Server, 3000)
	sc.close()
	o := sc.end()
	o.want(t)
	want := Startup{
		Seen: [2]bool{true, true}, Revision: 2, CRC: true, Markers: [2]bool{false, true}, Enhanced: true,
		IRD: 5, ORD: 6, P2P: true, RTR: mpa.RTRWrite, Private: [2]int{4, 15},
	}
	c := o.only(t)
	if c.MPA != want {
		t.Errorf("got %+v, want %+v", c.MPA, want)
	}
	if c.Addr != [2]string{"192.0.2.1:40000", "192.0.2.2:7174"} || c.Payload != 6000 {
		t.Errorf("%v, %d bytes", c.Addr, c.Payload)
	}
}

// Without a Reply, the Request is all there is.
func TestSummaryOfARequestAlone(t *testing.T) {
	sc := newScript(t)
	sc.frame(enhancedFrame(false, mpa.Enhanced{IRD: 7, ORD: 8}))
	c := sc.end().only(t)
	if m := c.MPA; m.IRD != 7 || m.ORD != 8 || !m.Enhanced || m.Revision != 2 || m.Seen != [2]bool{true, false} {
		t.Errorf("%+v", m)
	}
}

// A Reply that is not enhanced settles none of what the Request asked for.
func TestSummaryOfAPlainReply(t *testing.T) {
	sc := newScript(t)
	sc.frame(enhancedFrame(false, p2p(mpa.RTRAll)))
	sc.frame(mpa.Frame{Reply: true, Revision: 2})
	sc.close()
	if m := sc.end().only(t).MPA; m != (Startup{Seen: [2]bool{true, true}, Revision: 2}) {
		t.Errorf("%+v", m)
	}
}

// MPA may start late, and who opened the TCP connection may be the Responder
// (RFC 5044 §7.1.3).
func TestMPAStartsBehindStreamingMode(t *testing.T) {
	for _, initiator := range []Side{Client, Server} {
		sc := newScript(t)
		sc.raw(initiator, []byte("login: MPA ID Req Frame, please. "))
		sc.raw(1-initiator, []byte("hello ack"))
		req, rep := plainFrame(false, "p"), plainFrame(true, "q")
		reqOctets, _ := req.AppendBinary([]byte("the last of the ULP"))
		repOctets, _ := rep.AppendBinary(nil)
		sc.raw(initiator, reqOctets[:25])
		sc.raw(initiator, reqOctets[25:])
		sc.raw(1-initiator, repOctets[:7])
		sc.raw(1-initiator, repOctets[7:])
		sc.send(initiator, 100)
		sc.send(1-initiator, 100)
		sc.close()
		o := sc.end()
		o.want(t)
		c := o.only(t)
		if c.Addr[Client] != []string{"192.0.2.1:40000", "192.0.2.2:7174"}[initiator] {
			t.Errorf("the client is %s", c.Addr[Client])
		}
		if c.Messages[rdmap.OpSend] != 2 || c.MPA.Private != [2]int{1, 1} {
			t.Errorf("%d Sends, %+v", c.Messages[rdmap.OpSend], c.MPA)
		}
	}
}

// What only looks like a Request is none, if no Reply follows.
func TestOctetsThatLookLikeARequest(t *testing.T) {
	f := plainFrame(false, "")
	key, _ := f.AppendBinary(nil)
	for name, play := range map[string]func(sc *script){
		"text": func(sc *script) {
			sc.raw(Client, []byte("GET /rfc5044.txt HTTP/1.1\r\n\r\n"))
			sc.raw(Server, []byte("... to \"MPA ID Req Frame\" or \"MPA ID Rep Frame\" ..."))
		},
		"a Request within other bytes": func(sc *script) {
			sc.raw(Client, append([]byte("PUT "), key...))
			sc.raw(Server, []byte("201 Created"))
			sc.raw(Client, []byte("GET"))
			sc.raw(Server, []byte("200 OK"))
		},
		"two Requests within other bytes": func(sc *script) {
			sc.raw(Client, append([]byte("PUT "), key...))
			sc.raw(Server, key)
			sc.raw(Client, key)
		},
		"a Reply that is none": func(sc *script) {
			sc.raw(Client, append([]byte("PUT "), key...))
			b := append([]byte(nil), replyKey...)
			sc.raw(Server, append(b, 0, 1, 0xFF, 0xFF))
		},
		"much before anything else": func(sc *script) {
			sc.raw(Client, make([]byte, streamingLimit+100))
			sc.raw(Server, make([]byte, streamingLimit+100))
			sc.raw(Client, key)
		},
	} {
		sc := newScript(t)
		play(sc)
		sc.close()
		if o := sc.end(); len(o.Connections) != 0 || len(o.events) != 0 || o.MidStream != 0 {
			t.Errorf("%s: %d connections, events %v", name, len(o.Connections), o.events)
		}
	}
}

func TestTooMuchBeforeTheReplyIsNotKept(t *testing.T) {
	sc := newScript(t)
	sc.frame(plainFrame(false, ""))
	for range 3 {
		sc.raw(Client, make([]byte, maxEarly/2))
	}
	sc.frame(plainFrame(true, ""))
	sc.close()
	o := sc.end()
	o.want(t, "octets-before-reply RFC 5044 §7.1.2 by client")
	if c := o.only(t); c.Undecoded != 3*maxEarly/2 || !strings.Contains(strings.Join(o.notes, "\n"), "too much") {
		t.Errorf("%d bytes not decoded; %q", c.Undecoded, o.notes)
	}
}

func TestOctetsThatNoReplyFollowsAreNoted(t *testing.T) {
	sc := newScript(t)
	sc.frame(plainFrame(false, ""))
	sc.send(Client, 10)
	sc.s.Reset(false)
	o := sc.end()
	o.want(t, "octets-before-reply RFC 5044 §7.1.2 by client")
	if c := o.only(t); c.Undecoded != 36 || len(o.notes) != 1 {
		t.Errorf("%d bytes not decoded; %q", c.Undecoded, o.notes)
	}
}
