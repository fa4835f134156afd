package rds

import (
	"strings"
	"testing"

	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// What a peer does wrong ends its connection and is reported. What it sent before is delivered
// once, and a good peer does not notice.
func TestPeersThatBreakRules(t *testing.T) {
	for name, tt := range map[string]struct {
		only   string // the transport
		rule   machine.Rule
		breaks func(p *hostilePeer)
	}{
		"wrong checksum": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			b := segment(p.data(3), []byte("bad"))
			b[3] ^= 1
			p.write(b)
		}},
		"no RDS at all": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			p.write([]byte("GET /index.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n\r\n\r\n"))
		}},
		"longer than a message can be": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			p.says(p.data(wire.MaxMessage+1), nil)
		}},
		"the longest length": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			h := p.data(0)
			h.Len = 1<<32 - 1
			p.says(h, nil)
		}},
		"a map that is too short": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			p.says(wire.Header{Flags: wire.CongestionBitmap, Len: 100}, make([]byte, 100))
		}},
		"a map that asks for an acknowledgement": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			p.says(wire.Header{Flags: wire.CongestionBitmap | wire.AckRequired, Len: wire.MapLen}, make([]byte, 4096))
		}},
		"an acknowledgement with data": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) { p.says(wire.Header{Len: 3}, []byte("bad")) }},
		"no sequence number": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			h := p.data(3)
			h.Sequence = 0
			p.says(h, []byte("bad"))
		}},
		"extension headers without end": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			h := p.data(3)
			for i := range h.Extensions {
				h.Extensions[i] = byte(wire.ExtRDMADest)
			}
			p.says(h, []byte("bad"))
		}},
		"an extension header twice": {rule: machine.RuleFormat, breaks: func(p *hostilePeer) {
			h := p.data(3)
			h.Extensions = [wire.ExtensionLen]byte{5, 0, 1, 5, 0, 2}
			p.says(h, []byte("bad"))
		}},
		"a sequence number again": {rule: machine.RuleSequence, breaks: func(p *hostilePeer) {
			h := p.data(3)
			h.Sequence = 1
			p.says(h, []byte("bad"))
		}},
		"a message again, which says so": {rule: machine.RuleSequence, breaks: func(p *hostilePeer) {
			h := p.data(4)
			h.Sequence, h.Flags = 1, wire.Retransmitted
			p.says(h, []byte("good"))
		}},
		"acknowledges what was not sent": {rule: machine.RuleAck, breaks: func(p *hostilePeer) {
			p.hello(7)
			p.says(wire.Header{Ack: 1 << 63}, nil)
		}},
		"two generations": {rule: machine.RuleGeneration, breaks: func(p *hostilePeer) {
			p.probe(wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: 7})
			p.probe(wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: 8})
		}},
		"no paths": {rule: machine.RuleProbe, breaks: func(p *hostilePeer) { p.probe(wire.Extensions{Has: 1 << wire.ExtNPaths}) }},
		"another message between fragments": {only: "iwarp", rule: machine.RuleFragments, breaks: func(p *hostilePeer) {
			p.says(p.data(10_000), make([]byte, 4096))
			p.says(p.data(3), []byte("bad"))
		}},
		"a fragment that is too short": {only: "iwarp", rule: machine.RuleLength, breaks: func(p *hostilePeer) {
			p.says(p.data(10_000), make([]byte, 4095))
		}},
		"a last fragment that is too long": {only: "iwarp", rule: machine.RuleLength, breaks: func(p *hostilePeer) {
			h := p.data(5000)
			p.says(h, make([]byte, 4096))
			p.says(h, make([]byte, 4096))
		}},
		"more in a fragment than it can have": {only: "iwarp", rule: machine.RuleLength, breaks: func(p *hostilePeer) {
			p.says(p.data(10_000), make([]byte, 4097))
		}},
		"a Send without a header": {only: "iwarp", rule: machine.RuleFormat, breaks: func(p *hostilePeer) { p.write([]byte("short")) }},
		"more Sends than credits": {only: "iwarp", rule: machine.RuleCredit, breaks: func(p *hostilePeer) {
			// The node gives credit back in what it sends, for which this peer gives it none: 64
			// are soon used up.
			for range 100_000 {
				if p.conn.write(segment(p.data(0), nil)) != nil {
					return
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, nil, func(t *testing.T, s *scene) {
				if tt.only != "" && tt.only != s.over {
					return // the other transport has no such thing
				}
				p := s.dial()
				p.message("good")
				s.wantOnly("good")
				go func() {
					for {
						msg, err := s.socket.Receive(s.ctx)
						if err != nil {
							return
						}
						if len(msg.Data) > 0 { // what comes with credits is empty
							t.Errorf("%q is delivered", msg.Data)
						}
					}
				}()
				tt.breaks(p)
				v := s.events.violation(s.ctx, t, hostileAddr)
				if v.Rule != tt.rule {
					t.Errorf("the node says that %q is broken: %v; want %q", v.Rule, v, tt.rule)
				}
				if said := v.Error(); strings.Count(said, "rds:") != 1 || !strings.Contains(said, hostileAddr.String()) {
					t.Errorf("the violation says %q", said)
				}
				p.wantReset()
				s.echoes()
			})
		})
	}
}
