package rpcbindtest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
)

// inNamespace is set in a test's process once it is in namespaces of its own.
const inNamespace = "URNIC_RPCBIND_NAMESPACE"

// Alone runs a test in a process with a network, and a /run, of its own: port 111 is free
// there, whoever runs the tests and whatever the host serves. It reports whether this is
// that process. The test is skipped, or fails where CI is set, without these programs.
func Alone(t *testing.T, programs ...string) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		settle(t)
		return true
	}
	for _, p := range programs {
		if Find(p) == "" {
			if os.Getenv("CI") != "" {
				t.Fatalf("there is no %s: on Debian, apt-get install rpcbind", p)
			}
			t.Skipf("there is no %s: on Debian, apt-get install rpcbind", p)
		}
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") == "" {
		t.Skipf("user namespaces are not allowed here: %v", err)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// settle makes the namespaces fit for use.
func settle(t *testing.T) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
	// The service gives up its rights and becomes another user, of which there is none but
	// root here.
	users := filepath.Join(t.TempDir(), "passwd")
	must(os.WriteFile(users, []byte("root:x:0:0::/:/bin/sh\n_rpc:x:0:0::/:/bin/sh\nrpc:x:0:0::/:/bin/sh\n"), 0o644))
	must(unix.Mount(users, "/etc/passwd", "", unix.MS_BIND, ""))
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	must(err)
	defer func() { must(unix.Close(fd)) }()
	lo, err := unix.NewIfreq("lo")
	must(err)
	lo.SetUint16(unix.IFF_UP)
	must(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}

// letGroupsBe makes programs that this goroutine starts believe that they have no groups
// any more: the service ends if it can't give them up, as nobody can in a user namespace.
func letGroupsBe(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // for good: no other goroutine is to believe it
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SETGROUPS, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO}, // 0
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		t.Fatal(err)
	}
}

// Find returns where a program is, which may not be in everybody's PATH.
func Find(program string) string {
	for _, p := range []string{program, "/usr/sbin/" + program, "/sbin/" + program} {
		if p, err := exec.LookPath(p); err == nil {
			return p
		}
	}
	return ""
}

// Start runs the distribution's rpcbind, with more arguments, until the test ends. It waits
// until that answers.
func Start(t *testing.T, args ...string) {
	t.Helper()
	letGroupsBe(t)
	cmd := exec.CommandContext(t.Context(), Find("rpcbind"), append([]string{"-f"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // with this thread, which stays until then
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s", out.Bytes())
		}
	})
	for _, dial := range []oncrpc.Dial{rpcbind.Here(), oncrpc.OverTCP("127.0.0.1:"+rpcbind.Port, oncrpc.TCPConfig{})} {
		c := rpcbind.NewClient(oncrpc.NewClient(dial, oncrpc.ClientConfig{Dials: 100, BackoffMost: 200 * time.Millisecond}))
		_, err := c.GetTime(t.Context())
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
