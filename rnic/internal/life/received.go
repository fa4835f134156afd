package life

import (
	"errors"
	"fmt"

	"urnic/rdmap"
)

var errBadClose = errors.New("a segment arrived while the connection was closing")

// Arrived reports that a segment has arrived, before any of it is placed. The owner
// must call it while Watches returns true.
func (m *Machine) Arrived() Effects {
	if m.state == Closing {
		m.stream.badClose = true
	}
	return m.Heard()
}

// Heard is Arrived for a segment that came while the state was not Closing, and has been
// placed by now.
func (m *Machine) Heard() Effects {
	first := !m.stream.heard
	m.stream.heard = true
	return Effects{Transmit: first} // a close may have waited for it
}

// Watches reports whether Arrived makes a difference.
func (m *Machine) Watches() bool {
	return m.stream.live && (!m.stream.heard || m.state == Closing && !m.stream.badClose)
}

// An Arrival is what a look at the stream has come to. At most one of its fields is set.
type Arrival struct {
	Terminate *rdmap.Terminate // the peer has sent one
	Ended     bool             // the peer has closed its half
	Violation *rdmap.Error     // the peer has broken a rule, or memory could not be used
	Event     Event            // of Violation
	Lost      error            // the connection is no more
}

// A Course says how the receiver continues.
type Course uint8

// The courses.
const (
	GoOn   Course = iota // look at the stream again
	Linger               // wait until this side's half has ended, then discard what the peer sends until it has closed its own
	Settle               // the peer's half has ended: wait until this side's has, and ask Settled
	Finish               // close the connection: the stream is over
)

// Received reports the result of receiving, and returns how the receiver
// continues.
func (m *Machine) Received(a Arrival) (Effects, Course) {
	switch {
	case m.stream.badClose:
		return m.lost(badClose(a.Terminate), BadClose)
	case a.Terminate != nil:
		return m.terminated(a.Terminate)
	case a.Ended:
		return m.peerClosed()
	case a.Violation != nil && !m.stream.heard && m.state != Closing: // "MUST receive and validate at least one FPDU before sending any": RFC 5044 §7.1.2 rule 4
		return m.lost(a.Violation, a.Event)
	case a.Violation != nil:
		m.blameSink(a.Violation)
		return m.Fail(a.Violation, a.Event), Linger
	case a.Lost != nil:
		return m.lost(a.Lost, Lost)
	}
	return Effects{}, GoOn
}

// lost ends a stream whose connection is gone, or must be reset.
func (m *Machine) lost(why error, event Event) (Effects, Course) { return m.Abort(why, event), Finish }

// terminated notes the peer's Terminate. This side stops sending, and closes (RFC 5040
// §5.4). Closing the connection at once could destroy a Terminate in transit to the peer
// (§6.2.1: "SHOULD perform a graceful LLP teardown").
func (m *Machine) terminated(t *rdmap.Terminate) (Effects, Course) {
	err := &rdmap.PeerError{Terminate: *t}
	if m.state == Closing { // which it became when the message was already being sent
		return m.lost(err, BadClose)
	}
	fx := Effects{Transmit: true}
	if m.state == RTS || m.state == Terminating {
		fx.Tell = Notice{Event: TerminateReceived, Err: err, Terminate: t}
	}
	if m.state == RTS {
		m.become(Terminating, err)
	}
	m.stream.peer = peerTerminated
	m.blameRead(t)
	return fx.And(m.bound()), Linger
}

// badClose says what came while the connection was closing.
func badClose(t *rdmap.Terminate) error {
	if t == nil {
		return errBadClose
	}
	return fmt.Errorf("%w: %w", errBadClose, &rdmap.PeerError{Terminate: *t})
}

// peerClosed notes that the peer has closed its half. Judge decides what becomes of
// this side's.
func (m *Machine) peerClosed() (Effects, Course) {
	m.stream.peer = peerEnded
	if n := m.Outstanding(); n > 0 && !m.stream.heard {
		// "MUST NOT send any FPDUs before receiving one": not even a Terminate
		// (RFC 5044 §7.1.2 rule 4).
		return m.lost(errPeerClosed(n), BadLLPClose)
	}
	return Effects{Transmit: true}.And(m.bound()), Settle
}

// Settled reports, after the course Settle, that this side's half has ended too. It
// returns whether the end was orderly.
func (m *Machine) Settled() (fx Effects, orderly bool) {
	switch {
	case m.stream.aborted:
		return Effects{}, false
	case m.stream.sendErr != nil:
		return m.Abort(m.stream.sendErr, Lost), false
	}
	return Effects{}, true
}

// Lingered reports, after the course Linger, that the peer's half has ended, or how the
// wait for that has failed. It returns whether the end was orderly.
func (m *Machine) Lingered(err error) (orderly bool) {
	return err == nil && !m.stream.aborted && m.stream.sendErr == nil
}
