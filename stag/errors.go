package stag

import "fmt"

// A Violation is the check that an access failed. The order is that of the
// checks.
type Violation uint8

// The checks (RFC 5041 §7.1, RFC 5040 §7.2).
const (
	InvalidSTag   Violation = iota + 1 // no such STag, another key, or not valid now
	NotAssociated                      // another protection domain or stream
	NoRights                           // the rights are missing
	OutOfBounds                        // the range is not inside the memory
	Wrap                               // offset plus length exceeds 2^64-1
)

var violationNames = [...]string{
	InvalidSTag: "invalid STag", NotAssociated: "STag not associated with this stream",
	NoRights: "access rights violation", OutOfBounds: "base or bounds violation", Wrap: "TO wrap",
}

// String names the check.
func (v Violation) String() string {
	if int(v) < len(violationNames) && v != 0 {
		return violationNames[v]
	}
	return fmt.Sprintf("violation %d", uint8(v))
}

// An AccessError reports why memory was not opened.
type AccessError struct {
	Violation Violation
	STag      STag
	Wanted    Access
	TO        uint64 // the range wanted, in bytes
	Len       uint64
	Base      uint64 // the range there is, if that check was reached
	Size      uint64
	Granted   Access // the rights there are, if that check was reached
	Refused   bool   // the STag grants it, but the stream does not
}

// Error names the STag, the access and what was found.
func (e *AccessError) Error() string { return fmt.Sprintf("stag: %v: %s", e.Violation, e.Detail()) }

// Detail returns the text of Error without the violation, for errors that describe it in
// their own words.
func (e *AccessError) Detail() string {
	s := fmt.Sprintf("%v, %v of %d octets at 0x%x", e.STag, e.Wanted, e.Len, e.TO)
	switch {
	case e.Refused:
		s += "; the queue pair refuses it"
	case e.Violation == NoRights:
		s += fmt.Sprintf("; it grants %v", e.Granted)
	case e.Violation == OutOfBounds || e.Violation == Wrap:
		s += fmt.Sprintf("; it covers %d octets at 0x%x", e.Size, e.Base)
	}
	return s
}

// RuleInUse is the Rule of a RegisterError for a region to which windows are bound.
const RuleInUse = "region in use"

// A RegisterError reports why memory could not be registered, bound or
// deregistered.
type RegisterError struct {
	Rule   string // the rule that was broken, in a word or two
	Reason string
	STag   STag
}

// Error says what was wrong.
func (e *RegisterError) Error() string {
	s := "stag: " + e.Rule + ": " + e.Reason
	if e.STag != 0 {
		s += " (" + e.STag.String() + ")"
	}
	return s
}
