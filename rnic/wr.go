package rnic

import (
	"fmt"

	"urnic/rdmap"
	"urnic/stag"
)

// An Opcode says what a work request does, or what a completion is of.
type Opcode uint8

// The operations of the send queue, and what a receive can complete as.
const (
	OpSend            Opcode = iota + 1 // Send; see FlagSolicited
	OpSendInvalidate                    // Send with Invalidate
	OpWrite                             // RDMA Write
	OpWriteImmediate                    // RDMA Write, then Immediate Data
	OpRead                              // RDMA Read
	OpReadInvalidate                    // RDMA Read, then local invalidation of the sink's STag
	OpImmediate                         // Immediate Data (RFC 7306 §6)
	OpSendImmediate                     // Send with immediate data; see QPAttr.PairImmediate
	OpFetchAdd                          // atomic FetchAdd (RFC 7306 §5.1.1)
	OpCmpSwap                           // atomic CmpSwap (RFC 7306 §5.1.2)
	OpLocalInvalidate                   // invalidate an STag of this side
	OpFastRegister                      // make an allocated region valid
	OpBindWindow                        // bind a memory window
	OpRecv                              // a receive: some Send arrived
	OpRecvImmediate                     // a receive: Immediate Data arrived
)

var opcodeNames = [...]string{
	OpSend: "Send", OpSendInvalidate: "Send with Invalidate", OpWrite: "RDMA Write", OpWriteImmediate: "RDMA Write with Immediate",
	OpRead: "RDMA Read", OpReadInvalidate: "RDMA Read with Local Invalidate", OpImmediate: "Immediate Data", OpSendImmediate: "Send with Immediate",
	OpFetchAdd: "FetchAdd", OpCmpSwap: "CmpSwap", OpLocalInvalidate: "Local Invalidate",
	OpFastRegister: "Fast Register", OpBindWindow: "Bind Window", OpRecv: "Receive", OpRecvImmediate: "Receive of Immediate Data",
}

