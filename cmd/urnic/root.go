package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"urnic/internal/printable"
)

// newRootCommand returns the command with all its subcommands.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "urnic",
		Short: "A userspace RNIC: RDMA over TCP (iWARP) without hardware",
		Long: `urnic is a userspace RNIC. It speaks iWARP (RDMAP over DDP over MPA over TCP) with
other urnics, with Linux siw and with hardware RNICs, and needs no RDMA hardware, no
kernel module and no privileges.`,
		Example: `  urnic demo
  urnic devinfo
  urnic rping -s
  urnic rping -c -a 127.0.0.1 -C 10 -v -V
  urnic perf local --test lat --baseline
  urnic nfsd /srv/data
  urnic nfs ls -l nfs+rdma://192.0.2.7/srv/data
  urnic dissect capture.pcap
  urnic dissect --summary --json capture.pcap
  urnic conform serve
  urnic run -- rping -s
  urnic rpc info server
  urnic version`,
		Args:          noArgs,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newDemoCommand(),
		newDevinfoCommand(),
		newRpingCommand(),
		newPerfCommand(),
		newNFSDCommand(),
		newNFSCommand(),
		newDissectCommand(),
		newConformCommand(),
		newRunCommand(),
		newRPCCommand(),
		newVersionCommand(),
	)
	return root
}

// run executes urnic with args and returns its exit status: 0 only if what was
// asked for holds. An error goes to stderr in one line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case interrupted(ctx, err):
		fmt.Fprintln(stderr, "urnic: interrupted")
	default:
		fmt.Fprintf(stderr, "urnic: %s\n", text(err))
	}
	var own *statusError
	switch {
	case errors.As(err, &own):
		return own.status
	case cmd.Name() == "run":
		return statusOfRun
	}
	return 1
}

// text is an error, or all that were joined, in one line that a terminal can show; "" without
// one.
func text(err error) string {
	if err == nil {
		return ""
	}
	return printable.Escape(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// interrupted reports whether err says that the user has ended the command.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}
