//go:build linux

package dropin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urnic/mpa"
	"urnic/rnic"
)

func TestTimesAreSet(t *testing.T) {
	for value, change := range map[string]func(want *times){
		"":                                func(*times) {},
		"fetch=1m":                        func(want *times) { want.fetch = time.Minute },
		"refused=0s,act=1.5s":             func(want *times) { want.refused, want.act = 0, 1500*time.Millisecond },
		"gone-least=2h,gone-most=2h":      func(want *times) { want.goneLeast, want.goneMost = 2*time.Hour, 2*time.Hour },
		"release=24h,receive-least=100ms": func(want *times) { want.release, want.receiveLeast = 24*time.Hour, 100*time.Millisecond },
	} {
		want := defaultTimes()
		change(&want)
		s, err := parseSettings([]string{"URNIC_TIMES=" + value})
		if err != nil || s.times != want {
			t.Errorf("%q: %+v, %v; want %+v", value, s.times, err, want)
		}
	}
	for value, says := range map[string]string{
		"fetch": "from 0s to 24h", "fetch=": "from 0s to 24h", "fetch=1": "from 0s to 24h", "fetch=-1s": "from 0s to 24h", "fetch=25h": "from 0s to 24h",
		"soon=1s": "one of act, come, connect", "=1s": "NAME=TIME", "fetch=1s,": "NAME=TIME", "fetch=1s,fetch=2s": "each NAME once",
		"gone-least=1h": "gone-least=1h0m0s is more than gone-most=2s",
	} {
		if _, err := parseSettings([]string{"URNIC_TIMES=" + value}); err == nil || !strings.HasPrefix(err.Error(), "URNIC_TIMES: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want %q", value, err, says)
		}
	}
}

// Each time has a name, and stands with its default in docs/drop-in.md.
func TestTimesHaveNames(t *testing.T) {
	page, err := os.ReadFile("../../docs/drop-in.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := defaultTimes()
	for name, d := range documented.named() {
		text := regexp.MustCompile(`m0s$`).ReplaceAllString(d.String(), "m") // as one writes it
		row := fmt.Sprintf("| `%s` | %s |", name, text)
		if strings.HasPrefix(name, "gone-") {
			row = fmt.Sprintf("| `gone-least`, `gone-most` | %v, %v |", documented.goneLeast, documented.goneMost)
		}
		if !strings.Contains(string(page), "\n"+row) {
			t.Errorf("docs/drop-in.md has no row %s", row)
		}
	}
	var at times
	fields := reflect.TypeFor[times]().NumField()
	if n := len(at.named()); n != fields {
		t.Errorf("%d names for %d times", n, fields)
	}
	for name, d := range at.named() {
		if *d++; *d != 1 {
			t.Errorf("%s is another's, too", name)
		}
	}
}

// What a Send to a peer that has gone takes to fail is what its program has set, within bounds.
func TestTimeToFail(t *testing.T) {
	d, longer := defaultTimes(), defaultTimes()
	longer.goneLeast, longer.goneMost = time.Minute, time.Hour
	for _, tt := range []struct {
		times            times
		timeout, retries uint32
		want             time.Duration
	}{
		{d, 14, 7, 8 * 4096 * time.Nanosecond << 14},
		{d, 1, 0, 4096 * time.Nanosecond << 1},
		{d, 0, 0, 2 * time.Second},
		{d, 31, 7, 2 * time.Second},
		{longer, 14, 7, time.Minute},
		{longer, 24, 0, 4096 * time.Nanosecond << 24},
		{longer, 0, 0, time.Hour},
	} {
		if got := tt.times.timeToFail(tt.timeout, tt.retries); got != tt.want {
			t.Errorf("timeout %d, %d retries: %v; want %v", tt.timeout, tt.retries, got, tt.want)
		}
	}
}

// So is what a Send waits for a receive.
func TestTimesOfReceives(t *testing.T) {
	s, err := parseSettings([]string{"URNIC_TIMES=receive=7m,receive-least=3m"})
	if err != nil {
		t.Fatal(err)
	}
	if got := policyOf(&s).RNR(); got != 7*time.Minute {
		t.Errorf("a queue pair with an SRQ: %v", got)
	}
	for retries, want := range map[int]time.Duration{unknownRetries: 7 * time.Minute, 0: 3 * time.Minute, 6: 3 * time.Minute} {
		if got := s.times.receiveWait(retries, 0); got != want {
			t.Errorf("rnr_retry %d: %v; want %v", retries, got, want)
		}
	}
}

// A silent is a peer that accepts connections, and neither reads nor ends them before it is told to.
type silent struct {
	*stranger
	conns chan net.Conn
}

func newSilent(t testing.TB) *silent {
	t.Helper()
	s := &silent{newStranger(t), make(chan net.Conn, 1)}
	s.serve(func(c net.Conn) {
		r, err := mpa.ReceiveRequest(context.Background(), c, mpa.Config{})
		if err == nil {
			_, err = r.Accept(context.Background(), mpa.Config{})
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("the silent peer: %v", err)
		}
		s.conns <- c
	})
	return s
}

// connected returns an end that is connected to the silent peer, and the peer's end.
func (s *silent) connected(l *cmLab) (e cmEnd, c net.Conn) {
	l.Helper()
	e = cmEnd{port: l.port(), cq: l.newCQ(), cookie: 1}
	e.id, e.qp = e.port.routed(1, s.where), l.qp(e.cq)
	l.must("connect", l.IDConnect(e.id, param(e.qp, "")))
	e.port.wantEvent(cmEstablished, 1)
	c = <-s.conns
	l.Cleanup(func() { _ = c.Close() })
	return e, c
}

// A peer that does not end the connection holds up neither a disconnect nor the end of a queue pair for ever.
func TestPeerThatDoesNotEndTheConnection(t *testing.T) {
	t.Run("disconnect", func(t *testing.T) {
		l := newCMLab(t, "URNIC_TIMES=disconnect=10ms,release=24h")
		e, _ := newSilent(t).connected(l)
		l.must("disconnect", l.IDDisconnect(e.id))
		e.port.wantEvent(cmDisconnected, 1)
	})
	t.Run("release", func(t *testing.T) {
		l := newCMLab(t, "URNIC_TIMES=disconnect=24h,release=10ms")
		e, _ := newSilent(t).connected(l)
		l.must("destroy QP", l.QPDestroy(e.qp))
		e.port.wantEvent(cmDisconnected, 1)
	})
}

// A peer that ends the connection late has the time that is set for it.
func TestPeerThatEndsTheConnectionLate(t *testing.T) {
	for name, end := range map[string]func(l *cmLab, e *cmEnd) Errno{
		"disconnect": func(l *cmLab, e *cmEnd) Errno { return l.IDDisconnect(e.id) },
		"release":    func(l *cmLab, e *cmEnd) Errno { return l.QPDestroy(e.qp) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newCMLab(t, "URNIC_TIMES=disconnect=24h,release=24h")
			e, c := newSilent(t).connected(l)
			q := l.qps.get(e.qp)
			ended := make(chan Errno, 1)
			go func() { ended <- end(l, &e) }()
			// The peer reads to the end of what comes, and the connection is still there for it.
			b := make([]byte, 1024)
			for {
				if _, err := c.Read(b); err != nil {
					break
				}
			}
			if state := q.verbs.State(); state != rnic.Closing {
				t.Errorf("the queue pair is in state %v; want that it waits", state)
			}
			e.port.none()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			l.must(name, <-ended)
			e.port.wantEvent(cmDisconnected, 1)
		})
	}
}