// String names the operation.
func (o Opcode) String() string {
	if int(o) < len(opcodeNames) && o != 0 {
		return opcodeNames[o]
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// postable reports whether o may stand in a SendWR.
func (o Opcode) postable() bool { return o >= OpSend && o <= OpBindWindow }

// isRead reports whether o waits for a response of the peer.
func (o Opcode) isRead() bool {
	return o == OpRead || o == OpReadInvalidate || o == OpFetchAdd || o == OpCmpSwap
}

// isLocal reports whether o sends nothing.
func (o Opcode) isLocal() bool {
	return o == OpLocalInvalidate || o == OpFastRegister || o == OpBindWindow
}

func (o Opcode) isAtomic() bool { return o == OpFetchAdd || o == OpCmpSwap }

// sendsData reports whether the SGL of o is sent.
func (o Opcode) sendsData() bool {
	return o == OpSend || o == OpSendInvalidate || o == OpSendImmediate || o == OpWrite || o == OpWriteImmediate
}

// isPair reports whether o takes two messages.
func (o Opcode) isPair() bool { return o == OpWriteImmediate || o == OpSendImmediate }

// mayBeSolicited reports whether o can raise a solicited event.
func (o Opcode) mayBeSolicited() bool {
	return o == OpSend || o == OpSendInvalidate || o == OpSendImmediate || o == OpImmediate || o == OpWriteImmediate
}

// Flags modify a work request.
type Flags uint8

// The flags.
const (
	// FlagUnsignaled asks for no completion, unless there is an error.
	FlagUnsignaled Flags = 1 << iota
	// FlagSolicited raises a solicited event at the peer: Send, Send with
	// Invalidate or Immediate, Immediate Data, Write with Immediate.
	FlagSolicited
	// FlagInline copies the data out of Inline when the request is posted,
	// instead of sending what the SGL names later.
	FlagInline
	// FlagReadFence holds the request back until all Reads and atomics before
	// it have completed (RFC 5040 §5.5 rule 12).
	FlagReadFence
	// FlagLocalFence holds the request back until everything before it has
	// completed.
	FlagLocalFence

	allFlags = FlagUnsignaled | FlagSolicited | FlagInline | FlagReadFence | FlagLocalFence
)

// An SGE names a piece of registered memory of this side.
type SGE struct {
	Addr   uint64    // TO of the first octet: an address, or from 0 in a zero-based region
	Length uint32    // octets
	LKey   stag.STag // of a memory region
}

// A Remote names memory of the peer, as the peer has advertised it.
type Remote struct {
	STag stag.STag
	TO   uint64
}

// An Atomic holds the operands of FetchAdd and CmpSwap. A zero mask stands for
// the whole 64 bits in either operation: of FetchAdd because RFC 7306 §5.1.1
// says so, of CmpSwap because comparing or swapping nothing would be idle. To do
// that all the same, use Masked.
type Atomic struct {
	Add     uint64 // FetchAdd
	AddMask uint64 // the top bit of each field is set; 0: one field of 64 bits

	Compare, Swap         uint64 // CmpSwap
	CompareMask, SwapMask uint64
	Masked                bool // take the masks of CmpSwap as they are, even if they are zero
}

// A SendWR is a work request for the send queue. Only the fields that its Op
// uses are looked at. The zero Flags ask for a completion.
type SendWR struct {
	ID    uint64 // comes back in the completion
	Op    Opcode
	Flags Flags

	// SGL is the data of Sends and Writes, gathered in order. For Reads it is
	// the one place where the data goes, or with QPAttr.SplitReads several, and for atomics that where the original
	// value goes, 8 octets in the byte order of this machine; it may be empty
	// for an atomic, as the completion has the value too.
	SGL    []SGE
	Inline []byte // the data instead, with FlagInline

	Remote     Remote       // Writes, Reads, atomics
	Invalidate stag.STag    // OpSendInvalidate: the peer's; OpLocalInvalidate: ours
	Immediate  [8]byte      // OpImmediate, OpWriteImmediate; of OpSendImmediate the first four octets
	Atomic     Atomic       // OpFetchAdd, OpCmpSwap
	Register   FastRegister // OpFastRegister
	Bind       Bind         // OpBindWindow
}

// A RecvWR is a work request for a receive queue: one buffer, scattered over its
// SGL. A buffer of no octets can take Immediate Data and empty Sends.
type RecvWR struct {
	ID  uint64
	SGL []SGE
}

// A Status says how a work request has ended.
type Status uint8

// The statuses. Only one work request of a queue ends with something else than
// success or flushed.
const (
	StatusSuccess           Status = iota
	StatusFlushed                  // the stream had ended before
	StatusLocalProtection          // memory of this side could not be used
	StatusBadSTag                  // local invalidation: no such valid STag, or not ours
	StatusInvalidateFailed         // local invalidation: it is in use
	StatusRegisterFailed           // fast registration was refused
	StatusBindFailed               // the window could not be bound
	StatusNoReadResources          // a Read or atomic, but ORD is 0
	StatusRemoteTermination        // the peer ended the stream because of this request
	StatusLocalLength              // a receive: the message was longer
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
	Op     Opcode // of a send queue's request: its own; OpRecv or OpRecvImmediate
	QPN    uint32 // number of the queue pair

	// The rest is valid on success.

	ByteLen     uint32    // octets received, read or sent
	Solicited   bool      // a receive: the peer asked for a solicited event
	Invalidated stag.STag // a receive: the STag of this side that the peer has invalidated, or 0
	Immediate   [8]byte   // OpRecvImmediate; OpRecv if it is Paired
	Paired      bool      // OpRecv: the peer has sent immediate data with it, see QPAttr.PairImmediate
	Original    uint64    // FetchAdd, CmpSwap: what the target held

	Cause error // why Status is neither success nor flushed, for people
}

// Err returns nil on success and otherwise a *CompletionError.
func (w *WC) Err() error {
	if w.Status == StatusSuccess {
		return nil
	}
	return &CompletionError{WC: *w}
}

// recvOp returns what a message completes a receive as.
func recvOp(op rdmap.Opcode) Opcode {
	if op == rdmap.OpImmediate || op == rdmap.OpImmediateSE {
		return OpRecvImmediate
	}
	return OpRecv
}
