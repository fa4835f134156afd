package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// req and rep are the two Keys, written out so that the constants are tested.
var (
	reqKey = []byte{0x4D, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6D, 0x65}
	repKey = []byte{0x4D, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6D, 0x65}
)

var frameTable = []struct {
	name  string
	frame Frame
	wire  []byte
}{
	{
		"request rev 1",
		Frame{Revision: 1},
		join(reqKey, []byte{0x00, 1, 0, 0}),
	}, {
		"request rev 1 M C with private data",
		Frame{Revision: 1, Markers: true, CRC: true, PrivateData: []byte("hello")},
		join(reqKey, []byte{0xC0, 1, 0, 5}, []byte("hello")), // M C | Rev | PD_Length
	}, {
		"reply rev 1 rejected",
		Frame{Reply: true, Revision: 1, Rejected: true, PrivateData: []byte{9}},
		join(repKey, []byte{0x20, 1, 0, 1, 9}), // R
	}, {
		"request rev 2 enhanced",
		Frame{Revision: 2, CRC: true, Enhanced: true, PrivateData: []byte{0x80, 4, 0xC0, 8}},
		join(reqKey, []byte{0x50, 2, 0, 4, 0x80, 4, 0xC0, 8}), // C S
	}, {
		"reserved bits are kept for the record",
		Frame{Reply: true, Revision: 1, Reserved: 0x1F},
		join(repKey, []byte{0x1F, 1, 0, 0}), // in revision 1, S is a reserved bit
	}, {
		"512 octets of private data",
		Frame{Revision: 1, PrivateData: bytes.Repeat([]byte{7}, 512)},
		join(reqKey, []byte{0, 1, 2, 0}, bytes.Repeat([]byte{7}, 512)),
	},
}

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func TestFrameCodec(t *testing.T) {
	for _, tt := range frameTable {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.frame.AppendBinary(nil)
			if err != nil || !bytes.Equal(got, tt.wire) {
				t.Fatalf("encoded %x, %v; want %x", got, err, tt.wire)
			}
			back, n, err := ParseFrame(append(tt.wire, "trailing"...))
			if err != nil || n != len(tt.wire) {
				t.Fatalf("parsed %d octets, %v; want %d", n, err, len(tt.wire))
			}
			if fmt.Sprintf("%+v", back) != fmt.Sprintf("%+v", tt.frame) {
				t.Errorf("parsed %+v; want %+v", back, tt.frame)
			}
			for i := range tt.wire {
				if _, n, err := ParseFrame(tt.wire[:i]); !errors.Is(err, ErrIncomplete) || n != 0 {
					t.Fatalf("the first %d octets: took %d, %v; want ErrIncomplete", i, n, err)
				}
			}
		})
	}
}

func TestFrameWithWrongKeyIsRefusedAtTheFirstWrongOctet(t *testing.T) {
	good := join(reqKey, []byte{0, 1, 0, 0})
	for i := range reqKey {
		bad := slices.Clone(good)
		bad[i] ^= 0xFF
		_, _, err := ParseFrame(bad[:i+1])
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeStartup {
			t.Errorf("octet %d wrong: %v; want code 4", i, err)
		}
	}
}

func TestFramePrivateDataOver512IsMalformed(t *testing.T) {
	wire := join(reqKey, []byte{0, 1, 2, 1}) // PD_Length 513
	var e *Error
	if _, _, err := ParseFrame(wire); !errors.As(err, &e) || e.Code != CodeStartup {
		t.Errorf("PD_Length 513: %v; want code 4", err)
	}
	if _, err := (&Frame{Revision: 1, PrivateData: make([]byte, 513)}).AppendBinary(nil); err == nil {
		t.Error("a frame with 513 octets of private data was encoded")
	}
}

func TestEnhancedCodec(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    Enhanced
		wire []byte
	}{
		{"client-server", Enhanced{IRD: 16, ORD: 1}, []byte{0x00, 16, 0x00, 1}},
		{"not negotiated", Enhanced{IRD: DepthNotNegotiated, ORD: DepthNotNegotiated}, []byte{0x3F, 0xFF, 0x3F, 0xFF}},
		{"p2p Send", Enhanced{PeerToPeer: true, RTR: RTRSend, IRD: 1}, []byte{0xC0, 1, 0, 0}},
		{"p2p Write", Enhanced{PeerToPeer: true, RTR: RTRWrite, ORD: 2}, []byte{0x80, 0, 0x80, 2}},
		{"p2p Read", Enhanced{PeerToPeer: true, RTR: RTRRead}, []byte{0x80, 0, 0x40, 0}},
		{"p2p all", Enhanced{PeerToPeer: true, RTR: RTRAll, IRD: MaxDepth, ORD: MaxDepth}, []byte{0xFF, 0xFE, 0xFF, 0xFE}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.e.AppendBinary(nil)
			if err != nil || !bytes.Equal(got, tt.wire) {
				t.Errorf("encoded %x, %v; want %x", got, err, tt.wire)
			}
			if back, err := ParseEnhanced(tt.wire); err != nil || back != tt.e {
				t.Errorf("parsed %+v, %v; want %+v", back, err, tt.e)
			}
		})
	}
	if _, err := (Enhanced{IRD: 1 << 14}).AppendBinary(nil); err == nil {
		t.Error("an IRD of 15 bits was encoded")
	}
	if _, err := ParseEnhanced([]byte{0, 0, 0}); err == nil {
		t.Error("three octets were taken for an enhanced block")
	}
}

func TestRTRFlagsAreIgnoredWithoutPeerToPeer(t *testing.T) {
	e, err := ParseEnhanced([]byte{0x40, 1, 0xC0, 1}) // A=0 B=1 C=1 D=1
	if err != nil || e.RTR != 0 || e.IRD != 1 || e.ORD != 1 {
		t.Errorf("parsed %+v, %v; want IRD 1, ORD 1 and no RTR", e, err)
	}
	wire, _ := (Enhanced{RTR: RTRAll, IRD: 1, ORD: 1}).AppendBinary(nil)
	if !bytes.Equal(wire, []byte{0, 1, 0, 1}) {
		t.Errorf("encoded %x; with A=0, B, C and D must be 0", wire)
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, tt := range frameTable {
		f.Add(tt.wire)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, n, err := ParseFrame(b)
		if err != nil {
			return
		}
		got, err := frame.AppendBinary(nil)
		if err != nil || !bytes.Equal(got, b[:n]) {
			t.Fatalf("%x came back as %x, %v", b[:n], got, err)
		}
		_ = frame.String()
		if frame.Enhanced {
			if e, err := ParseEnhanced(frame.PrivateData); err == nil && e.PeerToPeer {
				if got, err := e.AppendBinary(nil); err != nil || !bytes.Equal(got, frame.PrivateData[:EnhancedLen]) {
					t.Fatalf("%x came back as %x, %v", frame.PrivateData[:EnhancedLen], got, err)
				}
			}
		}
	})
}
