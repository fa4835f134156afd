package mpa

import (
	"errors"
	"fmt"
)

// A Code is an MPA error code (RFC 5044 §8, RFC 6581 §8).
type Code uint8

// The error codes. In a Terminate message they stand under layer 2 (LLP),
// error type 0 (RFC 6581 §8).
const (
	CodeConnectionLost    Code = 1 // TCP closed, reset, timed out, or FIN received
	CodeCRC               Code = 2 // received CRC differs from the calculated one
	CodeMarker            Code = 3 // marker and ULPDU_Length disagree on an FPDU's start
	CodeStartup           Code = 4 // invalid MPA Request or Reply Frame
	CodeLocalCatastrophic Code = 5 // local catastrophic (revision 2)
	CodeInsufficientIRD   Code = 6 // insufficient IRD resources (revision 2)
	CodeNoMatchingRTR     Code = 7 // no matching RTR option (revision 2)
)

var codeNames = [...]string{
	CodeConnectionLost:    "connection lost",
	CodeCRC:               "CRC error",
	CodeMarker:            "marker error",
	CodeStartup:           "invalid MPA start-up frame",
	CodeLocalCatastrophic: "local catastrophic error",
	CodeInsufficientIRD:   "insufficient IRD resources",
	CodeNoMatchingRTR:     "no matching RTR option",
}

// String returns the name of the code, in the words of the RFC where it has any.
func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return fmt.Sprintf("MPA error code %d", uint8(c))
}

// TermWord returns the first two bytes of the Terminate message that reports
// the code: layer 2, error type 0, error code (RFC 5040 §4.8, RFC 6581 §8).
func (c Code) TermWord() uint16 { return 0x2000 | uint16(c) }

// An Error is a violation of MPA, or the loss of the connection under it.
type Error struct {
	Code   Code
	Clause string // the rule that was broken, e.g. "RFC 5044 §7.1.1"
	Reason string // what was found, human-readable
	Err    error  // the cause, if there is one
}

// Error returns what was found and which rule it breaks.
func (e *Error) Error() string { return "mpa: " + e.Code.String() + e.Detail() }

// Detail returns the text of Error after the code: ": " and the reason, ": " and the cause,
// and the clause in parentheses, each if it is set. Errors that describe the code in their
// own words append it.
func (e *Error) Detail() string {
	s := ""
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Clause != "" {
		s += " (" + e.Clause + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// TermWord returns the first two bytes of the Terminate that reports e.
func (e *Error) TermWord() uint16 { return e.Code.TermWord() }

func startupError(clause, format string, args ...any) *Error {
	return &Error{Code: CodeStartup, Clause: clause, Reason: fmt.Sprintf(format, args...)}
}

func lost(err error) *Error {
	return &Error{Code: CodeConnectionLost, Clause: "RFC 5044 §8", Err: err}
}

// ErrIncomplete reports that a frame continues beyond the given bytes.
var ErrIncomplete = errors.New("mpa: frame incomplete")

// A MemoryError reports that Flush could not read payload that Post had accepted. The
// FPDU can't be finished, so nothing more can be sent.
type MemoryError struct {
	Position uint64 // of the payload, in bytes as Posted counts them
	Err      error  // the cause
}

// Error returns what can't be read.
func (e *MemoryError) Error() string {
	return "mpa: payload was lost before it was sent: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *MemoryError) Unwrap() error { return e.Err }
