package machine

import (
	"fmt"
	"net/netip"
)

// An Effect is something that the machine's owner must do.
type Effect struct {
	Kind   EffectKind
	Path   *Path
	Link   Link       // of Hangup
	Socket *Socket    // of Readable and Writable
	Event  Event      // of Report
	Err    error      // of Hangup: why; of Settled: why the operation has failed, or nil
	Op     *Operation // of Settled
	RKey   uint32     // of Used
}

// An EffectKind is the kind of an effect.
type EffectKind uint8

// The effects.
const (
	Dial     EffectKind = iota // open a connection for Path, and call Path.Up or Path.Down
	Hangup                     // close the connection Link of Path; call Path.Down when it is
	Transmit                   // Path has something to send: call Path.Pull until it has no more
	Resume                     // Path may be read from again
	Readable                   // Socket has a message to receive
	Writable                   // Socket may be sent from, where it could not
	Report                     // report Event
	Settled                    // Op has ended
	Used                       // a message for Socket says that the sender has used RKey; Readable follows later
)

var effectNames = [...]string{"dial", "hang up", "transmit", "resume", "readable", "writable", "report", "settled", "used"}

func (k EffectKind) String() string {
	if int(k) < len(effectNames) {
		return effectNames[k]
	}
	return fmt.Sprintf("effect %d", uint8(k))
}

// An Event reports something that RDS itself does not report to programs.
type Event struct {
	Kind   EventKind
	Peer   netip.Addr
	TOS    uint8
	Path   int     // of Connected and Disconnected
	Socket *Socket // whose message it is, or nil
	ID     uint64  // of the message, as Send returned it
	Dest   uint16  // its destination port
	Err    error   // why
}

// An EventKind is the kind of an event.
type EventKind uint8

// The events.
const (
	MessageLost   EventKind = iota // a message that Send accepted will not be delivered, or may not have been
	NoSocket                       // a message arrived for a port that no socket has; it was acknowledged and dropped
	PeerRestarted                  // the peer has another generation number
	PeerViolation                  // the peer has broken a rule: Err is a *Violation
	Connected                      // a path is up
	Disconnected                   // a path is down
	Uncongested                    // ports of the peer are free again
	Refused                        // a request to connect was not accepted
	Forgotten                      // what was known of a peer is dropped, as others need its place
)

// emit queues an effect.
func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

// report queues an event.
func (m *Machine) report(e Event) { m.emit(Effect{Kind: Report, Event: e}) }

// Effects returns the effects since the last call, in order. The slice is valid until
// the next call of any method.
func (m *Machine) Effects() []Effect {
	if len(m.effects) == 0 {
		return nil
	}
	m.effects, m.given = m.given[:0], m.effects
	return m.given
}
