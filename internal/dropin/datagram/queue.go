package datagram

// A Reason says why a UDP datagram, or the message in it, is dropped.
type Reason uint8

// The reasons.
const (
	Taken       Reason = iota // it is not dropped
	Malformed                 // it is none of ours, or breaks the rules of the header
	NoQueuePair               // there is no queue pair of that number, or it takes nothing
	WrongKey                  // its Q_Key is another one, or the PSN is, which the peer was to send
	WrongSource               // it comes from where its source can't be
	Corrupt                   // its CRC is wrong
	NoReceive                 // the program has posted no receive
	Incomplete                // a fragment is missing
	TooMany                   // too many messages are incomplete
	NoAccess                  // it writes where it may not
	Reasons                   // how many there are
)

var reasons = [Reasons]string{
	Taken: "taken", Malformed: "not understood", NoQueuePair: "for no queue pair", WrongKey: "with a wrong Q_Key", WrongSource: "from a wrong source",
	Corrupt: "damaged", NoReceive: "without a receive", Incomplete: "incomplete", TooMany: "in too many pieces",
	NoAccess: "to memory that is not theirs",
}

// String says what the datagram was.
func (r Reason) String() string {
	if r < Reasons {
		return reasons[r]
	}
	return "unknown"
}

// maxOwed is how many peers at most are to hear of room.
const maxOwed = 64

// A Debt is an Ack that is due.
type Debt[A comparable] struct {
	To       A
	Sequence uint32
	Room     uint32 // receives
}

// A Queue is what the receiving side of a queue pair has to decide. A names peers: their
// addresses and ports. The zero Queue takes nothing.
type Queue[A comparable] struct {
	key      uint32
	open     bool
	receives int
	owed     []Debt[A]
	dropped  [Reasons]uint64
}

// Open makes the queue take messages with a Q_Key.
func (q *Queue[A]) Open(key uint32) { q.key, q.open = key, true }

// Close makes it take nothing. The receives are gone.
func (q *Queue[A]) Close() { q.open, q.receives, q.owed = false, 0, nil }

// Key returns the Q_Key.
func (q *Queue[A]) Key() uint32 { return q.key }

// Admit decides whether the datagram may be looked at. The Q_Key is what it checks
// before anything else.
func (q *Queue[A]) Admit(key uint32) Reason {
	switch {
	case !q.open:
		return NoQueuePair
	case key != q.key:
		return WrongKey
	}
	return Taken
}

// Post notes n more receives, and returns the Acks that are due now. The slice is valid
// until the next call.
func (q *Queue[A]) Post(n int) (due []Debt[A]) {
	q.receives += n
	if q.receives == 0 || len(q.owed) == 0 {
		return nil
	}
	due, q.owed = q.owed, q.owed[:0]
	for i := range due {
		due[i].Room = uint32(q.receives)
	}
	return due
}

// Share notes how many receives there are in a queue that others take from, too.
func (q *Queue[A]) Share(receives int) { q.receives = receives }

// Take takes a receive for a message, or reports that there is none.
func (q *Queue[A]) Take() Reason {
	if q.receives == 0 {
		return NoReceive
	}
	q.receives--
	return Taken
}

// Receives returns how many receives there are.
func (q *Queue[A]) Receives() int { return q.receives }

// Asked notes that a datagram has asked for an Ack, and returns how many receives there are. If there are none, Post returns
// another Ack later.
func (q *Queue[A]) Asked(by A, sequence uint32) (room uint32) {
	if q.receives > 0 {
		return uint32(q.receives)
	}
	for i := range q.owed {
		if q.owed[i].To == by {
			q.owed[i].Sequence = sequence
			return 0
		}
	}
	if len(q.owed) < maxOwed { // else it finds out by itself: see Flow.Wait
		q.owed = append(q.owed, Debt[A]{To: by, Sequence: sequence})
	}
	return 0
}

// Drop counts what is dropped.
func (q *Queue[A]) Drop(r Reason) {
	if r < Reasons {
		q.dropped[r]++
	}
}

// Dropped returns how many datagrams were dropped, by reason.
func (q *Queue[A]) Dropped() [Reasons]uint64 { return q.dropped }
