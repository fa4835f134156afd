package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/ulp/rdp"
)

// Pings are answered by a receiver, which goes on waiting for its file.
func TestRDPPing(t *testing.T) {
	ownRuntime(t)
	to := filepath.Join(t.TempDir(), "copy")
	recv, address := startRDP(t, "recv", "-o", to)
	file := filepath.Join(t.TempDir(), "ping.pcapng")
	for _, version := range []string{"1", "2"} {
		args := []string{"rdp", "ping", "-c", "3", "-i", "1ms", "--version", version}
		got := strings.Split(ok(t, append(args, "--pcap", file, address)...), "\n")
		if len(got) != 7 || !strings.HasPrefix(got[0], "RDP port 7 of "+address+", version "+version+": open after ") || !strings.HasPrefix(got[1], "   1: ") ||
			!strings.HasSuffix(got[3], " usec") || got[4] != "--- "+address+" rdp ping statistics ---" || !pingSummary.MatchString(got[5]) {
			t.Errorf("it prints %q", got)
		}
		if out := ok(t, "dissect", "--strict", "--summary", file); !strings.Contains(out, "NUL") {
			t.Errorf("what was dissected:\n%s", out)
		}
		d := json.NewDecoder(strings.NewReader(ok(t, append(args, "--json", address)...)))
		for number := 1; number <= 3; number++ {
			var answer struct {
				Address      string
				Number, Usec int
			}
			if err := d.Decode(&answer); err != nil || answer.Address != address || answer.Number != number || answer.Usec < 1 {
				t.Errorf("%+v, %v", answer, err)
			}
		}
		var sum rdpPings
		if err := d.Decode(&sum); err != nil || sum.Pings != 3 || sum.Answers != 3 || sum.Open < 1 || sum.Usec == nil || sum.Usec.Min > sum.Usec.Max || sum.Error != "" {
			t.Errorf("%+v, %v", sum, err)
		}
	}
	p := start(t, "rdp", "ping", "-i", "1ms", address)
	p.out.wait(t, "   3: ")
	p.interrupt()
	p.end(t)
	p.out.wait(t, "rdp ping statistics")
	p = start(t, "rdp", "ping", "-i", "1ms", "-c", "1000000", address)
	p.out.wait(t, "   3: ")
	p.interrupt()
	if p.wait(t); p.status != 130 {
		t.Errorf("with -c: status %d, stderr %q", p.status, p.errOut.String())
	}
	from, _ := rdpContent(t, 10)
	ok(t, "rdp", "send", from, address)
	recv.end(t)
	if _, err := os.Stat(to); err != nil {
		t.Error(err)
	}
}

func TestRDPPingThroughLosses(t *testing.T) {
	ownRuntime(t)
	recv, address := startRDP(t, "recv", "-d", t.TempDir())
	out := ok(t, "rdp", "ping", "-c", "30", "-i", "1ms", lossy(t, address, 0.2))
	if !strings.Contains(out, "30 pings, 30 answers") || !strings.Contains(out, " sent again, min/mean") {
		t.Errorf("it prints %s", out)
	}
	recv.interrupt()
	recv.end(t)
}

func TestRDPStatus(t *testing.T) {
	ownRuntime(t)
	if status, out, errOut := urnic(t, nil, "rdp", "status"); status != 0 || out != "" || !strings.Contains(errOut, "no process of this user shows an RDP endpoint") {
		t.Errorf("without an endpoint: status %d, %q, %q", status, out, errOut)
	}
	recv, address := startRDP(t, "recv", "-d", t.TempDir())
	r, w := io.Pipe()
	send := startWith(t, r, "rdp", "send", "--version", "1", "-", address)
	_, err := w.Write([]byte("begun"))
	do(t, err)
	statusShows(t, "recv", "RDP endpoint "+address+", process ", "\nListening at port 7, 0 connections not accepted yet\n", "\nVersion  Port  Peer ", "\n1        7     127.0.0.1:", "OPEN   sequenced")
	statusShows(t, "send", "OPEN   sequenced")
	if out := ok(t, "rdp", "status", "--counters"); !strings.Contains(out, "\nEndpoint: received ") || !strings.Contains(out, " messages 1") {
		t.Errorf("counters:\n%s", out)
	}
	for line := range strings.Lines(ok(t, "rdp", "status", "--json")) {
		var report struct {
			PID      int
			Command  string
			Endpoint rdp.Info
		}
		if err := json.Unmarshal([]byte(line), &report); err != nil || report.PID != os.Getpid() || len(report.Endpoint.Connections) != 1 {
			t.Errorf("%s, %v", line, err)
		}
	}
	w.Close()
	send.end(t)
	status, _, errOut := urnic(t, nil, "rdp", "status", "1", "./nothing", "name")
	if status != 1 || !strings.Contains(errOut, "process 1 shows no RDP endpoint") || !strings.Contains(errOut, "./nothing: there is no such socket") ||
		!strings.Contains(errOut, "name: give a process ID") {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	recv.interrupt()
	recv.end(t)
}
