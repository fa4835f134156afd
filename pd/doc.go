// Package pd holds protection domains and the privileged resource manager.
//
// A protection domain (PD) ties streams to the memory that they may touch: a
// stream reaches an STag only if both belong to the same PD (RFC 5041 §8.2).
//
// The privileged resource manager (RFC 5042 §2.2, RFC 5041 §8.3.2, RFC 5040
// §8.1.2) is here a ledger of everything that a consumer or a peer can make a
// device hold. A [Manager] has one limit per [Resource] for the whole device
// and one per domain, so that no domain can take more than its share. Whoever
// is about to hold something calls Reserve first, and Release when it is gone;
// a refused reservation is a [*LimitError], which says which limit was hit. What
// can't be refused, as it is there already, is charged: see [Domain.Charge].
//
// Nothing in this package blocks. All of it is safe for concurrent use. It
// knows no wire format and no memory: see package stag for the latter.
package pd
