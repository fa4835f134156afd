package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/program/top"
)

const topLong = `Top shows what the RNICs in this user's processes do: those of programs under urnic run, and of
programs in Go that call rnicinfo.Serve. It finds them by sockets in $XDG_RUNTIME_DIR/urnic (or
urnic-UID in the directory for temporary files); of programs under urnic run --top DIRECTORY, with
the same flag. A process that does not answer within --timeout is named, and delays nobody. Sockets
whose processes are gone are removed.

For each process it shows connections, and the busiest queue pairs, completion queues and memory
regions, at most --rows of each. Out and In are what the process sends and receives, MB are 10^6
bytes of RDMA Messages, msg are messages. SQ is how many requests in the send queue have not completed.
Unpolled are messages received whose completions the program has not polled. A dash stands for
what is not known: programs in Go don't tell SQ, Polled/s and Unpolled, and queue pairs without a TCP
connection no rates. State is that of ibv_query_qp under urnic run, and that of package rnic elsewhere.

On a terminal it shows a new round in place of the last one, else one below the other, until it is
interrupted; with --once, one round.

With --json it writes a JSON object in one line for each round; see docs/json.md.

With --prometheus it writes metrics in Prometheus' text format, once. With --listen it serves them at
http://ADDRESS/metrics, at the loopback address if there is none in ADDRESS.`

// topOptions are the flags of urnic top.
type topOptions struct {
	json, once, prometheus bool
	listen, dir            string
	interval, timeout      time.Duration
	rows                   int
}

func newTopCommand() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what the RNICs in running processes do",
		Long:  topLong,
		Example: `  urnic top
  urnic top --once --rows 3
  urnic top --json --interval 5s
  urnic top --prometheus
  urnic top --listen :9464`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			m := &top.Monitor{Dir: o.dir, Patience: o.timeout}
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			switch {
			case o.listen != "":
				return served(ctx, o.serve(ctx, m, out))
			case o.prometheus:
				return o.writeMetrics(ctx, m, out)
			}
			return o.watch(ctx, m, out)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "write one JSON object for each round")
	f.BoolVar(&o.once, "once", false, "show one round, and end")
	f.BoolVar(&o.prometheus, "prometheus", false, "write Prometheus metrics, and end")
	f.StringVar(&o.listen, "listen", "", "serve Prometheus metrics by HTTP at this `ADDRESS`, such as :9464")
	f.StringVar(&o.dir, "top", "", "`DIRECTORY` of the sockets, as urnic run --top has it")
	f.DurationVar(&o.interval, "interval", time.Second, "how long it is from round to round, which rates are over")
	f.DurationVar(&o.timeout, "timeout", time.Second, "how long a process may take to answer")
	f.IntVar(&o.rows, "rows", 10, "show at most this many rows of each table")
	return cmd
}

func (o *topOptions) check(cmd *cobra.Command) error {
	for _, pair := range [][2]string{{"json", "prometheus"}, {"json", "listen"}, {"prometheus", "listen"}, {"once", "listen"}} {
		if err := exclude(cmd.Flags(), pair[0], pair[1]); err != nil {
			return err
		}
	}
	const shortest = 10 * time.Millisecond
	switch {
	case o.interval < shortest:
		return fmt.Errorf("--interval %v: give %v or more", o.interval, shortest)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: give how long a process may take to answer", o.timeout)
	case o.rows < 1:
		return fmt.Errorf("--rows %d: give 1 or more", o.rows)
	}
	return nil
}

// watch shows rounds until the context ends, or the second one, which is the first with rates.
func (o *topOptions) watch(ctx context.Context, m *top.Monitor, out io.Writer) error {
	const home = "\x1b[H\x1b[2J"
	terminal := isTerminal(plainWriter(out)) && !o.json && !o.once
	next := time.NewTicker(o.interval)
	defer next.Stop()
	for round := 0; ; round++ {
		r, err := m.Round(ctx)
		if err != nil {
			return o.ended(ctx, err)
		}
		if !o.once || round > 0 {
			switch {
			case o.json:
				err = writeJSON(out, "urnic-top/1", r)
			case terminal:
				_, err = io.WriteString(out, home)
			case round > 1 || round == 1 && !o.once:
				_, err = io.WriteString(out, "\n")
			}
			if !o.json && err == nil {
				err = r.WriteText(out, o.rows)
			}
			if err != nil || o.once {
				return err
			}
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return o.ended(ctx, ctx.Err())
		}
	}
}

// ended is the error of a watch that has ended: it is what a watch is for, if a user ends it, unless
// one round was to be shown.
func (o *topOptions) ended(ctx context.Context, err error) error {
	if o.once {
		return err
	}
	return served(ctx, err)
}

// writeMetrics writes the metrics of one round.
func (o *topOptions) writeMetrics(ctx context.Context, m *top.Monitor, out io.Writer) error {
	r, err := m.Round(ctx)
	if err != nil {
		return err
	}
	return r.WriteMetrics(out)
}

// serve serves metrics until the context ends.
func (o *topOptions) serve(ctx context.Context, m *top.Monitor, out io.Writer) error {
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("--listen %q: give a port or an address with a port, such as :9464", o.listen)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	s := &http.Server{Handler: metricsHandler(m), ReadTimeout: 5 * time.Second, WriteTimeout: 5*time.Second + o.timeout, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if _, err := fmt.Fprintf(out, "Serving metrics at http://%v/metrics\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// metricsHandler answers with the metrics of a new round. One is made at a time.
func metricsHandler(m *top.Monitor) http.Handler {
	var one sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		round, err := m.Round(r.Context())
		if err != nil {
			http.Error(w, text(err), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", top.MetricsType)
		_ = round.WriteMetrics(w) // the client has gone
	})
	return mux
}
