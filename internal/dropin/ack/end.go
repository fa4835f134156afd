package ack

// A Cause says how a stream has ended.
type Cause uint8

// The causes.
const (
	// Given: this side's program has ended the stream, or this side found an error. Only
	// what was acknowledged has succeeded, and what stands before a request that has a
	// status of its own.
	Given Cause = iota
	// Refused: the peer has refused a message (RFC 5040 §4.8).
	Refused
	// Closed: the peer has closed the connection. If it had answered all that it was asked,
	// what the lower layer had taken has succeeded, for nobody has asked about it yet. Else it
	// is Lost.
	Closed
	// Lost: the peer, or the way to it, has gone.
	Lost
)

// An End is all that is known of the end of a stream.
type End struct {
	Cause Cause

	// Refused: where in the stream. Without Tagged and Untagged the peer has not said.
	Tagged    bool
	STag      uint32
	TO        uint64
	Untagged  bool
	MSN       uint32 // on queue 0, counted from 0
	Elsewhere bool   // it was no request of this side
}

// End is notified that the stream is over, and Failed has been notified of all requests that the
// RNIC has completed with an error. All requests have outcomes from then on. The first
// End of a stream counts; what is posted later is flushed.
func (m *Machine) End(e End) {
	m.failing = false
	answered := m.asked == 0 && m.before == 0
	m.asked, m.before = 0, 0
	if m.over {
		m.flush(0)
		return
	}
	m.over = true
	accepted := m.unsent
	if accepted == 0 {
		accepted = m.seq + 1
	}
	if e.Cause != Refused { // of those, nobody is waiting for a completion
		m.Trim(accepted)
	}
	first := m.unacknowledged()
	own := m.own(first)
	blamed := m.queue.Len()
	switch e.Cause {
	case Refused:
		if blamed = m.refused(first, &e); !e.Tagged && !e.Untagged && own < m.queue.Len() {
			blamed = own // the RNIC has found it
		}
	case Closed:
		for answered && first < own && m.queue.At(first).seq < accepted {
			first++
		}
		blamed = first
	case Lost:
		blamed = first
	case Given:
	}
	switch {
	case own < m.queue.Len() && own <= blamed:
		m.flush(own + 1) // what is before it has succeeded
	case blamed < m.queue.Len():
		at := m.queue.At(blamed)
		at.failed, at.outcome = true, Blamed
		m.flush(blamed + 1)
	default:
		m.flush(first)
	}
	m.acked = m.seq
}

// unacknowledged returns the index of the first request that is not known to have
// succeeded.
func (m *Machine) unacknowledged() int {
	for i := range m.queue.Len() {
		if m.queue.At(i).seq > m.acked {
			return i
		}
	}
	return m.queue.Len()
}

// own returns the index of the first request from first on that has a status of its own,
// or that of the end.
func (m *Machine) own(first int) int {
	for i := first; i < m.queue.Len(); i++ {
		if m.queue.At(i).failed {
			return i
		}
	}
	return m.queue.Len()
}

// refused returns the index of the request that the peer means, or that of the end. A peer
// that says nothing means the first that it has not acknowledged.
func (m *Machine) refused(first int, e *End) int {
	switch {
	case e.Elsewhere:
		return m.queue.Len()
	case !e.Tagged && !e.Untagged:
		return first
	}
	for i := first; i < m.queue.Len(); i++ {
		if r := m.queue.At(i); e.Tagged && r.wrote(e) || e.Untagged && r.sent(e) {
			return i
		}
	}
	return m.queue.Len()
}

// wrote reports whether a segment at e is one of the request's.
func (r *entry) wrote(e *End) bool {
	return r.Kind == Plain && r.Size > 0 && r.STag == e.STag && e.TO-r.TO < r.Size
}

// sent reports whether a message of that number is one of the request's.
func (r *entry) sent(e *End) bool { return e.MSN-r.msn < uint32(r.Messages) }

// flush gives the requests from index i on that have no outcome the outcome Flushed.
func (m *Machine) flush(i int) {
	for ; i < m.queue.Len(); i++ {
		if e := m.queue.At(i); e.seq > m.acked {
			e.failed, e.outcome = true, Flushed
		}
	}
}
