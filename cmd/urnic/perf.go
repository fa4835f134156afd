package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/perf"
	"urnic/mpa"
)

const perfLong = `Perf measures how fast RDMA goes between two urnics: bandwidth, message rate, latency,
connections, and how all that scales with the number of queue pairs. With --baseline it
measures bare TCP between the same two programs in between, and tells the ratio.

The tests are bw (octets a second, with --depth requests under way), rate (the same, with
messages a second first), lat (a message there and one back), connect (connections made
and closed, --qps at a time) and scale (many queue pairs: what they carry together, and
what one costs that is idle); idle measures the latter alone.

The clock of a round stops when the other side has said that all is there. A word of each
message differs from that of the ones before, and the receiver looks for it where the message
has to arrive: so it counts the messages itself, RDMA Writes too. (Of Sends that are too long
to lie apart it counts the completions.) All of the last message is compared with what was
sent after each round, outside of the time that counts. The exit
status is 0 only if all was done that was asked for, and nothing was damaged.`

const perfMeasureLong = `

Latency of send, write and write-imm is half a round trip, as in perftest; of read and
atomic it is the whole one. A Write can't be seen to arrive, so that its latency is that of
a Write with Immediate Data. It is closed-loop: a message is sent when the one before is
answered, so that a stall counts as one slow message, however many would have met it. With
--rate N the client sends N messages a second by a schedule, up to --depth of them under way
(default 64), and takes the time of each from its intended start until its answer is here.
That is the whole round trip, with all that a message had to wait (no coordinated omission);
"service_ns", or "sent" in the table, is the time from when it was really sent. The client
polls all the while, so that it misses no start; --poll is the server's. If less than N
messages a second were answered, that many are too many. The percentiles are those of all rounds together; all other
figures are medians of the rounds.

The baseline is a plain Go program over bare TCP between the same two sides, in rounds that
alternate with those over RDMA, on connections as old as those of RDMA. For bw, rate and
scale there are two, which are always both shown. Per-message TCP makes one write for each
message, as a program does that sends each when it has it; RDMA's requests are posted in
lists, so it may share a call among many. Batched TCP moves the same bytes as one stream,
without regard to messages, in calls of the sizes that are fastest. To find these, 25 pairs
of sizes are tried for a short time, and the best four, 512K and 1M five times more for
--baseline-try each, by turns; what the tries came to is printed. In JSON, "baseline" and
"ratio" are those of per-message TCP up to 64K, and of batched TCP beyond that.
The latency that --poll busy is compared with is that of sockets that are read over and
over without ever sleeping. Connections are dialed, accepted and closed by as many loops on
each side as make those over RDMA.

With --json it prints one JSON object:

{"urnic","go","os","kernel","cpu","cores","date",  where and when
 "op","test","poll","crc","markers","inline","depth","qps","bidir","rounds",
 "rate",                            messages a second that were to be sent, with --rate
 "mulpdu","mss","mtu",              octets: of an FPDU's payload, a TCP segment, the interface
 "notes",                           what the figures mean
 "results":[{
   "size","qps","iterations","seconds",            of all rounds together
   "bytes_per_second","messages_per_second","connections_per_second",
   "latency_ns":{"min","p50","p90","p99","p99_9","p99_99","max","mean"},
   "round_trip_ns":{...},
   "service_ns":{...},              with --rate: from when a message was really sent
   "bytes_per_qp_side","goroutines_per_qp_side",   of an idle queue pair, with 16 of them or more
   "allocs_per_op",                 objects that this process allocates for a message
   "samples",                       of each round: octets, messages (rate) or connections a
                                    second, the median latency, or octets of an idle queue pair
   "baseline":{"kind",              per-message, batched, ping-pong or connections
     "bytes_per_second","messages_per_second","connections_per_second",
     "latency_ns","round_trip_ns","samples",
     "write_size","read_size",      bytes of its calls
     "tries":[{"write_size","read_size","bytes_per_second","samples"}],  batched: the fastest first
     "ratio","ratio_samples"},
   "baselines",                     both of bw, rate and scale, each as above
   "ratio","ratio_samples",         of samples to those of the baseline: the median, and all
   "ratio_to_first"}],              scale: of bandwidth, to the first number of queue pairs
 "error"}                           what went wrong, if anything did`

// perfOptions are the flags of urnic perf.
type perfOptions struct {
	deviceFlags
	perf.Options
	listen, op, test, poll, size, qps, maxMemory string
	crc                                          string
	json                                         bool
	svg, cpuProfile                              string
	iters                                        int
}

func newPerfCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure bandwidth, latency and rates, beside bare TCP",
		Long:  perfLong,
		Example: `  urnic perf local                                     bandwidth of RDMA Writes of 64 KiB
  urnic perf local --op send --test lat --baseline     latency, beside that of TCP
  urnic perf server                                    on one machine, and
  urnic perf client 192.0.2.7:7175 --size all          on the other one`,
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
		Long: `Local opens two devices in this process, which share nothing, and measures between them
over TCP on loopback. It takes the flags of client.` + perfMeasureLong,
		Example: `  urnic perf local
  urnic perf local --test rate --op send --poll busy
  urnic perf local --size all --baseline --svg bw.svg
  urnic perf local --test scale --qps 1,64,1024
  urnic perf local --test idle --qps 4096
  urnic perf local --test lat --rate 10000             latency at 10,000 messages a second
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
		Long: `Client measures against the server at HOST:PORT, which does what it is asked to.
Baselines go over ports of the server that the system chooses.` + perfMeasureLong,
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
		Long: `Server does for clients what they ask for: several at once, though that disturbs what
they measure. It has no authentication; listen where only those reach it who may.`,
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
	f.StringVar(&o.maxMemory, "max-memory", "2G", "`OCTETS` of memory that all clients may ask for, with K, M or G")
	o.add(f)
	return cmd
}

// perfPort is the port of urnic perf server.
const perfPort = 7175

// addMeasure adds the flags that say what is measured.
func (o *perfOptions) addMeasure(f *pflag.FlagSet) {
	f.StringVar(&o.op, "op", "write", "`OPERATION`: send, write, write-imm, read or atomic")
	f.StringVar(&o.test, "test", "bw", "`TEST`: bw, lat, rate, connect, scale or idle")
	f.StringVar(&o.poll, "poll", "event", "`HOW` to learn of completions: event (sleep until there are some) or busy")
	f.StringVar(&o.size, "size", "", "`OCTETS` of a message, with K, M or G; a list, or all: powers of two from 2 to 8M (default 64K, or 64 with --test lat and rate)")
	f.StringVar(&o.qps, "qps", "", "`NUMBER` of queue pairs, of connections at a time with --test connect; a list with --test scale and idle (default 1; 4 with --test connect, 1,64 with scale, 256 with idle)")
	f.IntVar(&o.Depth, "depth", 0, "`REQUESTS` under way on each queue pair (default 64, 256 with --test rate, 16 with scale)")
	f.Float64Var(&o.Rate, "rate", 0, "`MESSAGES` a second of --test lat, each sent at its time, whatever became of those before (0: each when the one before is answered)")
	f.DurationVar(&o.Duration, "duration", 0, "how long a round takes (default 1s)")
	f.IntVar(&o.iters, "iters", 0, "`MESSAGES` of a round on each queue pair, in place of a duration; or connections (default 1000)")
	f.IntVar(&o.Rounds, "rounds", 0, "`ROUNDS`, of which the median counts (default 1, 3 with --baseline)")
	f.IntVar(&o.SignalEvery, "signal-every", 0, "ask for a completion of each `N`th request only (default 1)")
	f.BoolVar(&o.Inline, "inline", false, "copy payloads up to 1 KiB when they are posted")
	f.BoolVar(&o.Bidir, "bidir", false, "both sides send; bandwidth and rate are the sum")
	f.StringVar(&o.crc, "crc", "on", "CRC32c `on` or off")
	f.BoolVar(&o.Markers, "markers", false, "use MPA markers, in both directions")
	f.IntVar(&o.MULPDU, "mulpdu", 0, fmt.Sprintf("largest ULPDU in `OCTETS`, %d to %d (0: one TCP segment)", mpa.MinMULPDU, mpa.MaxMULPDU))
	f.BoolVar(&o.Baseline, "baseline", false, "measure bare TCP as well, in rounds in between")
	f.BoolVar(&o.BaselineBest, "baseline-best", false, "make \"baseline\" and \"ratio\" of --json those of batched TCP, whatever the size of messages")
	f.DurationVar(&o.BaselineTry, "baseline-try", 0, "how long each of the last tries of call sizes takes that decide on batched TCP (default 250ms)")
	f.BoolVar(&o.json, "json", false, "write the result as one JSON object")
	f.StringVar(&o.svg, "svg", "", "plot the results into this `FILE`: against the size, the number of queue pairs, or as percentiles")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write what takes processor time in this process to this `FILE`, for go tool pprof")
	f.StringVar(&o.maxMemory, "max-memory", "2G", "`OCTETS` of memory that a run may take, with K, M or G")
	o.add(f)
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
		return errors.New("a round has to end, and not at once: give --duration or --iters more than 0")
	}
	o.Iterations = uint64(o.iters)
	if err := o.checkDataless(f); err != nil {
		return err
	}
	if o.MULPDU != 0 && (o.MULPDU < mpa.MinMULPDU || o.MULPDU > mpa.MaxMULPDU) {
		return fmt.Errorf("--mulpdu %d: say %d to %d, or 0 for one TCP segment", o.MULPDU, mpa.MinMULPDU, mpa.MaxMULPDU)
	}
	switch o.crc {
	case "on", "off":
		o.NoCRC = o.crc == "off"
	default:
		return fmt.Errorf("--crc %s: say on or off", o.crc)
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
