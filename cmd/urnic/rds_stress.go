package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/program/perf"
	"urnic/ulp/rds/rdsstress"
)

const rdsStressLong = `Stress generates load over RDS. It has the options and the protocol of rds-stress of
rds-tools, so that either side may be rds-stress on Linux.

Without -s it is the passive side: it waits for a control connection at -p, and the active
side gives it all other options of the load. Both sides run -t tasks, with sockets at the
ports after that of the control connection. Each task sends requests of -q bytes to each
task of the other side, with up to -d outstanding, and answers each request by an ack of -a
bytes.

A message that is lost, duplicated, reordered or damaged ends the run with an error:
messages are numbered, and with -v their contents are compared. At the end both sides wait
for the outstanding acks; rds-stress does not.

The node has the address -r, which no other node may have, not even Linux's RDS. The default
is the local address of the control connection. The exit status is 0 if the run succeeded,
and also if an active side without -T is interrupted.

Each second it prints a line: tasks; requests sent and received; kilobytes a second of all
messages (tx+rx K/s), by RDMA into this side's memory (mbi K/s) and out of it (mbo K/s);
microseconds of a call that sends a request (tx us/c), and from a request to its ack (rtt
us); with -c, the processor time of this process (cpu %). The last line has averages; then
follow percentiles of the time from request to ack.

Options of rds-stress that urnic lacks end with status 2, and say what to do instead: -R,
--reset, --async, --rdma-key-o-meter, --cancel-sent-to, --abort-after.

With --json it prints one JSON object at the end; see docs/json.md.`

// rdsStressOptions are the flags of urnic rds stress.
type rdsStressOptions struct {
	rdsFlags
	params rdsstress.Params

	local, peer                                     string
	control                                         int
	tasks, depth, vectors, mode, alignment, retries int
	seconds                                         int
	tos                                             uint8
	requestSize, ackSize, rdmaSize                  string
	simplex, verify, summary, cpu, showParams       bool
	histogram, perfData, json                       bool
	outliers                                        uint32
	notify                                          int
	useOnce, fence, cacheMRs, useGetMR, congMonitor int
	requests                                        uint64
	timeout                                         time.Duration
}

