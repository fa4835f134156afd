// Package ack decides when the requests of a send queue complete for a program that
// expects InfiniBand's completions, and with which outcome.
//
// On iWARP, a Send or Write completes when the lower layer has taken it (RFC 5041 §5.4).
// On InfiniBand it completes when the peer's adapter has acknowledged it. A Machine makes
// the second out of the first with messages that every peer knows: an RDMA Read of no
// bytes is answered after all Sends and Writes before it have been placed and delivered
// (RFC 5040 §5.5). One such Read is outstanding at a time, or a second one if the queue is
// deep, and acknowledges all that was posted before it. A Read or an atomic of the program
// does the same for what is before it.
//
// A Machine has no lock, no clock and no I/O. Its owner posts what it says, and tells it
// what the RNIC has completed:
//
//	what has happened                     the owner calls
//	the program posts a request           Post, which numbers it
//	a signaled request is not covered     Wants reports true: Ask, and post the Read
//	a Read completes with success         Answered
//	a request fails or is flushed         Failed
//	the stream is over                    End, once all failures are known
//	the program polls                     Next, until there is nothing
//
// When a stream ends, the requests before the one that is to blame have succeeded, as a
// peer deals with messages in their order. Those behind it are flushed.
package ack
