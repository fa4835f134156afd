package rnic

import (
	"fmt"

	"urnic/stag"
)

// Flags modify a work request.
type Flags uint8

// The flags.
const (
	// FlagUnsignaled requests no completion, unless there is an error.
	FlagUnsignaled Flags = 1 << iota
	// FlagSolicited raises a solicited event at the peer: Send, Send with
	// Invalidate or Immediate, Immediate Data, Write with Immediate.
	FlagSolicited
	// FlagInline copies the data from Inline when the request is posted,
	// instead of sending the SGL's memory later.
	FlagInline
	// FlagReadFence holds the request back until all Reads and atomics before
	// it have completed (RFC 5040 §5.5 rule 12).
	FlagReadFence
	// FlagLocalFence holds the request back until everything before it has
	// completed.
	FlagLocalFence

	allFlags = FlagUnsignaled | FlagSolicited | FlagInline | FlagReadFence | FlagLocalFence
)

// An Atomic holds the operands of FetchAdd and CmpSwap. A zero mask stands for
// all 64 bits in either operation. For FetchAdd, RFC 7306 §5.1.1 says so; for
// CmpSwap, comparing or swapping nothing would be useless. To do that
// nevertheless, use Masked.
type Atomic struct {
	Add     uint64 // FetchAdd
	AddMask uint64 // the top bit of each field is set; 0: one field of 64 bits

	Compare, Swap         uint64 // CmpSwap
	CompareMask, SwapMask uint64
	Masked                bool // use the masks of CmpSwap as they are, even if they are zero
}

// A SendWR is a work request for the send queue. The RNIC looks only at the
// fields that its Op uses. The zero Flags request a completion.
type SendWR struct {
	ID    uint64 // comes back in the completion
	Op    Opcode
	Flags Flags

	// SGL is the data of Sends and Writes, gathered in order. For Reads it is the sink of the data, or, with
	// QPAttr.SplitReads, several sinks. For atomics it is where the original value goes, 8 bytes in the byte order
	// of this machine; it may be empty, as the completion has the value too.
	SGL    []SGE
	Inline []byte // the data instead, with FlagInline

	Remote     Remote       // Writes, Reads, atomics
	Invalidate stag.STag    // OpSendInvalidate: the peer's; OpLocalInvalidate: ours
	Immediate  [8]byte      // OpImmediate, OpWriteImmediate
	Atomic     Atomic       // OpFetchAdd, OpCmpSwap
	Register   FastRegister // OpFastRegister
	Bind       Bind         // OpBindWindow
}

// A RecvWR is a work request for a receive queue: one buffer, scattered over
// its SGL. A buffer of no bytes can receive Immediate Data and empty Sends.
type RecvWR struct {
	ID  uint64
	SGL []SGE
}

// A WRError reports which work request of a list was refused. Those before it
// are posted; it and those behind it are not.
type WRError struct {
	Index int    // in the list
	ID    uint64 // of the request
	Op    Opcode // of the request; OpRecv for a receive
	Err   error  // the rule that it breaks
}

// Error names the request and the rule.
func (e *WRError) Error() string {
	return fmt.Sprintf("work request %d (ID %d): %v: %v", e.Index, e.ID, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *WRError) Unwrap() error { return e.Err }
