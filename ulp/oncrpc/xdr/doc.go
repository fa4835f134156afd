// Package xdr reads and writes the External Data Representation of RFC 4506.
//
// There is no reflection and no compiler: a type is encoded by a few lines that name
// its fields in order, and decoded by as many.
//
//	e.Uint32(a.UID)
//	e.String(a.Name)
//
//	a.UID = d.Uint32()
//	a.Name = d.String(255)
//	return d.Err()
//
// Both sides know where large data lies. An Encoder takes a Bulk by reference, and
// leaves it to the transport whether it is copied into the stream, written beside it,
// or moved by RDMA; a Decoder finds what a transport has moved by its position in
// the stream (RFC 8166 §3.4), and takes it from there.
//
// Each length that a peer names has a bound, which the caller gives. The first error
// stays: all that follows reads as zero, so a caller has to check the error only
// once.
package xdr
