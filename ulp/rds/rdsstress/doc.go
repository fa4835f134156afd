// Package rdsstress is the load generator of RDS: it speaks the protocol of rds-stress of
// rds-tools 2.0.7, so that the original on Linux is its peer, as either side.
//
// Two processes each have a node of RDS. They run the same number of tasks. Task i has a
// socket at port P+1+i, and sends requests to all tasks of the other side, up to a number of
// them at a time to each; each request is answered by an acknowledgement. (The words are
// those of rds-stress: an acknowledgement is an ordinary message here.) So a run with t
// tasks has t·t pairs of sockets.
//
//	c, err := rdsstress.Dial(ctx, netip.Addr{}, server, rdsstress.Params{...}) // or Accept
//	node, err := rds.Open(ctx, ...)  // with the address c.Local
//	result, err := c.Run(ctx, node, rdsstress.Options{})
//
// # The control connection
//
// The active side opens a TCP connection to port P of the passive one, which takes one. On
// it there are, in this order:
//
//   - from the active side, the parameters: 59 bytes, or 77 with a version in front
//     ([Params]). They hold for both sides.
//   - from the active side, once its sockets are bound, one byte of any value: go.
//   - from the passive side, once its sockets are bound, one byte of any value. Both sides
//     send from now on. Over a transport that lets both sides dial, the passive side of this
//     package waits up to a second for the first message.
//   - from the active side, at the end, a byte or the end of the stream: the passive side stops.
//
// Parameters are big-endian:
//
//	 0 depth(4)            requests of a pair outstanding
//	 4 request size(4)     bytes
//	 8 ack size(4)         bytes
//	12 RDMA size(4)        bytes; 0: no RDMA
//	16 send address(4)     of the passive side
//	20 receive address(4)  of the active side
//	24 port(2)             P
//	26 tasks(2)
//	28 time(4)             seconds; 0: no end
//	32 flags(15)           bytes: see [Flag]
//	47 vectors(4)          of an RDMA operation
//	51 alignment(4)        of memory for RDMA
//	55 retries(4)          to connect
//
// The long form has 16 bytes of text in front, the version, and a type of service (1) and an asynchronous flag (1) behind.
// The original sends it only if one of these two is set. The first byte distinguishes the forms, since no depth has an
// ASCII digit there.
//
// # The messages
//
// Each request and acknowledgement begins with a header of 63 bytes ([Header]). If contents
// are to be verified, a pattern follows that is the same for all messages; else bytes of
// any value. Requests and acknowledgements of a pair share one sequence of numbers, from 0. A
// request has the index of its slot, and slots are used in turn; an acknowledgement has that
// of its request. So the receiver knows what the next message of each kind must say, and
// notices what is lost, doubled, reordered or damaged.
//
// # The end
//
// The active side sends no more requests, waits for the acknowledgements of those that it
// has sent, and only then ends the control connection's stream, in its own direction. The
// passive side of this package then does the same, while the active one still answers. The original ends at once, on either
// side, and leaves requests unanswered.
package rdsstress
