package rpcbind_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/oncrpc/xdr"
)

// serve serves a table at an address, and returns a client of it.
func serve(t *testing.T, table *rpcbind.Table, addr string) *rpcbind.Client {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(table.Program()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeTCP(t.Context(), l) }()
	c := client(l.Addr().String())
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, oncrpc.ErrClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("ServeTCP: %v", err)
		}
	})
	return c
}

func client(addr string) *rpcbind.Client {
	return rpcbind.NewClient(oncrpc.NewClient(oncrpc.OverTCP(addr, oncrpc.TCPConfig{}), oncrpc.ClientConfig{Dials: 1}))
}

// exercise sets, finds and removes mappings through a service on this host, of which
// nothing else is expected: ours, or the distribution's.
func exercise(ctx context.Context, c *rpcbind.Client) error {
	const program = 0x20000042
	three := rpcbind.Mapping{Program: program, Version: 3, Netid: rpcbind.TCP, Addr: "0.0.0.0.8.1", Owner: "urnic"}
	six := rpcbind.Mapping{Program: program, Version: 3, Netid: rpcbind.TCP6, Addr: "::.8.2", Owner: "urnic"}
	for _, m := range []rpcbind.Mapping{three, six} {
		if err := c.Set(ctx, m); err != nil {
			return fmt.Errorf("set %v: %w", m, err)
		}
	}
	other := three
	other.Addr = "0.0.0.0.9.9"
	if err := c.Set(ctx, other); !errors.Is(err, rpcbind.ErrRefused) {
		return fmt.Errorf("set %v a second time, elsewhere: %w", other, err)
	}
	list, err := c.Dump(ctx)
	if err != nil {
		return err
	}
	for _, want := range []rpcbind.Mapping{three, six} {
		if !slices.ContainsFunc(list, func(m rpcbind.Mapping) bool {
			return m.Program == want.Program && m.Version == want.Version && m.Netid == want.Netid && m.Addr == want.Addr
		}) {
			return fmt.Errorf("no %v in %v", want, list)
		}
	}
	here := netip.MustParseAddrPort("127.0.0.1:2049")
	if a, err := c.GetAddr(ctx, three); err != nil || a != here {
		return fmt.Errorf("GETADDR: %v, %w; not %v", a, err, here)
	}
	if a, err := c.GetVersAddr(ctx, three); err != nil || a != here {
		return fmt.Errorf("GETVERSADDR: %v, %w; not %v", a, err, here)
	}
	two := three
	two.Version = 2
	if a, err := c.GetAddr(ctx, two); err != nil || a != here {
		return fmt.Errorf("GETADDR of another version: %v, %w; not %v", a, err, here)
	}
	if a, err := c.GetVersAddr(ctx, two); !errors.Is(err, rpcbind.ErrUnknown) {
		return fmt.Errorf("GETVERSADDR of another version: %v, %w", a, err)
	}
	entries, err := c.GetAddrList(ctx, three)
	if err != nil || !slices.Contains(entries, rpcbind.Entry{Addr: "127.0.0.1.8.1", Netid: "tcp", Semantics: 3, Family: "inet", Protocol: "tcp"}) {
		return fmt.Errorf("GETADDRLIST: %v, %w", entries, err)
	}
	if port, err := c.FindPort(ctx, program, 3, rpcbind.TCP6); err != nil || port != 8<<8+2 {
		return fmt.Errorf("over tcp6: port %d, %w", port, err)
	}
	if port, err := c.GetPort(ctx, program, 3, rpcbind.ProtocolTCP); err != nil || port != 2049 {
		return fmt.Errorf("GETPORT: %d, %w", port, err)
	}
	if port, err := c.GetPort(ctx, program, 3, rpcbind.ProtocolUDP); !errors.Is(err, rpcbind.ErrUnknown) {
		return fmt.Errorf("GETPORT of UDP: %d, %w", port, err)
	}
	if err := c.SetPort(ctx, rpcbind.PortMapping{Program: program, Version: 1, Protocol: rpcbind.ProtocolUDP, Port: 99}); err != nil {
		return fmt.Errorf("set in version 2: %w", err)
	}
	ports, err := c.Ports(ctx)
	for _, want := range []rpcbind.PortMapping{{program, 1, rpcbind.ProtocolUDP, 99}, {program, 3, rpcbind.ProtocolTCP, 2049}} {
		if err != nil || !slices.Contains(ports, want) {
			return fmt.Errorf("no %v in %v, %w", want, ports, err)
		}
	}
	if err := c.UnsetPort(ctx, program, 1); err != nil {
		return fmt.Errorf("unset in version 2: %w", err)
	}
	if err := c.Unset(ctx, rpcbind.Mapping{Program: program, Version: 3, Owner: "urnic"}); err != nil {
		return fmt.Errorf("unset: %w", err)
	}
	if port, err := c.FindPort(ctx, program, 3, rpcbind.TCP); !errors.Is(err, rpcbind.ErrUnknown) {
		return fmt.Errorf("after it was removed: port %d, %w", port, err)
	}
	now, err := c.GetTime(ctx)
	if off := time.Since(now).Abs(); err != nil || off > time.Minute {
		return fmt.Errorf("GETTIME: %v, %w", now, err)
	}
	return nil
}

