package main

import (
	"errors"

	"urnic/conformance"
)

// The exit statuses of urnic conform, but for those that all commands have
// (docs/conformance.md). statusFailed stands for a failed case, and for a report that could
// not be written.
const (
	statusUntested   = 2 // the command line or the target is such that nothing was tested
	statusTargetLost = 3
	statusUndecided  = 4
)

// untested gives an error the status of a run in which nothing was tested.
func untested(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{err, statusUntested}
}

// verdict returns an error, with the exit status, unless the target has passed.
func verdict(rep *conformance.Report) error {
	status := map[conformance.Outcome]int{
		conformance.Failed:      statusFailed,
		conformance.TargetLost:  statusTargetLost,
		conformance.Undecided:   statusUndecided,
		conformance.Interrupted: statusInterrupted,
	}
	outcome := rep.Outcome()
	if outcome == conformance.Passed {
		return nil
	}
	return &statusError{errors.New(rep.Headline()), status[outcome]}
}
