package rnic

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
	// Idle: there is no stream. Requests may be posted and wait.
	Idle State = iota
	// RTS: the stream works.
	RTS
	// Closing: the stream is being closed gracefully.
	Closing
	// Terminating: there was an error; a Terminate message was sent or received,
	// and the stream is being closed.
	Terminating
	// Error: the stream has ended with an error, and all requests are flushed.
	Error
)

var stateNames = [...]string{Idle: "Idle", RTS: "RTS", Closing: "Closing", Terminating: "Terminate", Error: "Error"}

// String names the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Reset makes a queue pair idle again whose stream has ended; it then can be
// connected anew. STags of the old stream don't work on the next one. It returns
// an *OpError that wraps a *StateError while there is a stream, or while its
// requests are still being flushed.
func (q *QP) Reset() error {
	const op = "reset"
	if !q.made() {
		return notMade(op, "QP")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return q.fail(op, ErrClosed)
	case q.state == Idle:
		q.sq.setStopped(false)
		q.forgotten.Store(false)
		return nil
	case q.state != Error:
		return q.fail(op, &StateError{State: q.state})
	case q.link != nil && !q.link.isDone():
		return q.fail(op, &StateError{State: q.state, Err: ErrBusy})
	case q.link != nil:
		q.ended.Add(q.link.rdmap.Stats())
		q.link = nil
	}
	q.forgotten.Store(false)
	q.idle()
	return nil
}

// idle makes the state Idle. The caller holds mu.
func (q *QP) idle() {
	q.state, q.err = Idle, nil
	// What was opened for the old stream must not serve the next one; what is
	// opened from now on must.
	q.stream.Store(q.pd.dev.lastLink.Add(1))
}
