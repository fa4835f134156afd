package machine

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// query answers packets that need no connection: version and debug. Only requests of
// clients are answered, so that two servers don't answer each other forever (draft
// §4, §6). The answer has the request's header but for its direction.
//
// A forged source address gets the answers: [Config.Answers] bounds how many, and
// none is longer than 312 bytes.
func (m *Machine) query(h *wire.Header, from netip.AddrPort, body []byte) {
	if !h.FromClient() || !m.answers.take(m.now) {
		m.stats.Drops.Answer++
		return
	}
	r := *h
	r.Flags &^= wire.FlagClient
	if h.Type == wire.TypeVersion {
		m.send(from, &r, wire.AppendVersion(nil, m.cfg.Version))
		return
	}
	q, err := wire.ParseDebugRequest(body)
	if err != nil {
		m.stats.Drops.Short++
		return
	}
	m.send(from, &r, m.debug(q))
}

// debug returns the body of the answer to a debug request (draft §6).
func (m *Machine) debug(q wire.DebugRequest) []byte {
	switch q.Type {
	case wire.DebugGetBasic:
		d := m.Basic()
		return d.Append(nil)
	case wire.DebugGetConn, wire.DebugGetAllConns:
		d := m.DebugConn(int(q.Index), q.Type == wire.DebugGetAllConns)
		return d.Append(nil)
	case wire.DebugGetStats:
		d := m.DebugStats()
		return d.Append(nil)
	case wire.DebugGetPeer:
		d := m.DebugPeer(int(q.Index))
		return d.Append(nil)
	default:
		return wire.AppendDebugBadType(nil)
	}
}

// Basic returns what a debug request of type 1 shows.
func (m *Machine) Basic() wire.DebugBasic {
	d := wire.DebugBasic{
		CallsExecuted: int32(m.stats.Offered),
		Version:       wire.DebugVersion,
		FreePackets:   int32(m.pool.len()),
		Packets:       int32(m.pool.len() + m.pool.out),
	}
	if m.cfg.Threads != nil {
		t := m.cfg.Threads()
		d.IdleThreads, d.Waiting, d.Waited = int32(t.Idle), int32(t.Waiting), int32(t.Waited)
	}
	return d
}

// DebugConn returns what a debug request of type 2 or 3 shows of the connection with an
// index: among all of them, or among those that have a call.
func (m *Machine) DebugConn(index int, all bool) wire.DebugConn {
	if all && 0 <= index && index < len(m.list) {
		return m.list[index].debug()
	}
	for _, c := range m.list {
		if all || !c.active() {
			continue
		}
		if index == 0 {
			return c.debug()
		}
		index--
	}
	return wire.DebugConn{CID: wire.DebugEnd}
}

// active reports whether the connection has an outstanding call.
func (c *Conn) active() bool {
	for _, k := range c.calls {
		if k != nil && !k.settled {
			return true
		}
	}
	return false
}

func (c *Conn) debug() wire.DebugConn {
	host, port := debugAddr(c.peer.addr)
	d := wire.DebugConn{
		Host: host, Port: port, CID: c.key.id, Epoch: c.key.epoch, Serial: c.serial, Calls: c.numbers,
		Type: wire.DebugServer, Security: c.index, NatMTU: int32(c.peer.link),
	}
	if c.key.client {
		d.Type = wire.DebugClient
	}
	if c.err != nil {
		d.Error = int32(c.err.Code)
	}
	if d.Stats = c.debugSecurity(); d.Stats.Flags&wire.DebugChecksums != 0 {
		d.Flags |= wire.DebugConnChecksums
	}
	for i, k := range c.calls {
		if k != nil {
			d.States[i], d.Modes[i] = k.debug()
			if k.in.packets.n > 0 {
				d.Other[i] |= wire.DebugInput
			}
			if k.out.packets.n > 0 {
				d.Other[i] |= wire.DebugOutput
			}
		}
	}
	return d
}

// traffic counts what a connection's security class has sealed or opened.
type traffic struct{ packets, bytes uint32 }

func (t *traffic) add(data []byte) {
	t.packets++
	t.bytes += uint32(len(data))
}

// debugSecurity returns what the security class reports, if anything.
func (c *Conn) debugSecurity() (d wire.DebugSecurity) {
	var class any = c.clientSec
	if c.serverSec != nil {
		class = c.serverSec
	}
	describer, ok := class.(secure.Describer)
	if !ok {
		return d
	}
	says := describer.Describe()
	d = wire.DebugSecurity{
		Type: says.Type, Level: says.Level, Flags: wire.DebugChecksums,
		PacketsReceived: c.opened.packets, BytesReceived: c.opened.bytes,
		PacketsSent: c.sealed.packets, BytesSent: c.sealed.bytes,
	}
	if says.Authenticated {
		d.Flags |= wire.DebugAuthenticated
	}
	if !says.Expires.IsZero() {
		d.Expires = uint32(says.Expires.Unix())
	}
	return d
}

