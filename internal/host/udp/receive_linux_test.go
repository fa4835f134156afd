package udp

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// control makes a control message.
func control(level, kind int32, data ...byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	h := binary.NativeEndian.AppendUint64(nil, uint64(unix.CmsgLen(len(data))))
	h = h[:unix.SizeofCmsghdr-8]
	if unix.SizeofCmsghdr == 12 { // where lengths have 4 bytes
		h = binary.NativeEndian.AppendUint32(nil, uint32(unix.CmsgLen(len(data))))
	}
	h = binary.NativeEndian.AppendUint32(h, uint32(level))
	h = binary.NativeEndian.AppendUint32(h, uint32(kind))
	copy(b, h)
	copy(b[unix.CmsgLen(0):], data)
	return b
}

func TestSizeOfJoinedDatagramsIsFound(t *testing.T) {
	four := binary.NativeEndian.AppendUint32(nil, 1444)
	two := binary.NativeEndian.AppendUint16(nil, 1444)
	other := control(unix.SOL_SOCKET, 1, 1, 2, 3, 4)
	for name, tt := range map[string]struct {
		oob  []byte
		want int
	}{
		"nothing":         {nil, 0},
		"four bytes":      {control(unix.SOL_UDP, unix.UDP_GRO, four...), 1444},
		"two bytes":       {control(unix.SOL_UDP, unix.UDP_GRO, two...), 1444},
		"behind another":  {append(slices.Clip(other), control(unix.SOL_UDP, unix.UDP_GRO, four...)...), 1444},
		"another":         {other, 0},
		"cut short":       {control(unix.SOL_UDP, unix.UDP_GRO, four...)[:unix.SizeofCmsghdr+1], 0},
		"length of zero":  {make([]byte, 32), 0},
		"too long a word": {control(unix.SOL_UDP, unix.UDP_GRO, make([]byte, 100)...)[:32], 0},
	} {
		if got := segment(tt.oob); got != tt.want {
			t.Errorf("%s: %d; want %d", name, got, tt.want)
		}
	}
}
