package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"urnic/internal/host/printable"
)

// newRootCommand returns the command with all its subcommands.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "urnic",
		Short: "A userspace RNIC: RDMA over TCP (iWARP) without hardware",
		Long: `urnic is a userspace RNIC. It runs iWARP (RDMAP over DDP over MPA over TCP) with other
urnics, with Linux siw and with hardware RNICs. It needs no RDMA hardware, no kernel module
and no privileges.

The exit status is 0 only if everything succeeded, and 130 if SIGINT or SIGTERM interrupted
the command. A server that is interrupted ends with 0.`,
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
  urnic top
  urnic timeline recordings page.html
  urnic sysfs /tmp/sys
  urnic rpc info server
  urnic rds ping 192.0.2.7
  urnic rx debug 192.0.2.7 7000
  urnic rdp send file 192.0.2.7
  urnic version`,
		Args:          noArgs,
		Version:       versionLine(),
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(newHelpCommand())
	fitHelp(root)
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
		newTopCommand(),
		newTimelineCommand(),
		newSysfsCommand(),
		newRPCCommand(),
		newRDSCommand(),
		newRXCommand(),
		newRDPCommand(),
		newVersionCommand(),
		newManCommand(),
	)
	if adapt != nil {
		adapt(root)
	}
	return root
}

// adapt changes the commands, for tests that run on machines of any speed.
var adapt func(root *cobra.Command)

// The exit statuses of commands that have none of their own: see statusError.
const (
	statusFailed      = 1
	statusInterrupted = 130 // as a shell has it: 128 and the number of SIGINT
)

// run executes urnic with args and returns its exit status: 0 only if what was
// asked for holds and all that was printed could be written, or a server was interrupted. An
// error goes to stderr in one line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	out := &kept{Writer: stdout, name: "standard output"}
	errOut := &kept{Writer: stderr, name: "standard error"}
	root.SetArgs(args)
	if stdin != nil {
		root.SetIn(&interruptibleReader{ctx: ctx, r: stdin})
	}
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if ctx.Err() == nil { // nor will it have been interrupted when it is looked at again
		ctx = context.WithoutCancel(ctx)
	}
	lost := alwaysTell(errors.Join(out.lost(), errOut.lost()))
	switch {
	case err == nil && lost == nil:
		return 0
	case err == nil:
		err = &statusError{lost, failed(cmd)} // also if a server was interrupted
	case ctx.Err() != nil: // else err says it
		err = errors.Join(err, lost)
	}
	fmt.Fprintf(stderr, "urnic: %s\n", reason(ctx, err))
	if wantsChain(cmd) {
		logChain(stderr, err, ctx.Err() == nil)
	}
	own, is := errors.AsType[*statusError](toTell(ctx, err))
	switch {
	case is:
		return own.status
	case ctx.Err() != nil:
		return statusInterrupted
	}
	return failed(cmd)
}

// failed is the status of a command that has failed.
func failed(cmd *cobra.Command) int {
	if cmd.Name() == "run" {
		return statusOfRun
	}
	return statusFailed
}

// text is an error, or all that were joined, in one line that a terminal can show; "" without
// one.
func text(err error) string {
	if err == nil {
		return ""
	}
	return printable.Escape(strings.ReplaceAll(err.Error(), "\n", "; "))
}
