//go:build dropin

package dropintest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
)

func urnicCommand(args ...string) []string {
	return append([]string{filepath.Join(installed, "bin", "urnic")}, args...)
}

// rping of urnic's own on one side, Debian's on the other.
func TestRpingOfUrnicAndOfDebian(t *testing.T) {
	const rounds, size = 50, 1000
	for _, host := range []string{"127.0.0.1", "::1"} {
		server := []string{"rping", "-s", "-v", "-V", "-a", host, "-S", fmt.Sprint(size)}
		client := []string{"rping", "-c", "-v", "-V", "-a", host, "-S", fmt.Sprint(size), "-C", fmt.Sprint(rounds)}
		t.Run("server of ours at "+host, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				s := n.start(t, urnicCommand(server...))
				s.listens(n, 7174)
				c := n.start(t, m.runArgs("", client...))
				wantText(t, c.wait(), "ping data: rdma-ping-", rounds)
				wantText(t, s.wait(), "server ping data: rdma-ping-", rounds)
			})
		})
		t.Run("client of ours at "+host, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				s := n.start(t, m.runArgs("", server...))
				s.listens(n, 7174)
				c := n.start(t, urnicCommand(client...))
				wantText(t, c.wait(), "ping data: rdma-ping-", rounds)
				wantText(t, s.wait(), "server ping data: rdma-ping-", rounds)
			})
		})
	}
}

// Many clients of urnic's at one persistent server of Debian's, and the other way round.
func TestPersistentServersOfBothKinds(t *testing.T) {
	const clients, rounds = 4, 1000
	server := []string{"rping", "-s", "-P", "-v"}
	client := []string{"rping", "-c", "-V", "-v", "-a", "127.0.0.1", "-C", fmt.Sprint(rounds)}
	lines := append([]string{"stdbuf", "-oL"}, client...) // printed as they come
	for name, c := range map[string]struct{ server, client []string }{
		"server of ours":   {urnicCommand(server...), interpose.runArgs("", lines...)},
		"server of theirs": {interpose.runArgs("", server...), urnicCommand(client...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t)
			s := n.start(t, c.server)
			s.listens(n, 7174)
			var ps []*program
			for range clients {
				p := n.start(t, c.client)
				p.says("ping data: rdma-ping-3:") // see TestRpingPersistentServer
				ps = append(ps, p)
			}
			for _, p := range ps {
				wantText(t, p.wait(), "ping data: rdma-ping-", rounds)
			}
			s.interrupt(syscall.SIGINT)
		})
	}
}

// What a program does is recorded, and keeps the protocol.
func TestRecordingOfAProgramKeepsTheProtocol(t *testing.T) {
	n := newNetwork(t)
	s := n.start(t, interpose.run("", "rping -s"))
	s.listens(n, 7174)
	const rounds = 10
	c := n.start(t, interpose.run("", fmt.Sprintf("rping -c -a 127.0.0.1 -C %d", rounds)), "URNIC_PCAP=rping-%p.pcapng")
	c.wait()
	s.wait()
	files, err := filepath.Glob(filepath.Join(c.cmd.Dir, "rping-*.pcapng"))
	if err != nil || len(files) != 1 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	out := n.start(t, urnicCommand("dissect", "--summary", "--json", files[0])).wait()
	var summary struct {
		Connections []struct {
			Messages   map[string]int    `json:"messages"`
			Violations []json.RawMessage `json:"violations"`
		} `json:"connections"`
	}
	if err := json.Unmarshal([]byte(out), &summary); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if len(summary.Connections) != 1 {
		t.Fatalf("%d connections:\n%s", len(summary.Connections), out)
	}
	for name, want := range map[string]int{"send": 4 * rounds, "read-request": rounds, "rdma-write": rounds} {
		// An empty RTR frame may come on top: see RFC 6581 §9.
		if got := summary.Connections[0].Messages[name]; got != want && got != want+1 {
			t.Errorf("%d messages %s; want %d:\n%s", got, name, want, out)
		}
	}
	if v := summary.Connections[0].Violations; len(v) != 0 {
		t.Errorf("violations: %s", v)
	}
}
