package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Whatever the kind of a flag, the error for a wrong value says what to give.
func TestWrongValuesOfFlagsSayWhatToGive(t *testing.T) {
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			all(c)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			const wrong = "\x00wrong"
			before := f.Value.String()
			if f.Value.Set(wrong) != nil {
				err := flagError(cmd, cmd.Flags().Set(f.Name, wrong))
				if _, give, _ := strings.Cut(err.Error(), ": give "); give == "" {
					t.Errorf("%s: %v", cmd.CommandPath(), err)
				}
			}
			_ = f.Value.Set(before) // of a command that is not run
		})
	}
	all(newRootCommand())
}
