// Package capture records iWARP traffic and UDP datagrams to capture files, and reads TCP
// streams and UDP datagrams back out of anybody's.
//
// A [Writer] makes pcapng files of bytes that never crossed a network
// interface: each [Stream] is one connection, wrapped into synthetic Ethernet,
// IP and TCP, so that Wireshark's own iWARP dissectors take it; [Writer.Datagram]
// does the same with UDP, [Writer.Packet] with any protocol of IP, and [Writer.Segment] with
// RDP over either. No privileges are needed. Recording never disturbs what is recorded: a
// Writer keeps the first error of its file and returns it from Flush and Close.
//
// A [Reader] takes the packets out of a pcap or pcapng file, compressed with
// gzip or not, and an [Assembler] puts the TCP streams in them together: lost,
// repeated and reordered packets come out as ordered bytes and as holes, in
// the order in which the capture saw them become complete. Its memory is
// bounded whatever the file says: by the connections that are open at a time, as
// those that have ended are forgotten. IP fragments are put together first, those of TCP,
// of UDP and of RDP over IP. [ReadDatagrams] is for whoever wants UDP only.
//
// The Assembler judges segments as the TCP of their receiver does. It leaves out a
// RST or a SYN that such a TCP ignores (RFC 5961 §3.2, §4.2), a FIN of a stream that
// continues, and a segment whose checksum is wrong and that was sent again; each is
// counted, and reported to the [Consumer]. Network cards compute checksums after the
// capture has seen a packet. So a wrong one alone is no reason to leave a segment
// out: what the receiver has acknowledged counts.
//
// gopacket parses most network layers, within tunnels too, and writes pcapng. Two things are done
// here instead. gopacket's file reader holds whole name and key blocks, which a
// compressed file of a few kilobytes can make as large as it likes. And its
// TCP reassembly learns that bytes are lost only when its caller's clock says
// so; then the other direction, which continues meanwhile, is seen too early. The
// Assembler takes the receiver's acknowledgement as the sign that what is
// missing was lost by the capture, not by the network, so that a response is
// never seen before its request.
package capture