// debug returns the state and the mode of a call.
func (k *Call) debug() (s wire.DebugState, mode wire.DebugMode) {
	switch {
	case k.err != nil:
		mode = wire.DebugError
	case k.in.complete() && k.out.wrote:
		mode = wire.DebugEOF
	case k.client && k.out.wrote, !k.client && !k.out.began():
		mode = wire.DebugReceiving
	default:
		mode = wire.DebugSending
	}
	switch {
	case k.over() && k.ended:
		s = wire.DebugDally
	case k.out.wrote && !k.client:
		s = wire.DebugHold
	case !k.client && !k.offered:
		s = wire.DebugPrecall
	default:
		s = wire.DebugActive
	}
	return s, mode
}

// DebugPeer returns what a debug request of type 5 shows of the peer with an index.
func (m *Machine) DebugPeer(index int) wire.DebugPeer {
	if index < 0 || index >= len(m.peerList) {
		return wire.DebugPeer{Host: wire.DebugEnd}
	}
	p := m.peerList[index]
	host, port := debugAddr(p.addr)
	idle := m.wall()
	if p.refs == 0 {
		idle = m.cfg.Start.Add(p.idle)
	}
	packet, _ := p.packet()
	jumbo, _ := p.jumbo()
	short := func(n int) uint16 { return uint16(min(max(n, 0), 1<<16-1)) }
	return wire.DebugPeer{
		Host: host, Port: port, IdleSince: uint32(idle.Unix()), References: short(p.refs), BurstSize: jumboLimit,
		RTT: int32(p.srtt / (time.Millisecond / 8)), Deviation: int32(p.rttvar / (time.Millisecond / 4)),
		Timeout: debugTime(p.timeout()), Sent: int32(p.sent), Resent: int32(p.resent),
		IfMTU: short(p.link), NatMTU: short(int(p.ifMTU)), MaxMTU: short(int(p.maxMTU)), MTU: short(packet),
		MaxPackets: short(int(p.maxPackets)), IfPackets: jumboLimit, Packets: short(jumbo), CongWindow: short(p.cwnd),
		BytesSent: p.bytesSent, BytesReceived: p.bytesReceived,
	}
}

// DebugStats returns what a debug request of type 4 shows.
func (m *Machine) DebugStats() wire.DebugStats {
	s := &m.stats
	d := wire.DebugStats{
		BogusPackets: int32(s.Drops.Short), DataRead: int32(s.Data), AcksRead: int32(s.Acks), DuplicatesRead: int32(s.Duplicates),
		SpuriousRead: int32(s.Drops.NoConn + s.Drops.Call + s.Drops.Window), AcksSent: int32(s.AcksSent), PingsSent: int32(s.Pings),
		AbortsSent: int32(s.Sent[wire.TypeAbort]), BusiesSent: int32(s.Busies), DataSent: int32(s.DataSent), DataResent: int32(s.Resent),
		DataPushed: int32(s.Pushed), TotalRTT: debugTime(s.RTT.Total), MinRTT: debugTime(s.RTT.Least), MaxRTT: debugTime(s.RTT.Most),
		RTTSamples: int32(s.RTT.Samples), ServerConns: int32(s.ServerConns), ClientConns: int32(s.ClientConns), Peers: int32(s.Peers),
		Calls: int32(s.LiveCalls), NoPacketBuffersOnRead: int32(s.Drops.NoSpace), Busies: int32(s.Read[wire.TypeBusy]),
		IgnoredDally: int32(s.Drops.Type), FatalErrors: int32(s.Aborted),
	}
	for i := range d.PacketsRead {
		d.PacketsRead[i], d.PacketsSent[i] = int32(s.Read[i+1]), int32(s.Sent[i+1])
	}
	return d
}

func debugTime(d time.Duration) wire.DebugTime {
	return wire.DebugTime{Sec: int32(d / time.Second), Usec: int32(d % time.Second / time.Microsecond)}
}

// debugAddr returns an address as debug answers have it. IPv6 addresses do not fit.
func debugAddr(a netip.AddrPort) (host uint32, port uint16) {
	if ip := a.Addr().Unmap(); ip.Is4() {
		b := ip.As4()
		host = binary.BigEndian.Uint32(b[:])
	}
	return host, a.Port()
}

// enlist keeps a list in which things have indices.
func enlist[T any](list []T, v T, place *int) []T {
	*place = len(list)
	return append(list, v)
}

// delist removes the element at an index and puts the last one there, which it returns.
func delist[T any](list []T, place int) (rest []T, moved T) {
	moved = list[len(list)-1]
	list[place] = moved
	return slices.Delete(list, len(list)-1, len(list)), moved
}
