package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/internal/program/demo"
	"urnic/internal/program/dissect"
)

const demoLong = `Demo opens two emulated RNICs, connects them over loopback TCP, exercises every verb,
verifies each byte that moves, and prints what went over the wire as a ladder. The exit
status is 0 if every step succeeded.

With --json it prints one JSON object in place of steps and ladder; see docs/json.md.`

// demoOptions are the flags of urnic demo.
type demoOptions struct {
	deviceFlags
	quiet, json bool
}

func newDemoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Exercise every verb between two RNICs in this process",
		Long:  demoLong,
		Example: `  urnic demo
  urnic demo --pcap demo.pcapng     and open it in Wireshark
  urnic demo --quiet                without the ladder
  urnic demo --llp rdp              over RDP in place of TCP
  urnic demo --json                 for programs`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.json && o.pcap == "-" {
				return errJSONAndPcap
			}
			return runDemo(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.quiet, "quiet", "q", false, "don't print the ladder")
	f.BoolVar(&o.json, "json", false, "write one JSON object in place of steps and ladder")
	o.add(f)
	o.addLLP(f)
	return cmd
}

func runDemo(ctx context.Context, o demoOptions, stdout, stderr io.Writer) (err error) {
	cfg, err := o.config(stderr)
	if err != nil {
		return err
	}
	out, recorded := stdout, io.Discard
	switch o.pcap {
	case "":
	case "-":
		out, recorded = stderr, stdout
	default: // before the work, so that it is not in vain
		f, err := createRecording(o.pcap)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		recorded = f
	}
	report := demoReport{Steps: []demoStep{}}
	step, ladder := printStep(out), out
	if o.json {
		step, ladder = report.add, io.Discard
	} else if o.quiet {
		ladder = io.Discard
	}
	var recording bytes.Buffer
	layer, end, err := o.lower(&recording)
	if err != nil {
		return err
	}
	peer, _, err := o.lower(nil)
	if err != nil {
		return err
	}
	if cfg.LowerLayer = layer; layer == nil {
		cfg.Record = &recording
	}
	err = demo.Run(ctx, demo.Options{Step: step, Config: cfg, Peer: peer})
	if end != nil {
		err = errors.Join(err, end())
	}
	if _, failed := recorded.Write(recording.Bytes()); failed != nil {
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, checkRecording(ctx, ladder, &recording, layer == nil))
	if o.json {
		err = errors.Join(err, report.write(ctx, stdout, err))
	}
	return err
}

// printStep returns a function that prints a line for each step.
func printStep(w io.Writer) func(demo.Result) {
	return func(r demo.Result) {
		if r.Err != nil {
			fmt.Fprintf(w, "FAIL  %s\n", r.Name)
			return
		}
		fmt.Fprintf(w, "ok    %-55s %7d bytes\n", r.Name, r.Checked)
	}
}

// A demoReport is what --json writes.
type demoReport struct {
	Steps []demoStep `json:"steps"`
	OK    bool       `json:"ok"`
	Error string     `json:"error,omitempty"`
}

type demoStep struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Checked int    `json:"octets_checked"`
}

func (d *demoReport) add(r demo.Result) {
	d.Steps = append(d.Steps, demoStep{r.Name, r.Err == nil, r.Checked})
}

func (d *demoReport) write(ctx context.Context, w io.Writer, err error) error {
	d.OK, d.Error = err == nil, reason(ctx, err)
	return writeJSON(w, "urnic-demo/1", d)
}

// checkRecording prints the ladder, and checks that the recording keeps the
// rules; iwarp says that it has to have a connection of iWARP.
func checkRecording(ctx context.Context, ladder io.Writer, recording io.Reader, iwarp bool) error {
	r, err := capture.NewReader(recording)
	if err != nil {
		return err
	}
	fmt.Fprintln(ladder)
	cfg := dissect.Config{Handler: dissect.Ladder(ladder, dissect.Options{})}
	if !iwarp {
		cfg.ULP = new(dissectRDPFlags).analyzer(true)
	}
	result, err := cfg.Analyze(ctx, r)
	if err != nil {
		return err
	}
	if iwarp && len(result.Connections) == 0 {
		return errors.New("the recording holds no iWARP connection, so nothing of it was checked: see it with `urnic demo --pcap FILE`")
	}
	if n := result.Violations(); n > 0 {
		return fmt.Errorf("the recording breaks %s: see it with `urnic demo --pcap FILE` and `urnic dissect FILE`", plural.Count(n, "rule"))
	}
	return nil
}
