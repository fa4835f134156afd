package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
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
		"one that says nothing":        {replying(t, []byte{}), []string{"--timeout", "200ms"}, "does not answer an MPA Request within 200ms"},
		"perf server":                  {perfAddress, nil, "rejects an ordinary MPA Request"},
		"the test service":             {conformTarget(t), nil, "no iWARP endpoint"},
		"an HTTP server, as a service": {replying(t, []byte(http)), []string{"--profile", "urnic"}, "no test service"},
		"perf server, as a service":    {perfAddress, []string{"--profile", "urnic"}, "no test service"},
		"as rping":                     {replying(t, []byte(http)), []string{"--profile", "rping"}, "no iWARP endpoint"},
	} {
		args := append([]string{"conform", "--target", c.target}, c.args...)
		status, out, errOut := urnic(t, nil, args...)
		wantErrorStatus(t, args, 2, status, errOut, c.text)
		if out != "" {
			t.Errorf("%s: it prints %s", name, out)
		}
	}
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
