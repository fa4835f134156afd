package iwarp

import (
	"errors"
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

var errNoSegment = errors.New("iwarp: an RDMAP layer needs the DDP segment that it is part of")

// A Frame is an MPA Request or Reply Frame. Its payload is what of the Private
// Data belongs to the ULP.
type Frame struct {
	layers.BaseLayer
	mpa.Frame
}

// DecodeFromBytes decodes the frame at the front of b, which it keeps.
func (f *Frame) DecodeFromBytes(b []byte, df gopacket.DecodeFeedback) error {
	frame, n, err := mpa.ParseFrame(b)
	if err != nil {
		if errors.Is(err, mpa.ErrIncomplete) {
			df.SetTruncated()
		}
		return err
	}
	f.Frame = frame
	ulp := f.ULPData()
	f.BaseLayer = layers.BaseLayer{Contents: b[:n-len(ulp)], Payload: ulp}
	return nil
}

// LayerType returns LayerTypeFrame.
func (f *Frame) LayerType() gopacket.LayerType { return LayerTypeFrame }

// CanDecode returns LayerTypeFrame.
func (f *Frame) CanDecode() gopacket.LayerClass { return LayerTypeFrame }

// NextLayerType returns the type of the ULP's private data.
func (f *Frame) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// An FPDU is MPA's framing of one DDP segment, without markers (RFC 5044 §4.1).
// Its payload is the ULPDU.
type FPDU struct {
	layers.BaseLayer
	Raw  []byte // all of the FPDU: length, ULPDU, pad and CRC
	Rest []byte // what follows the FPDU in the bytes decoded
}

// DecodeFromBytes decodes the FPDU at the front of b, which it keeps.
func (f *FPDU) DecodeFromBytes(b []byte, df gopacket.DecodeFeedback) error {
	var d mpa.Deframer
	ulpdu, n, err := d.Next(b)
	if err != nil {
		return err
	}
	if n == 0 {
		df.SetTruncated()
		return fmt.Errorf("iwarp: an FPDU of %d bytes; there are %d", d.FPDULen(b), len(b))
	}
	f.Raw, f.Rest = b[:n], b[n:]
	f.BaseLayer = layers.BaseLayer{Contents: b[:2], Payload: ulpdu}
	return nil
}

// CRCValid reports whether the CRC field fits the FPDU. It need not, if neither
// side asked for CRCs (RFC 5044 §7.1.1).
func (f *FPDU) CRCValid() bool {
	d := mpa.Deframer{CRC: true}
	_, n, err := d.Next(f.Raw)
	return n > 0 && err == nil
}

// LayerType returns LayerTypeFPDU.
func (f *FPDU) LayerType() gopacket.LayerType { return LayerTypeFPDU }

// CanDecode returns LayerTypeFPDU.
func (f *FPDU) CanDecode() gopacket.LayerClass { return LayerTypeFPDU }

// NextLayerType returns LayerTypeDDP.
func (f *FPDU) NextLayerType() gopacket.LayerType { return LayerTypeDDP }

// DDP is the header of a DDP segment (RFC 5041 §4).
type DDP struct {
	layers.BaseLayer
	ddp.Segment
}

// DecodeFromBytes decodes the DDP segment b, which it keeps.
func (d *DDP) DecodeFromBytes(b []byte, df gopacket.DecodeFeedback) error {
	s, err := ddp.ParseSegment(b)
	if err != nil {
		df.SetTruncated()
		return err
	}
	d.Segment = s
	n := s.HeaderLen()
	d.BaseLayer = layers.BaseLayer{Contents: b[:n], Payload: b[n:]}
	return nil
}

// RDMAP returns the RDMAP Control Field.
func (d *DDP) RDMAP() rdmap.Control {
	if d.Control.Tagged() {
		return rdmap.Control(d.Tagged.RsvdULP)
	}
	return rdmap.Control(d.Untagged.RsvdULP[0])
}

// LayerType returns LayerTypeDDP.
func (d *DDP) LayerType() gopacket.LayerType { return LayerTypeDDP }

// CanDecode returns LayerTypeDDP.
func (d *DDP) CanDecode() gopacket.LayerClass { return LayerTypeDDP }

// NextLayerType returns LayerTypeRDMAP.
func (d *DDP) NextLayerType() gopacket.LayerType { return LayerTypeRDMAP }

// RDMAP is the part of a DDP segment that RDMAP made: its control field, and
// the header of the message if the segment holds one. Its payload is the ULP's.
type RDMAP struct {
	layers.BaseLayer
	// Segment is the DDP segment. Who calls DecodeFromBytes sets it before.
	Segment *DDP

	Control        rdmap.Control
	InvalidateSTag stag.STag // of a Send with Invalidate

	// The header of the message; one of them is set, at most.
	ReadRequest    *rdmap.ReadRequest
	Terminate      *rdmap.Terminate
	Immediate      *rdmap.Immediate
	AtomicRequest  *rdmap.AtomicRequest
	AtomicResponse *rdmap.AtomicResponse
}

// DecodeFromBytes decodes the payload b of Segment, and keeps it.
func (r *RDMAP) DecodeFromBytes(b []byte, _ gopacket.DecodeFeedback) error {
	d := r.Segment
	if d == nil {
		return errNoSegment
	}
	*r = RDMAP{Segment: d, Control: d.RDMAP()}
	op := r.Control.Opcode()
	if op.Invalidates() && !d.Control.Tagged() {
		v := d.Untagged.RsvdULP
		r.InvalidateSTag = stag.STag(uint32(v[1])<<24 | uint32(v[2])<<16 | uint32(v[3])<<8 | uint32(v[4]))
	}
	r.BaseLayer = layers.BaseLayer{Contents: b, Payload: nil}
	var err error
	switch op {
	case rdmap.OpReadRequest:
		r.ReadRequest, err = keep(rdmap.ParseReadRequest(b))
	case rdmap.OpTerminate:
		r.Terminate, err = keep(rdmap.ParseTerminate(b))
	case rdmap.OpImmediate, rdmap.OpImmediateSE:
		r.Immediate, err = keep(rdmap.ParseImmediate(op, b))
	case rdmap.OpAtomicRequest:
		r.AtomicRequest, err = keep(rdmap.ParseAtomicRequest(b))
	case rdmap.OpAtomicResponse:
		r.AtomicResponse, err = keep(rdmap.ParseAtomicResponse(b))
	default:
		r.BaseLayer = layers.BaseLayer{Contents: b[:0], Payload: b}
	}
	return err
}

func keep[T any](v T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// LayerType returns LayerTypeRDMAP.
func (r *RDMAP) LayerType() gopacket.LayerType { return LayerTypeRDMAP }

// CanDecode returns LayerTypeRDMAP.
func (r *RDMAP) CanDecode() gopacket.LayerClass { return LayerTypeRDMAP }

// NextLayerType returns the type of the ULP's payload.
func (r *RDMAP) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }
