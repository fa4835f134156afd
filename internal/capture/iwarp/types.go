package iwarp

import (
	"errors"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urnic/mpa"
)

// The layer types, in gopacket's range for applications.
var (
	// LayerTypeMPA is a start-up frame or an FPDU, whichever the octets are.
	LayerTypeMPA = gopacket.RegisterLayerType(1744, gopacket.LayerTypeMetadata{Name: "MPA", Decoder: gopacket.DecodeFunc(decodeMPA)})
	// LayerTypeFrame is an MPA Request or Reply Frame.
	LayerTypeFrame = gopacket.RegisterLayerType(1745, gopacket.LayerTypeMetadata{Name: "MPAFrame", Decoder: gopacket.DecodeFunc(decodeFrame)})
	// LayerTypeFPDU is an FPDU without markers.
	LayerTypeFPDU = gopacket.RegisterLayerType(1746, gopacket.LayerTypeMetadata{Name: "FPDU", Decoder: gopacket.DecodeFunc(decodeFPDU)})
	// LayerTypeDDP is the header of a DDP segment.
	LayerTypeDDP = gopacket.RegisterLayerType(1747, gopacket.LayerTypeMetadata{Name: "DDP", Decoder: gopacket.DecodeFunc(decodeDDP)})
	// LayerTypeRDMAP is what RDMAP put into the DDP segment before it. It has
	// no meaning without that segment.
	LayerTypeRDMAP = gopacket.RegisterLayerType(1748, gopacket.LayerTypeMetadata{Name: "RDMAP", Decoder: gopacket.DecodeFunc(decodeRDMAP)})
)

// RegisterPort has gopacket decode the payload of TCP packets from and to a
// port as MPA, with the option DecodeStreamsAsDatagrams. iWARP has no port of
// its own. It is not safe to call while packets are decoded.
func RegisterPort(port uint16) {
	layers.RegisterTCPPortLayerType(layers.TCPPort(port), LayerTypeMPA)
}

// isFrame reports whether b begins with the Key of a start-up frame.
func isFrame(b []byte) bool {
	_, _, err := mpa.ParseFrame(b)
	return err == nil || len(b) > 0 && errors.Is(err, mpa.ErrIncomplete)
}

func decodeMPA(b []byte, p gopacket.PacketBuilder) error {
	if isFrame(b) {
		return decodeFrame(b, p)
	}
	return decodeFPDU(b, p)
}

func decodeFrame(b []byte, p gopacket.PacketBuilder) error {
	f := &Frame{}
	if err := f.DecodeFromBytes(b, p); err != nil {
		return err
	}
	p.AddLayer(f)
	return p.NextDecoder(f.NextLayerType())
}

func decodeFPDU(b []byte, p gopacket.PacketBuilder) error {
	f := &FPDU{}
	if err := f.DecodeFromBytes(b, p); err != nil {
		return err
	}
	p.AddLayer(f)
	return p.NextDecoder(LayerTypeDDP)
}

// decodeDDP decodes RDMAP too: an RDMA message without a header of its own, and
// without payload, is a layer nevertheless.
func decodeDDP(b []byte, p gopacket.PacketBuilder) error {
	d := &DDP{}
	if err := d.DecodeFromBytes(b, p); err != nil {
		return err
	}
	p.AddLayer(d)
	r := &RDMAP{Segment: d}
	if err := r.DecodeFromBytes(d.LayerPayload(), p); err != nil {
		return err
	}
	p.AddLayer(r)
	return p.NextDecoder(gopacket.LayerTypePayload)
}

func decodeRDMAP([]byte, gopacket.PacketBuilder) error { return errNoSegment }
