package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// silent listens, and answers nobody. Who connects is told to the channel.
func silent(t *testing.T) (address string, connected <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	do(t, err)
	some := make(chan struct{}, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			select {
			case some <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), some
}

// Work that is interrupted ends with the status that shells know, and says no more than
// that, whatever it was waiting for.
func TestInterruptedWorkEndsWithAStatusOfItsOwn(t *testing.T) {
	for _, args := range [][]string{
		{"rping", "-c", "-a", "127.0.0.1", "-p", "PORT"},
		{"rping", "-c", "-a", "127.0.0.1", "-p", "PORT", "-C", "1", "--json"},
		{"perf", "client", "ADDRESS"},
		{"rpc", "call", "ADDRESS", "nfs", "3"},
		{"rpc", "call", "ADDRESS", "nfs", "3", "--rdma"},
		{"rpc", "info", "ADDRESS"},
		{"nfs", "ls", "nfs://ADDRESS/x?mountport=PORT"},
		{"nfs", "ls", "nfs://ADDRESS/x"},
		{"nfs", "cat", "nfs+rdma://ADDRESS/x?mountport=PORT"},
		{"nfs", "get", "nfs://ADDRESS/x?mountport=PORT", "DIR"},
		{"nfs", "put", "DIR/f", "nfs://ADDRESS/x?mountport=PORT"},
		{"nfs", "bench", "nfs://ADDRESS/x?mountport=PORT"},
		{"nfs", "bench", "--json", "nfs://ADDRESS/x?mountport=PORT"},
		{"conform", "--target", "ADDRESS"},
		{"conform", "--target", "ADDRESS", "--profile", "urnic"},
		{"conform", "--target", "ADDRESS", "--profile", "rping"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			address, connected := silent(t)
			_, port, err := net.SplitHostPort(address)
			dir := t.TempDir()
			do(t, err, os.WriteFile(filepath.Join(dir, "f"), []byte("f"), 0o600))
			for i := range args {
				args[i] = strings.NewReplacer("ADDRESS", address, "PORT", port, "DIR", dir).Replace(args[i])
			}
			p := start(t, args...)
			select {
			case <-connected:
			case <-p.done:
			}
			p.interrupt()
			<-p.done
			if p.status != 130 || p.errOut.String() != "urnic: interrupted\n" {
				t.Errorf("status %d, stderr %q", p.status, p.errOut.String())
			}
		})
	}
	for _, args := range [][]string{{"perf", "local", "--duration", "1h"}, {"perf", "local", "--json", "--duration", "1h"}, {"nfs", "bench", "--local", "--duration", "1h"}} {
		p := start(t, args...)
		if len(args) < 5 {
			p.out.wait(t, "cores")
		}
		p.interrupt()
		<-p.done
		if p.status != 130 || p.errOut.String() != "urnic: interrupted\n" {
			t.Errorf("%v: status %d, stderr %q", args, p.status, p.errOut.String())
		}
	}
}

// Work is interrupted too that waits for its input.
func TestWorkThatWaitsForItsInputIsInterrupted(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none")
	defer s.stop(t)
	for _, args := range [][]string{{"dissect", "-"}, {"dissect", "--summary", "-"}, {"nfs", "put", "-", s.urls("/memory/f")["tcp"]}} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		var errOut output
		status := make(chan int)
		go func() { status <- run(ctx, args, r, io.Discard, &errOut) }()
		_, err := w.Write([]byte{0xd4, 0xc3, 0xb2}) // once it is read, more is waited for
		do(t, err)
		cancel()
		if got := <-status; got != 130 || errOut.String() != "urnic: interrupted\n" {
			t.Errorf("%v: status %d, stderr %q", args, got, errOut.String())
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
		<-connected
		do(t, cmd.Process.Signal(signal))
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || errOut.String() != "urnic: interrupted\n" {
			t.Errorf("%v: %v, stderr %q", signal, err, errOut.String())
		}
		for _, args := range [][]string{
			{"rping", "-s", "-P", "-a", "127.0.0.1", "-p", freePort(t, "127.0.0.1"), "--log-level", "info"},
			{"rping", "-s", "-a", "127.0.0.1", "-p", freePort(t, "127.0.0.1"), "--log-level", "info"},
			{"perf", "server", "--listen", "127.0.0.1:0"},
			{"rx", "perf", "server", "--listen", "127.0.0.1:0"},
			{"nfsd", "--memory", "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0"},
			{"conform", "serve", "--listen", "127.0.0.1:0"},
			{"rdp", "recv", "-d", t.TempDir(), "127.0.0.1:0"},
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
		<-client.done
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
		<-client.done
		if out := client.out.String(); client.status != status || !sum.MatchString(out) {
			t.Errorf("-C %s: status %d; %q ends with %q", count, client.status, client.errOut.String(), out[max(0, len(out)-200):])
		}
		silent := start(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", count, "--json")
		silent.interrupt()
		<-silent.done
		if out := silent.out.String(); strings.Contains(out, "statistics") {
			t.Errorf("--json: %q", out)
		}
	}
}
