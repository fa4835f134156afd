package machine

import (
	"errors"
	"fmt"

	"urnic/ulp/rx/wire"
)

// An AbortError reports that a call or a connection has failed, with a code that the peer
// has sent or that this side has determined.
type AbortError struct {
	Code   wire.Code
	Remote bool  // the peer sent it
	Conn   bool  // the whole connection has failed
	Cause  error // what this side has found, or nil
}

func (e *AbortError) Error() string {
	what := "call"
	if e.Conn {
		what = "connection"
	}
	switch {
	case e.Remote:
		return fmt.Sprintf("the peer aborted the %s: %v", what, e.Code)
	case e.Cause != nil:
		return fmt.Sprintf("the %s failed: %v: %v", what, e.Code, e.Cause)
	default:
		return fmt.Sprintf("the %s failed: %v", what, e.Code)
	}
}

// Unwrap returns the cause.
func (e *AbortError) Unwrap() error { return e.Cause }

// AbortCode is the code of the abort.
func (e *AbortError) AbortCode() int32 { return int32(e.Code) }

// Errors of calls that can't be carried out.
var (
	ErrNoChannel = errors.New("all four channels have calls: wait for one to end, or use another connection")
	ErrEnded     = errors.New("the call has ended")
	ErrWritten   = errors.New("the last packet is on its way: nothing can be written after it")
	ErrOrder     = errors.New("a reply can't begin before the request has been read, nor be read before the request is complete")
	ErrClosed    = errors.New("the connection is closed")
	ErrAddress   = errors.New("the address is none that a peer can have: it needs a host and a port")
	ErrService   = errors.New("the service ID is taken, or is 0")
)

// Reasons for which calls fail at this side.
var (
	errSilent    = errors.New("nothing was heard from the peer")
	errIdle      = errors.New("nothing moved for too long")
	errHard      = errors.New("its time is over")
	errEarly     = errors.New("the reply began before the request was complete")
	errRestarted = errors.New("the peer has forgotten what it had: it has restarted")
	errTwoLasts  = errors.New("two packets are the last one")
	errReplaced  = errors.New("the client began another call on its channel")
	errChallenge = errors.New("the client answered no challenge")
	errNoClass   = errors.New("the server wants a proof of who calls, and the connection has no security class")
)
