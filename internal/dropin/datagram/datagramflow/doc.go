// Package datagramflow follows the datagrams of the drop-in library's UD and UC queue pairs in captures
// (docs/datagrams.md), for package dissect.
//
// An [Analyzer] finds them on any port by the magic of their header. What two processes send each other, or a
// process sends to a multicast group, is a connection of the analysis. So is the exchange that finds a queue pair by rdma_cm.
// Each datagram is an event, a [Message]; a [Summary] sums up.
//
// A datagram whose header or CRC is wrong, which comes from a port that its source can't have, with a Q_Key that
// rdma_cm has told otherwise, or that acknowledges what was not sent, is a violation. What the network may do, to
// lose datagrams or to bring them in another order, is none: it is counted.
package datagramflow
