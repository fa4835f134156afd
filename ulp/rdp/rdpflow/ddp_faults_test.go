package rdpflow

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// A ddpFault is a rule that is broken in an otherwise good trace of DDP over RDP.
type ddpFault struct {
	name string
	play func(p *ddpPlayer)
	want []string
}

// Faults of start-up play the whole connection.
var ddpStartFaults = []ddpFault{
	{"a damaged accept", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		b := sealed(llpwire.Accept, 0, offer(2, 2, ""))
		b[9]++
		p.data(server, b)
		p.stop()
	}, []string{"crc by server"}},
	{"a request with a number", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 7, offer(2, 2, ""))
		p.message(server, llpwire.Accept, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"llp-message by client"}},
	{"an offer of 3 bytes", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, []byte{0, 2, 0})
	}, []string{"startup-frame by client"}},
	{"too much private data", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.message(server, llpwire.Reject, 0, offer(2, 2, strings.Repeat("x", llpwire.MaxPrivateData+1)))
		p.stop()
	}, []string{"startup-frame by server"}},
	{"a request in answer to a request", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.message(server, llpwire.Request, 0, offer(2, 2, ""))
	}, []string{"startup-role by server"}},
	{"an accept of the client", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Accept, 0, offer(2, 2, ""))
	}, []string{"startup-role by client"}},
	{"two requests", func(p *ddpPlayer) {
		p.start()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"startup-role by client"}},
	{"two answers", func(p *ddpPlayer) {
		p.start()
		p.message(server, llpwire.Reject, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"startup-role by server"}},
	{"a segment in front of the request", func(p *ddpPlayer) {
		p.connect()
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.message(server, llpwire.Accept, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"startup-order by client"}},
	{"a segment in front of the request that comes later", func(p *ddpPlayer) {
		p.connect()
		p.hold = true
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.release()
		p.message(server, llpwire.Accept, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"startup-order by client"}},
	{"a segment in front of the accept", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.message(server, llpwire.Accept, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"startup-order by server"}},
	{"a segment before the answer", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.wait(settleAfter)
		p.message(server, llpwire.Accept, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"startup-order by client"}},
	{"segments without any start-up", func(p *ddpPlayer) {
		p.connect()
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
	}, []string{"startup-order by server"}},
	{"a segment after a reject", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.message(server, llpwire.Reject, 0, offer(0, 0, "no"))
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
	}, []string{"startup-order by client"}},
	{"an accept with a higher IRD", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.message(server, llpwire.Accept, 0, offer(3, 2, ""))
		p.stop()
	}, []string{"ird-ord by server"}},
	{"an accept with a higher ORD", func(p *ddpPlayer) {
		p.connect()
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.message(server, llpwire.Accept, 0, offer(2, 3, ""))
		p.stop()
	}, []string{"ird-ord by server"}},
	{"no room", func(p *ddpPlayer) {
		p.connect(20 + 18 + 12 + 127)
		p.message(client, llpwire.Request, 0, offer(2, 2, ""))
		p.message(server, llpwire.Accept, 0, offer(2, 2, ""))
		p.stop()
	}, []string{"llp-room by server"}},
}

