package rdpflow

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// A fault is a rule that is broken in an otherwise good trace.
type fault struct {
	name string
	play func(p *player)
	want []string
}

// mend puts the right checksum into a segment.
func mend(b []byte) []byte {
	if b[0]&3 == 1 {
		sum := wire.Checksum1(b)
		b[14], b[15], b[16], b[17] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
		return b
	}
	sum := wire.Checksum2(b, nil)
	b[16], b[17] = byte(sum>>8), byte(sum)
	return b
}

// bent plays data of the client with its bytes changed.
func (p *player) bent(change func(b []byte) []byte) {
	h := wire.Header{Version: p.version, Flags: wire.ACK, Source: 70, Dest: 7, Seq: clientISS + 1 + p.shift, Ack: serverISS + 3*p.shift}
	p.raw(client, change(h.AppendTo(nil, []byte("abcd"), nil)))
}

// long is after what a segment may be under way.
const long = 3 * time.Second

var faults = []fault{
	{"17 bytes", func(p *player) {
		p.open()
		p.bent(func(b []byte) []byte { return b[:17] })
	}, []string{"rdp-header by client"}},
	{"version 3", func(p *player) {
		p.open()
		p.bent(func(b []byte) []byte { b[0] |= 3; return b })
	}, []string{"rdp-header by client"}},
	{"a header of 16 bytes", func(p *player) {
		p.open()
		p.bent(func(b []byte) []byte { b[1] = 8; return mend(b) })
	}, []string{"rdp-length by client"}},
	{"a byte too many", func(p *player) {
		p.open()
		p.bent(func(b []byte) []byte { return mend(append(b, 0)) })
	}, []string{"rdp-length by client"}},
	{"wrong checksum", func(p *player) {
		p.open()
		p.bent(func(b []byte) []byte { b[len(b)-1]++; return b })
	}, []string{"rdp-checksum by client"}},
	{"unused flag", func(p *player) {
		p.open()
		p.bent(func(b []byte) []byte { b[0] |= 4; return mend(b) })
	}, []string{"rdp-flags by client"}},
	{"data with RST", func(p *player) {
		p.open()
		p.segment(client, wire.Header{Flags: wire.RST, Seq: clientISS + 1}, "abcd")
	}, []string{"rdp-flags by client"}},
	{"data without ACK", func(p *player) {
		p.open()
		p.segment(server, wire.Header{Seq: serverISS + 1}, "abcd")
	}, []string{"rdp-flags by server"}},
	{"port 0", func(p *player) {
		p.open()
		p.segment(client, wire.Header{Flags: wire.ACK, Seq: clientISS + 1, Ack: serverISS}, "abcd", func(h *wire.Header) { h.Dest = 0 })
	}, []string{"rdp-port by client"}},
	{"nothing may be outstanding", func(p *player) { p.segment(client, syn(clientISS, 0), "") }, []string{"rdp-limits by client"}},
	{"no room for data", func(p *player) {
		p.segment(client, syn(clientISS, 8), "")
		p.segment(server, synAck(serverISS, clientISS, 8), "", func(h *wire.Header) { h.MaxSegment = 38 })
	}, []string{"rdp-limits by server"}},
	{"SYN with another limit", func(p *player) {
		p.segment(client, syn(clientISS, 8), "")
		p.segment(client, syn(clientISS, 8), "")
		p.segment(client, syn(clientISS, 9), "")
	}, []string{"rdp-syn-again by client"}},
	{"SYN,ACK with another size", func(p *player) {
		p.open()
		p.segment(server, synAck(serverISS, clientISS, 4), "", func(h *wire.Header) { h.MaxSegment-- })
	}, []string{"rdp-syn-again by server"}},
	{"SYN with another mode", func(p *player) {
		p.segment(client, syn(clientISS, 8), "")
		p.segment(client, syn(clientISS, 8), "", func(h *wire.Header) { h.Sequenced = false })
	}, []string{"rdp-syn-again by client"}},
	{"data with the number of the SYN", func(p *player) {
		p.open()
		p.data(client, clientISS, serverISS, "abcd")
	}, []string{"rdp-sequence by client", "rdp-again by client"}},
	{"data in front of the SYN", func(p *player) {
		p.open()
		p.data(client, clientISS-1, serverISS, "abcd")
	}, []string{"rdp-sequence by client"}},
	{"an ACK with a number of long ago", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.ack(server, serverISS+1, clientISS+1)
		p.wait(long)
		p.ack(client, clientISS+2, serverISS)
		p.wait(long)
		p.ack(client, clientISS+1, serverISS)
	}, []string{"rdp-sequence by client"}},
	{"other data again", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.data(client, clientISS+1, serverISS, "abce")
	}, []string{"rdp-again by client"}},
	{"a NUL in the place of data", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.nul(client, clientISS+1, serverISS)
	}, []string{"rdp-again by client"}},
	{"a large segment", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, strings.Repeat("x", 600-38))
		p.data(client, clientISS+2, serverISS, strings.Repeat("x", 600-37))
	}, []string{"rdp-size by client"}},
	{"beyond the window", func(p *player) {
		p.open()
		p.data(client, clientISS+9, serverISS, "abcd") // the server's window is of 8
		p.ack(server, serverISS+1, clientISS)
	}, []string{"rdp-window by client"}},
	{"NUL beyond the window", func(p *player) {
		p.open()
		p.nul(server, serverISS+17, clientISS)
		p.ack(client, clientISS+1, serverISS)
	}, []string{"rdp-window by server"}},
	{"too many outstanding", func(p *player) {
		p.open()
		for n := range uint32(6) {
			p.data(client, clientISS+1+n, serverISS, "abcd")
		}
		p.ack(server, serverISS+1, clientISS, clientISS+6)
	}, []string{"rdp-outstanding by client", "rdp-outstanding by client"}},
	{"too many outstanding behind EACKs", func(p *player) {
		p.open()
		for n := range uint32(4) {
			p.data(client, clientISS+1+n, serverISS, "abcd")
		}
		p.ack(server, serverISS+1, clientISS, clientISS+2)
		p.data(client, clientISS+5, serverISS, "abcd") // the EACK allows it
		p.data(client, clientISS+6, serverISS, "abcd")
		p.ack(server, serverISS+1, clientISS, clientISS+2)
	}, []string{"rdp-outstanding by client"}},
	{"ACK of what was not sent", func(p *player) {
		p.open()
		p.ack(server, serverISS+1, clientISS+1)
		p.ack(client, clientISS+1, serverISS)
	}, []string{"rdp-ack-unsent by server"}},
	{"data that acknowledges what was not sent", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS+2, "abcd")
		p.ack(server, serverISS+1, clientISS+1)
	}, []string{"rdp-ack-unsent by client"}},
	{"ACK of a number in front of the SYN", func(p *player) {
		p.open()
		p.ack(server, serverISS+1, clientISS-1)
	}, []string{"rdp-ack-unsent by server"}},
	{"ACK that falls", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.ack(server, serverISS+1, clientISS+1)
		p.data(server, serverISS+1, clientISS, "abcd")
	}, []string{"rdp-ack-back by server"}},
	{"ACK that falls behind ACKs out of order", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.data(server, serverISS+1, clientISS+1, "abcd")
		p.ack(server, serverISS+2, clientISS+1)
		p.ack(server, serverISS+1, clientISS+1)
		p.data(server, serverISS+1, clientISS, "abcd")
	}, []string{"rdp-ack-back by server"}},
	{"ACK that falls behind a late one", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.data(client, clientISS+2, serverISS, "abcd")
		p.data(server, serverISS+1, clientISS, "abcd")
		p.ack(server, serverISS+2, clientISS+2)
		p.ack(server, serverISS+1, clientISS+1)
		p.ack(server, serverISS+3, clientISS+1)
	}, []string{"rdp-ack-back by server"}},
	{"EACK in sequence", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.data(client, clientISS+2, serverISS, "abcd")
		p.ack(server, serverISS+1, clientISS+1, clientISS+2)
	}, []string{"rdp-eack by server"}},
	{"EACK of what is acknowledged", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.ack(server, serverISS+1, clientISS+1, clientISS+1)
	}, []string{"rdp-eack by server"}},
	{"EACK beyond the own window", func(p *player) {
		p.open()
		p.ack(server, serverISS+1, clientISS, clientISS+9)
	}, []string{"rdp-eack by server"}},
	{"EACK twice in a list", func(p *player) {
		p.open()
		p.data(client, clientISS+2, serverISS, "abcd")
		p.ack(server, serverISS+1, clientISS, clientISS+2, clientISS+2)
	}, []string{"rdp-eack by server"}},
	{"EACK of what was not sent", func(p *player) {
		p.open()
		p.data(client, clientISS+2, serverISS, "abcd")
		p.ack(server, serverISS+1, clientISS, clientISS+2, clientISS+3)
		p.ack(client, clientISS+3, serverISS)
	}, []string{"rdp-eack-unsent by server"}},
	{"data behind the RST", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		p.rst(client, clientISS+2)
		p.data(client, clientISS+2, serverISS, "abcd")
	}, []string{"rdp-after-rst by client"}},
	{"NUL behind the RST", func(p *player) {
		p.open()
		p.rst(server, serverISS+1)
		p.nul(server, serverISS+1, clientISS)
	}, []string{"rdp-after-rst by server"}},
	{"ACKs that answer each other", func(p *player) {
		p.open()
		p.data(client, clientISS+1, serverISS, "abcd")
		for range 10 {
			p.ack(server, serverISS+1, clientISS)
			p.ack(client, clientISS+2, serverISS)
		}
	}, []string{"rdp-loop by client"}},
	{"RSTs that answer each other", func(p *player) {
		p.open()
		for range 10 {
			p.rst(server, serverISS+1)
			p.rst(client, clientISS+1)
		}
	}, []string{"rdp-loop by client"}},
}

