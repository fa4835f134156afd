package dissect

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

var (
	clientAddr = netip.MustParseAddrPort("192.0.2.1:40000")
	serverAddr = netip.MustParseAddrPort("192.0.2.2:7174")
)

// A script plays both sides of a connection into a recording, right or wrong.
type script struct {
	t       testing.TB
	file    bytes.Buffer
	w       *capture.Writer
	s       *capture.Stream
	framers [2]mpa.Framer // by Side
	msn     [2][4]uint32
}

func newScript(t testing.TB) *script {
	t.Helper()
	sc := &script{t: t}
	w, err := capture.NewWriter(&sc.file)
	if err != nil {
		t.Fatal(err)
	}
	sc.w = w
	sc.s = w.Stream(clientAddr, serverAddr, true)
	return sc
}

// raw plays bytes as one TCP segment.
func (sc *script) raw(from Side, b []byte) {
	if from == Client {
		sc.s.Sent(b)
	} else {
		sc.s.Received(b)
	}
}

func (sc *script) frame(f mpa.Frame) {
	sc.t.Helper()
	b, err := f.AppendBinary(nil)
	if err != nil {
		sc.t.Fatal(err)
	}
	from := Client
	if f.Reply {
		from = Server
	}
	sc.raw(from, b)
}

// enhanced returns private data with an enhanced block.
func enhanced(e mpa.Enhanced, ulp string) []byte {
	b, err := e.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	return append(b, ulp...)
}

// start plays an enhanced start-up.
func (sc *script) start(crc, markers bool) *script {
	sc.t.Helper()
	sc.startWith(crc, markers, mpa.Enhanced{IRD: 4, ORD: 4}, mpa.Enhanced{IRD: 4, ORD: 4})
	return sc
}

func (sc *script) startWith(crc, markers bool, req, rep mpa.Enhanced) {
	sc.t.Helper()
	sc.frame(mpa.Frame{Revision: 2, CRC: crc, Markers: markers, Enhanced: true, PrivateData: enhanced(req, "")})
	sc.frame(mpa.Frame{Reply: true, Revision: 2, CRC: crc, Markers: markers, Enhanced: true, PrivateData: enhanced(rep, "")})
	sc.framers = [2]mpa.Framer{{CRC: crc, Markers: markers}, {CRC: crc, Markers: markers}}
}

// fpdu returns the next FPDU of a side.
func (sc *script) fpdu(from Side, ulpdu []byte) []byte {
	sc.t.Helper()
	b, err := sc.framers[from].AppendFPDU(nil, ulpdu)
	if err != nil {
		sc.t.Fatal(err)
	}
	return b
}

func (sc *script) ulpdu(from Side, b []byte) { sc.raw(from, sc.fpdu(from, b)) }

// segment makes a segment as it ought to be; the edits may spoil it. An
// untagged message that it begins gets the next MSN.
func (sc *script) segment(from Side, op rdmap.Opcode, last bool, payload []byte, edits ...func(*ddp.Segment)) {
	sc.t.Helper()
	s := sc.make(from, op, last, payload, edits...)
	b, err := s.AppendBinary(nil)
	if err != nil {
		sc.t.Fatal(err)
	}
	sc.ulpdu(from, b)
}

func (sc *script) make(from Side, op rdmap.Opcode, last bool, payload []byte, edits ...func(*ddp.Segment)) *ddp.Segment {
	s := &ddp.Segment{Control: ddp.NewControl(op.Tagged(), last), Payload: payload}
	s.Tagged = ddp.TaggedHeader{Control: s.Control, RsvdULP: uint8(rdmap.NewControl(op)), STag: 0x100, TO: 0x1000}
	s.Untagged = ddp.UntaggedHeader{Control: s.Control, RsvdULP: [5]byte{uint8(rdmap.NewControl(op))}, QN: op.Queue()}
	if !op.Tagged() {
		sc.msn[from][op.Queue()]++
		s.Untagged.MSN = sc.msn[from][op.Queue()]
	}
	for _, edit := range edits {
		edit(s)
	}
	s.Tagged.Control, s.Untagged.Control = s.Control, s.Control
	return s
}

