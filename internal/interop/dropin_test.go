//go:build interop && dropin

package interop

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A tool is a program of Debian's that runs here on urnic, by `urnic run`.
type tool struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{}
	err  error
}

// startTool starts a tool with a recording of its connections. It is ended with the test.
func startTool(t *testing.T, line string) *tool {
	t.Helper()
	p := &tool{t: t, name: line, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(project, "bin", "urnic"), append([]string{"run", "--"}, strings.Fields(line)...)...)
	p.cmd.Env = append(os.Environ(), "URNIC_SETTLE="+settle.String(), "URNIC_PCAP="+recording(t))
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		<-p.done
	})
	return p
}

// wait waits until a tool has ended well, and returns its output.
func (p *tool) wait() string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
		p.t.Fatalf("%s does not end:\n%s", p.name, p.out.String())
	}
	if p.err != nil {
		p.t.Fatalf("%s: %v\n%s", p.name, p.err, p.out.String())
	}
	return p.out.String()
}

// A pair is one program on both sides, with what its output must have.
type pair struct {
	server, client         string // without port and address
	port                   string // the flag for a port
	wantServer, wantClient string // regular expressions
}

// results is a line of perftest's results for so many octets and iterations.
func results(size, n int) string { return fmt.Sprintf(`(?m)^ %d +%d +[0-9]`, size, n) }

func pairs() []pair {
	ps := []pair{
		{"rping -s -v -V", "rping -c -v -V -C 20 -a", "-p", `server ping data: rdma-ping-19:`, `ping data: rdma-ping-19:`},
		{"rping -s -v -V -S 65535", "rping -c -v -V -C 20 -S 65535 -a", "-p", `server ping data: rdma-ping-19:`, `ping data: rdma-ping-19:`},
		{"rping -q -s -v -V", "rping -q -c -v -V -C 20 -a", "-p", `server ping data: rdma-ping-19:`, `ping data: rdma-ping-19:`},
		{"rdma_server", "rdma_client -s", "-p", "rdma_server: end 0", "rdma_client: end 0"},
	}
	for _, p := range []struct {
		program string
		size, n int
		flags   string
	}{
		{"ib_send_bw", 65536, 100, ""},
		{"ib_send_bw", 4096, 100, "-e"},
		{"ib_send_bw", 1048576, 10, ""},
		{"ib_send_lat", 64, 200, ""},
		{"ib_write_bw", 65536, 100, ""},
		{"ib_write_bw", 1048576, 10, "-b"},
		{"ib_write_lat", 64, 200, ""},
		{"ib_read_bw", 65536, 100, ""},
		{"ib_read_bw", 1048576, 10, ""},
		{"ib_read_lat", 64, 100, ""},
	} {
		line := fmt.Sprintf("%s -R -F -s %d -n %d %s", p.program, p.size, p.n, p.flags)
		ps = append(ps, pair{line, line, "-p", "local address", results(p.size, p.n)})
	}
	return ps
}

func (p pair) String() string { return strings.TrimSpace(strings.TrimSuffix(p.client, " -a")) }

func wantMatch(t *testing.T, who, out, want string) {
	t.Helper()
	if !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("%s shows nothing like %s:\n%s", who, want, out)
	}
}

func TestDebiansToolsOnUrnicAsClientsOfSIW(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			there := theGuest.start(t, fmt.Sprintf("%s %s %d", p.server, p.port, portTools))
			theGuest.listens(t, portTools)
			here := startTool(t, fmt.Sprintf("%s 127.0.0.1 %s %d", p.client, p.port, theGuest.ports[portTools]))
			wantMatch(t, "ours", here.wait(), p.wantClient)
			wantMatch(t, "siw's", there.wait(), p.wantServer)
			checkRecording(t, recording(t), server)
		})
	}
}

func TestDebiansToolsOnUrnicAsServersOfSIW(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			port, err := freePort()
			if err != nil {
				t.Fatal(err)
			}
			here := startTool(t, fmt.Sprintf("%s %s %d", p.server, p.port, port))
			waitFor(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			there := theGuest.start(t, fmt.Sprintf("%s %s %s %d", p.client, hostOfGuest, p.port, port))
			wantMatch(t, "siw's", there.waitTool(), p.wantClient)
			wantMatch(t, "ours", here.wait(), p.wantServer)
			checkRecording(t, recording(t), client)
		})
	}
}

// waitTool is wait for one of rdma-core's programs. rping exits with -1 if one of its
// threads finds out first that another has closed the event channel which it waits at.
func (p *process) waitTool() string {
	p.t.Helper()
	if strings.HasPrefix(p.name, "rping") {
		<-p.done
		return p.output()
	}
	return p.wait()
}

func TestUcmatoseOnUrnicAtSIWsServer(t *testing.T) {
	there := theGuest.start(t, "ucmatose "+ucmatoseFlags(portTools))
	theGuest.listens(t, portTools)
	here := startTool(t, "ucmatose -s 127.0.0.1 "+ucmatoseFlags(theGuest.ports[portTools]))
	wantMatch(t, "ours", here.wait(), "(?s)data transfers complete.*return status 0")
	wantMatch(t, "siw's", there.wait(), "(?s)data transfers complete.*return status 0")
	checkRecording(t, recording(t), server)
}

// ucmatose's server speaks first: see TestUcmatoseOfSIWWithAServerOfOurs.
func TestUcmatoseOnUrnicServesSIW(t *testing.T) {
	theGuest.set(t, "peer_to_peer", "1")
	defer theGuest.set(t, "peer_to_peer", "0")
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	here := startTool(t, "ucmatose "+ucmatoseFlags(port))
	waitFor(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	there := theGuest.start(t, "ucmatose -s "+hostOfGuest+" "+ucmatoseFlags(port))
	wantMatch(t, "siw's", there.wait(), "(?s)data transfers complete.*return status 0")
	wantMatch(t, "ours", here.wait(), "(?s)data transfers complete.*return status 0")
	checkRecording(t, recording(t), client)
}
