package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/test/loopback"
)

// silent listens, and answers nobody. Who connects is told to the channel.
func silent(t *testing.T) (address string, connected <-chan struct{}) {
	t.Helper()
	return silentAt(t, "tcp", "127.0.0.1:0")
}

// silentAt is silent at an address of a network.
func silentAt(t *testing.T, network, at string) (address string, connected <-chan struct{}) {
	t.Helper()
	some := make(chan struct{}, 1)
	came := func() {
		select {
		case some <- struct{}{}:
		default:
		}
	}
	if network == "udp" {
		c, err := net.ListenPacket(network, at)
		do(t, err)
		go func() {
			for {
				if _, _, err := c.ReadFrom(make([]byte, 1<<16)); err != nil {
					return
				}
				came()
			}
		}()
		t.Cleanup(func() { _ = c.Close() })
		return c.LocalAddr().String(), some
	}
	l, err := net.Listen(network, at)
	do(t, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			came()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), some
}

// interruptible are commands that wait for a peer that does not answer.
var interruptible = []string{
	"rping -c -a 127.0.0.1 -p PORT",
	"rping -c -a 127.0.0.1 -p PORT -C 1 --json",
	"rping -c -a 127.0.0.1 -p PORT -C 1 --log-level error",
	"perf client ADDRESS",
	"rpc call ADDRESS nfs 3",
	"rpc call ADDRESS nfs 3 --rdma",
	"rpc call ADDRESS nfs 3 --json",
	"rpc info ADDRESS",
	"nfs ls nfs://ADDRESS/x?mountport=PORT",
	"nfs ls nfs://ADDRESS/x",
	"nfs cat nfs+rdma://ADDRESS/x?mountport=PORT",
	"nfs get nfs://ADDRESS/x?mountport=PORT DIR",
	"nfs get -R --json nfs://ADDRESS/x?mountport=PORT DIR",
	"nfs put DIR/f nfs://ADDRESS/x?mountport=PORT",
	"nfs put -R DIR nfs://ADDRESS/x?mountport=PORT",
	"nfs bench nfs://ADDRESS/x?mountport=PORT",
	"nfs bench --json nfs://ADDRESS/x?mountport=PORT",
	"conform --target ADDRESS",
	"conform --target ADDRESS --profile urnic",
	"conform --target ADDRESS --profile rping",
	"rds ping -c 1 --source SOURCE --transport-port PORT HOST",
	"rds ping -c 1 --source SOURCE --transport iwarp --transport-port PORT HOST",
	"rds ping -c 1 --source SOURCE --transport-port PORT HOST --json",
	"rds stress -s HOST -r SOURCE -p PORT --requests 1 --json",
	"rds info --timeout 1h SOCKET",
	"rx debug HOST UDP --timeout 1h",
	"rx debug HOST UDP --timeout 1h --json",
	"rx call HOST:UDP 7 1 --timeout 1h",
	"rx call HOST:UDP 7 1 --timeout 1h --json",
	"rx call HOST:PORT 7 1 --timeout 1h --transport rdma",
	"rx perf client HOST:UDP --timeout 1h",
	"rx perf client HOST:UDP --timeout 1h --json",
	"rx perf client HOST:UDP --timeout 1h --baseline",
	"rx perf client HOST:PORT --timeout 1h --transport rdma",
	"rdp send --connect-timeout 1h DIR/f HOST:UDP",
	"rdp send --connect-timeout 1h --json DIR/f HOST:UDP",
	"rdp cat --connect-timeout 1h HOST:UDP",
	"rdp cat --connect-timeout 1h --stream HOST:UDP",
	"rdp ping --timeout 1h HOST:UDP",
	"rdp ping --timeout 1h -c 1 --json HOST:UDP",
	"rdp status --timeout 1h SOCKET",
	"rdp status --timeout 1h --json SOCKET",
	"top --once --timeout 1h --top DIR",
	"top --once --timeout 1h --top DIR --json",
	"top --prometheus --timeout 1h --top DIR",
}

