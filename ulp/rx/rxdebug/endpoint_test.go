package rxdebug_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/loopback"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxdebug"
	"urnic/ulp/rx/rxudp"
)

// A recorder keeps the datagrams that it is shown.
type recorder struct {
	mu  sync.Mutex
	all [][2]netip.AddrPort
}

func (r *recorder) Datagram(from, to netip.AddrPort, _ ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, [2]netip.AddrPort{from, to})
}

// Our own endpoint tells what it does: a call that runs, its connection and its peer.
func TestOwnEndpoint(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			began, end := make(chan struct{}), make(chan struct{})
			e, err := rxudp.Open(t.Context(), rxudp.Config{
				Addr:    netip.AddrPortFrom(netip.MustParseAddr(host), 0),
				Version: "urnic test",
				Services: []rx.Service{{ID: 7, Handler: rx.HandlerFunc(func(ctx context.Context, c rx.ServerCall) error {
					_, err := io.Copy(io.Discard, c)
					close(began)
					<-end
					return err
				})}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			client, err := rxudp.Open(t.Context(), rxudp.Config{Addr: netip.AddrPortFrom(netip.MustParseAddr(host), 0)})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			conn, err := client.Dial(t.Context(), e.Addr(), 7, rx.DialConfig{})
			if err != nil {
				t.Fatal(err)
			}
			call, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := call.Write(bytes.Repeat([]byte("x"), 5000)); err != nil {
				t.Fatal(err)
			}
			if err := call.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			<-began

			var rec recorder
			c, err := rxdebug.Dial(t.Context(), e.Addr(), rxdebug.Config{Recorder: &rec})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, err := c.Ask(t.Context(), rxdebug.Want{Version: true, Basic: true, Stats: true, Conns: true, AllConns: true, Peers: true})
			if err != nil {
				t.Fatal(err)
			}
			if *r.Version != "urnic test" || r.Protocol != "S" || r.Missing != nil || r.Basic.CallsExecuted != 1 || *r.Basic.IdleThreads != 15 ||
				r.Stats.Objects.ServerConns != 1 || r.Stats.Data.DataRead < 4 {
				t.Errorf("%+v, %+v, %+v", r, r.Basic, r.Stats)
			}
			if len(r.Conns) != 1 || r.Conns[0].Side != "server" || r.Conns[0].Calls[0].State != "active" || r.Conns[0].Calls[0].Number != 1 {
				t.Errorf("%+v", r.Conns)
			}
			// Answers have no room for an address of IPv6.
			if len(r.Peers) == 0 || !slices.ContainsFunc(r.Peers, func(p rxdebug.Peer) bool {
				return strings.HasSuffix(p.Peer, client.Addr().String()[strings.LastIndex(client.Addr().String(), ":"):]) && p.BytesReceived >= 5000
			}) {
				t.Errorf("%+v", r.Peers)
			}
			if n := len(rec.all); n < 14 || rec.all[0][1] != e.Addr() || rec.all[1] != [2]netip.AddrPort{rec.all[0][1], rec.all[0][0]} {
				t.Errorf("%d datagrams were recorded: %v", n, rec.all)
			}
			close(end)
			if err := call.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Where nobody listens, the kernel says so at once.
func TestNobodyListens(t *testing.T) {
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), loopback.Port(t))
	c, err := rxdebug.Dial(t.Context(), addr, rxdebug.Config{Timeout: time.Hour, Retry: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Basic(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}
