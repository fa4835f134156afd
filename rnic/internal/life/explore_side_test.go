package life

import (
	"errors"
	"fmt"
	"strings"

	"urnic/internal/door/policy"
	"urnic/rdmap"
)

var errModel = errors.New("as the script wants it")

// An item is what is on the wire.
type item struct {
	kind itemKind
	req  *modelRequest // of a message, a request or its response
	end  uint64        // position behind it, of what is posted
}

type itemKind uint8

const (
	aSend itemKind = iota
	aWrite
	aReadRequest
	aReadResponse
	anRTR // the ready-to-receive indication, as a Send
	aTerminate
	aFIN
	aRST
)

// A modelRequest is a request with what has really become of it.
type modelRequest struct {
	Request
	kind      string
	late      bool // posted when it could only be flushed
	given     int  // messages that were begun
	accepted  int  // messages that the LLP has taken all of
	answered  int  // messages whose responses were in
	carried   bool // a local request was carried out
	completed bool
}

// isDone reports whether all of the request was done.
func (r *modelRequest) isDone() bool {
	switch {
	case r.isLocal():
		return r.carried
	case r.isRead():
		return r.answered == len(r.Messages)
	}
	return r.accepted == len(r.Messages)
}

// A modelSide is one end: a model of what runs a machine. It has a program, a transmitter
// and a receiver.
type modelSide struct {
	name   string
	m      *Machine
	peer   *modelSide
	script []string
	failed string // what is wrong

	posted []*modelRequest
	order  int // of posted, that have completed
	late   int // of the others, that were posted late

	receives RecvQueue
	waiting  []*Receive // that were posted and have not completed

	ord      int
	places   int  // in the completion queue; -1: as many as it takes
	timers   bool // time may run out at any point, not only when nothing else can happen
	patient  bool // the LLP may make its transmitter wait, as no TCP does
	batches  bool // the transmitter takes requests by Batch
	stopped  bool // the send queue
	drained  int  // how often that was told
	cqFailed bool

	modelStream
}

// A modelStream is what a side knows of a stream.
type modelStream struct {
	in    []item // on the way to this side
	first int    // of the side's posted, that was there when the last one was over

	// The LLP.
	unsent    []item // posted, and not flushed
	position  uint64 // of what was posted
	accepted  uint64 // of what was flushed
	full      bool   // the LLP takes nothing
	spoiled   bool   // memory is lost that is to be sent
	broken    bool   // nothing can be sent any more
	finished  bool   // this side's half is closed
	gone      bool   // the connection is closed or reset
	openLease bool   // memory is open until the next flush

	// RDMAP.
	rtr       bool            // the ready-to-receive indication is to be sent
	irq       []*modelRequest // of the peer's, to be answered; nil for the indication
	orq       []*modelRequest
	terminate *rdmap.Error
	mute      bool // a Terminate was sent or received

	kick     bool // the transmitter is to run
	mayWait  bool // it need not return to a program
	failing  bool // a request has failed
	quiet    bool
	armed    bool
	disputed bool // the machine knows of the peer's Terminate
	asked    bool // the program has ended the stream
	course   Course
	over     bool
	told     []Event
	refused  *modelRequest // the first in the queue that has failed
}

// newSide makes a side of a script. Words with a colon in front set it up.
func newSide(name, script string) *modelSide {
	s := &modelSide{name: name, m: New(8), ord: 2, places: -1}
	s.m.Follow(policy.Lenient{Departures: policy.CheckAtTurn})
	s.receives.Init(8)
	s.script = make([]string, 0, 6)
	for word := range strings.FieldsSeq(script) {
		switch word {
		case ":ord0":
			s.ord = 0
		case ":cq1":
			s.places = 1
		case ":timers":
			s.timers = true
		case ":patient":
			s.patient = true
		case ":batches":
			s.batches = true
		default:
			s.script = append(s.script, word)
		}
	}
	return s
}

// connect begins a stream from s, the initiator, to its peer.
func (s *modelSide) connect(rtr string) {
	for _, o := range []*modelSide{s, s.peer} {
		o.modelStream = modelStream{first: o.order, kick: true, rtr: o == s && rtr != ""}
		o.m.Connected(Params{Initiator: o == s, PeerToPeer: rtr != "", ReadRTR: o == s && rtr == "read", ORD: o.ord})
	}
}

func (s *modelSide) fail(format string, args ...any) {
	if s.failed == "" {
		s.failed = s.name + ": " + fmt.Sprintf(format, args...)
	}
}

// act carries out the effects of an event.
func (s *modelSide) act(fx Effects) {
	s.checkEffects(&fx)
	if fx.Tell.Event != 0 {
		s.told = append(s.told, fx.Tell.Event)
	}
	if fx.Terminate != nil && s.terminate == nil && !s.mute {
		s.terminate = fx.Terminate
	}
	s.armed = s.armed || fx.Arm
	if fx.Abort && !s.over {
		s.hangUp(aRST)
	}
	s.quiet = s.quiet || fx.Quiet
	s.kick = s.kick || fx.Transmit
	s.collect()
}

// hangUp ends the connection: a reset destroys what is on its way.
func (s *modelSide) hangUp(how itemKind) {
	if s.gone {
		return
	}
	s.gone = true
	s.unsent = nil
	switch {
	case s.peer.gone:
	case how == aRST:
		s.peer.in = append(s.peer.in[:0], item{kind: aRST})
	case !s.finished:
		s.peer.in = append(s.peer.in, item{kind: aFIN})
	}
	s.finished = true
}

// collect takes the completions, and judges them.
func (s *modelSide) collect() {
	full := false
	for _, r := range s.m.Completed() {
		s.checkCompletion(r.Owner.(*modelRequest))
		if r.Silent() || s.places < 0 {
			continue
		}
		if full = s.places == 0; !full {
			s.places--
		}
	}
	if s.m.Drained() {
		s.checkDrained()
		s.drained++
	}
	if full && !s.cqFailed {
		s.overflow()
	}
}

// overflow is the failure of the completion queue.
func (s *modelSide) overflow() {
	s.cqFailed = true
	fx, idle := s.m.CQFailed(LocalFault(errModel))
	s.act(fx)
	if idle && s.over && s.m.End(errModel) {
		s.collect()
		s.flushReceives()
	}
}
