package iwarp

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
)

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// fpdu makes an FPDU with a message of one segment.
func fpdu(crc bool, op rdmap.Opcode, payload []byte) []byte {
	c := ddp.NewControl(op.Tagged(), true)
	var head []byte
	if op.Tagged() {
		head = must(ddp.TaggedHeader{Control: c, RsvdULP: uint8(rdmap.NewControl(op)), STag: 0x1234, TO: 77}.AppendBinary(nil))
	} else {
		head = must(ddp.UntaggedHeader{
			Control: c, RsvdULP: [5]byte{uint8(rdmap.NewControl(op)), 0xA, 0xB, 0xC, 0xD}, QN: op.Queue(), MSN: 1,
		}.AppendBinary(nil))
	}
	return must((&mpa.Framer{CRC: crc}).AppendFPDU(nil, head, payload))
}

func frame(reply bool) []byte {
	f := mpa.Frame{Reply: reply, Revision: 2, Enhanced: true, CRC: true}
	f.PrivateData = append(must(mpa.Enhanced{IRD: 3, ORD: 4}.AppendBinary(nil)), "ulp"...)
	return must(f.AppendBinary(nil))
}

func TestStartupFrameIsDecoded(t *testing.T) {
	for _, reply := range []bool{false, true} {
		p := gopacket.NewPacket(frame(reply), LayerTypeMPA, gopacket.Default)
		f, ok := p.Layer(LayerTypeFrame).(*Frame)
		if !ok || f.Reply != reply || !f.CRC || p.ErrorLayer() != nil {
			t.Fatalf("%v", p)
		}
		if got := string(f.LayerPayload()); got != "ulp" {
			t.Errorf("the ULP's private data are %q", got)
		}
		if l := p.Layer(gopacket.LayerTypePayload); l == nil || string(l.LayerContents()) != "ulp" {
			t.Error("the ULP's private data are no layer")
		}
	}
}

func TestFPDUIsDecodedThroughAllLayers(t *testing.T) {
	read := rdmap.ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 3, SrcSTag: 4, SrcTO: 5}
	atomic := rdmap.AtomicRequest{Op: rdmap.AtomicCmpSwap, RequestID: 9, STag: 7}
	fetched := rdmap.AtomicResponse{RequestID: 9, Original: 8}
	for _, tc := range []struct {
		op      rdmap.Opcode
		payload []byte
		ulp     string
		check   func(r *RDMAP) bool
	}{
		{rdmap.OpWrite, []byte("data"), "data", func(r *RDMAP) bool { return r.Segment.Tagged.TO == 77 }},
		{rdmap.OpWrite, nil, "", func(r *RDMAP) bool { return true }},
		{rdmap.OpReadRequest, must(read.AppendBinary(nil)), "", func(r *RDMAP) bool { return *r.ReadRequest == read }},
		{rdmap.OpReadResponse, []byte("data"), "data", func(r *RDMAP) bool { return r.ReadRequest == nil }},
		{rdmap.OpSend, []byte("data"), "data", func(r *RDMAP) bool { return r.InvalidateSTag == 0 }},
		{rdmap.OpSendInvalidate, []byte("data"), "data", func(r *RDMAP) bool { return r.InvalidateSTag == 0x0A0B0C0D }},
		{rdmap.OpTerminate, []byte{0x10, 2, 0, 0}, "", func(r *RDMAP) bool { return r.Terminate.Code == 0x1002 }},
		{rdmap.OpImmediate, []byte("12345678"), "", func(r *RDMAP) bool { return string(r.Immediate[:]) == "12345678" }},
		{rdmap.OpAtomicRequest, must(atomic.AppendBinary(nil)), "", func(r *RDMAP) bool { return *r.AtomicRequest == atomic }},
		{rdmap.OpAtomicResponse, must(fetched.AppendBinary(nil)), "", func(r *RDMAP) bool { return *r.AtomicResponse == fetched }},
	} {
		for _, lazy := range []bool{false, true} {
			p := gopacket.NewPacket(fpdu(true, tc.op, tc.payload), LayerTypeMPA, gopacket.DecodeOptions{Lazy: lazy})
			r, ok := p.Layer(LayerTypeRDMAP).(*RDMAP)
			if !ok || r.Control.Opcode() != tc.op || !tc.check(r) || p.ErrorLayer() != nil {
				t.Errorf("%v lazy=%t: %v", tc.op, lazy, p)
				continue
			}
			if got := string(r.LayerPayload()); got != tc.ulp {
				t.Errorf("%v: the ULP's payload is %q", tc.op, got)
			}
			if f := p.Layer(LayerTypeFPDU).(*FPDU); !f.CRCValid() || len(f.Rest) != 0 {
				t.Errorf("%v: CRC valid is %t, %d bytes are left", tc.op, f.CRCValid(), len(f.Rest))
			}
		}
	}
}

