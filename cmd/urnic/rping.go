package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/program/rping"
)

const rpingLong = `Rping exchanges data by Sends, RDMA Reads and RDMA Writes. It is compatible with rdma-core's
rping on the wire and in its flags, as client and as server.

Each round, the server reads the client's data by RDMA Read and writes it back by RDMA
Write. With -V the client compares the two. The exit status is 0 if all rounds succeeded.

A client without -v shows its progress on a terminal, if it takes longer than two seconds.
An interrupted client sums up its rounds, as ping does. Without -C, which means rounds until
interrupted, its exit status is 0 then.

With --json it prints a JSON object in one line for each connection, at its end;
see docs/json.md.`

// rpingOptions are the flags of urnic rping.
type rpingOptions struct {
	deviceFlags
	server, client, persistent bool
	address, source            string
	port, count, size          int
	verbose, validate, debug   bool
	json                       bool
	ownQP                      bool
	timeout                    time.Duration
}

func newRpingCommand() *cobra.Command {
	var o rpingOptions
	cmd := &cobra.Command{
		Use:   "rping -s|-c [flags]",
		Short: "Ping a peer by RDMA, as rdma-core's rping does",
		Long:  rpingLong,
		Example: `  urnic rping -s -a 127.0.0.1 -v                    serve one client
  urnic rping -s -P                                 serve any number of clients
  urnic rping -c -a 127.0.0.1 -C 10 -v -V           show and compare ten rounds
  urnic rping -c -a ::1 -C 1000 -S 65535 -V         over IPv6
  urnic rping -c -a 127.0.0.1 --crc off --pcap x.pcapng -C 3
  urnic rping -c -a 127.0.0.1 -C 1000 --json        the result for programs`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return runRping(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.server, "server", "s", false, "be the server")
	f.BoolVarP(&o.client, "client", "c", false, "be the client")
	f.StringVarP(&o.address, "address", "a", "", "the server's `ADDRESS`, IPv4 or IPv6; a server listens at all addresses by default, at all IPv4 addresses with 0.0.0.0, all IPv6 with ::")
	f.StringVarP(&o.source, "source", "I", "", "`ADDRESS` from which a client connects")
	f.IntVarP(&o.port, "port", "p", 7174, "the server's `PORT`")
	f.IntVarP(&o.count, "count", "C", 0, "`ROUNDS` of a client (0: until interrupted)")
	f.IntVarP(&o.size, "size", "S", 0, fmt.Sprintf("ping data in `BYTES`, %d to %d: of a client (default %d), or the most that a server accepts (default %[2]d)", rping.MinSize, rping.MaxSize, rping.DefaultSize))
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show the ping data")
	f.BoolVarP(&o.validate, "validate", "V", false, "compare the ping data")
	f.BoolVar(&o.json, "json", false, "write one JSON object for each connection")
	f.BoolVarP(&o.debug, "debug", "d", false, "the same as --trace --log-level debug")
	f.BoolVarP(&o.persistent, "persistent", "P", false, "a server serves clients until interrupted")
	f.BoolVarP(&o.ownQP, "own-qp", "q", false, "no effect; for compatibility with rdma-core")
	f.DurationVar(&o.timeout, "connect-timeout", 10*time.Second, "how long a client tries to connect")
	o.add(f)
	o.addMPA(f)
	o.addLLP(f)
	return cmd
}

// check finds what is wrong with the flags, and fills in the size.
func (o *rpingOptions) check(f *pflag.FlagSet) error {
	switch {
	case !o.server && !o.client:
		return errors.New("give -s to be the server, or -c -a ADDRESS to be the client")
	case o.server && o.client:
		return errors.New("give only one of -s and -c: be the server or the client")
	case o.client && o.address == "":
		return errors.New("a client needs the server's address: give -a ADDRESS")
	case o.port < 1 || o.port > 65535:
		return fmt.Errorf("-p %d: must be 1 to 65535", o.port)
	case o.count < 0:
		return fmt.Errorf("-C %d: must be 0 or more (0: no end)", o.count)
	case o.timeout <= 0:
		return fmt.Errorf("--connect-timeout %v: must be more than 0", o.timeout)
	}
	switch {
	case f.Changed("size") && (o.size < rping.MinSize || o.size > rping.MaxSize):
		return fmt.Errorf("-S %d: must be %d to %d", o.size, rping.MinSize, rping.MaxSize)
	case f.Changed("size"):
	case o.server:
		o.size = rping.MaxSize
	default:
		o.size = rping.DefaultSize
	}
	if err := exclude(f, "verbose", "json"); err != nil {
		return err
	}
	if o.json && o.pcap == "-" {
		return errJSONAndPcap
	}
	return o.checkAddress()
}

func (o *rpingOptions) checkAddress() error {
	if a, err := netip.ParseAddrPort(o.address); err == nil {
		return fmt.Errorf("-a %s: give the port with -p: -a %v -p %d", o.address, a.Addr(), a.Port())
	}
	if strings.HasPrefix(o.address, "[") && strings.HasSuffix(o.address, "]") {
		o.address = o.address[1 : len(o.address)-1]
	}
	if a, err := netip.ParseAddr(o.address); err == nil && a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "" {
		return fmt.Errorf("-a %v: a link-local address needs its interface: give %[1]v%%INTERFACE", a)
	}
	if o.source != "" && net.ParseIP(o.source) == nil {
		return fmt.Errorf("-I %s: give an IP address of this machine", o.source)
	}
	return nil
}

// endpoint returns the server's address with its port.
func (o *rpingOptions) endpoint() string {
	return net.JoinHostPort(o.address, strconv.Itoa(o.port))
}