func TestServiceOfOurOwn(t *testing.T) {
	if err := exercise(t.Context(), serve(t, rpcbind.NewTable(0), "127.0.0.1:0")); err != nil {
		t.Error(err)
	}
}

func TestWhatTheProcessHasAddedIsItsOwn(t *testing.T) {
	table := rpcbind.NewTable(2)
	c := serve(t, table, "127.0.0.1:0")
	own := rpcbind.Mapping{Program: 100003, Version: 3, Netid: rpcbind.RDMA, Addr: "0.0.0.0.78.81"}
	if err := table.Add(own); err != nil {
		t.Fatal(err)
	}
	if err := table.Add(own); !errors.Is(err, rpcbind.ErrRefused) {
		t.Errorf("a second time: %v", err)
	}
	if err := c.Unset(t.Context(), own); !errors.Is(err, rpcbind.ErrRefused) {
		t.Errorf("a caller removes it: %v", err)
	}
	if a, err := c.GetAddr(t.Context(), own); err != nil || a != netip.MustParseAddrPort("127.0.0.1:20049") {
		t.Errorf("it is at %v, %v", a, err)
	}
	if err := c.SetPort(t.Context(), rpcbind.PortMapping{Program: 1, Version: 1, Protocol: rpcbind.ProtocolTCP, Port: 1}); err != nil {
		t.Errorf("the second of two: %v", err)
	}
	if err := c.Set(t.Context(), rpcbind.Mapping{Program: 2, Version: 1, Netid: rpcbind.TCP, Addr: "127.0.0.1.0.1"}); !errors.Is(err, rpcbind.ErrRefused) {
		t.Errorf("the third of two: %v", err)
	}
	if err := table.Add(rpcbind.Mapping{Program: 2, Version: 1, Netid: rpcbind.TCP, Addr: "127.0.0.1.0.1"}); !errors.Is(err, rpcbind.ErrFull) {
		t.Errorf("the third of two: %v", err)
	}
	if err := table.Remove(own); err != nil {
		t.Errorf("the process removes it: %v", err)
	}
	if err := table.Remove(own); !errors.Is(err, rpcbind.ErrRefused) {
		t.Errorf("the process removes it again: %v", err)
	}
}

