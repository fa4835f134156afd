// Package perf measures how fast RDMA goes between two programs, and how that
// compares with bare TCP between the same two.
//
// A [Server] does what clients ask for; [Run] is the client, which measures. The
// two agree over a control connection (control.go, channel.go): RDMA Sends of one
// JSON message each, to which the server answers. The connections for data are
// made beside it, and name their session in their private data (hello.go).
//
//	client                                 server
//	  setup: operation, size, ...      ──►
//	                                   ◄── ready: memory for Writes and Reads
//	  connections for data             ──►
//	                                   ◄── connected
//	  round: how long, which pattern   ──►
//	                                   ◄── running
//	  requests, for as long as that    ◄─►
//	  stop                             ──►
//	                                   ◄── result: what has arrived, undamaged
//
// While a round lasts, nothing goes over the control connection. Its beginning,
// its end and the flow of credit are notes in the data's own connections, as
// Immediate Data (end.go, flow.go), so that the clock stops when all has arrived.
//
// A [flow] keeps requests outstanding on one queue pair (flow.go, drive.go), a
// [player] plays ping-pong (latency.go), and a [rawConn] does the like on bare TCP
// (baseline.go). Loops on both sides make connections and close them (connect.go);
// idle queue pairs are made, weighed and given up (idle.go). What comes of it is a
// [Report] (report.go).
package perf
