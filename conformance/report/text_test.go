package report

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"urnic/conformance"
	"urnic/conformance/wire"
)

func text(t *testing.T, r *conformance.Report, o TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextTellsWhatWasSentExpectedAndReceived(t *testing.T) {
	out := text(t, sample(t), TextOptions{})
	for _, want := range []string{
		"urnic v0.9.1 conform · target 192.0.2.17:7471 · profile urnic over TCP · 2026-03-14 09:26:53 UTC\n",
		"FAIL  rfc5041-7.1-4/end-one-octet-beyond (responder)\n",
		"FAIL  rfc5041-7.1-4/end-one-octet-beyond (initiator)\n",
		"  clause    RFC 5041 §7.1, MUST: Untagged: MO plus payload length is within the buffer\n",
		"  sent      a Send of 65 octets to a receive buffer of 64\n",
		"  expected  Terminate of DDP, Untagged Buffer Error, 0x05: DDP Message too long for available\n            buffer\n",
		"  got       Terminate of DDP, Untagged Buffer Error, 0x04: Invalid MO\n",
		"  recording captures/rfc5041-7.1-4_end-one-octet-beyond_initiator.pcap\n",
		"inconclusive  rfc5044-7.1.1-15/revision-seven (responder)",
		"skipped      2    the target speaks revision 1 only\n",
		"RFC 5041     31   26      2     3    2    1      0     1      1    2    0    1\n",
		"RFC 6581      0    0      0     0    0    0      0     0      0    0    0    2\n",
		"all          93   78      6     9    6    3      0     3      4    4    2    3\n",
		"\nThis run exercised 99 of 144 clauses that cases test. Of the others: 9 for other profiles, 30\nnot selected by --only, 6 skipped. No case can test 69 from outside, and 18 have no case yet.\n",
		"\n13 cases in 41.234 s: 4 passed, 4 failed, 2 inconclusive, 3 skipped\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if !strings.HasSuffix(out, "3 skipped\n") {
		t.Error("the totals are not the last line")
	}
	if strings.Contains(out, "dv-zero") || strings.Contains(out, "pass     ") {
		t.Error("a case that passed is in a report that is not verbose")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// The verdict on the run comes first, in a color where there is one.
func TestTextBeginsWithTheVerdict(t *testing.T) {
	failed := sample(t)
	passed := assemble(slices.DeleteFunc(slices.Clone(failed.Results), func(r conformance.Result) bool {
		return r.Verdict == conformance.Fail
	}))
	lost := sample(t)
	lost.Lost = "the target is gone: " + hostile
	for _, test := range []struct {
		report *conformance.Report
		color  bool
		want   string
	}{
		{failed, false, "FAIL: 4 of 13 cases failed\n"},
		{failed, true, "\x1b[1;31mFAIL\x1b[0m: 4 of 13 cases failed\n"},
		{passed, false, "PASS: none of 9 cases failed\n"},
		{passed, true, "\x1b[1;32mPASS\x1b[0m: none of 9 cases failed\n"},
		{lost, true, "\x1b[1;31mTARGET LOST\x1b[0m: the target is gone: \\x1b[2J"},
	} {
		if out := text(t, test.report, TextOptions{Color: test.color}); !strings.HasPrefix(out, test.want) {
			t.Errorf("it begins with %.100q; want %q", out, test.want)
		}
	}
}

func TestVerboseTextTellsOfPassesAndSkips(t *testing.T) {
	out := text(t, sample(t), TextOptions{Verbose: true})
	for _, want := range []string{
		"pass          rfc5041-4.1-9/dv-zero (responder)  0.012 s\n              A segment of DDP version 0 ends the stream\n",
		"skipped       rfc5041-5.2-9/zero-length (initiator)  0.012 s\n              the profile raw can't ask the target to write\n",
		"|   MPA  Key        \"MPA ID Req Frame\" ", // headers of what is not wrong
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}

// What is wrong has its bytes in the ladder, the tester's at the left and the
// target's at the right.
func TestLadderShowsTheOctetsOfWhatIsWrong(t *testing.T) {
	got := drawLadder(tooLong(), 80, false)
	want := strings.TrimPrefix(`
     seconds tester                                                       target
    0.000020 |    [listen on 192.0.2.17:40112, receive buffer of 64 octets]    |
    0.000210 |-- MPA Request, Rev 2, M=0 C=1 S=1, IRD 4 ORD 4 ---------------->|
    0.000480 |<----- MPA Reply, Rev 2, M=0 C=1 S=1, IRD 4 ORD 4, 3 octets of --|
             |                                                  Private Data   |
    0.001100 |-- Send, last, QN 0 MSN 1 MO 0, 65 octets ---------------------->|
             |   !! by intent: one octet longer than the buffer                |
             |   MPA    ULPDU Length  34                                       |
             |   DDP    T             0                                        |
             |   DDP    L             1                                        |
             |   DDP    DV            1                                        |
             |   RDMAP  control       RV=1 opcode=3 (Send)                     |
             |   DDP    QN            0                                        |
             |   DDP    MSN           1                                        |
             |   DDP    MO            0                                        |
             |   MPA    CRC           0x5a3c11f2                               |
             |   0000  00 53 41 43 00 00 00 00  00 00 00 00 00 00 00 01        |
             |   0010  00 00 00 00 00 01 02 03  04 05 06 07 08 09 0a 0b        |
             |   0020  0c 0d 0e 0f 10 11 12 13  14 15 16 17 18 19 1a 1b        |
             |   0030  1c 1d 1e 1f 20 21 22 23  24 25 26 27 28 29 2a 2b        |
             |   0040  and 25 octets more                                      |
    0.001480 |<----- Terminate, DDP, Untagged Buffer Error, 0x04 Invalid MO, --|
             |                            with segment length and DDP header   |
             |                              !! the code is 0x04; 0x05 is due   |
             |              DDP        QN          2                           |
             |              DDP        MSN         1                           |
             |              DDP        MO          0                           |
             |              RDMAP      Opcode      7 (Terminate)               |
             |              Terminate  Layer       1 (DDP)                     |
             |              Terminate  EType       2 (Untagged Buffer Error)   |
             |              Terminate  Error Code  0x04 (Invalid MO)           |
             |              Terminate  HdrCt       M=1 D=1 R=0                 |
             |        0000  00 2a 41 47 00 00 00 00  00 00 00 02 00 00 00 01   |
             |        0010  00 00 00 00 12 04 c0 00  00 53 41 43 00 00 00 00   |
             |        0020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00   |
    0.001500 |<--------------------------------------------------------- FIN --|
    0.001620 |-- FIN --------------------------------------------------------->|
    0.001700 |   waits up to 2 s for the buffer's completion                   |
    0.001900 |      [completion: receive, flushed; the octets beyond the       |
             |      buffer are as before]                                      |
`, "\n")
	if got != want {
		t.Errorf("the ladder is\n%s\nwant\n%s", got, want)
	}
}

// If the target's bytes are not said to be wrong, its last ones tell what came in
// place of what was expected.
func TestLadderShowsTheLastOctetsOfTheTarget(t *testing.T) {
	got := drawLadder(startup(), 80, false)
	const want = `
    0.000480 |<----- MPA Reply, Rev 2, M=0 C=1 S=1, IRD 4 ORD 4, 3 octets of --|
             |                                                  Private Data   |
             |                            MPA  Key        "MPA ID Rep Frame"   |
             |                            MPA  Rev        2                    |
             |                            MPA  PD_Length  7                    |
             |        0000  4d 50 41 20 49 44 20 52  65 70 20 46 72 61 6d 65   |
             |        0010  50 02 00 07 00 04 00 04  61 62 63                  |
`
	if !strings.HasSuffix(got, want) || strings.Count(got, "0000  ") != 1 {
		t.Errorf("the ladder is\n%s", got)
	}
}

func TestLadderTellsConnectionsApart(t *testing.T) {
	got := drawLadder(twoConnections(), 80, false)
	one, two := strings.Index(got, "= connection 1 ="), strings.Index(got, "= connection 2 =")
	if one < 0 || two < one || strings.Count(got, "= connection") != 2 || strings.Index(got, "RST") < two {
		t.Errorf("got\n%s", got)
	}
}

// Nothing is wider than the terminal, whatever a case says, and what a target has
// sent cannot speak to the terminal.
func TestTextKeepsToItsWidthAndSendsNoControls(t *testing.T) {
	r := sample(t)
	long := &r.Results[len(r.Results)-1]
	long.Verdict = conformance.Fail
	long.Reason = strings.Repeat("unbroken", 50) + "\n" + hostile + strings.Repeat(" many words", 2000)
	long.Exchange = []wire.Event{{
		By: wire.Target, Conn: 1, What: strings.Repeat("Ü", 300) + hostile, Wrong: hostile,
		Fields: []string{hostile + "  " + strings.Repeat("x", 500), "", "  "}, Octets: wire.Octets(hostile),
	}, {By: "nobody", What: hostile}}
	for _, width := range []int{-1, 0, 1, 80, 100, 120, 1000} {
		limit := min(max(width, 80), 120)
		if width == 0 {
			limit = 96
		}
		for l := range strings.Lines(text(t, r, TextOptions{Width: width, Verbose: true})) {
			l = strings.TrimSuffix(l, "\n")
			// A case's ID stays whole, for it is copied.
			if n := utf8.RuneCountInString(l); n > limit {
				t.Errorf("width %d: a line has %d columns: %s", width, n, l)
			}
			if !utf8.ValidString(l) || strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("width %d: a line has controls: %q", width, l)
			}
		}
	}
}

// A long exchange is shown by its beginning, its end and what is wrong between.
func TestLongExchangeIsShownInPart(t *testing.T) {
	var events []wire.Event
	for i := range 1000 {
		e := wire.Event{At: time.Duration(i) * time.Millisecond, By: wire.Tester, Conn: 1, What: fmt.Sprintf("event %d.", i)}
		if i == 333 || i >= 500 && i < 600 {
			e.Wrong = "wrong"
		}
		events = append(events, e)
	}
	out := steps(events, 60)
	shown, leftOut := 0, 0
	for _, s := range out {
		leftOut += s.leftOut
		if s.leftOut == 0 {
			shown++
		}
	}
	if shown != 60 || shown+leftOut != 1000 {
		t.Errorf("%d shown and %d left out", shown, leftOut)
	}
	for _, i := range []int{0, 14, 333, 500, 970, 999} {
		if !slices.ContainsFunc(out, func(s step) bool { return s.event.What == events[i].What }) {
			t.Errorf("event %d is not shown", i)
		}
	}
	if got := drawLadder(events, 80, false); strings.Count(got, "\n") > 200 || !strings.Contains(got, "... 318 events left out ...") {
		t.Errorf("got\n%s", got)
	}
}

func TestEmptyReportIsWritten(t *testing.T) {
	r := &conformance.Report{}
	out := text(t, r, TextOptions{Verbose: true})
	if !strings.Contains(out, "0 cases in 0.000 s: 0 passed, 0 failed, 0 inconclusive, 0 skipped") {
		t.Error(out)
	}
}

// A failingWriter takes some bytes and then none.
type failingWriter struct{ rest int }

var errFull = errors.New("no space left")

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.rest {
		n := w.rest
		w.rest = 0
		return n, errFull
	}
	w.rest -= len(p)
	return len(p), nil
}

func TestErrorOfTheWriterIsReturned(t *testing.T) {
	r := sample(t)
	for name, write := range map[string]func(*failingWriter) error{
		"text":  func(w *failingWriter) error { return Text(w, r, TextOptions{}) },
		"JSON":  func(w *failingWriter) error { return JSON(w, r) },
		"JUnit": func(w *failingWriter) error { return JUnit(w, r) },
	} {
		for _, n := range []int{0, 1, 50, 3000} {
			if err := write(&failingWriter{n}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d octets: %v", name, n, err)
			}
		}
	}
}
