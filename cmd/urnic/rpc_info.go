package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"urnic/internal/host/printable"
	"urnic/ulp/oncrpc/rpcbind"
)

const rpcInfoLong = `Info shows what is registered with the rpcbind service of HOST, or of this host: programs,
their versions, and where they listen, as rpcinfo does. It uses version 4 of the protocol,
or 3 or 2 if the service has no other (RFC 1833).

With --rdma it calls the service over RDMA, which only urnic's own service supports.

With --json it prints one JSON object; see docs/json.md.`

func newRPCInfoCommand() *cobra.Command {
	var o rpcOptions
	cmd := &cobra.Command{
		Use:   "info [HOST[:PORT]]",
		Short: "Show what is registered with rpcbind",
		Long:  rpcInfoLong,
		Example: `  urnic rpc info                     of this host
  urnic rpc info server --json       for programs
  urnic rpc info server:1111         of a service at another port than 111`,
		Args: rpcArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			host, port := "localhost", ""
			if len(args) > 0 {
				var err error
				if host, port, err = splitHost(args[0]); err != nil {
					return err
				}
			}
			if port == "" {
				port = rpcbind.Port
			}
			return o.info(cmd.Context(), net.JoinHostPort(host, port), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.add(cmd.Flags())
	return cmd
}

// rpcRegistered is a line of rpc info.
type rpcRegistered struct {
	Program uint32 `json:"program"`
	Version uint32 `json:"version"`
	Netid   string `json:"netid"`
	Address string `json:"address"` // universal
	Service string `json:"service"`
	Owner   string `json:"owner"`
}

func (o *rpcOptions) info(ctx context.Context, address string, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	c, end, err := o.connect(address, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	list, err := rpcbind.NewClient(c).Dump(ctx)
	if err != nil {
		return adviseRPC(err, address, o.timeout)
	}
	programs := make([]rpcRegistered, 0, len(list))
	for _, m := range list {
		programs = append(programs, rpcRegistered{m.Program, m.Version, m.Netid, m.Addr, rpcProgram(m.Program), m.Owner})
	}
	if o.pcap == "-" {
		stdout = stderr
	}
	if o.json {
		line, err := jsonLine("urnic-rpc-info/1", struct {
			Address  string          `json:"address"`
			Netid    string          `json:"netid"`
			Programs []rpcRegistered `json:"programs"`
		}{address, o.netid(), programs})
		if err == nil {
			_, err = fmt.Fprintln(stdout, line)
		}
		return err
	}
	t := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "program\tversion\tnetid\taddress\tservice\towner")
	for _, p := range programs {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%s\n", p.Program, p.Version, printable.Column(p.Netid), printable.Column(p.Address), p.Service, printable.Column(p.Owner))
	}
	return t.Flush()
}
