package ddp

import (
	"fmt"

	"urnic/stag"
)

// A Code is a DDP error: the 4-bit Error Type over the 8-bit Error Code of
// RFC 5041 §7.2.
type Code uint16

// The DDP error numbers (RFC 5041 §7.2).
const (
	CodeLocalCatastrophic Code = 0x000

	CodeInvalidSTag       Code = 0x100 // tagged buffer errors
	CodeBaseBounds        Code = 0x101
	CodeSTagNotAssociated Code = 0x102
	CodeTOWrap            Code = 0x103
	CodeTaggedVersion     Code = 0x104

	CodeInvalidQN       Code = 0x201 // untagged buffer errors
	CodeMSNNoBuffer     Code = 0x202
	CodeMSNRange        Code = 0x203
	CodeInvalidMO       Code = 0x204
	CodeMessageTooLong  Code = 0x205
	CodeUntaggedVersion Code = 0x206
)

var codeNames = map[Code]string{
	CodeLocalCatastrophic: "local catastrophic",
	CodeInvalidSTag:       "invalid STag",
	CodeBaseBounds:        "base or bounds violation",
	CodeSTagNotAssociated: "STag not associated with DDP stream",
	CodeTOWrap:            "TO wrap",
	CodeTaggedVersion:     "invalid DDP version (tagged)",
	CodeInvalidQN:         "invalid QN",
	CodeMSNNoBuffer:       "invalid MSN - no buffer available",
	CodeMSNRange:          "invalid MSN - MSN range is not valid",
	CodeInvalidMO:         "invalid MO",
	CodeMessageTooLong:    "DDP message too long for available buffer",
	CodeUntaggedVersion:   "invalid DDP version (untagged)",
}

// String returns the RFC's words for the code.
func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("DDP error type %d code 0x%02x", c>>8, uint8(c))
}

// TermWord returns the first two bytes of the Terminate message that reports
// the code: layer 1 over the code (RFC 5040 §4.8).
func (c Code) TermWord() uint16 { return 0x1000 | uint16(c) }

// An Error is an error that the Data Sink found in a DDP segment (RFC 5041
// §7.1). A Terminate message carries Header and SegmentLen.
type Error struct {
	Code       Code
	Clause     string // the rule that was broken
	Reason     string // what was found, human-readable
	Header     []byte // the offending DDP header, as received; nil for a local catastrophic error
	SegmentLen int    // length of the segment in bytes, header included
	Err        error  // the cause, if there is one
}

// Error returns what was found and which rule it breaks.
func (e *Error) Error() string { return "ddp: " + e.Code.String() + e.Detail() }

// Detail returns the text of Error after the code: ": " and the reason, ": " and the cause,
// and the clause in parentheses, each if it is set. Errors that describe the code in their
// own words append it.
func (e *Error) Detail() string {
	s := ""
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Err != nil {
		s += ": " + e.cause()
	}
	if e.Clause != "" {
		s += " (" + e.Clause + ")"
	}
	return s
}

// cause returns the text of the cause, without what the code already says.
func (e *Error) cause() string {
	if access, ok := e.Err.(*stag.AccessError); ok && access.Violation == violations[e.Code] { //nolint:errorlint // others have words of their own
		return access.Detail()
	}
	return e.Err.Error()
}

// violations are the codes whose text says the same as the error of the STag
// table.
var violations = map[Code]stag.Violation{
	CodeInvalidSTag: stag.InvalidSTag, CodeBaseBounds: stag.OutOfBounds, CodeSTagNotAssociated: stag.NotAssociated, CodeTOWrap: stag.Wrap,
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// TermWord returns the first two bytes of the Terminate that reports e.
func (e *Error) TermWord() uint16 { return e.Code.TermWord() }
