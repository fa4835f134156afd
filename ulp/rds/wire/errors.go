package wire

import "fmt"

// A Fault is a way in which a header or private data break the format.
type Fault uint8

// The faults.
const (
	TooShort       Fault = iota // fewer bytes than the format has
	WrongChecksum               // the header's checksum does not fit
	TooLong                     // a message longer than MaxMessage
	WrongMap                    // a congestion map with a wrong length, flags or sequence
	WrongAck                    // an acknowledgement alone that carries data
	NoSequence                  // a message without a sequence number
	WrongExtension              // an extension header that does not fit its space, or is there twice
	WrongVersion                // private data of a version that has nothing in common with ours
	WrongAddress                // private data with an address that can't be one of a host
)

var faultNames = [...]string{
	"too short", "wrong checksum", "message too long", "wrong congestion map", "wrong acknowledgement",
	"no sequence number", "wrong extension header", "unknown version", "wrong address",
}

func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// A FormatError says how bytes of a peer break the format of RDS 3.1.
type FormatError struct {
	Fault  Fault
	Reason string // what was found, human-readable
}

func (e *FormatError) Error() string { return "rds: " + e.Fault.String() + ": " + e.Reason }

func malformed(f Fault, format string, args ...any) error {
	return &FormatError{Fault: f, Reason: fmt.Sprintf(format, args...)}
}
