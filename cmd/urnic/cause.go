package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// An adviceError says in a sentence of its own what is wrong and what to do about it. The
// error that it stands for is its cause, which --log-level debug shows.
type adviceError struct {
	text  string
	cause error
}

func (e *adviceError) Error() string { return e.text }

func (e *adviceError) Unwrap() error { return e.cause }

// advise returns an error that says what to do about another one.
func advise(cause error, format string, args ...any) error {
	return &adviceError{fmt.Sprintf(format, args...), cause}
}

// chain yields an error and all that it wraps, each before its own causes.
func chain(err error) iter.Seq[error] {
	return func(yield func(error) bool) { walk(err, yield) }
}

func walk(err error, yield func(error) bool) bool {
	if err == nil {
		return true
	}
	if !yield(err) {
		return false
	}
	for _, e := range causes(err) {
		if !walk(e, yield) {
			return false
		}
	}
	return true
}

// causes returns what an error wraps.
func causes(err error) []error {
	switch e := err.(type) { //nolint:errorlint // each link of the chain has its turn
	case interface{ WrappedErrors() []error }: // of go-multierror, whose Unwrap has the first alone
		return e.WrappedErrors()
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	}
	return nil
}

// undialed returns where nobody listened, as "A or B"; other if that is not known.
func undialed(err error, other string) string {
	var all []string
	for e := range chain(err) {
		if o, ok := e.(*net.OpError); ok && o.Op == "dial" && o.Addr != nil && errors.Is(o, syscall.ECONNREFUSED) { //nolint:errorlint // as in walk
			if a := o.Addr.String(); !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 {
		return other
	}
	return strings.Join(all, " or ")
}

// errno returns what the system has said, in parentheses.
func errno(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return " (" + e.Error() + ")"
	}
	return ""
}

// wantsChain reports whether the flags of a command ask for all that is known.
func wantsChain(cmd *cobra.Command) bool {
	level, debug := cmd.Flags().Lookup("log-level"), cmd.Flags().Lookup("debug")
	return level != nil && strings.EqualFold(level.Value.String(), "debug") || debug != nil && debug.Value.String() == "true"
}

// logChain writes a record for each layer that an error has passed and that has added to it. The
// user may have been told the outermost, or of an interruption in place of all.
func logChain(w io.Writer, err error, told bool) {
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var links []error // the innermost of those that say the same
	for e := range chain(err) {
		if n := len(links); n > 0 && links[n-1].Error() == e.Error() {
			links[n-1] = e
			continue
		}
		links = append(links, e)
	}
	if told {
		links = links[1:]
	}
	for _, e := range links {
		log.Debug("cause", "type", fmt.Sprintf("%T", e), "error", e.Error())
	}
}