// Faults of what comes behind start-up; the ends follow. What one side sends may come in any order.
var ddpFaults = []ddpFault{
	{"a damaged segment", func(p *ddpPlayer) {
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		b := sealed(llpwire.Segment, p.count[client], untagged(true, rdmap.OpSend, 2, 0, "y"))
		b[len(b)-5]++
		p.data(client, b)
		p.count[client]++
		p.seg(client, untagged(true, rdmap.OpSend, 3, 0, "z"))
	}, []string{"crc by client"}},
	{"five bytes", func(p *ddpPlayer) { p.data(client, make([]byte, 5)) }, []string{"llp-message by client"}},
	{"kind 9", func(p *ddpPlayer) { p.message(server, 9, 0, nil) }, []string{"llp-message by server"}},
	{"bytes that are not zero", func(p *ddpPlayer) {
		b := sealed(llpwire.Segment, 0, nil)
		b[2] = 1
		p.data(client, llpwire.Seal(b[:llpwire.HeaderLen]))
	}, []string{"llp-message by client"}},
	{"a segment again", func(p *ddpPlayer) {
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.count[client]--
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
	}, []string{"segment-number by client"}},
	{"a segment left out", func(p *ddpPlayer) {
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.count[client]++
		p.seg(client, untagged(true, rdmap.OpSend, 2, 0, "x"))
	}, []string{"segment-number by client"}},
	{"a segment far ahead", func(p *ddpPlayer) {
		p.message(server, llpwire.Segment, maxAhead, untagged(true, rdmap.OpSend, 1, 0, "x"))
	}, []string{"segment-number by server"}},
	{"a segment without a header", func(p *ddpPlayer) { p.seg(client, []byte{0x41, 0x43, 0}) }, []string{"ddp-header by client"}},
	{"version of DDP", func(p *ddpPlayer) {
		s := untagged(true, rdmap.OpSend, 1, 0, "x")
		s[0]++
		p.seg(client, s)
	}, []string{"ddp-version by client"}},
	{"reserved bits of DDP", func(p *ddpPlayer) {
		s := tagged(true, rdmap.OpWrite, 5, 0, "x")
		s[0] |= 4
		p.seg(server, s)
	}, []string{"ddp-reserved by server"}},
	{"version of RDMAP", func(p *ddpPlayer) {
		s := untagged(true, rdmap.OpSend, 1, 0, "x")
		s[1] |= 0xc0
		p.seg(client, s)
	}, []string{"rdmap-version by client"}},
	{"an opcode that is reserved", func(p *ddpPlayer) {
		s := untagged(true, rdmap.OpSend, 1, 0, "x")
		s[1] = 0x4f
		p.seg(client, s)
	}, []string{"opcode by client"}},
	{"a tagged Send", func(p *ddpPlayer) { p.seg(client, tagged(true, rdmap.OpSend, 1, 0, "x")) }, []string{"tagged-flag by client"}},
	{"a Send on queue 1", func(p *ddpPlayer) {
		s := untagged(true, rdmap.OpSend, 1, 0, "x")
		s[9] = 1
		p.seg(client, s)
	}, []string{"queue-number by client"}},
	{"an MSN left out", func(p *ddpPlayer) {
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.seg(client, untagged(true, rdmap.OpSend, 3, 0, "x"))
	}, []string{"msn by client"}},
	{"an MO with a gap", func(p *ddpPlayer) {
		p.seg(client, untagged(false, rdmap.OpSend, 1, 0, "four"))
		p.seg(client, untagged(true, rdmap.OpSend, 1, 5, "more"))
	}, []string{"mo by client"}},
	{"a TO with a gap", func(p *ddpPlayer) {
		p.seg(client, tagged(false, rdmap.OpWrite, 1, 100, "four"))
		p.seg(client, tagged(true, rdmap.OpWrite, 1, 103, "more"))
	}, []string{"to by client"}},
	{"no last segment", func(p *ddpPlayer) {
		p.seg(client, untagged(false, rdmap.OpSend, 1, 0, "four"))
		p.seg(client, untagged(true, rdmap.OpSend, 2, 0, "more"))
	}, []string{"last-flag by client"}},
	{"a Read Request without a last segment", func(p *ddpPlayer) {
		s := readRequest(1, 5, 10)
		s[0] &^= lastFlag
		p.seg(client, s)
	}, []string{"last-flag by client"}},
	{"too many Reads", func(p *ddpPlayer) {
		for i := range uint32(3) {
			p.seg(client, readRequest(1+i, 5+i, 10))
		}
	}, []string{"outstanding-reads by client"}},
	{"a Read Response that nobody asked for", func(p *ddpPlayer) {
		p.seg(server, tagged(true, rdmap.OpReadResponse, 5, 0, "x"))
	}, []string{"read-response by server"}},
	{"something behind a Terminate", func(p *ddpPlayer) {
		p.seg(server, untagged(true, rdmap.OpTerminate, 1, 0, "\x11\x00\x00\x00"))
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
	}, []string{"after-terminate by server"}},
}

