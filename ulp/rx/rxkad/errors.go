package rxkad

import "fmt"

// A Code is an abort code of rxkad.
type Code int32

// The abort codes, with the names of their meaning.
const (
	CodeInconsistency Code = 19270400 + iota // the peer does what the protocol does not allow
	CodePacketShort                          // a packet is too short for what it holds
	CodeLevelFail                            // the server wants a higher level than the client has
	CodeTicketLength                         // a ticket is shorter or longer than tickets are
	CodeOutOfSequence                        // the answer is for another challenge: a replay
	CodeNoAuth                               // the ticket is not valid yet
	CodeBadKey                               // a key has the wrong parity or is weak
	CodeBadTicket                            // the ticket can't be opened, or says what it may not say
	CodeUnknownKey                           // the server has no key of this version or type
	CodeExpired                              // the ticket has expired
	CodeSealed                               // a packet is not what its sender sealed
	CodeDataLength                           // a packet claims more data than it has
	CodeIllegalLevel                         // there is no such level
)

var codeNames = [...]string{
	"protocol violated",
	"packet too short",
	"security level too low",
	"ticket too short or too long",
	"answer to another challenge",
	"ticket not valid yet",
	"bad key",
	"bad ticket",
	"unknown key",
	"ticket expired",
	"packet was changed or has the wrong key",
	"bad data length",
	"no such security level",
}

// String returns the meaning.
func (c Code) String() string {
	if i := int(c - CodeInconsistency); i >= 0 && i < len(codeNames) {
		return codeNames[i]
	}
	return fmt.Sprintf("code %d", int32(c))
}

// An Error is a failure with the code that the peer gets to know.
type Error struct {
	Code Code
	Err  error // what was found
}

// Error returns the code's meaning and what was found.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("rxkad: %s (%d)", e.Code, int32(e.Code))
	}
	return fmt.Sprintf("rxkad: %s (%d): %v", e.Code, int32(e.Code), e.Err)
}

// Unwrap returns what was found.
func (e *Error) Unwrap() error { return e.Err }

// AbortCode is what an abort packet carries.
func (e *Error) AbortCode() int32 { return int32(e.Code) }

func fail(c Code, format string, a ...any) *Error {
	return &Error{c, fmt.Errorf(format, a...)}
}