// Each fault is found, in both versions, over UDP and over IP, with numbers that wrap and others.
// Where it takes a later segment to prove it, a capture that lacks nothing needs none.
func TestFaultsAreFound(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			for _, version := range []uint8{1, 2} {
				for _, ip := range []bool{false, true} {
					for _, shift := range []uint32{0, 1<<32 - clientISS - 2, 1 << 31} {
						p := newPlayer(t)
						p.version, p.ip, p.shift = version, ip, shift
						fault.play(p)
						file := p.recording()
						analyze(t, file).want(t, fault.want...)
						analyzeWith(t, file, &Analyzer{Complete: true}).want(t, fault.want...)
					}
				}
			}
		})
	}
}

// needProof are the rules that depend on what the other side has sent.
var needProof = []string{"rdp-window", "rdp-outstanding", "rdp-ack-unsent", "rdp-eack-unsent"}

// Without what proves it, nobody is blamed: a note tells of it.
func TestDoubtsNeedAProof(t *testing.T) {
	for _, fault := range faults {
		id, _, _ := strings.Cut(fault.want[0], " ")
		if !slices.Contains(needProof, id) || strings.Contains(fault.name, "in front") {
			continue
		}
		p := newPlayer(t)
		fault.play(p)
		all := packetsOf(t, p.recording())
		f := analyze(t, fileOf(t, all[:len(all)-1])) // the last one is the proof
		f.want(t)
		if len(f.notes) != len(fault.want) || !strings.HasPrefix(f.notes[0], "perhaps a violation of RFC 908 §") {
			t.Errorf("%s, without the proof: notes %q", fault.name, f.notes)
		}
	}
}

