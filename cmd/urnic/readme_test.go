package main

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"urnic/internal/test/loopback"
)

// readmeCommands returns the commands of urnic in the code blocks of the README,
// without the prompt.
func readmeCommands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	block := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			block = !block
		}
		if command, is := strings.CutPrefix(line, "$ urnic "); is && block {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// The commands of the README do what a reader hopes for: each succeeds, and
// complains of nothing.
func TestCommandsOfTheReadmeSucceed(t *testing.T) {
	commands := readmeCommands(t)
	if len(commands) < 5 {
		t.Fatalf("the README has only %d commands of urnic: %q", len(commands), commands)
	}
	t.Chdir(t.TempDir())
	ports := map[string]string{} // one of our own for each that the README has
	network := loopback.Of(t)    // in place of 127.0.0.x, where others may have nodes
	var background []*process
	for _, command := range commands {
		command, behind := strings.CutSuffix(command, " &")
		args := strings.Fields(command)
		if args[0] == "run" {
			readmeRun(t, args)
			continue
		}
		if args[0] == "nfsd" || args[0] == "nfs" || args[0] == "rpc" {
			background = append(background, readmeFiles(t, args, behind, ports)...)
			continue
		}
		if args[0] == "rds" {
			background = append(background, readmeDatagrams(t, args, behind, network)...)
			continue
		}
		if args[0] == "rx" {
			background = append(background, readmeRx(t, args, behind, ports)...)
			continue
		}
		if args[0] == "rdp" {
			background = append(background, readmeRDP(t, args, behind, ports)...)
			continue
		}
		if args[0] == "perf" || args[0] == "conform" {
			background = append(background, readmeService(t, args, behind, ports)...)
			continue
		}
		port := ""
		if i := slices.Index(args, "-p"); i >= 0 && i+1 < len(args) {
			if ports[args[i+1]] == "" {
				ports[args[i+1]] = ownPort(t)
			}
			port = ports[args[i+1]]
			args[i+1] = port
		}
		if !behind {
			if out := ok(t, args...); out == "" && !slices.Contains(args, "-s") {
				t.Errorf("urnic %s prints nothing", command)
			}
			continue
		}
		background = append(background, start(t, args...))
		if port == "" {
			t.Fatalf("urnic %s &: no -p tells when it is ready", command)
		}
		waitForListener(t, net.JoinHostPort("127.0.0.1", port))
	}
	for _, p := range background {
		if p.args[0] != "rping" {
			p.interrupt()
		}
		p.end(t)
	}
}

// readmeRun checks the flags of an urnic run. What it runs needs programs that are not
// ours: with the build tag dropin, a test of package main in cmd/liburnic runs it.
func readmeRun(t *testing.T, args []string) {
	t.Helper()
	end := slices.Index(args, "--")
	if end < 0 || end == len(args)-1 {
		t.Errorf("urnic %s: no program after --", strings.Join(args, " "))
		return
	}
	ok(t, slices.Concat(args[:end], []string{"--lib", libraries(t), "--print-env"})...)
}

// readmeService runs a command of urnic perf or conform, whose server listens until
// it is interrupted. A server in the background is returned. Rounds are shorter than
// a reader's.
func readmeService(t *testing.T, args []string, behind bool, ports map[string]string) (background []*process) {
	t.Helper()
	const host = "127.0.0.1"
	for i, arg := range args {
		if _, port, err := net.SplitHostPort(arg); err == nil {
			if ports[port] == "" {
				ports[port] = ownPort(t)
			}
			args[i] = net.JoinHostPort(host, ports[port])
		}
	}
	if behind {
		p := start(t, args...)
		p.out.wait(t, "listening at ")
		return []*process{p}
	}
	if args[0] == "perf" {
		args = append(args, "--duration", "10ms", "--rounds", "1")
		if slices.Contains(args, "--baseline") {
			args = append(args, "--baseline-try", "1ms")
		}
	} else if slices.Contains(args, "--target") { // where some cases wait for a share of it
		args = append(args, "--timeout", "20s")
	}
	if out := ok(t, args...); out == "" {
		t.Errorf("urnic %s prints nothing", strings.Join(args, " "))
	}
	return nil
}

// readmeFiles runs a command of urnic nfsd, nfs or rpc, at free ports in place of those that
// are the default. A server in the background is returned.
func readmeFiles(t *testing.T, args []string, behind bool, ports map[string]string) (background []*process) {
	t.Helper()
	const tcp, rdma = "2049", "20049"
	for _, port := range []string{tcp, rdma} {
		if ports[port] == "" {
			ports[port] = ownPort(t)
		}
	}
	if behind {
		p := start(t, append(args, "--tcp", "127.0.0.1:"+ports[tcp], "--rdma", "127.0.0.1:"+ports[rdma])...)
		p.out.wait(t, "listening at ")
		return []*process{p}
	}
	quiet := false
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "nfs+rdma://127.0.0.1/"):
			args[i] = strings.Replace(arg, "127.0.0.1/", "127.0.0.1:"+ports[rdma]+"/", 1) + "?mountport=" + ports[tcp]
		case strings.HasPrefix(arg, "nfs://127.0.0.1/"):
			args[i] = strings.Replace(arg, "127.0.0.1/", "127.0.0.1:"+ports[tcp]+"/", 1)
		case arg == "127.0.0.1:"+rdma:
			args[i] = "127.0.0.1:" + ports[rdma]
		case arg == "put", arg == "get":
			quiet = true
		}
	}
	if slices.Contains(args, "bench") {
		args = append(args, "--duration", "10ms", "--file-size", "4M")
	}
	if out := ok(t, args...); out == "" && !quiet {
		t.Errorf("urnic %s prints nothing", strings.Join(args, " "))
	}
	return nil
}

