//go:build interop

package interop

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxref"
	"urnic/ulp/rx/rxudp"
)

// rxVersion is what endpoints of these tests say of themselves.
const rxVersion = "urnic interop"

// rxdebug runs OpenAFS's rxdebug on an endpoint of ours, which must understand all.
func (a *openAFS) rxdebug(t *testing.T, e *rxudp.Endpoint, options ...string) string {
	t.Helper()
	out, err := a.tool(append([]string{"rxdebug", e.Addr().Addr().String(), fmt.Sprint(e.Addr().Port())}, options...)...)
	if err != nil {
		t.Errorf("rxdebug %v: %v\n%s", options, err, out)
	}
	for _, bad := range []string{"WARNING", "failed with", "Unknown", "unknown", "no GetStats"} {
		if strings.Contains(out, bad) {
			t.Errorf("rxdebug %v: %q\n%s", options, bad, out)
		}
	}
	return out
}

// wantLines checks that there are lines with these texts, whatever white space is around them.
func wantLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// askedByRxdebug has OpenAFS's rxdebug ask an endpoint of ours for everything.
func (a *openAFS) askedByRxdebug(t *testing.T) {
	server := serveRx(t, a.addr.String()+":0", rxkad.Clear, nil)
	var connections, peers []string
	for _, s := range kerberosOnly() {
		e := openRx(t, rxudp.Config{Addr: netip.AddrPortFrom(a.addr, 0)})
		conn, err := e.Dial(t.Context(), server.Addr(), rxref.ID, rx.DialConfig{Security: s.client(t, rxUser())})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rxref.NewClient(conn).Both(t.Context(), rxref.How{Length: 100_000}); err != nil {
			t.Fatal(err)
		}
		index := "0, server conn"
		if !s.none {
			index = "2, server conn rxkad: level " + s.level.String() + ", flags authenticated pktCksum, expires in 10.0 hours Received 100"
		}
		at := fmt.Sprintf("host %s, port %d", e.Addr().Addr(), e.Addr().Port())
		peers = append(peers, "Peer at "+at)
		connections = append(connections, "Connection from "+at, "security index "+index)
	}
	wantLines(t, a.rxdebug(t, server, "-version"), "AFS version: "+rxVersion)
	wantLines(t, a.rxdebug(t, server, "-allconnections", "-long"), append(connections,
		"calls: 4,", "not waiting for packets", "0 calls waiting for a thread", "16 threads are idle",
		"call 0: # 1, state dally, mode: eof call 1: # 0, state not initialized")...)
	wantLines(t, a.rxdebug(t, server, "-peers", "-long"), append(peers, "packet resends 0", "bytes sent high 0 low 100", "in/out packet skew: 0/0")...)
	s := server.Stats()
	wantLines(t, a.rxdebug(t, server, "-rxstats", "-noconns"),
		"alloc-failures(rcv 0/0,send 0/0,ack 0)",
		fmt.Sprintf("packets read: data %d ack %d busy 0 abort 0 ackall 0 challenge 0 response 3 debug", s.Read[1], s.Read[2]),
		fmt.Sprintf("packets sent: data %d ack %d busy 0 abort 0 ackall 0 challenge 3 response 0 debug", s.Sent[1], s.Sent[2]),
		fmt.Sprintf("other send counters: ack %d, data %d (not resends), resends 0", s.AcksSent, s.DataSent),
		"sendFailed 0, fatalErrors 0", "4 server connections, 0 client connections, 4 peer structs")
	t.Run("calls that wait", func(t *testing.T) { a.seesCallsThatWait(t) })
}

// seesCallsThatWait looks at a server that serves one call at a time.
func (a *openAFS) seesCallsThatWait(t *testing.T) {
	server := serveRx(t, a.addr.String()+":0", rxkad.Clear, func(s *rx.Service) { s.Workers = 1 })
	client := rxref.NewClient(dialRx(t, server.Addr(), rxref.ID, rx.DialConfig{}))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 3 {
		wg.Go(func() {
			if err := client.Slow(ctx, time.Hour); err == nil {
				t.Error("an hour has passed")
			}
		})
	}
	for end := time.Now().Add(patience); !strings.Contains(a.rxdebug(t, server, "-noconns"), "2 calls waiting for a thread"); {
		if time.Now().After(end) {
			t.Fatal("no calls wait")
		}
	}
	wantLines(t, a.rxdebug(t, server), "0 threads are idle", "2 calls have waited for a thread",
		"call 0: # 1, state active, mode: receiving", "call 3: # 0, state not initialized")
}