// A doubt is settled once, 20 ms later and not before.
func TestDoubtsAreSettledInTime(t *testing.T) {
	for wait, want := range map[time.Duration]int{settleAfter - 2*time.Millisecond: 6, settleAfter - time.Millisecond: 5} {
		p := newPlayer(t)
		p.open()
		p.ack(server, serverISS+1, clientISS+1)
		p.wait(wait)
		p.ack(client, clientISS+1, serverISS)
		p.ack(client, clientISS+1, serverISS)
		p.ack(client, clientISS+1, serverISS)
		at := 0
		f := analyze(t, p.recording(), func(e *dissect.Event) error {
			if s, ok := e.Upper.(*Segment); ok && s.Kind() == KindACK {
				at = e.At.Packet
			} else if e.Kind == dissect.KindViolation && at != want {
				t.Errorf("%v: blamed with packet %d, want %d", wait, at, want)
			}
			return nil
		})
		f.want(t, "rdp-ack-unsent by server")
	}
}

// The page about dissect has a row for each rule, with its clause; and each rule has a fault by
// which it is shown to be found.
func TestRulesAreDocumentedAndPlanted(t *testing.T) {
	source, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dissect.md"))
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{}
	for _, f := range faults {
		for _, w := range f.want {
			id, _, _ := strings.Cut(w, " ")
			planted[id] = true
		}
	}
	var rules, rows []string
	for _, m := range regexp.MustCompile("ID: \"(.+?)\", Clause: \"(.+)\"}").FindAllSubmatch(source, -1) {
		rules = append(rules, string(m[1])+" "+string(m[2]))
		if !planted[string(m[1])] {
			t.Errorf("no fault breaks %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(rdp-.+?)` \\| (.+?) \\|").FindAllSubmatch(page, -1) {
		rows = append(rows, string(m[1])+" "+string(m[2]))
	}
	slices.Sort(rules)
	slices.Sort(rows)
	if !slices.Equal(rules, rows) || len(rules) < 10 {
		t.Errorf("rules\n%s\nrows\n%s", strings.Join(rules, "\n"), strings.Join(rows, "\n"))
	}
}

// Every way to be malformed has a rule.
func TestFormRules(t *testing.T) {
	for n := wire.TooShort; ; n++ {
		if n.Rule() == "" {
			break
		}
		if r := formRule(&wire.FormatError{Fault: n}); r == (dissect.Rule{}) && n != wire.TooManyEACKs {
			t.Errorf("%v has no rule", n)
		}
	}
	if fmt.Sprint(wire.TooShort) != "too short" {
		t.Error("the first fault is another one")
	}
}
