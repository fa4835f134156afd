package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/oncrpc/xdr"
)

const rpcCallLong = `Call calls a procedure of a program at HOST, and prints how long the call took. The default is
procedure 0, which each program has and which does nothing: it shows whether the program is
there. The exit status is 0 if the call was carried out.

Without a port, the port comes from the host's rpcbind. If that has no NFS over RDMA, port
20049 is used for it.

A program is a number, or one of the names nfs, mountd, nlockmgr, status, nfs_acl, rquotad
and portmapper. Procedures other than 0 may need arguments: --args gives them, as XDR in
hexadecimal digits. Results are shown in the same form.

With --json it prints one JSON object; see docs/json.md.`

// maxResults is how many bytes of results there may be.
const maxResults = 1 << 20

type rpcCallOptions struct {
	rpcOptions
	count int
	hex   string

	host, port, bindPort        string
	program, version, procedure uint32
	args                        []byte
}

func newRPCCallCommand() *cobra.Command {
	o := rpcCallOptions{bindPort: rpcbind.Port}
	cmd := &cobra.Command{
		Use:   "call HOST[:PORT] PROGRAM VERSION [PROCEDURE]",
		Short: "Call a procedure, and print how long it took",
		Long:  rpcCallLong,
		Example: `  urnic rpc call server nfs 3                      is NFS there, over TCP?
  urnic rpc call server nfs 3 --rdma               and over RDMA?
  urnic rpc call server:20049 nfs 3 --rdma --count 1000
  urnic rpc call [::1]:111 portmapper 4 6 --json   what time is it there?
  urnic rpc call server mountd 3 1 --args 000000042f746d70`,
		Args: rpcArgs(3, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.check(cmd.Flags()), o.parse(args)); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.count, "count", 1, "number of calls, one after the other")
	f.StringVar(&o.hex, "args", "", "the arguments, in hexadecimal `DIGITS`")
	o.add(f)
	o.addCRC(f)
	o.addSettle(f)
	return cmd
}

func (o *rpcCallOptions) parse(args []string) (err error) {
	if o.count < 1 {
		return fmt.Errorf("--count %d: must be 1 or more", o.count)
	}
	if o.args, err = hex.DecodeString(o.hex); err != nil || len(o.args)%4 != 0 {
		return fmt.Errorf("--args %s: give hexadecimal digits, eight for each word of XDR", o.hex)
	}
	if o.host, o.port, err = splitHost(args[0]); err != nil {
		return err
	}
	if o.program, err = rpcNumber(args[1], "program", rpcPrograms); err != nil {
		return err
	}
	if o.version, err = rpcNumber(args[2], "version", nil); err != nil {
		return err
	}
	if len(args) > 3 {
		o.procedure, err = rpcNumber(args[3], "procedure", nil)
	}
	return err
}

// rpcCallReport is what --json prints.
type rpcCallReport struct {
	Address   string  `json:"address"`
	Netid     string  `json:"netid"`
	Program   uint32  `json:"program"`
	Version   uint32  `json:"version"`
	Procedure uint32  `json:"procedure"`
	Calls     int     `json:"calls"`
	Seconds   float64 `json:"seconds"`
	Fastest   float64 `json:"fastest"`
	Median    float64 `json:"median"`
	Slowest   float64 `json:"slowest"`
	Results   string  `json:"results"`
}

func (o *rpcCallOptions) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := o.findPort(ctx); err != nil {
		return err
	}
	address := net.JoinHostPort(o.host, o.port)
	c, end, err := o.connect(address, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var results []byte
	v := &oncrpc.Invocation{
		Program: o.program, Version: o.version, Procedure: o.procedure,
		Args:        func(e *xdr.Encoder) { e.Fixed(o.args) },
		Results:     func(d *xdr.Decoder) error { results = append(results[:0], d.Fixed(d.Left())...); return d.Err() },
		ResultsMost: maxResults,
	}
	if o.procedure == 0 {
		v.ResultsMost = 0
	}
	times := make([]time.Duration, 0, min(o.count, 1<<20))
	begin := time.Now()
	for range o.count {
		from := time.Now()
		if err := c.Call(ctx, v); err != nil {
			return adviseRPC(err, address, o.timeout)
		}
		times = append(times, time.Since(from))
	}
	took := time.Since(begin)
	slices.Sort(times)
	if o.pcap == "-" {
		stdout = stderr
	}
	return o.report(stdout, times, &rpcCallReport{
		Address: address, Netid: o.netid(), Program: o.program, Version: o.version, Procedure: o.procedure,
		Calls: o.count, Seconds: took.Seconds(), Results: hex.EncodeToString(results),
	})
}

func (o *rpcCallOptions) report(w io.Writer, sorted []time.Duration, r *rpcCallReport) error {
	fastest, median, slowest := sorted[0], sorted[len(sorted)/2], sorted[len(sorted)-1]
	if o.json {
		micro := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
		r.Fastest, r.Median, r.Slowest = micro(fastest), micro(median), micro(slowest)
		return writeJSON(w, "urnic-rpc-call/1", r)
	}
	what := fmt.Sprintf("program %d version %d", r.Program, r.Version)
	if r.Procedure != 0 {
		what += fmt.Sprintf(" procedure %d", r.Procedure)
	}
	_, err := fmt.Fprintf(w, "%s ready and waiting at %s over %s, %v\n", what, r.Address, r.Netid, fastest.Round(time.Microsecond))
	if r.Calls > 1 && err == nil {
		_, err = fmt.Fprintf(w, "%d calls, %.0f a second; the fastest took %v, half of them up to %v, the slowest %v\n",
			r.Calls, float64(r.Calls)/r.Seconds, fastest.Round(time.Microsecond), median.Round(time.Microsecond), slowest.Round(time.Microsecond))
	}
	if r.Results != "" && err == nil {
		_, err = fmt.Fprintf(w, "results: %s\n", r.Results)
	}
	return err
}

// findPort asks the host's rpcbind where the program is, if that was not said.
func (o *rpcCallOptions) findPort(ctx context.Context) error {
	if o.port != "" {
		return nil
	}
	binder := net.JoinHostPort(o.host, o.bindPort)
	c := rpcbind.NewClient(oncrpc.NewClient(oncrpc.OverTCP(binder, oncrpc.TCPConfig{}), oncrpc.ClientConfig{Dials: 1, Sends: 1}))
	defer c.Close() //nolint:errcheck // it has done its work
	netids := []string{o.netid(), o.netid() + "6"}
	if ip := net.ParseIP(o.host); ip != nil && ip.To4() == nil {
		slices.Reverse(netids)
	}
	var port uint16
	var err error
	for _, netid := range netids {
		if port, err = c.FindPort(ctx, o.program, o.version, netid); err == nil {
			o.port = strconv.Itoa(int(port))
			return nil
		}
		if !errors.Is(err, rpcbind.ErrUnknown) {
			break
		}
	}
	switch {
	case o.rdma && o.program == nfsProgram && ctx.Err() == nil:
		o.port = nfsRDMAPort
		return nil
	case errors.Is(err, rpcbind.ErrUnknown):
		return fmt.Errorf("%s does not know where version %d of program %d is over %s: give its port as HOST:PORT, or see `urnic rpc info %s` (%w)",
			binder, o.version, o.program, o.netid(), o.host, rpcbind.ErrUnknown)
	}
	return fmt.Errorf("rpcbind is asked for the port, as none was given: %w", adviseRPC(err, binder, o.timeout))
}
