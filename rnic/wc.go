package rnic

import (
	"fmt"

	"urnic/rnic/internal/life"
	"urnic/stag"
)

// A Status is the result of a work request.
type Status uint8

// The statuses. At most one work request of a queue ends with a status other
// than success and flushed.
const (
	StatusSuccess           = Status(life.Success)
	StatusFlushed           = Status(life.Flushed)           // the stream had ended before
	StatusLocalProtection   = Status(life.LocalProtection)   // memory of this side could not be used
	StatusBadSTag           = Status(life.BadSTag)           // local invalidation: no such valid STag, or not ours
	StatusInvalidateFailed  = Status(life.InvalidateFailed)  // local invalidation: it is in use
	StatusRegisterFailed    = Status(life.RegisterFailed)    // fast registration was refused
	StatusBindFailed        = Status(life.BindFailed)        // the window could not be bound
	StatusNoReadResources   = Status(life.NoReadResources)   // a Read or atomic, but ORD is 0
	StatusRemoteTermination = Status(life.RemoteTermination) // the peer ended the stream because of this request
	StatusLocalLength       = Status(life.LocalLength)       // a receive: the message was longer
)

var statusNames = [...]string{
	StatusSuccess: "success", StatusFlushed: "flushed", StatusLocalProtection: "local protection error",
	StatusBadSTag: "invalid STag", StatusInvalidateFailed: "STag cannot be invalidated",
	StatusRegisterFailed: "fast registration refused", StatusBindFailed: "bind refused",
	StatusNoReadResources: "zero RDMA Read resources", StatusRemoteTermination: "remote termination",
	StatusLocalLength: "message too long for the receive",
}

// String names the status.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// A WC is a work completion.
type WC struct {
	ID     uint64
	Status Status
	Op     Opcode // of a send queue's request: its own; of a receive: OpRecv or OpRecvImmediate
	QPN    uint32 // number of the queue pair

	// The rest is valid on success.

	ByteLen     uint32    // bytes received, read or sent
	Solicited   bool      // a receive: the peer asked for a solicited event
	Invalidated stag.STag // a receive: the STag of this side that the peer has invalidated, or 0
	Immediate   [8]byte   // OpRecvImmediate
	Original    uint64    // FetchAdd, CmpSwap: the original value at the target

	Cause error // human-readable: why Status is neither success nor flushed

	paired bool // OpRecv: Immediate has the data sent with it, see policy.PairImmediate
}
