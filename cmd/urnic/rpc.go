package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/mpa"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/rpcrdma"
)

func newRPCCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rpc",
		Short: "Call programs of ONC RPC, over TCP and RDMA",
		Long: `Rpc calls programs of ONC RPC (RFC 5531), such as NFS, over TCP or by RPC-over-RDMA (RFC
8166), to see whether they are there, as rpcinfo does.`,
		Example: `  urnic rpc info server
  urnic rpc call server nfs 3 --rdma`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRPCCallCommand(), newRPCInfoCommand())
	return cmd
}

// rpcArgs takes so many arguments.
func rpcArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("give `urnic rpc %s`: see `%s --help`", cmd.Use, cmd.CommandPath())
		}
		return nil
	}
}

// rpcOptions are the flags of all subcommands of urnic rpc.
type rpcOptions struct {
	deviceFlags
	tcp, rdma bool
	json      bool
	timeout   time.Duration
}

func (o *rpcOptions) add(f *pflag.FlagSet) {
	f.BoolVar(&o.tcp, "tcp", false, "call over TCP (the default)")
	f.BoolVar(&o.rdma, "rdma", false, "call as RPC-over-RDMA")
	f.BoolVar(&o.json, "json", false, "write one JSON object")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long the command may take")
	o.deviceFlags.add(f)
}

func (o *rpcOptions) check(f *pflag.FlagSet) error {
	if o.json && o.pcap == "-" {
		return errJSONAndPcap
	}
	if o.pcap != "" && !o.rdma {
		return errors.New("--pcap records what passes by RDMA: give --rdma too")
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
	}
	return exclude(f, "tcp", "rdma")
}

// netid is what the transport is called.
func (o *rpcOptions) netid() string {
	if o.rdma {
		return rpcbind.RDMA
	}
	return rpcbind.TCP
}

// connect returns a client for the server at an address, which gives up at the first
// thing that goes wrong, and what closes it.
func (o *rpcOptions) connect(address string, stdout, stderr io.Writer) (c *oncrpc.Client, end func() error, err error) {
	dial := oncrpc.OverTCP(address, oncrpc.TCPConfig{})
	closeDevice := func() error { return nil }
	if o.rdma {
		dev, err := o.open(nil, stdout, stderr)
		if err != nil {
			return nil, nil, err
		}
		closeDevice = dev.Close
		dial = func(ctx context.Context) (oncrpc.Conn, error) {
			conn, err := rpcrdma.Dial(ctx, dev.Device, address, rpcrdma.Config{})
			if err != nil {
				return nil, err
			}
			return conn, nil
		}
	}
	c = oncrpc.NewClient(dial, oncrpc.ClientConfig{Dials: 1, Sends: 1, DialTimeout: o.timeout})
	return c, func() error { return errors.Join(c.Close(), closeDevice()) }, nil
}

// splitHost splits HOST or HOST:PORT; the port is empty if there is none.
func splitHost(s string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(s)
	if err != nil { // an address of IPv6 has colons too
		host, port = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), ""
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", "", fmt.Errorf("%s: give HOST or HOST:PORT, and an address of IPv6 with a port as [ADDRESS]:PORT", s)
		}
	}
	if host == "" {
		return "", "", fmt.Errorf("%q names no host: give one, or its address", s)
	}
	return host, port, nil
}

// rpcPrograms are the programs with names, as in /etc/rpc.
var rpcPrograms = map[string]uint32{
	"portmapper": rpcbind.Program, "rpcbind": rpcbind.Program, "rquotad": 100011, "nfs": nfsProgram, "mountd": 100005,
	"nlockmgr": 100021, "status": 100024, "nfs_acl": 100227,
}

// NFS has a port of its own over RDMA (RFC 8267 §9).
const (
	nfsProgram  = 100003
	nfsRDMAPort = "20049"
)

// rpcProgram returns the name of a program, or "-".
func rpcProgram(program uint32) string {
	if program == rpcbind.Program {
		return "portmapper" // it has two
	}
	for name, number := range rpcPrograms {
		if number == program {
			return name
		}
	}
	return "-"
}

// rpcNumber reads a number of what, which may have names too.
func rpcNumber(s, what string, names map[string]uint32) (uint32, error) {
	if n, ok := names[s]; ok {
		return n, nil
	}
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no %s: give its number", s, what)
	}
	return uint32(n), nil
}

// adviseRPC says what to do about a call that has failed.
func adviseRPC(err error, address string, timeout time.Duration) error {
	var unresolved *net.DNSError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unresolved):
		return advise(err, "there is no address for the name %q: give an IP address, or a name that can be looked up (%s)", unresolved.Name, unresolved.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(err, "nobody listens at %s%s: start the server, or give the port where it listens", address, errno(err))
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return advise(err, "no answer from %s within %v: check address and port, or wait longer with --timeout", address, timeout)
	case hungUp(err):
		return advise(err, "%s closes the connection: if the port belongs to the other transport, give --rdma or leave it out", address)
	case errors.As(err, new(*mpa.RejectedError)):
		return advise(err, "what listens at %s rejects the connection, as a server of another program may: give the address of a server of RPC-over-RDMA", address)
	}
	return fmt.Errorf("%s: %w", address, err)
}
