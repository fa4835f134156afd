package wire

// A DebugBasic is the reply to DebugGetBasic. The draft says that its first byte is the
// version; it is byte 14.
type DebugBasic struct {
	FreePackets       int32
	PacketReclaims    int32
	CallsExecuted     int32
	WaitingForPackets uint8
	UsedFDs           uint8
	Version           uint8 // of the debug protocol, a letter
	Reserved1         uint8
	Waiting           int32 // calls without a thread, now
	IdleThreads       int32
	Waited            int32 // calls that had to wait for a thread, ever
	Packets           int32
	Reserved          [6]int32
}

// ParseDebugBasic decodes a reply to DebugGetBasic.
func ParseDebugBasic(b []byte) (DebugBasic, error) {
	if len(b) < DebugBasicLen {
		return DebugBasic{}, &ShortError{What: "debug reply of basic statistics", Have: len(b), Want: DebugBasicLen}
	}
	r := reader(b)
	d := DebugBasic{
		FreePackets:       r.i32(),
		PacketReclaims:    r.i32(),
		CallsExecuted:     r.i32(),
		WaitingForPackets: r.u8(),
		UsedFDs:           r.u8(),
		Version:           r.u8(),
		Reserved1:         r.u8(),
		Waiting:           r.i32(),
		IdleThreads:       r.i32(),
		Waited:            r.i32(),
		Packets:           r.i32(),
	}
	r.words(d.Reserved[:])
	return d, nil
}

// Append appends the reply to b.
func (d *DebugBasic) Append(b []byte) []byte {
	b = appendWords(b, []int32{d.FreePackets, d.PacketReclaims, d.CallsExecuted})
	b = append(b, d.WaitingForPackets, d.UsedFDs, d.Version, d.Reserved1)
	b = appendWords(b, []int32{d.Waiting, d.IdleThreads, d.Waited, d.Packets})
	b = appendWords(b, d.Reserved[:])
	return b
}
