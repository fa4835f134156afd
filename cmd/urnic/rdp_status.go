package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/host/plural"
	"urnic/internal/host/printable"
	"urnic/ulp/rdp/rdpinfo"
)

const rdpStatusLong = `Status shows the state of RDP endpoints: ports that are listened at, and connections with
their states and with the messages that are unacknowledged, unread or in flight. With
--counters it also shows event counters.

An endpoint of urnic lives in a process: urnic rdp, or any program that calls
rdpinfo.Serve. Status finds the endpoints of this user's processes by sockets in
$XDG_RUNTIME_DIR/urnic, or in urnic-UID in the directory for temporary files. A PROCESS is a
process ID or the path of a socket; the default is all processes.

Columns of connections: Order is that of delivery, sequenced or any. Unacked are messages
that the peer has not acknowledged, Queued those that are received and unread, Held those
that wait for others before them. Window is how many outstanding segments the peer allows,
InFlight how many there are. SendMax and RecvMax are the largest segments in bytes,
including 20 for IP. RTT is the round-trip time in milliseconds.

The exit status is 1 if a PROCESS is not there, or if one does not answer.

With --json it prints a JSON object in one line for each endpoint; see docs/json.md.`

// rdpStatusOptions are the flags of urnic rdp status.
type rdpStatusOptions struct {
	counters, json bool
	timeout        time.Duration
}

func newRDPStatusCommand() *cobra.Command {
	var o rdpStatusOptions
	cmd := &cobra.Command{
		Use:   "status [PROCESS...]",
		Short: "Show the state of this user's endpoints",
		Long:  rdpStatusLong,
		Example: `  urnic rdp status
  urnic rdp status --counters 4711
  urnic rdp status --json /run/user/1000/urnic/rdp-4711-0.sock`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
			}
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.counters, "counters", false, "also show counters of endpoints and connections")
	f.BoolVar(&o.json, "json", false, "write one JSON object for each endpoint")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long a process may take to answer")
	return cmd
}

func (o *rdpStatusOptions) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	asked, errs := o.ask(ctx, args)
	if len(args) == 0 && len(asked) == 0 && len(errs) == 0 && !o.json {
		fmt.Fprintln(stderr, "urnic: no process of this user shows an RDP endpoint")
	}
	for i, r := range asked {
		if o.json {
			if err := writeJSON(stdout, "urnic-rdp-status/1", r); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := o.write(stdout, r); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// ask asks for the endpoints that are wanted. The errors are of those that could not be asked.
func (o *rdpStatusOptions) ask(ctx context.Context, args []string) (reports []*rdpinfo.Report, errs []error) {
	pids := map[int]bool{} // whether they are found
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		switch {
		case err == nil:
			pids[pid] = false
		case !strings.ContainsRune(arg, filepath.Separator):
			errs = append(errs, fmt.Errorf("%s: give a process ID, or the path of a socket", arg))
		default:
			r, err := o.askOne(ctx, arg)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			reports = append(reports, r)
		}
	}
	if len(args) > 0 && len(pids) == 0 {
		return reports, errs
	}
	paths, err := rdpinfo.List("")
	if err != nil {
		return reports, append(errs, err)
	}
	for _, path := range paths {
		r, err := o.askOne(ctx, path)
		switch {
		case errors.Is(err, rdpinfo.ErrGone):
			continue // it was killed; the next endpoint removes the socket
		case err != nil:
			errs = append(errs, err)
			continue
		}
		_, wanted := pids[r.PID]
		if wanted {
			pids[r.PID] = true
		}
		if wanted || len(args) == 0 {
			reports = append(reports, r)
		}
	}
	for _, arg := range args {
		if pid, err := strconv.Atoi(arg); err == nil && !pids[pid] {
			errs = append(errs, fmt.Errorf("process %d shows no RDP endpoint: `urnic rdp status` lists those that do", pid))
		}
	}
	return reports, errs
}

func (o *rdpStatusOptions) askOne(ctx context.Context, path string) (*rdpinfo.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	r, err := rdpinfo.Ask(ctx, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, advise(err, "%s: its process has not answered within %v: it may be stopped, or wait longer with --timeout", path, o.timeout)
	}
	return r, err
}

// write prints an endpoint.
func (o *rdpStatusOptions) write(w io.Writer, r *rdpinfo.Report) error {
	e := r.Endpoint
	fmt.Fprintf(w, "RDP endpoint %v, process %d (%s), for %v\n", e.Addr, r.PID, printable.Escape(r.Command), time.Duration(e.Seconds)*time.Second)
	for _, l := range e.Listeners {
		fmt.Fprintf(w, "Listening at port %d, %s not accepted yet\n", l.Port, plural.Count(l.Pending, "connection"))
	}
	if len(e.Connections) > 0 {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, strings.ReplaceAll("Version Port Peer PeerPort State Order Unacked Queued Held Window InFlight SendMax RecvMax RTT", " ", "\t"))
		for _, c := range e.Connections {
			order := "any"
			if c.Sequenced {
				order = "sequenced"
			}
			for i, cell := range []any{
				c.Version, c.Port, c.Peer, c.PeerPort, c.State, order, c.Unacknowledged, c.Queued, c.Held, c.Window, c.InFlight, c.SendMax, c.RecvMax,
				strconv.FormatFloat(c.RTT, 'f', 3, 64),
			} {
				if i > 0 {
					fmt.Fprint(t, "\t")
				}
				fmt.Fprint(t, printable.Column(fmt.Sprint(cell)))
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, c := range e.Connections {
		if c.Error != "" {
			fmt.Fprintln(w, printable.Escape(c.Error))
		}
	}
	if !o.counters {
		return nil
	}
	for _, c := range e.Connections {
		fmt.Fprintf(w, "Connection %d with %v port %d: %s\n", c.Port, c.Peer, c.PeerPort, counted(c.Stats))
	}
	_, err := fmt.Fprintf(w, "Endpoint: %s\n", counted(e.Counters))
	return err
}

// counted lists the fields of a struct of counters that are not 0, by the names that they have in JSON.
func counted(counters any) string {
	v := reflect.ValueOf(counters)
	var list []string
	for i := range v.NumField() {
		if n := v.Field(i).Uint(); n > 0 {
			list = append(list, fmt.Sprintf("%s %d", v.Type().Field(i).Tag.Get("json"), n))
		}
	}
	return strings.Join(list, ", ")
}
