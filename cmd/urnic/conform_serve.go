package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"urnic/conformance/service"
	"urnic/conformance/service/server"
	"urnic/internal/host/listen"
)

// conformServeOptions are the flags of urnic conform serve.
type conformServeOptions struct {
	deviceFlags
	listen          string
	json            bool
	connectAnywhere bool
	maxSessions     int
}

func newConformServeCommand() *cobra.Command {
	var o conformServeOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer the test service until interrupted",
		Long: `Serve offers the test service (docs/conform-service.md). Each client that connects gets an
RNIC of its own and controls it; the RNIC closes with the connection. With --llp rdp the
RNIC runs on RDP over UDP; the service itself still runs over TCP.

The service has no authentication. Each client that reaches it can register memory here,
open it to any peer, read and write it, open ports, and make connections. So it listens on
loopback by default; use --listen only where no untrusted client can connect. It connects
only to the host of the client, unless --connect-anywhere is given.

With --json it prints a JSON object in one line when it listens; see docs/json.md.`,
		Example: `  urnic conform serve
  urnic conform serve --listen 127.0.0.1:0 --json
  urnic conform serve --listen 192.0.2.7:7176 --pcap served.pcapng
  urnic conform serve --llp rdp         for urnic conform --llp rdp`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return served(cmd.Context(), runConformServe(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	cmd.SetFlagErrorFunc(flagError) // not with the status of urnic conform
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7176", "`ADDRESS` and port to listen at; 0.0.0.0 is IPv4 alone, [::] IPv6 alone, no address both")
	f.BoolVar(&o.json, "json", false, "print the listening address as a JSON object")
	f.BoolVar(&o.connectAnywhere, "connect-anywhere", false, "let clients have connections made to any host")
	f.IntVar(&o.maxSessions, "max-sessions", server.DefaultMaxSessions, "most `SESSIONS` at a time")
	o.add(f)
	o.addLLP(f)
	return cmd
}

func (o *conformServeOptions) check() error {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return fmt.Errorf("--listen %s: give ADDRESS:PORT, such as 127.0.0.1:7176", o.listen)
	}
	switch {
	case o.maxSessions < 1:
		return fmt.Errorf("--max-sessions %d: must be 1 or more", o.maxSessions)
	case o.json && o.pcap == "-":
		return errJSONAndPcap
	}
	return nil
}

func runConformServe(ctx context.Context, o *conformServeOptions, stdout, stderr io.Writer) (err error) {
	cfg, err := o.config(stderr)
	if err != nil {
		return err
	}
	files := &device{} // each session opens its own
	if cfg.Record, err = o.record(files, stdout); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.closeFiles()) }()
	layer, end, err := o.lower(cfg.Record)
	if err != nil {
		return err
	}
	if layer != nil {
		cfg.LowerLayer, cfg.Record = layer, nil
	}
	if end != nil {
		files.close = append([]func() error{end}, files.close...)
	}
	l, err := listen.TCP(ctx, o.listen)
	if err != nil {
		return adviseConformListen(err, o.listen)
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	out.print(o.ready(l.Addr()))
	options := server.Options{Device: cfg, MaxSessions: o.maxSessions, ConnectAnywhere: o.connectAnywhere}
	return errors.Join(unlessEnded(ctx, server.Serve(ctx, l, options)), out.failed)
}

// ready is the line that says that the service listens.
func (o *conformServeOptions) ready(a net.Addr) string {
	if !o.json {
		return fmt.Sprintf("listening at %v", a)
	}
	line, err := jsonLine("urnic-conform-serve/1", struct {
		Listening string `json:"listening"`
		Protocol  int    `json:"protocol"`
	}{a.String(), service.Version})
	if err != nil { // of a string and a number: it can't be
		return err.Error()
	}
	return line
}

// adviseConformListen says what to do about an address that can't be listened at.
func adviseConformListen(err error, address string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return advise(err, "another program listens at %s%s: give another port with --listen", address, errno(err))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "--listen %s: that is no address of this machine: give one of its own%s", address, errno(err))
	case errors.Is(err, syscall.EACCES):
		return advise(err, "--listen %s: that port is for privileged programs: give one from 1024 on%s", address, errno(err))
	}
	return fmt.Errorf("--listen %s: %w", address, err)
}
