package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"urnic/internal/capture"
	"urnic/internal/demo"
	"urnic/internal/dissect"
)

func newDemoCommand() *cobra.Command {
	var o deviceFlags
	var quiet bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Exercise every verb between two RNICs in this process",
		Long: `Demo opens two emulated RNICs, connects them over loopback TCP, exercises every verb,
checks each octet that moves, and prints what went over the wire as a ladder. The exit
status is 0 if everything was as it should be.`,
		Example: `  urnic demo
  urnic demo --pcap demo.pcapng     and open it in Wireshark
  urnic demo --quiet                without the ladder`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), o, quiet, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "don't print the ladder")
	o.add(cmd.Flags())
	return cmd
}

func runDemo(ctx context.Context, o deviceFlags, quiet bool, stdout, stderr io.Writer) (err error) {
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
	var recording bytes.Buffer
	cfg.Record = &recording
	err = demo.Run(ctx, demo.Options{Out: out, Config: cfg})
	if _, failed := recorded.Write(recording.Bytes()); failed != nil {
		err = errors.Join(err, failed)
	}
	ladder := out
	if quiet {
		ladder = io.Discard
	}
	return errors.Join(err, checkRecording(ctx, ladder, &recording))
}

// checkRecording prints the ladder, and checks that the recording keeps the
// rules. What a demonstration that has failed recorded tells most.
func checkRecording(ctx context.Context, ladder io.Writer, recording io.Reader) error {
	r, err := capture.NewReader(recording)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // of memory
	fmt.Fprintln(ladder)
	result, err := dissect.WriteLadder(ctx, ladder, r, dissect.Options{})
	if err != nil {
		return err
	}
	if n := result.Violations(); n > 0 {
		return fmt.Errorf("the recording breaks %d rules: see it with `urnic demo --pcap FILE` and `urnic dissect FILE`", n)
	}
	return nil
}
