package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"urnic/ulp/rx/rxdebug"
)

const rxDebugLong = `Debug shows the state of an Rx server, as rxdebug does. It uses debug and version packets,
which need no connection and no authentication.

By default it shows the software version, calls and threads, and active connections. Linux
does not support debug packets; it answers only --version.

Servers answer a limited number of such packets a second. A packet without an answer is
repeated until --timeout. The exit status is 1 if an answer is missing, or if a list has no
end; what came before is shown.

With --json it prints one JSON object. Parts that were not requested are null or absent;
see docs/json.md.`

// rxDebugOptions are the flags of urnic rx debug.
type rxDebugOptions struct {
	deviceFlags
	stats, conns, all, peers, version bool
	json                              bool
	timeout                           time.Duration
	most                              int
}

func newRXDebugCommand() *cobra.Command {
	var o rxDebugOptions
	cmd := &cobra.Command{
		Use:   "debug HOST PORT",
		Short: "Show the state of a server, as rxdebug does",
		Long:  rxDebugLong,
		Example: `  urnic rx debug 192.0.2.7 7000
  urnic rx debug 192.0.2.7 7000 --version
  urnic rx debug 192.0.2.7 7003 --stats --conns --all --peers --json`,
		Args: rxArgs(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.timeout <= 0:
				return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
			case o.most < 1:
				return fmt.Errorf("--max %d: must be more than 0", o.most)
			case o.json && o.pcap == "-":
				return errJSONAndPcap
			}
			addr, err := rxHostPort(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), addr, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.stats, "stats", false, "show statistics")
	f.BoolVar(&o.conns, "conns", false, "show active connections")
	f.BoolVar(&o.all, "all", false, "show all connections")
	f.BoolVar(&o.peers, "peers", false, "show peers")
	f.BoolVar(&o.version, "version", false, "show the version of the software")
	f.BoolVar(&o.json, "json", false, "write one JSON object")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long an answer may take")
	f.IntVar(&o.most, "max", 1<<17, "most `ENTRIES` in a list")
	f.StringVar(&o.pcap, "pcap", "", "record the traffic in this `FILE` (pcapng; - is standard output)")
	f.StringVar(&o.logLevel, "log-level", "error", "what to log to standard error: debug, info, warn or error")
	return cmd
}

// want is what the flags ask for.
func (o *rxDebugOptions) want() rxdebug.Want {
	w := rxdebug.Want{Version: o.version, Stats: o.stats, Conns: o.conns || o.all, AllConns: o.all, Peers: o.peers}
	if w == (rxdebug.Want{}) {
		return rxdebug.Want{Version: true, Basic: true, Conns: true}
	}
	w.Basic = w.Stats
	return w
}

func (o *rxDebugOptions) run(ctx context.Context, addr netip.AddrPort, stdout, stderr io.Writer) (err error) {
	if _, err := o.config(stderr); err != nil { // of --log-level
		return err
	}
	var closing []func() error
	defer func() {
		for i := len(closing); i > 0; i-- {
			err = errors.Join(err, closing[i-1]())
		}
	}()
	w, err := o.recordUDP(func(f func() error) { closing = append(closing, f) }, stdout)
	if err != nil {
		return err
	}
	cfg := rxdebug.Config{Timeout: o.timeout, MaxEntries: o.most}
	if w != nil {
		cfg.Recorder = w
	}
	c, err := rxdebug.Dial(ctx, addr, cfg)
	if err != nil {
		return adviseRX(ctx, err, addr, 0)
	}
	closing = append(closing, c.Close)
	if o.pcap == "-" {
		stdout = stderr
	}
	r, failure := c.Ask(ctx, o.want())
	failure = o.advise(ctx, failure, addr)
	if o.json {
		return errors.Join(failure, writeJSON(stdout, "urnic-rx-debug/1", struct {
			*rxdebug.Report
			Error string `json:"error,omitempty"`
		}{r, reason(ctx, failure)}))
	}
	if r.Empty() {
		return failure
	}
	return errors.Join(failure, r.WriteText(stdout))
}

// advise says what to do about a question that was not answered.
func (o *rxDebugOptions) advise(ctx context.Context, err error, addr netip.AddrPort) error {
	var abort *rxdebug.AbortError
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(err, "nobody listens at port %d of %v%s: give the port of an Rx server, such as 7000 of a fileserver", addr.Port(), addr.Addr(), errno(err))
	case errors.Is(err, rxdebug.ErrSilent):
		return advise(err, "%v has not answered within %v: check address and port, or wait longer with --timeout", addr, o.timeout)
	case errors.Is(err, rxdebug.ErrUnended):
		return advise(err, "a list of %v does not end after %d entries: allow more with --max, if it can be that long", addr, o.most)
	case errors.As(err, &abort):
		return advise(err, "%v answers debug packets by an abort, %v, as Linux does: try --version", addr, abort.Code)
	}
	return err
}
