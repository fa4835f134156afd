package catalogue

// rfc8797 holds the clauses of RFC 8797, Remote Direct Memory Access - Connection
// Manager (RDMA-CM) Private Data for RPC-over-RDMA Version 1.
var rfc8797 = []Clause{
	{"rfc8797-4-1", Must, Requester | Responder, "The settings of a connection hold for it alone: the next may have others", ""},
	{"rfc8797-4-2", Must, Requester | Responder, "The reserved bits are sent as zero", ""},
	{"rfc8797-4-3", Must, Requester | Responder, "The reserved bits are ignored when received", ""},
	{"rfc8797-4.1-1", Must, Responder, "A Send with Invalidate invalidates an STag of the call that has its XID, and of no other", ""},
	{"rfc8797-4.1-2", Must, Responder, "Unless both sides have set R, replies are Sends without Invalidate", ""},
	{"rfc8797-5.1-1", Must, Requester | Responder, "Without a private data message that conforms: as if R and both sizes were zero", ""},
	{"rfc8797-5.2-1", Must, Requester | Responder, "Private data without the Format Identifier are taken as none", ""},
}
