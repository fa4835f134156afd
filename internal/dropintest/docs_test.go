//go:build dropin

package dropintest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of urnic run in the pages do what a reader hopes for, one after the other.
func TestCommandsOfThePagesSucceed(t *testing.T) {
	ports := map[string]int{"rping": 7174, "ib_write_bw": 18515, "ibv_rc_pingpong": pingpongPort}
	for _, page := range []string{"README.md", "docs/drop-in.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(project, page))
			if err != nil {
				t.Fatal(err)
			}
			n := newNetwork(t)
			var servers []*program
			commands := 0
			for line := range strings.Lines(string(text)) {
				command, is := strings.CutPrefix(strings.TrimSpace(line), "$ urnic run ")
				if !is {
					continue
				}
				commands++
				command, behind := strings.CutSuffix(command, " &")
				flags, what, ok := strings.Cut(command, "-- ")
				if !ok {
					t.Fatalf("no program in: urnic run %s", command)
				}
				p := n.start(t, interpose.run(flags, what))
				if !behind {
					p.wait()
					for _, s := range servers {
						s.wait()
					}
					servers = nil
					continue
				}
				name, _, _ := strings.Cut(what, " ")
				p.listens(n, ports[name])
				servers = append(servers, p)
			}
			if commands < 2 || len(servers) > 0 {
				t.Errorf("%d commands, and %d servers without a client", commands, len(servers))
			}
		})
	}
}
