package rxdebug

import (
	"time"

	"urnic/ulp/rx/wire"
)

// A Basic is what every server tells. Fields that are nil came with later versions of the
// protocol than the server's.
type Basic struct {
	FreePackets       int32   `json:"free_packets"`
	Packets           *int32  `json:"packets,omitempty"`
	PacketReclaims    uint32  `json:"packet_reclaims"`
	WaitingForPackets bool    `json:"waiting_for_packets"`
	CallsExecuted     uint32  `json:"calls_executed"`
	UsedFDs           uint8   `json:"used_fds"`
	CallsWaiting      *int32  `json:"calls_waiting,omitempty"` // for a thread
	IdleThreads       *int32  `json:"idle_threads,omitempty"`
	CallsWaited       *uint32 `json:"calls_waited,omitempty"` // ever, for a thread
}

func newBasic(d *wire.DebugBasic) *Basic {
	b := &Basic{
		FreePackets: d.FreePackets, PacketReclaims: uint32(d.PacketReclaims), WaitingForPackets: d.WaitingForPackets != 0,
		CallsExecuted: uint32(d.CallsExecuted), UsedFDs: d.UsedFDs,
	}
	if d.Version >= wire.DebugVersionWaiters {
		b.CallsWaiting = &d.Waiting
	}
	if d.Version >= wire.DebugVersionIdle {
		b.IdleThreads = &d.IdleThreads
	}
	if d.Version >= wire.DebugVersionWaited {
		b.CallsWaited = new(uint32(d.Waited))
	}
	if d.Version >= wire.DebugVersionPackets {
		b.Packets = &d.Packets
	}
	return b
}

// Stats are counts since the server started.
type Stats struct {
	Packets Packets `json:"packets"`
	Data    Data    `json:"data"`
	RTT     RTT     `json:"rtt"`
	Objects Objects `json:"objects"`
	Buffers Buffers `json:"buffers"`
	Reads   Reads   `json:"reads"`
}

// Packets count packets by their types. Types that are nothing but 0 are left out.
type Packets struct {
	Read map[string]uint32 `json:"read"`
	Sent map[string]uint32 `json:"sent"`
}

// Data is what became of packets.
type Data struct {
	DataRead      uint32 `json:"data_read"` // without duplicates
	AcksRead      uint32 `json:"acks_read"`
	Duplicates    uint32 `json:"duplicates_read"`
	Spurious      uint32 `json:"spurious_read"`
	IgnoredDally  uint32 `json:"ignored_dally"` // of calls that were over
	DataSent      uint32 `json:"data_sent"`     // without those sent again
	DataResent    uint32 `json:"data_resent"`
	DataPushed    uint32 `json:"data_pushed"` // sent again because of an acknowledgement
	IgnoredAcked  uint32 `json:"ignored_acked"`
	AcksSent      uint32 `json:"acks_sent"`
	PingsSent     uint32 `json:"pings_sent"`
	AbortsSent    uint32 `json:"aborts_sent"`
	BusiesSent    uint32 `json:"busies_sent"`
	Busies        uint32 `json:"busies"`
	SendFailures  uint32 `json:"send_failures"`
	FatalErrors   uint32 `json:"fatal_errors"`
	SocketSelects uint32 `json:"selects"`
	SendSelects   uint32 `json:"send_selects"`
}

// RTT are round-trip times, in seconds.
type RTT struct {
	Samples uint32  `json:"samples"`
	Total   float64 `json:"total_seconds"`
	Mean    float64 `json:"mean_seconds"`
	Min     float64 `json:"min_seconds"`
	Max     float64 `json:"max_seconds"`
}

// Objects are what the server has now.
type Objects struct {
	ServerConns uint32 `json:"server_connections"`
	ClientConns uint32 `json:"client_connections"`
	Peers       uint32 `json:"peers"`
	Calls       uint32 `json:"calls"`
	FreeCalls   uint32 `json:"free_calls"`
}

