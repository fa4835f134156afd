package life

import (
	"urnic/internal/door/policy"
	"urnic/internal/ring"
	"urnic/rdmap"
)

// A Machine is the life of one queue pair: its state, its send queue, and the stream
// that it has. It does nothing by itself: its methods are the events, and what is to
// be done about them is returned as Effects.
//
// It is not safe for concurrent use. The receive queue is a value of its own, see
// RecvQueue, so that receiving and posting need not wait for each other.
type Machine struct {
	state  State
	why    error // why the stream ended, if not gracefully
	stream stream

	queue   ring.Ring[*Request] // the send queue, oldest first
	begun   int                 // requests at its front whose messages have all been given to the stream
	late    int                 // requests at its end that are only to be flushed: they came after the end
	reads   int                 // messages of Reads and atomics whose responses are not in
	stopped bool                // no request is begun, see Stop

	checksAtTurn, takesLate, holdsSlots bool // the answers of a policy, see Follow

	completed []*Request // what Completed returns
	drained   bool       // a stopped queue has become empty of what was begun
}

// A stream is what the machine knows of the stream that there is, or was last.
type stream struct {
	Params
	live     bool // from Connected until Over
	heard    bool // the peer has sent something, or need not be first
	draining bool // the program has requested a graceful close: no more requests are accepted
	badClose bool // a segment arrived in state Closing
	armed    bool // the time that the end may take has begun
	aborted  bool // the connection was reset by this side
	quiet    bool // Effects.Quiet has reported that nothing more will be sent
	peer     peerHalf
	own      ownHalf
	sendErr  error  // why nothing can be sent, if the LLP has failed
	flushed  uint64 // what the LLP has accepted
	answered uint32 // Reads and atomics whose responses are in
}

// A peerHalf says how far the peer's half of the stream is.
type peerHalf uint8

const (
	peerSends      peerHalf = iota
	peerEnded               // it has closed its half
	peerTerminated          // it has sent a Terminate: it is unknown what it accepted of what was sent
)

// An ownHalf says how far this side's half of the stream is.
type ownHalf uint8

const (
	ownSends  ownHalf = iota
	ownEnding         // it is to be closed, as all is out
	ownEnded          // nothing will be sent any more
)

// Params is what start-up has settled, as far as the life of a stream depends on it.
type Params struct {
	Initiator  bool // else this side may not send before it has received something (RFC 5044 §7.1.2 rule 4)
	PeerToPeer bool // the Initiator sends a ready-to-receive indication first (RFC 6581 §9.2)
	ReadRTR    bool // this side's indication is a Read: it takes the first MSN
	ORD        int
}

// New returns the life of a queue pair whose send queue has room for so many requests.
func New(requests int) *Machine {
	m := &Machine{}
	m.queue.Init(requests)
	return m
}

// Follow asks a policy in what the queue pair departs from the strict rules. It is called
// before anything is posted, or not at all.
func (m *Machine) Follow(p policy.Policy) {
	m.checksAtTurn, m.takesLate = p.Allows(policy.CheckAtTurn), p.Allows(policy.TakeLate)
	m.holdsSlots = p.Allows(policy.HoldSends)
}

// Connected is the end of start-up. The state must be Idle: otherwise nothing changes.
func (m *Machine) Connected(p Params) {
	if m.state != Idle || m.stream.live {
		return
	}
	m.stream = stream{Params: p, live: true, heard: p.Initiator}
	m.become(RTS, nil)
}

// Live reports whether there is a stream, one that is ending included.
func (m *Machine) Live() bool { return m.stream.live }

// Params returns the parameters of the stream that there is, or was last.
func (m *Machine) Params() Params { return m.stream.Params }

// Over is the end of a stream: the connection is closed and no goroutine works on it
// any more. orderly says that both halves have ended, so that the close was graceful
// if both sides wanted that. All requests are flushed. Without a stream nothing
// changes.
func (m *Machine) Over(orderly bool) Effects {
	if !m.stream.live {
		return Effects{}
	}
	m.stream.live = false
	graceful := orderly && m.state == Closing
	m.flush()
	if !graceful {
		m.become(Error, nil)
		return Effects{}
	}
	m.become(Idle, nil)
	return Effects{Tell: Notice{Event: CloseComplete}}
}

// End makes a queue pair without a stream useless: it goes from Idle to Error, and all
// requests are flushed. It reports whether that was so.
func (m *Machine) End(why error) bool {
	if m.state != Idle || m.stream.live {
		return false
	}
	m.become(Error, why)
	m.flush()
	return true
}

// Reset makes a queue pair idle again whose stream has ended. It reports false, and
// changes nothing, if there is a stream.
func (m *Machine) Reset() bool {
	switch {
	case m.state == Idle:
		m.Stop(false)
		return true
	case m.state != Error || m.stream.live:
		return false
	}
	m.become(Idle, nil)
	return true
}

// CQFailed reports that a completion queue has no slot for a completion; e is the error
// for the peer. It returns whether the queue pair is idle: then there is no stream to
// end, and the owner ends the queue pair.
func (m *Machine) CQFailed(e *rdmap.Error) (fx Effects, idle bool) {
	switch m.state {
	case RTS:
		return m.Fail(e, Catastrophic), false
	case Closing:
		return m.Abort(e, Catastrophic), false
	default: // it has ended, or does, or never was
		return Effects{}, m.state == Idle
	}
}
