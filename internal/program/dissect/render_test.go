package dissect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"urnic/internal/capture"
	"urnic/rdmap"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata/output")

// open opens a golden capture.
func open(t testing.TB, name string) *capture.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(captures, name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	r, err := capture.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sum returns the summary of a golden capture.
func sum(t testing.TB, names ...string) *Summary {
	t.Helper()
	s := &Summary{}
	for _, name := range names {
		r, err := Analyze(t.Context(), open(t, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Add(name+".pcap", r)
	}
	return s
}

func TestOutputs(t *testing.T) {
	render := func(h func(io.Writer, Options) Handler, o Options, name string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := Analyze(t.Context(), open(t, name), h(w, o))
			return err
		}
	}
	for file, write := range map[string]func(io.Writer) error{
		"rping.txt":          render(Text, Options{}, "rping-p2p-read"),
		"rping.segments.txt": render(Text, Options{Segments: true}, "rping-p2p-read"),
		"rping.ladder.txt": func(w io.Writer) error {
			_, err := Analyze(t.Context(), open(t, "rping-p2p-read"), Ladder(w, Options{}))
			return err
		},
		"rping.jsonl":          render(JSON, Options{Segments: true}, "rping-p2p-read"),
		"term.txt":             render(Text, Options{}, "term-read-oob"),
		"term.ladder.txt":      render(Ladder, Options{}, "term-read-oob"),
		"term.jsonl":           render(JSON, Options{}, "term-read-oob"),
		"invalidate.jsonl":     render(JSON, Options{Connection: 40}, "raw-fpdu"),
		"second.txt":           render(Text, Options{Connection: 2}, "ucmatose"),
		"startup.ladder.txt":   render(Ladder, Options{}, "raw-mpa"),
		"segments.ladder.txt":  render(Ladder, Options{Segments: true}, "mpa1-read"),
		"summary.txt":          sum(t, "nfs41-crc", "raw-mpa", "rping-p2p-both").WriteTable,
		"summary.json":         sum(t, "rping-crc", "term-read-oob").WriteJSON,
		"summary.nothing.json": (&Summary{}).WriteJSON,
	} {
		t.Run(file, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "output", file)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("got\n%s\nwant\n%s", b.Bytes(), want)
			}
		})
	}
}

func TestLadderIsReadableAt100Columns(t *testing.T) {
	for name := range goldens(t) {
		for _, o := range []Options{{}, {Segments: true}} {
			var b bytes.Buffer
			if _, err := Analyze(t.Context(), open(t, strings.TrimSuffix(name, ".pcap.gz")), Ladder(&b, o)); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Fatalf("%s: %d columns: %s", name, n, line)
				}
			}
		}
	}
}

// Whatever is found, each line is one JSON object, and counts as the summary.
func TestJSONLinesAgreeWithTheSummary(t *testing.T) {
	for name := range goldens(t) {
		var b bytes.Buffer
		r, err := Analyze(t.Context(), open(t, strings.TrimSuffix(name, ".pcap.gz")), JSON(&b, Options{Segments: true}))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for d := json.NewDecoder(&b); ; {
			var line struct {
				Event    string
				Segment  struct{ Op string }
				Message  struct{ Op string }
				Client   string
				From     string
				Packet   int
				Time     string
				Startup  *struct{ Frame string }
				Reset    *bool
				Note     string
				Violated struct{ Clause string } `json:"violation"`
			}
			if err := d.Decode(&line); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if line.Client == "" || line.From == "" || line.Packet == 0 || line.Time == "" {
				t.Fatalf("%s: %+v", name, line)
			}
			got[line.Event+" "+line.Segment.Op+line.Message.Op]++
			if line.Event == "violation" && line.Violated.Clause == "" {
				t.Errorf("%s: a violation without a clause", name)
			}
		}
		want := map[string]int{}
		for _, c := range r.Connections {
			for op := range c.Segments {
				want["segment "+rdmap.Opcode(op).Name()] += c.Segments[op]
				want["message "+rdmap.Opcode(op).Name()] += c.Messages[op]
			}
			want["violation "] += len(c.Violations)
			want["note "] += len(c.Notes)
		}
		for k, n := range want {
			if got[k] != n {
				t.Errorf("%s: %d lines %q, want %d", name, got[k], k, n)
			}
		}
	}
}

