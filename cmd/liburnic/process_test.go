//go:build dropin

package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/loopback"
)

// plainly compiles a C program as any user would, without sanitizers, which have signal
// handlers and stacks of their own.
func plainly(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := []string{"-std=gnu11", "-D_GNU_SOURCE", "-O2", "-o", out}
	for _, file := range []string{name, "process", "pair", "support"} {
		args = append(args, "tests/"+file+".c")
	}
	if err := command("gcc", append(args, "-libverbs", "-lrdmacm", "-pthread")...); err != nil {
		t.Fatal(err)
	}
	return out
}

// The tests of processes hold without sanitizers too, and for an ordinary user.
func TestProcessesOfAnOrdinaryUser(t *testing.T) {
	lib := libraries(t)
	names, err := filepath.Glob("tests/process_*.c")
	if err != nil || len(names) < 7 {
		t.Fatalf("only %q: %v", names, err)
	}
	for _, path := range names {
		name := strings.TrimSuffix(filepath.Base(path), ".c")
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(built, name+"-anybody")
			if err := errors.Join(os.Chmod(built, 0o755), os.Mkdir(dir, 0o755)); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(dir, os.DirFS(lib)); err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(dir, name)
			if err := os.Rename(plainly(t, name), program); err != nil {
				t.Fatal(err)
			}
			for mode, variable := range map[string]string{
				"interpose": "LD_PRELOAD=" + filepath.Join(dir, "liburnic.so"),
				"replace":   "LD_LIBRARY_PATH=" + filepath.Join(dir, "replace"),
			} {
				cmd := exec.CommandContext(t.Context(), program)
				cmd.Dir = dir
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), patientTimes, variable}
				if os.Getuid() == 0 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", mode, err, tail(string(out), 30))
				}
				for line := range strings.Lines(string(out)) {
					t.Errorf("%s: it says %s", mode, line)
				}
			}
		})
	}
}

// An engine that is missing, or of another version, is told of, and the program finds no
// device.
func TestWhatIsWrongWithTheEngineIsTold(t *testing.T) {
	lib := libraries(t)
	broken := filepath.Join(t.TempDir(), "broken.so")
	if err := os.WriteFile(broken, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.so")
	if err := command("gcc", "-shared", "-fPIC", "-o", other, "testdata/other_engine.c"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ engine, want string }{
		"other build":   {other, "is of another version than this library: install both of one build"},
		"missing":       {"/nowhere/liburnic-engine.so", "/nowhere/liburnic-engine.so: cannot open shared object file"},
		"broken":        {broken, "too short"},
		"other library": {filepath.Join(lib, "replace", "libefa.so.1"), "has no urnic_engine_open: it is of another version"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "ibv_devices")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_PRELOAD=" + filepath.Join(lib, "liburnic.so"), "URNIC_ENGINE=" + tc.engine}
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "liburnic: ") || !strings.Contains(string(out), tc.want) || strings.Contains(string(out), "urnic0") {
				t.Errorf("%v: %s; want %q", err, out, tc.want)
			}
		})
	}
}

