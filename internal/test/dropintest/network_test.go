//go:build dropin

package dropintest

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long what happens for certain may take on a busy machine.
const patience = 120 * time.Second

// A network is a network namespace with a loopback interface and nothing else: all
// ports in it are free. A thread stays in it, which does what must be done there.
type network struct {
	todo chan func()
	tid  int
}

// newNetwork makes a network, which lasts as long as the test.
func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{todo: make(chan func())}
	begun := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		n.tid = unix.Gettid()
		begun <- enter()
		for f := range n.todo {
			f()
		}
	}()
	if err := <-begun; err != nil {
		t.Fatalf("a network namespace: %v", err)
	}
	t.Cleanup(func() { close(n.todo) })
	return n
}

// enter takes the thread into a new namespace, and brings the loopback interface up.
func enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}

// do carries f out in the namespace.
func (n *network) do(f func()) {
	done := make(chan struct{})
	n.todo <- func() { defer close(done); f() }
	<-done
}

// listening reports whether something in the network listens on a TCP port.
func (n *network) listening(t *testing.T, port int) bool {
	t.Helper()
	const listen = "0A"
	return n.inTables(t, port, listen, "tcp", "tcp6")
}

// takes reports whether a socket in the network takes datagrams for a UDP port from anybody.
func (n *network) takes(t *testing.T, port int) bool {
	t.Helper()
	const unconnected = "07"
	return n.inTables(t, port, unconnected, "udp", "udp6")
}

// inTables reports whether a table of sockets has one with a port, in a state.
func (n *network) inTables(t *testing.T, port int, state string, tables ...string) bool {
	t.Helper()
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range tables {
		f, err := os.Open("/proc/self/task/" + strconv.Itoa(n.tid) + "/net/" + table)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for s := bufio.NewScanner(f); s.Scan() && !found; {
			fields := strings.Fields(s.Text())
			found = len(fields) > 3 && strings.HasSuffix(fields[1], suffix) && fields[3] == state
		}
		_ = f.Close()
		if found {
			return true
		}
	}
	return false
}

// until waits for a condition that nothing tells of.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// killGroup ends a group of processes.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