// Buffers count requests for memory for packets, and those that failed, by what the packets
// were for.
type Buffers struct {
	Requests          uint32 `json:"requests"`
	ReceiveFailed     uint32 `json:"receive_failed"`
	ReceiveCbufFailed uint32 `json:"receive_cbuf_failed"`
	SendFailed        uint32 `json:"send_failed"`
	SendCbufFailed    uint32 `json:"send_cbuf_failed"`
	SpecialFailed     uint32 `json:"special_failed"`
	Greedy            bool   `json:"socket_greedy"` // the socket has large buffers
}

// Reads count reads that brought no packet of use.
type Reads struct {
	Bogus     uint32 `json:"bogus"` // too short
	BogusHost string `json:"bogus_host,omitempty"`
	NoPacket  uint32 `json:"no_packet"`
	NoBuffers uint32 `json:"no_buffers"`
}

func newStats(d *wire.DebugStats) *Stats {
	s := &Stats{
		Packets: Packets{Read: byType(d.PacketsRead[:]), Sent: byType(d.PacketsSent[:])},
		Data: Data{
			DataRead: uint32(d.DataRead), AcksRead: uint32(d.AcksRead), Duplicates: uint32(d.DuplicatesRead),
			Spurious: uint32(d.SpuriousRead), IgnoredDally: uint32(d.IgnoredDally), DataSent: uint32(d.DataSent),
			DataResent: uint32(d.DataResent), DataPushed: uint32(d.DataPushed), IgnoredAcked: uint32(d.IgnoredAcked),
			AcksSent: uint32(d.AcksSent), PingsSent: uint32(d.PingsSent), AbortsSent: uint32(d.AbortsSent),
			BusiesSent: uint32(d.BusiesSent), Busies: uint32(d.Busies), SendFailures: uint32(d.SendFailures),
			FatalErrors: uint32(d.FatalErrors), SocketSelects: uint32(d.Selects), SendSelects: uint32(d.SendSelects),
		},
		RTT: RTT{Samples: uint32(d.RTTSamples), Total: seconds(d.TotalRTT), Min: seconds(d.MinRTT), Max: seconds(d.MaxRTT)},
		Objects: Objects{
			uint32(d.ServerConns), uint32(d.ClientConns), uint32(d.Peers), uint32(d.Calls), uint32(d.FreeCalls),
		},
		Buffers: Buffers{
			Requests: uint32(d.PacketRequests), ReceiveFailed: uint32(d.ReceiveAllocFailures),
			ReceiveCbufFailed: uint32(d.ReceiveBufAllocFailure), SendFailed: uint32(d.SendAllocFailures),
			SendCbufFailed: uint32(d.SendBufAllocFailure), SpecialFailed: uint32(d.SpecialAllocFailures), Greedy: d.SocketGreedy != 0,
		},
		Reads: Reads{Bogus: uint32(d.BogusPackets), NoPacket: uint32(d.NoPacketOnRead), NoBuffers: uint32(d.NoPacketBuffersOnRead)},
	}
	if d.BogusHost != 0 {
		s.Reads.BogusHost = bogusHost(d.BogusHost)
	}
	if s.RTT.Samples > 0 {
		s.RTT.Mean = s.RTT.Total / float64(s.RTT.Samples)
	}
	return s
}

// byType names counts of packets by their types, the first of which is data.
func byType(counts []int32) map[string]uint32 {
	m := make(map[string]uint32)
	for i, n := range counts {
		if n != 0 {
			m[(wire.TypeData + wire.Type(i)).String()] = uint32(n)
		}
	}
	return m
}

func seconds(t wire.DebugTime) float64 { return duration(t).Seconds() }

func duration(t wire.DebugTime) time.Duration {
	return time.Duration(t.Sec)*time.Second + time.Duration(t.Usec)*time.Microsecond
}