// A program that opens its own libraries by dlopen finds them where its RUNPATH says,
// though the library has a dlopen of its own.
func TestDlopenLooksAtTheRunpathOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", filepath.Join(dir, "libonlyhere.so"), "testdata/other_engine.c"},
		{"-O2", "-Wl,--enable-new-dtags,-rpath,$ORIGIN", "-o", program, "testdata/dlopen_runpath.c"},
	} {
		if err := command("gcc", args...); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := output(t, program, modes(libraries(t))["interpose"]); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A thread that does nothing but poll in vain waits in its polls, at last.
func TestThreadsThatSpinWait(t *testing.T) {
	program := filepath.Join(t.TempDir(), "spin")
	if err := command("gcc", append(compilerFlags, "-o", program, "testdata/spin.c", "shim/spin.c")...); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A program that is killed while it connects or sends leaves no file, no process, no
// socket of the Unix domain, and its port to the next.
func TestKilledProgramsLeaveNothing(t *testing.T) {
	lib := libraries(t)
	port := strconv.Itoa(int(loopback.Port(t)))
	shm, sockets := files(t, "/dev/shm"), unixSockets(t)
	// Each round it is killed at another place: after so many lines of what both say.
	for round := range 6 {
		dir := t.TempDir()
		rping := func(args ...string) (*exec.Cmd, *bufio.Scanner) {
			cmd := exec.CommandContext(t.Context(), "rping", append(args, "-a", "127.0.0.1", "-p", port)...)
			cmd.Dir = dir
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "LD_PRELOAD=" + filepath.Join(lib, "liburnic.so"),
				"TMPDIR=" + dir, "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir,
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			return cmd, bufio.NewScanner(out)
		}
		kill := func(cmd *exec.Cmd) {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // it was killed
			if err := syscall.Kill(-cmd.Process.Pid, 0); err != syscall.ESRCH {
				t.Errorf("round %d: processes are left: %v", round, err)
			}
		}
		server, _ := rping("-s", "-d")
		waitForPort(t, port)
		client, said := rping("-c", "-v")
		for range round * 3 {
			if !said.Scan() {
				t.Fatalf("round %d: the client ends", round)
			}
		}
		if round%2 == 0 {
			kill(client)
			kill(server)
		} else {
			kill(server)
			kill(client)
		}
		if left := files(t, dir); left != "" {
			t.Errorf("round %d: files are left: %s", round, left)
		}
	}
	if now := files(t, "/dev/shm"); now != shm {
		t.Errorf("/dev/shm: %s; it was %s", now, shm)
	}
	for name := range unixSockets(t) {
		if !sockets[name] && strings.Contains(name, "rnic") {
			t.Errorf("a socket is left: %s", name)
		}
	}
}

// unixSockets returns the names of sockets of the Unix domain, abstract ones with @.
func unixSockets(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 7 {
			names[f[7]] = true
		}
	}
	return names
}

// waitForPort waits until a connection to a port can be made. It is no RDMA connection,
// which the server takes for one that fails.
func waitForPort(t *testing.T, port string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		if bound(t, port) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nobody listens at port %s", port)
		}
	}
}

// bound tells whether somebody listens at a TCP port of IPv4 or IPv6.
func bound(t *testing.T, port string) bool {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(port, &n); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) && f[3] == "0A" {
				return true
			}
		}
	}
	return false
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// What we add to the time that a program takes which lists the devices: preloaded, and by
// way of urnic run. It is to be less than 30 ms, on a machine that has nothing else to do;
// of many runs the median, for a machine that has.
func BenchmarkStartUp(b *testing.B) {
	lib, err := makeLibraries()
	if err != nil {
		b.Fatal(err)
	}
	urnic := filepath.Join(lib, "..", "bin", "urnic")
	lasts := func(env string, line ...string) time.Duration {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), env}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		start := time.Now()
		err := cmd.Run()
		took := time.Since(start)
		if env != "" || len(line) > 1 { // without us there is no device
			if err != nil || !strings.Contains(out.String(), "urnic0") {
				b.Fatalf("%v: %v\n%s", line, err, out.String())
			}
		}
		return took
	}
	var bare, preloaded, run []time.Duration
	for b.Loop() {
		bare = append(bare, lasts("", "ibv_devices"))
		preloaded = append(preloaded, lasts("LD_PRELOAD="+filepath.Join(lib, "liburnic.so"), "ibv_devices"))
		run = append(run, lasts("", urnic, "run", "--", "ibv_devices"))
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return d[len(d)/2].Seconds() * 1000
	}
	b.ReportMetric(median(bare), "bare-ms")
	b.ReportMetric(median(preloaded)-median(bare), "preload-adds-ms")
	b.ReportMetric(median(run)-median(bare), "run-adds-ms")
	b.ReportMetric(median(run)/median(bare), "run/bare")
}

// A setting that is none is told of in one line, which does not blame the library.
func TestAWrongSettingIsTold(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "ibv_devices")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LD_PRELOAD=" + filepath.Join(libraries(t), "liburnic.so"), "URNIC_TRANSPORT=ib",
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `urnic: URNIC_TRANSPORT: "ib"`) || strings.Contains(string(out), "liburnic") {
		t.Errorf("%v: %s", err, out)
	}
}
