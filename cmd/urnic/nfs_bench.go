package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"urnic/internal/program/perf"
	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfsbench"
)

// nfsBenchOptions are the flags of urnic nfs bench.
type nfsBenchOptions struct {
	nfsOptions
	nfsbench.Options
	tests, sizes, depths, callers, short, fileSize string
	sync                                           bool
	cpuProfile                                     string
	local                                          bool
}

func newNFSBenchCommand() *cobra.Command {
	var o nfsBenchOptions
	cmd := &cobra.Command{
		Use:   "bench URL | --local",
		Short: "Measure how fast a server is",
		Long: `Bench measures the speed of a server. It creates a file in a directory there, and removes it.

The tests are:

  write   the file from beginning to end, in calls of --size bytes, --depth of
          them outstanding; includes the COMMIT
  read    the same with READs
  random  READs of --short bytes at random offsets, from --callers at a time
  null    calls that do nothing, from --callers at a time

The data is verified, outside the measured time: all of it, but one in 64 of the random
READs.

With --local it measures a server in this process, with files in memory, over RDMA and over
TCP. It also measures RDMA itself: RDMA Writes of --size bytes (column Write), and a Send
with its answer (column Send).
Ratios are computed for each round; the median counts.

With --json it prints one JSON object, of another format with --local; see docs/json.md.`,
		Example: `  urnic nfs bench nfs+rdma://192.0.2.7/export
  urnic nfs bench nfs://192.0.2.7/export --test read,random --size 64K,1M --json
  urnic nfs bench --local --rounds 9`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.local && len(args) > 0:
				return errors.New("give a URL or --local, not both")
			case o.local:
				return nil
			}
			return urls(1, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if o.local {
				return o.runLocal(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.tests, "test", "write,read,random,null", "`TESTS` to run, separated by commas")
	f.StringVar(&o.sizes, "size", "1M", "size of a READ or WRITE in `BYTES`, with K or M; a list")
	f.StringVar(&o.depths, "depth", "4", "`CALLS` outstanding in a transfer; a list")
	f.StringVar(&o.callers, "callers", "1,16", "number of `CALLERS` of random and null; a list")
	f.StringVar(&o.short, "short", "4K", "size of a random READ in `BYTES`")
	f.StringVar(&o.fileSize, "file-size", "64M", "size of the file in `BYTES`, with K, M or G")
	f.DurationVar(&o.Duration, "duration", time.Second, "how long a round takes")
	f.IntVar(&o.Rounds, "rounds", 1, "`ROUNDS`, of which the median counts")
	f.BoolVar(&o.sync, "sync", false, "make each WRITE stable before its reply")
	f.BoolVar(&o.local, "local", false, "measure a server in this process, compared with TCP and with plain RDMA")
	f.BoolVar(&o.json, "json", false, "write the result as one JSON object")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write what takes processor time in this process to this `FILE`, for go tool pprof")
	o.addNFS(f)
	return cmd
}

// check finds what is wrong with the flags.
func (o *nfsBenchOptions) check() (err error) {
	if err := o.checkOutput(false); err != nil {
		return err
	}
	if o.local && (o.pcap != "" || o.trace || o.sync) {
		return errors.New("--pcap, --trace and --sync are for a server at a URL: leave --local out")
	}
	for word := range strings.SplitSeq(o.tests, ",") {
		t := nfsbench.Test(strings.TrimSpace(word))
		if !slices.Contains(nfsbench.Tests, t) {
			return fmt.Errorf("--test %s: must be one of write, read, random, null, with commas between them", o.tests)
		}
		o.Tests = append(o.Tests, t)
	}
	for word := range strings.SplitSeq(o.sizes, ",") {
		n, err := parseTransfer(strings.TrimSpace(word))
		if err != nil {
			return fmt.Errorf("--size %s: %w", o.sizes, err)
		}
		o.Sizes = append(o.Sizes, n)
	}
	if o.Depths, err = perf.ParseCounts(o.depths); err != nil {
		return fmt.Errorf("--depth %s: %w", o.depths, err)
	}
	if o.Callers, err = perf.ParseCounts(o.callers); err != nil {
		return fmt.Errorf("--callers %s: %w", o.callers, err)
	}
	if slices.Max(o.Depths) > 1024 || slices.Max(o.Callers) > 1024 {
		return errors.New("--depth and --callers: up to 1024")
	}
	if o.Short, err = parseTransfer(o.short); err != nil {
		return fmt.Errorf("--short %s: %w", o.short, err)
	}
	size, err := perf.ParseMemory(o.fileSize)
	if err != nil {
		return fmt.Errorf("--file-size %s: %w", o.fileSize, err)
	}
	o.FileSize = int64(min(size, math.MaxInt))
	switch {
	case o.FileSize < int64(o.Short) || o.FileSize > min(4<<30, math.MaxInt):
		return fmt.Errorf("--file-size %s: give --short bytes or more, up to 4G: it is held in memory twice", o.fileSize)
	case o.Duration <= 0:
		return errors.New("a round must not be empty: give --duration more than 0")
	case o.Rounds < 1:
		return fmt.Errorf("--rounds %d: must be 1 or more", o.Rounds)
	}
	return nil
}

// run measures, and prints what comes of it.
func (o *nfsBenchOptions) run(ctx context.Context, address string, stdout, stderr io.Writer) error {
	stop, err := startProfile(o.cpuProfile)
	if err != nil {
		return err
	}
	results, err := o.measure(ctx, address, stdout, stderr)
	err = errors.Join(err, stop())
	if o.json {
		report := struct {
			URL      string            `json:"url"`
			FileSize int64             `json:"file_size"`
			Results  []nfsbench.Result `json:"results"`
			Error    string            `json:"error,omitempty"`
		}{address, o.FileSize, results, reason(ctx, err)}
		out := stdout
		if o.pcap == "-" {
			out = stderr
		}
		err = errors.Join(err, writeJSON(out, "urnic-nfs-bench/1", report))
	}
	return err
}

// measure measures, and shows what there is of it unless it is to be JSON.
func (o *nfsBenchOptions) measure(ctx context.Context, address string, stdout, stderr io.Writer) (results []nfsbench.Result, err error) {
	s, name, err := o.dial(ctx, address, stdout, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	o.Dir = path.Join("/", name)
	cfg, err := o.client()
	if err != nil {
		return nil, err
	}
	if s.dev != nil {
		cfg.Device = s.dev.Device
	}
	root := s.Root()
	cfg.Root, cfg.Sync = &root, o.sync
	o.Dial = func(ctx context.Context, size, depth int) (*nfs.Client, error) {
		own := cfg
		own.ReadSize, own.WriteSize, own.Depth = size, size, depth
		return nfs.DialTarget(ctx, s.Target(), own)
	}
	out := stdout
	if o.pcap == "-" {
		out = stderr
	}
	terminal := stderr
	if o.trace { // whose lines would be in the way
		terminal = io.Discard
	}
	var bar *progress
	table := &nfsbench.Table{W: out}
	o.Begin = func() {
		bar = newProgress(terminal, 0, progressbar.OptionSetDescription("bench"))
	}
	o.Result = func(r nfsbench.Result) {
		bar.end()
		if !o.json {
			table.Row(r)
		}
	}
	results, err = nfsbench.Run(ctx, o.Options)
	bar.end()
	return results, err
}