func TestMappingsThatAreNoneAreRefused(t *testing.T) {
	table := rpcbind.NewTable(0)
	c := serve(t, table, "127.0.0.1:0")
	for _, m := range []rpcbind.Mapping{
		{Program: 1, Version: 1, Netid: "", Addr: "127.0.0.1.0.1"},
		{Program: 1, Version: 1, Netid: "local", Addr: "/run/socket"},
		{Program: 1, Version: 1, Netid: rpcbind.TCP, Addr: ""},
		{Program: 1, Version: 1, Netid: rpcbind.TCP, Addr: "::1.0.1"},
		{Program: 1, Version: 1, Netid: rpcbind.TCP6, Addr: "127.0.0.1.0.1"},
		{Program: 1, Version: 1, Netid: rpcbind.TCP, Addr: "127.0.0.1.0.0"},
	} {
		if err := table.Add(m); err == nil || errors.Is(err, rpcbind.ErrRefused) {
			t.Errorf("%+v: the process: %v", m, err)
		}
		if err := c.Set(t.Context(), m); !errors.Is(err, rpcbind.ErrRefused) {
			t.Errorf("%+v: a caller: %v", m, err)
		}
	}
	for _, m := range []rpcbind.PortMapping{{1, 1, 1, 1}, {1, 1, rpcbind.ProtocolTCP, 0}, {1, 1, rpcbind.ProtocolTCP, 65536}} {
		if err := c.SetPort(t.Context(), m); !errors.Is(err, rpcbind.ErrRefused) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	long := rpcbind.Mapping{Program: 1, Version: 1, Netid: rpcbind.TCP, Addr: "127.0.0.1.0.1", Owner: string(make([]byte, 129))}
	if err := table.Add(long); err == nil {
		t.Error("an owner of 129 octets was taken")
	}
	var garbage *oncrpc.AcceptedError
	if err := c.Set(t.Context(), long); !errors.As(err, &garbage) || garbage.Stat != oncrpc.GarbageArguments {
		t.Errorf("an owner of 129 octets: %v", err)
	}
	if list := table.Mappings(); len(list) > 0 {
		t.Errorf("there are %v", list)
	}
}

// exchange is a call of the service's program from an address, at another one.
func exchange(t *testing.T, table *rpcbind.Table, from, at string, version, procedure uint32, args func(*xdr.Encoder)) *xdr.Decoder {
	t.Helper()
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(table.Program()); err != nil {
		t.Fatal(err)
	}
	var call, reply xdr.Encoder
	if err := (&oncrpc.Call{XID: 1, Program: rpcbind.Program, Version: version, Procedure: procedure}).Encode(&call); err != nil {
		t.Fatal(err)
	}
	if args != nil {
		args(&call)
	}
	remote, local := netip.MustParseAddrPort(from), netip.MustParseAddrPort(at)
	x := &oncrpc.Exchange{Call: &oncrpc.Message{Stream: call.AppendTo(nil)}, Netid: "tcp", Remote: net.TCPAddrFromAddrPort(remote), Local: net.TCPAddrFromAddrPort(local)}
	if local.Addr().Is6() {
		x.Netid = "tcp6"
	}
	if err := s.Serve(t.Context(), x, &reply); err != nil {
		t.Fatal(err)
	}
	d := xdr.NewDecoder(reply.AppendTo(nil))
	var r oncrpc.Reply
	if err := errors.Join(r.Decode(d), r.Err); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOnlyThisHostSetsAndUnsets(t *testing.T) {
	table := rpcbind.NewTable(0)
	mapping := func(e *xdr.Encoder) {
		e.Uint32(7)
		e.Uint32(1)
		e.String("tcp")
		e.String("0.0.0.0.0.7")
		e.String("")
	}
	port := func(e *xdr.Encoder) {
		for _, v := range []uint32{8, 1, 6, 8} {
			e.Uint32(v)
		}
	}
	const set, unset = 1, 2
	for _, c := range []struct {
		from      string
		procedure uint32
		done      bool
		there     int // of them afterwards
	}{
		{"192.0.2.1:1", set, false, 0},
		{"[2001:db8::1]:1", set, false, 0},
		{"127.0.0.1:1", set, true, 2},
		{"192.0.2.1:1", unset, false, 2},
		{"[::1]:1", unset, true, 0},
		{"[::ffff:127.0.0.1]:1", set, true, 2},
	} {
		if d := exchange(t, table, c.from, "192.0.2.9:111", 4, c.procedure, mapping); d.Bool() != c.done || d.End() != nil {
			t.Errorf("procedure %d of version 4 by %s: it is not %v", c.procedure, c.from, c.done)
		}
		if d := exchange(t, table, c.from, "192.0.2.9:111", 2, c.procedure, port); d.Bool() != c.done || d.End() != nil {
			t.Errorf("procedure %d of version 2 by %s: it is not %v", c.procedure, c.from, c.done)
		}
		if list := table.Mappings(); len(list) != c.there {
			t.Errorf("after procedure %d by %s: %v", c.procedure, c.from, list)
		}
	}
}

func TestAddressesAreWhereTheCallerReachedUs(t *testing.T) {
	table := rpcbind.NewTable(0)
	for _, m := range []rpcbind.Mapping{
		{Program: 1, Version: 1, Netid: rpcbind.TCP, Addr: "0.0.0.0.0.1"},
		{Program: 1, Version: 2, Netid: rpcbind.TCP, Addr: "192.0.2.77.0.2"},
		{Program: 1, Version: 1, Netid: rpcbind.TCP6, Addr: "::.0.6"},
		{Program: 1, Version: 1, Netid: rpcbind.RDMA, Addr: "0.0.0.0.78.81"},
		{Program: 1, Version: 1, Netid: rpcbind.UDP, Addr: "0.0.0.0.0.1"},
	} {
		if err := table.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	const getaddr, getversaddr, getaddrlist = 3, 9, 11
	ask := func(version uint32, netid string) func(e *xdr.Encoder) {
		return func(e *xdr.Encoder) {
			e.Uint32(1)
			e.Uint32(version)
			e.String(netid)
			e.String("")
			e.String("")
		}
	}
	for _, c := range []struct {
		at, netid          string
		procedure, version uint32
		want               string
	}{
		{"192.0.2.9:111", "", getaddr, 1, "192.0.2.9.0.1"},
		{"192.0.2.9:111", "udp", getaddr, 1, "192.0.2.9.0.1"}, // is not asked for
		{"192.0.2.9:111", "", getaddr, 2, "192.0.2.77.0.2"},
		{"192.0.2.9:111", "", getaddr, 9, "192.0.2.77.0.2"},
		{"192.0.2.9:111", "", getversaddr, 9, ""},
		{"192.0.2.9:111", "", getversaddr, 2, "192.0.2.77.0.2"},
		{"192.0.2.9:111", "rdma", getaddr, 1, "192.0.2.9.78.81"},
		{"192.0.2.9:111", "rdma6", getaddr, 1, ""},
		{"[2001:db8::9]:111", "", getaddr, 1, "2001:db8::9.0.6"},
		{"[2001:db8::9]:111", "rdma", getaddr, 1, "0.0.0.0.78.81"}, // no address of its family is known
	} {
		d := exchange(t, table, "203.0.113.5:1000", c.at, 4, c.procedure, ask(c.version, c.netid))
		if got := d.String(99); got != c.want || d.End() != nil {
			t.Errorf("procedure %d, version %d over %q at %s: %q, %v; want %q", c.procedure, c.version, c.netid, c.at, got, d.End(), c.want)
		}
	}
	d := exchange(t, table, "203.0.113.5:1000", "192.0.2.9:111", 4, getaddrlist, ask(1, ""))
	var got []string
	for d.Bool() {
		got = append(got, fmt.Sprint(d.String(99), d.String(99), d.Uint32(), d.String(99), d.String(99)))
	}
	want := []string{"192.0.2.9.78.81rdma3inetrdma", "192.0.2.9.0.1tcp3inettcp", "::.0.6tcp63inet6tcp", "192.0.2.9.0.1udp1inetudp"}
	if !slices.Equal(got, want) || d.End() != nil {
		t.Errorf("%q, %v; want %q", got, d.End(), want)
	}
}

func TestServiceOfOlderVersionsIsAskedToo(t *testing.T) {
	all := rpcbind.NewTable(0).Program()
	want := rpcbind.Mapping{Program: 9, Version: 1, Netid: rpcbind.TCP, Addr: "0.0.0.0.0.9"}
	for _, highest := range []int{1, 2, 3} {
		table := rpcbind.NewTable(0)
		if err := table.Add(want); err != nil {
			t.Fatal(err)
		}
		p := table.Program()
		p.Versions = p.Versions[:highest]
		c := serveProgram(t, p)
		if list, err := c.Dump(t.Context()); err != nil || !slices.Equal(list, []rpcbind.Mapping{want}) {
			t.Errorf("up to version %d: %v, %v", all.Versions[highest-1].Number, list, err)
		}
	}
}

// serveProgram serves a program on loopback, and returns a client for it.
func serveProgram(t *testing.T, p *oncrpc.Program) *rpcbind.Client {
	t.Helper()
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(p); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.ServeTCP(t.Context(), l) }()
	c := client(l.Addr().String())
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		<-done
	})
	return c
}

