// Package rdpfile moves files over connections of RDP, as `urnic rdp send` and `urnic rdp recv` do.
//
//	n, err := rdpfile.Send(ctx, conn, file)   // until the peer has accepted all
//	rdpfile.Finish(ctx, conn, rdpfile.Linger) // the end
//
//	n, err := rdpfile.Receive(ctx, conn, os.Stdout)
//
// # What is on the wire
//
// One connection carries one file, without its name. On a sequenced connection the file is the concatenation of the
// messages. On another one, each message begins with the offset in the file at which the rest of it belongs, in 8 bytes, big-endian; so
// it can be put there whenever it comes. The sender closes when the peer has acknowledged all, and that is the end of the file.
//
// # The end
//
// RDP's close is an RST, and so is its failure; they differ in the number. An RST carries the number of the next segment that its
// sender would send. If that is the one after the last that has come, and nothing before is missing, Receive takes it for the end. If
// not, the sender has closed too early, and Receive returns ErrShort. A sender that stops in the middle, when all that it has sent is
// acknowledged, must say so by rdp.Conn.Abort. If the sender just disappears, or is no longer reachable, Receive also returns an error,
// after a while.
//
// What can't be distinguished from an end: a peer of another make that gives up with everything acknowledged, and one that
// has restarted since and answers a question about a connection that it does not know.
//
// An RST is not acknowledged, so Finish sends it a few times, and stays for a while to answer a receiver that asks.
package rdpfile
