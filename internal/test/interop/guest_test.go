//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/loopback"
	"urnic/internal/test/ownnet"
)

// The ports of the guest that are forwarded.
const (
	portRping   = 7174
	portOps     = 7200
	portTools   = 7471 // of rdma-core's tools
	portRping6  = 7175
	portNFSRDMA = 20049 // of the kernel's NFS server: nfs-server.sh in the guest
	portNFS     = 2049  // over TCP
	portMount   = 20048
	portRpcbind = 111
	hostOfGuest = "10.0.2.2" // the guest's name for our 127.0.0.1
	hostOfIPv6  = "fec0::2"  // and for our ::1
)

// theGuest is the one that TestMain boots or, in a network of a test's own, linked.
var theGuest *guest

// A guest is a running guest of the lab.
type guest struct {
	name  string
	args  []string    // of up
	ports map[int]int // of the guest, to those of the host
}

func lab(name string) string { return filepath.Join("lab", name) }

// project is the project's directory.
const project = "../../.."

// artifacts is where recordings go.
var artifacts = filepath.Join(project, "artifacts", "interop")

func TestMain(m *testing.M) {
	status, err := withGuest(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func withGuest(run func() int) (status int, err error) {
	if ownnet.Inside() {
		return run(), nil
	}
	if err := os.RemoveAll(artifacts); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return 0, err
	}
	theGuest, err = boot("interop", nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := theGuest.down(); err == nil {
			err = e
		}
	}()
	return run(), nil
}

// boot boots a guest with siw parameters, and arguments of up. A program that is no test may take a port
// before the guest does: then others are chosen.
func boot(name string, params []string, args ...string) (g *guest, err error) {
	for range 3 {
		if g, err = bootOnce(name, params, args); err == nil {
			return g, nil
		}
	}
	return nil, err
}

func bootOnce(name string, params, args []string) (*guest, error) {
	g := &guest{name: fmt.Sprintf("%s-%d", name, os.Getpid()), ports: map[int]int{}}
	g.args = append([]string{"-n", g.name}, args...)
	for _, f := range []struct {
		flag string
		port int
	}{
		{"-p", portRping},
		{"-p", portOps},
		{"-p", portTools},
		{"-6", portRping6},
		{"-p", portNFSRDMA},
		{"-p", portNFS},
		{"-p", portMount},
		{"-p", portRpcbind},
	} {
		port, err := loopback.ProcessPort()
		if err != nil {
			return nil, err
		}
		host := int(port)
		g.ports[f.port] = host
		g.args = append(g.args, f.flag, fmt.Sprintf("%d:%d", host, f.port))
	}
	if len(params) > 0 {
		g.args = append(g.args, "-s", strings.Join(params, ","))
	}
	return g, g.up()
}

func (g *guest) up() error {
	cmd := exec.Command(lab("up"), g.args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("URNIC_LAB_WAIT=%d", patience/time.Second))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the guest did not boot: %w: %s", err, out)
	}
	return nil
}

// down ends the guest, and kill does so with all that it has in memory.
func (g *guest) down() error { return g.end() }
func (g *guest) kill() error { return g.end("-k") }

func (g *guest) end(args ...string) error {
	if out, err := exec.Command(lab("down"), append(args, "-n", g.name)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ending the guest: %w: %s", err, out)
	}
	return nil
}

// address returns where a port of the guest is reached.
func (g *guest) address(port int) string {
	host := "127.0.0.1"
	if port == portRping6 {
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(g.ports[port]))
}

// run runs a command in the guest and returns its output. It fails the test if
// the command does, unless that is wanted.
func (g *guest) run(t testing.TB, command string) string {
	t.Helper()
	out, err := g.try(t, command)
	if err != nil {
		t.Fatalf("guest: %s: %v\n%s%s", command, err, out, g.complaints())
	}
	return out
}

// complaints returns what the guest's kernel says of its own faults.
func (g *guest) complaints() string {
	out, _ := g.tryFor(30*time.Second, "dmesg | grep -A20 -E 'WARNING:|BUG:|BUG at|Oops|general protection'") // it may have ended
	return out
}

