package dissectpage

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/internal/page/pagetest"
	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/ulp/rpcrdma/rpcflow"
)

// pageOf is the page of a golden capture.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open("../testdata/captures/" + name + ".pcap.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(z)
	if err != nil {
		t.Fatal(err)
	}
	p := New(dissect.Options{})
	result, err := dissect.AnalyzeULP(context.Background(), r, &rpcflow.Analyzer{}, p.Handle)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b, "urnic", name+".pcap.gz<script>", result); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const probeTools = `
const rows = () => [...document.querySelectorAll("#ladder li:not(.ends)")].filter(seen).map((e) => e.querySelector("p").lastChild.textContent);
const form = document.getElementById("filter");
const set = async (name, value) => {
  const before = document.getElementById("count").value;
  form.elements[name].value = value; form.dispatchEvent(new Event("input", { bubbles: true }));
  await later(); await later(); await later();
};
`

// The page of a capture: verdict, violations, connection, charts, the ladder and its filter.
func TestPageOfACapture(t *testing.T) {
	text := pageOf(t, "nfs41-crc")
	for name, flags := range map[string][]string{"desktop": nil, "phone, dark": {"--window-size=390,800", "--blink-settings=preferredColorScheme=0"}} {
		var got struct {
			Outcome, Client, Count string
			Clauses                []string
			First, More            int
			Calls                  []string
			Charts                 []string
			Fits                   bool
		}
		pagetest.Browse(t, text, "", probeTools+`
out.outcome = document.querySelector(".outcome").textContent;
out.clauses = [...document.querySelectorAll("#violations tbody th")].filter(seen).map((e) => e.textContent);
out.client = document.querySelector("#connections tbody td").textContent;
out.first = rows().length; out.count = document.getElementById("count").value;
document.getElementById("more").click(); await until(() => rows().length > out.first); out.more = rows().length;
await set("q", "call NFSv4"); out.calls = rows();
out.charts = [...document.querySelectorAll("#charts figcaption")].map((e) => e.textContent);
out.fits = document.documentElement.scrollWidth <= innerWidth;
`, &got, flags...)
		if !strings.HasPrefix(got.Outcome, "VIOLATIONS 2 violations in 1 connection") || !strings.Contains(got.Client, "10.") || !got.Fits {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got.Clauses) != 2 || !strings.HasPrefix(got.Clauses[0], "RFC ") {
			t.Errorf("%s: the violations are of %q", name, got.Clauses)
		}
		if got.First != 300 || got.More != 440 || got.Count != "the first 300" {
			t.Errorf("%s: %d events are shown, then %d: %q", name, got.First, got.More, got.Count)
		}
		if len(got.Calls) < 60 || slices.ContainsFunc(got.Calls, func(s string) bool { return !strings.Contains(s, "call NFSv4") }) {
			t.Errorf("%s: the filter shows %d: %.300q", name, len(got.Calls), got.Calls)
		}
		if all := strings.Join(got.Charts, "\n"); !strings.Contains(all, "Throughput: at most ") || !strings.Contains(all, "Credits granted: at most ") {
			t.Errorf("%s: the charts are %q", name, all)
		}
	}
	if strings.Contains(text, "<script>.pcap") || strings.Contains(text, "gz<script>") {
		t.Error("the name of the capture is not escaped")
	}
}

// A Terminate is explained, and found by the filter.
func TestPageExplainsATerminate(t *testing.T) {
	var got struct {
		Sentence string
		Wrong    []string
	}
	pagetest.Browse(t, pageOf(t, "term-read-oob"), "", probeTools+`
out.sentence = document.querySelector("#terminates li").textContent;
await set("kind", "vt"); out.wrong = rows();
`, &got)
	if !strings.Contains(got.Sentence, "The server ended the stream because of ") || !strings.Contains(got.Sentence, "That was an RDMA Read of ") || len(got.Wrong) == 0 {
		t.Errorf("got %+v", got)
	}
}

// A capture without a broken rule has a green page.
func TestPageOfASoundCaptureIsGreen(t *testing.T) {
	if out := pageOf(t, "rping-basic"); !strings.Contains(out, `<p class="outcome green"><strong>OK</strong> no rule was broken in 1 connection</p>`) {
		t.Error("the verdict is not there")
	}
}

// Of a large capture the browser decompresses what it shows.
func TestPageOfALargeCaptureLoadsWhatIsShown(t *testing.T) {
	p := New(dissect.Options{})
	start := time.Unix(1_800_000_000, 0)
	for i := range 200_000 {
		c := &dissect.Connection{Number: 1 + i/100_000}
		e := &dissect.Event{
			Kind: dissect.KindMessage, Conn: c, From: dissect.Side(i % 2), At: capture.At{Time: start.Add(time.Duration(i) * time.Microsecond), Packet: i},
			Message: &dissect.Message{Op: rdmap.OpSend, MSN: uint32(i / 2), Length: 200},
		}
		if err := p.Handle(e); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := p.Write(&b, "urnic", "large.pcap", &dissect.Result{}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 5<<20 {
		t.Errorf("the page of 200,000 events has %d bytes", b.Len())
	}
	var got struct {
		Names []string
		Rows  []string
		Last  string
	}
	pagetest.Browse(t, b.String(), "", probeTools+`
out.names = [...parts.keys()];
await set("connection", 2); await until(() => rows().length === 300); out.rows = rows().slice(0, 1);
`, &got)
	if !slices.Equal(got.Names, []string{"index", "charts", "rows-0"}) {
		t.Errorf("at first it decompresses %q", got.Names)
	}
	if !slices.Equal(got.Rows, []string{"Send msn=50000 len=200"}) {
		t.Errorf("connection 2 begins with %q", got.Rows)
	}
}

// Time beyond the last bucket makes each two into one; nothing gets lost.
func TestChartKeepsAllBytes(t *testing.T) {
	c := newChart()
	for i := range 5000 {
		c.at(float64(i) * 1e-4).bytes[0] += 10
		if b := c.at(float64(i) * 1e-4); b.open[0] < c.open[0] {
			t.Fatalf("at %d, %d Reads are outstanding", i, b.open[0])
		}
	}
	s, sum := c.series(), uint64(0)
	for _, n := range s.Bytes[0] {
		sum += n
	}
	if sum != 50_000 || len(s.Bytes[0]) > buckets || float64(len(s.Bytes[0]))*s.Width < 0.4999 {
		t.Errorf("%d bytes in %d buckets of %g s", sum, len(s.Bytes[0]), s.Width)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}
