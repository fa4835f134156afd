package top

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"urnic/rnic/rnicinfo"
)

// report is that of a process with so many queue pairs, after so many seconds, of which the last one has
// sent most.
func report(pid int, seconds float64, qps int, messages uint64) *rnicinfo.Report {
	r := &rnicinfo.Report{Version: 1, PID: pid, Seconds: seconds, Command: "program\x1b[2J " + strings.Repeat("long ", 40)}
	r.Device.Name = "urnic0"
	r.Device.Held.QPs = uint64(qps)
	r.Device.Messages = []rnicinfo.Messages{{Op: "send", Sent: rnicinfo.Count{Messages: messages, Bytes: messages * 1000}}}
	for i := range qps {
		n := messages * uint64(i)
		r.Device.QPs = append(r.Device.QPs, rnicinfo.QP{
			Num: uint32(i + 1), Type: "RC", State: "RTS", Remote: "[2001:db8:1111:2222:3333:4444:5555:6666]:65535",
			Sent: &rnicinfo.Count{Messages: n, Bytes: n * 1000}, Received: &rnicinfo.Count{}, Outstanding: new(32767), Unpolled: new(0),
		})
	}
	r.Device.QPs = append(r.Device.QPs, rnicinfo.QP{Num: 0xffffff, Type: "UD", State: "ERR", Error: "lost\n\x07"})
	r.Device.CQs = []rnicinfo.CQ{{Num: 1, Entries: 4194304, QPs: qps, Polled: new(messages), Unpolled: new(1 << 20)}}
	r.Device.MRs = []rnicinfo.MR{{STag: "0x00000100", Length: 1 << 62, Access: "local write, remote read, remote write, remote atomic", BytesIn: messages}}
	return r
}

func answers(reports ...*rnicinfo.Report) (all []rnicinfo.Answer) {
	for _, r := range reports {
		all = append(all, rnicinfo.Answer{Path: fmt.Sprintf("/run/rnic-%d-0.sock", r.PID), Report: r})
	}
	return all
}

// Rates are differences over the time of the process, and a counter that falls has none.
func TestRates(t *testing.T) {
	var m Monitor
	now := time.Unix(1e9, 0)
	first := m.round(now, answers(report(1, 10, 2, 100)), 0)
	if r := first.Processes[0].Rates; r.Interval != 0 || r.Sent.Messages != 0 {
		t.Errorf("in the first round: %+v", r)
	}
	r := m.round(now, answers(report(2, 1, 1, 7), report(1, 12, 2, 300)), 0)
	if len(r.Processes) != 2 || r.Processes[0].PID != 1 {
		t.Fatalf("%+v", r.Processes)
	}
	got := r.Processes[0].Rates
	if got.Interval != 2 || got.Sent != (Rate{100, 100e3}) || got.QPs[1].Sent != (Rate{100, 100e3}) || got.CQs[0].Polled != 100 || got.MRs[0].BytesIn != 100 {
		t.Errorf("%+v", got)
	}
	if got := r.Processes[1].Rates; got.Interval != 0 {
		t.Errorf("of a process that is new: %+v", got)
	}
	if got := m.round(now, answers(report(1, 13, 2, 200)), 0).Processes[0].Rates; got.Sent.Messages != 0 || got.QPs[1].Sent.Messages != 0 {
		t.Errorf("of counters that fall: %+v", got)
	}
	if got := m.round(now, answers(report(1, 13, 2, 900)), 0).Processes[0].Rates; got.Interval != 0 || got.Sent.Messages != 0 {
		t.Errorf("without time between: %+v", got)
	}
}

// A process that misses a round has its rates over two.
func TestRatesAfterARoundWithoutAnAnswer(t *testing.T) {
	var m Monitor
	now := time.Unix(1e9, 0)
	m.round(now, answers(report(1, 10, 1, 100)), 0)
	r := m.round(now, []rnicinfo.Answer{{Path: "/run/rnic-1-0.sock", Err: errors.New("no answer within 1s")}}, 0)
	if len(r.Processes) != 0 || len(r.Unanswered) != 1 {
		t.Errorf("%+v", r)
	}
	if got := m.round(now, answers(report(1, 12, 1, 300)), 0).Processes[0].Rates; got.Interval != 2 || got.Sent.Messages != 100 {
		t.Errorf("%+v", got)
	}
}

// Text fits 80 columns, shows the busiest rows, says how many are left out, and lets no process write to the terminal.
func TestText(t *testing.T) {
	var m Monitor
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m.round(now, answers(report(1, 10, 30, 0)), 0)
	list := answers(report(1, 11, 30, 900_000_000_000))
	for i := range 9 {
		list = append(list, rnicinfo.Answer{Path: fmt.Sprintf("/run/rnic-9-%d.sock\x1b", i), Err: errors.New("hangs\x1b\n" + strings.Repeat("x", 100))})
	}
	var b bytes.Buffer
	if err := m.round(now, list, 3).WriteText(&b, 4); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > width || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
	for _, want := range []string{
		"03:04:05   1 process, 30 queue pairs\n", "\nPID 1  program\\x1b[2J long",
		"      QP State     Peer                  Out MB/s In MB/s Out msg/s In msg/s  SQ\n0x00001e RTS       [2001:db8:1111:2222:…", "  26100M     0.0    26100G        0 32k\n",
		"       and 27 more\n", "       1   4194304    30    900000M     1049k\n", "0x00000100          4612P ", "and 5 more without an answer\n", "and 3 processes that were not asked\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Metrics have a type for each name, labels that nobody can break out of, and no rates.
func TestMetrics(t *testing.T) {
	var m Monitor
	r := report(1, 10, 2, 100)
	r.Command = "a\"} 5\nurnic_evil 1 \\ \xff"
	var b bytes.Buffer
	if err := m.round(time.Now(), answers(r), 0).WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	typed := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		if name, is := strings.CutPrefix(line, "# TYPE "); is {
			typed[strings.Fields(name)[0]] = true
			continue
		}
		if name, _, _ := strings.Cut(line, "{"); !strings.HasPrefix(line, "#") && !typed[strings.Fields(name)[0]] {
			t.Errorf("a sample without a type: %q", line)
		}
	}
	for _, want := range []string{
		`urnic_process_info{pid="1",device="urnic0",socket="rnic-1-0.sock",command="a\"} 5\nurnic_evil 1 \\ ?"} 1` + "\n",
		`urnic_qp_messages_total{pid="1",device="urnic0",socket="rnic-1-0.sock",qp="0x000002",direction="sent"} 100` + "\n",
		`urnic_messages_total{pid="1",device="urnic0",socket="rnic-1-0.sock",direction="sent",op="send"} 100` + "\n",
		`urnic_qp_outstanding_requests{pid="1",device="urnic0",socket="rnic-1-0.sock",qp="0x000001"} 32767` + "\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// JSON has lists, not null, when there is nothing.
func TestJSONOfNothing(t *testing.T) {
	var m Monitor
	b, err := json.Marshal(m.round(time.Unix(0, 0).UTC(), nil, 0))
	if want := `{"time":"1970-01-01T00:00:00Z","processes":[],"unanswered":[],"skipped":0}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}
