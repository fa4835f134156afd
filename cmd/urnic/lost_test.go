package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// A full is a standard output that takes nothing, as /dev/full.
type full struct {
	once  sync.Once
	tried chan struct{} // closed at the first attempt
}

func newFull() *full { return &full{tried: make(chan struct{})} }

func (f *full) Write([]byte) (int, error) {
	f.once.Do(func() { close(f.tried) })
	return 0, syscall.ENOSPC
}

// lose runs a command whose output is lost, and returns what it says of that. A server
// is interrupted once it has tried to say something.
func lose(t *testing.T, args ...string) (status int, errOut string) {
	t.Helper()
	keepState(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := newFull()
	ended := make(chan struct{})
	defer close(ended)
	if isServer(args) {
		go func() {
			select {
			case <-out.tried:
				cancel()
			case <-ended:
			}
		}()
	}
	var b bytes.Buffer
	status = run(ctx, args, strings.NewReader(""), out, &b)
	select {
	case <-out.tried:
	default:
		t.Errorf("%v prints nothing that could be lost; it says %q", args, b.String())
	}
	return status, b.String()
}

func isServer(args []string) bool {
	words := " " + strings.Join(args, " ") + " "
	for _, s := range []string{" rping -s ", " perf server ", " rx perf server ", " conform serve ", " nfsd ", " rds node ", " rds stress -r ", " rdp recv ", " top --listen "} {
		if strings.HasPrefix(words, s) && !strings.Contains(words, "-h") {
			return true
		}
	}
	return false
}

// No command ends with status 0 if what it printed was lost.
func TestLostOutputIsNoSuccess(t *testing.T) {
	p := startPeers(t)
	pcap, rping, perfServer, target, url, rpc, rxPort, rdpRecv := p.pcap, p.rping, p.perf, p.conform, p.file, p.rpc, p.rxPort, p.rdpRecv
	at := p.rds
	report := filepath.Join(t.TempDir(), "report.json")
	ok(t, "conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--json", report)
	rdpStream := greeter(t)
	commands := [][]string{
		{},
		{"version"},
		{"help"},
		{"help", "perf"},
		{"completion", "bash"},
		{"completion", "fish"},
		{"completion", "powershell"},
		{"completion", "zsh"},
		{"demo"},
		{"demo", "--quiet"},
		{"demo", "--json"},
		{"demo", "--pcap", "-"},
		{"devinfo"},
		{"devinfo", "--json"},
		{"dissect", pcap},
		{"dissect", "--summary", pcap},
		{"dissect", "--summary", "--json", pcap},
		{"dissect", "--json", pcap},
		{"rping", "-s", "-P", "-a", "127.0.0.1", "-p", ownPort(t), "--pcap", "-"},
		{"rping", "-c", "-a", "127.0.0.1", "-p", rping, "-C", "1", "-v"},
		{"rping", "-c", "-a", "127.0.0.1", "-p", rping, "-C", "1", "--json"},
		{"rping", "-c", "-a", "127.0.0.1", "-p", rping, "-C", "1", "--pcap", "-"},
		{"perf"},
		{"perf", "local", "--iters", "5"},
		{"perf", "local", "--iters", "5", "--json"},
		{"perf", "local", "--iters", "5", "--pcap", "-"},
		{"perf", "client", perfServer, "--iters", "5"},
		{"perf", "client", perfServer, "--iters", "5", "--json"},
		{"perf", "server", "--listen", "127.0.0.1:0"},
		{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4"},
		{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--json", "-"},
		{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--junit", "-"},
		{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--html", "-"},
		{"conform", "--list"},
		{"conform", "compare", report, report},
		{"conform", "compare", report, report, "--html", "-"},
		{"conform", "serve", "--listen", "127.0.0.1:0"},
		{"nfsd", "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0", "--memory"},
		{"nfsd", "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0", "--memory", "--json"},
		{"nfs"},
		{"nfs", "ls", url},
		{"nfs", "ls", "-l", url},
		{"nfs", "ls", "--json", url},
		{"nfs", "cat", url},
		{"nfs", "get", "--json", url, filepath.Join(t.TempDir(), "copy")},
		{"nfs", "put", "--json", pcap, url},
		{"nfs", "bench", "--local", "--duration", "1ms", "--file-size", "64K", "--size", "64K", "--test", "null"},
		{"rpc"},
		{"rpc", "info", rpc},
		{"rpc", "info", "--json", rpc},
		{"rpc", "call", rpc, "100000", "4", "0"},
		{"rds"},
		{"rds", "info"},
		{"rds", "info", "--json"},
		{"rds", "ping", "-c", "1", "--source", at.own, "--transport-port", at.port, at.peer},
		{"rds", "ping", "-c", "1", "--source", at.own, "--transport-port", at.port, "--json", at.peer},
		{"rds", "ping", "-c", "1", "--source", at.own, "--transport-port", at.port, "--pcap", "-", at.peer},
		{"rds", "node", "--transport-port", at.port, at.passive},
		{"rds", "node", "--transport-port", at.port, "--json", at.passive},
		{"rds", "stress", "-r", at.passive, "-p", ownPort(t)},
		{"rx"},
		{"rx", "debug", "127.0.0.1", rxPort},
		{"rx", "debug", "127.0.0.1", rxPort, "--json"},
		{"rx", "debug", "127.0.0.1", rxPort, "--version", "--pcap", "-"},
		{"rx", "call", "127.0.0.1:" + rxPort, "147", "3", "int:3", "int:4", "int:4", "int:0", "int:0"},
		{"rx", "call", "127.0.0.1:" + rxPort, "147", "3", "int:3", "int:4", "int:4", "int:0", "int:0", "--json"},
		{"rx", "call", "127.0.0.1:" + rxPort, "147", "3", "int:3", "int:4", "int:4", "int:0", "int:0", "--out", "-"},
		{"rx", "call", "127.0.0.1:" + rxPort, "147", "3", "int:3", "int:4", "int:4", "int:0", "int:0", "--pcap", "-"},
		{"rx", "perf"},
		{"rx", "perf", "server", "--listen", "127.0.0.1:0"},
		{"rx", "perf", "client", "127.0.0.1:" + rxPort, "--calls", "5"},
		{"rx", "perf", "client", "127.0.0.1:" + rxPort, "--calls", "5", "--json"},
		{"rx", "perf", "client", "127.0.0.1:" + rxPort, "--calls", "5", "--pcap", "-"},
		{"rdp"},
		{"rdp", "send", "-v", pcap, rdpRecv},
		{"rdp", "send", "--json", pcap, rdpRecv},
		{"rdp", "send", "--pcap", "-", pcap, rdpRecv},
		{"rdp", "recv", "-d", t.TempDir(), "127.0.0.1:0"},
		{"rdp", "recv", "-d", t.TempDir(), "--json", "127.0.0.1:0"},
		{"rdp", "cat", "--stream", rdpStream},
		{"rdp", "ping", "-c", "1", rdpRecv},
		{"rdp", "ping", "-c", "1", "--json", rdpRecv},
		{"rdp", "status"},
		{"rdp", "status", "--json"},
		{"run", "--help"},
		{"sysfs", "--help"},
		{"man", "--help"},
		{"top", "--once", "--interval", "10ms"},
		{"top", "--once", "--interval", "10ms", "--json"},
		{"top"},
		{"top", "--prometheus"},
		{"timeline", "--help"},
		{"top", "--listen", "127.0.0.1:0"},
	}
	tested := map[string]bool{}
	root := newRootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, args := range commands {
		if cmd, _, err := root.Find(args); err == nil {
			tested[cmd.CommandPath()] = true
		}
	}
	var all func(*cobra.Command)
	all = func(cmd *cobra.Command) {
		if cmd.Runnable() && !tested[cmd.CommandPath()] {
			t.Errorf("%s is not tested", cmd.CommandPath())
		}
		help, _ := strings.CutPrefix(cmd.CommandPath()+" --help", "urnic ")
		commands = append(commands, strings.Fields(help))
		for _, c := range cmd.Commands() {
			if c.Name() != cobra.ShellCompRequestCmd && c.Name() != cobra.ShellCompNoDescRequestCmd {
				all(c)
			}
		}
	}
	all(root)
	for _, args := range commands {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			status, errOut := lose(t, args...)
			want := 1
			if len(args) > 0 && args[0] == "run" {
				want = statusOfRun
			}
			if args = append(args, "(stdout is full)"); strings.Contains(strings.Join(args, " "), "demo --pcap -") {
				_, errOut, _ = strings.Cut(errOut, "\nurnic: ") // behind the ladder
				errOut = "urnic: " + errOut
			}
			wantErrorStatus(t, args, want, status, errOut, syscall.ENOSPC.Error())
		})
	}
}

// With a recording on standard output, the steps go to standard error.
func TestLostStandardErrorIsNoSuccess(t *testing.T) {
	var out bytes.Buffer
	if status := run(t.Context(), []string{"demo", "--pcap", "-"}, nil, &out, newFull()); status != 1 || out.Len() == 0 {
		t.Errorf("status %d, %d bytes", status, out.Len())
	}
}

// The same with the device, in a process of its own.
func TestOutputToAFullDeviceIsNoSuccess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /dev/full")
	}
	for _, args := range [][]string{{"version"}, {"demo", "--quiet"}, {"perf", "local", "--iters", "5"}, {"perf", "local", "--iters", "5", "--json"}} {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := command(t, args...)
		var errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = f, &errOut
		err = cmd.Run()
		var failed *exec.ExitError
		if !errors.As(err, &failed) || failed.ExitCode() != 1 || !strings.Contains(errOut.String(), "no space left") {
			t.Errorf("%v: %v, %q", args, err, errOut.String())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is written into files must be there as well.
func TestLostFilesAreNoSuccess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /dev/full")
	}
	const device = "/dev/full"
	target := conformTarget(t)
	_, rping := serve(t, "127.0.0.1", "-P")
	for _, args := range [][]string{
		{"demo", "--quiet", "--pcap", device},
		{"perf", "local", "--iters", "5", "--pcap", device},
		{"perf", "local", "--iters", "5", "--svg", device},
		{"perf", "local", "--iters", "5", "--html", device},
		{"perf", "local", "--iters", "5", "--cpuprofile", device},
		{"rping", "-c", "-a", "127.0.0.1", "-p", rping, "-C", "1", "--pcap", device},
		{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--json", device},
		{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--junit", device},
		{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--html", device},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			status, _, errOut := urnic(t, nil, args...)
			wantError(t, args, status, errOut, syscall.ENOSPC.Error())
		})
	}
}
