package life

import "fmt"

// A State is the state of a queue pair (draft-hilland-rddp-verbs §6.1.1):
//
//	        connect, accept             Disconnect, or FIN with no work left
//	Idle ────────────────────► RTS ──────────────────────────► Closing
//	 ▲                          │ │                              │   │
//	 │ Reset             error, │ │ lost, Abort         bad close │   │ both halves closed
//	 │               Terminate  ▼ │                              │   │
//	 ├──────────── Error ◄── Terminate                           │   │
//	 │               ▲            │                              │   │
//	 │               └────────────┴──────────────────────────────┘   │
//	 └───────────────────────────────────────────────────────────────┘
type State uint8

// The states.
const (
	Idle        State = iota // no stream; requests may be posted and wait
	RTS                      // the stream works
	Closing                  // the stream is being closed gracefully
	Terminating              // a Terminate was sent or received, and the stream is being closed
	Error                    // the stream has ended with an error, and requests are flushed
)

var stateNames = [...]string{Idle: "Idle", RTS: "RTS", Closing: "Closing", Terminating: "Terminate", Error: "Error"}

// String names the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// become changes the state. Nothing else does. The first error that ends a stream is
// the one that is reported.
func (m *Machine) become(s State, why error) {
	m.state = s
	switch {
	case s == Idle || s == RTS:
		m.why = nil
	case m.why == nil:
		m.why = why
	}
}

// State returns the state.
func (m *Machine) State() State { return m.state }

// Why returns why the stream has ended, or is ending; nil if it has not, or was closed
// gracefully.
func (m *Machine) Why() error { return m.why }
