package wire

import (
	"bytes"
	"net/netip"
	"testing"
)

// counting returns n bytes that count from 1, so that each field has a value of its own.
func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

func TestDebugRequests(t *testing.T) {
	b := []byte{0, 0, 0, 3, 0xff, 0xff, 0xff, 0xfe}
	r, err := ParseDebugRequest(append(bytes.Clone(b), 9))
	if err != nil || r != (DebugRequest{DebugGetAllConns, -2}) {
		t.Errorf("%v, %v", r, err)
	}
	if again := r.Append(nil); !bytes.Equal(again, b) {
		t.Errorf("% x", again)
	}
	for n := range DebugRequestLen {
		if _, err := ParseDebugRequest(b[:n]); !short(err, n, DebugRequestLen) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestABadTypeIsAnsweredByTwoWords(t *testing.T) {
	b := AppendDebugBadType(nil)
	if !bytes.Equal(b, []byte{0xff, 0xff, 0xff, 0xf8, 0xff, 0xff, 0xff, 0xf8}) || !IsDebugBadType(b) {
		t.Errorf("% x", b)
	}
	for _, other := range [][]byte{nil, b[:7], append(bytes.Clone(b), 0), make([]byte, 8)} {
		if IsDebugBadType(other) {
			t.Errorf("% x is taken for it", other)
		}
	}
}

// Of each reply, known fields stand at known places, every shorter one is an error, and all
// bytes come out again.
func TestDebugReplies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		parse func(b []byte) (again []byte, fields []uint64, err error)
		want  []uint64
	}{
		{"basic", DebugBasicLen, func(b []byte) ([]byte, []uint64, error) {
			d, err := ParseDebugBasic(b)
			return d.Append(nil), []uint64{uint64(d.FreePackets), uint64(d.Version), uint64(d.Waiting), uint64(d.Packets)}, err
		}, []uint64{0x01020304, 15, 0x11121314, 0x1d1e1f20}},
		{"statistics", DebugStatsLen, func(b []byte) ([]byte, []uint64, error) {
			d, err := ParseDebugStats(b)
			return d.Append(nil), []uint64{
				uint64(d.PacketsRead[0]), uint64(d.DataRead), uint64(uint32(d.PacketsSent[12])), uint64(uint32(d.AcksSent)),
				uint64(uint32(d.TotalRTT.Sec)), uint64(uint32(d.RTTSamples)), uint64(uint32(d.Busies)),
			}, err
		}, []uint64{word4(44), word4(96), word4(160), word4(164), word4(196), word4(220), word4(264)}},
		{"peer", DebugPeerLen, func(b []byte) ([]byte, []uint64, error) {
			d, err := ParseDebugPeer(b)
			return d.Append(nil), []uint64{
				uint64(d.Host), uint64(d.Port), uint64(d.IfMTU), uint64(d.RTT), uint64(d.Sent), uint64(d.NatMTU), uint64(d.MTU),
				uint64(d.CongSequence), d.BytesSent, d.BytesReceived,
			}, err
		}, []uint64{
			0x01020304, 0x0506, 0x0708, word4(24), word4(40), 0x3d3e, 0x4546, 0x4b4c, 0x4d4e4f5051525354, 0x55565758595a5b5c,
		}},
		{"connection", DebugConnLen, func(b []byte) ([]byte, []uint64, error) {
			d, err := ParseDebugConn(b, DebugVersion)
			return d.Append(nil), []uint64{
				uint64(d.CID), uint64(d.Calls[3]), uint64(d.Error), uint64(d.Port), uint64(d.Type), uint64(d.Security),
				uint64(d.States[0]), uint64(d.Modes[0]), uint64(d.CallFlags[0]), uint64(d.Other[3]),
				uint64(d.Stats.Type), uint64(d.Stats.Flags), uint64(d.Stats.BytesSent), uint64(d.Epoch), uint64(uint32(d.NatMTU)),
			}, err
		}, []uint64{0x05060708, word4(24), word4(28), 0x2122, 36, 37, 41, 45, 49, 56, 57, word4(68), word4(88), word4(132), word4(136)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := counting(tt.n)
			again, fields, err := tt.parse(append(bytes.Clone(b), 0xee))
			if err != nil || !bytes.Equal(again, b) {
				t.Errorf("%v: % x\nencodes as % x", err, b, again)
			}
			for i, want := range tt.want {
				if fields[i] != want {
					t.Errorf("field %d is %x, want %x", i, fields[i], want)
				}
			}
			for n := range tt.n {
				if _, _, err := tt.parse(b[:n]); !short(err, n, tt.n) {
					t.Fatalf("%d bytes: %v", n, err)
				}
			}
		})
	}
}

// word4 is the word at an offset of what counting returns.
func word4(at int) uint64 {
	return uint64(byte(at+1))<<24 | uint64(byte(at+2))<<16 | uint64(byte(at+3))<<8 | uint64(byte(at+4))
}

func TestOldConnectionsHaveNoGapInFrontOfTheStates(t *testing.T) {
	b := counting(DebugOldConnLen)
	d, err := ParseDebugConn(b, DebugVersionMin)
	if err != nil || d.Security != 37 || d.States != [4]DebugState{38, 39, 40, 41} || d.Other != [4]DebugQueues{50, 51, 52, 53} {
		t.Errorf("%+v, %v", d, err)
	}
	if d.Stats.Type != 57 || d.Stats.BytesSent != uint32(word4(88)) || d.Epoch != 0 || d.NatMTU != 0 {
		t.Errorf("%+v", d)
	}
	for n := range DebugOldConnLen {
		if _, err := ParseDebugConn(b[:n], DebugVersionMin); !short(err, n, DebugOldConnLen) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestListsEndWithAllOnes(t *testing.T) {
	for _, tt := range []struct {
		conn DebugConn
		peer DebugPeer
		want bool
	}{
		{DebugConn{CID: 0xffffffff}, DebugPeer{Host: 0xffffffff}, true},
		{DebugConn{Host: 0xffffffff}, DebugPeer{Port: 0xffff}, false},
	} {
		if tt.conn.End() != tt.want || tt.peer.End() != tt.want {
			t.Errorf("%v %v: %t %t", tt.conn.CID, tt.peer.Host, tt.conn.End(), tt.peer.End())
		}
	}
}

func TestAddressesOfDebugReplies(t *testing.T) {
	want := netip.MustParseAddrPort("192.0.2.9:7001")
	if got := (&DebugConn{Host: 0xc0000209, Port: 7001}).Addr(); got != want {
		t.Error(got)
	}
	if got := (&DebugPeer{Host: 0xc0000209, Port: 7001}).Addr(); got != want {
		t.Error(got)
	}
}

func TestDebugTypesHaveNames(t *testing.T) {
	for typ, want := range map[DebugType]string{1: "basic", 5: "peer", 0: "debug type 0", 6: "debug type 6", -8: "debug type -8"} {
		if got := typ.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
