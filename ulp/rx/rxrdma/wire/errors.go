package wire

import "fmt"

// A Fault is a way in which bytes break the format.
type Fault uint8

// The faults.
const (
	TooShort     Fault = iota + 1 // fewer bytes than the format has
	TooLong                       // more bytes than the format has
	WrongMagic                    // private data of another protocol
	WrongVersion                  // private data of a version that is not known
	WrongType                     // a message of no type
	WrongLimits                   // limits with which no call can be carried
)

var faultNames = [...]string{
	TooShort: "too short", TooLong: "too long", WrongMagic: "not of Rx", WrongVersion: "unknown version",
	WrongType: "unknown type", WrongLimits: "limits out of range",
}

func (f Fault) String() string {
	if int(f) < len(faultNames) && f > 0 {
		return faultNames[f]
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// A FormatError says how bytes of a peer break the format.
type FormatError struct {
	What  string // what they should be: "private data", "DATA"
	Fault Fault
	Value int // the length, version, type or limit that was found
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("rxrdma: %s: %v: %d", e.What, e.Fault, e.Value)
}
