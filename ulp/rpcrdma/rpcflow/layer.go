package rpcflow

import (
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urnic/internal/capture/iwarp"
	"urnic/ulp/rpcrdma"
)

// The layer types, in gopacket's range for applications, behind those of package iwarp.
var (
	// LayerTypeMPA is a start-up frame or an FPDU of a connection that carries
	// RPC-over-RDMA.
	LayerTypeMPA = gopacket.RegisterLayerType(1749, gopacket.LayerTypeMetadata{
		Name: "MPA with RPC-over-RDMA", Decoder: iwarp.NewDecoder(gopacket.DecodeFunc(decodePrivate), gopacket.DecodeFunc(decodeHeader)),
	})
	// LayerTypePrivate is the private data of RFC 8797.
	LayerTypePrivate = gopacket.RegisterLayerType(1750, gopacket.LayerTypeMetadata{
		Name: "RPC-over-RDMA private data", Decoder: gopacket.DecodeFunc(decodePrivate),
	})
	// LayerTypeHeader is a transport header (RFC 8166 §4).
	LayerTypeHeader = gopacket.RegisterLayerType(1751, gopacket.LayerTypeMetadata{
		Name: "RPC-over-RDMA", Decoder: gopacket.DecodeFunc(decodeHeader),
	})
)

// RegisterPort has gopacket decode the payload of TCP packets from and to a port as
// RPC-over-RDMA, with the option DecodeStreamsAsDatagrams; see iwarp.RegisterPort.
func RegisterPort(port uint16) {
	layers.RegisterTCPPortLayerType(layers.TCPPort(port), LayerTypeMPA)
}

// A Header is the layer of a transport header. Its payload is the Payload stream behind it:
// an RPC message without what is in chunks.
type Header struct {
	layers.BaseLayer
	rpcrdma.Header
}

// DecodeFromBytes decodes the header at the front of a message, which it keeps.
func (h *Header) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	stream, err := h.Decode(b, limits)
	if err != nil {
		return err
	}
	h.BaseLayer = layers.BaseLayer{Contents: b[:len(b)-len(stream)], Payload: stream}
	return nil
}

// LayerType returns LayerTypeHeader.
func (h *Header) LayerType() gopacket.LayerType { return LayerTypeHeader }

// CanDecode returns LayerTypeHeader.
func (h *Header) CanDecode() gopacket.LayerClass { return LayerTypeHeader }

// NextLayerType returns the type of what is not decoded.
func (h *Header) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// A PrivateData is the layer of private data.
type PrivateData struct {
	layers.BaseLayer
	rpcrdma.Private
	Found bool // they are those of RPC-over-RDMA; otherwise Private says what is assumed
}

// LayerType returns LayerTypePrivate.
func (p *PrivateData) LayerType() gopacket.LayerType { return LayerTypePrivate }

func decodePrivate(b []byte, p gopacket.PacketBuilder) error {
	l := &PrivateData{BaseLayer: layers.BaseLayer{Contents: b}}
	l.Private, l.Found = rpcrdma.FindPrivate(b)
	p.AddLayer(l)
	return nil
}

func decodeHeader(b []byte, p gopacket.PacketBuilder) error {
	h := &Header{}
	if err := h.DecodeFromBytes(b, p); err != nil {
		return err
	}
	p.AddLayer(h)
	return p.NextDecoder(h.NextLayerType())
}
