package wire

// A DebugStats is the reply to DebugGetStats: counts since the server started.
type DebugStats struct {
	PacketRequests         int32
	ReceiveAllocFailures   int32
	SendAllocFailures      int32
	SpecialAllocFailures   int32
	SocketGreedy           int32 // the socket has large buffers
	BogusPackets           int32 // datagrams that are too short
	BogusHost              int32 // who sent the last of them
	NoPacketOnRead         int32
	NoPacketBuffersOnRead  int32
	Selects                int32
	SendSelects            int32
	PacketsRead            [13]int32 // by type, from TypeData on
	DataRead               int32     // without duplicates
	AcksRead               int32
	DuplicatesRead         int32
	SpuriousRead           int32
	PacketsSent            [13]int32 // by type, from TypeData on
	AcksSent               int32
	PingsSent              int32
	AbortsSent             int32
	BusiesSent             int32
	DataSent               int32 // without those sent again
	DataResent             int32
	DataPushed             int32 // sent again because of an acknowledgement
	IgnoredAcked           int32
	TotalRTT               DebugTime
	MinRTT                 DebugTime
	MaxRTT                 DebugTime
	RTTSamples             int32
	ServerConns            int32
	ClientConns            int32
	Peers                  int32
	Calls                  int32
	FreeCalls              int32
	SendFailures           int32
	FatalErrors            int32
	IgnoredDally           int32
	ReceiveBufAllocFailure int32
	SendBufAllocFailure    int32
	Busies                 int32
	Reserved               [4]int32
}

// ParseDebugStats decodes a reply to DebugGetStats.
func ParseDebugStats(b []byte) (DebugStats, error) {
	if len(b) < DebugStatsLen {
		return DebugStats{}, &ShortError{What: "debug reply of statistics", Have: len(b), Want: DebugStatsLen}
	}
	var d DebugStats
	r := reader(b)
	d.PacketRequests = r.i32()
	d.ReceiveAllocFailures = r.i32()
	d.SendAllocFailures = r.i32()
	d.SpecialAllocFailures = r.i32()
	d.SocketGreedy = r.i32()
	d.BogusPackets = r.i32()
	d.BogusHost = r.i32()
	d.NoPacketOnRead = r.i32()
	d.NoPacketBuffersOnRead = r.i32()
	d.Selects = r.i32()
	d.SendSelects = r.i32()
	r.words(d.PacketsRead[:])
	d.DataRead = r.i32()
	d.AcksRead = r.i32()
	d.DuplicatesRead = r.i32()
	d.SpuriousRead = r.i32()
	r.words(d.PacketsSent[:])
	d.AcksSent = r.i32()
	d.PingsSent = r.i32()
	d.AbortsSent = r.i32()
	d.BusiesSent = r.i32()
	d.DataSent = r.i32()
	d.DataResent = r.i32()
	d.DataPushed = r.i32()
	d.IgnoredAcked = r.i32()
	d.TotalRTT = r.time()
	d.MinRTT = r.time()
	d.MaxRTT = r.time()
	d.RTTSamples = r.i32()
	d.ServerConns = r.i32()
	d.ClientConns = r.i32()
	d.Peers = r.i32()
	d.Calls = r.i32()
	d.FreeCalls = r.i32()
	d.SendFailures = r.i32()
	d.FatalErrors = r.i32()
	d.IgnoredDally = r.i32()
	d.ReceiveBufAllocFailure = r.i32()
	d.SendBufAllocFailure = r.i32()
	d.Busies = r.i32()
	r.words(d.Reserved[:])
	return d, nil
}

// Append appends the reply to b.
func (d *DebugStats) Append(b []byte) []byte {
	b = appendWords(b, []int32{
		d.PacketRequests, d.ReceiveAllocFailures, d.SendAllocFailures, d.SpecialAllocFailures,
		d.SocketGreedy, d.BogusPackets, d.BogusHost, d.NoPacketOnRead,
		d.NoPacketBuffersOnRead, d.Selects, d.SendSelects,
	})
	b = appendWords(b, d.PacketsRead[:])
	b = appendWords(b, []int32{
		d.DataRead, d.AcksRead, d.DuplicatesRead, d.SpuriousRead,
	})
	b = appendWords(b, d.PacketsSent[:])
	b = appendWords(b, []int32{
		d.AcksSent, d.PingsSent, d.AbortsSent, d.BusiesSent,
		d.DataSent, d.DataResent, d.DataPushed, d.IgnoredAcked,
		d.TotalRTT.Sec, d.TotalRTT.Usec, d.MinRTT.Sec, d.MinRTT.Usec,
		d.MaxRTT.Sec, d.MaxRTT.Usec, d.RTTSamples, d.ServerConns,
		d.ClientConns, d.Peers, d.Calls, d.FreeCalls,
		d.SendFailures, d.FatalErrors, d.IgnoredDally, d.ReceiveBufAllocFailure,
		d.SendBufAllocFailure, d.Busies,
	})
	b = appendWords(b, d.Reserved[:])
	return b
}
