package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/program/perf"
	"urnic/mpa"
)

const perfLong = `Perf measures RDMA between two urnics: bandwidth, message rate, latency, connections, and how
these scale with the number of queue pairs. With --baseline it also measures bare TCP
between the same two programs, in alternating rounds, and prints the ratio.

The tests are:

  bw       bytes a second, with --depth requests outstanding
  rate     the same; shows messages a second first
  lat      the latency of one message and its answer
  connect  connections made and closed, --qps at a time
  scale    many queue pairs: their total bandwidth, and what an idle one costs
  idle     what an idle queue pair costs

A round ends when the other side has reported that all messages have arrived. Each message
differs in one word from the one before. The receiver polls that word in memory, so that it
counts the messages itself, RDMA Writes too. (Sends that are too long to have a buffer each
are counted by their completions.) After each round, the last message is compared with what
was sent, outside the measured time.

The exit status is 0 only if everything succeeded and no data was damaged.`

const perfMeasureLong = `

The latency of send, write and write-imm is half a round trip, as in perftest; that of read
and atomic is a whole one. The arrival of a Write can't be seen, so its latency is that of a
Write with Immediate Data.

By default the test is closed-loop: a message is sent when the one before is answered. A
stall then counts as one slow message, however many messages it would have delayed. With
--rate N the test is open-loop: the client sends N messages a second on a schedule, with up
to --depth of them outstanding (default 64). The latency of a message is the whole round
trip, from its intended start to its answer, with all time that it waited (no coordinated
omission). "service_ns", or "sent" in the table, is the time from its actual start. The
client always polls, so that it misses no start; --poll applies to the server. If fewer than
N messages a second were answered, N is too high.

Percentiles are over all rounds together; all other figures are medians of the rounds.

The baseline is a plain Go program over bare TCP between the same two sides. Its rounds
alternate with those of RDMA, on connections of the same age. For bw, rate and scale there
are two baselines, and both are shown. Per-message TCP makes one write for each message, as
a program does that sends each message when it has it. RDMA posts its requests in lists, so
that many may share a system call. Batched TCP moves the same bytes as one stream, without
message boundaries, in calls of the fastest sizes. To find these, 25 pairs of sizes are
tried briefly; then the best four, 512K and 1M are tried five times more in turn, for
--baseline-try each. The results of the tries are printed. In JSON, "baseline" and "ratio"
are those of per-message TCP up to 64K, and of batched TCP above.

With --poll busy, the latency baseline polls its sockets and never sleeps. For connect, the
baseline has as many loops that dial, accept and close connections on each side as RDMA.

With --json it prints one JSON object; see docs/json.md.`

// perfOptions are the flags of urnic perf.
type perfOptions struct {
	deviceFlags
	perf.Options
	listen, op, test, poll, size, qps, maxMemory string
	crc                                          string
	json                                         bool
	svg, html, cpuProfile                        string
	iters                                        int
}

func newPerfCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure bandwidth, latency and rates, compared with bare TCP",
		Long:  perfLong,
		Example: `  urnic perf local                                  bandwidth of 64 KiB Writes
  urnic perf local --op send --test lat --baseline  latency, and that of TCP
  urnic perf server                                 on one machine, and
  urnic perf client 192.0.2.7:7175 --size all       on the other one`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPerfLocalCommand(), newPerfClientCommand(), newPerfServerCommand())
	return cmd
}