// lying returns a client of a service that answers a procedure with whatever is given.
func lying(t *testing.T, version, procedure uint32, results func(*xdr.Encoder)) *rpcbind.Client {
	t.Helper()
	handle := func(_ context.Context, in *oncrpc.Incoming) error {
		in.Args.Fixed(in.Args.Left())
		results(in.Results)
		return nil
	}
	procedures := map[uint32]oncrpc.Procedure{procedure: {Handle: handle}}
	return serveProgram(t, &oncrpc.Program{Number: rpcbind.Program, Versions: []oncrpc.ProgramVersion{{Number: version, Procedures: procedures}}})
}

func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	const dump, getport, getaddr = 4, 3, 3
	endless := lying(t, 2, dump, func(e *xdr.Encoder) {
		for range 8<<10 + 1 {
			e.Bool(true)
			e.Fixed(make([]byte, 16))
		}
		e.Bool(false)
	})
	if list, err := endless.Ports(t.Context()); !errors.Is(err, xdr.ErrLong) || list != nil {
		t.Errorf("a list of 8193: %d, %v", len(list), err)
	}
	if _, err := lying(t, 2, getport, func(e *xdr.Encoder) { e.Uint32(1 << 16) }).GetPort(t.Context(), 1, 1, 6); !errors.Is(err, xdr.ErrValue) {
		t.Errorf("port 65536: %v", err)
	}
	var addr *rpcbind.AddrError
	if _, err := lying(t, 3, getaddr, func(e *xdr.Encoder) { e.String("nowhere") }).GetAddr(t.Context(), rpcbind.Mapping{}); !errors.As(err, &addr) {
		t.Errorf("an address that is none: %v", err)
	}
	if _, err := lying(t, 3, 6, func(*xdr.Encoder) {}).GetTime(t.Context()); !errors.Is(err, xdr.ErrShort) {
		t.Errorf("no time: %v", err)
	}
}
