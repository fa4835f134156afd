package dissect

import (
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/rdmap"
)

// A Transport is what carries a connection.
type Transport uint8

// The transports.
const (
	IWARP  Transport = iota
	TCP              // by itself, without iWARP
	RoCEv2           // RDMA over UDP
	UDP
	IP  // RDP, by its protocol number
	RDP // DDP over RDP, which UDP or IP carries
)

// String returns the transport's name, which is the one in JSON.
func (t Transport) String() string {
	return [...]string{"iWARP", "TCP", "RoCEv2", "UDP", "IP", "RDP"}[t]
}

// A StreamULP is a ULP that TCP carries without iWARP as well.
type StreamULP interface {
	ULP
	// Begins judges the bytes with which a side's stream begins, or, without start,
	// those with which the capture picks it up. If the connection carries the protocol, it
	// returns what makes its follower. Maybe asks to see more.
	Begins(ends [2]netip.AddrPort, start bool, b []byte) (follow func(*Reporter) StreamUpper, maybe bool)
}

// A StreamUpper follows a connection that TCP carries without iWARP. The client is the
// side that opened it.
type StreamUpper interface {
	// Data brings the next bytes of a side. They are valid during the call.
	Data(from Side, at capture.At, b []byte)
	// Hole says that the next n bytes of a side were not captured.
	Hole(from Side, at capture.At, n int)
	// Close says that a side closed its stream, or reset the connection.
	Close(from Side, at capture.At, reset bool)
	// End reports that nothing more comes.
	End(at capture.At)
}

// A RoCEULP is a ULP that RoCEv2 carries as well.
type RoCEULP interface {
	ULP
	// Packet takes a packet: what UDP carries. open makes a connection of the analysis, or
	// returns nil if there are too many.
	Packet(at capture.At, src, dst netip.Addr, b []byte, open func(client, server netip.AddrPort) *Reporter)
}

// upon reports whether a stream carries the ULP without iWARP. If so, the ULP gets it.
func (s *stream) upon(b []byte) (yes, maybe bool) {
	f, o := s.f, s.peer()
	u, ok := f.a.ulp.(StreamULP)
	if !ok || f.con != nil || f.tentative || o.phase != phaseSearch && o.phase != phaseHunt {
		return false, false
	}
	follow, maybe := u.Begins(f.tcp.Ends, f.tcp.FromStart[s.id] && s.pos == 0, b)
	if follow == nil {
		return false, maybe
	}
	f.client = capture.Opener
	f.recognise(s.at, TCP)
	f.direct = follow(&Reporter{f})
	begins := o.phase == phaseSearch
	s.phase, o.phase = phaseDirect, phaseDirect
	if begins {
		o.feed(s.at, nil)
		return true, false
	}
	n := len(o.buf) // behind a hole
	o.keep(nil)
	f.con.Undecoded += uint64(n)
	f.direct.Hole(f.side(o.id), s.at, n)
	return true, false
}

// directly hands bytes of a stream that carries the ULP without iWARP on.
func (s *stream) directly(at capture.At, b []byte) (int, bool) {
	s.f.direct.Data(s.f.side(s.id), at, b)
	return len(b), false
}

// holeDirect takes notice of a hole in such a stream.
func (f *follower) holeDirect(from capture.Side, at capture.At, n int) {
	f.note(from, at, "not captured: %s that the %v sent", plural.Count(n, "byte"), f.side(from))
	f.con.Undecoded += uint64(n)
	f.direct.Hole(f.side(from), at, n)
}

// An AtomicUpper is an Upper that wants to know of Atomics.
type AtomicUpper interface {
	Upper
	// Atomic takes an Atomic Request for the other side's memory, and returns what it is for.
	Atomic(from Side, at capture.At, r *rdmap.AtomicRequest) (use string)
}

// atomicAbove shows the ULP an Atomic Request.
func (s *stream) atomicAbove(at capture.At, m *Message) {
	if u, ok := s.f.above().(AtomicUpper); ok {
		m.Use = u.Atomic(s.f.side(s.id), at, m.AtomicRequest)
	}
}
