package rnic

import (
	"fmt"

	"urnic/rnic/internal/life"
)

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
	// Idle: there is no stream. Requests may be posted and wait.
	Idle = State(life.Idle)
	// RTS: the stream works.
	RTS = State(life.RTS)
	// Closing: the stream is being closed gracefully.
	Closing = State(life.Closing)
	// Terminating: there was an error; a Terminate message was sent or received,
	// and the stream is being closed.
	Terminating = State(life.Terminating)
	// Error: the stream has ended with an error, and all requests are flushed.
	Error = State(life.Error)
)

// String names the state.
func (s State) String() string { return life.State(s).String() }

// A StateError says that a queue pair is in the wrong state for a verb.
type StateError struct {
	State State
	Err   error // why the stream has ended, if it has
}

// Error names the state.
func (e *StateError) Error() string {
	s := fmt.Sprintf("the queue pair is in state %v", e.State)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns why the stream has ended.
func (e *StateError) Unwrap() error { return e.Err }
