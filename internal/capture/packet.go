package capture

import "net/netip"

// ProtocolRDP is the number of RDP in the header of IP (RFC 908 §4.1).
const ProtocolRDP = 27

// bare takes what IP carries of a protocol whose header is the business of others.
func (d *decoder) bare(b []byte) (segment, verdict) {
	return segment{src: netip.AddrPortFrom(d.src, 0), dst: netip.AddrPortFrom(d.dst, 0), data: b, missing: uint32(d.missing)}, isRDP
}

// bare hands a packet of RDP on.
func (a *Assembler) bare(p *Packet, s *segment) {
	a.RDP(At{Time: p.Time, Packet: p.Number}, &Datagram{Src: s.src, Dst: s.dst, Data: s.data, Missing: int(s.missing)})
}

// Packet records that the pieces, joined, went from one host to another as the payload of one IP
// packet. Datagram says when it is best called, and what is replaced or not recorded.
func (w *Writer) Packet(from, to netip.Addr, protocol uint8, pieces ...[]byte) {
	if !from.IsValid() {
		from = synthetic("from").Addr()
	}
	if !to.IsValid() {
		to = synthetic("to").Addr()
	}
	from, to = from.Unmap().WithZone(""), to.Unmap().WithZone("")
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped() {
		return
	}
	b, _, ok := appendNetwork(w.buf[:0], from, to, protocol, n)
	if !ok {
		return
	}
	for _, p := range pieces {
		b = append(b, p...)
	}
	w.buf = b
	w.write()
}

// Segment records a segment of RDP: over UDP, or, if both ports are 0, over IP. So a Writer is a
// recorder for endpoints of RDP.
func (w *Writer) Segment(from, to netip.AddrPort, segment []byte) {
	if from.Port() == 0 && to.Port() == 0 && (from.IsValid() || to.IsValid()) {
		w.Packet(from.Addr(), to.Addr(), ProtocolRDP, segment)
		return
	}
	w.Datagram(from, to, segment)
}
