// Package pd holds protection domains and the privileged resource manager.
//
// A protection domain (PD) groups streams and the memory that they may access:
// a stream can use an STag only if both belong to the same PD (RFC 5041 §8.2).
//
// The privileged resource manager (RFC 5042 §2.2, RFC 5041 §8.3.2, RFC 5040
// §8.1.2) is here a ledger of everything that a program or a peer can make a
// device hold. A [Manager] has one limit per [Resource] for the whole device
// and one per domain, so that no domain can use more than its share. Code calls
// Reserve before it holds something, and Release when that is gone. A refused
// reservation is a [*LimitError], which names the limit. What can't be refused,
// as it already exists, is charged: see [Domain.Charge].
//
// Nothing in this package blocks. All of it is safe for concurrent use. It
// knows no wire format and no memory; memory is in package stag.
package pd