// Programs read the summary: all keys are there, no array is null.
func TestSummaryKeysAreComplete(t *testing.T) {
	var b bytes.Buffer
	if err := sum(t, "ops-write-zero").WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 1 {
		t.Errorf("%d lines", n)
	}
	if strings.Contains(b.String(), "null") {
		t.Errorf("something is null: %s", &b)
	}
	var got struct{ Connections []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got.Connections) != 1 {
		t.Fatalf("%d connections, %v", len(got.Connections), err)
	}
	c := got.Connections[0]
	var ops []string
	for op := range rdmap.Opcode(12) {
		ops = append(ops, op.Name())
	}
	for where, keys := range map[string][]string{
		"": {
			"file", "client", "server", "mpa", "segments", "messages", "other_segments", "payload_bytes", "crc_bad",
			"undecoded_bytes", "violations", "unlisted_violations", "notes", "ignored_segments", "differing_bytes", "ulp", "ulp_summary", "llp", "llp_summary", "transport",
		},
		"mpa": {
			"revision", "crc", "markers_client", "markers_server", "enhanced", "ird", "ord", "p2p", "rejected",
			"private_data_client", "private_data_server",
		},
		"segments": ops,
		"messages": ops,
	} {
		object := c
		if where != "" {
			object = c[where].(map[string]any)
		}
		slices.Sort(keys)
		if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, keys) {
			t.Errorf("keys of %q are %v, want %v", where, got, keys)
		}
	}
}

