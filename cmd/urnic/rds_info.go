package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/host/printable"
	"urnic/ulp/rds/rdsinfo"
)

const rdsInfoLong = `Info shows the state of RDS nodes, as rds-info does for Linux: sockets, connections, messages
to be sent, acknowledged or read, congested ports, memory and counters.

A node of urnic lives in a process: urnic rds node, ping or stress, or any program that calls
rdsinfo.Serve. Info finds the nodes of this user's processes by sockets in
$XDG_RUNTIME_DIR/urnic, or in urnic-UID in the directory for temporary files. A NODE is an
address or the path of a socket; the default is all nodes.

Without any of -k, -n, -T, -I, -s, -t, -r, -c, -g and -m, everything is shown. For each kind
of messages, the first thousand are shown.

The flags of connections are those of rds-info: s is sending, c connecting, C connected; p
waits for memory. -T and -I show the links that carry connections: how many there were, and
the tries since the peer was last heard. With -v, -n also shows each peer's generation and
its bytes that are not read, -I shows credits, and queues show what is sent again.

The exit status is 1 if a NODE is not there, or if a process does not answer.

With --json it prints a JSON object in one line for each node; see docs/json.md.`

// rdsInfoOptions are the flags of urnic rds info.
type rdsInfoOptions struct {
	sockets, connections, send, retransmit, receive, counters, congestion, memory bool
	tcp, iwarp, verbose, json                                                     bool
	timeout                                                                       time.Duration
}

func newRDSInfoCommand() *cobra.Command {
	var o rdsInfoOptions
	cmd := &cobra.Command{
		Use:   "info [NODE...]",
		Short: "Show the state of this user's nodes, as rds-info does",
		Long:  rdsInfoLong,
		Example: `  urnic rds info
  urnic rds info -n 192.0.2.7                the connections of one node
  urnic rds info -Iv                         links over iWARP, with credits
  urnic rds info --json /run/user/1000/urnic/rds-4711-0.sock`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
			}
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.sockets, "sockets", "k", false, "show sockets")
	f.BoolVarP(&o.connections, "connections", "n", false, "show connections")
	f.BoolVarP(&o.tcp, "tcp", "T", false, "show links over TCP")
	f.BoolVarP(&o.iwarp, "iwarp", "I", false, "show links over iWARP; rds-info shows InfiniBand's")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show more columns")
	f.BoolVarP(&o.send, "send", "s", false, "show messages to be sent")
	f.BoolVarP(&o.retransmit, "retransmit", "t", false, "show messages that are sent and not acknowledged")
	f.BoolVarP(&o.receive, "receive", "r", false, "show messages that are received and not read")
	f.BoolVarP(&o.counters, "counters", "c", false, "show counters")
	f.BoolVarP(&o.congestion, "congestion", "g", false, "show congested ports")
	f.BoolVarP(&o.memory, "memory", "m", false, "show the memory for messages, of the node and of each peer")
	f.BoolVar(&o.json, "json", false, "write one JSON object for each node")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long a process may take to answer")
	return cmd
}

func (o *rdsInfoOptions) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	asked, errs := o.ask(ctx, args, stderr)
	for _, r := range asked {
		var err error
		if o.json {
			err = writeJSON(stdout, "urnic-rds-info/1", r)
		} else {
			err = o.write(stdout, r)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// ask asks for the nodes that are wanted. The errors are of those that could not be asked.
func (o *rdsInfoOptions) ask(ctx context.Context, args []string, stderr io.Writer) (reports []*rdsinfo.Report, errs []error) {
	var addrs []netip.Addr
	for _, arg := range args {
		a, err := netip.ParseAddr(arg)
		switch {
		case err == nil:
			addrs = append(addrs, a.Unmap())
			continue
		case !strings.ContainsRune(arg, filepath.Separator):
			errs = append(errs, fmt.Errorf("%s: give the address of a node, or the path of a socket", arg))
			continue
		}
		r, err := o.askOne(ctx, arg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		reports = append(reports, r)
	}
	if len(args) > 0 && len(addrs) == 0 {
		return reports, errs
	}
	paths, err := rdsinfo.List("")
	if err != nil {
		return reports, append(errs, err)
	}
	found := map[netip.Addr]bool{}
	for _, path := range paths {
		r, err := o.askOne(ctx, path)
		switch {
		case errors.Is(err, rdsinfo.ErrGone):
			continue // it was killed; the next node removes the socket
		case err != nil:
			errs = append(errs, err)
			continue
		}
		wanted := len(args) == 0
		for _, a := range addrs {
			wanted = wanted || a == r.Node.Addr
		}
		if found[r.Node.Addr] = true; wanted {
			reports = append(reports, r)
		}
	}
	for _, a := range addrs {
		if !found[a] {
			errs = append(errs, fmt.Errorf("no process of this user has a node %v: `urnic rds info` lists those that there are", a))
		}
	}
	if len(args) == 0 && len(reports) == 0 && len(errs) == 0 && !o.json {
		fmt.Fprintln(stderr, "urnic: no process of this user shows a node")
	}
	return reports, errs
}

func (o *rdsInfoOptions) askOne(ctx context.Context, path string) (*rdsinfo.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	r, err := rdsinfo.Ask(ctx, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, advise(err, "%s: its process has not answered within %v: it may be stopped, or wait longer with --timeout", path, o.timeout)
	}
	return r, err
}

// all reports whether everything is to be shown.
func (o *rdsInfoOptions) all() bool {
	return !slices.Contains([]bool{o.sockets, o.connections, o.tcp, o.iwarp, o.send, o.retransmit, o.receive, o.counters, o.congestion, o.memory}, true)
}

// title is the line above a node.
func title(r *rdsinfo.Report) string {
	return fmt.Sprintf("RDS node %v over %s, process %d (%s), for %v", r.Node.Addr, printable.Escape(strings.Join(r.Node.Transports, " and ")),
		r.PID, printable.Escape(r.Command), (time.Duration(r.Node.Seconds) * time.Second).String())
}
