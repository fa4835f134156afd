package rnic

import (
	"fmt"

	"urnic/stag"
)

// Err returns nil on success and otherwise a *CompletionError.
func (w *WC) Err() error {
	if w.Status == StatusSuccess {
		return nil
	}
	return &CompletionError{WC: *w}
}

// A CompletionError is a completion that did not succeed.
type CompletionError struct{ WC WC }

// Error names the request and its status.
func (e *CompletionError) Error() string {
	s := fmt.Sprintf("rnic: QP %d: %v (ID %d): %v", e.WC.QPN, e.WC.Op, e.WC.ID, e.WC.Status)
	access, ok := e.WC.Cause.(*stag.AccessError) //nolint:errorlint // others have words of their own
	switch {
	case e.WC.Cause == nil:
	case ok && access.Violation == stag.InvalidSTag && e.WC.Status == StatusBadSTag:
		s += ": " + access.Detail()
	default:
		s += ": " + e.WC.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *CompletionError) Unwrap() error { return e.WC.Cause }