// readmeDatagrams runs a command of urnic rds, between addresses of the loopback network that
// nobody else has. The passive side in the background is returned.
func readmeDatagrams(t *testing.T, args []string, behind bool, network loopback.Net) (background []*process) {
	t.Helper()
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "127.0.0."):
			args[i] = network.Addr(netip.MustParseAddr(arg).As4()[3]).String()
		case arg == "-T":
			args[i], args[i+1] = "--requests", "100"
		}
	}
	if behind {
		p := start(t, args...)
		p.out.wait(t, "waiting for incoming connection on ")
		return []*process{p}
	}
	if out := ok(t, args...); !strings.Contains(out, "(average)") {
		t.Errorf("urnic %s prints %q", strings.Join(args, " "), out)
	}
	return nil
}

// readmeRx runs a command of urnic rx, at a free port in place of 7009. The server in the
// background is returned.
func readmeRx(t *testing.T, args []string, behind bool, ports map[string]string) (background []*process) {
	t.Helper()
	const port = "7009"
	if behind {
		p, free := rxPerfServer(t, slices.Replace(args[3:], 0, 2, "--log-level", "error")...)
		ports[port] = free
		return []*process{p}
	}
	for i, arg := range args {
		args[i] = strings.Replace(arg, port, ports[port], 1)
	}
	if args[1] == "perf" {
		args = append(args, "--time", "10ms", "--rounds", "1")
	}
	if out := ok(t, args...); out == "" {
		t.Errorf("urnic %s prints nothing", strings.Join(args, " "))
	}
	return nil
}

// readmeRDP runs a command of urnic rdp, at a free port in place of the default. The receiver in the background is returned.
func readmeRDP(t *testing.T, args []string, behind bool, ports map[string]string) (background []*process) {
	t.Helper()
	const port = "10908"
	if behind {
		ownRuntime(t)
		do(t, os.WriteFile("file", []byte("a file"), 0o600), os.Mkdir("incoming", 0o700))
		p, address := startRDP(t, args[1:len(args)-1]...)
		_, ports[port], _ = net.SplitHostPort(address)
		return []*process{p}
	}
	for i, arg := range args {
		args[i] = strings.Replace(arg, port, ports[port], 1)
	}
	if out := ok(t, args...); out == "" {
		t.Errorf("urnic %s prints nothing", strings.Join(args, " "))
	}
	return nil
}

// The beginning of the demonstration's output that the README shows is true.
func TestReadmeShowsWhatTheDemoPrints(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	out := ok(t, "demo", "-q")
	shown := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "ok    ") {
			shown++
			if !strings.Contains(out, line) {
				t.Errorf("the demonstration does not print %q", line)
			}
		}
	}
	if shown == 0 {
		t.Error("the README shows nothing of the demonstration")
	}
}