// Work that is interrupted ends with the status that shells know, and says no more than
// that, whatever it was waiting for.
func TestInterruptedWorkEndsWithAStatusOfItsOwn(t *testing.T) {
	for _, line := range interruptible {
		t.Run(line, func(t *testing.T) {
			ownRuntime(t)
			network := loopback.Of(t)
			host := network.Addr(1).String()
			address, connected := silentAt(t, "tcp", host+":0")
			_, port, err := net.SplitHostPort(address)
			do(t, err)
			at, datagram := silentAt(t, "udp", host+":0")
			_, udp, err := net.SplitHostPort(at)
			dir := t.TempDir()
			do(t, err, os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "f"), []byte("f"), 0o600))
			socket := filepath.Join(dir, "rnic-1-0.sock")
			_, asked := silentAt(t, "unix", socket)
			line = strings.ReplaceAll(line, "127.0.0.1 -p", host+" -p")
			p := start(t, strings.Fields(strings.NewReplacer(
				"ADDRESS", address, "HOST", host, "PORT", port, "UDP", udp, "DIR", dir, "SOCKET", socket, "SOURCE", network.Addr(2).String(),
			).Replace(line))...)
			select {
			case <-connected:
			case <-datagram:
			case <-asked:
			case <-p.done:
			case <-time.After(hangGuard):
				t.Errorf("it connects to nobody")
			}
			p.wasInterrupted(t)
			wantInterruptedJSON(t, p)
		})
	}
}

// wantInterruptedJSON checks that what a command says with --json of its error is what it says to people.
func wantInterruptedJSON(t *testing.T, p *process) {
	t.Helper()
	if !slices.Contains(p.args, "--json") || p.args[0] == "rds" && p.args[1] == "ping" { // whose errors are of addresses
		return
	}
	for line := range strings.Lines(p.out.String()) {
		var r struct{ Error string }
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Error != "" && r.Error != "interrupted" {
			t.Errorf("%v: %v, %s", p.args, err, line)
		}
	}
}

// The same in the middle of the work.
func TestWorkIsInterruptedInItsMiddle(t *testing.T) {
	ownRuntime(t)
	_, rping := serve(t, "127.0.0.1", "-P")
	_, perf := servePerf(t)
	_, rx := rxPerfServer(t)
	_, rdp := startRDP(t, "recv", "-d", t.TempDir())
	for _, tt := range []struct{ args, begun string }{
		{"perf local --duration 1h", "cores"},
		{"perf local --json --duration 1h", ""},
		{"perf local --llp rdp --duration 1h", "cores"},
		{"perf client --duration 1h " + perf, "write bw"},
		{"perf client --duration 1h --poll busy " + perf, "write bw"},
		{"perf client --duration 1h --json " + perf, ""},
		{"nfs bench --local --duration 1h", ""},
		{"nfs bench --local --duration 1h --json", ""},
		{"rping -c -a 127.0.0.1 -C 2000000000 -v -p " + rping, "rdma-ping-0: "},
		{"rping -c -a 127.0.0.1 -C 2000000000 --json -p " + rping, ""},
		{"rx perf client --time 1h 127.0.0.1:" + rx, ""},
		{"rx perf client --time 1h --json 127.0.0.1:" + rx, ""},
		{"rdp ping -i 1ms -c 1000000000 " + rdp, "   3: "},
		{"rdp ping -i 1ms -c 1000000000 --json " + rdp, `"number":3`},
		{"rdp recv -v -o FILE 127.0.0.1:0", "listening at"},
		{"rdp recv -v -d DIR -n 2 127.0.0.1:0", "listening at"},
		{"rdp cat -l 127.0.0.1:0", ""},
		{"rdp cat -l --stream 127.0.0.1:0", ""},
	} {
		t.Run(tt.args, func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, strings.Fields(strings.NewReplacer("FILE", filepath.Join(dir, "file"), "DIR", dir).Replace(tt.args))...)
			if tt.begun != "" {
				p.out.wait(t, tt.begun)
			}
			p.wasInterrupted(t)
			wantInterruptedJSON(t, p)
		})
	}
}

