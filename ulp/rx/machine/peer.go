package machine

import (
	"net/netip"
	"time"

	"urnic/ulp/rx/wire"
)

// A peer is the state of a host and port, shared by all of its connections.
type peer struct {
	addr  netip.AddrPort
	m     *Machine
	refs  int // connections
	place int // in Machine.peerList
	idle  Time
	timer

	// What its acknowledgements have announced.
	maxMTU, ifMTU, maxPackets uint32

	link      int  // the largest datagram that fits the link
	confirmed int  // the largest datagram that is known to arrive
	refused   int  // a size that did not arrive, until again
	again     Time // when it may be tried again
	probing   bool // a call has an outstanding probe

	srtt, rttvar time.Duration
	sampled      bool
	cwnd         int // where the next call begins

	reached Time // when it last gave a requested sign of life; 0: never

	sent, resent             uint32
	bytesSent, bytesReceived uint64
}

// peer returns the state of an address.
func (m *Machine) peer(a netip.AddrPort) *peer {
	p := m.peers[a]
	if p == nil {
		p = &peer{addr: a, m: m, cwnd: 1, link: min(max(m.cfg.Link(a), minPacket), maxPacket)}
		p.alarm = p
		p.forget()
		p.confirmed = min(wire.DefaultPacket, p.link)
		m.peers[a] = p
		m.stats.Peers++
		m.peerList = enlist(m.peerList, p, &p.place)
	}
	return p
}

// forget resets what the peer has announced: it may now be another program.
func (p *peer) forget() {
	p.maxMTU, p.ifMTU, p.maxPackets = wire.DefaultPacket, wire.DefaultPacket, 1
}

// release is called when a connection to the peer has gone.
func (p *peer) release(now Time) {
	if p.refs--; p.refs > 0 {
		return
	}
	if !p.sampled { // nothing was learnt, and it may never have been there
		p.m.timers.stop(&p.timer)
		p.m.removePeer(p)
		return
	}
	p.idle = now
	p.m.timers.set(&p.timer, now+peerMemory)
}

// ring forgets the peer once it has been without connections for long enough.
func (p *peer) ring(now Time) Time {
	switch {
	case p.refs > 0:
		return never
	case now-p.idle < peerMemory:
		return p.idle + peerMemory
	}
	p.m.removePeer(p)
	return never
}

func (m *Machine) removePeer(p *peer) {
	delete(m.peers, p.addr)
	var moved *peer
	m.peerList, moved = delist(m.peerList, p.place)
	moved.place = p.place
	m.stats.Peers--
}

// told notes what an acknowledgement says of the sender's limits. Without these words,
// the peer accepts packets of 1444 bytes, and no jumbograms (draft §5, §7).
func (p *peer) told(t wire.Trailer) {
	switch {
	case t.Words < 2:
		p.forget()
		return
	case t.Words < 4:
		p.maxPackets = 1
	default:
		p.maxPackets = max(1, t.MaxPackets)
	}
	p.maxMTU = min(max(t.MaxMTU, minPacket), maxPacket)
	p.ifMTU = min(max(t.IfMTU, minPacket), p.maxMTU)
}

// packet is the size of the largest single packet to send to the peer now, and want the
// largest size if the path is found to carry it.
func (p *peer) packet() (now, want int) {
	want = min(p.link, int(p.ifMTU))
	return min(want, p.confirmed), want
}

// jumbo is how many full inner packets a jumbogram to the peer may have now, and want how
// many if the path is found to carry it. 1 is no jumbogram.
func (p *peer) jumbo() (now, want int) {
	if p.maxPackets < 2 {
		return 1, 1
	}
	fit := func(size int) int {
		const inner = wire.JumboBody + wire.JumboHeaderLen
		return min(max(1, (size-wire.HeaderLen+wire.JumboHeaderLen)/inner), int(p.maxPackets), jumboLimit)
	}
	return fit(min(p.confirmed, int(p.maxMTU))), fit(int(p.maxMTU))
}

// probe returns the size of a datagram that is worth trying, or 0.
func (p *peer) probe(now Time) int {
	if p.probing {
		return 0
	}
	_, want := p.packet()
	if _, n := p.jumbo(); n > 1 {
		want = max(want, jumboSize(n))
	}
	if want <= p.confirmed || p.refused != 0 && want >= p.refused && now < p.again {
		return 0
	}
	return want
}

// jumboSize is the size of a jumbogram of n full packets.
func jumboSize(n int) int {
	return wire.HeaderLen + n*(wire.JumboBody+wire.JumboHeaderLen) - wire.JumboHeaderLen
}

// confirm notes that a datagram of a size has arrived at the peer.
func (p *peer) confirm(size int) {
	p.confirmed = max(p.confirmed, size)
}

// refuse notes that a datagram of a size does not arrive. The path is assumed to
// have the default size, until the next probe.
func (p *peer) refuse(size int, now Time) {
	p.refused, p.again = size, now+pathMemory
	p.confirmed = min(p.confirmed, wire.DefaultPacket)
}

// sample samples the time from a packet to its acknowledgement (draft §5.1).
func (p *peer) sample(r time.Duration) {
	if !p.sampled {
		p.srtt, p.rttvar, p.sampled = r, r/2, true
	} else {
		p.rttvar += ((r - p.srtt).Abs() - p.rttvar) / 4
		p.srtt += (r - p.srtt) / 8
	}
	p.m.stats.sample(r)
}

// timeout is how long a packet may be without acknowledgement (draft §5.2).
func (p *peer) timeout() time.Duration {
	if !p.sampled {
		return firstTimeout
	}
	return min(p.srtt+4*p.rttvar+timeoutFudge, maxTimeout)
}
