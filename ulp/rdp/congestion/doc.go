// Package congestion has the congestion control of RDP: how many segments a sender may have
// in flight. RFC 908 and RFC 1151 specify none; so it can be chosen and replaced.
//
// A [Controller] belongs to one connection. The connection reports events to it: segments sent and
// acknowledged, losses, timeouts. Between two calls, [Controller.Window] is the number of segments
// that may be in flight. A controller has no clock, no I/O and no goroutine: each call has the
// time, as the duration since any fixed moment, which never goes back.
//
// [ByName] knows these:
//
//	none   as specified: the window that the peer has announced is the only limit
//	reno   RFC 5681: slow start, congestion avoidance, half of the window upon loss
//	cubic  RFC 9438: growth by the time since the last loss, 0.7 of the window upon loss
//
// # Segments
//
// Windows count segments, as RDP's own windows do. Where an RFC counts bytes, a segment here
// is one SMSS there. A segment is in flight from when it is sent until an acknowledgement,
// cumulative or extended, names it. A lost segment is in flight until its retransmission is
// acknowledged.
//
// As extended acknowledgements take segments out of flight one by one, there is nothing to
// inflate in fast recovery (RFC 5681 §3.2, steps 3 and 4): the window is the threshold at
// once, and the connection sends when fewer segments than that are in flight.
//
// # Rounds
//
// The window falls once for all the losses of a window of data (RFC 5681 §4.3). What falls
// together is a round: it begins with the event that lowers the window, and ends when as many
// segments are acknowledged as were in flight then. Losses within a round lower nothing. A
// timeout always reduces the window to one segment, but the threshold only once a round.
//
// # Reports
//
// Code in the path, in the way of Active Congestion Control, may tell the sender of congestion
// before the loss shows at its own end. Such code has already treated the flow as if the sender had
// slowed down to a window, and reports that window by [Controller.Reported]. The controller
// takes it at once, which begins a round: the losses that it notices later, of the same window of
// data, do not lower the window again.
//
// # Determinism
//
// The same calls give the same windows on every machine. CUBIC uses floating point, but has no
// expression in it that a compiler may fuse, and rounds its cube root to nanoseconds.
package congestion
