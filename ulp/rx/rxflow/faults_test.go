package rxflow

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

var (
	clientAddr = netip.MustParseAddrPort("192.0.2.1:7001")
	serverAddr = netip.MustParseAddrPort("192.0.2.2:7002")
)

const (
	testEpoch = 0x90000001
	testConn  = 0x1000
)

// A player plays the two sides of a connection into a recording.
type player struct {
	t       testing.TB
	file    bytes.Buffer
	w       *capture.Writer
	serial  [2]uint32
	lose    bool // the capture lacks what comes
	session *rxkad.Session
}

func newPlayer(t testing.TB) *player {
	t.Helper()
	p := &player{t: t}
	w, err := capture.NewWriter(&p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.w = w
	return p
}

// recording returns the capture.
func (p *player) recording() []byte {
	p.t.Helper()
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.file.Bytes()
}

// raw plays a datagram.
func (p *player) raw(from dissect.Side, pieces ...[]byte) {
	if p.lose {
		return
	}
	a, b := clientAddr, serverAddr
	if from == server {
		a, b = b, a
	}
	p.w.Datagram(a, b, pieces...)
}

// header returns the header of the next packet.
func (p *player) header(from dissect.Side, t wire.Type, call uint32) wire.Header {
	p.serial[from]++
	h := wire.Header{Epoch: testEpoch, CID: testConn, Call: call, Serial: p.serial[from], Type: t, Service: 73}
	if from == client {
		h.Flags = wire.FlagClient
	}
	if p.session != nil {
		h.Security = rxkad.Index
	}
	return h
}

// packet plays a packet.
func (p *player) packet(from dissect.Side, t wire.Type, call uint32, body []byte, change ...func(*wire.Header)) {
	h := p.header(from, t, call)
	for _, c := range change {
		c(&h)
	}
	if p.session != nil && t == wire.TypeData && body != nil {
		sealed := append(make([]byte, p.session.Overhead()), body...)
		for len(sealed)%p.session.Multiple() != 0 || len(sealed) < p.session.Least() {
			sealed = append(sealed, 0)
		}
		sum, err := p.session.Seal(secure.Packet{Call: h.Call, Channel: h.Channel(), Seq: h.Seq}, sealed, len(body))
		if err != nil {
			p.t.Fatal(err)
		}
		h.Checksum, body = h.Checksum^sum, sealed
	}
	p.raw(from, h.Append(nil), body)
}

// data plays a data packet.
func (p *player) data(from dissect.Side, call, seq uint32, body string, change ...func(*wire.Header)) {
	p.packet(from, wire.TypeData, call, []byte(body), append([]func(*wire.Header){func(h *wire.Header) { h.Seq = seq }}, change...)...)
}

// ack plays an acknowledgement.
func (p *player) ack(from dissect.Side, call, first uint32, acks string, change ...func(*wire.Header, *wire.Ack)) {
	h := p.header(from, wire.TypeAck, call)
	h.Flags |= wire.FlagSlowStart
	a := wire.Ack{
		First: first, Reason: wire.ReasonIdle, Count: uint8(len(acks)),
		Trailer: wire.Trailer{Words: 4, MaxMTU: 1444, IfMTU: 1444, Window: 16, MaxPackets: 1},
	}
	for i := range acks {
		e := byte(0)
		if acks[i] == '+' {
			e = 1
		}
		a.Acks = append(a.Acks, e)
	}
	for _, c := range change {
		c(&h, &a)
	}
	p.raw(from, h.Append(nil), a.Append(nil))
}

// call plays a whole call of one packet each way.
func (p *player) call(n uint32) {
	p.data(client, n, 1, "\x00\x00\x01\xfe", last)
	p.data(server, n, 1, "12345678", last)
	p.ack(client, n, 2, "")
}

// abort plays an abort.
func (p *player) abort(from dissect.Side, call uint32, change ...func(*wire.Header)) {
	p.packet(from, wire.TypeAbort, call, wire.AppendAbort(nil, -5), change...)
}

func flags(f wire.Flags) func(*wire.Header) { return func(h *wire.Header) { h.Flags |= f } }
func last(h *wire.Header)                   { h.Flags |= wire.FlagLast }
func serial(n uint32) func(*wire.Header)    { return func(h *wire.Header) { h.Serial = n } }
func why(r wire.Reason) func(*wire.Header, *wire.Ack) {
	return func(_ *wire.Header, a *wire.Ack) { a.Reason = r }
}

func naming(n uint32) func(*wire.Header, *wire.Ack) {
	return func(_ *wire.Header, a *wire.Ack) { a.Serial = n }
}

// query plays a debug or version packet.
func (p *player) query(from dissect.Side, t wire.Type, asks bool, body []byte) {
	h := wire.Header{Epoch: 999, Call: 1, Type: t}
	if asks {
		h.Flags = wire.FlagClient
	}
	p.raw(from, h.Append(nil), body)
}

// login plays a challenge and the response to it.
func (p *player) login(level rxkad.Level, change func(challenge *rxkad.Challenge, response []byte)) {
	p.t.Helper()
	keys := testKeys(p.t)
	ticket, err := keys.Forge(rxkad.Contents{Name: "alice", Realm: "rx.test"}, nil)
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
	p.data(client, 1, 1, "\x00\x00\x01\xfe", last) // waits for the response
	p.packet(server, wire.TypeChallenge, 0, ch.Append(nil))
	p.packet(client, wire.TypeResponse, 0, response)
}

// A fault is a rule that is broken in an otherwise good trace.
type fault struct {
	name string
	play func(p *player)
	want []string
}

var faults = []fault{
	{"short datagram", func(p *player) {
		p.call(1)
		p.raw(client, make([]byte, 27))
	}, []string{"rx-header by client"}},
	{"type", func(p *player) { p.packet(client, 14, 1, nil) }, []string{"rx-type by client"}},
	{"flags", func(p *player) { p.data(client, 1, 1, "abcd", flags(0x40)) }, []string{"rx-flags by client"}},
	{"data without a call", func(p *player) { p.data(client, 0, 1, "abcd") }, []string{"rx-context by client"}},
	{"challenge with a call", func(p *player) {
		p.call(1)
		p.packet(server, wire.TypeChallenge, 2, []byte("abcd"))
	}, []string{"rx-context by server"}},
	{"busy of a client", func(p *player) {
		p.call(1)
		p.packet(client, wire.TypeBusy, 1, nil)
	}, []string{"rx-direction by client"}},
	{"response of a server", func(p *player) {
		p.call(1)
		p.packet(server, wire.TypeResponse, 0, []byte("abcd"))
	}, []string{"rx-direction by server"}},
	{"busy with a payload", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.packet(server, wire.TypeBusy, 1, []byte("x"))
	}, []string{"rx-payload by server"}},
	{"abort without a code", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.packet(server, wire.TypeAbort, 1, []byte("abc"))
	}, []string{"rx-payload by server"}},
	{"call number that falls", func(p *player) {
		p.call(5)
		p.data(client, 6, 1, "abcd", last)
		p.data(client, 5, 2, "abcd", last)
	}, []string{"rx-call-number by client"}},
	{"sequence number 0", func(p *player) { p.data(client, 1, 0, "abcd") }, []string{"rx-sequence by client"}},
	{"sequence number left out", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.data(client, 1, 3, "abcd")
	}, []string{"rx-sequence by client"}},
	{"serial number 0", func(p *player) { p.data(client, 1, 1, "abcd", serial(0)) }, []string{"rx-serial by client"}},
	{"serial number twice", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.data(client, 1, 2, "efgh", serial(1))
	}, []string{"rx-serial by client"}},
	{"data behind the last packet", func(p *player) {
		p.data(client, 1, 1, "abcd", last)
		p.data(client, 1, 2, "abcd")
	}, []string{"rx-last by client"}},
	{"last packet again without the flag", func(p *player) {
		p.data(client, 1, 1, "abcd", last)
		p.data(client, 1, 1, "abcd")
	}, []string{"rx-last by client"}},
	{"packet again with the flag", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.data(client, 1, 1, "abcd", last)
	}, []string{"rx-last by client"}},
	{"two last packets", func(p *player) {
		p.data(client, 1, 1, "abcd", last)
		p.data(client, 1, 2, "abcd", last)
	}, []string{"rx-last by client"}},
	{"last packet in front of others", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.data(client, 1, 2, "efgh")
		p.data(client, 1, 3, "efgh")
		p.data(client, 1, 2, "efgh", last)
	}, []string{"rx-last by client"}},
	{"another service", func(p *player) {
		p.call(1)
		p.data(client, 2, 1, "abcd", func(h *wire.Header) { h.Service = 52 })
	}, []string{"rx-service by client"}},
	{"another security index", func(p *player) {
		p.call(1)
		p.data(client, 2, 1, "abcd", func(h *wire.Header) { h.Security = 1 })
	}, []string{"rx-security by client"}},
	{"aborts that answer each other", func(p *player) {
		p.data(client, 1, 1, "abcd")
		for range 5 {
			p.abort(server, 1, serial(0))
			p.abort(client, 1, serial(0))
		}
	}, []string{"rx-loop by client"}},
	{"data behind an abort", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.abort(client, 1)
		p.data(client, 1, 2, "abcd")
	}, []string{"rx-after-abort by client"}},
	{"data behind the connection's abort", func(p *player) {
		p.call(1)
		p.abort(client, 0)
		p.data(client, 2, 1, "abcd")
	}, []string{"rx-after-abort by client"}},
	{"other data again", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.data(client, 1, 1, "abce", flags(wire.FlagRequestAck))
	}, []string{"rx-again by client"}},
	{"beyond the window", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "+")
		for seq := uint32(2); seq <= 17; seq++ {
			p.data(client, 1, seq, "abcd")
		}
		p.ack(server, 1, 1, "+")
	}, []string{"rx-window by client"}},
	{"a large packet", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "+")
		p.data(client, 1, 2, strings.Repeat("x", 1417))
		p.ack(server, 1, 1, "++")
	}, []string{"rx-size by client"}},
	{"jumbogram that is cut short", func(p *player) {
		h := p.header(client, wire.TypeData, 1)
		h.Seq, h.Flags = 1, h.Flags|wire.FlagJumbo
		b := wire.AppendJumboHeader(make([]byte, wire.JumboBody), wire.FlagClient|wire.FlagJumbo, 0)
		p.raw(client, h.Append(nil), append(b, make([]byte, 100)...))
	}, []string{"rx-jumbo by client"}},
	{"jumbogram of one packet", func(p *player) {
		p.data(client, 1, 1, "abcd", flags(wire.FlagJumbo))
	}, []string{"rx-jumbo by client"}},
	{"jumbogram with a large last packet", func(p *player) {
		p.jumbo(2, wire.JumboBody+1)
	}, []string{"rx-jumbo by client"}},
	{"jumbogram that nobody wants", func(p *player) {
		p.call(1)
		p.data(client, 2, 1, "abcd", last)
		p.ack(server, 2, 1, "+")
		p.jumbo(2, 10)
		p.ack(server, 1, 1, "++")
	}, []string{"rx-jumbo-count by client"}},
	{"short acknowledgement", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.packet(server, wire.TypeAck, 1, make([]byte, 17))
	}, []string{"rx-ack-format by server"}},
	{"acknowledgement with a lying count", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "+", func(_ *wire.Header, a *wire.Ack) { a.Count, a.Trailer = 200, wire.Trailer{} })
	}, []string{"rx-ack-format by server"}},
	{"acknowledgement of packet 0", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 0, "+")
	}, []string{"rx-ack-format by server"}},
	{"reason", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "+", why(10))
	}, []string{"rx-ack-reason by server"}},
	{"acknowledgement of an acknowledgement wanted", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "+", func(h *wire.Header, _ *wire.Ack) { h.Flags |= wire.FlagRequestAck })
	}, []string{"rx-ack-request by server"}},
	{"acknowledgement of what was not sent", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "++")
		p.ack(client, 1, 1, "")
	}, []string{"rx-ack-unsent by server"}},
	{"hard acknowledgement of what was not sent", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 3, "")
		p.data(client, 1, 2, "abcd", last)
		p.ack(server, 1, 3, "")
	}, nil}, // the next packet is the one
	{"acknowledgement taken back", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.data(client, 1, 2, "abcd")
		p.ack(server, 1, 3, "")
		p.ack(server, 1, 1, "+-")
	}, []string{"rx-ack-back by server"}},
	{"acknowledgement that names what was not sent", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "+", naming(7))
		p.data(client, 1, 2, "abcd")
	}, []string{"rx-ack-serial by server"}},
	{"ping response without a ping", func(p *player) {
		p.data(client, 1, 1, "abcd")
		p.ack(server, 1, 1, "+", naming(1), why(wire.ReasonPingResponse))
	}, []string{"rx-ack-serial by server"}},
	{"version of a wrong length", func(p *player) {
		p.query(client, wire.TypeVersion, true, nil)
		p.query(server, wire.TypeVersion, false, []byte("urnic"))
	}, []string{"rx-version by server"}},
	{"short debug request", func(p *player) {
		p.call(1)
		p.query(client, wire.TypeDebug, true, make([]byte, 7))
	}, []string{"rx-debug by client"}},
	{"short debug reply", func(p *player) {
		p.query(client, wire.TypeDebug, true, wire.DebugRequest{Type: wire.DebugGetStats}.Append(nil))
		p.query(server, wire.TypeDebug, false, make([]byte, wire.DebugBasicLen))
	}, []string{"rx-debug by server"}},
	{"replies that answer each other", func(p *player) {
		p.query(client, wire.TypeVersion, true, nil)
		for range 2 {
			p.query(server, wire.TypeVersion, false, wire.AppendVersion(nil, "x"))
			p.query(client, wire.TypeVersion, false, wire.AppendVersion(nil, "y"))
		}
	}, []string{"rx-unasked by server"}},
	{"checksum of a protected packet", func(p *player) {
		p.login(rxkad.Clear, nil)
		p.data(server, 1, 1, "abcd", last, func(h *wire.Header) { h.Checksum = 1 })
	}, []string{"rx-protection by server"}},
	{"protected packet that came before the response", func(p *player) {
		h := p.header(client, wire.TypeData, 2)
		h.CID, h.Seq, h.Security, h.Checksum = testConn+1, 1, rxkad.Index, 99
		p.raw(client, h.Append(nil), []byte("abcd"))
		p.login(rxkad.Clear, nil)
	}, []string{"rx-protection by client"}},
	{"response of another connection", func(p *player) {
		p.login(rxkad.Crypt, func(_ *rxkad.Challenge, response []byte) { response[20] ^= 1 })
	}, []string{"rx-credentials by client"}},
	{"response to another challenge", func(p *player) {
		p.login(rxkad.Crypt, func(c *rxkad.Challenge, _ []byte) { c.Nonce++ })
		p.data(server, 1, 1, "abcd", last)
	}, []string{"rx-credentials by client"}},
	{"response with too low a level", func(p *player) {
		p.login(rxkad.Clear, func(c *rxkad.Challenge, _ []byte) { c.Level = rxkad.Auth })
	}, []string{"rx-credentials by client"}},
	{"short challenge", func(p *player) {
		p.login(rxkad.Clear, nil)
		p.packet(server, wire.TypeChallenge, 0, make([]byte, 7))
	}, []string{"rx-credentials by server"}},
}

