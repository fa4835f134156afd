package dissect

import (
	"net/netip"

	"urnic/internal/capture"
	"urnic/mpa"
)

// A DatagramULP is a ULP that UDP carries.
type DatagramULP interface {
	ULP
	// Datagram takes a UDP datagram. open makes a connection of the analysis, or returns
	// nil if there are too many that have not ended; see Reporter.End.
	Datagram(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *Reporter)
	// EndDatagrams reports that nothing more comes.
	EndDatagrams()
}

// An IPULP is a DatagramULP that IP carries as well, as protocol 27.
type IPULP interface {
	DatagramULP
	// IP takes what an IP packet of the protocol carries. The ports of d are 0.
	IP(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *Reporter)
}

// maxLoose bounds the connections of RoCEv2, UDP and IP that have not ended.
const maxLoose = 1 << 14

// open makes a connection of the analysis of something else than TCP.
func (a *analysis) open(at capture.At, t Transport, client, server netip.AddrPort) *Reporter {
	if len(a.loose) >= maxLoose {
		return nil
	}
	f := newFollower(a, &capture.Conn{Ends: [2]netip.AddrPort{client, server}})
	f.recognise(at, t)
	f.request, f.reply = &mpa.Frame{}, &mpa.Frame{} // there is no start-up that could be missing
	if a.loose == nil {
		a.loose = make(map[*follower]struct{})
	}
	a.loose[f] = struct{}{}
	return &Reporter{f}
}

// begin takes notice of the time of a packet that is none of TCP.
func (a *analysis) begin(at capture.At) {
	if a.result.Start.IsZero() {
		a.result.Start = at.Time
	}
}

// packet hands a packet of RoCEv2 on.
func (a *analysis) packet(u RoCEULP) func(at capture.At, src, dst netip.Addr, b []byte) {
	return func(at capture.At, src, dst netip.Addr, b []byte) {
		a.begin(at)
		u.Packet(at, src, dst, b, func(client, server netip.AddrPort) *Reporter {
			return a.open(at, RoCEv2, client, server)
		})
	}
}

// datagram hands a UDP datagram on.
func (a *analysis) datagram(u DatagramULP) func(at capture.At, d *capture.Datagram) {
	return func(at capture.At, d *capture.Datagram) { u.Datagram(at, d, a.opener(at, UDP)) }
}

// ip hands an IP packet of protocol 27 on.
func (a *analysis) ip(u IPULP) func(at capture.At, d *capture.Datagram) {
	return func(at capture.At, d *capture.Datagram) { u.IP(at, d, a.opener(at, IP)) }
}

// opener returns what makes a connection of the analysis.
func (a *analysis) opener(at capture.At, t Transport) func(client, server netip.AddrPort) *Reporter {
	return func(client, server netip.AddrPort) *Reporter {
		a.begin(at)
		return a.open(at, t, client, server)
	}
}

// endLoose takes leave of the connections that nothing else has ended.
func (a *analysis) endLoose() {
	if u, ok := a.ulp.(DatagramULP); ok {
		u.EndDatagrams()
	}
	for f := range a.loose {
		f.endLoose()
	}
	a.loose = nil
}

// End reports that nothing more comes of a connection of RoCEv2, UDP or IP.
func (r *Reporter) End() {
	if _, open := r.f.a.loose[r.f]; open {
		delete(r.f.a.loose, r.f)
		r.f.endLoose()
	}
}

// endLoose takes leave of a connection of RoCEv2, UDP or IP.
func (f *follower) endLoose() {
	if f.carries {
		f.End()
		return
	}
	f.sum()
}
