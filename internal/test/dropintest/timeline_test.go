//go:build dropin

package dropintest

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A traced is a work request of a Chrome trace.
type traced struct {
	name string
	args map[string]any
}

// timelineOf reads a Chrome trace, and returns the requests in it, and the names of processes and queues.
func timelineOf(t *testing.T, file string) (requests []traced, names []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(b, &trace); err != nil {
		t.Fatal(err)
	}
	for _, e := range trace.TraceEvents {
		switch {
		case e.Ph == "M":
			names = append(names, e.Args["name"].(string))
		case e.Args["wr_id"] != nil:
			requests = append(requests, traced{e.Name, e.Args})
		}
	}
	return requests, names
}

// wantInOrder checks that all requests of a name have these times, in this order, and how many there are.
func wantInOrder(t *testing.T, requests []traced, name string, n int, points ...string) {
	t.Helper()
	count := 0
	for _, r := range requests {
		if r.name != name {
			continue
		}
		count++
		last := 0.0
		for _, p := range points {
			at, known := r.args[p].(float64)
			if !known || at < last {
				t.Errorf("%s %v: %s at %v, after %v", name, r.args["wr_id"], p, r.args[p], last)
				return
			}
			last = at
		}
	}
	if count < n {
		t.Errorf("%d requests %s; want %d", count, name, n)
	}
}

// urnic run --timeline shows each request of a C program with its times in order, in both modes and with both kinds of
// completions: Sends, Writes, Reads and receives of rping.
func TestTimelineOfPrograms(t *testing.T) {
	const rounds = 20
	for _, transport := range []string{"", "--transport ethernet "} {
		t.Run("iwarp "+transport, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n, dir := newNetwork(t), directory(t)
				server := n.start(t, m.run(transport+"--timeline "+dir+"/server.json", "rping -s -C 20"))
				server.listens(n, 7174)
				n.start(t, m.run(transport+"--timeline "+dir+"/client.json", "rping -c -a 127.0.0.1 -C 20")).wait()
				server.ends()
				requests, names := timelineOf(t, dir+"/server.json")
				sends := []string{"posted", "first byte out", "last byte out", "completed", "polled"}
				wantInOrder(t, requests, "RDMA Read", rounds, "posted", "first byte out", "first byte in", "placed", "completed", "polled")
				wantInOrder(t, requests, "RDMA Write", rounds, sends...)
				wantInOrder(t, requests, "Send", rounds, sends...)
				wantInOrder(t, requests, "Receive", rounds, "posted", "first byte in", "placed", "completed", "polled")
				if all := strings.Join(names, "\n"); !strings.Contains(all, ", send queue") || !strings.Contains(all, ", receive queue") {
					t.Errorf("%q", names)
				}
				requests, _ = timelineOf(t, dir+"/client.json")
				wantInOrder(t, requests, "Send", rounds, sends...)
			})
		})
	}
}

// Both ends under one command are on one page, where what is placed at the peer is known. Status and signals are the
// program's.
func TestTimelineOfAShell(t *testing.T) {
	n, dir := newNetwork(t), directory(t)
	script := "rping -s -C 5 & while ! rping -c -a 127.0.0.1 -C 5; do sleep 0.1; done; wait; exit 7"
	p := n.start(t, interpose.runArgs("--timeline "+dir+"/both.json", "sh", "-c", script))
	if out := p.wait(7); !strings.Contains(out, "urnic: sh has ended with status 7") {
		t.Errorf("%q", out)
	}
	requests, _ := timelineOf(t, dir+"/both.json")
	wantInOrder(t, requests, "Send", 20, "posted", "first byte out", "placed")
	wantInOrder(t, requests, "RDMA Write", 5, "posted", "first byte out", "placed")

	p = n.start(t, interpose.runArgs("--timeline "+dir+"/killed.html", "rping", "-s"))
	p.listens(n, 7174)
	p.interrupt(syscall.SIGTERM)
	const killed = 128 + int(syscall.SIGTERM)
	if out := p.wait(killed); !strings.Contains(out, "rping was ended by a signal: terminated") {
		t.Errorf("%q", out)
	}
	if page, err := os.ReadFile(dir + "/killed.html"); err != nil || !strings.Contains(string(page), "Timeline of work requests") {
		t.Error(err)
	}
}

// The commands of docs/timeline.md succeed.
func TestCommandsOfTheTimelinePageSucceed(t *testing.T) {
	n, dir := newNetwork(t), directory(t)
	var servers []*program
	shown := 0
	for _, line := range lines(t, "docs/timeline.md", "console") {
		command, is := strings.CutPrefix(line, "$ urnic run ")
		if !is {
			continue
		}
		shown++
		command, behind := strings.CutSuffix(command, " &")
		flags, what, _ := strings.Cut(command, "-- ")
		p := n.start(t, interpose.run(strings.Replace(flags, "--timeline ", "--timeline "+dir+"/", 1), what))
		if behind {
			p.listens(n, 7174)
			servers = append(servers, p)
			continue
		}
		p.wait()
	}
	for _, p := range servers {
		p.ends()
	}
	for _, name := range []string{"server.json", "client.html"} {
		if info, err := os.Stat(dir + "/" + name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if shown != 2 {
		t.Errorf("%d commands", shown)
	}
}