// Faults of the end play all behind start-up.
var ddpEndFaults = []ddpFault{
	{"too many Reads, which are answered at once", func(p *ddpPlayer) { tooManyReads(p, client) }, []string{"outstanding-reads by client"}},
	{"the same of the server", func(p *ddpPlayer) { tooManyReads(p, server) }, []string{"outstanding-reads by server"}},
	{"a Terminate that shows another header", func(p *ddpPlayer) {
		p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.seg(server, untagged(true, rdmap.OpTerminate, 1, 0, "\x11\x00\xc0\x00"+"\x00\x12"+string(untagged(true, rdmap.OpSend, 77, 0, ""))))
		p.stop()
	}, []string{"terminate-header by server"}},
	{"an end with a body", func(p *ddpPlayer) { p.message(client, llpwire.End, 0, []byte{1}) }, []string{"llp-message by client"}},
	{"two ends", func(p *ddpPlayer) {
		p.message(client, llpwire.End, 0, nil)
		p.message(client, llpwire.End, 0, nil)
	}, []string{"llp-end by client"}},
	{"an end of too many", func(p *ddpPlayer) {
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.message(server, llpwire.End, 2, nil)
	}, []string{"llp-end by server"}},
	{"an end of too few", func(p *ddpPlayer) {
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.message(server, llpwire.End, 0, nil)
	}, []string{"llp-end by server"}},
	{"a segment behind the end that comes before", func(p *ddpPlayer) {
		p.hold = true
		p.message(server, llpwire.End, 1, nil)
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.release()
	}, []string{"llp-end by server"}},
	{"a segment behind the end, and one that comes late", func(p *ddpPlayer) {
		p.hold = true
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
		p.seg(server, untagged(true, rdmap.OpSend, 2, 0, "x"))
		p.message(server, llpwire.End, 2, nil)
		p.held[1].number, p.held[2].number = p.held[2].number, p.held[1].number
		p.release()
	}, []string{"llp-end by server"}},
	{"a segment behind the end", func(p *ddpPlayer) {
		p.message(server, llpwire.End, 0, nil)
		p.seg(server, untagged(true, rdmap.OpSend, 1, 0, "x"))
	}, []string{"llp-end by server"}},
}

// tooManyReads has one more Read of a side outstanding than was negotiated, for a short time.
func tooManyReads(p *ddpPlayer, from dissect.Side) {
	for i := range uint32(3) {
		p.seg(from, readRequest(1+i, 5+i, 1))
	}
	for i := range uint32(3) {
		p.seg(1-from, tagged(true, rdmap.OpReadResponse, 5+i, 0, "x"))
	}
	p.stop()
}

// findsDDPFault analyses what play plays, in both versions, over UDP and over IP.
func findsDDPFault(t *testing.T, fault ddpFault, play func(p *ddpPlayer)) {
	t.Helper()
	for _, version := range []uint8{1, 2} {
		for _, ip := range []bool{false, true} {
			for _, complete := range []bool{false, true} {
				p := newDDPPlayer(t)
				p.version, p.ip = version, ip
				play(p)
				f := analyzeWith(t, p.recording(), &Analyzer{Complete: complete})
				f.want(t, fault.want...)
				if len(f.Connections) != 1 || f.Connections[0].Transport != dissect.RDP {
					t.Errorf("%d connections", len(f.Connections))
				}
			}
		}
	}
}

func TestFaultsOfDDPAreFound(t *testing.T) {
	for _, fault := range ddpStartFaults {
		t.Run(fault.name, func(t *testing.T) { findsDDPFault(t, fault, fault.play) })
	}
	for _, fault := range ddpFaults {
		t.Run(fault.name, func(t *testing.T) {
			findsDDPFault(t, fault, func(p *ddpPlayer) {
				p.start()
				fault.play(p)
				p.stop()
			})
		})
		t.Run(fault.name+", backwards", func(t *testing.T) {
			findsDDPFault(t, fault, func(p *ddpPlayer) {
				p.start()
				p.hold = true
				fault.play(p)
				p.release()
				p.stop()
			})
		})
	}
	for _, fault := range ddpEndFaults {
		t.Run(fault.name, func(t *testing.T) {
			findsDDPFault(t, fault, func(p *ddpPlayer) {
				p.start()
				fault.play(p)
			})
		})
	}
}

// The page lists each rule with its clause, and each rule has a fault that breaks it.
func TestEachRuleOfDDPIsListedAndBroken(t *testing.T) {
	source, err := os.ReadFile("ddp_rules.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dissect.md"))
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{}
	for _, f := range slices.Concat(ddpStartFaults, ddpFaults, ddpEndFaults) {
		for _, w := range f.want {
			id, _, _ := strings.Cut(w, " ")
			planted[id] = true
		}
	}
	rules := regexp.MustCompile("ID: \"(.+?)\", Clause: `(.+)`}").FindAllStringSubmatch(string(source), -1)
	for _, m := range rules {
		if !planted[m[1]] {
			t.Errorf("no fault breaks %s", m[1])
		}
		if row := "| `" + m[1] + "` | " + m[2] + " | "; !strings.Contains(string(page), row) {
			t.Errorf("the page has no row that begins with %s", row)
		}
	}
	if rows := strings.Count(string(page), "| DDP over RDP \""); rows != len(rules) || rows < 9 {
		t.Errorf("%d rows for %d rules", rows, len(rules))
	}
}
