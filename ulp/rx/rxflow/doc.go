// Package rxflow follows Rx through captures: over UDP, and over an RNIC.
//
// An [Analyzer] is a ULP of package dissect. It finds Rx at the ports of AFS, at those that
// it is given, and at any port by a packet whose header and body fit together in all that
// can be checked. From then on, all datagrams from and to the server's port are Rx.
//
// Each connection of Rx is a connection of the analysis; so is what two endpoints ask each
// other by debug and version packets. What happens are events: a [Packet] for each packet,
// those within jumbograms too, and a [Call] when a call has ended or another one has taken
// its channel. A [Summary] counts what a connection carried.
//
// Over an RNIC, a connection is one of iWARP whose private data are those of Rx. Its events are
// [Private], [Refusal], [Message] and [Call].
//
// The analyzer judges what both sides send. What a capture lacks is no fault: serial numbers
// tell whether it lacks anything, and a side is blamed only once it is sure that the packets
// that could excuse it were never sent, and are not out of order in the capture. Where OpenAFS or Linux differ from the draft, what
// they do is no fault either. A datagram whose UDP checksum is wrong has never reached its
// receiver, and is noted only.
//
// # Protected packets
//
// With the keys of a service, given as a [Security], the packets of a security class are
// opened: opcodes, true lengths, the caller's name, and whether checksums are right. [Rxkad]
// is the one for rxkad.
//
// # What is remembered
//
// Of connections, endpoints and packets, as much as the constants of this package say. Of
// data, nothing is kept but hashes, the beginning of each request, and packets that came
// before the response that opens them.
package rxflow
