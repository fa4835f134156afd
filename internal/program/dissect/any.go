package dissect

import (
	"net/netip"

	"urnic/internal/capture"
)

// AnyULP follows the first of several upper layer protocols that finds itself in a connection.
type AnyULP []ULP

// New returns what asks each of them.
func (all AnyULP) New(r *Reporter) Upper {
	u := &anyUpper{}
	for _, ulp := range all {
		u.all = append(u.all, ulp.New(r))
	}
	return u
}

// Begins asks each of them that TCP carries as well.
func (all AnyULP) Begins(ends [2]netip.AddrPort, start bool, b []byte) (follow func(*Reporter) StreamUpper, maybe bool) {
	for _, ulp := range all {
		u, ok := ulp.(StreamULP)
		if !ok {
			continue
		}
		follow, more := u.Begins(ends, start, b)
		if follow != nil {
			return follow, false
		}
		maybe = maybe || more
	}
	return nil, maybe
}

// Packet shows a packet of RoCEv2 to each of them that it may carry.
func (all AnyULP) Packet(at capture.At, src, dst netip.Addr, b []byte, open func(client, server netip.AddrPort) *Reporter) {
	for _, ulp := range all {
		if u, ok := ulp.(RoCEULP); ok {
			u.Packet(at, src, dst, b, open)
		}
	}
}

// Datagram shows a UDP datagram to each of them that UDP may carry.
func (all AnyULP) Datagram(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *Reporter) {
	for _, ulp := range all {
		if u, ok := ulp.(DatagramULP); ok {
			u.Datagram(at, d, open)
		}
	}
}

// IP shows a packet of IP protocol 27 to each of them that it may be of.
func (all AnyULP) IP(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *Reporter) {
	for _, ulp := range all {
		if u, ok := ulp.(IPULP); ok {
			u.IP(at, d, open)
		}
	}
}

// EndDatagrams tells each of them that UDP may carry that nothing more comes.
func (all AnyULP) EndDatagrams() {
	for _, ulp := range all {
		if u, ok := ulp.(DatagramULP); ok {
			u.EndDatagrams()
		}
	}
}

// An anyUpper asks several protocols whether they follow a connection. What is called
// after that is called on the one that does.
type anyUpper struct {
	Upper // the chosen one
	all   []Upper
}

// Frame shows a start-up frame to all of them.
func (u *anyUpper) Frame(from Side, at capture.At, private []byte) {
	for _, upper := range u.all {
		upper.Frame(from, at, private)
	}
}

// Follows chooses the first one that follows the connection.
func (u *anyUpper) Follows() bool {
	for _, upper := range u.all {
		if upper.Follows() {
			u.Upper = upper
			return true
		}
	}
	return false
}
