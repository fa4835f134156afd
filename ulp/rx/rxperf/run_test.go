package rxperf_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxperf"
	"urnic/ulp/rx/rxudp"
)

func open(t *testing.T, services ...rx.Service) *rxudp.Endpoint {
	t.Helper()
	e, err := rxudp.Open(t.Context(), rxudp.Config{Addr: netip.MustParseAddrPort("127.0.0.1:0"), Services: services})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestRun(t *testing.T) {
	server, client := open(t, rxperf.Service()), open(t)
	for _, tc := range []rxperf.Options{
		{Command: rxperf.Send, Send: 100_000, Receive: 7, Calls: 10},
		{Command: rxperf.Receive, Receive: 100_000, Calls: 10, Chunk: 1000},
		{Command: rxperf.RPC, Send: 3000, Receive: 5000, Calls: 100, Parallel: 3, Conns: 2, Chunk: 333},
		{Command: rxperf.RPC, Calls: 50, Parallel: 6},
		{Command: rxperf.RPC, Send: 1, Receive: 1, Duration: 20 * time.Millisecond},
	} {
		r, err := rxperf.Run(t.Context(), client, server.Addr(), rx.DialConfig{}, tc)
		for err == nil && r.Calls == 0 && tc.Duration < time.Minute { // a machine may be too slow for one in that time
			tc.Duration *= 2
			r, err = rxperf.Run(t.Context(), client, server.Addr(), rx.DialConfig{}, tc)
		}
		if err != nil {
			t.Fatal(err)
		}
		send, receive := uint64(tc.Send), uint64(tc.Receive)
		if tc.Command == rxperf.Send {
			receive = 0
		}
		if tc.Calls > 0 && r.Calls != tc.Calls || r.Calls == 0 || r.BytesSent != r.Calls*send || r.BytesReceived != r.Calls*receive || r.Seconds <= 0 ||
			tc.Duration > 0 && r.Seconds < tc.Duration.Seconds() {
			t.Errorf("%+v: %+v", tc, r)
		}
		l := r.Latency()
		if l == nil || l.Min > l.P50 || l.P50 > l.P99 || l.P99 > l.Max || l.Max > 1.001e9*r.Seconds {
			t.Errorf("%+v: %+v", tc, l)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var measured atomic.Bool
	var began atomic.Int32
	server := open(t, rx.Service{ID: rxperf.ServiceID, Handler: rx.Stream(func(ctx context.Context, c io.ReadWriter) error {
		// Two callers: whoever begins the third call has finished one.
		if measured.Load() && began.Add(1) == 3 {
			cancel()
		}
		return rxperf.Serve(ctx, c)
	})})
	r, err := rxperf.Run(ctx, open(t), server.Addr(), rx.DialConfig{}, rxperf.Options{
		Command: rxperf.RPC, Duration: time.Hour, Parallel: 2,
		Began: func() { measured.Store(true) },
	})
	if !errors.Is(err, context.Canceled) || r == nil || r.Calls == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A server that returns other than it should is found out.
func TestWrongReplies(t *testing.T) {
	for reply, want := range map[string]string{
		"":                         "returns 0 bytes",
		"abc":                      "returns 3 bytes",
		"\x00\x00\x47\x12":         "end with 00004712",
		"12345\x00\x00\x47\x11":    "returns more than 3 bytes",
		"123\x00\x00\x47\x11":      "",
		"12\x00\x00\x47\x11":       "returns 6 bytes",
		"1234\x00\x00\x00\x47\x11": "returns more",
	} {
		server := open(t, rx.Service{ID: rxperf.ServiceID, Handler: rx.Stream(func(_ context.Context, c io.ReadWriter) error {
			if _, err := io.Copy(io.Discard, c); err != nil {
				return err
			}
			_, err := c.Write([]byte(reply))
			return err
		})})
		conn, err := open(t).Dial(t.Context(), server.Addr(), rxperf.ServiceID, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		err = rxperf.Do(t.Context(), conn, &rxperf.Request{Command: rxperf.Receive, Receive: 3}, make([]byte, 2))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", reply, err, want)
		}
	}
}

func TestServerWithoutTheService(t *testing.T) {
	server := open(t, rx.Service{ID: 7, Handler: rx.Stream(rxperf.Serve)})
	_, err := rxperf.Run(t.Context(), open(t), server.Addr(), rx.DialConfig{}, rxperf.Options{Calls: 1})
	var a rx.Aborter
	if !errors.As(err, &a) || a.AbortCode() != -2 {
		t.Error(err)
	}
}

func TestOptionsThatCanNotBe(t *testing.T) {
	e := open(t)
	for _, o := range []rxperf.Options{
		{},
		{Command: rxperf.File, Calls: 1},
		{Command: 2, Calls: 1},
		{Send: -1, Calls: 1},
		{Receive: 1 << 31, Calls: 1},
		{Conns: -1, Calls: 1},
		{Parallel: 1 << 10, Conns: 1 << 10, Calls: 1},
		{Chunk: 1 << 20, Calls: 1},
		{Duration: -1},
	} {
		if r, err := rxperf.Run(t.Context(), e, e.Addr(), rx.DialConfig{}, o); err == nil {
			t.Errorf("%+v gives %+v", o, r)
		}
	}
	for _, name := range []string{"file", "", "Send"} {
		if c, err := rxperf.ParseCommand(name); err == nil {
			t.Errorf("%q is %v", name, c)
		}
	}
	if c, err := rxperf.ParseCommand("rpc"); c != rxperf.RPC || err != nil {
		t.Errorf("rpc is %v, %v", c, err)
	}
}