func newPerfLocalCommand() *cobra.Command {
	var o perfOptions
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Measure between two devices in this process, over loopback",
		Long: `Local opens two devices in this process and measures between them, over TCP on loopback. The
devices share nothing. It has the flags of client.` + perfMeasureLong,
		Example: `  urnic perf local
  urnic perf local --test rate --op send --poll busy
  urnic perf local --size all --baseline --svg bw.svg
  urnic perf local --test scale --qps 1,64,1024
  urnic perf local --test idle --qps 4096
  urnic perf local --test lat --rate 10000    at 10,000 messages a second
  urnic perf local --test lat --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return runPerfLocal(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addMeasure(cmd.Flags())
	return cmd
}

func newPerfClientCommand() *cobra.Command {
	var o perfOptions
	cmd := &cobra.Command{
		Use:   "client HOST:PORT",
		Short: "Measure against a server",
		Long: `Client measures against the server at HOST:PORT. Baselines use ports of the server that its
system chooses.` + perfMeasureLong,
		Example: `  urnic perf client 192.0.2.7:7175
  urnic perf client 192.0.2.7:7175 --op read --size 4K,64K,1M --baseline
  urnic perf client [2001:db8::7]:7175 --test lat --duration 10s --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("give the server as HOST:PORT: see `%s --help`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := net.SplitHostPort(args[0]); err != nil {
				return fmt.Errorf("%s is not HOST:PORT, such as 192.0.2.7:%d", args[0], perfPort)
			}
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return runPerfClient(cmd.Context(), &o, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addMeasure(cmd.Flags())
	cmd.Flags().DurationVar(&o.Timeout, "connect-timeout", 10*time.Second, "how long to try to connect")
	return cmd
}

func newPerfServerCommand() *cobra.Command {
	var o perfOptions
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve clients until interrupted",
		Long: `Server serves clients of urnic perf. It serves several at once, though they disturb each
other's figures. It has no authentication: listen where only trusted clients can connect.`,
		Example: `  urnic perf server
  urnic perf server --listen 192.0.2.7:7175 --max-memory 256M`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parseMemory(); err != nil {
				return err
			}
			if _, _, err := net.SplitHostPort(o.listen); err != nil {
				return fmt.Errorf("--listen %s: give ADDRESS:PORT, such as :%d", o.listen, perfPort)
			}
			return served(cmd.Context(), runPerfServer(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", fmt.Sprintf(":%d", perfPort), "`ADDRESS` and port to listen at; 0.0.0.0 is IPv4 alone, [::] IPv6 alone, no address both")
	f.StringVar(&o.maxMemory, "max-memory", "2G", "most `BYTES` of memory for all clients, with K, M or G")
	o.add(f)
	o.addLLP(f)
	return cmd
}

// perfPort is the port of urnic perf server.
const perfPort = 7175

// addMeasure adds the flags that say what is measured.
func (o *perfOptions) addMeasure(f *pflag.FlagSet) {
	f.StringVar(&o.op, "op", "write", "`OPERATION`: send, write, write-imm, read or atomic")
	f.StringVar(&o.test, "test", "bw", "`TEST`: bw, lat, rate, connect, scale or idle")
	f.StringVar(&o.poll, "poll", "event", "`HOW` to wait for completions: event (sleep) or busy (poll)")
	f.StringVarP(&o.size, "size", "s", "", "message size in `BYTES`, with K, M or G; a list, or all: powers of two from 2 to 8M (default 64K; 64 with --test lat and rate)")
	f.StringVarP(&o.qps, "qps", "q", "", "`NUMBER` of queue pairs, or of connections at a time with --test connect; a list with --test scale and idle (default 1; 4 with --test connect, 1,64 with scale, 256 with idle)")
	f.IntVar(&o.Depth, "depth", 0, "`REQUESTS` outstanding on each queue pair (default 64, 256 with --test rate, 16 with scale)")
	f.Float64Var(&o.Rate, "rate", 0, "send `MESSAGES` a second on a schedule, with --test lat (0: each when the one before is answered)")
	f.VarP((*seconds)(&o.Duration), "duration", "D", "how long a round takes: `TIME` such as 500ms, or a number of seconds (default 1s)")
	f.Lookup("duration").DefValue = "" // the usage says it
	f.IntVarP(&o.iters, "iters", "n", 0, "`MESSAGES` in a round on each queue pair, in place of a duration; with --test connect, connections (default 1000)")
	f.IntVar(&o.Rounds, "rounds", 0, "number of `ROUNDS`; the median counts (default 1, 3 with --baseline)")
	f.IntVar(&o.SignalEvery, "signal-every", 0, "signal only each `N`th request (default 1)")
	f.BoolVar(&o.Inline, "inline", false, "post payloads of up to 1 KiB inline")
	f.BoolVar(&o.Bidir, "bidir", false, "both sides send; bandwidth and rate are the sums")
	f.StringVar(&o.crc, "crc", "on", "CRC32c `on` or off")
	f.BoolVar(&o.Markers, "markers", false, "use MPA markers, in both directions")
	f.IntVar(&o.MULPDU, "mulpdu", 0, fmt.Sprintf("largest ULPDU in `BYTES`, %d to %d (0: one TCP segment)", mpa.MinMULPDU, mpa.MaxMULPDU))
	f.BoolVar(&o.Baseline, "baseline", false, "also measure bare TCP, in alternating rounds")
	f.BoolVar(&o.BaselineBest, "baseline-best", false, "in --json, make \"baseline\" and \"ratio\" those of batched TCP for all message sizes")
	f.DurationVar(&o.BaselineTry, "baseline-try", 0, "how long each try of a call size takes that decides on batched TCP (default 250ms)")
	f.BoolVar(&o.json, "json", false, "write the result as one JSON object")
	f.StringVar(&o.svg, "svg", "", "plot the results into this `FILE`: against the size, the number of queue pairs, or as percentiles")
	f.StringVar(&o.html, "html", "", "write the results as a page to this `FILE`, with the plot in it")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of this process to this `FILE`, for go tool pprof")
	f.StringVar(&o.maxMemory, "max-memory", "2G", "most `BYTES` of memory for a run, with K, M or G")
	o.add(f)
	o.addLLP(f)
}

// check finds what is wrong with the flags.
func (o *perfOptions) check(f *pflag.FlagSet) (err error) {
	if o.json && o.pcap == "-" {
		return errJSONAndPcap
	}
	if err := exclude(f, "duration", "iters"); err != nil {
		return err
	}
	if f.Changed("duration") && o.Duration <= 0 || f.Changed("iters") && o.iters <= 0 {
		return errors.New("a round must not be empty: give --duration or --iters more than 0")
	}
	o.Iterations = uint64(o.iters)
	if err := o.checkDataless(f); err != nil {
		return err
	}
	if o.MULPDU != 0 && (o.MULPDU < mpa.MinMULPDU || o.MULPDU > mpa.MaxMULPDU) {
		return fmt.Errorf("--mulpdu %d: must be %d to %d, or 0 for one TCP segment", o.MULPDU, mpa.MinMULPDU, mpa.MaxMULPDU)
	}
	switch o.crc {
	case "on", "off":
		o.NoCRC = o.crc == "off"
	default:
		return fmt.Errorf("--crc %s: must be on or off", o.crc)
	}
	o.Op, o.Test, o.Poll = perf.Op(o.op), perf.Test(o.test), perf.Poll(o.poll)
	if o.size != "" && (o.size != "all" || o.Op != perf.OpAtomic) { // whose size is fixed
		if o.Sizes, err = perf.ParseSizes(o.size); err != nil {
			return fmt.Errorf("--size %s: %w", o.size, err)
		}
	}
	if o.qps != "" {
		if o.QPs, err = perf.ParseCounts(o.qps); err != nil {
			return fmt.Errorf("--qps %s: %w", o.qps, err)
		}
	}
	if err := o.parseMemory(); err != nil {
		return err
	}
	return o.Check()
}

// checkDataless refuses the flags that mean nothing to tests that move no data.
func (o *perfOptions) checkDataless(f *pflag.FlagSet) error {
	none := []string{"op", "size", "depth", "signal-every", "inline", "bidir", "baseline-best"}
	switch perf.Test(o.test) {
	case perf.TestConnect:
	case perf.TestIdle:
		none = append(none, "poll", "duration", "iters", "baseline")
	default:
		return nil
	}
	for _, name := range none {
		if f.Changed(name) {
			return fmt.Errorf("--test %s moves no data: leave --%s out", o.test, name)
		}
	}
	if o.svg != "" {
		return fmt.Errorf("--test %s has one figure, which makes no plot: leave --svg out", o.test)
	}
	return nil
}

func (o *perfOptions) parseMemory() error {
	n, err := perf.ParseMemory(o.maxMemory)
	if err != nil {
		return fmt.Errorf("--max-memory %s: %w", o.maxMemory, err)
	}
	o.MaxMemory = n
	return nil
}
