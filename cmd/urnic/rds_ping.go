package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"

	"urnic/internal/host/plural"
	"urnic/ulp/rds"
)

const rdsPingLong = `Ping sends pings of RDS to nodes, and prints how long each answer took, in microseconds, as
rds-ping does. Nodes answer by themselves. RDS loses no ping: one that a peer can't receive
now is sent when it can, and its time includes the wait. Without an answer, nothing is
printed.

The exit status is 0 if each ADDRESS has answered a ping, and 1 if one has not. Without -c,
pings are sent until the command is interrupted; it then sums up and sets the same status.

The node of this command needs an address of this host, --source, that no other node has,
not even Linux's RDS. The default is the address from which the host reaches the first
ADDRESS.

With --json it prints a JSON object in one line for each answer, and one for each address at
the end; see docs/json.md.`

// rdsPingFormat is the format of --json.
const rdsPingFormat = "urnic-rds-ping/1"

// rdsPingOptions are the flags of urnic rds ping.
type rdsPingOptions struct {
	rdsFlags
	source   string
	count    int
	interval rdsInterval
	timeout  time.Duration
	tos      uint8
	json     bool
}

func newRDSPingCommand() *cobra.Command {
	var o rdsPingOptions
	cmd := &cobra.Command{
		Use:   "ping ADDRESS...",
		Short: "Ping nodes, as rds-ping does",
		Long:  rdsPingLong,
		Example: `  urnic rds ping 192.0.2.7
  urnic rds ping -c 3 -i 0.1 192.0.2.7 192.0.2.8
  urnic rds ping --source 192.0.2.1 --transport iwarp 192.0.2.7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("give the address of a node: see `%s --help`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.count, "count", "c", 0, "`PINGS` to each address (0: until interrupted)")
	o.interval = rdsInterval(time.Second)
	f.VarP(&o.interval, "interval", "i", "`TIME` between pings, in seconds or with a unit: 0.5, 100ms or 100msec")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for answers after the last ping")
	f.StringVarP(&o.source, "source", "I", "", "this node's `ADDRESS`, one of this host")
	f.Uint8VarP(&o.tos, "tos", "Q", 0, "type of `SERVICE`; each has its own connection over iwarp")
	f.BoolVar(&o.json, "json", false, "write JSON objects, one for each answer and each address")
	o.add(f)
	return cmd
}

func (o *rdsPingOptions) check() error {
	switch {
	case o.count < 0:
		return fmt.Errorf("-c %d: must be 0 or more (0: no end)", o.count)
	case o.interval <= 0:
		return fmt.Errorf("-i %v: must be more than 0", &o.interval)
	case o.timeout < 0:
		return fmt.Errorf("--timeout %v: must be 0 or more", o.timeout)
	case o.json && o.pcap == "-":
		return errJSONAndPcap
	}
	return o.rdsFlags.check()
}

// An rdsInterval is the value of a flag that takes a time as rds-ping(1) does: a number of seconds, or of msec or usec. It
// takes times of Go, too.
type rdsInterval time.Duration

func (i *rdsInterval) String() string { return time.Duration(*i).String() }

// Type returns the name by which flagError knows what the flag takes.
func (i *rdsInterval) Type() string { return "interval" }

// Set takes 1, 0.5, 100msec and 100ms.
func (i *rdsInterval) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil {
		*i = rdsInterval(d)
		return nil
	}
	number, unit := text, time.Second
	for suffix, d := range map[string]time.Duration{"msec": time.Millisecond, "usec": time.Microsecond} {
		if n, is := strings.CutSuffix(text, suffix); is {
			number, unit = n, d
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if d := n * float64(unit); err == nil && d > -1<<62 && d < 1<<62 { // which NaN is not
		*i = rdsInterval(d)
		return nil
	}
	return errors.New("no interval")
}

// A pinged is an address that is pinged.
type pinged struct {
	addr    netip.Addr
	text    string
	socket  *rds.Socket
	many    bool // there are others
	mu      sync.Mutex
	sent    []time.Time // of pings that are not answered, the oldest first
	pings   int
	answers *hdrhistogram.Histogram // microseconds
}

func (o *rdsPingOptions) run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var targets []*pinged
	for _, arg := range args {
		a, err := rdsAddress(ctx, arg)
		if err != nil {
			return err
		}
		if err := o.checkPeer(a); err != nil {
			return err
		}
		if i := slices.IndexFunc(targets, func(t *pinged) bool { return t.addr == a }); i >= 0 {
			return fmt.Errorf("%s and %s are one address: give it once", targets[i].text, arg)
		}
		targets = append(targets, &pinged{addr: a, text: arg, many: len(args) > 1, answers: hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3)})
	}
	source, err := o.sourceOf(ctx, targets[0].addr)
	if err != nil {
		return err
	}
	node, err := o.openNode(ctx, source, nil, stdout, stderr)
	if err != nil {
		return err
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	defer func() { err = errors.Join(err, node.Close(), out.failed) }()
	var w sync.WaitGroup
	errs := make([]error, len(targets))
	for i, t := range targets {
		if t.socket, err = node.Bind(0); err != nil {
			break
		}
		w.Go(func() { errs[i] = o.ping(ctx, t, out) })
	}
	w.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	return o.sum(ctx, node.Node, targets, out)
}

// sourceOf returns the address of the node.
func (o *rdsPingOptions) sourceOf(ctx context.Context, peer netip.Addr) (netip.Addr, error) {
	if o.source == "" {
		return sourceFor(ctx, peer)
	}
	a, err := netip.ParseAddr(o.source)
	switch {
	case err != nil:
		return a, fmt.Errorf("--source %s: give an IP address of this machine", o.source)
	case a.Unmap().Is4() != peer.Is4():
		return a, fmt.Errorf("--source %s: %v can't be reached from it: give two IPv4 addresses or two of IPv6", o.source, peer)
	}
	return a.Unmap(), nil
}

// ping sends pings to one address until that is over, and prints the answers.
func (o *rdsPingOptions) ping(ctx context.Context, t *pinged, out *lines) error {
	// Answers are waited for after the last ping, also of a command that is interrupted once all are sent.
	answers, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	all := make(chan struct{}) // closed when all are answered
	var w sync.WaitGroup
	w.Go(func() {
		o.answers(answers, t, all, out)
	})
	defer w.Wait()
	defer stop()
	tick := time.NewTicker(time.Duration(o.interval))
	defer tick.Stop()
	for {
		t.mu.Lock()
		t.sent = append(t.sent, time.Now())
		t.pings++
		last := t.pings == o.count
		t.mu.Unlock()
		err := t.socket.SendTo(ctx, nil, rds.Addr{Host: t.addr, TOS: o.tos})
		switch {
		case interrupted(ctx, err):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", t.text, err)
		case last:
			timeout := time.NewTimer(o.timeout)
			defer timeout.Stop()
			select {
			case <-all:
			case <-timeout.C:
			case <-ctx.Done():
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// answers takes the answers of one address. They come in the order of the pings.
func (o *rdsPingOptions) answers(ctx context.Context, t *pinged, all chan<- struct{}, out *lines) {
	for number := 1; ; number++ {
		msg, err := t.socket.Receive(ctx)
		if err != nil {
			return
		}
		if msg.Addr.Host != t.addr || msg.Addr.Port != 0 {
			number--
			continue // a stranger's
		}
		t.mu.Lock()
		if len(t.sent) == 0 {
			t.mu.Unlock()
			number--
			continue // it answers nothing
		}
		usec := time.Since(t.sent[0]).Microseconds()
		t.sent = t.sent[1:]
		_ = t.answers.RecordValue(min(max(usec, 1), t.answers.HighestTrackableValue())) // which it has room for
		done := number == o.count
		t.mu.Unlock()
		o.tell(t, number, usec, out)
		if done {
			close(all)
		}
	}
}

// tell prints an answer.
func (o *rdsPingOptions) tell(t *pinged, number int, usec int64, out *lines) {
	switch {
	case o.json:
		line, err := jsonLine(rdsPingFormat, struct {
			Address string `json:"address"`
			Number  int    `json:"number"`
			Usec    int64  `json:"usec"`
		}{t.text, number, usec})
		if err == nil {
			out.print(line)
		}
	case t.many:
		out.print(fmt.Sprintf("%s %4d: %d usec", t.text, number, usec))
	default:
		out.print(fmt.Sprintf("%4d: %d usec", number, usec))
	}
}

// rdsPingSum sums up the answers of an address.
type rdsPingSum struct {
	Address string    `json:"address"`
	Pings   int       `json:"pings"`
	Answers int64     `json:"answers"`
	Usec    *rdsTimes `json:"usec"`
	Error   string    `json:"error,omitempty"`
}

type rdsTimes struct {
	Min  int64   `json:"min"`
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P99  int64   `json:"p99"`
	Max  int64   `json:"max"`
}

// sum prints what has come of all pings. The error names those that have not answered.
func (o *rdsPingOptions) sum(ctx context.Context, n *rds.Node, targets []*pinged, out *lines) error {
	var silent []error
	for _, t := range targets {
		s := rdsPingSum{Address: t.text, Pings: t.pings, Answers: t.answers.TotalCount()}
		if h := t.answers; s.Answers > 0 {
			s.Usec = &rdsTimes{h.Min(), h.Mean(), h.ValueAtPercentile(50), h.ValueAtPercentile(99), h.Max()}
		} else {
			s.Error = o.unreached(n, t.addr)
			silent = append(silent, fmt.Errorf("%s has answered none of %s: %s", t.text, plural.Count(t.pings, "ping"), s.Error))
		}
		if o.json {
			line, err := jsonLine(rdsPingFormat, &s)
			if err != nil {
				return err
			}
			out.print(line)
			continue
		}
		out.print(fmt.Sprintf("--- %s rds ping statistics ---", t.text))
		line := fmt.Sprintf("%s, %s", plural.Count(s.Pings, "ping"), plural.Count(int(s.Answers), "answer"))
		if u := s.Usec; u != nil {
			line += fmt.Sprintf(", min/mean/p50/p99/max = %d/%.0f/%d/%d/%d usec", u.Min, u.Mean, u.P50, u.P99, u.Max)
		}
		out.print(line)
	}
	switch err := errors.Join(silent...); {
	case ctx.Err() != nil && o.count > 0:
		return context.Cause(ctx)
	case err != nil && ctx.Err() != nil:
		return &statusError{err, statusFailed}
	case err != nil:
		return err
	}
	return nil
}

// unreached says why a node has not answered.
func (o *rdsPingOptions) unreached(n *rds.Node, peer netip.Addr) string {
	for _, c := range n.Info(0).Connections {
		if c.Peer != peer {
			continue
		}
		for _, p := range c.Paths {
			switch {
			case p.State == "up":
				return "there is a connection, and the node may not answer pings"
			case p.Error != "" && p.Tries == 0: // the other side is to dial
				return "the last connection has ended: " + p.Error
			case p.Error != "":
				return fmt.Sprintf("%s at a connection, the last one: %s", plural.Count(p.Tries, "try"), p.Error)
			}
		}
	}
	return "nothing has answered the request to connect"
}
