package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

// statusUnknownOption is the status of a command that is given an option of rds-tools that urnic lacks. It is that of
// rds-stress for an option that it does not know.
const statusUnknownOption = 2

// A missingOption is an option of a program of rds-tools that urnic lacks.
type missingOption struct {
	name, short string
	instead     string // what to do
	argument    bool
}

// missingStressOptions are those of rds-stress.
var missingStressOptions = []missingOption{
	{"rtprio", "R", "use chrt --rr 1 urnic rds stress", false},
	{"reset", "", "connections end with their process: urnic rds info -n names it", false},
	{"async", "", "leave it out: no send waits for its acknowledgement", false},
	{"rdma-key-o-meter", "", "use --pcap FILE, and urnic dissect FILE, which prints the key of each operation", false},
	{"cancel-sent-to", "", "leave it out: a run ends when all its messages are acknowledged", false},
	{"abort-after", "", "use timeout SECONDS urnic rds stress", true},
}

// addMissing adds options that urnic lacks, so that each can say what to do instead. Help does not list them.
func addMissing(f *pflag.FlagSet, options []missingOption) {
	for _, m := range options {
		if m.argument {
			f.StringP(m.name, m.short, "", "not in urnic; "+m.instead)
		} else {
			f.BoolP(m.name, m.short, false, "not in urnic; "+m.instead)
		}
		f.Lookup(m.name).Hidden = true
	}
}

// checkMissing returns an error if one of them is given.
func checkMissing(f *pflag.FlagSet, options []missingOption) error {
	for _, m := range options {
		if !f.Changed(m.name) {
			continue
		}
		name := "--" + m.name
		if m.short != "" {
			name = "-" + m.short + ", " + name
		}
		return &statusError{fmt.Errorf("%s: not in urnic; %s", name, m.instead), statusUnknownOption}
	}
	return nil
}