// jumbo plays a jumbogram of the client with packets from sequence number 1 of call 1 on.
func (p *player) jumbo(n, size int) {
	h := p.header(client, wire.TypeData, 1)
	call := h
	call.Seq, call.Flags = 1, h.Flags|wire.FlagJumbo
	call.CID++ // another channel
	b := make([]byte, wire.JumboBody)
	for i := range n - 1 {
		flags := wire.FlagClient | wire.FlagJumbo
		add := wire.JumboBody
		if i == n-2 {
			flags, add = wire.FlagClient, size
		}
		b = append(wire.AppendJumboHeader(b, flags, 0), make([]byte, add)...)
		p.serial[client]++
	}
	p.raw(client, call.Append(nil), b)
}

// Each fault is found, in a trace in which nothing else is wrong, and nobody else is blamed.
func TestPlantedFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			p := newPlayer(t)
			f.play(p)
			analyze(t, p.recording()).want(t, f.want...)
		})
	}
}

// What depends on all that the other side has sent is nobody's fault where the capture lacks
// some of it.
func TestWhatTheCaptureLacksIsNobodysFault(t *testing.T) {
	for name, play := range map[string]func(p *player){
		"acknowledgement": func(p *player) {
			p.data(client, 1, 1, "abcd")
			p.lose = true
			p.data(client, 1, 2, "abcd")
			p.lose = false
			p.ack(server, 1, 1, "++", naming(2))
			p.data(client, 1, 3, "abcd")
		},
		"acknowledgement behind a hole": func(p *player) {
			p.lose = true
			p.data(client, 1, 1, "abcd")
			p.lose = false
			p.ack(server, 1, 1, "++")
			p.ack(client, 1, 1, "")
		},
		"sequence": func(p *player) {
			p.data(client, 1, 1, "abcd")
			p.lose = true
			p.data(client, 1, 2, "abcd")
			p.lose = false
			p.data(client, 1, 3, "abcd")
			p.data(client, 1, 4, "abcd")
		},
		"window": func(p *player) {
			p.data(client, 1, 1, "abcd")
			p.ack(server, 1, 1, "+")
			for seq := uint32(2); seq <= 16; seq++ {
				p.data(client, 1, seq, "abcd")
			}
			p.lose = true
			p.ack(server, 1, 9, "++++++++")
			p.lose = false
			p.data(client, 1, 17, "abcd")
			p.ack(server, 1, 9, "+++++++++")
		},
		"jumbogram": func(p *player) {
			p.call(1)
			p.data(client, 2, 1, "abcd", last)
			p.ack(server, 2, 1, "+")
			p.lose = true
			p.ack(server, 2, 1, "+", func(_ *wire.Header, a *wire.Ack) { a.Trailer.MaxPackets = 4 })
			p.lose = false
			p.jumbo(2, 10)
			p.ack(server, 1, 1, "++")
		},
		"the beginning": func(p *player) {
			p.lose = true
			for range 9 {
				p.call(1)
			}
			p.lose = false
			p.data(client, 2, 7, "abcd")
			p.ack(server, 2, 5, "+++")
			p.data(client, 2, 8, "abcd")
		},
		"response": func(p *player) {
			p.login(rxkad.Crypt, nil)
			p.data(server, 1, 1, "abcd", last)
		},
		"an older state": func(p *player) {
			p.data(client, 1, 1, "abcd")
			p.data(client, 1, 2, "abcd")
			p.ack(server, 1, 3, "")
			p.ack(server, 1, 1, "++")
		},
		"sent again": func(p *player) {
			p.data(client, 1, 1, "abcd", last)
			p.data(client, 1, 1, "abcd", last, flags(wire.FlagRequestAck))
			p.data(client, 1, 1, "abcd", last, serial(1)) // captured twice
			p.data(server, 1, 1, "abcd", last)
		},
		"aborts of both": func(p *player) {
			p.data(client, 1, 1, "abcd")
			p.abort(server, 1)
			p.abort(client, 1)
			p.abort(server, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			play(p)
			analyze(t, p.recording()).want(t)
		})
	}
}

// The page about dissect has a row for each rule, with its clause; and each rule has a fault
// by which it is shown to be found.
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
	var wanted []string
	for _, f := range faults {
		wanted = append(wanted, f.want...)
	}
	for _, f := range rdmaFaults {
		wanted = append(wanted, f.want...)
	}
	for _, w := range wanted {
		id, _, _ := strings.Cut(w, " ")
		planted[id] = true
	}
	var rules, table []string
	for _, m := range regexp.MustCompile(`ID: "(.+?)", Clause: "(.+)"}`).FindAllSubmatch(source, -1) {
		rules = append(rules, string(m[1])+" "+string(m[2]))
		if !planted[string(m[1])] {
			t.Errorf("no fault breaks %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(rx-.+?)` \\| (.+?) \\|").FindAllSubmatch(page, -1) {
		table = append(table, string(m[1])+" "+string(m[2]))
	}
	slices.Sort(rules)
	slices.Sort(table)
	if !slices.Equal(rules, table) || len(rules) < 10 {
		t.Errorf("rules\n%q\nrows\n%q", rules, table)
	}
}
