package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// The test binary plays the programs: the variable says which.
const role = "BENCHPEERS_ROLE"

func TestMain(m *testing.M) {
	play := map[string]func(port string) error{
		"server": func(port string) error { return serveOne(port, true) },
		"stays":  func(port string) error { return serveOne(port, false) },
		"client": func(port string) error {
			c, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				return err
			}
			answer, err := io.ReadAll(c)
			fmt.Printf("%s", answer)
			return errors.Join(err, c.Close())
		},
		"fails": func(string) error { return errors.New("it went\nwrong") },
	}[os.Getenv(role)]
	if play == nil {
		os.Exit(m.Run())
	}
	if err := play(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// serveOne answers one client with a word, and ends then or not.
func serveOne(port string, ends bool) error {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return err
	}
	_, err = c.Write([]byte("figures"))
	err = errors.Join(err, c.Close())
	if !ends {
		_, err = l.Accept()
	}
	return err
}

func play(t *testing.T, what string, port int) command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return command{env: []string{role + "=" + what}, argv: []string{self, strconv.Itoa(port)}}
}

// port returns a port that belongs to the test, for tests of programs that listen: that they do is
// found out from Linux's table.
func port(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		const missing = "this system has no /proc/net/tcp"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	n, release, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return n
}

func TestClientRunsWhenItsServerListens(t *testing.T) {
	n := port(t)
	out, err := runPair(t.Context(), play(t, "server", n), play(t, "client", n), n, false)
	if err != nil || string(out) != "figures" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestServerOfAFailedClientIsEnded(t *testing.T) {
	n := port(t)
	_, err := runPair(t.Context(), play(t, "stays", n), play(t, "fails", n), n, false)
	if err == nil || !strings.Contains(err.Error(), "exit status 3: it went wrong") {
		t.Errorf("got %v", err)
	}
	if is, err := listens(n); is || err != nil {
		t.Errorf("it still listens: %v, %v", is, err)
	}
}

func TestServerThatStaysIsEndedWithItsClient(t *testing.T) {
	n := port(t)
	if _, err := runPair(t.Context(), play(t, "stays", n), play(t, "client", n), n, true); err != nil {
		t.Error(err)
	}
	if is, err := listens(n); is || err != nil {
		t.Errorf("it still listens: %v, %v", is, err)
	}
}

func TestServerThatDoesNotListenIsAnError(t *testing.T) {
	n := port(t)
	_, err := runPair(t.Context(), play(t, "fails", n), play(t, "client", n), n, false)
	if !errors.Is(err, errServerEnded) || !strings.Contains(err.Error(), "it went wrong") {
		t.Errorf("got %v", err)
	}
}

func TestMissingProgramIsAnError(t *testing.T) {
	c := command{argv: []string{"./no-such-program"}}
	if _, err := c.run(t.Context()); err == nil {
		t.Error("it ran")
	}
	p := program{name: "nothing", binary: "no-such-program", version: []string{"no-such-program"}}
	if v, err := p.ask(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-program of nothing is missing") {
		t.Errorf("%q, %v", v, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	n := port(t)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		cancel(errors.Join(cause, waitListening(t.Context(), n, nil)))
	}()
	if _, err := play(t, "stays", n).run(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestListenersOfTheKernelsTable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1D2F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20001 1
   1: 0100007F:1D30 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 20002 1
`
	for port, want := range map[int]bool{0x1D2F: true, 0x1D30: false, 0x9C40: false, 0: false} {
		if got := listed(table, port); got != want {
			t.Errorf("port %d: %v", port, got)
		}
	}
}

func TestCommandsAreWrittenForAShell(t *testing.T) {
	c := command{[]string{"UCX_TLS=tcp"}, []string{"prog", "-x", "a b", "it's", "", "1,2"}}
	if got, want := c.String(), `UCX_TLS=tcp prog -x 'a b' 'it'\''s' '' 1,2`; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestWhatAProgramPrintedIsCutToItsEnd(t *testing.T) {
	if got := tail([]byte(" a\n b\t c\n")); got != "a b c" {
		t.Errorf("%q", got)
	}
	if got := tail(nil); got != "it printed nothing" {
		t.Errorf("%q", got)
	}
	if got := tail([]byte(strings.Repeat("x", 1000) + " end")); len(got) > 210 || !strings.HasSuffix(got, "x end") {
		t.Errorf("%q", got)
	}
}
