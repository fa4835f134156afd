//go:build linux

package dropin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/loopback"
)

// roleOfProcess is the environment variable that makes this test binary a program
// of its own; see TestProgram.
const roleOfProcess = "URNIC_TEST_PROGRAM"

// A program is a process with one queue pair. It tells number and PSN on its standard
// output, and reads those of its peer from its standard input.
type program struct {
	testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	far far
}

// start runs this binary as a program.
func start(t testing.TB, role string, settings ...string) *program {
	t.Helper()
	p := &program{TB: t, cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProgram$", "-test.timeout=10m")}
	p.cmd.Env = append(append(os.Environ(), settings...), roleOfProcess+"="+role)
	p.cmd.Stderr = t.Output()
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.far = far{gid: loopbackGID, global: true}
	if _, err := fmt.Sscanf(p.line(), "qp %d %d", &p.far.qpn, &p.far.psn); err != nil {
		t.Fatal(err)
	}
	return p
}

// line returns the next line of the program.
func (p *program) line() string {
	p.Helper()
	if !p.out.Scan() {
		p.Fatalf("the program says no more: %v", p.out.Err())
	}
	return p.out.Text()
}

func (p *program) tell(f far) {
	p.Helper()
	if _, err := fmt.Fprintf(p.in, "%d %d\n", f.qpn, f.psn); err != nil {
		p.Fatal(err)
	}
}

func (p *program) end() {
	p.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("the program: %v", err)
	}
}

// TestProgram is what start runs.
func TestProgram(t *testing.T) {
	role := os.Getenv(roleOfProcess)
	if role == "" {
		return // this is not such a process
	}
	n := newCMLab(t, os.Environ()...).near()
	fmt.Println("qp", n.far.qpn, n.far.psn)
	to := far{gid: loopbackGID, global: true}
	if at, err := netip.ParseAddr(os.Getenv("URNIC_RENDEZVOUS")); err == nil {
		to.gid = at.As16()
	}
	if _, err := fmt.Scan(&to.qpn, &to.psn); err != nil {
		t.Fatal(err)
	}
	n.recv(1)
	n.connect(to)
	count := map[uint64]int{} // of completions, which come as they come
	for round := 1; round <= 20; round++ {
		for count[1] < round || count[2] < round-1 {
			wc := n.wc()
			if wc.Status != wcSuccess {
				t.Fatalf("completion of %d with status %d", wc.ID, wc.Status)
			}
			count[wc.ID]++
		}
		copy(n.buf, n.buf[2048:2112])
		n.recv(1)
		if round == 20 && role == "silent" {
			fmt.Println("waiting")
			n.wc() // until it is killed
		}
		n.must("post send", n.send(2))
	}
	n.want(2, wcSuccess)
	n.must("destroy", n.QPDestroy(n.qp))
}

// talkTo sends to a program and takes what it sends back.
func (n *near) talkTo(round int) {
	n.Helper()
	text := fmt.Sprintf("round %2d of QP 0x%x", round, n.far.qpn)
	copy(n.buf, text)
	n.recv(3)
	n.must("post send", n.send(4))
	for range 2 {
		if wc := n.wc(); wc.Status != wcSuccess || wc.ID != 3 && wc.ID != 4 {
			n.Fatalf("completion of %d with status %d", wc.ID, wc.Status)
		}
	}
	if got := string(n.buf[2048:][:len(text)]); got != text {
		n.Fatalf("%q came back; want %q", got, text)
	}
}

// Several processes on one host find each other, whichever is told of its peer first.
func TestProcessesFindEachOther(t *testing.T) {
	const programs = 4
	here := newCMLab(t)
	slots := map[uint32]bool{}
	var nears []*near
	var fars []*program
	for i := range programs {
		n, p := here.near(), start(t, "echo")
		slots[p.far.qpn>>indexBits] = true
		if i%2 == 0 {
			n.connect(p.far)
			p.tell(n.far)
		} else {
			p.tell(n.far)
			n.connect(p.far)
		}
		nears, fars = append(nears, n), append(fars, p)
	}
	if len(slots) != programs || slots[nears[0].far.qpn>>indexBits] {
		t.Errorf("slots %v; that of this process is %d", slots, nears[0].far.qpn>>indexBits)
	}
	for round := range 20 {
		for _, n := range nears {
			n.talkTo(round)
		}
	}
	for _, p := range fars {
		p.end()
	}
}

// rendezvousAt returns settings for rendezvous at an address of a test's own, and the first port: one that neither programs of other
// tests nor the kernel take for all addresses.
func rendezvousAt(a netip.Addr) (first int, settings []string) {
	first = 5000
	return first, []string{fmt.Sprint("URNIC_RENDEZVOUS=", a), fmt.Sprint("URNIC_RENDEZVOUS_PORT=", first)}
}

// A program that is killed leaves its peer an error, and nothing behind.
func TestProgramIsKilled(t *testing.T) {
	where := loopback.Of(t).Addr(1)
	port, settings := rendezvousAt(where)
	n, p := newCMLab(t, settings...).near(), start(t, "silent", settings...)
	p.far.gid = where.As16()
	n.connect(p.far)
	p.tell(n.far)
	for round := range 19 {
		n.talkTo(round)
	}
	n.recv(5)
	n.must("post send", n.send(6))
	n.want(6, wcSuccess)
	if got := p.line(); got != "waiting" {
		t.Fatalf("the program says %q", got)
	}
	port += int(p.far.qpn>>indexBits) - 1
	at := fmt.Sprintf("%v:%d", where, port)
	if l, err := net.Listen("tcp", at); err == nil {
		_ = l.Close()
		t.Errorf("port %d is free though the program is there", port)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the program: %v", err)
	}
	waitFor(t, "the end of the connection", func() bool {
		var attr QPAttr
		n.must("query", n.QPQuery(n.qp, &attr))
		return attr.State == qpsErr
	})
	n.must("post send", n.send(7)) // by which it learns that nobody is there
	n.want(7, wcRetryExceeded)
	n.want(5, wcFlushed)
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatalf("the program has left its port: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	// A program that is told of one that is no more learns it when it sends.
	late := n.near()
	late.times.come = 50 * time.Millisecond
	late.connect(p.far)
	late.must("post send", late.send(8))
	late.want(8, wcRetryExceeded)
}
