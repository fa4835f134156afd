package rdsinfo

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/loopback"
	"urnic/ulp/rds"
)

func node(t *testing.T) *rds.Node {
	t.Helper()
	n, err := rds.Open(t.Context(), rds.Config{Addr: loopback.Of(t).Addr(1), Transports: []rds.Transport{&rds.TCP{Port: 26391}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// place makes the directory of this user, in which a test is alone.
func place(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	return Dir()
}

func serve(t *testing.T, n *rds.Node) *Server {
	t.Helper()
	s, err := Serve(n, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestNodesAreFoundWhileTheyAreServed(t *testing.T) {
	leakcheck.Check(t)
	dir := place(t)
	if paths, err := List(""); len(paths) != 0 || err != nil {
		t.Fatalf("before there is a directory: %q, %v", paths, err)
	}
	a, b := node(t), node(t)
	if _, err := a.Bind(4000); err != nil {
		t.Fatal(err)
	}
	sa, sb := serve(t, a), serve(t, b)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info.Mode(), err)
	}
	paths, err := List("")
	if want := []string{sa.Path(), sb.Path()}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("%q, %v; want %q", paths, err, want)
	}
	r, err := Ask(t.Context(), sa.Path())
	if err != nil {
		t.Fatal(err)
	}
	if r.PID != os.Getpid() || r.Node.Addr != a.Addr() || len(r.Node.Sockets) != 1 || r.Node.Sockets[0].Port != 4000 {
		t.Errorf("the first node is %+v", r)
	}
	if err := sa.Close(); err != nil {
		t.Error(err)
	}
	if paths, err := List(""); err != nil || !slices.Equal(paths, []string{sb.Path()}) {
		t.Errorf("after one is closed: %q, %v", paths, err)
	}
}

// stale leaves a socket behind, as a process does that is killed.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestWhatIsNoNode(t *testing.T) {
	dir := place(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	stale(t, path("rds-1-0.sock"))
	if err := os.WriteFile(path("rds-2-0.sock"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says := func(name, text string) {
		l, err := net.Listen("unix", path(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(text))
				c.Close()
			}
		}()
	}
	says("rds-3-0.sock", "hello\n")
	says("rds-4-0.sock", `{"pid":4,"command":"x"}`)
	says("rds-5-0.sock", "")
	paths, err := List("")
	if err != nil || len(paths) != 5 || slices.Contains(paths, path("other")) {
		t.Errorf("%q, %v", paths, err)
	}
	for name, want := range map[string]string{
		"rds-1-0.sock": "is gone",
		"rds-2-0.sock": "is no socket",
		"rds-3-0.sock": "describes no RDS node",
		"rds-4-0.sock": "describes no RDS node",
		"rds-5-0.sock": "describes no RDS node",
		"rds-6-0.sock": "no such socket",
	} {
		if r, err := Ask(t.Context(), path(name)); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrGone) != (name == "rds-1-0.sock") {
			t.Errorf("%s: %+v, %v; want %q", name, r, err, want)
		}
	}
	// Who serves removes what was left behind, and nothing else.
	serve(t, node(t))
	if paths, err := List(""); err != nil || len(paths) != 5 || slices.Contains(paths, path("rds-1-0.sock")) {
		t.Errorf("then there are %q, %v", paths, err)
	}
}

func TestAProcessThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rds-1-0.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel()
			<-t.Context().Done()
		}
	}()
	if r, err := Ask(ctx, path); err == nil || !strings.Contains(err.Error(), "has not answered in time") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestADirectoryOfOthers(t *testing.T) {
	dir := place(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	stale(t, filepath.Join(dir, "rds-1-0.sock"))
	if s, err := Serve(node(t), ""); err == nil || !strings.Contains(err.Error(), "mode 0700") {
		t.Errorf("%v, %v", s, err)
	}
	if paths, err := List(""); err == nil {
		t.Errorf("others may write there, and %q are listed", paths)
	}
}

func TestATooLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if s, err := Serve(node(t), dir); err == nil {
		t.Errorf("%v is served", s.Path())
	}
}

func TestAskWithAContextThatHasEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rds-1-0.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Ask(ctx, path); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "has not answered in time") {
		t.Errorf("%+v, %v", r, err)
	}
}
