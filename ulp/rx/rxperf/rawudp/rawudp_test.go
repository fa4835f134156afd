package rawudp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxperf"
	"urnic/ulp/rx/rxudp"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// pair opens a server and a client.
func pair(t *testing.T) (*Server, *Client) {
	t.Helper()
	s, err := Listen(t.Context(), loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	e, err := rxudp.Open(t.Context(), rxudp.Config{Addr: netip.AddrPortFrom(loopback, 0), Services: []rx.Service{s.Service()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	c, err := rxudp.Open(t.Context(), rxudp.Config{Addr: netip.AddrPortFrom(loopback, 0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, NewClient(c, e.Addr(), rx.DialConfig{})
}

func TestRuns(t *testing.T) {
	for _, command := range []rxperf.Command{rxperf.Send, rxperf.Receive, rxperf.RPC} {
		for _, size := range []int{MinSize, 1444, MaxSize} {
			_, c := pair(t)
			const n = 500
			r, err := c.Run(t.Context(), Options{Command: command, Size: size, Datagrams: n, Parallel: 3})
			if err != nil {
				t.Fatalf("%v of %d: %v", command, size, err)
			}
			if r.Datagrams < n || r.Bytes != r.Datagrams*uint64(size) || r.Seconds <= 0 || (r.Latency != nil) != (command == rxperf.RPC) {
				t.Errorf("%v of %d: %+v", command, size, r)
			}
		}
	}
}

func TestARunEndsByItsDuration(t *testing.T) {
	_, c := pair(t)
	for d := 20 * time.Millisecond; ; d *= 2 {
		r, err := c.Run(t.Context(), Options{Command: rxperf.Send, Size: 100, Duration: d})
		if err != nil || r.Seconds < d.Seconds() || r.Datagrams == 0 && d > time.Minute {
			t.Fatalf("%+v, %v", r, err)
		}
		if r.Datagrams > 0 { // a machine may be too slow for one in that time
			return
		}
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	for _, command := range []rxperf.Command{rxperf.Send, rxperf.Receive, rxperf.RPC} {
		_, c := pair(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if r, err := c.Run(ctx, Options{Command: command, Size: 100, Duration: time.Hour}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %+v, %v", command, r, err)
		}
	}
}

func TestOptionsThatCanNotBe(t *testing.T) {
	_, c := pair(t)
	for _, o := range []Options{{Size: MinSize - 1, Datagrams: 1}, {Size: MaxSize + 1, Datagrams: 1}, {Size: 100}, {Size: 100, Datagrams: 1, Command: rxperf.File}} {
		if r, err := c.Run(t.Context(), o); err == nil {
			t.Errorf("%+v gives %+v", o, r)
		}
	}
}

// A server without the service says so, by Rx's abort.
func TestServerWithoutTheService(t *testing.T) {
	e, err := rxudp.Open(t.Context(), rxudp.Config{Addr: netip.AddrPortFrom(loopback, 0), Services: []rx.Service{rxperf.Service()}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = NewClient(e, e.Addr(), rx.DialConfig{}).Run(t.Context(), Options{Size: 100, Datagrams: 1})
	var a rx.Aborter
	if !errors.As(err, &a) || a.AbortCode() != -2 {
		t.Error(err)
	}
}

// hostile sends datagrams with a token from an address, and returns how many answers come
// before the answer to a good one.
func hostile(t *testing.T, s *Server, host string, datagrams ...[]byte) (answers int) {
	t.Helper()
	conn, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)}, s.conn.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.mu.Lock()
	const token = 4711
	if s.sessions[token] == nil { // which ends the wait
		s.sessions[token] = &session{host: netip.MustParseAddr(host)}
	}
	s.sessions[token].from = netip.AddrPort{}
	s.mu.Unlock()
	end := make([]byte, headLen)
	(&packet{token, echo, 99, 0}).put(end)
	for _, d := range append(datagrams, end) {
		if _, err := conn.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, MaxSize)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := parse(buf[:n]); p.token == token && p.number == 99 {
			return answers
		}
		answers++
	}
}

// Without a token, or with another host's, nothing is answered; with one, no more than a
// window for a pull.
func TestHostileDatagrams(t *testing.T) {
	s, c := pair(t)
	a, err := c.admit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	datagram := func(token uint64, k kind, number uint32, amount uint64) []byte {
		b := make([]byte, headLen)
		(&packet{token, k, number, amount}).put(b)
		return b
	}
	for name, d := range map[string][]byte{
		"short": {1, 2, 3}, "empty": {}, "another token": datagram(a.token+1, pull, 1<<31, MaxSize), "unknown kind": datagram(a.token, 9, 1, 1),
		"a count": datagram(a.token, count, 1, 1),
	} {
		if n := hostile(t, s, "127.0.0.1", d); n != 0 {
			t.Errorf("%s: %d answers", name, n)
		}
	}
	b, err := c.admit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.sessions[b.token].host = netip.MustParseAddr("127.0.77.3")
	s.mu.Unlock()
	if n := hostile(t, s, "127.0.0.1", datagram(b.token, pull, 10, MaxSize)); n != 0 {
		t.Errorf("%d answers to another host", n)
	}
	d, err := c.admit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := hostile(t, s, "127.0.0.1", datagram(d.token, pull, 1<<31, 0)); n != maxWindow {
		t.Errorf("%d answers to a pull of very many", n)
	}
}

// The oldest session makes room for a new one.
func TestSessionsAreBounded(t *testing.T) {
	s, c := pair(t)
	first, err := c.admit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range maxSessions {
		if _, err := c.admit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) != maxSessions || len(s.order) != maxSessions || s.sessions[first.token] != nil {
		t.Errorf("%d sessions, %d in order", len(s.sessions), len(s.order))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(make([]byte, headLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parse(b)
		if ok != (len(b) >= headLen) {
			t.Fatalf("%v for %d bytes", ok, len(b))
		}
		if ok {
			back := make([]byte, headLen)
			p.put(back)
			if string(back) != string(b[:headLen]) {
				t.Errorf("%x became %x", b[:headLen], back)
			}
		}
	})
}
