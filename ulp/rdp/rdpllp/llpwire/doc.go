// Package llpwire has the messages of DDP over RDP, as docs/ddp-over-rdp.md specifies them.
//
// Each message of RDP is one of start-up, a segment of DDP with its number, or the end of one direction. It begins with a
// header and ends in a CRC32c.
package llpwire
