package wire

import "encoding/binary"

// A DebugTime is a point in time or a duration, in a debug reply.
type DebugTime struct{ Sec, Usec int32 }

func (t DebugTime) append(b []byte) []byte { return appendWords(b, []int32{t.Sec, t.Usec}) }

// A reader takes fields from the front of bytes that are enough: its user has checked.
type reader []byte

func (r *reader) take(n int) []byte {
	v := (*r)[:n]
	*r = (*r)[n:]
	return v
}

func (r *reader) u8() uint8       { return r.take(1)[0] }
func (r *reader) u16() uint16     { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32     { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) i32() int32      { return int32(r.u32()) }
func (r *reader) u64() uint64     { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) time() DebugTime { return DebugTime{Sec: r.i32(), Usec: r.i32()} }

func (r *reader) words(to []int32) {
	for i := range to {
		to[i] = r.i32()
	}
}

func appendWords(b []byte, words []int32) []byte {
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, uint32(w))
	}
	return b
}

func appendUints(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

func appendShorts(b []byte, shorts ...uint16) []byte {
	for _, s := range shorts {
		b = binary.BigEndian.AppendUint16(b, s)
	}
	return b
}
