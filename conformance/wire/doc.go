// Package wire is the tester's own end of an iWARP connection: it sends whatever
// a case wants, right or wrong, and takes apart what comes.
//
// It shares no code with the packages that it helps to judge: the formats stand
// here a second time, read from the RFCs, so that a mistake in a codec of
// urnic's stack is not made again by its tester.
//
// A [Conn] is a TCP connection with a [Tape] of all that passes. In start-up it
// sends and reads frames; [Conn.Operate] turns it to full operation, in which
// there are FPDUs.
package wire
