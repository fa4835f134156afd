// Package rpcflow follows RPC-over-RDMA (RFC 8166) through captures.
//
// An [Analyzer] is a ULP of package dissect: given to dissect.AnalyzeULP, it reads the
// transport header of each Send, matches RDMA Reads and Writes to the chunks that calls
// have named, puts the RPC messages together again, and matches replies to calls. What it
// finds are events of the analysis: [Private], the private data of RFC 8797; [Transport],
// a transport header; [RPC], a call or a reply with what chunks have moved put back in its
// place. A [Summary] of each connection counts calls by procedure.
//
// It judges what both sides do: credits, the memory that is touched, what replies say of
// chunks, remote invalidation, XIDs, positions. What a capture lacks is no fault: from a
// hole on, what can't be known is not judged.
//
// # What is remembered
//
// Captures are not trusted. Nothing is kept because a header names a length: what is kept
// was in the capture, and how much that may be is bounded, for all connections together.
// Beyond that, RPC messages are shown without what was not kept.
//
// The file layer.go has the layers of RPC-over-RDMA for gopacket, beside those of package
// iwarp.
package rpcflow
