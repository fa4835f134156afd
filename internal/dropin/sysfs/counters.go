package sysfs

import "strconv"

// uncounted are the files of a port's directory counters that say 0: a link that is TCP and UDP has none of these.
var uncounted = []string{
	"VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery", "local_link_integrity_errors",
	"port_rcv_constraint_errors", "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_constraint_errors",
	"port_xmit_discards", "port_xmit_wait", "symbol_error",
}

// A Counter is what is counted for a port. Data are counted in units of 4 bytes, as on InfiniBand, and packets are messages.
type Counter uint8

// The counters.
const (
	XmitData Counter = iota
	RcvData
	XmitPackets
	RcvPackets
	UnicastXmitPackets
	UnicastRcvPackets
	MulticastXmitPackets
	MulticastRcvPackets
	RcvErrors
	WriteRequests
	ReadRequests
	AtomicRequests
	OutOfBuffer
	Counters // how many there are
)

var counterFiles = [Counters]string{
	XmitData: "counters/port_xmit_data", RcvData: "counters/port_rcv_data",
	XmitPackets: "counters/port_xmit_packets", RcvPackets: "counters/port_rcv_packets",
	UnicastXmitPackets: "counters/unicast_xmit_packets", UnicastRcvPackets: "counters/unicast_rcv_packets",
	MulticastXmitPackets: "counters/multicast_xmit_packets", MulticastRcvPackets: "counters/multicast_rcv_packets",
	RcvErrors:     "counters/port_rcv_errors",
	WriteRequests: "hw_counters/rx_write_requests", ReadRequests: "hw_counters/rx_read_requests", AtomicRequests: "hw_counters/rx_atomic_requests",
	OutOfBuffer: "hw_counters/out_of_buffer",
}

// CounterFile returns the name of a counter's file, for a port from 1 on.
func CounterFile(device string, port int, c Counter) string {
	return "class/infiniband/" + device + "/ports/" + strconv.Itoa(port) + "/" + counterFiles[c]
}
