// Package wire has the codecs of Rx over an RNIC: the private data with which a connection
// is set up, and the messages on it. docs/rx-rdma.md is the specification; its sections are
// named where a rule is carried out.
//
// Numbers are big-endian. Nothing here allocates, and what is decoded aliases its input.
package wire
