package machine

import (
	"time"

	"urnic/ulp/rx/wire"
)

// Stats counts events of an endpoint.
type Stats struct {
	Read, Sent [16]uint32 // packets by type

	Data, Duplicates                uint32 // data packets that arrived, and that had arrived before
	DataSent, Resent                uint32 // data packets for the first time, and again
	Acks, AcksSent, Pings           uint32
	Nacks, Recoveries, Timeouts     uint32 // negative acknowledgements, and what followed
	Pushed                          uint32 // packets that were sent again for a negative acknowledgement
	Aborted                         uint32 // aborts received
	Busies                          uint32 // calls that found their channel busy
	Refused                         uint32 // responses that were not accepted
	Unreachable                     uint32 // calls to a port without a program
	Evicted                         uint32 // connections that made room for others
	Upgrades                        uint32
	PathsFound                      uint32 // larger datagrams that were found to arrive
	Offered                         uint32 // calls passed to programs
	Calls, LiveCalls                uint32
	ClientConns, ServerConns, Peers uint32
	RTT                             RTT
	Drops                           Drops
}

// RTT are the round-trip times that were measured.
type RTT struct {
	Samples     uint32
	Total       time.Duration
	Least, Most time.Duration
}

// Drops count packets that were dropped, by cause.
type Drops struct {
	Short     uint32 // no whole header
	NoConn    uint32 // of no connection, and unable to make one
	NoService uint32 // for a service or security index that does not exist
	Full      uint32 // beyond the maximum of connections
	Index     uint32 // with another security index than its connection
	Type      uint32 // of a type that is not allowed here
	Call      uint32 // of a call that does not exist
	Seq       uint32 // data with sequence number 0
	Window    uint32 // data outside the window
	NoSpace   uint32 // data without memory for it
	Jumbo     uint32 // jumbograms that were cut short
	Ack       uint32 // acknowledgements that are short, old, or of what was never sent
	Seal      uint32 // data that failed its security class
	Challenge uint32 // challenges and responses that nothing waits for
	Answer    uint32 // packets without an answer, as too many were answered
}

// Stats returns the counters of the endpoint.
func (m *Machine) Stats() Stats { return m.stats }

// Memory returns how many bytes are held for data that was received and not read: the
// memory of the packets, not only their contents.
func (m *Machine) Memory() int { return m.memory }

func (s *Stats) received(t wire.Type) { s.Read[min(int(t), len(s.Read)-1)]++ }

func (s *Stats) sent(t wire.Type) { s.Sent[min(int(t), len(s.Sent)-1)]++ }

func (s *Stats) sample(r time.Duration) {
	t := &s.RTT
	if t.Samples == 0 || r < t.Least {
		t.Least = r
	}
	t.Most = max(t.Most, r)
	t.Total += r
	t.Samples++
}
