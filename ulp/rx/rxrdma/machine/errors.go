package machine

import (
	"errors"
	"fmt"

	rxwire "urnic/ulp/rx/wire"
)

// An AbortError is how a call or a connection has failed: with a code, which the peer has
// sent or which this side has found.
type AbortError struct {
	Code   rxwire.Code
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

// A Rule is a rule of the protocol that a peer can break.
type Rule uint8

// The rules.
const (
	RuleFormat    Rule = iota // messages decode
	RuleCredit                // no more messages are sent than there are credits
	RuleChannel               // a message is about a channel that there is
	RuleCall                  // a call begins on a free channel, with a higher number, by the client
	RuleSequence              // the parts of a stream follow each other, and none follows the last
	RuleWindow                // no more parts are sent than the window has, nor told read than were sent
	RuleOffer                 // offers are made where both sides want it, one at a time, for the next part
	RulePlaced                // only what was offered is placed
	RuleSecurity              // challenge and response come in turn, and before any call
	RuleProof                 // the response, and each part, is what the security class expects
	RuleTransport             // RDMAP, DDP and MPA
	RuleSetUp                 // private data make sense
	Rules
)

var ruleNames = [Rules]string{
	"format", "credit", "channel", "call", "sequence", "window", "offer", "placed", "security", "proof", "transport", "set-up",
}

func (r Rule) String() string {
	if r < Rules {
		return ruleNames[r]
	}
	return fmt.Sprintf("rule %d", uint8(r))
}

// A ViolationError says which rule the peer has broken, and how.
type ViolationError struct {
	Rule Rule
	Err  error
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("the peer broke the rule %q: %v", e.Rule, e.Err)
}

// Unwrap returns what was found.
func (e *ViolationError) Unwrap() error { return e.Err }

// Errors of calls that can't be carried out.
var (
	ErrNoChannel = errors.New("all channels have calls: wait for one to end, or use another connection")
	ErrClosing   = errors.New("the connection takes no more calls")
	ErrEnded     = errors.New("the call has ended")
	ErrWritten   = errors.New("the stream is closed: nothing can be written to it")
	ErrOrder     = errors.New("a reply can't be read before the request is complete")
)

// Reasons for which calls and connections fail at this side.
var (
	errSilent  = errors.New("nothing was heard from the peer")
	errIdle    = errors.New("nothing moved for too long")
	errHard    = errors.New("its time is over")
	errHeld    = errors.New("the peer did not give memory back")
	errNoClass = errors.New("the server wants a proof of who calls, and the connection has no security class")
	errLong    = errors.New("the response to the challenge is longer than the server's receives")
	errMemory  = errors.New("there is no memory to send from")
)
