// Package iwarp teaches gopacket the layers of iWARP: MPA's start-up frames
// and FPDUs (RFC 5044, RFC 6581), DDP segments (RFC 5041) and RDMA messages
// (RFC 5040, RFC 7306). Importing it registers them:
//
//	gopacket.NewPacket(bytes, iwarp.LayerTypeMPA, gopacket.Default)
//
// decodes bytes of a TCP stream where a start-up frame or an FPDU begins, and
//
//	iwarp.RegisterPort(20049)
//
// has gopacket decode the TCP payload of each packet of that port so, if its
// option DecodeStreamsAsDatagrams is on.
//
// gopacket sees one packet at a time. A layer can't know what start-up has
// settled, so FPDUs are taken to be without markers, and their CRC is reported
// but not judged. FPDUs that begin in mid-packet, or are longer than one, need
// the TCP stream: package dissect follows that. Behind the first FPDU of a
// packet the others are in [FPDU.Rest].
//
// What a ULP sends is payload, unless a decoder of the ULP is given to [NewDecoder].
// Package ulp/rpcrdma/rpcflow does that for RPC-over-RDMA.
//
// All layers also implement gopacket.DecodingLayer; a DecodingLayerParser that
// uses [RDMAP] must be given its [DDP] segment beforehand.
package iwarp
