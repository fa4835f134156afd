package wire

import "fmt"

// A Fault is a way in which a segment has the wrong form.
type Fault uint8

// The faults.
const (
	noFault           Fault = iota
	TooShort                // fewer bytes than a header has
	WrongVersion            // neither 1 nor 2
	WrongHeaderLength       // the header's length is below its fixed part's, or beyond the segment
	WrongLength             // header and data are not what the carrier delivered
	WrongChecksum
	UnusedFlag     // the flag that has to be zero
	ExclusiveFlags // two of SYN, RST and NUL, or all
	UnexpectedData // data with SYN, RST or NUL
	UnexpectedEACK // EACK with SYN or RST
	EACKWithoutACK
	DataWithoutACK
	NoFlag   // no flag and no data: none of the segments that there are
	ShortSYN // a SYN whose header has no room for its limits
	OddEACKs // a list of EACKs that ends within a number
	WrongPort
	TooManyEACKs // more than one EACK can list: only when encoding
	TooMuchData  // more than one segment can carry: only when encoding

	numFaults
)

// A faultInfo is what is known of a fault.
type faultInfo struct{ name, rule, clause string }

var faults = [numFaults]faultInfo{
	noFault:           {"no fault", "", ""},
	TooShort:          {"too short", "H1", "RFC 908 §4.2"},
	WrongVersion:      {"unknown version", "H1", "RFC 1151 p.2"},
	WrongHeaderLength: {"wrong header length", "H2", "RFC 908 §4.2.1"},
	WrongLength:       {"wrong length", "H3", "RFC 908 §4.2.1"},
	WrongChecksum:     {"wrong checksum", "H4", "RFC 908 §3.4.2"},
	UnusedFlag:        {"unused flag", "H5", "RFC 908 §4.2.1"},
	ExclusiveFlags:    {"flags that exclude each other", "H5", "RFC 908 §4.2.1"},
	UnexpectedData:    {"unexpected data", "H5", "RFC 908 §4.2.1"},
	UnexpectedEACK:    {"unexpected EACK", "H5", "RFC 908 §4.3, §4.6"},
	EACKWithoutACK:    {"EACK without ACK", "H5", "RFC 908 §4.5"},
	DataWithoutACK:    {"data without ACK", "H5", "RFC 908 §4.4"},
	NoFlag:            {"no flag", "H5", "RFC 908 §4.2.1"},
	ShortSYN:          {"short SYN", "H5", "RFC 908 §4.3.1"},
	OddEACKs:          {"odd list of EACKs", "H5", "RFC 908 §4.5.1"},
	WrongPort:         {"wrong port", "H6", "RFC 908 §3.2.2, RFC 1151 p.2"},
	TooManyEACKs:      {"too many EACKs", "A36", "RFC 908 §4.5"},
	TooMuchData:       {"too much data", "H3", "RFC 908 §4.2.1"},
}

// info returns what is known of a fault.
func (f Fault) info() faultInfo {
	if f < numFaults {
		return faults[f]
	}
	return faultInfo{name: fmt.Sprintf("fault %d", uint8(f))}
}

func (f Fault) String() string { return f.info().name }

// Rule is the name of the rule that is broken: H1 to H6 for what Parse refuses.
func (f Fault) Rule() string { return f.info().rule }

// Clause is where the rule stands.
func (f Fault) Clause() string { return f.info().clause }

// A FormatError says why bytes are no segment of RDP, or why a header can't be encoded. A segment
// with such an error is discarded and never answered (RFC 908 §3.4.3).
type FormatError struct {
	Fault      Fault
	Version    uint8 // of the segment, for a wrong checksum
	Flags      Flags // for flags that do not go together
	Have, Want int   // lengths in bytes, numbers or checksums, as the fault has them
}

// Rule is the name of the rule that is broken: H1 to H6 for what Parse refuses.
func (e *FormatError) Rule() string { return e.Fault.Rule() }

func (e *FormatError) Error() string { return "rdp: " + e.Fault.String() + ": " + e.Reason() }

// Reason says what was found, without the fault's name.
func (e *FormatError) Reason() string {
	switch e.Fault {
	case TooShort:
		return fmt.Sprintf("a segment of %d bytes; a header takes at least %d", e.Have, e.Want)
	case WrongVersion:
		return fmt.Sprintf("version %d; there are 1 and 2", e.Have)
	case WrongHeaderLength:
		return fmt.Sprintf("a header of %d bytes in a segment of %d; the least is %d", e.Have, e.Want, FixedLen)
	case WrongLength:
		return fmt.Sprintf("header and data have %d bytes, and the carrier delivered %d", e.Want, e.Have)
	case WrongChecksum:
		if e.Version == 1 {
			return fmt.Sprintf("0x%08x, and 0x%08x would be right", uint32(e.Have), uint32(e.Want))
		}
		return fmt.Sprintf("0x%04x, and 0x%04x would be right", e.Have, e.Want)
	case ShortSYN:
		return fmt.Sprintf("a header of %d bytes; that of a SYN takes %d", e.Have, e.Want)
	case OddEACKs:
		return fmt.Sprintf("a list of %d bytes; each number takes %d", e.Have, e.Want)
	case WrongPort:
		if e.Have > e.Want && e.Want > 0 {
			return fmt.Sprintf("port %d; the highest of version 1 is %d", e.Have, e.Want)
		}
		return "a port is 0"
	case TooManyEACKs:
		return fmt.Sprintf("%d numbers; a header has room for %d", e.Have, e.Want)
	case TooMuchData:
		return fmt.Sprintf("%d bytes; a segment carries at most %d", e.Have, e.Want)
	case UnexpectedData, DataWithoutACK:
		return fmt.Sprintf("%d bytes with the flags %q", e.Have, e.Flags)
	default:
		return fmt.Sprintf("the flags are %q", e.Flags)
	}
}
