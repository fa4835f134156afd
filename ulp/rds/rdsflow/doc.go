// Package rdsflow follows RDS 3.1 through captures: over TCP, over iWARP, and over RoCEv2.
//
// An [Analyzer] is a ULP of package dissect. It finds RDS over TCP by port 16385, and on other
// ports by its first header; RDS over iWARP by the private data in the start-up frames of MPA,
// or by port 18634; RDS over RoCEv2 by the service that the connection manager is asked for.
// What it finds are events of the analysis: [Private], what a side says of itself; [Reject];
// [Message], a message with its header. A [Summary] counts the messages of each connection.
//
// It judges what both sides send: headers, the order of fragments, sequence numbers and
// acknowledgements, credits, congestion maps, pongs, generations, and the keys that
// messages name. What a capture lacks is no fault: from a hole on, what can't be known is not
// judged. Where Linux differs from the document, what Linux does is no fault either.
//
// # What is remembered
//
// Sequence numbers and generations outlive connections. So the analyzer remembers pairs of
// nodes. How many these are, and how much is remembered of each, is bounded. Of messages,
// nothing is kept but a hash of the last ones.
package rdsflow
