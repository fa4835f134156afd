package catalogue

// noReverse is why what a reverse-direction requester does can't be tested.
const noReverse = "the upper layers that the suite speaks, NFS version 3 and MOUNT, make no calls in the reverse direction"

// rfc8167 holds the clauses of RFC 8167, Bidirectional Remote Procedure Call on
// RPC-over-RDMA Transports. In the reverse direction the server is the Requester, and
// the client, which has opened the connection, the Responder.
var rfc8167 = []Clause{
	{"rfc8167-4.1-1", Must, Requester | Responder, "The credit value of a message whose direction can't be told is ignored", ""},
	{"rfc8167-5.1-1", Must, Requester, "A reverse call has the version of the connection's forward calls", noReverse},
	{"rfc8167-5.1-2", Must, Requester, "A reverse call begins with the XID of its header", noReverse},
	{"rfc8167-5.1-3", Must, Requester, "The message type of a reverse call is CALL", noReverse},
	{"rfc8167-5.2-1", Must, Responder, "A reverse reply has the version of its call", ""},
	{"rfc8167-5.2-2", Must, Responder, "A reverse reply begins with the XID of its header", ""},
	{"rfc8167-5.2-3", Must, Responder, "The message type of a reverse reply is REPLY", ""},
	{"rfc8167-5.3-1", Must, Responder, "Who takes no chunks in the reverse direction answers a reverse call that has some with ERR_CHUNK", ""},
	{"rfc8167-5.4-1", Should, Requester, "A client keeps its connection as long as its server may have reverse calls for it", noReverse},
	{"rfc8167-6-1", MustNot, Local, "No reverse calls are made before the peer has said that it takes them", ""},
}
