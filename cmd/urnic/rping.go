package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/rping"
	"urnic/rnic"
)

const rpingLong = `Rping plays ping-pong by Sends, RDMA Reads and RDMA Writes, compatible with rdma-core's
rping on the wire and in its flags, as client and as server.

Each round, the server reads the client's data by RDMA Read and writes it back by RDMA
Write. With -V the client compares the two. The exit status is 0 if all rounds went well.`

// rpingOptions are the flags of urnic rping.
type rpingOptions struct {
	deviceFlags
	server, client, persistent bool
	address, source            string
	port, count, size          int
	verbose, validate, debug   bool
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
  urnic rping -s -P                                 serve clients, one after another or at once
  urnic rping -c -a 127.0.0.1 -C 10 -v -V           ten rounds, shown and compared
  urnic rping -c -a ::1 -C 1000 -S 65535 -V         over IPv6
  urnic rping -c -a 10.0.0.7 --crc off --pcap x.pcapng -C 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRping(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.server, "server", "s", false, "be the server")
	f.BoolVarP(&o.client, "client", "c", false, "be the client")
	f.StringVarP(&o.address, "address", "a", "", "the server's `ADDRESS`, IPv4 or IPv6; a server listens at all if there is none")
	f.StringVarP(&o.source, "source", "I", "", "`ADDRESS` to connect from")
	f.IntVarP(&o.port, "port", "p", 7174, "port")
	f.IntVarP(&o.count, "count", "C", 0, "rounds (0: until interrupted)")
	f.IntVarP(&o.size, "size", "S", rping.DefaultSize, "octets of ping data; a server takes up to that many")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show the ping data")
	f.BoolVarP(&o.validate, "validate", "V", false, "compare the ping data")
	f.BoolVarP(&o.debug, "debug", "d", false, "print what happens: --trace --log-level debug")
	f.BoolVarP(&o.persistent, "persistent", "P", false, "a server serves clients until it is interrupted")
	f.BoolVarP(&o.ownQP, "own-qp", "q", false, "accepted for rdma-core's sake: queue pairs are always this program's own")
	f.DurationVar(&o.timeout, "connect-timeout", 10*time.Second, "how long a client tries to connect")
	o.add(f)
	o.addMPA(f)
	cmd.MarkFlagsOneRequired("server", "client")
	cmd.MarkFlagsMutuallyExclusive("server", "client")
	return cmd
}

func runRping(ctx context.Context, o rpingOptions, stdout, stderr io.Writer) (err error) {
	if o.debug {
		o.trace, o.logLevel = true, "debug"
	}
	var network rnic.Network
	if o.source != "" {
		ip := net.ParseIP(o.source)
		if ip == nil {
			return fmt.Errorf("-I %s: give an IP address", o.source)
		}
		network = boundNetwork{ip}
	}
	dev, err := o.open(network, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	pd, err := dev.AllocPD()
	if err != nil {
		return err
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	if o.client {
		return o.runClient(ctx, pd, out)
	}
	return o.runServer(ctx, dev, pd, out)
}

// lines writes lines of several connections to one writer.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) print(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, s)
}

func (o *rpingOptions) end(pd *rnic.PD, out *lines) (*rping.End, error) {
	r := rping.Options{Size: o.size, Count: o.count, Validate: o.validate}
	if o.verbose {
		r.Show = out.print
	}
	return rping.NewEnd(pd, r)
}

func (o *rpingOptions) runClient(ctx context.Context, pd *rnic.PD, out *lines) (err error) {
	if o.address == "" {
		return errors.New("a client needs the server's address: give -a ADDRESS")
	}
	e, err := o.end(pd, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	dial, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := e.QP.Connect(dial, net.JoinHostPort(o.address, strconv.Itoa(o.port)), rnic.ConnParam{IRD: 1, ORD: 1}); err != nil {
		return err
	}
	err = e.Client(ctx)
	if ctx.Err() != nil && o.count == 0 { // interrupted, as it was meant to be
		err = nil
	}
	return errors.Join(err, disconnect(ctx, e.QP))
}

// disconnect closes a connection gracefully, if it is still there.
func disconnect(ctx context.Context, qp *rnic.QP) error {
	if qp.State() != rnic.RTS {
		return nil
	}
	return qp.Disconnect(context.WithoutCancel(ctx)) // the device bounds the time
}

func (o *rpingOptions) runServer(ctx context.Context, dev *device, pd *rnic.PD, out *lines) (err error) {
	l, err := dev.Listen(ctx, net.JoinHostPort(o.address, strconv.Itoa(o.port)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		r, err := l.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil && o.persistent { // interrupted, as it was meant to be
				return nil
			}
			return err
		}
		if !o.persistent {
			return o.serve(ctx, pd, r, out)
		}
		wg.Go(func() {
			if err := o.serve(ctx, pd, r, out); err != nil && ctx.Err() == nil {
				out.print(fmt.Sprintf("client %v: %v", r.RemoteAddr(), err))
			}
		})
	}
}

func (o *rpingOptions) serve(ctx context.Context, pd *rnic.PD, r *rnic.ConnRequest, out *lines) (err error) {
	e, err := o.end(pd, out)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := r.Accept(ctx, e.QP, rnic.ConnParam{IRD: 1, ORD: 1}); err != nil {
		return err
	}
	return e.Server(ctx)
}
