// Package rdpconn gives the tester connections of RDP (RFC 908, RFC 1151) on which a target speaks DDP, as docs/ddp-over-rdp.md
// specifies it: [Dial] opens one, a [Listener] accepts them. A [Conn] moves whole messages; package wire encodes and decodes
// their contents.
//
// The protocol itself is package ulp/rdp, which the target may run as well. That does no harm: the tester tests DDP and RDMAP,
// and uses RDP only as a layer that retransmits what is lost and preserves boundaries. A fault of RDP would show as silence or
// a reset, on either side. The format of DDP's segments in these messages is implemented a second time from the specification,
// in package wire; nothing of package ulp/rdp/rdpllp is used.
//
// Connections are sequenced unless Options say otherwise: what a case sends first is placed first, even if datagrams are lost,
// so that its verdict does not depend on the network. Cases that need another order number their segments accordingly.
package rdpconn
