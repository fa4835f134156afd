package capture

import (
	"context"
	"net/netip"
)

const (
	udpLen  = 8 // of the header
	protUDP = 17
)

// A Datagram is what UDP carries.
type Datagram struct {
	Src, Dst netip.AddrPort
	Data     []byte // valid during the call that brings it
	Missing  int    // bytes behind Data that were not captured
}

// ReadDatagrams calls each with the UDP datagrams in what is left of a capture, in their
// order. An error of each ends it.
func ReadDatagrams(ctx context.Context, r *Reader, each func(At, *Datagram) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a := NewAssembler(func(*Conn) Consumer { return nil })
	a.UDP = func(at At, d *Datagram) {
		if ctx.Err() != nil {
			return
		}
		if err := each(at, d); err != nil {
			stop(err)
		}
	}
	err := a.ReadAll(ctx, r)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// user takes what UDP carries on a port that is none of an encapsulation.
func (d *decoder) user(b []byte) (segment, verdict) {
	s := segment{
		src: netip.AddrPortFrom(d.src, uint16(d.udp.SrcPort)), dst: netip.AddrPortFrom(d.dst, uint16(d.udp.DstPort)),
		data: b, missing: uint32(d.missing),
	}
	if n := int(d.udp.Length); n > 0 {
		s.missing = uint32(max(0, n-udpLen-len(b)))
	}
	if s.missing == 0 && cap(d.udp.Contents) >= udpLen+len(b) { // b follows the header
		s.sum = d.checksum(d.udp.Contents[:udpLen+len(b)], protUDP, d.udp.Checksum)
	}
	return s, isUDP
}

// user hands a UDP datagram on.
func (a *Assembler) user(p *Packet, s *segment) {
	a.UDP(At{Time: p.Time, Packet: p.Number, BadChecksum: s.sum == sumBad},
		&Datagram{Src: s.src, Dst: s.dst, Data: s.data, Missing: int(s.missing)})
}

// Datagram records that the pieces, joined, went from one endpoint to another as one UDP
// datagram. It is best called before the network gets a datagram: afterwards, what it
// causes may be recorded first. What is too long for an IP packet is not recorded, and an
// address that is not valid is replaced by a synthetic one.
func (w *Writer) Datagram(from, to netip.AddrPort, pieces ...[]byte) {
	if !from.IsValid() {
		from = synthetic("from")
	}
	if !to.IsValid() {
		to = synthetic("to")
	}
	from, to = plain(from), plain(to)
	n := udpLen
	for _, p := range pieces {
		n += len(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped() {
		return
	}
	b, sum, ok := appendNetwork(w.buf[:0], from.Addr(), to.Addr(), protUDP, n)
	if !ok {
		return
	}
	at := len(b)
	b = append(b,
		byte(from.Port()>>8), byte(from.Port()), byte(to.Port()>>8), byte(to.Port()),
		byte(n>>8), byte(n), 0, 0)
	for _, p := range pieces {
		b = append(b, p...)
	}
	check := foldSum(onesSum(sum+uint64(n), b[at:]))
	if check == 0 {
		check = 0xFFFF // zero says that there is none (RFC 768)
	}
	b[at+6], b[at+7] = byte(check>>8), byte(check)
	w.buf = b
	w.write()
}
