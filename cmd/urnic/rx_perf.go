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
	"urnic/ulp/rx/rxperf"
	"urnic/ulp/rx/rxperf/rawudp"
)

const rxPerfClientLong = `Client makes calls to a server of urnic rx perf, or to rxperf of OpenAFS, and prints their
number and their times.

The modes are those of rxperf: in each call, send sends --bytes to the server, receive gets
--bytes from it, and rpc sends --bytes and gets --reply-bytes. A round makes --calls, or lasts
for --time. --parallel calls are outstanding on each of --conns connections. An Rx
connection carries four calls at a time; more of them wait. Each connection carries one call
before the clock starts, so that its set-up and authentication don't count.

With --baseline it also measures UDP without Rx between the same two sides, in alternating
rounds: a plain program with one system call for each datagram and without retransmission.
Send and receive are compared with streams of datagrams of --datagram bytes; rpc is compared
with a datagram there and back, of the size of the request or the reply, whichever is
larger. The server must be urnic, and its UDP ports must be reachable.

With several --rounds, the median counts.

With --json it prints one JSON object; see docs/json.md.`

func newRXPerfCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure Rx as rxperf does, compared with bare UDP",
		Long: `Perf measures calls of Rx. Its protocol is that of rxperf of OpenAFS, which may be the other
side: service 147, at UDP port 7009.`,
		Example: `  urnic rx perf server                                  on one machine, and
  urnic rx perf client 192.0.2.7:7009 --mode send       on the other one`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRXPerfServerCommand(), newRXPerfClientCommand())
	return cmd
}

// rxPerfServerOptions are the flags of urnic rx perf server.
type rxPerfServerOptions struct {
	rxFlags
	rxKeyFlags
	listen string
	addr   netip.AddrPort
}

