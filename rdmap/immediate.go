package rdmap

// ImmediateLen is the length of Immediate Data in octets: no more, no less
// (RFC 7306 §6.3).
const ImmediateLen = 8

// Immediate is the data of an Immediate Data message, as the ULP gave it.
type Immediate [ImmediateLen]byte

// ParseImmediate reads Immediate Data; b is the whole ULP Payload of its DDP
// message. It fails unless b is ImmediateLen octets long.
func ParseImmediate(o Opcode, b []byte) (Immediate, error) {
	if len(b) != ImmediateLen {
		return Immediate{}, wrongLength(o, len(b))
	}
	return Immediate(b), nil
}
