// Package conformance says of an iWARP endpoint whether it keeps the RFCs, and
// which clause it breaks.
//
// It speaks to the endpoint, the target, over TCP, misbehaves on purpose, and
// judges every octet that comes back. A [Case] is one experiment. It is named by
// the clause that it tests, one of package catalogue, and ends in a [Verdict].
// A [Runner] runs cases against a target and makes a [Report] of them.
package conformance