func newRXPerfServerCommand() *cobra.Command {
	var o rxPerfServerOptions
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve clients until interrupted",
		Long: `Server serves clients of urnic rx perf and of rxperf until interrupted. With a key it accepts
tickets of rxkad, and with --level it rejects clients with less security. Its calls cost
time and bandwidth: listen where only trusted clients can connect.`,
		Example: `  urnic rx perf server
  urnic rx perf server --key 2:0123456789abcdef --level auth`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := errors.Join(o.rxFlags.check(), o.rxKeyFlags.check()); err != nil {
				return err
			}
			if o.addr, err = rxListenAddress(o.listen); err != nil {
				return err
			}
			return served(cmd.Context(), o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", fmt.Sprintf(":%d", rxperf.Port), "`ADDRESS` and port to listen at")
	o.rxKeyFlags.add(f, "lowest `LEVEL` of rxkad for clients: clear, auth or crypt (default none)")
	o.rxFlags.add(f)
	return cmd
}

// rxPerfClientOptions are the flags of urnic rx perf client.
type rxPerfClientOptions struct {
	rxFlags
	rxClientFlags
	mode, bytes, replyBytes, chunk string
	datagram                       int
	calls                          uint64
	duration, timeout              time.Duration
	parallel, conns, rounds        int
	baseline, json                 bool
	cpuProfile                     string

	addr netip.AddrPort
	run  rxperf.Options
}

func newRXPerfClientCommand() *cobra.Command {
	var o rxPerfClientOptions
	cmd := &cobra.Command{
		Use:   "client HOST:PORT",
		Short: "Measure against a server",
		Long:  rxPerfClientLong,
		Example: `  urnic rx perf client 192.0.2.7:7009 --baseline         empty calls
  urnic rx perf client 192.0.2.7:7009 --mode send --bytes 64M --time 10s
  urnic rx perf client 192.0.2.7:7009 --level crypt --keyfile KeyFile`,
		Args: rxArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			if o.addr, err = rxAddress(cmd.Context(), args[0]); err != nil {
				return err
			}
			return o.measure(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", "rpc", "`MODE`: send, receive or rpc")
	f.StringVar(&o.bytes, "bytes", "", "`BYTES` of data in each call, with K, M or G (default 1M; 4 for the request of rpc)")
	f.StringVar(&o.replyBytes, "reply-bytes", "", "`BYTES` of the reply of rpc (default 4)")
	f.Uint64Var(&o.calls, "calls", 0, "`CALLS` in a round, in place of a time")
	f.DurationVar(&o.duration, "time", 0, "how long a round takes (default 1s)")
	f.IntVar(&o.parallel, "parallel", 1, "`CALLS` outstanding on each connection")
	f.IntVar(&o.conns, "conns", 1, "number of `CONNECTIONS`")
	f.StringVar(&o.chunk, "chunk", "256K", "size in `BYTES` of each read and write on both sides, up to 512K")
	f.IntVar(&o.rounds, "rounds", 0, "number of `ROUNDS`; the median counts (default 1, 3 with --baseline)")
	f.BoolVar(&o.baseline, "baseline", false, "also measure UDP without Rx, in alternating rounds")
	f.IntVar(&o.datagram, "datagram", 0, "`BYTES` of a datagram of the baseline for send and receive (default 16384 on this host, 1444 to others)")
	f.BoolVar(&o.json, "json", false, "write the result as one JSON object")
	f.DurationVar(&o.timeout, "timeout", 12*time.Second, "longest silence of the server")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of this process to this `FILE`, for go tool pprof")
	o.rxClientFlags.add(f)
	o.rxFlags.add(f)
	return cmd
}

// check finds what is wrong with the flags, and makes the options of them.
func (o *rxPerfClientOptions) check(f *pflag.FlagSet) (err error) {
	if err := errors.Join(o.rxFlags.check(), o.rxClientFlags.check(), exclude(f, "calls", "time")); err != nil {
		return err
	}
	if o.run.Command, err = rxperf.ParseCommand(o.mode); err != nil {
		return fmt.Errorf("--mode %s: must be one of send, receive, rpc", o.mode)
	}
	rpc := o.run.Command == rxperf.RPC
	switch {
	case o.json && o.pcap == "-":
		return errJSONAndPcap
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
	case f.Changed("time") && o.duration <= 0 || f.Changed("calls") && o.calls == 0:
		return errors.New("a round must not be empty: give --time or --calls more than 0")
	case o.rounds < 0 || f.Changed("rounds") && o.rounds == 0:
		return fmt.Errorf("--rounds %d: must be 1 or more", o.rounds)
	case o.parallel < 1:
		return fmt.Errorf("--parallel %d: must be 1 or more", o.parallel)
	case o.conns < 1:
		return fmt.Errorf("--conns %d: must be 1 or more", o.conns)
	case o.replyBytes != "" && !rpc:
		return fmt.Errorf("--mode %s has no reply of data: leave --reply-bytes out", o.mode)
	case f.Changed("datagram") && rpc:
		return errors.New("--datagram is for send and receive: that of rpc is as long as a request or a reply")
	case f.Changed("datagram") && (o.datagram < rawudp.MinSize || o.datagram > rawudp.MaxSize):
		return fmt.Errorf("--datagram %d: must be %d to %d", o.datagram, rawudp.MinSize, rawudp.MaxSize)
	}
	send, receive := "1M", "1M"
	if rpc {
		send, receive = "4", "4"
	}
	if o.bytes != "" {
		send, receive = o.bytes, o.bytes
		if rpc {
			receive = "4"
		}
	}
	if o.replyBytes != "" {
		receive = o.replyBytes
	}
	chunk := int64(0)
	for _, n := range []struct {
		flag, text string
		to         *int64
		most       int64
	}{{"--bytes", send, &o.run.Send, math.MaxInt32}, {"--reply-bytes", receive, &o.run.Receive, math.MaxInt32}, {"--chunk", o.chunk, &chunk, 512 << 10}} {
		if n.text == "0" && n.to != &chunk {
			*n.to = 0
			continue
		}
		v, err := perf.ParseMemory(n.text)
		if err != nil || v > uint64(n.most) {
			return fmt.Errorf("%s %s: must be a number of bytes, such as 4, 64K or 1M, up to %d", n.flag, n.text, n.most)
		}
		*n.to = int64(v)
	}
	if o.duration == 0 && o.calls == 0 {
		o.duration = time.Second
	}
	if o.rounds == 0 {
		o.rounds = 1
		if o.baseline {
			o.rounds = 3
		}
	}
	o.run.Calls, o.run.Duration, o.run.Chunk = o.calls, o.duration, int(chunk)
	o.run.Conns, o.run.Parallel = o.conns, o.parallel
	switch o.run.Command {
	case rxperf.Send:
		o.run.Receive = 0
	case rxperf.Receive:
		o.run.Send = 0
	case rxperf.RPC, rxperf.File:
	}
	return o.run.Check()
}
