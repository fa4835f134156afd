package rdmap

import (
	"fmt"

	"urnic/ddp"
	"urnic/stag"
)

// An Operation is an RDMA operation as the ULP submits it (RFC 5040 §3.2, RFC
// 7306 §6.1). It must not change until it has completed: a Send, a Write or
// Immediate Data when the LLP has accepted the position passed to
// Submitter.Submitted, a Read or an atomic with Handler.Completed.
type Operation struct {
	// Op is the message that begins the operation: a Send message type,
	// OpWrite, OpReadRequest, OpImmediate, OpImmediateSE or OpAtomicRequest.
	Op Opcode

	// Length is the number of bytes to send or to read, and Payload the source
	// of those to send. Both are zero for Immediate Data and atomics.
	Length  uint64
	Payload ddp.Payload

	// STag and TO name the peer's memory for a Write, a Read or an atomic.
	STag stag.STag
	TO   uint64

	// SinkSTag and SinkTO name where the bytes of a Read go. This memory needs
	// only the right of local write: only the Response of this Read may access
	// it.
	SinkSTag stag.STag
	SinkTO   uint64

	Invalidate stag.STag     // of a Send with Invalidate
	Immediate  Immediate     // of Immediate Data
	Atomic     AtomicRequest // of an atomic: operation, data and masks
	Original   uint64        // result of an atomic: the original value at the target

	Context any // for the ULP

	received uint32 // bytes of the Read's Response that are in turn
}

// isRead reports whether o waits for a response of the peer.
func (o *Operation) isRead() bool { return o.Op == OpReadRequest || o.Op == OpAtomicRequest }

// check refuses what can't be sent as an operation of the ULP.
func (s *Stream) check(o *Operation) error {
	switch {
	case !o.Op.Valid() || o.Op == OpReadResponse || o.Op == OpAtomicResponse || o.Op == OpTerminate:
		return fmt.Errorf("rdmap: %v is no operation of the ULP's", o.Op)
	case o.Op == OpAtomicRequest && !o.Atomic.Op.Valid():
		return fmt.Errorf("rdmap: %v (RFC 7306 §5.2.1): ask for FetchAdd or CmpSwap", o.Atomic.Op)
	case o.isRead() && !s.MayRead():
		return fmt.Errorf("rdmap: %v beyond the %d that may be outstanding (RFC 5040 §6.1): ask MayRead first", o.Op, s.cfg.ORD)
	case o.Length > ddp.MaxMessage:
		return fmt.Errorf("rdmap: %v of %d octets: at most %d are allowed (RFC 5041 §5.2)", o.Op, o.Length, uint64(ddp.MaxMessage))
	}
	return nil
}

// atomicRequest returns the header of an atomic with the fields that are not
// used as RFC 7306 §5.2.1 has them.
func (o *Operation) atomicRequest(id uint32) AtomicRequest {
	r := o.Atomic
	r.Reserved, r.RequestID, r.STag, r.TO = 0, id, o.STag, o.TO
	if r.Op == AtomicFetchAdd {
		r.Compare, r.CompareMask = 0, ^uint64(0)
	}
	return r
}

// A Delivery is a message that is delivered to the ULP, into the oldest receive
// buffer.
type Delivery struct {
	Op          Opcode // a Send message type or Immediate Data
	Length      uint32 // bytes
	Invalidated stag.STag
}

// A Submitter gives a Stream the operations to send. Its methods are called by
// Transmit only. For each operation that Next has returned, it calls either
// Submitted or Failed, unless the stream is lost before its message is posted.
type Submitter interface {
	// Next returns the operation to begin now, or nil. A Read or an atomic may
	// be begun only if Stream.MayRead returns true.
	Next() *Operation
	// Submitted is called when all of the operation's message has been posted.
	// It will be transferred once the LLP has accepted position. Completed is
	// called for the same operation only later.
	Submitted(o *Operation, position uint64)
	// Failed is called when the message could not be sent because of the ULP:
	// its memory, or an invalid operation. The stream ends with a Terminate
	// instead of it.
	Failed(o *Operation, err error)
}

// A Handler is the receiving part of the ULP. Receive calls its methods; others
// may call Wake too.
type Handler interface {
	// Arrived is called for each segment that arrives, before any of it is validated
	// or placed, and again for one that was declined.
	Arrived()
	// ReceiveBuffer returns a receive buffer: ahead 0 is the oldest one in use, and so
	// on; nil if there is none, which ends the stream. Immediate Data goes into a
	// buffer of ImmediateLen bytes beside the one that it consumes. With ahead above
	// 0, a call must not consume anything (see ddp.Receiver). An error that wraps
	// ddp.ErrDeclined leaves the message with the LLP: Receive and TryReceive return
	// it.
	ReceiveBuffer(ahead uint32, immediate bool) (ddp.Buffer, error)
	// Deliver completes the oldest receive buffer.
	Deliver(d Delivery) error
	// Completed is called when the response of a Read or an atomic has arrived.
	Completed(o *Operation) error
	// Terminated is called with the peer's Terminate. The stream is over.
	Terminated(t Terminate)
	// Wake is called when Transmit has something to do.
	Wake()
}
