// Package rdmap implements RDMAP, the Remote Direct Memory Access Protocol (RFC
// 5040), with the atomic operations and Immediate Data of RFC 7306.
//
// A [Stream] is one end of an RDMAP stream. Below it is a [ddp.LLP], which moves
// DDP segments; above it is its owner, usually a queue pair, which it knows as a
// [Submitter] and a [Handler]. It looks STags up in the [stag.Table] of its
// [Config]. It has no goroutine, no clock and no socket of its own:
//
//	Submitter                              Handler
//	   │ Next, Submitted, Failed              ▲ ReceiveBuffer, Deliver,
//	   ▼                                      │ Completed, Terminated
//	Transmit ◄── Fail: a Terminate         Receive ──► stag.Table
//	   │                                      ▲
//	   └─ ddp.Source ───► ddp.LLP ───► ddp.Sink
//
// The owner calls Transmit, and the LLP's Flush, whenever there may be something
// to send, and Receive in a loop; the two may run at the same time. It makes an
// [Operation] of each request of its own and hands it over in Next. The stream
// answers the peer's Reads and atomics by itself.
//
// The messages, with how DDP carries them (Figures 4 and 5 of RFC 5040, Figures
// 2 and 3 of RFC 7306). [Opcode] names them; the first octet that DDP reserves
// for its ULP is a [Control]:
//
//	opcode  message                      DDP       header, then ULP data
//	     0  RDMA Write                   tagged    data
//	     1  RDMA Read Request            queue 1   ReadRequest (28 octets)
//	     2  RDMA Read Response           tagged    data
//	     3  Send                         queue 0   data
//	     4  Send with Invalidate         queue 0   data
//	     5  Send with SE                 queue 0   data
//	     6  Send with SE and Invalidate  queue 0   data
//	     7  Terminate                    queue 2   Terminate (4 to 52 octets)
//	     8  Immediate Data               queue 0   Immediate (8 octets)
//	     9  Immediate Data with SE       queue 0   Immediate (8 octets)
//	    10  Atomic Request               queue 1   AtomicRequest (52 octets)
//	    11  Atomic Response              queue 3   AtomicResponse (12 octets)
//
// # Order
//
// Operations go out in the order of Next, responses in the order of the requests;
// the two take turns. Deliver is called in the order in which the peer sent, and
// what the peer wrote before a Send is there when the Send is delivered. A Read
// or an atomic starts when its request is delivered, so that it sees what was
// sent before it; a Write or Send after it may overtake its response, unless the
// owner waits (a fence). Completed is called in the order of the Reads and
// atomics. When a Write or a Send is complete is for the owner to tell from what
// the LLP has accepted.
//
// At most ORD Reads and atomics wait for their responses: MayRead says whether
// another one can begin. As many as IRD are taken from the peer; one more ends
// the stream. The place of a request is free before its response is flushed.
//
// # Errors
//
// An error ends the stream. Receive returns an [*Error], with the [TermCode] of
// RFC 5040 Figure 9 and the clause; the owner passes it to Fail, or an error of
// its own, and Transmit sends a Terminate for the first one: after the message
// that is on its way, before anything else. Then [Stream.Ended] holds: nothing
// more is sent, and the owner closes the stream, gracefully so that the Terminate
// arrives. Operations still in its hands, and Reads and atomics without response,
// are the owner's to flush. A [Terminate] of the peer reaches the Handler; none
// is sent back, and nothing is taken from the peer behind it.
//
// The peer is not trusted. Lengths, STags, offsets, sequence and state are checked
// before anything is placed; a Read Response is placed only where an outstanding
// Read wants it; all that a stream holds is bounded by IRD and ORD.
//
// # What is not supported
//
// RDMAP version 0 (RDMA Consortium) is understood, but never sent. Immediate Data
// that comes in several DDP segments is refused. A ready-to-receive indication
// (RFC 6581) needs an LLP that keeps the order of segments, as MPA does. Fencing,
// completion queues and the life of the connection are those of package rnic.
package rdmap