// message plays a message of one segment.
func (sc *script) message(from Side, op rdmap.Opcode, payload []byte, edits ...func(*ddp.Segment)) {
	sc.t.Helper()
	sc.segment(from, op, true, payload, edits...)
}

func (sc *script) send(from Side, n int) { sc.message(from, rdmap.OpSend, make([]byte, n)) }

// read plays a Read Request for n bytes into STag, TO; respond what answers it.
func (sc *script) read(from Side, s stag.STag, to uint64, n uint32) {
	b, _ := rdmap.ReadRequest{SinkSTag: s, SinkTO: to, Size: n, SrcSTag: 0x200}.AppendBinary(nil)
	sc.message(from, rdmap.OpReadRequest, b)
}

func (sc *script) respond(from Side, s stag.STag, to uint64, n int) {
	sc.message(from, rdmap.OpReadResponse, make([]byte, n), at(s, to))
}

// The edits that tests use.
func at(s stag.STag, to uint64) func(*ddp.Segment) {
	return func(seg *ddp.Segment) { seg.Tagged.STag, seg.Tagged.TO = s, to }
}
func msn(n uint32) func(*ddp.Segment) { return func(s *ddp.Segment) { s.Untagged.MSN = n } }
func mo(n uint32) func(*ddp.Segment)  { return func(s *ddp.Segment) { s.Untagged.MO = n } }
func qn(n uint32) func(*ddp.Segment)  { return func(s *ddp.Segment) { s.Untagged.QN = n } }
func control(and, or ddp.Control) func(*ddp.Segment) {
	return func(s *ddp.Segment) { s.Control = s.Control&and | or }
}

func rsvd(i int, and, or byte) func(*ddp.Segment) {
	return func(s *ddp.Segment) {
		s.Untagged.RsvdULP[i] = s.Untagged.RsvdULP[i]&and | or
		if i == 0 {
			s.Tagged.RsvdULP = s.Tagged.RsvdULP&and | or
		}
	}
}

// close plays the end of a connection that nothing is wrong with.
func (sc *script) close() {
	sc.s.Close(true)
	sc.s.Close(false)
}

// An outcome is what an analysis of a script found.
type outcome struct {
	*Result
	events []string // one word an event
	notes  []string
	broken []string // "rule clause by side", in the order of the events
}

// end analyses what was played.
func (sc *script) end() outcome {
	sc.t.Helper()
	if err := sc.w.Close(); err != nil {
		sc.t.Fatal(err)
	}
	return analyze(sc.t, sc.file.Bytes())
}

func analyze(t testing.TB, file []byte) outcome {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	o.Result, err = Analyze(t.Context(), r, func(e *Event) error {
		word := e.Kind.String()
		switch e.Kind {
		case KindMessage:
			word = e.Message.Op.Name()
		case KindViolation:
			o.broken = append(o.broken, fmt.Sprintf("%s %s by %v", e.Violation.ID, e.Violation.Clause, e.From))
		case KindNote:
			o.notes = append(o.notes, e.Note)
		default:
		}
		_ = e.String()
		o.events = append(o.events, word)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// want compares the violations with what a test expects.
func (o outcome) want(t testing.TB, broken ...string) {
	t.Helper()
	if !slices.Equal(o.broken, broken) {
		t.Errorf("violations\n  %s\nwant\n  %s\nnotes\n  %s", strings.Join(o.broken, "\n  "), strings.Join(broken, "\n  "), strings.Join(o.notes, "\n  "))
	}
	kept := 0
	for _, c := range o.Connections {
		kept += len(c.Violations) + c.MoreViolations
	}
	if kept != len(o.broken) {
		t.Errorf("%d violations in the result, %d events", kept, len(o.broken))
	}
}

func (o outcome) only(t testing.TB) *Connection {
	t.Helper()
	if len(o.Connections) != 1 {
		t.Fatalf("%d connections; notes %q", len(o.Connections), o.notes)
	}
	return o.Connections[0]
}