// A peer that TCP does not reach is given up.
func TestPeerThatIsNotReached(t *testing.T) {
	l := newCMLab(t, "URNIC_TIMES=connect=10ms,reply=24h")
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	full := &unix.SockaddrInet4{Addr: netip.MustParseAddr("127.0.0.1").As4()}
	if err := errors.Join(unix.Bind(s, full), unix.Listen(s, 0)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	// Nobody accepts these, and then Linux answers no more.
	for range 8 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(c)
		if err := unix.Connect(c, at); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
	a := l.port()
	l.must("connect", l.IDConnect(a.routed(1, endpointOf(at)), param(l.qp(l.cq), "")))
	a.wantFailure(cmUnreachable, 1, syscall.ETIMEDOUT)
}

// A process that exits waits for its peers, which may still ask for acknowledgments, until they close the connection, and
// for a time at most.
func TestProcessThatExitsWaitsForItsPeers(t *testing.T) {
	for _, patient := range []bool{true, false} {
		times := "URNIC_TIMES=farewell=24h,release=24h"
		if !patient {
			times = "URNIC_TIMES=farewell=10ms,release=10ms"
		}
		l := ethernet(t, times)
		a := l.end()
		d, q, _ := plainSide(t, rnic.Config{})
		n, err := d.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan error, 1)
		go func() {
			r, err := n.Accept(t.Context())
			if err == nil {
				err = r.Accept(t.Context(), q, rnic.ConnParam{})
			}
			accepted <- err
		}()
		verbs := l.qp(a.qp).verbs
		if err := errors.Join(verbs.Connect(t.Context(), n.Addr().String(), rnic.ConnParam{}), <-accepted); err != nil {
			t.Fatal(err)
		}
		l.qp(a.qp).connected()
		left := make(chan struct{})
		go func() { l.Leave(); close(left) }()
		if patient {
			if state := verbs.State(); state != rnic.RTS {
				t.Errorf("the queue pair is in state %v; want that it waits", state)
			}
			if err := q.Disconnect(t.Context()); err != nil {
				t.Error(err)
			}
		}
		<-left
	}
}