func TestJSONOfExtensions(t *testing.T) {
	sc := newScript(t).start(false, false)
	sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(7, func(r *rdmap.AtomicRequest) {
		r.Op, r.TO, r.AddSwap, r.AddSwapMask, r.Compare = rdmap.AtomicCmpSwap, 8, 9, 10, 11
	}))
	sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(7))
	sc.message(Server, rdmap.OpImmediate, []byte("12345678"))
	sc.message(Server, rdmap.OpSendInvalidate, nil, rsvd(4, 0, 5))
	sc.s.Reset(true)
	if err := sc.w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(&sc.file)
	if err != nil {
		t.Fatal(err)
	}
	var text, lines bytes.Buffer
	asText, asJSON := Text(&text, Options{}), JSON(&lines, Options{})
	if _, err := Analyze(t.Context(), r, func(e *Event) error { return errors.Join(asText(e), asJSON(e)) }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"atomic_request":{"operation":"CmpSwap","request_id":7,"stag":"0x00000300","to":"0x0000000000000008","add_swap":"0x0000000000000009","add_swap_mask":"0x000000000000000a","compare":"0x000000000000000b","compare_mask":"0xffffffffffffffff"}`,
		`"atomic_response":{"request_id":7,"original":"0x0000000000000000"}`,
		`"immediate":"3132333435363738"`,
		`"invalidate_stag":"0x00000005"`,
		`"reset":true`,
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %s in\n%s", want, &lines)
		}
	}
	for _, want := range []string{
		"Atomic Request msn=1 CmpSwap id=7", "Atomic Response msn=1 id=7 original=0x0", "Immediate Data msn=1 data=3132333435363738",
		"Send with Invalidate msn=2 len=0 invalidate=0x00000005", "TCP reset",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, &text)
		}
	}
}

// failAfter fails with its n-th write.
type failAfter struct{ n int }

var errFull = errors.New("disk full")

func (f *failAfter) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorOfAWriterEndsTheAnalysis(t *testing.T) {
	for n := range 8 {
		for name, h := range map[string]Handler{
			"text": Text(&failAfter{n}, Options{}), "JSON": JSON(&failAfter{n}, Options{}), "ladder": Ladder(&failAfter{n}, Options{}),
		} {
			r, err := Analyze(t.Context(), open(t, "rping-basic"), h)
			if !errors.Is(err, errFull) || r == nil {
				t.Errorf("%s, %d writes: %v", name, n, err)
			}
		}
	}
	for n := range 3 {
		if err := sum(t, "raw-mpa").WriteTable(&failAfter{n}); !errors.Is(err, errFull) {
			t.Errorf("table, %d writes: %v", n, err)
		}
	}
}

func TestContextEndsTheAnalysis(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	r, err := Analyze(ctx, open(t, "nfs3"), func(*Event) error {
		if seen++; seen == 100 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || r.Connections[0].Segments.Total() > 1000 {
		t.Errorf("%v after %d segments", err, r.Connections[0].Segments.Total())
	}
}

func TestViolationsWithoutEndAreCounted(t *testing.T) {
	sc := newScript(t).start(false, false)
	for range maxKept + 100 {
		sc.message(Client, rdmap.OpWrite, nil, control(0xFF, 0x3C))
	}
	sc.close()
	o := sc.end()
	c := o.only(t)
	if len(c.Violations) != maxKept || c.MoreViolations != 100 || o.Violations() != maxKept+100 || len(o.broken) != maxKept+100 {
		t.Errorf("%d kept, %d more, %d events", len(c.Violations), c.MoreViolations, len(o.broken))
	}
	var s Summary
	s.Add("x", o.Result)
	var b bytes.Buffer
	if err := s.WriteTable(&b); err != nil || !strings.Contains(b.String(), "x: connection 1: 100 more violations") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// Connections beyond those that are listed are followed like the others.
func TestConnectionsBeyondTheListAreCounted(t *testing.T) {
	full := &analysis{result: &Result{Connections: make([]*Connection, maxListed)}}
	f := newFollower(full, &capture.Conn{FromStart: [2]bool{true, true}})
	req := plainFrame(false, "")
	req.Revision = 7
	b, _ := req.AppendBinary(nil)
	f.Data(capture.Opener, capture.At{}, b)
	f.End()
	r := full.result
	if r.Unlisted != 1 || len(r.Connections) != maxListed || r.Total.Connections != 1 || r.Violations() != 1 || full.buffered != 0 || full.kept != 0 {
		t.Errorf("%d unlisted, %+v, %d bytes held, %d violations kept", r.Unlisted, r.Total, full.buffered, full.kept)
	}
	s := Summary{}
	r.Connections = r.Connections[:0]
	s.Add("x", r)
	var out bytes.Buffer
	if err := s.WriteJSON(&out); err != nil || !strings.Contains(out.String(), `"unlisted_connections":1`) || !strings.Contains(out.String(), `"verdict":"violations"`) {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	if err := s.WriteTable(&out); err != nil || !strings.Contains(out.String(), "x: 1 more connections are not listed") {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestWhatStreamsHoldIsBounded(t *testing.T) {
	a := &analysis{result: &Result{}, handle: func(*Event) error { return nil }, buffered: maxBuffered - 100}
	f := newFollower(a, &capture.Conn{FromStart: [2]bool{true, true}})
	req, rep := plainFrame(false, ""), plainFrame(true, "")
	b, _ := req.AppendBinary(nil)
	f.Data(capture.Opener, capture.At{}, b)
	b, _ = rep.AppendBinary(nil)
	f.Data(capture.Acceptor, capture.At{}, b)
	half := make([]byte, 200)
	half[0] = 0xFF
	f.Data(capture.Opener, capture.At{}, half)
	if c := f.con; a.buffered > maxBuffered || c.Undecoded != 200 || len(c.Notes) != 1 {
		t.Errorf("%d bytes held, %d not decoded, %q", a.buffered, c.Undecoded, c.Notes)
	}
	a.outstanding = maxOutstanding
	s := &f.streams[1]
	s.ask(capture.At{}, &pending{})
	if s.asked.len() != 0 || !s.lost {
		t.Error("Reads beyond the limit are kept")
	}
}

// FuzzDissect: whatever two sides send, in pieces of any length, the analysis
// ends and its numbers hold together.
func FuzzDissect(f *testing.F) {
	seed := func(crc, markers bool) []byte {
		sc := newScript(f).start(crc, markers)
		sc.send(Client, 3)
		sc.read(Client, 1, 1, 3)
		sc.respond(Server, 1, 1, 3)
		sc.message(Client, rdmap.OpTerminate, []byte{0x10, 2, 0, 0})
		if err := sc.w.Close(); err != nil {
			f.Fatal(err)
		}
		var out []byte
		r, err := capture.NewReader(&sc.file)
		if err != nil {
			f.Fatal(err)
		}
		asm := capture.NewAssembler(func(*capture.Conn) capture.Consumer { return &chunks{out: &out} })
		if err := asm.ReadAll(f.Context(), r); err != nil {
			f.Fatal(err)
		}
		return out
	}
	for i := range 4 {
		f.Add(seed(i&1 != 0, i&2 != 0))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		events, violations := 0, 0
		var lines bytes.Buffer
		asJSON, asText, asLadder := JSON(&lines, Options{Segments: true}), Text(io.Discard, Options{Segments: true}), Ladder(io.Discard, Options{})
		a := &analysis{result: &Result{}, handle: func(e *Event) error {
			events++
			if e.Kind == KindViolation {
				violations++
			}
			return errors.Join(asJSON(e), asText(e), asLadder(e))
		}}
		c := &capture.Conn{FromStart: [2]bool{true, true}}
		fo := newFollower(a, c)
		total := 0
		// A script is made of chunks: what (1), length (1), bytes.
		for n := 1; len(script) >= 2; n++ {
			what, size := script[0], min(int(script[1]), len(script)-2)
			chunk := bytes.Clone(script[2 : 2+size])
			script = script[2+size:]
			side, at := capture.Side(what&1), capture.At{Packet: n}
			switch what >> 1 & 7 {
			case 1:
				fo.Hole(side, at, size+1)
				total += size + 1
			case 2:
				fo.Close(side, at, what&0x80 != 0)
			case 4:
				fo.Acked(side, at, size)
			case 5:
				fo.Differs(side, at, size+int(what), chunk)
			case 6:
				fo.Drop(side, at, capture.Drop{Kind: capture.DropData, Bytes: size})
				total += size
			case 7:
				at.BadChecksum = true
				fo.Data(side, at, chunk)
				total += len(chunk)
			case 3:
				c.FromStart[side] = false
				fallthrough
			default:
				fo.Data(side, at, chunk)
				total += len(chunk)
			}
		}
		fo.End()
		if a.buffered != 0 || a.outstanding != 0 {
			t.Errorf("%d bytes and %d Reads are still counted", a.buffered, a.outstanding)
		}
		if a.result.Violations() != violations {
			t.Errorf("%d violations, %d events", a.result.Violations(), violations)
		}
		for _, c := range a.result.Connections {
			if c.Undecoded > uint64(total) || c.Payload > uint64(total) {
				t.Errorf("%d bytes not decoded, %d of payload, of %d", c.Undecoded, c.Payload, total)
			}
		}
		for line := range bytes.Lines(lines.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("no JSON: %s", line)
			}
		}
	})
}

// chunks turns streams into a script for FuzzDissect.
type chunks struct{ out *[]byte }

func (c *chunks) Data(from capture.Side, _ capture.At, b []byte) {
	*c.out = append(append(*c.out, byte(from), byte(len(b))), b...)
}
func (c *chunks) Hole(capture.Side, capture.At, int)   {}
func (c *chunks) Close(capture.Side, capture.At, bool) {}
func (c *chunks) End()                                 {}

func (c *chunks) Drop(capture.Side, capture.At, capture.Drop)   {}
func (c *chunks) Differs(capture.Side, capture.At, int, []byte) {}
func (c *chunks) Acked(capture.Side, capture.At, int)           {}
