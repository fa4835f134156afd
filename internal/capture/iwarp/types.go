package iwarp

import (
	"errors"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urnic/mpa"
	"urnic/rdmap"
)

// The layer types, in gopacket's range for applications.
var (
	// LayerTypeMPA is a start-up frame or an FPDU, whichever the bytes are.
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

// NewDecoder returns a decoder like that of LayerTypeMPA for the connections of a ULP:
// private has the ULP's private data of start-up frames, and send has Send messages that
// are in one segment.
func NewDecoder(private, send gopacket.Decoder) gopacket.Decoder {
	return gopacket.DecodeFunc(func(b []byte, p gopacket.PacketBuilder) error {
		if isFrame(b) {
			return decodeFrameOf(b, p, private)
		}
		f := &FPDU{}
		if err := f.DecodeFromBytes(b, p); err != nil {
			return err
		}
		p.AddLayer(f)
		return p.NextDecoder(gopacket.DecodeFunc(func(b []byte, p gopacket.PacketBuilder) error { return decodeDDPOf(b, p, send) }))
	})
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
	return decodeFrameOf(b, p, gopacket.LayerTypePayload)
}

func decodeFrameOf(b []byte, p gopacket.PacketBuilder, private gopacket.Decoder) error {
	f := &Frame{}
	if err := f.DecodeFromBytes(b, p); err != nil {
		return err
	}
	p.AddLayer(f)
	return p.NextDecoder(private)
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
	return decodeDDPOf(b, p, gopacket.LayerTypePayload)
}

func decodeDDPOf(b []byte, p gopacket.PacketBuilder, send gopacket.Decoder) error {
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
	if r.wholeSend() {
		return p.NextDecoder(send)
	}
	return p.NextDecoder(gopacket.LayerTypePayload)
}

// wholeSend reports whether the segment is all of a Send message.
func (r *RDMAP) wholeSend() bool {
	op := r.Control.Opcode()
	switch op {
	case rdmap.OpSend, rdmap.OpSendInvalidate, rdmap.OpSendSE, rdmap.OpSendSEInvalidate:
	default:
		return false
	}
	c := r.Segment.Control
	return !c.Tagged() && c.Last() && r.Segment.Untagged.QN == op.Queue() && r.Segment.Untagged.MO == 0
}

func decodeRDMAP([]byte, gopacket.PacketBuilder) error { return errNoSegment }
