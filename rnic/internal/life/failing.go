package life

import "urnic/rdmap"

// Fail ends the stream for an error that this side has found: a Terminate message
// notifies the peer, and the stream closes. It reports event to the program, unless
// that is zero. A stream that is already ending continues to do so.
func (m *Machine) Fail(e *rdmap.Error, event Event) Effects {
	switch m.state {
	case RTS:
		m.become(Terminating, e)
		return Effects{Tell: Notice{Event: event, Err: e}, Terminate: e, Transmit: true}.And(m.bound())
	case Closing: // a graceful close has no room for a Terminate
		return m.Abort(e, BadClose)
	default:
		return Effects{}
	}
}

// Abort resets the connection. It reports event to the program, unless that is zero
// or the stream was already ending because of an error.
func (m *Machine) Abort(why error, event Event) Effects {
	fx := Effects{Abort: true, End: true}
	if !m.stream.live {
		return fx
	}
	if m.state == RTS || m.state == Closing {
		fx.Tell = Notice{Event: event, Err: why}
	}
	m.stream.aborted = true
	m.become(Error, why)
	return fx.And(m.quiet())
}

// Expired reports that the end of the stream has taken too long: the time that
// Effects.Arm has started is over.
func (m *Machine) Expired(why error) Effects { return m.Abort(why, Lost) }

// Broken reports that nothing more can be sent. Receiving continues: the peer may have
// said why in a Terminate message that the receiver has not reached yet. It finds the
// end of the stream soon, or runs out of time.
func (m *Machine) Broken(err error) Effects {
	m.stream.sendErr = err
	return m.OwnEnded().And(m.bound())
}

// OwnEnded reports that nothing more will be sent: this side's half is closed, or
// lost.
func (m *Machine) OwnEnded() Effects {
	m.stream.own = ownEnded
	return m.quiet()
}

// quiet reports once that nothing more will be sent.
func (m *Machine) quiet() Effects {
	first := !m.stream.quiet
	m.stream.quiet = true
	return Effects{Quiet: first}
}

// bound bounds the time that the end takes, which is for the receiver's goroutine.
func (m *Machine) bound() Effects {
	fx := Effects{End: true, Arm: !m.stream.armed && m.stream.live}
	m.stream.armed = m.stream.armed || fx.Arm
	return fx
}

// Aborted reports whether this side has reset the connection.
func (m *Machine) Aborted() bool { return m.stream.aborted }

// Disputed reports whether the peer has sent a Terminate: it is unknown what it
// accepted of what was sent before.
func (m *Machine) Disputed() bool { return m.stream.peer == peerTerminated }
