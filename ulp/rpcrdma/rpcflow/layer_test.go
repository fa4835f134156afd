package rpcflow

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urnic/internal/capture"
	"urnic/internal/capture/iwarp"
	"urnic/ulp/rpcrdma"
)

// The packets of a capture whose FPDUs begin with them have all layers, down to the RPC
// message.
func TestPacketsAreDecodedThroughAllLayers(t *testing.T) {
	RegisterPort(Port)
	t.Cleanup(func() { layers.RegisterTCPPortLayerType(Port, gopacket.LayerTypePayload) })
	r, err := capture.NewReader(bytes.NewReader(golden(t, "nfs41")))
	if err != nil {
		t.Fatal(err)
	}
	headers, private := map[string]bool{}, 0
	for {
		raw, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(raw.Data, layers.LayerTypeEthernet, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
		if l, ok := p.Layer(LayerTypePrivate).(*PrivateData); ok {
			private++
			if !l.Found || l.Send != 4096 || l.Invalidate != (private == 1) {
				t.Errorf("packet %d: %+v", raw.Number, l)
			}
		}
		h, ok := p.Layer(LayerTypeHeader).(*Header)
		if !ok {
			continue
		}
		headers[p.TransportLayer().TransportFlow().Src().String()+xidString(h.XID)] = true // TCP repeats some
		if p.Layer(iwarp.LayerTypeRDMAP) == nil || p.ErrorLayer() != nil || !bytes.Equal(h.Append(nil), h.LayerContents()) {
			t.Errorf("packet %d: %v", raw.Number, p)
		}
		if l := p.Layer(gopacket.LayerTypePayload); (l == nil) != (h.Proc == rpcrdma.NoMsg) {
			t.Errorf("packet %d: %v and the payload is %v", raw.Number, h.Proc, l)
		}
	}
	// Those of the others begin in mid-packet, where package dissect finds them.
	if private != 2 || len(headers) != 127 {
		t.Errorf("%d private data, %d headers", private, len(headers))
	}
}

func TestDecodingLayersOfHeaders(t *testing.T) {
	message := append((&rpcrdma.Header{XID: 7, Version: 1, Credits: 9}).Append(nil), "stream.."...)
	var h Header
	var payload gopacket.Payload
	var decoded []gopacket.LayerType
	parser := gopacket.NewDecodingLayerParser(LayerTypeHeader, &h, &payload)
	if err := parser.DecodeLayers(message, &decoded); err != nil || h.XID != 7 || string(payload) != "stream.." || len(decoded) != 2 {
		t.Errorf("%v, %+v, %q, %v", err, h, payload, decoded)
	}
	p := gopacket.NewPacket(message[:20], LayerTypeHeader, gopacket.Default)
	var e *rpcrdma.HeaderError
	if l := p.ErrorLayer(); l == nil || !errors.As(l.Error(), &e) {
		t.Errorf("%v", p)
	}
}
