package life

import (
	"urnic/ddp"
	"urnic/internal/door/policy"
	"urnic/internal/ring"
	"urnic/rdmap"
)

// A RecvQueue holds the receives that the messages of a stream go into, the oldest
// first: those that were posted, or, if they are shared, those that were taken from an SRQ
// for messages that have begun.
//
// It is not safe for concurrent use.
type RecvQueue struct {
	ring.Ring[*Receive]
	checksAtTurn, holdsSlots bool // the answers of a policy, see Follow
}

// Follow asks a policy in what the queue departs from the strict rules. It is called before
// anything is posted, or not at all.
func (q *RecvQueue) Follow(p policy.Policy) {
	q.checksAtTurn, q.holdsSlots = p.Allows(policy.CheckAtTurn), p.Allows(policy.HoldReceives)
}

// Room returns how many receives the queue still takes, if the slots of held ones are taken
// that have completed, see HoldsSlots.
func (q *RecvQueue) Room(held int) int { return q.Limit() - q.Len() - held }

// HoldsSlots reports whether receives that have completed hold their slots until their
// completions are polled.
func (q *RecvQueue) HoldsSlots() bool { return q.holdsSlots }

// ChecksAtTurn reports whether the memory of receives is not checked when they are posted.
func (q *RecvQueue) ChecksAtTurn() bool { return q.checksAtTurn }

// A Receive is a receive in a queue, as far as the queue has to know it.
type Receive struct {
	Owner any

	Status Status // of the completion, if Cause is set
	Cause  error  // why it could not take a message
}

// Refuse notes that the receive can't take the message in turn. The stream ends for that.
func (r *Receive) Refuse(status Status, cause error) { r.Status, r.Cause = status, cause }

// Blame gives the receive a status of its own, if e says that a message was longer than
// it is.
func (r *Receive) Blame(e *rdmap.Error) {
	if e.Code != rdmap.TermCode(ddp.CodeMessageTooLong.TermWord()) {
		return
	}
	seg, _ := ddp.ParseSegment(e.Header) // an untagged one, as only its message can be too long
	op := rdmap.Control(seg.Untagged.RsvdULP[0]).Opcode()
	if seg.Untagged.QN != rdmap.QueueSend || op == rdmap.OpImmediate || op == rdmap.OpImmediateSE {
		return
	}
	r.Refuse(LocalLength, e)
}

// Flush takes the oldest receive out of the queue, with the status that it completes
// with; nil if there is none.
func (q *RecvQueue) Flush() *Receive {
	if q.Len() == 0 {
		return nil
	}
	r := q.Pop()
	r.Flush()
	return r
}

// Flush gives a receive that no message has completed the status that it completes with.
func (r *Receive) Flush() {
	if r.Cause == nil {
		r.Status = Flushed
	}
}
