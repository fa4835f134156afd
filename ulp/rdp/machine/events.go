package machine

import "fmt"

// An Event reports to the owner of a machine something that a program may wait
// for.
type Event struct {
	Kind     EventKind
	Conn     *Conn     // of all but Acceptable
	Listener *Listener // of Acceptable
	State    State     // of StateChanged: the new state
	Err      error     // of StateChanged: why, or nil; a *ConnError
}

// An EventKind is the kind of an event.
type EventKind uint8

// The events. All but StateChanged are queued once until Events has returned
// them.
const (
	Readable     EventKind = iota // Receive has something to return: a message, or why there are no more
	Writable                      // Send accepts messages again
	Accepted                      // the peer has accepted everything that was sent
	StateChanged                  // the state of the connection has changed
	Acceptable                    // Accept has a connection to return
	Answered                      // the peer has acknowledged a NUL

	numEvents
)

var eventNames = [numEvents]string{"readable", "writable", "accepted", "state changed", "acceptable", "answered"}

func (k EventKind) String() string {
	if k < numEvents {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// Events returns what has happened since the last call, in order. The slice is valid until the
// next call of any method.
func (m *Machine) Events() []Event {
	if len(m.events) == 0 {
		return nil
	}
	for i := range m.events {
		if e := &m.events[i]; e.Conn != nil {
			e.Conn.told &^= 1 << e.Kind
		} else {
			e.Listener.told = false
		}
	}
	clear(m.given)
	m.events, m.given = m.given[:0], m.events
	return m.given
}

// tell queues an event of the connection, once.
func (c *Conn) tell(k EventKind) {
	if c.told&(1<<k) == 0 {
		c.told |= 1 << k
		c.m.events = append(c.m.events, Event{Kind: k, Conn: c})
	}
}

// enter changes the state of the connection, and reports it.
func (c *Conn) enter(s State, why error) {
	c.state = s
	c.m.events = append(c.m.events, Event{Kind: StateChanged, Conn: c, State: s, Err: why})
}
