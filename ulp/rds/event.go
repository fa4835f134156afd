package rds

import (
	"fmt"
	"net/netip"

	"urnic/ulp/rds/machine"
)

// An EventKind says what has happened.
type EventKind uint8

// The events. The first four are what RDS does not tell programs on Linux.
const (
	MessageLost   EventKind = iota // a message that was accepted is not delivered, or may not be
	NoSocket                       // a message came for a port that no socket has, and was dropped
	PeerRestarted                  // the peer has begun a new life
	PeerViolation                  // the peer has broken a rule; the connection was reset
	Connected                      // a connection is up
	Disconnected                   // a connection is lost
	Uncongested                    // ports of the peer are free again
	Refused                        // a peer's request to connect was not accepted
	Forgotten                      // an idle peer has lost its slot to another one; what it sends again may be delivered twice
)

var eventNames = [...]string{
	"message lost", "no socket", "peer restarted", "violation by the peer", "connected", "disconnected", "uncongested", "refused",
	"peer forgotten",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// Why an event has happened, where a type says it.
type (
	// A Violation is a rule that a peer has broken: the Err of PeerViolation.
	Violation = machine.Violation
	// A Rule is what a Violation has broken. Package machine has their list.
	Rule = machine.Rule
	// An Unreachable says that a peer could not be reached in Config.Attempts tries: of
	// MessageLost.
	Unreachable = machine.Unreachable
)

// Why requests to connect are refused: the Err of Refused is one of these, of ErrNotAllowed, or
// says why the peer need not try.
var (
	ErrBusy    = machine.ErrBusy
	ErrTooMany = machine.ErrTooMany
)

// Why messages are lost: the Err of MessageLost is or wraps one of these.
var (
	ErrPeerRestarted = machine.ErrPeerRestarted
	ErrUnreachable   = machine.ErrUnreachable
	ErrSocketClosed  = machine.ErrSocketClosed
)

// An Event is something that has happened at a node.
type Event struct {
	Kind   EventKind
	Peer   netip.Addr // the other node
	TOS    uint8      // type of service of the connection, or of the message
	Path   int        // of Connected and Disconnected: which of the connections over TCP, from 0
	Socket *Socket    // of MessageLost: whose message it was
	ID     uint64     // of MessageLost: as Send returned it
	Port   uint16     // of MessageLost and NoSocket: the destination
	Err    error      // why
}

// report passes an event on. The node is locked.
func (n *Node) report(e *machine.Event) {
	ev := Event{Kind: EventKind(e.Kind), Peer: e.Peer, TOS: e.TOS, Path: e.Path, ID: e.ID, Port: e.Dest, Err: e.Err}
	if e.Socket != nil {
		ev.Socket = n.sockets[e.Socket]
	}
	switch ev.Kind {
	case PeerViolation:
		n.cfg.Logger.Warn("rds: the connection is reset", "peer", ev.Peer, "error", ev.Err)
	case Connected, Disconnected, PeerRestarted, Refused, Forgotten:
		n.cfg.Logger.Debug("rds: "+ev.Kind.String(), "peer", ev.Peer, "error", ev.Err)
	default:
	}
	if n.cfg.Events != nil {
		n.cfg.Events(ev)
	}
}
