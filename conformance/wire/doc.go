// Package wire is the tester's own end of an iWARP connection: it sends
// whatever a case wants, right or wrong, and decodes what arrives.
//
// It shares no code with the packages that it helps to test: it implements the
// formats of the RFCs a second time, so that the tester does not repeat a
// mistake of a codec of urnic's stack.
//
// A [Conn] is a TCP connection with a [Tape], which records all that is sent
// and received. In start-up it sends and reads frames. [Conn.Operate] switches
// it to full operation, in which it sends and reads FPDUs.
//
// Over a [MessageConn], a connection of RDP, a Conn uses the protocol of
// docs/ddp-over-rdp.md. A [Frame] then stands for a message of start-up with
// the same content. Segments are shown in the order of their numbers, in
// whatever order they arrived.
package wire
