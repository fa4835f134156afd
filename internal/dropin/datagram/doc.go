// Package datagram has what queue pairs without a connection need: unreliable
// datagrams (UD), and unreliable connections (UC), over UDP (docs/datagrams.md).
//
// It is a codec and a machine, without I/O and without a clock. A [Header] precedes
// what each UDP datagram carries. A [Queue] is the receiving side of a UD queue pair:
// it checks the Q_Key before anything else, and knows how many receives there are. A
// [Stream] is that of a UC queue pair. A [Reassembly] joins the fragments of all
// messages of a process, in bounded memory. A [Flow] is how much may be in flight to
// one process, so that a receiver which is slower than its peer does not lose what it
// has receives for.
//
// A [Service] is how rdma_cm finds a queue pair.
//
// Package carrier has the sockets; package datagramflow follows datagrams in captures.
package datagram
