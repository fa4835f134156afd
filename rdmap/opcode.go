package rdmap

import "fmt"

// An Opcode is the RDMA Message Opcode, the low four bits of the RDMAP Control
// Field (RFC 5040 §4.1, RFC 7306 §4.1).
type Opcode uint8

// The RDMA Messages (RFC 5040 Figure 4, RFC 7306 Figure 2).
const (
	OpWrite               Opcode = 0
	OpReadRequest         Opcode = 1
	OpReadResponse        Opcode = 2
	OpSend                Opcode = 3
	OpSendInvalidate      Opcode = 4
	OpSendSE              Opcode = 5
	OpSendSEInvalidate    Opcode = 6
	OpTerminate           Opcode = 7
	OpImmediate           Opcode = 8
	OpImmediateSE         Opcode = 9
	OpAtomicRequest       Opcode = 10
	OpAtomicResponse      Opcode = 11
	numOpcodes                   = 12
	opcodeMask            byte   = 0x0F
	versionShift                 = 6
	controlReservedMask   byte   = 0x30
	versionRDMAConsortium uint8  = 0
)

// Version is the RDMAP version of RFC 5040. Version 0, of the RDMA Consortium,
// is as valid on receipt (RFC 5040 §4.1).
const Version uint8 = 1

// The queues of untagged buffers (RFC 5040 §3.1, RFC 7306 §10.2).
const (
	QueueSend           uint32 = 0 // Send message types and Immediate Data
	QueueReadRequest    uint32 = 1 // RDMA Read Requests and Atomic Requests
	QueueTerminate      uint32 = 2
	QueueAtomicResponse uint32 = 3
	NumQueues                  = 4
)

// A messageType says how DDP carries one kind of RDMA Message (RFC 5040
// Figures 4 and 5, RFC 7306 Figures 2 and 3).
type messageType struct {
	name      string // the RFC's name
	short     string // the name in JSON and statistics
	tagged    bool
	queue     uint32 // of untagged messages
	headerLen int    // bytes of RDMAP header, 0 for none; Terminate's varies
}

var messageTypes = [numOpcodes]messageType{
	OpWrite:            {name: "RDMA Write", short: "rdma-write", tagged: true},
	OpReadRequest:      {name: "RDMA Read Request", short: "read-request", queue: QueueReadRequest, headerLen: ReadRequestLen},
	OpReadResponse:     {name: "RDMA Read Response", short: "read-response", tagged: true},
	OpSend:             {name: "Send", short: "send", queue: QueueSend},
	OpSendInvalidate:   {name: "Send with Invalidate", short: "send-invalidate", queue: QueueSend},
	OpSendSE:           {name: "Send with SE", short: "send-se", queue: QueueSend},
	OpSendSEInvalidate: {name: "Send with SE and Invalidate", short: "send-se-invalidate", queue: QueueSend},
	OpTerminate:        {name: "Terminate", short: "terminate", queue: QueueTerminate},
	OpImmediate:        {name: "Immediate Data", short: "immediate", queue: QueueSend, headerLen: ImmediateLen},
	OpImmediateSE:      {name: "Immediate Data with SE", short: "immediate-se", queue: QueueSend, headerLen: ImmediateLen},
	OpAtomicRequest:    {name: "Atomic Request", short: "atomic-request", queue: QueueReadRequest, headerLen: AtomicRequestLen},
	OpAtomicResponse:   {name: "Atomic Response", short: "atomic-response", queue: QueueAtomicResponse, headerLen: AtomicResponseLen},
}

// Valid reports whether o is assigned.
func (o Opcode) Valid() bool { return o < numOpcodes }

// String returns the RFC's name of the message.
func (o Opcode) String() string {
	if o.Valid() {
		return messageTypes[o].name
	}
	return fmt.Sprintf("reserved opcode %d", uint8(o))
}

// Name returns the name of the message in statistics: "rdma-write",
// "read-request" and so on.
func (o Opcode) Name() string {
	if o.Valid() {
		return messageTypes[o].short
	}
	return fmt.Sprintf("opcode-%d", uint8(o))
}

// Tagged reports whether the message targets a Tagged Buffer.
func (o Opcode) Tagged() bool { return o.Valid() && messageTypes[o].tagged }

// Queue returns the queue number of an untagged message.
func (o Opcode) Queue() uint32 {
	if o.Valid() {
		return messageTypes[o].queue
	}
	return 0
}

// Solicited reports whether the message asks for a solicited event.
func (o Opcode) Solicited() bool {
	return o == OpSendSE || o == OpSendSEInvalidate || o == OpImmediateSE
}

// Invalidates reports whether the message carries an STag to invalidate.
func (o Opcode) Invalidates() bool { return o == OpSendInvalidate || o == OpSendSEInvalidate }

// A Control is the RDMAP Control Field, the first byte of DDP's RsvdULP (RFC
// 5040 §4.1).
type Control uint8

// NewControl returns the control field of a message that this implementation
// sends.
func NewControl(o Opcode) Control {
	return Control(Version<<versionShift | uint8(o)&opcodeMask) // RV(2)=01 Rsv(2)=0 Opcode(4)
}

// Version returns RV.
func (c Control) Version() uint8 { return uint8(c) >> versionShift }

// Reserved returns the reserved bits, which a receiver ignores.
func (c Control) Reserved() uint8 { return uint8(c) & controlReservedMask >> 4 }

// Opcode returns the message's opcode.
func (c Control) Opcode() Opcode { return Opcode(uint8(c) & opcodeMask) }

// ValidVersion reports whether the RDMAP version is one of the two valid ones
// (RFC 5040 §4.1).
func (c Control) ValidVersion() bool {
	return c.Version() == Version || c.Version() == versionRDMAConsortium
}
