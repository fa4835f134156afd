package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
)

// serveTable serves a table as rpcbind, and returns how it is reached.
func serveTable(t *testing.T, table *rpcbind.Table) oncrpc.Dial {
	t.Helper()
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(table.Program()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeTCP(context.Background(), l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return oncrpc.OverTCP(l.Addr().String(), oncrpc.TCPConfig{})
}

// registering returns what flags make of a server that registers with a certain rpcbind.
func registering(t *testing.T, binder oncrpc.Dial, flags ...string) *nfsdOptions {
	t.Helper()
	o := nfsdOptions{binder: binder}
	f := pflag.NewFlagSet("nfsd", pflag.ContinueOnError)
	o.addFlags(f)
	if err := errors.Join(f.Parse(append(flags, "--memory", "--tcp", "127.0.0.1:0", "--register-rpcbind")), o.check()); err != nil {
		t.Fatal(err)
	}
	return &o
}

// A server is registered until it is interrupted.
func TestNFSDIsRegisteredWhileItServes(t *testing.T) {
	table := rpcbind.NewTable(0)
	o := registering(t, serveTable(t, table), "--rdma", "127.0.0.1:0")
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errOut output
	ended := make(chan error, 1)
	go func() {
		err := runNFSD(ctx, o, &out, &errOut)
		out.end(fmt.Sprint(err))
		ended <- err
	}()
	out.wait(t, "listening at ")
	var got []string
	for _, m := range table.Mappings() {
		got = append(got, m.String())
		if a, err := rpcbind.ParseAddr(m.Addr); err != nil || !strings.Contains(out.String(), "listening at "+a.String()+" (TCP)") && !strings.Contains(out.String(), " and "+a.String()+" (RDMA)") {
			t.Errorf("%v is at %v, %v: %s", m, a, err, out.String())
		}
	}
	if want := []string{"version 3 of program 100003 over rdma", "version 3 of program 100003 over tcp", "version 3 of program 100005 over tcp"}; !slices.Equal(got, want) {
		t.Errorf("registered: %v; want %v", got, want)
	}
	interrupt()
	if err := await(t, ended); err != nil || errOut.String() != "" {
		t.Errorf("%v, %q", err, errOut.String())
	}
	if left := table.Mappings(); len(left) > 0 {
		t.Errorf("registered after the end: %v", left)
	}
}

// A server that rpcbind does not take serves nothing, and says why.
func TestNFSDSaysWhyItIsNotRegistered(t *testing.T) {
	table := rpcbind.NewTable(0)
	// What is registered of the new one before it meets this is removed again.
	other := rpcbind.Mapping{Program: nfs3.MountProgram, Version: 3, Netid: rpcbind.TCP, Addr: "0.0.0.0.8.1"}
	if err := table.Add(other); err != nil {
		t.Fatal(err)
	}
	full := rpcbind.NewTable(1)
	if err := full.Add(rpcbind.Mapping{Program: rpcbind.Program, Version: 4, Netid: rpcbind.TCP, Addr: "0.0.0.0.0.111"}); err != nil {
		t.Fatal(err)
	}
	for want, binder := range map[string]oncrpc.Dial{
		"no rpcbind runs on this host: start it":                                                  oncrpc.OverTCP("127.0.0.1:"+unusedPort, oncrpc.TCPConfig{}),
		"knows of another server already: version 3 of program 100005 over tcp is at 0.0.0.0.8.1": serveTable(t, table),
		"takes no registration from this user":                                                    serveTable(t, full),
		"takes no registration: ":                                                                 func(context.Context) (oncrpc.Conn, error) { return nil, errors.New("broken") },
	} {
		o := registering(t, binder, "--rdma", "off")
		var out, errOut output
		err := runNFSD(t.Context(), o, &out, &errOut)
		if err == nil || !strings.Contains(err.Error(), "--register-rpcbind: ") || !strings.Contains(err.Error(), want) || out.String() != "" {
			t.Errorf("%v, %q; want %q", err, out.String(), want)
		}
	}
	if left := table.Mappings(); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestNetidsOfListeners(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:2049":       "tcp 0.0.0.0.8.1",
		"192.0.2.1:2049":     "tcp 192.0.2.1.8.1",
		"[::]:2049":          "tcp 0.0.0.0.8.1, tcp6 ::.8.1",
		"[2001:db8::1]:2049": "tcp6 2001:db8::1.8.1",
		"[fe80::1%lo]:2049":  "tcp6 fe80::1.8.1",
	} {
		var got []string
		for _, m := range mappings(1, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)), true, rpcbind.TCP, rpcbind.TCP6) {
			got = append(got, m.Netid+" "+m.Addr)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s; want %s", addr, s, want)
		}
	}
	six := mappings(1, &net.TCPAddr{IP: net.IPv6unspecified, Port: 2049}, false, rpcbind.TCP, rpcbind.TCP6)
	if len(six) != 1 || six[0].Netid != rpcbind.TCP6 || six[0].Addr != "::.8.1" {
		t.Errorf("at all addresses of IPv6 alone: %v", six)
	}
}