func (g *guest) try(t testing.TB, command string) (string, error) {
	t.Helper()
	return g.tryFor(10*time.Minute, command)
}

// tryFor ends the command when it has run for so long, whole seconds.
func (g *guest) tryFor(longest time.Duration, command string) (string, error) {
	limit := strconv.Itoa(int(longest / time.Second))
	out, err := exec.Command(lab("sh"), "-n", g.name, "-t", limit, command).CombinedOutput()
	return string(out), err
}

// longestLine is more than what a command prints in a line: rping prints all that it has
// got, of 65,535 octets.
const longestLine = 1 << 20

// A process is a command that runs in the guest.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd

	mu      sync.Mutex
	lines   []string
	changed chan struct{}
	done    chan struct{} // closed when it has ended
	err     error
}

// start starts a command in the guest. It is ended with the test.
func (g *guest) start(t testing.TB, command string) *process {
	t.Helper()
	p := &process{t: t, name: command, changed: make(chan struct{}), done: make(chan struct{})}
	p.cmd = exec.Command(lab("sh"), "-n", g.name, "-t", "600", command)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s := bufio.NewScanner(out)
		s.Buffer(nil, longestLine)
		for s.Scan() {
			p.add(s.Text())
		}
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() { p.end() })
	if r, ok := t.(*trial); ok {
		r.programs = append(r.programs, p.said)
	}
	return p
}

// said returns what the command has printed, and how it has ended, when it has.
func (p *process) said() said {
	<-p.done
	return said{p.output(), p.err}
}

func (p *process) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
	close(p.changed)
	p.changed = make(chan struct{})
}

// end ends the command, if it has not ended, and returns its output.
func (p *process) end() string {
	const longest = 30 * time.Second
	select {
	case <-p.done:
		return p.output()
	default:
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may end meanwhile
	}
	select {
	case <-p.done:
	case <-time.After(longest): // the guest's kernel does not let go of it
		p.t.Logf("guest: %s does not end when told to", p.name)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return p.output()
}

// wait waits until the command has ended by itself, and fails the test if it
// failed or takes too long.
func (p *process) wait() string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("guest: %s does not end:\n%s", p.name, p.end())
	}
	if p.err != nil {
		p.t.Fatalf("guest: %s: %v\n%s", p.name, p.err, p.output())
	}
	return p.output()
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// patience is how long something may take that happens for certain: the guest
// is emulated, and the machine may be busy.
const patience = 5 * time.Minute

// expect waits for a line that contains all the texts, and returns it.
func (p *process) expect(texts ...string) string {
	p.t.Helper()
	deadline := time.After(patience)
	for seen := 0; ; {
		p.mu.Lock()
		for ; seen < len(p.lines); seen++ {
			if line := p.lines[seen]; containsAll(line, texts) {
				p.mu.Unlock()
				return line
			}
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-p.done:
			if out := p.output(); !containsAll(out, texts) {
				p.t.Fatalf("guest: %s ended (%v) without %q:\n%s", p.name, p.err, texts, out)
			}
		case <-deadline:
			p.t.Fatalf("guest: %s never said %q:\n%s", p.name, texts, p.output())
		}
	}
}

// listens waits until something in the guest listens on a port.
func (g *guest) listens(t testing.TB, port int) {
	t.Helper()
	g.run(t, listening(port))
}

// listening is the command that waits for that.
func listening(port int) string {
	return fmt.Sprintf("for i in $(seq 600); do ss -Hltn 'sport = :%d' | grep -q . && exit 0; sleep 0.1; done; exit 1", port)
}

// peerToPeer sets that parameter of siw.
func (g *guest) peerToPeer(t testing.TB, on bool) {
	t.Helper()
	value := 0
	if on {
		value = 1
	}
	g.run(t, fmt.Sprintf("echo %d >/sys/module/siw/parameters/peer_to_peer", value))
}

// urnic runs the urnic program and returns its output. The end of ctx interrupts
// it, as Ctrl-C does, and err is what it makes of that.
func urnic(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(filepath.Join(project, "bin", "urnic"), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })
	defer stop()
	err = cmd.Wait()
	return out.String(), errs.String(), err
}
