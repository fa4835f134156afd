package rxrdma_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma"
	"urnic/ulp/rx/rxtest"
)

// say has a connection to Echo echo something.
func say(conn rx.Conn) error {
	k, err := conn.Begin(context.Background())
	if err != nil {
		return err
	}
	_, err = k.Write([]byte("hello"))
	if err = errors.Join(err, k.CloseWrite()); err == nil {
		var b []byte
		if b, err = io.ReadAll(k); err == nil && string(b) != "hello" {
			err = errors.New("it says " + string(b))
		}
	}
	return errors.Join(err, k.Close())
}

// A connection whose queue pair was lost makes another one for the next call. While there is
// no server, calls fail with -1.
func TestAConnectionComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &simnet.Network{}
		open := func(addr netip.AddrPort) *rxrdma.Endpoint {
			return endpoint(t, device(t, rnic.Config{Network: network}), rxrdma.Config{Addr: addr, Services: rxtest.Services()})
		}
		server := open(loopback4)
		client := endpoint(t, device(t, rnic.Config{Network: network}), rxrdma.Config{})
		conn := connect(t, client, server, rxtest.Echo)
		if err := say(conn); err != nil {
			t.Fatal(err)
		}
		addr := server.Addr()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		err := say(conn)
		if code, ok := rxtest.Code(err); !ok || code != -1 {
			t.Errorf("without a server: %v", err)
		}
		open(addr)
		if err := say(conn); err != nil {
			t.Errorf("with another server: %v", err)
		}
		// What is left of the lost connection is cleared away beside the calls.
		synctest.Wait()
		if s := client.Stats(); s.Dialled != 2 || s.Conns != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A client's connection that has no calls for long is closed in good order, and comes back for the
// next call.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &simnet.Network{}
		server := endpoint(t, device(t, rnic.Config{Network: network}), rxrdma.Config{
			Addr: loopback4, Services: rxtest.Services(), IdleTime: time.Minute,
		})
		client := endpoint(t, device(t, rnic.Config{Network: network}), rxrdma.Config{})
		conn := connect(t, client, server, rxtest.Echo)
		for range 3 {
			if err := say(conn); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Second)
		}
		if s := server.Stats(); s.Idle != 0 || s.Conns != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s := server.Stats(); s.Idle != 1 || s.Conns != 0 || s.Memory != 0 || s.Lost != 0 {
			t.Errorf("%+v", s)
		}
		if s := client.Stats(); s.Conns != 0 || s.Lost != 0 {
			t.Errorf("%+v", s)
		}
		if err := say(conn); err != nil {
			t.Error(err)
		}
	})
}

// A server that is silent is noticed in the dead time, at rest of a call and amid an RDMA Write.
func TestDeadTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &simnet.Network{Options: func(int) simnet.Options { return simnet.Options{BA: simnet.Faults{StallAt: 5000}} }}
		server := endpoint(t, device(t, rnic.Config{Network: network}), rxrdma.Config{Addr: loopback4, Services: rxtest.Services()})
		client := endpoint(t, device(t, rnic.Config{Network: network}), rxrdma.Config{})
		conn, err := client.Dial(context.Background(), server.Addr(), rxtest.Source, rx.DialConfig{DeadTime: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		k, err := conn.Begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.Write([]byte("\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00"))
		if err = errors.Join(err, k.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		buf := make([]byte, 1<<20)
		for err == nil {
			_, err = k.Read(buf)
		}
		if code, ok := rxtest.Code(err); !ok || code != -1 || time.Since(start) > 6*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestConfigurationsAreChecked(t *testing.T) {
	dev := device(t, rnic.Config{})
	for _, tt := range []struct {
		cfg  rxrdma.Config
		want string
	}{
		{rxrdma.Config{Receive: 10}, "Receive is 10"},
		{rxrdma.Config{Window: -1}, "Window"},
		{rxrdma.Config{Channels: 65}, "Channels"},
		{rxrdma.Config{Channels: 64, Window: 1000}, "receives"},
		{rxrdma.Config{MaxConns: -5}, "MaxConns"},
		{rxrdma.Config{Services: []rx.Service{{}}}, "ID"},
	} {
		if e, err := rxrdma.Open(t.Context(), dev, tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.cfg, err)
			_ = e.Close()
		}
	}
	if _, err := rxrdma.Open(t.Context(), nil, rxrdma.Config{}); err == nil {
		t.Error("there is an endpoint without a device")
	}
}

// A server at all addresses serves clients of both families.
func TestBothFamiliesAtOnePort(t *testing.T) {
	server := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{Services: rxtest.Services()})
	client := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{})
	if client.Addr().IsValid() {
		t.Errorf("a client listens at %v", client.Addr())
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		addr := netip.AddrPortFrom(netip.MustParseAddr(host), server.Addr().Port())
		conn, err := client.Dial(t.Context(), addr, rxtest.Echo, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := say(conn); err != nil {
			t.Error(err)
		}
	}
}

// More channels than Rx has over UDP, and many calls at once.
func TestMoreChannels(t *testing.T) {
	cfg := rxrdma.Config{Channels: 16, Receive: 2048}
	client, server := opener(loopback4, cfg, cfg)(t, rxtest.Services())
	conn := connect(t, client, server, rxtest.Echo)
	var calls []rx.Call
	for range 16 {
		k, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, k)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := conn.Begin(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call too many: %v", err)
	}
	for _, k := range calls {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := say(conn); err != nil {
		t.Error(err)
	}
}

// Bulk is moved by RDMA Write in both directions where both sides want it, and else by
// messages.
func TestBulkIsNegotiated(t *testing.T) {
	for _, tt := range []struct {
		name           string
		client, server int
		writes         bool
	}{{"both", 0, 0, true}, {"not the client", -1, 0, false}, {"not the server", 0, -1, false}} {
		t.Run(tt.name, func(t *testing.T) {
			client, server := opener(loopback4, rxrdma.Config{Bulk: tt.client}, rxrdma.Config{Bulk: tt.server})(t, benchServices(1<<20))
			for _, service := range []uint16{drain, pour} {
				conn := connect(t, client, server, service)
				k, err := conn.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if service == drain {
					for range 8 {
						_, err = k.Write(make([]byte, 1<<20))
					}
				} else {
					_, err = k.Write([]byte("\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00"))
				}
				if err = errors.Join(err, k.CloseWrite()); err != nil {
					t.Fatal(err)
				}
				for buf := make([]byte, 1<<20); err == nil; {
					_, err = k.Read(buf)
				}
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				_ = k.Close()
			}
			for name, e := range map[string]rx.Endpoint{"the client": client, "the server": server} {
				s := e.(*rxrdma.Endpoint).Stats()
				if moved := s.WriteBytes >= 4<<20 && s.PlacedBytes >= 4<<20 && s.Writes > 0 && s.Placed > 0; moved != tt.writes {
					t.Errorf("%s: %+v", name, s)
				}
			}
		})
	}
}
