//go:build interop && dropin

package interop

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/loopback"
)

// A tool is a program of Debian's that runs here on urnic, by `urnic run`.
type tool struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{}
	err  error
}

// startTool starts a tool with a recording of its connections. It is ended with the test.
func startTool(t testing.TB, line string) *tool {
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
		if t.Failed() {
			t.Logf("ours shows:\n%s\nand its recording at the end:\n%s", p.out.String(), endOfRecording(t))
		}
	})
	return p
}

// ends waits until a tool has ended.
func (p *tool) ends() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
		p.t.Fatalf("%s does not end:\n%s", p.name, p.out.String())
	}
}

// wait waits until a tool has ended well, and returns its output.
func (p *tool) wait() string {
	p.t.Helper()
	p.ends()
	if p.err != nil {
		p.t.Fatalf("%s: %v\n%s", p.name, p.err, p.out.String())
	}
	return p.out.String()
}

// A pair is one program on both sides, with what its output must have.
type pair struct {
	server, client         string // without port and address
	wantServer, wantClient string // regular expressions
	// serverFirst says that the server is the first to send something. As MPA Responder
	// ours may do so only in the peer-to-peer model, which siw asks for if told.
	serverFirst bool
	twice       bool // the server listens once more, for a second connection
	// refused is what a client on siw says, and then waits for ever, if Linux does not let
	// it do for an RNIC what it does.
	refused string
}

// results is a line of perftest's results for so many octets and iterations.
func results(size, n int) string { return fmt.Sprintf(`(?m)^ %d +%d +[0-9]`, size, n) }

func pairs() []pair {
	const ucmatoseDone = "(?s)data transfers complete.*return status 0"
	ps := []pair{
		{server: "rping -s -v -V", client: "rping -c -v -V -C 20 -a", wantServer: `server ping data: rdma-ping-19:`, wantClient: `ping data: rdma-ping-19:`},
		{server: "rping -s -v -V -S 65535", client: "rping -c -v -V -C 20 -S 65535 -a", wantServer: `server ping data: rdma-ping-19:`, wantClient: `ping data: rdma-ping-19:`},
		{
			server: "rping -q -s -v -V", client: "rping -q -c -v -V -C 20 -a", wantServer: `server ping data: rdma-ping-19:`, wantClient: `ping data: rdma-ping-19:`,
			refused: "rdma_establish: Invalid argument",
		},
		{server: "rdma_server", client: "rdma_client -s", wantServer: "rdma_server: end 0", wantClient: "rdma_client: end 0"},
		{server: "ucmatose " + ucmatoseLoad, client: "ucmatose " + ucmatoseLoad + " -s", wantServer: ucmatoseDone, wantClient: ucmatoseDone, serverFirst: true},
	}
	const streamDone = "usec/xfer\n[a-z0-9_]+ +[0-9]"
	for _, line := range []string{
		"rstream -T v -S 4096 -C 20 -I 2",
		"rstream -T v -T b -S 100000 -C 10 -I 1",
		"rstream -T v -T n -S 100000 -C 5 -I 1",
		"riostream -T v -S 65536 -C 10 -I 1",
	} {
		ps = append(ps, pair{server: line, client: line + " -s", wantServer: streamDone, wantClient: streamDone})
	}
	for _, p := range []struct {
		program string
		size, n int
		flags   string
	}{
		{"ib_send_bw", 65536, 50, ""},
		{"ib_send_bw", 1 << 20, 5, "-b"},
		{"ib_send_lat", 64, 100, ""},
		{"ib_send_lat", 4096, 50, "-e"},
		{"ib_write_bw", 65536, 50, ""},
		{"ib_write_bw", 1 << 20, 5, "-b"},
		{"ib_write_lat", 64, 100, ""},
		{"ib_read_bw", 65536, 50, ""},
		{"ib_read_bw", 1 << 20, 5, ""},
		{"ib_read_lat", 64, 100, ""},
	} {
		line := strings.TrimSpace(fmt.Sprintf("%s -R -F -s %d -n %d %s", p.program, p.size, p.n, p.flags))
		ps = append(ps, pair{
			server: line, client: line, wantServer: "local address", wantClient: results(p.size, p.n),
			serverFirst: p.program == "ib_write_lat", twice: true,
		})
	}
	return ps
}

func (p pair) String() string { return strings.TrimSpace(strings.TrimSuffix(p.client, " -a")) }

func wantMatch(t testing.TB, who, out, want string) {
	t.Helper()
	if !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("%s shows nothing like %s:\n%s", who, want, out)
	}
}

func TestDebiansToolsOnUrnicAsClientsOfSIW(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			withSIW(t, server, func(t testing.TB) {
				tellOfBugs(t)
				there, here := p.run(t, p.connect)
				wantMatch(t, "ours", here.wait(), p.wantClient)
				wantMatch(t, "siw's", there.waitTool(), p.wantServer)
				checkRecording(t, recording(t), server)
			})
		})
	}
}

