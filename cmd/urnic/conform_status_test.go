package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"urnic/conformance/wire"
)

// replying accepts connections, and answers what comes first on each of them. Nil closes the
// connection in place of an answer; "" leaves it open and says nothing.
func replying(t *testing.T, answer []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				b := make([]byte, 4096)
				if _, err := conn.Read(b); err != nil || answer == nil {
					return
				}
				if len(answer) > 0 {
					_, _ = conn.Write(answer)
					return
				}
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	return l.Addr().String()
}

// What is no iWARP endpoint breaks no clause: nothing is tested, which one line says.
func TestConformTestsNothingButIWARPEndpoints(t *testing.T) {
	perf := start(t, "perf", "server", "--listen", "127.0.0.1:0")
	perf.out.wait(t, "\n")
	_, perfAddress, _ := strings.Cut(strings.TrimSpace(perf.out.String()), "listening at ")
	http := "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"
	for name, c := range map[string]struct {
		target string
		args   []string
		text   string
	}{
		"an HTTP server":               {replying(t, []byte(http)), nil, `"HTTP/1.1 400 Bad`},
		"one that says little":         {replying(t, []byte("no")), nil, "2 bytes that are no MPA Reply"},
		"one that closes":              {replying(t, nil), nil, "closes the connection"},
		"perf server":                  {perfAddress, nil, "rejects an ordinary MPA Request"},
		"the test service":             {conformTarget(t), nil, "no iWARP endpoint"},
		"an HTTP server, as a service": {replying(t, []byte(http)), []string{"--profile", "urnic"}, "no test service"},
		"perf server, as a service":    {perfAddress, []string{"--profile", "urnic"}, "no test service"},
		"as rping":                     {replying(t, []byte(http)), []string{"--profile", "rping"}, "no iWARP endpoint"},
	} {
		args := append([]string{"conform", "--target", c.target, "--timeout", "5s"}, c.args...) // not all of them answer
		status, out, errOut := urnic(t, nil, args...)
		wantErrorStatus(t, args, 2, status, errOut, c.text)
		if out != "" {
			t.Errorf("%s: it prints %s", name, out)
		}
	}
	silent := replying(t, []byte{})
	inTime(t, func(wait string) (good bool, said string) { // in which it has to accept the connection
		args := []string{"conform", "--target", silent, "--timeout", wait}
		status, out, errOut := urnic(t, nil, args...)
		wantErrorStatus(t, args, 2, status, errOut)
		if out != "" {
			t.Errorf("one that says nothing: it prints %s", out)
		}
		return strings.Contains(errOut, "does not answer an MPA Request within "+wait), errOut
	})
}

// Both servers have a default port, of which nobody takes one for the other.
func TestConformServeAndPerfServerHaveDifferentPorts(t *testing.T) {
	serve, perf := newConformServeCommand().Flag("listen").DefValue, newPerfServerCommand().Flag("listen").DefValue
	_, servePort, err := net.SplitHostPort(serve)
	do(t, err)
	_, perfPort, err := net.SplitHostPort(perf)
	do(t, err)
	if servePort == perfPort {
		t.Errorf("conform serve listens at %s, and perf server at %s", serve, perf)
	}
}

// mortal is an endpoint that answers start-up on its first connections, and then is gone.
func mortal(t *testing.T, connections int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	reply := wire.Frame{Key: wire.ReplyKey, Flags: wire.FlagC | wire.FlagS, Rev: 2, Private: wire.Enhanced{IRD: 1, ORD: 1}.Octets()}
	wg.Go(func() {
		defer l.Close()
		for range connections {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				b := make([]byte, wire.FrameLen+wire.EnhancedLen)
				if _, err := io.ReadFull(conn, b); err == nil {
					_, _ = conn.Write(reply.Octets())
					_, _ = conn.Read(b)
				}
			})
		}
	})
	return l.Addr().String()
}

// Text, JSON, JUnit, page and exit status agree on a target that is lost.
func TestConformEndsWithATargetThatIsLost(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	args := []string{
		"conform", "--target", mortal(t, 4), "--only", "rfc5041-7.1",
		"--json", file("r.json"), "--junit", file("r.xml"), "--html", file("r.html"),
	}
	status, out, errOut := urnic(t, nil, args...)
	wantErrorStatus(t, args, 3, status, errOut, "the target may have crashed", "rfc5041-7.1-")
	if !strings.HasPrefix(out, "TARGET LOST: the target may have crashed") {
		t.Errorf("it begins with %.200q", out)
	}
	for name, text := range map[string]string{
		"r.json": `"outcome": "target lost"`, "r.xml": `type="target lost"`, "r.html": "the target may have crashed",
	} {
		if b, err := os.ReadFile(file(name)); err != nil || !strings.Contains(string(b), text) {
			t.Errorf("%s does not say %q: %v", name, text, err)
		}
	}
}
