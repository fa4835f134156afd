package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of urnic",
		Example: "  urnic version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version(info))
			return err
		},
	}
}

// version describes the build in one line.
func version(info *debug.BuildInfo) string {
	if info == nil {
		return "urnic (no build information)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	words := []string{"urnic", v}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			words = append(words, setting.Value)
		}
	}
	return strings.Join(append(words, info.GoVersion), " ")
}
