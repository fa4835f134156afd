//go:build dropin

package dropintest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A program is one that runs in a network, with its children in a group of their own.
type program struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error

	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes what the program prints.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// output is what the program has printed so far, on standard output and error.
func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// patientTimes keep what a program sees from depending on when its threads run. rping, for example, has to act on the last
// message before it hears of the connection's end.
const patientTimes = "URNIC_TIMES=fetch=10s,act=2s,refused=1m,connect=2m,request=2m,reply=2m,service=2m,disconnect=2m,release=2m," +
	"farewell=2s,come=2m,gone-least=10s,gone-most=10s"

// start starts a program in the network, with patientTimes unless env says otherwise. What is left of it ends with the test.
func (n *network) start(t *testing.T, line []string, env ...string) *program {
	t.Helper()
	p := &program{t: t, name: strings.Join(line, " "), done: make(chan struct{})}
	p.cmd = exec.Command(line[0], line[1:]...)
	p.cmd.Dir = directory(t)
	p.cmd.Env = append(append(os.Environ(), "HOME="+p.cmd.Dir, "XDG_RUNTIME_DIR="+p.cmd.Dir, patientTimes), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: unprivileged}
	var err error
	n.do(func() { err = p.cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		killGroup(p.cmd.Process.Pid)
		<-p.done
	})
	return p
}

// directory makes a directory that is the unprivileged user's: t.TempDir lies in one
// that is nobody else's business.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "urnic-dropin-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if unprivileged != nil {
		if err := os.Chown(dir, int(unprivileged.Uid), int(unprivileged.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// wait waits until the program has ended by itself, with status 0 or one of those given,
// and returns its output.
func (p *program) wait(statuses ...int) string {
	p.t.Helper()
	p.ends()
	if ended, ok := errors.AsType[*exec.ExitError](p.err); ok {
		for _, s := range statuses {
			if ended.ExitCode() == s {
				return p.output()
			}
		}
	}
	if p.err != nil {
		p.t.Fatalf("%s: %v\n%s", p.name, p.err, p.output())
	}
	return p.output()
}

// ends waits until the program has ended by itself, somehow.
func (p *program) ends() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end:\n%s\n%s", p.name, p.output(), p.where())
	}
}

// where says what a program's threads wait for, for who looks into why it hangs.
func (p *program) where() string {
	const pid = "/proc/%d/task"
	dir := fmt.Sprintf(pid, p.cmd.Process.Pid)
	tasks, _ := os.ReadDir(dir)
	var b strings.Builder
	for _, task := range tasks {
		name, _ := os.ReadFile(dir + "/" + task.Name() + "/comm")
		at, _ := os.ReadFile(dir + "/" + task.Name() + "/wchan")
		fmt.Fprintf(&b, "thread %s %s waits in %s\n", task.Name(), bytes.TrimSpace(name), at)
	}
	return b.String()
}

// interrupt sends a signal, and waits until the program has ended because of it, or
// by itself.
func (p *program) interrupt(s syscall.Signal) {
	p.t.Helper()
	_ = p.cmd.Process.Signal(s) // it may have ended
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end when told so by %v:\n%s\n%s", p.name, s, p.output(), p.where())
	}
}

// listens waits until a port is listened to. It fails if the program ends before.
func (p *program) listens(n *network, port int) {
	p.t.Helper()
	until(p.t, fmt.Sprintf("%s listens on port %d", p.name, port), func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("%s: ended without listening on port %d: %v\n%s", p.name, port, p.err, p.output())
		default:
		}
		return n.listening(p.t, port)
	})
}

// serves waits until the program takes requests of rdma_cm for datagrams, at the port of udaddy. It fails if the program ends
// before.
func (p *program) serves(n *network) {
	p.t.Helper()
	until(p.t, fmt.Sprintf("%s serves at port %d", p.name, udaddyPort), func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("%s: ended without serving at port %d: %v\n%s", p.name, udaddyPort, p.err, p.output())
		default:
		}
		return n.takes(p.t, udaddyPort)
	})
}

// says waits until the program has printed a text.
func (p *program) says(text string) {
	p.t.Helper()
	until(p.t, fmt.Sprintf("%s says %q", p.name, text), func() bool {
		if strings.Contains(p.output(), text) {
			return true
		}
		select {
		case <-p.done:
			p.t.Fatalf("%s: ended without saying %q: %v\n%s", p.name, text, p.err, p.output())
		default:
		}
		return false
	})
}

// wantText checks that a text stands in an output so many times.
func wantText(t *testing.T, out, text string, times int) {
	t.Helper()
	if got := strings.Count(out, text); got != times {
		t.Errorf("%q stands %d times in the output; want %d:\n%s", text, got, times, tail(out))
	}
}

// tail is the end of an output.
func tail(out string) string {
	const most = 2000
	if len(out) > most {
		return "[…]" + out[len(out)-most:]
	}
	return out
}
