package rdp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"urnic/ulp/rdp/machine"
)

// An Info is what an endpoint has, for people and programs that look into it.
type Info struct {
	Addr        netip.AddrPort   `json:"addr"`    // of the carrier; its port is 0 for raw IP
	Seconds     int64            `json:"seconds"` // since Open
	Listeners   []ListenerInfo   `json:"listeners"`
	Connections []ConnInfo       `json:"connections"` // in any state but CLOSED
	HalfOpen    int              `json:"half_open"`   // connections that peers have begun and that are not open
	Memory      int              `json:"memory"`      // bytes of data that was received and not read
	Counters    machine.Counters `json:"counters"`
}

// A ListenerInfo is what a listener has.
type ListenerInfo struct {
	Port    uint16 `json:"port"`
	Pending int    `json:"pending"` // connections that are half-open or wait for Accept
}

// A ConnInfo is what a connection has. Sizes and times are those of Status.
type ConnInfo struct {
	Version        uint8          `json:"version"`
	Port           uint16         `json:"port"`
	Peer           netip.AddrPort `json:"peer"`
	PeerPort       uint16         `json:"peer_port"`
	State          string         `json:"state"`
	Sequenced      bool           `json:"sequenced"`
	Unacknowledged int            `json:"unacknowledged"`
	Queued         int            `json:"queued"`
	Held           int            `json:"held"`
	RecvMax        int            `json:"recv_max"`
	SendMax        int            `json:"send_max"`
	Window         int            `json:"window"`
	Congestion     *int           `json:"congestion_window"` // nil: nothing bounds it
	InFlight       int            `json:"in_flight"`
	RTT            float64        `json:"rtt_ms"`
	Timeout        float64        `json:"timeout_ms"`
	Error          string         `json:"error,omitempty"`
	Stats          machine.Stats  `json:"stats"`
}

// noBound is what a congestion window is from on that bounds nothing.
const noBound = 1 << 30

// Info returns what the endpoint has now.
func (e *Endpoint) Info() *Info {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := &Info{
		Addr: e.carrier.LocalAddr(), Seconds: int64(time.Since(e.start).Seconds()),
		Listeners: []ListenerInfo{}, Connections: []ConnInfo{}, HalfOpen: e.m.HalfOpen(), Memory: e.m.Memory(), Counters: e.m.Counters(),
	}
	for ml := range e.listeners {
		i.Listeners = append(i.Listeners, ListenerInfo{ml.Port(), ml.Pending()})
	}
	slices.SortFunc(i.Listeners, func(a, b ListenerInfo) int { return cmp.Compare(a.Port, b.Port) })
	for _, mc := range e.m.All() {
		n, s := mc.Name(), mc.Status()
		c := ConnInfo{
			Version: n.Version, Port: n.Local, Peer: n.Path.Remote, PeerPort: n.Remote, State: s.State.String(), Sequenced: mc.Sequenced(),
			Unacknowledged: s.Unacknowledged, Queued: s.Queued, Held: s.Held, RecvMax: s.RecvMax, SendMax: s.SendMax, Window: s.Window,
			InFlight: s.InFlight, RTT: milliseconds(s.RTT), Timeout: milliseconds(s.Timeout), Stats: s.Stats,
		}
		if s.Congestion < noBound && s.State == machine.Open {
			c.Congestion = &s.Congestion
		}
		if s.Err != nil {
			c.Error = s.Err.Error()
		}
		i.Connections = append(i.Connections, c)
	}
	return i
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
