package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noArgs takes no arguments, and says what to do about those that are there.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasParent():
		return fmt.Errorf("there is no command %q: `%s help` lists them", args[0], cmd.Name())
	}
	return fmt.Errorf("`%s` takes no arguments, and %q is one: see `%[1]s --help`", cmd.CommandPath(), args[0])
}

// flagError says what is wrong with a flag in the words of this program.
func flagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := e.GetFlag()
		return fmt.Errorf("--%s %s: give %s", f.Name, e.GetValue(), kinds[f.Value.Type()])
	}
	return fmt.Errorf("%w: %s", err, help)
}

// seconds is the value of a flag that takes a time with its unit, or, as perftest's -D does, a number of seconds.
type seconds time.Duration

func (s *seconds) String() string { return time.Duration(*s).String() }

func (s *seconds) Type() string { return "duration" }

// Set takes 10 and 10s.
func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		*s = seconds(time.Duration(n) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	*s = seconds(d)
	return err
}

// kinds says what the flags of each type take.
var kinds = map[string]string{
	"bool":      "true or false, or only the flag",
	"duration":  "a time with its unit, such as 500ms or 10s",
	"float64":   "a number",
	"int":       "a whole number",
	"interval":  "a number of seconds, or a time with its unit, such as 0.5, 100ms or 100msec",
	"uint8":     "a whole number from 0 to 255",
	"uint32":    "a whole number from 0 on",
	"uint64":    "a whole number from 0 on",
	"uintSlice": "whole numbers from 0 on, with commas between them",
}

var errJSONAndPcap = errors.New("--json and --pcap - would both go to standard output: record into a file")

// exclude returns an error if both flags are set.
func exclude(f *pflag.FlagSet, a, b string) error {
	if f.Changed(a) && f.Changed(b) {
		return fmt.Errorf("give only one of --%s and --%s", a, b)
	}
	return nil
}
