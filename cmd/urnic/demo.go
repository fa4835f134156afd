package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), o, quiet, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "don't print the ladder")
	o.add(cmd.Flags())
	return cmd
}

func runDemo(ctx context.Context, o deviceFlags, quiet bool, stdout, stderr io.Writer) error {
	out := stdout
	if o.pcap == "-" {
		out = stderr
	}
	var recording bytes.Buffer
	cfg, err := o.config(stderr)
	if err != nil {
		return err
	}
	cfg.Record = &recording
	err = demo.Run(ctx, demo.Options{Out: out, Config: cfg})
	return errors.Join(err, showRecording(ctx, &o, quiet, recording.Bytes(), stdout, out))
}

// showRecording prints the ladder, checks that the recording keeps the rules,
// and writes it where the user wants it.
func showRecording(ctx context.Context, o *deviceFlags, quiet bool, recording []byte, stdout, out io.Writer) error {
	r, err := capture.NewReader(bytes.NewReader(recording))
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // of memory
	ladder := io.Discard
	if !quiet {
		ladder = out
		fmt.Fprintln(out)
	}
	result, err := dissect.WriteLadder(ctx, ladder, r, dissect.Options{})
	if err != nil {
		return err
	}
	if n := result.Violations(); n > 0 {
		return fmt.Errorf("the recording breaks %d rules: see it with `urnic demo --pcap FILE` and `urnic dissect FILE`", n)
	}
	switch o.pcap {
	case "":
		return nil
	case "-":
		_, err = stdout.Write(recording)
	default:
		err = os.WriteFile(o.pcap, recording, 0o644)
	}
	return err
}