// A command that is interrupted before it begins says so, or does its work if that takes no
// time. There is none for which something else is true.
func TestEachCommandMayBeInterruptedBeforeItBegins(t *testing.T) {
	ownRuntime(t)
	keepState(t)
	capture := temp(t, []byte{0xd4, 0xc3, 0xb2})
	short := []string{"version", "devinfo", "man", "sysfs", "conform compare", "timeline"} // which look at no context
	servers := []string{"perf server", "rx perf server", "conform serve", "nfsd", "top", "rds node", "rds stress"}
	given := map[string]string{
		"demo": "-q", "rping": "-c -a 127.0.0.1 -p 1", "perf local": "", "perf server": "--listen 127.0.0.1:0", "perf client": "127.0.0.1:1",
		"nfsd": "--memory --tcp 127.0.0.1:0 --rdma 127.0.0.1:0", "nfs ls": "nfs://127.0.0.1:1/x?mountport=1", "nfs cat": "nfs://127.0.0.1:1/x?mountport=1",
		"nfs get": "nfs://127.0.0.1:1/x?mountport=1 DIR", "nfs put": capture + " nfs://127.0.0.1:1/x?mountport=1", "nfs bench": "nfs://127.0.0.1:1/x?mountport=1",
		"dissect": capture, "conform": "--target 127.0.0.1:1", "conform serve": "--listen 127.0.0.1:0", "top": "",
		"rpc call": "127.0.0.1:1 nfs 3", "rpc info": "127.0.0.1:1", "rds ping": "-c 1 --source NET2 NET1", "rds node": "NET1", "rds stress": "-r NET1 -p 0", "rds info": "./none",
		"rx perf server": "--listen 127.0.0.1:0", "rx perf client": "127.0.0.1:1", "rx call": "127.0.0.1:1 7 1", "rx debug": "127.0.0.1 1",
		"rdp send": capture + " 127.0.0.1:1", "rdp recv": "-o DIR/file 127.0.0.1:0", "rdp cat": "127.0.0.1:1", "rdp ping": "127.0.0.1:1", "rdp status": "./none",
	}
	network := loopback.Of(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			all(c)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "urnic"), " ")
		args, is := given[name]
		switch {
		case slices.Contains(short, name), name == "run", !cmd.Runnable(), cmd.HasSubCommands() && !is:
			return // run has no context: a program takes its place
		case !is:
			t.Errorf("%s is not tested", name)
			return
		}
		args = strings.NewReplacer("DIR", t.TempDir(), "NET1", network.Addr(1).String(), "NET2", network.Addr(2).String(), "-p 0", fmt.Sprintf("-p %d", loopback.Port(t))).Replace(args)
		var out, errOut output
		status := run(ended, strings.Fields(name+" "+args), strings.NewReader(""), &out, &errOut)
		want, says := statusInterrupted, "urnic: interrupted\n"
		if slices.Contains(servers, name) {
			want, says = 0, ""
		}
		if status != want || errOut.String() != says {
			t.Errorf("%s %s: status %d, stderr %q", name, args, status, errOut.String())
		}
	}
	all(newRootCommand())
}

// Work is interrupted too that waits for its input.
func TestWorkThatWaitsForItsInputIsInterrupted(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none")
	defer s.stop(t)
	for _, args := range [][]string{{"dissect", "-"}, {"dissect", "--summary", "-"}, {"nfs", "put", "-", s.urls("/memory/f")["tcp"]}} {
		r, w := io.Pipe()
		p := startWith(t, r, args...)
		_, err := w.Write([]byte{0xd4, 0xc3, 0xb2}) // once it is read, more is waited for
		do(t, err)
		if args[0] == "nfs" { // the file was made, and what it had before is lost
			p.interrupt()
			p.wait(t)
			if p.status != statusInterrupted || p.errOut.String() != "urnic: interrupted: /memory/f is incomplete on the server\n" {
				t.Errorf("%v: status %d, stderr %q", args, p.status, p.errOut.String())
			}
		} else {
			p.wasInterrupted(t)
		}
		do(t, w.Close())
	}
}

