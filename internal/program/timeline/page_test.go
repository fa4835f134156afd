package timeline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"urnic/internal/page/pagetest"
	"urnic/rnic"
)

// made is a timeline of so many Sends and their receives, of which one has failed.
func made(n int) *Timeline {
	t := &Timeline{Start: time.Unix(1_800_000_000, 0), Processes: []Process{{Number: 1, Name: "17-0", Note: "<b>cut</b>\x1b"}, {Number: 2, Name: "18-0"}}}
	for i := range n {
		at := time.Duration(i) * 10 * time.Microsecond
		us := func(list ...float64) (times [NumPoints]time.Duration) {
			for p, x := range list {
				if times[p] = None; x >= 0 {
					times[p] = at + time.Duration(x*1e3)
				}
			}
			return times
		}
		t.Requests = append(t.Requests,
			Request{QPN: 5, Op: rnic.OpSend, ID: uint64(i), Length: 100, Times: us(1, 2, 4, -1, 5, 4, 8)},
			Request{Process: 1, QPN: 6, Recv: true, Op: rnic.OpRecv, ID: uint64(i), Length: 100, Times: us(0, -1, -1, 4, 5, 6, 9)})
	}
	t.Requests = append(t.Requests, Request{QPN: 5, Op: rnic.OpRead, ID: 1 << 40, Failed: true, Times: [NumPoints]time.Duration{1, None, None, None, None, None, 5000}})
	return t
}

func pageOf(t *testing.T, l *Timeline) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.WritePage(&b, "urnic", "run.html<script>"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page: what is seen first, the table, bars with their phases, pages, the filter, and the times of a request.
func TestPage(t *testing.T) {
	text := pageOf(t, made(1500))
	if strings.Contains(text, "html<script>") || strings.Contains(text, "<b>cut") {
		t.Error("text is not escaped")
	}
	for name, flags := range map[string][]string{"desktop": nil, "phone, dark": {"--window-size=390,800", "--blink-settings=preferredColorScheme=0"}} {
		var got struct {
			Outcome, Count, Later, Failed, Axis, Paper string
			Table                                      [][]string
			First                                      []string
			Bars, Rows, FailedRows                     int
			Times                                      string
			Fits                                       bool
		}
		pagetest.Browse(t, text, "", `
const rows = () => [...document.querySelectorAll("#bars li")].filter(seen);
const form = document.getElementById("filter"), count = document.getElementById("count");
const set = async (name, value) => { form.elements[name].value = value; form.dispatchEvent(new Event("input", { bubbles: true })); await later(); await later(); };
out.outcome = document.querySelector(".outcome").textContent;
out.table = [...document.querySelectorAll("#summary tbody tr")].filter(seen).map((r) => [...r.children].map((c) => c.textContent));
out.rows = rows().length; out.count = count.value; out.axis = document.getElementById("axis").textContent;
out.first = [...rows()[1].querySelectorAll("rect")].map((e) => e.getAttribute("class") + (e.getBoundingClientRect().width > 0 ? "" : " empty"));
rows()[1].querySelector("button").click(); out.times = rows()[1].querySelector("dl").textContent;
document.getElementById("after").click(); await until(() => count.value !== out.count); out.later = count.value;
await set("kind", "failed"); out.failed = rows().map((r) => r.textContent).join(); out.failedRows = rows().length;
await set("kind", ""); await set("queue", "process 2, QP 0x000006"); out.bars = rows().filter((r) => r.textContent.includes("receive") || r.textContent.includes("Receive")).length;
out.paper = getComputedStyle(document.body).backgroundColor;
out.fits = document.documentElement.scrollWidth <= innerWidth;
`, &got, flags...)
		if !strings.HasPrefix(got.Outcome, "3001 work requests 1 failed or were flushed") || !got.Fits {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got.Table) != 3 || strings.Join(got.Table[1], " ") != "Send send 1500 0 150000 1.0 2.0 – – 0.0 4.0 7.0 7.0" || strings.Join(got.Table[2], " ") != got.Table[2][0]+" receive 1500 0 150000 – – 4.0 1.0 1.0 3.0 9.0 9.0" {
			t.Errorf("%s: the table is %q", name, got.Table)
		}
		if got.Rows != 100 || got.Count != "requests 1 to 100" || got.Later != "requests 101 to 200" || !strings.HasPrefix(got.Axis, "0.0 µs") {
			t.Errorf("%s: %+v", name, got)
		}
		if strings.Join(got.First, ",") != "p2,p3,p4,p5" && strings.Join(got.First, ",") != "p0,p1,p4,p5,peer" {
			t.Errorf("%s: the bar has %q", name, got.First)
		}
		if !strings.Contains(got.Times, "posted") || !strings.Contains(got.Times, "polled") {
			t.Errorf("%s: times: %q", name, got.Times)
		}
		if got.FailedRows != 1 || !strings.Contains(got.Failed, "✗ RDMA Read 0x10000000000") || got.Bars != 100 {
			t.Errorf("%s: %+v", name, got)
		}
		if dark := got.Paper == "rgb(21, 23, 26)"; dark != strings.Contains(name, "dark") {
			t.Errorf("%s: the paper is %s", name, got.Paper)
		}
	}
}

// Spans of a Chrome trace are in pairs, within those of their requests, on a track of their queue.
func TestChromeTrace(t *testing.T) {
	var b bytes.Buffer
	l := made(3)
	if err := l.WriteChrome(&b); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []traceEvent
	}
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	tracks, begun, requests := map[string]bool{}, map[string][]traceEvent{}, 0
	for _, e := range trace.TraceEvents {
		switch e.Phase {
		case "M":
			tracks[e.Args["name"].(string)] = true
		case "b":
			stack := begun[e.ID]
			if len(stack) == 0 {
				requests++
				if e.Args["wr_id"] == nil || e.Args["posted"] == nil {
					t.Errorf("%+v", e)
				}
			} else if e.TS < stack[0].TS {
				t.Errorf("%s begins at %f, before %f", e.Name, e.TS, stack[0].TS)
			}
			begun[e.ID] = append(stack, e)
		case "e":
			stack := begun[e.ID]
			last := stack[len(stack)-1]
			if last.Name != e.Name || last.TID != e.TID || e.TS < last.TS {
				t.Errorf("%+v ends %+v", e, last)
			}
			begun[e.ID] = stack[:len(stack)-1]
		default:
			t.Errorf("%+v", e)
		}
	}
	if requests != 7 || !tracks["process 17-0"] || !tracks["QP 0x000005, send queue"] || !tracks["QP 0x000006, receive queue"] {
		t.Errorf("%d requests, tracks %v", requests, tracks)
	}
}
