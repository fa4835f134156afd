// Package wire encodes and decodes what RDS 3.1 puts on the wire: the header that precedes
// each message or fragment, its extension headers, congestion maps, and the private data
// with which a connection over RDMA is set up.
//
// The document is the RDS Wire Specification 3.1. Where it is silent or wrong, the functions
// here do what Linux does, and say so: the header has 48 bytes, and not 40; RDS over TCP
// leaves the checksum zero.
//
// All functions are pure. They allocate nothing, apart from errors, and check a length
// before they use it. docs/rds.md shows the layouts as tables.
package wire
