package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/rpcrdma"
)

// rpcServer serves rpcbind and a program of two procedures over TCP and RDMA on loopback,
// and returns where.
func rpcServer(t *testing.T) (tcp, rdma string) {
	t.Helper()
	table := rpcbind.NewTable(0)
	for _, m := range []rpcbind.Mapping{
		{Program: rpcbind.Program, Version: 4, Netid: rpcbind.TCP, Addr: "0.0.0.0.0.111", Owner: "urnic"},
		{Program: 0x20000099, Version: 1, Netid: rpcbind.RDMA6, Addr: "::.78.81", Owner: "\x1b[31mme"},
	} {
		if err := table.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(_ context.Context, in *oncrpc.Incoming) error {
		in.Results.Uint32(in.Args.Uint32() + in.Args.Uint32())
		return nil
	}
	adder := &oncrpc.Program{Number: 0x20000099, Versions: []oncrpc.ProgramVersion{{Number: 1, Procedures: map[uint32]oncrpc.Procedure{5: {Handle: sum}}}}}
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(table.Program(), adder); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rl, err := dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over, err := rpcrdma.NewServer(s, rpcrdma.Config{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	go func() { served <- s.ServeTCP(t.Context(), l) }()
	go func() { served <- over.Serve(t.Context(), rl) }()
	t.Cleanup(func() {
		if err := errors.Join(over.Close(), s.Close(), rl.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
		<-served
		<-served
	})
	return l.Addr().String(), rl.Addr().String()
}

func TestRPCCall(t *testing.T) {
	tcp, rdma := rpcServer(t)
	for _, c := range []struct {
		args string
		want string
	}{
		{tcp + " 0x20000099 1", "program 536871065 version 1 ready and waiting at " + tcp + " over tcp"},
		{tcp + " 536871065 1 0 --tcp --count 3", "3 calls, "},
		{rdma + " 536871065 1 --rdma", "ready and waiting at " + rdma + " over rdma"},
		{rdma + " 0x20000099 1 5 --rdma --args 0000000200000003", "version 1 procedure 5 ready and waiting at"},
		{tcp + " 0x20000099 1 5 --args 0000000200000003", "results: 00000005\n"},
		{tcp + " rpcbind 4 6", "results: "},
	} {
		if out := ok(t, append([]string{"rpc", "call"}, strings.Fields(c.args)...)...); !strings.Contains(out, c.want) {
			t.Errorf("%s: %q; want %q", c.args, out, c.want)
		}
	}
	var report rpcCallReport
	out := ok(t, "rpc", "call", rdma, "0x20000099", "1", "5", "--rdma", "--json", "--args", "0000000200000003", "--count", "4")
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Results != "00000005" || report.Netid != "rdma" || report.Calls != 4 || report.Procedure != 5 ||
		report.Fastest <= 0 || report.Slowest < report.Median || report.Seconds <= 0 {
		t.Errorf("%+v, %v", report, err)
	}
	recording := filepath.Join(t.TempDir(), "call.pcapng")
	ok(t, "rpc", "call", rdma, "0x20000099", "1", "--rdma", "--pcap", recording)
	if s, err := os.Stat(recording); err != nil || s.Size() == 0 {
		t.Errorf("the recording: %v", err)
	}
}

func TestRPCInfo(t *testing.T) {
	tcp, rdma := rpcServer(t)
	for _, args := range [][]string{{tcp}, {rdma, "--rdma"}} {
		out := ok(t, append([]string{"rpc", "info"}, args...)...)
		for _, want := range []string{
			"program    version  netid  address        service     owner\n",
			"100000     4        tcp    0.0.0.0.0.111  portmapper  urnic\n",
			"536871065  1        rdma6  ::.78.81       -           ?[31mme\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", args, want, out)
			}
		}
	}
	var got struct {
		Address, Netid string
		Programs       []rpcRegistered
	}
	if err := json.Unmarshal([]byte(ok(t, "rpc", "info", tcp, "--json")), &got); err != nil || len(got.Programs) != 2 || got.Address != tcp || got.Netid != "tcp" {
		t.Errorf("%+v, %v", got, err)
	}
	want := rpcRegistered{rpcbind.Program, 4, "tcp", "0.0.0.0.0.111", "portmapper", "urnic"}
	if len(got.Programs) > 0 && got.Programs[0] != want {
		t.Errorf("%+v", got.Programs[0])
	}
}

func TestRPCSaysWhatIsWrong(t *testing.T) {
	tcp, _ := rpcServer(t)
	nobody := net.JoinHostPort("127.0.0.1", unusedPort)
	for _, c := range []struct {
		args string
		want string
	}{
		{"call " + tcp + " 0x20000099 7", "no such version of the program: it has 1 to 1"},
		{"call " + tcp + " 1 7", "no such program"},
		{"call " + tcp + " 0x20000099 1 5", "can't decode the arguments"},
		{"call " + nobody + " nfs 3", "start the server, or give the port where it listens"},
		{"call " + nobody + " nfs 3 --rdma", "start the server, or give the port where it listens"},
		{"info " + nobody, "nobody listens at " + nobody},
		{"call name.invalid:1 nfs 3", "there is no address for the name \"name.invalid\""},
		{"call 1:2:3 nfs 3", "give HOST or HOST:PORT"},
		{"info :111", "names no host"},
		{"call a b 3", "\"b\" is no program: give its number"},
		{"call a nfs b", "\"b\" is no version"},
		{"call a nfs 3 b", "\"b\" is no procedure"},
		{"call a nfs 3 --args 00", "eight for each word of XDR"},
		{"call a nfs 3 --args xyzt", "eight for each word of XDR"},
		{"call a nfs 3 --count 0", "must be 1 or more"},
		{"call a nfs 3 --timeout 0s", "--timeout 0s: must be more than 0"},
		{"call a nfs 3 --tcp --rdma", "give only one of --tcp and --rdma"},
		{"call a nfs 3 --json --rdma --pcap -", "would both go to standard output"},
		{"call a nfs 3 --pcap x", "give --rdma too"},
		{"call a nfs", "give `urnic rpc call HOST[:PORT] PROGRAM VERSION [PROCEDURE]`: see `urnic rpc call --help`"},
		{"info a b", "give `urnic rpc info [HOST[:PORT]]`"},
	} {
		args := append([]string{"rpc"}, strings.Fields(c.args)...)
		status, _, errOut := urnic(t, nil, args...)
		wantError(t, args, status, errOut, c.want)
	}
}

// A server that takes the call but does not answer is not waited for.
func TestRPCCallTakesOnlySoLong(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The time may be over before there is a connection, or while the answer is waited for.
	for _, limit := range []string{"1ns", "50ms"} {
		for _, more := range [][]string{nil, {"--rdma"}} {
			args := append([]string{"rpc", "call", l.Addr().String(), "nfs", "3", "--timeout", limit}, more...)
			status, _, errOut := urnic(t, nil, args...)
			wantError(t, args, status, errOut, "no answer from "+l.Addr().String()+" within "+limit+": check address and port, or wait longer with --timeout")
		}
	}
}

func TestPortIsAskedOfRPCBind(t *testing.T) {
	tcp, _ := rpcServer(t)
	host, port, err := net.SplitHostPort(tcp)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, version uint32
		rdma             bool
		port, want       string
	}{
		{rpcbind.Program, 4, false, "111", ""},
		{0x20000099, 1, true, "20049", ""},
		{nfsProgram, 3, true, "20049", ""},
		{0x20000099, 1, false, "", "does not know where version 1 of program 536871065 is over tcp: give its port as HOST:PORT"},
		{0x20000099, 2, true, "", "does not know where version 2"},
	} {
		o := rpcCallOptions{host: host, bindPort: port, program: c.program, version: c.version}
		o.rdma = c.rdma
		if err := o.findPort(t.Context()); o.port != c.port || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("program %d version %d: %q, %v", c.program, c.version, o.port, err)
		}
	}
	o := rpcCallOptions{host: host, bindPort: ownPort(t), program: nfsProgram, version: 3}
	if err := o.findPort(t.Context()); err == nil || !strings.Contains(err.Error(), "rpcbind is asked for the port, as none was given: nobody listens at "+host) {
		t.Errorf("without rpcbind: %v", err)
	}
}

func TestHostsAndPorts(t *testing.T) {
	for s, want := range map[string][2]string{
		"host": {"host", ""}, "host:1": {"host", "1"}, "::1": {"::1", ""}, "[::1]": {"::1", ""}, "[::1]:1": {"::1", "1"}, "192.0.2.1:20049": {"192.0.2.1", "20049"},
	} {
		if host, port, err := splitHost(s); err != nil || host != want[0] || port != want[1] {
			t.Errorf("%s: %q %q, %v", s, host, port, err)
		}
	}
}
