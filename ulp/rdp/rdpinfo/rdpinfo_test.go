package rdpinfo

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/rdp"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func endpoint(t *testing.T) *rdp.Endpoint {
	t.Helper()
	c, err := rdp.UDP(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := rdp.Open(t.Context(), rdp.Config{Carrier: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestEndpointsAreFoundWhileTheyAreServed(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if paths, err := List(""); len(paths) != 0 || err != nil {
		t.Fatalf("before there is a directory: %q, %v", paths, err)
	}
	e := endpoint(t)
	if _, err := e.Listen(rdp.ListenConfig{Port: 7}); err != nil {
		t.Fatal(err)
	}
	s, err := Serve(e, "a test", "")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := List("")
	if err != nil || !slices.Equal(paths, []string{s.Path()}) {
		t.Errorf("%q, %v", paths, err)
	}
	r, err := Ask(t.Context(), s.Path())
	if err != nil {
		t.Fatal(err)
	}
	if r.PID != os.Getpid() || r.Command != "a test" || r.Endpoint.Addr != e.LocalAddr() || len(r.Endpoint.Listeners) != 1 || r.Endpoint.Listeners[0].Port != 7 {
		t.Errorf("%+v", r)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Ask(t.Context(), s.Path()); err == nil || !strings.Contains(err.Error(), "no such socket") {
		t.Errorf("after it is closed: %v", err)
	}
}

func TestWhatIsNoEndpoint(t *testing.T) {
	dir := t.TempDir()
	for _, says := range []string{"hello", `{"pid":4}`, `{"endpoint":{}}`, ""} {
		path := filepath.Join(dir, "rdp-1-0.sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte(says))
				c.Close()
			}
		}()
		if r, err := Ask(t.Context(), path); err == nil || !strings.Contains(err.Error(), "describes no RDP endpoint") {
			t.Errorf("%q: %+v, %v", says, r, err)
		}
		l.Close()
	}
	gone, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "rdp-2-0.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	gone.SetUnlinkOnClose(false)
	gone.Close()
	if _, err := Ask(t.Context(), filepath.Join(dir, "rdp-2-0.sock")); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if s, err := Serve(endpoint(t), "a test", filepath.Join(dir, strings.Repeat("x", 120))); err == nil {
		t.Errorf("%v is served", s.Path())
	}
}