func TestDebiansToolsOnUrnicAsServersOfSIW(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			if p.serverFirst {
				theGuest.peerToPeer(t, true)
				defer theGuest.peerToPeer(t, false)
			}
			if p.refused != "" {
				tellOfBugs(t)
				there, _ := p.serve(t)
				there.expect(p.refused)
				return
			}
			withSIW(t, client, func(t testing.TB) {
				tellOfBugs(t)
				there, here := p.run(t, p.serve)
				wantMatch(t, "siw's", there.waitTool(), p.wantClient)
				wantMatch(t, "ours", here.wait(), p.wantServer)
				checkRecording(t, recording(t), client)
			})
		})
	}
}

// run runs a pair to the end.
func (p pair) run(t testing.TB, start func(testing.TB) (*process, *tool)) (there *process, here *tool) {
	t.Helper()
	there, here = start(t)
	here.ends()
	there.ends()
	return there, here
}

// connect starts a server on siw, and a client of ours.
func (p pair) connect(t testing.TB) (there *process, here *tool) {
	t.Helper()
	there = theGuest.start(t, fmt.Sprintf("%s -p %d", p.server, portTools))
	theGuest.listens(t, portTools)
	port := theGuest.ports[portTools]
	if p.twice {
		port = relay(t, theGuest.address(portTools), func() error {
			out, err := theGuest.try(t, listening(portTools))
			if err != nil {
				return fmt.Errorf("nobody listens at port %d of the guest: %w: %s", portTools, err, out)
			}
			return nil
		})
	}
	return there, startTool(t, fmt.Sprintf("%s 127.0.0.1 -p %d", p.client, port))
}

// serve starts a server of ours, and a client on siw.
func (p pair) serve(t testing.TB) (there *process, here *tool) {
	t.Helper()
	port := int(loopback.Port(t))
	here = startTool(t, fmt.Sprintf("%s -p %d", p.server, port))
	if err := awaitListener(port, here.done); err != nil {
		t.Fatal(err)
	}
	at := port
	if p.twice {
		at = relay(t, fmt.Sprintf("127.0.0.1:%d", port), func() error { return awaitListener(port, here.done) })
	}
	return theGuest.start(t, fmt.Sprintf("%s %s -p %d", p.client, hostOfGuest, at)), here
}

// relay carries connections to an address, each once somebody listens there,
// and returns its own port. perftest's server closes its listener after the first
// connection and makes another one for the second, and nothing tells the client when it
// is there; on either side, the client may be quicker. When the connection is refused,
// the client tries again with an rdma_cm_id that it has freed, and crashes (perftest
// 4.5, on any device).
func relay(t testing.TB, address string, awaitListener func() error) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	carry := func(here net.Conn) {
		defer here.Close()
		if err := awaitListener(); err != nil {
			t.Error(err)
			return
		}
		there, err := net.Dial("tcp4", address)
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		var ways sync.WaitGroup
		for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
			ways.Go(func() {
				_, _ = io.Copy(way[1], way[0]) // the end of the connection, in whatever way
				_ = way[1].(*net.TCPConn).CloseWrite()
			})
		}
		ways.Wait()
	}
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// tellOfBugs has a test that fails tell of what the guest's kernel has to say of itself.
func tellOfBugs(t testing.TB) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if out, _ := theGuest.try(t, "dmesg | grep -A 2 'kernel BUG\\|Oops\\|blocked for more\\|segfault\\|siw:' | tail -30"); out != "" {
			t.Logf("the guest's kernel says:\n%s", out)
		}
	})
}

// ends waits until one of Debian's tools has ended.
func (p *process) ends() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("guest: %s does not end:\n%s", p.name, p.end())
	}
}

// waitTool is wait for one of Debian's tools. rping exits with -1 if one of its threads
// finds out first that another has closed the event channel which it waits at.
func (p *process) waitTool() string {
	p.t.Helper()
	p.ends()
	if p.err != nil && !strings.HasPrefix(p.name, "rping ") {
		p.t.Fatalf("guest: %s: %v\n%s", p.name, p.err, p.output())
	}
	return p.output()
}

// Without the peer-to-peer model, a server of ours that speaks first waits for the
// Initiator's first FPDU (RFC 5044 §7.1.2 rule 4), and siw's client waits for it in turn.
func TestDebiansServerThatSpeaksFirstWaitsForSIW(t *testing.T) {
	tellOfBugs(t)
	port := int(loopback.Port(t))
	startTool(t, fmt.Sprintf("ucmatose %s -p %d", ucmatoseLoad, port))
	waitFor(t, port)
	p := theGuest.start(t, fmt.Sprintf("stdbuf -oL ucmatose %s -s %s -p %d", ucmatoseLoad, hostOfGuest, port))
	p.expect("receiving data transfers") // it is connected
	select {
	case <-p.done:
		t.Errorf("siw's client has ended: %v\n%s", p.err, p.output())
	case <-time.After(5 * time.Second): // a server that does not wait has sent by now
	}
	p.end()
	s := checkRecording(t, recording(t), client)
	for _, c := range s.Connections {
		if n := c.Messages["send"]; n != 0 || c.MPA.Revision != 2 {
			t.Errorf("%d Sends, and MPA revision %d", n, c.MPA.Revision)
		}
	}
}
