package wire

import "encoding/binary"

// AbortLen is the length of the body of an abort packet.
const AbortLen = 4

// ParseAbort decodes the body of an abort packet: a code (draft §4). Without one, the code
// is CallDead, as with OpenAFS.
func ParseAbort(body []byte) int32 {
	if len(body) < AbortLen {
		return int32(CallDead)
	}
	return int32(binary.BigEndian.Uint32(body))
}

// AppendAbort appends the body of an abort packet to b.
func AppendAbort(b []byte, code int32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(code))
}
