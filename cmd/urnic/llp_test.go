package main

import (
	"path/filepath"
	"strings"
	"testing"

	"urnic/internal/program/demo"
)

// The demonstration runs over RDP as over TCP, but for what is MPA's, and its recording keeps RDP's rules.
func TestDemoOverRDP(t *testing.T) {
	name := filepath.Join(t.TempDir(), "demo.pcapng")
	out := ok(t, "demo", "--llp", "rdp", "--pcap", name)
	if n := strings.Count(out, " bytes\n"); n != len(demo.Steps)-3 || !strings.Contains(out, "RDP") {
		t.Errorf("%d steps of %d:\n%s", n, len(demo.Steps), out)
	}
	if out := ok(t, "dissect", "--strict", "--summary", name); !strings.Contains(out, "RDP") || strings.Count(out, "ports ") < 4 {
		t.Errorf("what was dissected:\n%s", out)
	}
}

func TestPerfOverRDP(t *testing.T) {
	for _, args := range [][]string{
		{"--op", "write", "--size", "100K"},
		{"--op", "read", "--size", "100K"},
		{"--op", "send", "--size", "3K"},
		{"--test", "rate"},
		{"--test", "lat"},
		{"--test", "lat", "--poll", "busy"},
		{"--test", "connect"},
		{"--op", "send", "--test", "scale", "--size", "1K", "--qps", "3"},
	} {
		ok(t, append([]string{"perf", "local", "--llp", "rdp", "--iters", "50"}, args...)...)
	}
}

func TestLowerLayersAreNamed(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"demo --llp udp", "--llp udp: must be tcp or rdp"},
		{"perf local --llp x", "--llp x: must be tcp or rdp"},
		{"perf local --llp rdp --markers", "--markers, --mulpdu and --crc off are of MPA over TCP"},
		{"perf local --llp rdp --crc off", "--markers, --mulpdu and --crc off are of MPA over TCP"},
		{"rping -c -a 127.0.0.1 --llp rdp --mpa-revision 1", "--markers, --mpa-revision and --mulpdu are of MPA over TCP"},
	} {
		if status, _, errOut := urnic(t, nil, strings.Fields(tt.args)...); status == 0 || !strings.Contains(errOut, tt.want) {
			t.Errorf("%s: status %d, stderr %q", tt.args, status, errOut)
		}
	}
}

// What the commands record over RDP, urnic dissect explains down to the RDMA messages, and finds no rule broken.
func TestRecordingsOverRDPAreExplained(t *testing.T) {
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"demo --llp rdp --quiet", []string{"DDP over RDP: request", "accept IRD=", "reject IRD=", "RDMA Write stag=", "Atomic Response", "Terminate msn=1", "DDP over RDP: end"}},
		{"perf local --llp rdp --op write --size 100K --iters 20", []string{"DDP over RDP: request", "RDMA Write stag=", "DDP over RDP: end"}},
		{"perf local --llp rdp --op read --size 3K --iters 20", []string{"RDMA Read Request", "RDMA Read Response"}},
	} {
		name := filepath.Join(t.TempDir(), "recording.pcapng")
		ok(t, append(strings.Fields(tt.args), "--pcap", name)...)
		out := ok(t, "dissect", "--strict", name)
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", tt.args, want, out)
			}
		}
		if strings.Contains(out, "RDP data") || strings.Contains(out, "note:") {
			t.Errorf("%s: segments or notes in\n%s", tt.args, out)
		}
		segments := ok(t, "dissect", "--strict", "--segments", "--json", name)
		if !strings.Contains(segments, `"ddp":{"kind":"segment","number":0}`) || !strings.Contains(segments, `"event":"startup"`) {
			t.Errorf("%s: the JSON has neither segments nor start-up:\n%s", tt.args, segments)
		}
		summary := ok(t, "dissect", "--strict", "--summary", "--json", name)
		if !strings.Contains(summary, `"llp":"RDP"`) || !strings.Contains(summary, `"verdict":"ok"`) || !strings.Contains(summary, `"direct_connections":0`) {
			t.Errorf("%s: the summary is\n%s", tt.args, summary)
		}
		if ladder := ok(t, "dissect", "--ladder", name); !strings.Contains(ladder, "|-- DDP over RDP: request") {
			t.Errorf("%s: the ladder is\n%s", tt.args, ladder)
		}
	}
}

// Both sides of rping record, and both recordings show the same.
func TestRpingRecordsOverRDP(t *testing.T) {
	dir := t.TempDir()
	served, pinged := filepath.Join(dir, "served.pcapng"), filepath.Join(dir, "pinged.pcapng")
	port := ownPort(t)
	server := start(t, "rping", "-s", "-a", "127.0.0.1", "-p", port, "--llp", "rdp", "--pcap", served)
	for {
		status, _, errOut := urnic(t, nil, "rping", "-c", "-a", "127.0.0.1", "-p", port, "--llp", "rdp", "-C", "3", "--pcap", pinged)
		if status == 0 {
			break
		}
		if !strings.Contains(errOut, "refused") { // nobody listens yet
			t.Fatalf("status %d, stderr %q", status, errOut)
		}
	}
	server.end(t)
	for _, name := range []string{served, pinged} {
		d := dissected(t, []string{name}, nil)
		if d.Messages["rdma-write"] != 3 || d.Messages["read-request"] != 3 || d.Messages["read-response"] != 3 || d.Messages["send"] != 12 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
