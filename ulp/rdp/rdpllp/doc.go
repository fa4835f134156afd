// Package rdpllp is a lower layer for package rnic that is not TCP: DDP over RDP. A device that names it in
// rnic.Config.LowerLayer places segments in the order in which they arrive (RFC 5041 §3, §5.3), which TCP never allows.
//
//	device, err := rnic.Open(rnic.Config{LowerLayer: rdpllp.New(rdpllp.Config{})})
//
// An address is that of a UDP socket, so that it looks as it does over TCP. Each listener has a socket of its own; all
// connections that a layer dials share one for each family of addresses.
//
// docs/ddp-over-rdp.md specifies what is on the wire. A message of RDP is one of start-up, a segment of DDP with its number,
// or the end of one direction; each ends in a CRC32c (package llpwire). Connections are non-sequenced.
//
//	layer.go    dialing and listening
//	startup.go  the request and its answer
//	conn.go     rnic.LLPConn: segments out and in
//	end.go      how a connection ends
package rdpllp