func newRDSStressCommand() *cobra.Command {
	var o rdsStressOptions
	cmd := &cobra.Command{
		Use:   "stress [flags]",
		Short: "Generate load, as rds-stress does",
		Long:  rdsStressLong,
		Example: `  urnic rds stress -r 192.0.2.7                             the passive side
  urnic rds stress -s 192.0.2.7 -T 10 -t 4 -d 8 -q 4096 -v   the active side
  urnic rds stress -s 192.0.2.7 --transport iwarp -D 64K -T 60 -v
  urnic rds stress -s 192.0.2.7 --requests 100000 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addStress(cmd.Flags())
	return cmd
}

func (o *rdsStressOptions) addStress(f *pflag.FlagSet) {
	f.StringVarP(&o.local, "recv-addr", "r", "", "this node's `ADDRESS`, one of this host")
	f.StringVarP(&o.peer, "send-addr", "s", "", "be the active side; `ADDRESS` of the passive side")
	f.IntVarP(&o.control, "port", "p", 4000, "`PORT` of the control connection; the tasks use the ports after it")
	f.StringVarP(&o.requestSize, "req-bytes", "q", "1024", "`BYTES` of a request, with K or M")
	f.StringVarP(&o.ackSize, "ack-bytes", "a", fmt.Sprint(rdsstress.HeaderLen), "`BYTES` of an ack, with K or M")
	f.IntVarP(&o.depth, "depth", "d", 1, "`REQUESTS` outstanding between two tasks")
	f.IntVarP(&o.tasks, "tasks", "t", 1, "`NUMBER` of tasks")
	f.IntVarP(&o.seconds, "time", "T", 0, "run for `SECONDS` from the first answer on (0: until interrupted)")
	f.Uint64Var(&o.requests, "requests", 0, "end when this many `REQUESTS` of this side were answered (0: only --time ends the run)")
	f.Uint8VarP(&o.tos, "tos", "Q", 0, "type of `SERVICE`; each has its own connection over iwarp")
	f.BoolVarP(&o.simplex, "one-way", "o", false, "only the active side sends requests")
	f.BoolVarP(&o.verify, "verify", "v", false, "compare the contents of all messages and of RDMA memory")
	f.StringVarP(&o.rdmaSize, "rdma-bytes", "D", "0", "`BYTES` to move by RDMA for each request, with K or M (iwarp only; 0: none)")
	f.IntVarP(&o.vectors, "io-vectors", "I", 1, "`PIECES` of memory for RDMA, each of -D bytes")
	f.IntVarP(&o.mode, "rdma-mode", "M", 0, "RDMA operations of the answering side: 0 alternates reads and writes, 1 reads, 2 writes")
	f.IntVar(&o.useOnce, "rdma-use-once", 0, "1: memory can be used once; the ack frees it")
	f.IntVar(&o.cacheMRs, "rdma-cache-mrs", 0, "1: memory stays registered from request to request")
	f.IntVar(&o.useGetMR, "rdma-use-get-mr", 0, "1: rds-stress registers memory by a separate call")
	f.IntVar(&o.fence, "rdma-use-fence", 1, "0: acks of rds-stress do not wait for RDMA Reads")
	f.IntVar(&o.notify, "rdma-use-notify", 1, "no effect, as in rds-stress: RDMA operations always report their end")
	f.IntVar(&o.alignment, "rdma-alignment", 0, "offset in `BYTES` of RDMA memory from a page boundary")
	f.IntVar(&o.congMonitor, "use-cong-monitor", 1, "0: rds-stress does not use the congestion monitor")
	f.IntVar(&o.retries, "connect-retries", 0, "retry the control connection this many `TIMES`, once a second")
	f.BoolVarP(&o.cpu, "report-cpu", "c", false, "measure the processor time of this process")
	f.BoolVarP(&o.summary, "report-summary", "z", false, "print only the summary")
	f.BoolVar(&o.showParams, "show-params", false, "print the options first")
	f.BoolVar(&o.perfData, "show-perfdata", false, "print lines of comma-separated values that begin with ::, for scripts")
	f.Uint32Var(&o.outliers, "show-outliers", 0, "print each round-trip time of more `MICROSECONDS` (0: none)")
	f.BoolVar(&o.histogram, "show-histogram", false, "print a histogram of the round-trip times")
	f.BoolVar(&o.json, "json", false, "write one JSON object at the end")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long the other side may take to answer, at the beginning and at the end")
	var common pflag.FlagSet
	o.add(&common)
	common.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "trace" { // which is -V in rds-stress
			flag.Shorthand = "V"
		}
		f.AddFlag(flag)
	})
	addMissing(f, missingStressOptions)
}

// check finds what is wrong with the flags, and makes the parameters of them.
func (o *rdsStressOptions) check(f *pflag.FlagSet) error {
	if err := checkMissing(f, missingStressOptions); err != nil {
		return err
	}
	if err := exclude(f, "json", "show-perfdata"); err != nil {
		return err
	}
	if err := exclude(f, "json", "show-outliers"); err != nil {
		return err
	}
	if err := o.rdsFlags.check(); err != nil {
		return err
	}
	switch {
	case o.control < 1 || o.control > 65534:
		return fmt.Errorf("-p %d: must be 1 to 65534", o.control)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
	case o.json && o.pcap == "-":
		return errJSONAndPcap
	}
	if o.peer == "" {
		for _, name := range []string{"req-bytes", "ack-bytes", "depth", "tasks", "time", "requests", "tos", "one-way", "verify", "rdma-bytes", "io-vectors", "rdma-mode", "connect-retries"} {
			if f.Changed(name) {
				return fmt.Errorf("only the active side sets --%s: give -s ADDRESS, or leave it out", name)
			}
		}
		return nil
	}
	return o.makeParams()
}

// makeParams makes the parameters of the active side.
func (o *rdsStressOptions) makeParams() error {
	for _, n := range []struct {
		flag          string
		value, lo, hi int
	}{
		{"-d", o.depth, 1, rdsstress.MaxDepth},
		{"-t", o.tasks, 1, rdsstress.MaxTasks},
		{"-T", o.seconds, 0, math.MaxInt32},
		{"-I", o.vectors, 1, rdsstress.MaxVectors},
		{"-M", o.mode, 0, 2},
		{"--connect-retries", o.retries, 0, math.MaxInt32},
		{"--rdma-alignment", o.alignment, 0, 4096},
		{"--rdma-use-once", o.useOnce, 0, 1},
		{"--rdma-cache-mrs", o.cacheMRs, 0, 1},
		{"--rdma-use-get-mr", o.useGetMR, 0, 1},
		{"--rdma-use-fence", o.fence, 0, 1},
		{"--rdma-use-notify", o.notify, 0, 1},
		{"--use-cong-monitor", o.congMonitor, 0, 1},
	} {
		if n.value < n.lo || n.value > n.hi {
			return fmt.Errorf("%s %d: must be %d to %d", n.flag, n.value, n.lo, n.hi)
		}
	}
	p := rdsstress.Params{
		Depth: uint32(o.depth), Port: uint16(o.control), Tasks: uint16(o.tasks), Seconds: uint32(o.seconds),
		Vectors: uint32(o.vectors), Alignment: uint32(o.alignment), Retries: uint32(o.retries), TOS: o.tos,
	}
	for _, s := range []struct {
		flag, text string
		to         *uint32
	}{{"-q", o.requestSize, &p.RequestSize}, {"-a", o.ackSize, &p.AckSize}, {"-D", o.rdmaSize, &p.RDMASize}} {
		if s.text == "0" {
			continue
		}
		n, err := perf.ParseMemory(s.text)
		if err != nil || n > math.MaxInt32 {
			return fmt.Errorf("%s %s: must be a number of bytes, such as 1024 or 64K", s.flag, s.text)
		}
		*s.to = uint32(n)
	}
	flag := func(f rdsstress.Flag, on bool) {
		if on {
			p.Flags[f] = 1
		}
	}
	flag(rdsstress.Verify, o.verify)
	flag(rdsstress.Simplex, o.simplex)
	flag(rdsstress.SummaryOnly, o.summary)
	flag(rdsstress.ShowPerfData, o.perfData)
	flag(rdsstress.UseOnce, o.useOnce == 1)
	flag(rdsstress.CacheMRs, o.cacheMRs == 1)
	flag(rdsstress.UseGetMR, o.useGetMR == 1)
	flag(rdsstress.Fence, o.fence == 1)
	flag(rdsstress.CongestionMonitor, o.congMonitor == 1)
	p.Flags[rdsstress.Mode] = uint8(o.mode)
	switch {
	case o.useOnce == 1 && o.cacheMRs == 1:
		return errors.New("give only one of --rdma-use-once and --rdma-cache-mrs: memory that can be used once does not stay registered")
	case p.RDMASize > 0 && o.transport != "iwarp":
		return errors.New("-D: there is no RDMA over TCP: give --transport iwarp")
	}
	o.params = p
	if err := p.Check(); err != nil {
		return fmt.Errorf("invalid options: %w", err)
	}
	return nil
}

// localAddr returns the address that -r gives; an invalid one without it.
func (o *rdsStressOptions) localAddr() (netip.Addr, error) {
	if o.local == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(o.local)
	if err != nil {
		return a, fmt.Errorf("-r %s: give an IP address of this machine", o.local)
	}
	return a.Unmap(), nil
}
