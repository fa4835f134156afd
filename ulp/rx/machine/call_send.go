package machine

import (
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A sender is the side of a call that sends data.
type sender struct {
	packets places[outPacket] // from the first that is not hard-acknowledged
	next    uint32            // first sequence number that was never sent
	filling outPacket         // the packet that takes what is written
	most    int               // bytes that filling may have
	wrote   bool              // the last packet is in packets
	acked   bool              // everything was acknowledged

	congestion
	peerWindow uint32
	soft       uint32 // packets from base on that are soft-acknowledged in a row
	resends    int    // packets that must be sent again

	// The newest acknowledgement, for what older ones may not take back.
	ackFirst, ackSerial uint32
	heardAck            bool

	timeoutAt Time // 0: nothing is outstanding
	backoff   uint
	inRow     int // packets that were acknowledged since the last timeout

	pingDue bool
	pinged  ping // the last
	doubted Time // until then, the peer is not asked for a state that seems old
	probe   probe
}

// A ping is what was known when one left.
type ping struct {
	serial uint32
	first  uint32 // what lies before it was acknowledged
	heard  uint32 // serial number of the newest acknowledgement
}

// An outPacket is a packet from the moment that it is written until it is acknowledged.
type outPacket struct {
	body     []byte // overhead, data, and padding once it is sealed
	checksum uint16
	last     bool
	sealed   bool
	held     bool // soft-acknowledged
	resend   bool
	first    send // the first transmission
	again    send // the latest
}

// A send is one transmission of a packet.
type send struct {
	serial uint32
	at     Time
}

func (s *sender) init(cwnd int) {
	s.packets.base, s.next = 1, 1
	s.peerWindow = firstWindow
	s.congestion.init(cwnd)
}

// began reports whether anything was written.
func (s *sender) began() bool { return s.packets.end() > 1 || s.filling.body != nil || s.wrote }

// finished reports whether the last packet was written, and every one acknowledged.
func (s *sender) finished() bool { return s.wrote && s.acked }

// release gives the memory back.
func (s *sender) release(m *Machine) {
	for s.packets.n > 0 {
		m.pool.put(s.packets.at(s.packets.base).body)
		s.packets.drop()
	}
	if s.filling.body != nil {
		m.pool.put(s.filling.body)
		s.filling = outPacket{}
	}
	s.next = s.packets.base
	s.timeoutAt, s.resends, s.pingDue = 0, 0, false
}

// queueLimit is how many packets Write queues.
func (s *sender) queueLimit() int { return int(s.peerWindow) + firstWindow }

// Write accepts as many bytes for the peer as there is space for. An effect Changed reports
// when there is space again. Packets are sent when they are full and more follows, or with
// Flush and CloseWrite: the last one has LAST-PACKET, however full it is. OpenAFS does the
// same, and replies as soon as it has all arguments, which must not be before the last packet.
func (k *Call) Write(now Time, p []byte) (int, error) {
	m, s := k.c.m, &k.out
	m.tick(now)
	if err := k.writable(); err != nil {
		return 0, err
	}
	n := 0
	for n < len(p) && s.packets.n < s.queueLimit() {
		if s.filling.body != nil && len(s.filling.body) == s.most {
			k.queue(false)
			continue
		}
		k.fill(len(p) - n)
		had := len(s.filling.body)
		take := min(len(p)-n, s.most-had, cap(s.filling.body)-had)
		s.filling.body = append(s.filling.body, p[n:n+take]...)
		n += take
	}
	if n > 0 && s.packets.end() > s.next {
		k.c.wake()
	}
	return n, nil
}

// writable returns an error if nothing can be written now or later.
func (k *Call) writable() error {
	switch {
	case k.err != nil:
		return k.err
	case k.ended:
		return ErrEnded
	case k.out.wrote:
		return ErrWritten
	case !k.client && !k.in.arrived():
		return ErrOrder
	}
	return nil
}

// Writable reports whether Write would accept something, or return an error.
func (k *Call) Writable() bool {
	return k.writable() != nil || k.out.packets.n < k.out.queueLimit()
}

// fill makes space in the packet that is being filled for at least one of n
// bytes.
func (k *Call) fill(n int) {
	m, s := k.c.m, &k.out
	if s.filling.body == nil {
		if !k.client && !k.in.closed {
			k.in.release(k) // what the program did not read
		}
		s.most = k.bodyLimit()
		head := k.overhead()
		s.filling.body = m.pool.get(min(head+n, s.most) + padding)[:head]
		return
	}
	if b := s.filling.body; cap(b)-len(b) <= padding {
		larger := m.pool.get(min(max(2*len(b), len(b)+n), s.most) + padding)
		s.filling.body = larger[:copy(larger, b)]
		m.pool.put(b)
	}
}

// padding is space that a body reserves for what its security class adds.
const padding = 32

// overhead is how many bytes of a body stand in front of the data.
func (k *Call) overhead() int {
	if k.c.secured == nil {
		return 0
	}
	return k.c.secured.Overhead()
}

// bodyLimit is how long a body may be for the peer and the path, as far as they are known.
func (k *Call) bodyLimit() int {
	size, _ := k.c.peer.packet()
	most := size - wire.HeaderLen
	if n, want := k.c.peer.jumbo(); max(n, want) > 1 && size < jumboSize(2) {
		most = min(most, wire.JumboBody)
	}
	if p := k.c.secured; p != nil {
		most -= most % p.Multiple()
	}
	return most
}

// queue moves the packet that was filled to those to be sent.
func (k *Call) queue(last bool) {
	s := &k.out
	k.fill(0)
	s.filling.last = last
	seq := s.packets.end()
	s.packets.extend(seq)
	*s.packets.at(seq) = s.filling
	s.filling = outPacket{}
	s.wrote = last
}

// Flush sends what was written, even if its packet is not full.
func (k *Call) Flush(now Time) error {
	k.c.m.tick(now)
	if err := k.writable(); err != nil {
		return err
	}
	if len(k.out.filling.body) > k.overhead() {
		k.queue(false)
		k.c.wake()
	}
	return nil
}

// CloseWrite ends this side's data. What was written is sent, with LAST-PACKET.
func (k *Call) CloseWrite(now Time) error {
	k.c.m.tick(now)
	if err := k.writable(); err != nil {
		return err
	}
	k.queue(true)
	k.c.wake()
	k.rearm()
	return nil
}

// seal protects a packet before it is first sent.
func (k *Call) seal(seq uint32, p *outPacket) error {
	c := k.c
	if p.sealed || c.secured == nil {
		return nil
	}
	head, multiple := c.secured.Overhead(), c.secured.Multiple()
	data := len(p.body) - head
	size := max(len(p.body), c.secured.Least())
	if over := size % multiple; over != 0 {
		size += multiple - over
	}
	for len(p.body) < size {
		p.body = append(p.body, 0)
	}
	sum, err := c.secured.Seal(secure.Packet{Call: k.number, Channel: k.channel, Seq: seq}, p.body, data)
	p.checksum, p.sealed = sum, err == nil
	if err == nil {
		c.sealed.add(p.body[:data])
	}
	return err
}

// allowed reports whether the windows let a packet be sent: the peer's, which counts from
// the first packet that was not read, and the congestion window, which counts from the
// last one that was acknowledged in a row (draft §5.4, §5.5).
func (s *sender) allowed(seq uint32) bool {
	at := seq - s.packets.base
	return at < min(s.peerWindow, wire.MaxAcks) && at < s.soft+uint32(s.cwnd)
}

// due returns the next packet to send. again reports that it was sent before.
func (s *sender) due() (seq uint32, again, ok bool) {
	if s.resends > 0 {
		for seq := s.packets.base; seq != s.next; seq++ {
			if s.packets.at(seq).resend {
				if s.allowed(seq) {
					return seq, true, true
				}
				break
			}
		}
	}
	if s.packets.has(s.next) && s.allowed(s.next) {
		return s.next, false, true
	}
	return 0, false, false
}
