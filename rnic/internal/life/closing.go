package life

import (
	"fmt"

	"urnic/rdmap"
)

// Disconnect asks for a graceful close: no requests are taken any more, and this side's
// half is closed when those that were posted have completed and the peer's Reads are
// answered.
func (m *Machine) Disconnect() Effects {
	m.stream.draining = true
	return Effects{End: true, Transmit: true}
}

// Ending reports whether the transmitter has to ask Judge when it has nothing more to
// send: one of the two sides has begun to close.
func (m *Machine) Ending() bool {
	return m.stream.live && (m.stream.draining || m.stream.peer != peerSends || m.state != RTS)
}

// A Sent is what the transmitter knows when it has passed on what it could.
type Sent struct {
	All         bool // there is nothing more to send, and all is out
	Answering   int  // Reads and atomics of the peer that wait for their responses
	Outstanding int  // Reads and atomics of this side that wait for theirs
	Terminated  bool // a Terminate has been sent or received: RDMAP sends nothing more
}

// Judge decides, once the peer has closed its half or the consumer wants to close, how
// the stream ends (draft-hilland-rddp-verbs §6.2).
func (m *Machine) Judge(s Sent) Effects {
	st := &m.stream
	if st.peer != peerEnded && !st.draining || st.own != ownSends || s.Terminated {
		return Effects{}
	}
	outstanding := m.Outstanding() + s.Answering
	switch {
	case !s.All || outstanding > 0:
		if st.peer == peerEnded { // it can't be finished
			return m.Fail(errPeerClosed(outstanding), BadLLPClose)
		}
	case st.peer != peerEnded && st.PeerToPeer && (!st.heard || s.Outstanding > 0):
		// The ready-to-receive indication, of which the programs on both sides know
		// nothing, is not in, or not answered.
	case m.state == RTS:
		m.become(Closing, nil)
		st.own = ownEnding
		return m.bound()
	}
	return Effects{}
}

// A HalfClose says what to do with this side's half of the stream, when the
// transmitter has nothing more to send.
type HalfClose uint8

// What CloseHalf can say.
const (
	KeepHalf  HalfClose = iota // it stays open
	CloseHalf                  // close it, and say so by OwnEnded
	LeaveHalf                  // the close of the connection ends it: say OwnEnded
	DeferHalf                  // closing it might have to wait, which a program's call must not
)

// CloseOwn says what to do with this side's half. polls says that the LLP takes what it is
// given without waiting, mayWait that the transmitter may wait.
func (m *Machine) CloseOwn(s Sent, polls, mayWait bool) HalfClose {
	ending := m.stream.own == ownEnding
	switch {
	case !ending && !s.Terminated:
		return KeepHalf
	case !polls && !mayWait: // a stream that is no TCP may have to wait for its peer
		return DeferHalf
	case ending && m.stream.peer == peerEnded && polls: // the LLP has all: the end of the connection, which comes next, is that of this half
		return LeaveHalf
	}
	return CloseHalf
}

// errPeerClosed says why the stream ends when the peer closes its half too early.
func errPeerClosed(outstanding int) *rdmap.Error {
	return &rdmap.Error{
		Code: rdmap.CodeStreamCatastrophic, Clause: "draft-hilland-rddp-verbs §6.2",
		Reason: fmt.Sprintf("the peer closed the connection while work was outstanding (%d requests)", outstanding),
	}
}
