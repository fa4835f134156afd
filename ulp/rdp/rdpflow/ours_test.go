package rdpflow

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/internal/test/loopback"
	"urnic/ulp/rdp"
)

// A recorded endpoint records what it sends and receives.
type recorded struct {
	*rdp.Endpoint
	file   bytes.Buffer
	writer *capture.Writer
}

func openRecorded(t *testing.T, c rdp.Carrier) *recorded {
	t.Helper()
	e := &recorded{}
	var err error
	if e.writer, err = capture.NewWriter(&e.file); err != nil {
		t.Fatal(err)
	}
	if e.Endpoint, err = rdp.Open(t.Context(), rdp.Config{Carrier: c, Recorder: e.writer}); err != nil {
		t.Fatal(err)
	}
	return e
}

// transfer moves messages both ways over a connection of two endpoints, closes it, and the endpoints.
func transfer(t *testing.T, ends [2]*recorded, version uint8, sequenced bool, count, size int) {
	t.Helper()
	params := rdp.Params{Sequenced: sequenced, Window: 16}
	l, err := ends[server].Listen(rdp.ListenConfig{Port: 77, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*rdp.Conn
	if conns[client], err = ends[client].Dial(t.Context(), rdp.DialConfig{Host: ends[server].LocalAddr(), Port: 77, Version: version, Params: params}); err != nil {
		t.Fatal(err)
	}
	if conns[server], err = l.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error)
	for _, c := range conns {
		go func() {
			for i := range count {
				if err := c.Send(t.Context(), bytes.Repeat([]byte{byte(i)}, size)); err != nil {
					sent <- err
					return
				}
			}
			sent <- c.Flush(t.Context())
		}()
	}
	for _, c := range conns {
		for range count {
			m, err := c.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.Free(m)
		}
	}
	err = errors.Join(<-sent, <-sent, conns[client].Close())
	if _, gone := conns[server].Receive(t.Context()); gone == nil {
		t.Error("a message after the end")
	}
	for _, e := range ends {
		err = errors.Join(err, e.Close(), e.writer.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// looksRight looks at what the recordings of both endpoints have.
func looksRight(t *testing.T, ends [2]*recorded, version uint8, sequenced bool, count, size int) {
	t.Helper()
	for side, e := range ends {
		for _, complete := range []bool{false, true} {
			f := analyzeWith(t, e.file.Bytes(), &Analyzer{Complete: complete, Ports: []uint16{ends[server].LocalAddr().Port()}})
			f.want(t)
			if len(f.notes) > 0 || f.Verdict() != dissect.VerdictOK {
				t.Errorf("side %d: %s, notes %q", side, f.Verdict(), f.notes)
			}
			if len(f.Connections) != 1 || len(f.opens) != 1 || f.opens[0].Version != version || f.opens[0].Sequenced != sequenced {
				t.Fatalf("side %d: %d connections, opens %v", side, len(f.Connections), f.opens)
			}
			if s := f.summary(t); s.State != "closed" || s.Client.Data != uint64(count*size) || s.Server.Data != uint64(count*size) {
				t.Errorf("side %d: %+v", side, s)
			}
		}
	}
}

// What endpoints of ours do to each other breaks no rule, whichever side looks, over each carrier.
func TestOurEndpointsBreakNoRule(t *testing.T) {
	own := loopback.Of(t) // over IP, each endpoint has all of its address
	carrier := func(t *testing.T, name string) rdp.Carrier {
		var c rdp.Carrier
		var err error
		if addr, e := netip.ParseAddr(name); e == nil {
			c, err = rdp.RawIP(t.Context(), addr)
			if errors.Is(err, os.ErrPermission) && os.Getenv("CI") == "" {
				t.Skip(err)
			}
		} else {
			c, err = rdp.UDP(t.Context(), netip.MustParseAddrPort(name))
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, version := range []uint8{1, 2} {
		for _, sequenced := range []bool{false, true} {
			for name, addr := range map[string][2]string{
				"udp4": {"127.0.0.1:0", "127.0.0.1:0"}, "udp6": {"[::1]:0", "[::1]:0"}, "ip": {own.Addr(1).String(), own.Addr(2).String()},
			} {
				t.Run(fmt.Sprintf("%s, version %d, sequenced %v", name, version, sequenced), func(t *testing.T) {
					ends := [2]*recorded{openRecorded(t, carrier(t, addr[0])), openRecorded(t, carrier(t, addr[1]))}
					transfer(t, ends, version, sequenced, 400, 500)
					looksRight(t, ends, version, sequenced, 400, 500)
				})
			}
		}
	}
}

// Nor do they where segments are lost, late and doubled.
func TestOurEndpointsBreakNoRuleWithFaults(t *testing.T) {
	for seed := range uint64(12) {
		version, sequenced := uint8(1+seed%2), seed%4 < 2
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := rdp.NewNetwork(seed, rdp.Faults{
					Delay: 10 * time.Millisecond, Jitter: 15 * time.Millisecond,
					Loss: float64(seed%5) * 0.05, Duplicate: 0.1, Reorder: 0.1,
				})
				var ends [2]*recorded
				for i := range ends {
					c, err := n.Carrier(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + i)}), rdp.DefaultPort))
					if err != nil {
						t.Fatal(err)
					}
					ends[i] = openRecorded(t, c)
				}
				transfer(t, ends, version, sequenced, 300, 100)
				looksRight(t, ends, version, sequenced, 300, 100)
			})
		})
	}
}
