package rdp

import (
	"net/netip"

	"urnic/ulp/rdp/machine"
)

// A Config describes an endpoint.
type Config struct {
	// Carrier moves the segments. Open takes it over, also if it fails.
	Carrier Carrier

	// Protocol has the settings of the protocol; the zero Config is useful. Its Start is set by Open.
	Protocol machine.Config

	// Recorder is notified of each segment, or nil.
	Recorder Recorder
}

// Params are what both an active and a passive open say of connections: sizes, window, order of delivery. A Window of 0 is as
// large as the carrier's buffer has room for, from 16 to 256 segments, or 64 if the carrier does not tell. A
// SendLimit of 0 is what fits one packet on the path, as far as the system knows.
type Params = machine.Params

// A DialConfig describes an active open.
type DialConfig struct {
	Host    netip.AddrPort // of the peer's carrier; a port of 0 is DefaultPort where carriers have ports
	Port    uint16         // of RDP: the peer's
	Local   uint16         // of RDP: this end's; 0 has one chosen
	Version uint8          // 1 or 2; 0 is 2
	Params
}

// A ListenConfig describes a passive open.
type ListenConfig struct {
	Port uint16 // of RDP

	// Versions are those of the SYNs that are accepted; 0: those of the endpoint that have such a port.
	Versions machine.Versions

	// Host and Remote are the only ones from which connections are accepted, if they are not zero (RFC 908 §3.2.1).
	Host   netip.AddrPort
	Remote uint16

	Backlog int // connections that are half-open or wait for Accept (128)
	Params
}

// A Recorder is notified of the segments of an endpoint, in the order in which they leave and arrive. The data is valid until
// the call returns. Calls do not overlap.
type Recorder interface {
	Segment(from, to netip.AddrPort, segment []byte)
}
