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
	for _, page := range []string{"README.md", "docs/datagrams.md", "docs/drop-in.md", "docs/rendezvous.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(project, page))
			if err != nil {
				t.Fatal(err)
			}
			n := newNetwork(t)
			var servers []string
			commands := 0
			for line := range strings.Lines(string(text)) {
				command, is := strings.CutPrefix(strings.TrimSpace(line), "$ urnic run ")
				if !is {
					continue
				}
				commands++
				command, behind := strings.CutSuffix(command, " &")
				servers = append(servers, command)
				if !behind {
					runTogether(t, n, servers)
					servers = nil
				}
			}
			if commands < 2 || len(servers) > 0 {
				t.Errorf("%d commands, and %d servers without a client", commands, len(servers))
			}
		})
	}
}

// So do those of urnic sysfs, in a directory of the test's.
func TestSysfsCommandsOfThePageSucceed(t *testing.T) {
	dir, shown := filepath.Join(directory(t), "sys"), 0
	for _, line := range lines(t, "docs/drop-in.md", "console") {
		if command, is := strings.CutPrefix(line, "$ urnic "); is && strings.HasPrefix(command, "sysfs ") {
			shown++
			newNetwork(t).start(t, urnicCommand(strings.Fields(strings.Replace(command, "/tmp/sys", dir, 1))...)).wait()
		}
	}
	if _, err := os.Stat(dir); shown != 3 || err == nil {
		t.Errorf("%d commands, of which the last one removes %s: %v", shown, dir, err)
	}
}

// runTogether runs commands of urnic run: servers, and last a client.
func runTogether(t *testing.T, n *network, commands []string) {
	t.Helper()
	ports := map[string]int{"rping": 7174, "ib_write_bw": perftestPort, "ibv_rc_pingpong": pingpongPort, "ibv_ud_pingpong": pingpongPort}
	for try := range perftestTries {
		var programs []*program
		for i, command := range commands {
			flags, what, ok := strings.Cut(command, "-- ")
			if !ok {
				t.Fatalf("no program in: urnic run %s", command)
			}
			p := n.start(t, interpose.run(flags, what))
			if i < len(commands)-1 {
				name, _, _ := strings.Cut(what, " ")
				if name == "udaddy" {
					p.serves(n)
				} else {
					p.listens(n, ports[name])
				}
			}
			programs = append(programs, p)
		}
		for _, p := range programs {
			p.ends()
		}
		if try+1 < perftestTries && noReport(programs...) {
			continue
		}
		for _, p := range programs {
			p.wait()
		}
		return
	}
}

// lines returns what stands in the page's blocks of code of a kind.
func lines(t *testing.T, page, kind string) (in []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(project, page))
	if err != nil {
		t.Fatal(err)
	}
	within := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			within = line == "```"+kind
		case within:
			in = append(in, line)
		}
	}
	return in
}

// home makes a home directory in which urnic is installed, with programs of one's own: a
// name and a script each.
func home(t *testing.T, place string, programs map[string]string) string {
	t.Helper()
	dir := directory(t)
	if err := os.Symlink(installed, filepath.Join(dir, place)); err != nil {
		t.Fatal(err)
	}
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The lines for who does without urnic run give programs the library, in either mode.
func TestVariablesOfThePageGiveProgramsTheLibrary(t *testing.T) {
	dir := home(t, ".local", nil)
	env := []string{"HOME=" + dir, "PATH=" + filepath.Join(installed, "bin") + ":" + os.Getenv("PATH")}
	shown := 0
	for _, line := range lines(t, "docs/drop-in.md", "sh") {
		shown++
		t.Run(line, func(t *testing.T) {
			n := newNetwork(t)
			const server = "rping -s"
			if !strings.Contains(line, server) {
				wantText(t, n.start(t, []string{"sh", "-c", line + "\nibv_devices"}, env...).wait(), "urnic0", 1)
				return
			}
			client := strings.Replace(line, server, "rping -c -a 127.0.0.1 -C 2 -v", 1)
			s := n.start(t, []string{"sh", "-c", line}, env...)
			s.listens(n, 7174)
			wantText(t, n.start(t, []string{"sh", "-c", client}, env...).wait(), "ping data", 2)
			s.wait()
		})
	}
	if shown != 3 {
		t.Errorf("%d lines of variables; want 3", shown)
	}
}

// The last command of the recipe for CI runs a script whose programs have the library,
// and leaves their recordings.
func TestRecipeForCIRuns(t *testing.T) {
	const program, prefix = "./my-tests", "- run: "
	dir := home(t, "urnic", map[string]string{"my-tests": `rping -s & for i in 1 2 3 4 5 6 7 8 9; do
	rping -c -a 127.0.0.1 -C 2 -v && break; sleep 1; done; wait`})
	for _, line := range lines(t, "docs/drop-in.md", "yaml") {
		command, is := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if !is || !strings.HasSuffix(command, program) {
			continue
		}
		p := newNetwork(t).start(t, []string{"sh", "-c", "cd $HOME && " + command}, "HOME="+dir)
		wantText(t, p.wait(), "ping data", 2)
		recordings, err := filepath.Glob(filepath.Join(dir, "rdma-*.pcapng"))
		if err != nil || len(recordings) < 2 {
			t.Errorf("%q, %v; want a recording of each program", recordings, err)
		}
		return
	}
	t.Errorf("no command that ends in %s", program)
}
