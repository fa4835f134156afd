package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"urnic/internal/host/version"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of urnic",
		Long:    "Version prints the version of urnic, the revision of its source and the version of Go, in one line; `urnic --version` does the same.",
		Example: "  urnic version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine describes this build in one line.
func versionLine() string {
	return "urnic " + buildVersion() + " " + runtime.Version()
}

// buildVersion is the version of this build, with the revision of its source.
func buildVersion() string {
	info, _ := debug.ReadBuildInfo()
	return version.Of(info, 0)
}
