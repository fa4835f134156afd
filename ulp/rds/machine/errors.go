package machine

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Why calls are refused.
var (
	ErrClosed       = errors.New("rds: the socket is closed")
	ErrCongested    = errors.New("rds: the destination port is congested: wait until its socket has read")
	ErrBufferFull   = errors.New("rds: the send buffer is full: wait until the peer has acknowledged")
	ErrTooLong      = errors.New("rds: the message is longer than 1 MiB, or than the socket's send buffer")
	ErrPortInUse    = errors.New("rds: the port is in use")
	ErrNoPort       = errors.New("rds: all ports are in use")
	ErrTooMany      = errors.New("rds: the node has as many sockets or peers as it may have")
	ErrNotSupported = errors.New("rds: the transport, or the peer, has no such RDMA operation")
	ErrAddress      = errors.New("rds: the address is not that of a host, or not of the node's family")
)

// Why accepted messages are lost. An Event reports them.
var (
	ErrPeerRestarted = errors.New("rds: the peer has restarted before it acknowledged the message")
	ErrUnreachable   = errors.New("rds: the peer can't be reached")
	ErrSocketClosed  = errors.New("rds: the socket was closed before the peer acknowledged the message")
	ErrOperation     = errors.New("rds: the connection was lost before the RDMA operation of the message was known to be done")
)

func configError(format string, args ...any) error {
	return fmt.Errorf("rds: configuration: "+format, args...)
}

// A Violation is a rule that a peer has broken. The connection is reset.
type Violation struct {
	Peer   netip.Addr
	Rule   Rule
	Reason string // what was found, human-readable
	Err    error  // the cause, if there is one
}

func (v *Violation) Error() string {
	s := fmt.Sprintf("rds: peer %v: %v", v.Peer, v.Rule)
	if v.Reason != "" {
		s += ": " + v.Reason
	}
	if v.Err != nil {
		s += ": " + strings.TrimPrefix(v.Err.Error(), "rds: ")
	}
	return s
}

// Unwrap returns the cause.
func (v *Violation) Unwrap() error { return v.Err }

// A Rule is one that a peer can break.
type Rule uint8

// The rules.
const (
	RuleFormat     Rule = iota // a header that the format does not allow
	RuleSequence               // sequence numbers rise within a connection
	RuleAck                    // only what was sent is acknowledged
	RuleFragments              // fragments of a message follow each other, and have the same header
	RuleLength                 // a segment has as much data as its header announces
	RuleCredit                 // no more Sends than credits
	RuleGeneration             // generation numbers do not change within a connection, and are not used again
	RuleProbe                  // a probe or its pong names 1 or more paths
	RuleSetUp                  // private data name a version in common, and the addresses of both sides
	RuleTransport              // those of the transport: of iWARP, its RFCs
)

var ruleNames = [...]string{
	"wrong header", "sequence number out of order", "acknowledgement of what was not sent", "fragments out of order",
	"wrong length", "more Sends than credits", "wrong generation number", "wrong number of paths",
	"wrong private data", "rule of the transport",
}

func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return fmt.Sprintf("rule %d", uint8(r))
}

// Why links end or are not set up.
var (
	// ErrRejected says that the peer has rejected a request: its own request may be outstanding.
	ErrRejected = errors.New("rds: the peer has rejected the connection, as it connects itself or wants another version")
	// ErrBusy says that both sides dial, and that the other's request is the one that counts.
	ErrBusy   = errors.New("rds: both sides connect at once: this one goes on with its own request")
	errSilent = errors.New("rds: the peer has connected and said nothing")
	errKnock  = errors.New("rds: the node with the lower address is the one that dials")
	// ErrReplaced says that the peer has made a new connection: it no longer knows the old one.
	ErrReplaced = errors.New("rds: the peer has made a new connection")
	errRestart  = errors.New("rds: the peer has restarted")
)

// An Unreachable reports that a peer could not be reached in the permitted number of
// tries.
type Unreachable struct {
	Peer netip.Addr
	Err  error // of the last try
}

func (e *Unreachable) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("rds: %v can't be reached", e.Peer)
	}
	return fmt.Sprintf("rds: %v can't be reached: %v", e.Peer, e.Err)
}

// Unwrap returns the cause. Is reports that it is ErrUnreachable.
func (e *Unreachable) Unwrap() error { return e.Err }

// Is reports whether target is ErrUnreachable.
func (e *Unreachable) Is(target error) bool { return target == ErrUnreachable }
