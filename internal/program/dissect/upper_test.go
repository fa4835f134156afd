package dissect

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

// A logULP writes down what it is told.
type logULP struct {
	follow bool
	r      *Reporter
	log    []string
}

func (u *logULP) New(r *Reporter) Upper { u.r = r; return u }

func (u *logULP) add(format string, args ...any) { u.log = append(u.log, fmt.Sprintf(format, args...)) }

func (u *logULP) Frame(from Side, _ capture.At, private []byte) {
	u.add("frame %v %q %t %d", from, private, u.r.Whole(), u.r.Port())
}

func (u *logULP) Follows() bool {
	u.add("follows %t", u.r.Whole())
	u.r.Connection().Upper = logSummary{}
	return u.follow
}

func (u *logULP) Send(from Side, at capture.At, m *Sent) {
	u.add("send %v %d of %d %t %t %v", from, len(m.Octets), m.Length, m.Whole, m.Invalidates, m.Invalidate)
	u.r.Emit(from, at, logEvent{})
	u.r.Note(from, at, "noted")
	u.r.Violate(Rule{"log", "RFC 0 §0"}, from, at, "judged")
}

func (u *logULP) Write(from Side, _ capture.At, tag stag.STag, to uint64, data []byte) string {
	u.add("write %v %v %d %d", from, tag, to, len(data))
	return "a use"
}

func (u *logULP) Read(from Side, _ capture.At, tag stag.STag, to uint64, size uint32) (any, string) {
	u.add("read %v %v %d %d", from, tag, to, size)
	return "source", "another use"
}

func (u *logULP) ReadData(from Side, _ capture.At, source any, offset uint64, data []byte) {
	u.add("data %v %v %d %d", from, source, offset, len(data))
}

func (u *logULP) Lost(from Side)   { u.add("lost %v", from) }
func (u *logULP) End(_ capture.At) { u.add("end") }

type logEvent struct{}

func (logEvent) Name() string   { return "logged" }
func (logEvent) String() string { return "an event" }

type logSummary struct{}

func (logSummary) Name() string                 { return "log" }
func (logSummary) WriteTable(w io.Writer) error { _, err := io.WriteString(w, "a table\n"); return err }

func analyzeULP(t *testing.T, file []byte, u ULP, h Handler) *Result {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	result, err := AnalyzeULP(t.Context(), r, u, h)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (sc *script) recording() []byte {
	sc.t.Helper()
	if err := sc.w.Close(); err != nil {
		sc.t.Fatal(err)
	}
	return sc.file.Bytes()
}

func TestULPIsToldWhatBelongsToIt(t *testing.T) {
	sc := newScript(t)
	sc.frame(mpa.Frame{Revision: 1, PrivateData: []byte("ask")})
	sc.frame(mpa.Frame{Reply: true, Revision: 1, PrivateData: []byte("answer")})
	sc.segment(Client, rdmap.OpSend, false, make([]byte, 10))
	sc.read(Server, 0x300, 0x5000, 7) // amid the Send
	sc.segment(Client, rdmap.OpSend, true, make([]byte, 5), mo(10), msn(1))
	sc.segment(Client, rdmap.OpReadResponse, false, make([]byte, 4), at(0x300, 0x5000))
	sc.segment(Client, rdmap.OpReadResponse, true, make([]byte, 3), at(0x300, 0x5004))
	sc.segment(Server, rdmap.OpWrite, false, make([]byte, 2), at(0x400, 1))
	sc.segment(Server, rdmap.OpWrite, true, make([]byte, 1), at(0x400, 3))
	sc.message(Server, rdmap.OpSendInvalidate, make([]byte, 3), rsvd(4, 0, 9))
	sc.close()
	file := sc.recording()
	u := &logULP{follow: true}
	var text, lines, upper bytes.Buffer
	asText, asJSON, asUpper := Text(&text, Options{}), JSON(&lines, Options{}), Text(&upper, Options{Upper: true, Segments: true})
	r := analyzeULP(t, file, u, func(e *Event) error {
		_ = asJSON(e)
		_ = asUpper(e)
		return asText(e)
	})
	want := []string{
		`frame client "ask" false 7174`, `frame server "answer" true 7174`, "follows true",
		"read server 0x00000200 0 7", "send client 15 of 15 true false 0x00000000", "data client source 0 4", "data client source 4 3",
		"write server 0x00000400 1 2", "write server 0x00000400 3 1", "send server 3 of 3 true true 0x00000009", "end",
	}
	if !slices.Equal(u.log, want) {
		t.Errorf("told was\n%s\nwant\n%s", strings.Join(u.log, "\n"), strings.Join(want, "\n"))
	}
	for what, in := range map[string]*bytes.Buffer{
		"RDMA Write stag=0x00000400 to=0x1 len=3 segments=2 (a use)\n": &text, " an event\n": &text, "(another use)": &text,
		`"event":"logged"`: &lines, `"use":"a use"`: &lines, "< an event\n": &upper, "note: noted": &upper,
	} {
		if !strings.Contains(in.String(), what) {
			t.Errorf("no %q in\n%s", what, in)
		}
	}
	if strings.Contains(upper.String(), "Send") || strings.Contains(upper.String(), "segment") {
		t.Errorf("RDMA messages are shown though they should not be:\n%s", &upper)
	}
	if v := r.Connections[0].Violations; len(v) != 2 || v[0].ID != "log" || v[1].From != Server || len(r.Connections[0].Notes) != 2 {
		t.Errorf("%+v", r.Connections[0])
	}
	var s Summary
	s.Add("file", r)
	var table, object bytes.Buffer
	if err := s.WriteTable(&table); err != nil || !strings.Contains(table.String(), "\nfile: connection 1, log\na table\n") {
		t.Errorf("%v\n%s", err, &table)
	}
	if err := s.WriteJSON(&object); err != nil || !strings.Contains(object.String(), `"ulp":"log","ulp_summary":{}`) {
		t.Errorf("%v\n%s", err, &object)
	}
	none := &logULP{}
	if analyzeULP(t, file, none, nil); len(none.log) != 3 {
		t.Errorf("a ULP that does not follow is told %q", none.log)
	}
}

// What is too long to keep, or not there from its beginning on, is not handed on, and holes
// are told of.
func TestULPIsToldWhatIsNotThere(t *testing.T) {
	sc := newScript(t).start(true, false)
	sc.send(Client, 3)
	sc.send(Client, 4)
	for i := range 18 { // 1.1 MiB
		sc.segment(Client, rdmap.OpSend, i == 17, make([]byte, 60000), mo(uint32(60000*i)), msn(3))
	}
	sc.msn[Client][0] = 3
	sc.segment(Client, rdmap.OpSend, false, make([]byte, 10))
	file := sc.recording()
	u := &logULP{follow: true}
	analyzeULP(t, file, u, nil)
	want := []string{
		`frame client "" false 7174`, `frame server "" true 7174`, "follows true",
		"send client 3 of 3 true false 0x00000000", "send client 4 of 4 true false 0x00000000",
		"send client 0 of 1080000 false false 0x00000000", "end",
	}
	if !slices.Equal(u.log, want) {
		t.Errorf("told was\n%s\nwant\n%s", strings.Join(u.log, "\n"), strings.Join(want, "\n"))
	}
	u = &logULP{follow: true}
	analyzeULP(t, lossy(t, file, func(n int) bool { return n == 6 }), u, nil)
	if !slices.Contains(u.log, "lost client") || slices.Contains(u.log, "lost server") || slices.Contains(u.log, want[3]) {
		t.Errorf("told was\n%s", strings.Join(u.log, "\n"))
	}
}
