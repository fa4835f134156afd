package rnic

import (
	"fmt"

	"urnic/rdmap"
)

// An Opcode is the operation of a work request or of its completion.
type Opcode uint8

// The operations of the send queue, and those that a receive can complete as.
const (
	OpSend            Opcode = iota + 1 // Send; see FlagSolicited
	OpSendInvalidate                    // Send with Invalidate
	OpWrite                             // RDMA Write
	OpWriteImmediate                    // RDMA Write, then Immediate Data
	OpRead                              // RDMA Read
	OpReadInvalidate                    // RDMA Read, then local invalidation of the sink's STag
	OpImmediate                         // Immediate Data (RFC 7306 §6)
	opSendImmediate                     // Send with immediate data, see door.OpSendImmediate
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
	OpRead: "RDMA Read", OpReadInvalidate: "RDMA Read with Local Invalidate", OpImmediate: "Immediate Data", opSendImmediate: "Send with Immediate",
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
	return o == OpSend || o == OpSendInvalidate || o == opSendImmediate || o == OpWrite || o == OpWriteImmediate
}

// mayBeSolicited reports whether o can raise a solicited event.
func (o Opcode) mayBeSolicited() bool {
	return o == OpSend || o == OpSendInvalidate || o == opSendImmediate || o == OpImmediate || o == OpWriteImmediate
}

// recvOp returns what a message completes a receive as.
func recvOp(op rdmap.Opcode) Opcode {
	if op == rdmap.OpImmediate || op == rdmap.OpImmediateSE {
		return OpRecvImmediate
	}
	return OpRecv
}
