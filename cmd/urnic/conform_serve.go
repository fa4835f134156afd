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
	"urnic/internal/listen"
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
		Long: `Serve offers the test service (docs/conform-service.md): who connects gets an RNIC of its
own, tells it what to do, and loses all of it when the connection ends.

It has no authentication. Whoever can reach it can have memory registered here, opened to
any peer, read and written, ports opened, and connections made. So it listens on loopback
only, unless told otherwise; listen elsewhere only where none but those reach it who may.
It connects to the host alone that asks it to, but for --connect-anywhere.

With --json it says in one line that it listens: {"listening":"127.0.0.1:7176","protocol":1}.`,
		Example: `  urnic conform serve
  urnic conform serve --listen 127.0.0.1:0 --json
  urnic conform serve --listen 192.0.2.7:7176 --pcap served.pcapng`,
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
	f.BoolVar(&o.json, "json", false, "say as a JSON object where it listens")
	f.BoolVar(&o.connectAnywhere, "connect-anywhere", false, "let those who ask have connections made to any host")
	f.IntVar(&o.maxSessions, "max-sessions", service.DefaultMaxSessions, "`SESSIONS` at a time")
	o.add(f)
	return cmd
}

func (o *conformServeOptions) check() error {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return fmt.Errorf("--listen %s: give ADDRESS:PORT, such as 127.0.0.1:7176", o.listen)
	}
	switch {
	case o.maxSessions < 1:
		return fmt.Errorf("--max-sessions %d: say 1 or more", o.maxSessions)
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
	l, err := listen.TCP(ctx, o.listen)
	if err != nil {
		return adviseConformListen(err, o.listen)
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	out.print(o.ready(l.Addr()))
	options := service.Options{Device: cfg, MaxSessions: o.maxSessions, ConnectAnywhere: o.connectAnywhere}
	return errors.Join(service.Serve(ctx, l, options), out.failed)
}

// ready is the line that says that the service listens.
func (o *conformServeOptions) ready(a net.Addr) string {
	if !o.json {
		return fmt.Sprintf("listening at %v", a)
	}
	line, err := jsonLine(struct {
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
