package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"

	"urnic/internal/host/plural"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
)

const rdpPingLong = `Ping opens a connection to a port of a host that is listened at, and prints round-trip times
in microseconds: those of NUL segments, which each RDP acknowledges at once by itself. RDP
loses no NUL: one that is lost is sent again, and its time includes that. The time to open
the connection is the round trip of a SYN.

At the end the connection is aborted, so that urnic rdp recv does not take it for a file.
Other programs may take it for an empty file.

The exit status is 0 if each NUL was acknowledged, or if the command was interrupted and one
was. Without -c, pings are sent until the command is interrupted; it then sums up.

With --json it prints a JSON object in one line for each answer, and one at the end;
see docs/json.md.`

// rdpPingFormat is the format of --json.
const rdpPingFormat = "urnic-rdp-ping/1"

// rdpPingOptions are the flags of urnic rdp ping.
type rdpPingOptions struct {
	rdpFlags
	count    int
	interval time.Duration
	timeout  time.Duration
	json     bool
}

func newRDPPingCommand() *cobra.Command {
	var o rdpPingOptions
	cmd := &cobra.Command{
		Use:   "ping HOST[:UDPPORT]",
		Short: "Measure round trips to an endpoint",
		Long:  rdpPingLong,
		Example: `  urnic rdp ping 192.0.2.7
  urnic rdp ping -c 10 -i 100ms --version 1 192.0.2.7:10908
  urnic rdp ping --port 1200 --pcap ping.pcapng 192.0.2.7`,
		Args: rxArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			to, err := o.host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], to, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.count, "count", "c", 0, "`PINGS` to send (0: until interrupted)")
	f.DurationVarP(&o.interval, "interval", "i", time.Second, "time between pings")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long an answer may take")
	f.BoolVar(&o.json, "json", false, "write JSON objects, one for each answer and one at the end")
	o.add(f, 2)
	return cmd
}

func (o *rdpPingOptions) check() error {
	switch {
	case o.version == 0:
		return errors.New("--version 0: must be 1 or 2")
	case o.count < 0:
		return fmt.Errorf("-c %d: must be 0 or more (0: no end)", o.count)
	case o.interval <= 0:
		return fmt.Errorf("-i %v: must be more than 0", o.interval)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
	case o.json && o.pcap == "-":
		return errJSONAndPcap
	}
	return o.rdpFlags.check()
}

// rdpPings are the pings of a command.
type rdpPings struct {
	Address string    `json:"address"`
	Port    int       `json:"port"`
	Version int       `json:"version"`
	Open    int64     `json:"open_usec"`
	Pings   int       `json:"pings"`
	Answers int64     `json:"answers"`
	Resent  uint32    `json:"resent"`
	Usec    *rdsTimes `json:"usec"`
	Error   string    `json:"error,omitempty"`

	times *hdrhistogram.Histogram // microseconds
}

func (o *rdpPingOptions) run(ctx context.Context, text string, to netip.AddrPort, stdout, stderr io.Writer) (err error) {
	at, err := o.source(ctx, to)
	if err != nil {
		return err
	}
	e, err := o.openEndpoint(ctx, "urnic rdp ping", at, nil, stdout, stderr)
	if err != nil {
		return err
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	defer func() { err = errors.Join(err, e.Close(), out.failed) }()
	p := o.params(at)
	p.Keepalive = -1 // pings are that
	begun := time.Now()
	c, err := o.dial(ctx, e, to, p, o.timeout)
	if err != nil {
		return err
	}
	pings := &rdpPings{
		Address: text, Port: o.port, Version: o.version, Open: time.Since(begun).Microseconds(),
		times: hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3),
	}
	if !o.json {
		out.print(fmt.Sprintf("%s, version %d: open after %d usec", o.place(to, uint16(o.port)), o.version, pings.Open))
	}
	failure := o.ping(ctx, c, pings, out)
	pings.Resent = c.Status().Stats.Resent
	giveUp(c)
	return o.sum(ctx, pings, failure, out)
}

// ping sends pings until that is over, and prints the answers.
func (o *rdpPingOptions) ping(ctx context.Context, c *rdp.Conn, p *rdpPings, out *lines) error {
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	for {
		p.Pings++
		limited, cancel := context.WithTimeoutCause(ctx, o.timeout, errRDPSilent)
		took, err := c.Probe(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRDPSilent):
			return advise(err, "no answer within %v: the peer or the network is down; or wait longer with --timeout", o.timeout)
		case errors.Is(err, machine.ErrReset):
			return advise(err, "the peer has closed the connection")
		case err != nil:
			return err
		}
		p.Answers++
		usec := max(took.Microseconds(), 1)
		_ = p.times.RecordValue(min(usec, p.times.HighestTrackableValue())) // which it has room for
		o.tell(p, usec, out)
		if p.Pings == o.count {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// tell prints an answer.
func (o *rdpPingOptions) tell(p *rdpPings, usec int64, out *lines) {
	if !o.json {
		out.print(fmt.Sprintf("%4d: %d usec", p.Answers, usec))
		return
	}
	line, err := jsonLine(rdpPingFormat, struct {
		Address string `json:"address"`
		Number  int64  `json:"number"`
		Usec    int64  `json:"usec"`
	}{p.Address, p.Answers, usec})
	if err == nil {
		out.print(line)
	}
}

// sum prints what has come of all pings.
func (o *rdpPingOptions) sum(ctx context.Context, p *rdpPings, failure error, out *lines) error {
	if h := p.times; p.Answers > 0 {
		p.Usec = &rdsTimes{h.Min(), h.Mean(), h.ValueAtPercentile(50), h.ValueAtPercentile(99), h.Max()}
	}
	p.Error = reason(ctx, failure)
	if o.json {
		line, err := jsonLine(rdpPingFormat, p)
		if err != nil {
			return err
		}
		out.print(line)
	} else {
		out.print(fmt.Sprintf("--- %s rdp ping statistics ---", p.Address))
		line := fmt.Sprintf("%s, %s", plural.Count(p.Pings, "ping"), plural.Count(int(p.Answers), "answer"))
		if p.Resent > 0 {
			line += fmt.Sprintf(", %d sent again", p.Resent)
		}
		if u := p.Usec; u != nil {
			line += fmt.Sprintf(", min/mean/p50/p99/max = %d/%.0f/%d/%d/%d usec", u.Min, u.Mean, u.P50, u.P99, u.Max)
		}
		out.print(line)
	}
	switch {
	case failure != nil:
		return failure
	case ctx.Err() != nil && (o.count > 0 || p.Answers == 0):
		return context.Cause(ctx)
	}
	return nil
}
