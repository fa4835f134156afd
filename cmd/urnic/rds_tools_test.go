package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Ping takes an interval as rds-ping does.
func TestRDSPingIntervals(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1": time.Second, "0.5": 500 * time.Millisecond, "100msec": 100 * time.Millisecond, "100ms": 100 * time.Millisecond,
		"250usec": 250 * time.Microsecond, "250us": 250 * time.Microsecond, "1e-3": time.Millisecond, "0.5msec": 500 * time.Microsecond, "2m": 2 * time.Minute,
	} {
		var i rdsInterval
		if err := i.Set(text); err != nil || time.Duration(i) != want {
			t.Errorf("%s: %v, %v; want %v", text, &i, err, want)
		}
	}
	for _, text := range []string{"", "x", "msec", "1 sec", "NaN", "inf", "1e30", "0x"} {
		if err := new(rdsInterval).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	ownRuntime(t)
	at := rdsNetOf(t)
	rdsPeer(t, at, "tcp")
	for _, interval := range []string{"1", "0.5", "1msec"} {
		ok(t, "rds", "ping", "-c", "1", "-i", interval, "-I", at.own, "--transport-port", at.port, at.peer)
	}
}

// Info shows the links of each transport, and more with -v.
func TestRDSInfoOfLinks(t *testing.T) {
	for transport, other := range map[string]string{"tcp": "iwarp", "iwarp": "tcp"} {
		ownRuntime(t)
		at := rdsNetOf(t)
		node := startRDSNode(t, at, "--transport", transport, at.own)
		ping := start(t, "rds", "ping", "--no-info", "--source", at.peer, "--transport", transport, "--transport-port", at.port, at.own)
		ping.out.wait(t, "   1: ")
		flag := map[string]string{"tcp": "-T", "iwarp": "-I"}
		heading := map[string]string{"tcp": "TCP links", "iwarp": "iWARP links"}
		row := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(at.peer) + ` +0 +0 +up +\d+ +\d+ +(-|\d+ms) +no`)
		if out := ok(t, "rds", "info", flag[transport]); !strings.Contains(out, "\n"+heading[transport]+":\nPeer ") || !row.MatchString(out) || strings.Contains(out, "Counters") {
			t.Errorf("%s: %s", flag[transport], out)
		}
		if out := ok(t, "rds", "info", flag[other]); !strings.Contains(out, "\n"+heading[other]+":\nPeer ") || strings.Contains(out, at.peer) {
			t.Errorf("%s: %s", flag[other], out)
		}
		if out := ok(t, "rds", "info", "-v"); !strings.Contains(out, "\n"+heading[transport]+":") || strings.Contains(out, heading[other]) ||
			!strings.Contains(out, "  Flags  Generation  Unread\n") || !strings.Contains(out, "  Path  Again\n") || strings.Contains(out, "  FlowControl  Credit  Owed\n") != (transport == "iwarp") {
			t.Errorf("-v: %s", out)
		}
		ping.interrupt()
		ping.end(t)
		node.interrupt()
		node.end(t)
	}
}

// Options of rds-stress that urnic lacks say what to do, with the status of rds-stress for a wrong option. The page has each.
func TestRDSStressOptionsThatAreMissing(t *testing.T) {
	page, err := os.ReadFile("../../docs/rds.md")
	do(t, err)
	for args, want := range map[string]string{
		"-R":                 "-R, --rtprio: not in urnic; use chrt --rr 1 urnic rds stress",
		"--rtprio":           "-R, --rtprio: not in urnic; use chrt --rr 1 urnic rds stress",
		"--reset":            "--reset: not in urnic; connections end with their process",
		"--async":            "--async: not in urnic; leave it out",
		"--rdma-key-o-meter": "--rdma-key-o-meter: not in urnic; use --pcap FILE",
		"--cancel-sent-to":   "--cancel-sent-to: not in urnic; leave it out",
		"--abort-after 3":    "--abort-after: not in urnic; use timeout SECONDS urnic rds stress",
	} {
		status, out, errOut := urnic(t, nil, append([]string{"rds", "stress", "-s", "127.0.0.1"}, strings.Fields(args)...)...)
		if status != 2 || out != "" || !strings.HasPrefix(errOut, "urnic: "+want) {
			t.Errorf("%s: status %d, %q, %q", args, status, out, errOut)
		}
		if name, _, _ := strings.Cut(args, " "); !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/rds.md does not have %s", name)
		}
	}
}

// rdsStressed runs both sides over a transport, and returns what the active one prints.
func rdsStressed(t *testing.T, transport string, args ...string) (out, errOut string) {
	t.Helper()
	ownRuntime(t)
	at, port := rdsNetOf(t), ownPort(t)
	common := []string{"-p", port, "--transport", transport, "--transport-port", at.port}
	p := start(t, append([]string{"rds", "stress", "-r", at.passive}, common...)...)
	p.out.wait(t, "waiting for incoming connection")
	status, out, errOut := urnic(t, nil, append(append([]string{"rds", "stress", "-r", at.active, "-s", at.passive}, common...), args...)...)
	if status != 0 {
		t.Errorf("%v: status %d, stderr %q", args, status, errOut)
	}
	p.end(t)
	return out, errOut
}

// -V traces, as in rds-stress: over iWARP. Over TCP it says what to use.
func TestRDSStressTraces(t *testing.T) {
	if _, trace := rdsStressed(t, "iwarp", "-V", "--requests", "2"); !strings.Contains(trace, " QP ") || !strings.Contains(trace, "Send") {
		t.Errorf("it traces %q", trace)
	}
	status, _, errOut := urnic(t, nil, "rds", "stress", "-V")
	if status != 1 || !strings.Contains(errOut, "give --transport iwarp, or record what passes with --pcap") {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// --rdma-use-notify is taken, and changes nothing.
func TestRDSStressUseNotify(t *testing.T) {
	rdsStressed(t, "iwarp", "--rdma-use-notify", "1", "-D", "4096", "-v", "--requests", "2")
}

// --show-outliers prints each request that took longer.
func TestRDSStressOutliers(t *testing.T) {
	out, _ := rdsStressed(t, "tcp", "--show-outliers", "1", "--requests", "50")
	if found := regexp.MustCompile(`(?m)^Found RTT = \d+ us, from port \d+ to port \d+$`).FindAllString(out, -1); len(found) == 0 {
		t.Errorf("it prints %s", out)
	}
	if out, _ := rdsStressed(t, "tcp", "--show-outliers", fmt.Sprint(10*time.Minute.Microseconds()), "--requests", "50"); strings.Contains(out, "Found RTT") {
		t.Errorf("it prints %s", out)
	}
}

// --show-perfdata prints comma-separated values, as many in each line as it has named.
func TestRDSStressPerfData(t *testing.T) {
	out, _ := rdsStressed(t, "tcp", "--show-perfdata", "-T", "2", "-t", "2", "-q", "2K")
	var data strings.Builder
	for line := range strings.Lines(out) {
		if rest, is := strings.CutPrefix(line, "::"); is {
			data.WriteString(rest)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(data.String())).ReadAll() // all have the same number of fields
	do(t, err)
	if len(rows) < 2 || strings.Join(rows[0][:5], ",") != "nr_tasks:count,req_size:bytes,ack_size:bytes,rdma_size:bytes,req_sent:count" ||
		rows[0][10] != "sent:count" || strings.Join(rows[1][:4], ",") != "2,2048,63,0" || rows[1][4] == "0" {
		t.Errorf("it prints %s", out)
	}
	if strings.Contains(out, "tx+rx K/s") {
		t.Errorf("it prints the table, too: %s", out)
	}
}