func TestRestOfAPacketHoldsTheNextFPDU(t *testing.T) {
	b := slices.Concat(fpdu(false, rdmap.OpSend, []byte("one")), fpdu(true, rdmap.OpWrite, []byte("two")))
	var ops []rdmap.Opcode
	for len(b) > 0 {
		p := gopacket.NewPacket(b, LayerTypeMPA, gopacket.Default)
		f := p.Layer(LayerTypeFPDU).(*FPDU)
		op := p.Layer(LayerTypeRDMAP).(*RDMAP).Control.Opcode()
		if f.CRCValid() != (op == rdmap.OpWrite) {
			t.Errorf("%v: CRC valid is %t", op, f.CRCValid())
		}
		ops = append(ops, op)
		b = f.Rest
	}
	if !slices.Equal(ops, []rdmap.Opcode{rdmap.OpSend, rdmap.OpWrite}) {
		t.Errorf("got %v", ops)
	}
}

func TestPacketsOfARegisteredPortAreDecoded(t *testing.T) {
	const port = 41953
	RegisterPort(port)
	var file bytes.Buffer
	w, err := capture.NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Stream(netip.MustParseAddrPort("192.0.2.1:1000"), netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"), port), true)
	s.Sent(frame(false))
	s.Received(frame(true))
	s.Sent(fpdu(true, rdmap.OpSend, []byte("data")))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for {
		pkt, err := r.Next()
		if err != nil {
			break
		}
		p := gopacket.NewPacket(pkt.Data, layers.LayerTypeEthernet, gopacket.DecodeStreamsAsDatagrams)
		for _, l := range p.Layers()[3:] { // behind Ethernet, IP, TCP
			found = append(found, l.LayerType().String())
		}
	}
	if want := []string{"MPAFrame", "Payload", "MPAFrame", "Payload", "FPDU", "DDP", "RDMAP", "Payload"}; !slices.Equal(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
}

func TestLayersServeADecodingLayerParser(t *testing.T) {
	var f FPDU
	var d DDP
	r := RDMAP{Segment: &d}
	var payload gopacket.Payload
	parser := gopacket.NewDecodingLayerParser(LayerTypeFPDU, &f, &d, &r, &payload)
	var got []gopacket.LayerType
	if err := parser.DecodeLayers(fpdu(false, rdmap.OpSend, []byte("data")), &got); err != nil {
		t.Fatal(err)
	}
	want := []gopacket.LayerType{LayerTypeFPDU, LayerTypeDDP, LayerTypeRDMAP, gopacket.LayerTypePayload}
	if !slices.Equal(got, want) || r.Control.Opcode() != rdmap.OpSend || string(payload) != "data" {
		t.Errorf("got %v, %v, %q", got, r.Control.Opcode(), payload)
	}
	var fr Frame
	parser = gopacket.NewDecodingLayerParser(LayerTypeFrame, &fr, &payload)
	if err := parser.DecodeLayers(frame(true), &got); err != nil || !fr.Reply {
		t.Errorf("%v, reply=%t", err, fr.Reply)
	}
}

func TestWhatIsNotWholeIsAnError(t *testing.T) {
	if p := gopacket.NewPacket([]byte("data"), LayerTypeRDMAP, gopacket.Default); !errors.Is(p.ErrorLayer().Error(), errNoSegment) {
		t.Errorf("RDMAP alone: %v", p)
	}
	if err := new(RDMAP).DecodeFromBytes(nil, gopacket.NilDecodeFeedback); !errors.Is(err, errNoSegment) {
		t.Errorf("RDMAP without a segment: %v", err)
	}
	whole := fpdu(true, rdmap.OpSend, []byte("data"))
	for n := range len(whole) {
		p := gopacket.NewPacket(whole[:n], LayerTypeMPA, gopacket.Default)
		if p.ErrorLayer() == nil && n > 0 || n > 0 && !p.Metadata().Truncated {
			t.Errorf("FPDU cut at %d: %v", n, p)
		}
	}
	start := frame(true)
	for n := 1; n < len(start); n++ {
		if p := gopacket.NewPacket(start[:n], LayerTypeMPA, gopacket.Default); p.ErrorLayer() == nil {
			t.Errorf("frame cut at %d: %v", n, p)
		}
	}
	if p := gopacket.NewPacket(fpdu(true, rdmap.OpReadRequest, []byte("short")), LayerTypeMPA, gopacket.Default); p.ErrorLayer() == nil {
		t.Errorf("a short Read Request: %v", p)
	}
	if p := gopacket.NewPacket(must((&mpa.Framer{}).AppendFPDU(nil, []byte("short"))), LayerTypeMPA, gopacket.Default); p.ErrorLayer() == nil {
		t.Errorf("a short segment: %v", p)
	}
}

func FuzzLayers(f *testing.F) {
	f.Add(frame(false))
	for op := range rdmap.Opcode(16) {
		f.Add(fpdu(true, op, bytes.Repeat([]byte{byte(op)}, 28)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := gopacket.NewPacket(b, LayerTypeMPA, gopacket.DecodeOptions{SkipDecodeRecovery: true})
		for _, l := range p.Layers() {
			_ = gopacket.LayerString(l)
		}
	})
}