// A process ends so by either signal, a server that is told to end with 0, whoever it
// serves.
func TestSignalsEndWorkAndServers(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		address, connected := silent(t)
		cmd := command(t, "rpc", "call", address, "nfs", "3")
		var errOut output
		cmd.Stderr = &errOut
		do(t, cmd.Start())
		await(t, connected)
		do(t, cmd.Process.Signal(signal))
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || errOut.String() != "urnic: interrupted\n" {
			t.Errorf("%v: %v, stderr %q", signal, err, errOut.String())
		}
		for _, args := range [][]string{
			{"rping", "-s", "-P", "-a", "127.0.0.1", "-p", ownPort(t), "--log-level", "info"},
			{"rping", "-s", "-a", "127.0.0.1", "-p", ownPort(t), "--log-level", "info"},
			{"perf", "server", "--listen", "127.0.0.1:0"},
			{"rx", "perf", "server", "--listen", "127.0.0.1:0"},
			{"nfsd", "--memory", "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0"},
			{"conform", "serve", "--listen", "127.0.0.1:0"},
			{"rdp", "recv", "-d", t.TempDir(), "127.0.0.1:0"},
			{"rds", "node", "--no-info", "--transport-port", ownPort(t), loopback.Of(t).Addr(1).String()},
		} {
			cmd := command(t, args...)
			var out, errOut output
			cmd.Stdout, cmd.Stderr = &out, &errOut
			cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+t.TempDir())
			do(t, cmd.Start())
			if args[0] == "rping" {
				waitForListener(t, "127.0.0.1:"+args[len(args)-3])
			} else {
				out.wait(t, "listening at")
			}
			do(t, cmd.Process.Signal(signal))
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v, %v: %v, stderr %q", args, signal, err, errOut.String())
			}
		}
	}
}

// A server ends with 0 in the middle of its work, too: it is told to end.
func TestServersThatServeEndWithSuccess(t *testing.T) {
	for _, more := range [][]string{{}, {"-P"}} {
		server, port := serve(t, "127.0.0.1", more...)
		client := start(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-v")
		client.out.wait(t, "rdma-ping-0: ")
		server.interrupt()
		server.end(t)
		client.interrupt()
		client.wait(t)
	}
}

// A client of rping that is interrupted sums up its rounds, as ping does.
func TestRpingSumsUpWhenItIsInterrupted(t *testing.T) {
	sum := regexp.MustCompile(`(?m)^--- 127\.0\.0\.1:\d+ rping statistics ---\n[1-9]\d* rounds of 100 bytes in \d+\.\d{3} s, min/avg/max = \d+\.\d{3}/\d+\.\d{3}/\d+\.\d{3} ms\n$`)
	_, port := serve(t, "127.0.0.1", "-P")
	for count, status := range map[string]int{"0": 0, "2000000000": 130} {
		client := start(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", count, "-S", "100", "-v")
		client.out.wait(t, "rdma-ping-2: ")
		client.interrupt()
		client.wait(t)
		if out := client.out.String(); client.status != status || !sum.MatchString(out) {
			t.Errorf("-C %s: status %d; %q ends with %q", count, client.status, client.errOut.String(), out[max(0, len(out)-200):])
		}
		silent := start(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", count, "--json")
		silent.interrupt()
		silent.wait(t)
		if out := silent.out.String(); strings.Contains(out, "statistics") {
			t.Errorf("--json: %q", out)
		}
	}
}
