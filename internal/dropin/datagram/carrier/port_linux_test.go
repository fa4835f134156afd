package carrier

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"urnic/internal/dropin/datagram"
	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	firstPort = 23100
	slotBits  = 14
	patience  = time.Minute
)

// A taker is a queue pair that keeps what comes.
type taker struct {
	key      uint32
	receives int
	got      []Arrival
	dropped  [datagram.Reasons]int
}

func (q *taker) Admit(h *datagram.Header, _ Peer) datagram.Reason {
	if h.Key != q.key {
		return datagram.WrongKey
	}
	return datagram.Taken
}

func (q *taker) Deliver(a *Arrival) {
	c := *a
	c.Payload = bytes.Clone(a.Payload)
	q.got = append(q.got, c)
}

func (q *taker) Drop(r datagram.Reason) { q.dropped[r]++ }

func (q *taker) Asked(Peer, uint32) uint32 { return uint32(q.receives) }

// limit sets how many receives a queue pair has: the port's goroutine may already ask.
func (p *Port) limit(q *taker, receives int) {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	q.receives = receives
}

// arrived returns what a queue pair has received: the detector doesn't know that what is sent comes after what was
// read.
func (p *Port) arrived(q *taker) []Arrival {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	return slices.Clone(q.got)
}

// openPorts opens the ports of n processes at 127.0.0.1, with a queue pair each, whose number is that of its slot.
func openPorts(t *testing.T, n int) (ports []*Port, takers []*taker) {
	t.Helper()
	for slot := uint32(1); len(ports) < n; slot++ {
		q := &taker{key: 7, receives: 100}
		qpn := slot << slotBits
		p, err := Open(Config{
			Address: netip.MustParseAddr("127.0.0.1"), FirstPort: firstPort, Slot: slot,
			SlotOf: func(qpn uint32) uint32 { return qpn >> slotBits },
			Find: func(n uint32) QueuePair {
				if n == qpn {
					return q
				}
				return nil
			},
			Retry: func() {},
		})
		if err != nil {
			if slot > 100 {
				t.Fatal(err)
			}
			continue // somebody else has it
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		ports, takers = append(ports, p), append(takers, q)
	}
	return ports, takers
}

// number returns the number of a port's queue pair.
func (p *Port) number() uint32 { return p.cfg.Slot << slotBits }

// peer returns where a port is.
func (p *Port) peer() Peer {
	return netip.AddrPortFrom(p.cfg.Address, uint16(firstPort+int(p.cfg.Slot)-1))
}

// send sends a message in fragments of a size, and reports whether there was room for all.
func (p *Port) send(t *testing.T, to *Port, h datagram.Header, message []byte, size int) (all bool) {
	t.Helper()
	h.Op, h.Source, h.Dest, h.Length = datagram.Send, p.number(), to.number(), uint32(len(message))
	err := p.Send(func(s *Sender) {
		for at := 0; at < len(message); at += size {
			part := message[at:min(at+size, len(message))]
			h.Offset = uint32(at)
			b := s.Take(&h, len(part), to.peer(), netip.Addr{})
			if b == nil {
				return
			}
			copy(b, part)
			s.Put(&h)
		}
		all = true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// until polls until something is so.
func (p *Port) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for began := time.Now(); ; runtime.Gosched() {
		p.Poll(true)
		p.receiving.Lock()
		done := f()
		p.receiving.Unlock()
		if done {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

func TestMessagesComeInOneDatagramOrInFragments(t *testing.T) {
	ports, takers := openPorts(t, 2)
	a, b, q := ports[0], ports[1], takers[1]
	message := make([]byte, datagram.MTU)
	for i := range message {
		message[i] = byte(i * 5)
	}
	for i, size := range []int{datagram.MTU, 1000, 100} {
		a.send(t, b, datagram.Header{Key: 7}, message, size)
		b.until(t, "a message", func() bool { return len(q.got) == i+1 })
		if m := b.arrived(q)[i]; !bytes.Equal(m.Payload, message) || m.From != a.peer() || m.To != b.cfg.Address || m.Source != a.number() {
			t.Errorf("fragments of %d: %+v", size, m.Header)
		}
	}
	a.send(t, b, datagram.Header{Key: 8}, message, 1000)
	b.until(t, "wrong keys", func() bool { return q.dropped[datagram.WrongKey] == 5 })
	b.receiving.Lock()
	defer b.receiving.Unlock()
	if b.parts.Len() != 0 {
		t.Error("memory is used for datagrams with a wrong Q_Key")
	}
}

// Acks leave from the address to which the datagrams were sent: from there they are expected. The recording has each
// datagram once at each process.
func TestAcksLeaveFromTheAddressThatWasUsed(t *testing.T) {
	ports, takers := openPorts(t, 1)
	a := ports[0]
	recorded := make(chan [2]netip.AddrPort, 100)
	q := &taker{key: 7, receives: 100}
	for slot := a.cfg.Slot + 1; ; slot++ {
		cfg := a.cfg
		cfg.Address, cfg.Slot = netip.MustParseAddr("0.0.0.0"), slot
		cfg.Find = func(uint32) QueuePair { return q }
		cfg.Record = func(from, to netip.AddrPort, _ []byte) { recorded <- [2]netip.AddrPort{from, to} }
		cfg.Local = func(netip.Addr) bool { return true }
		b, err := Open(cfg)
		if err != nil {
			if slot > 100 {
				t.Fatal(err)
			}
			continue
		}
		t.Cleanup(func() { _ = b.Close() })
		b.cfg.Address = netip.MustParseAddr("127.0.0.2") // where it is sent to
		for range 32 {                                   // the first and the last one ask
			a.send(t, b, datagram.Header{Key: 7}, []byte("hello"), 5)
		}
		b.until(t, "datagrams", func() bool { return len(q.got) == 32 })
		a.until(t, "an Ack", func() bool {
			a.sending.Lock()
			defer a.sending.Unlock()
			return a.flow(b.peer()).Under() == 0
		})
		a.receiving.Lock()
		defer a.receiving.Unlock()
		if takers[0].dropped != [datagram.Reasons]int{} || a.Dropped() != [datagram.Reasons]uint64{} {
			t.Errorf("dropped: %v, %v", takers[0].dropped, a.Dropped())
		}
		got := map[[2]netip.AddrPort]int{}
		for range 34 {
			got[<-recorded]++
		}
		if there, back := got[[2]netip.AddrPort{a.peer(), b.peer()}], got[[2]netip.AddrPort{b.peer(), a.peer()}]; there != 32 || back != 2 {
			t.Errorf("recorded: %v; want 32 datagrams and 2 Acks", got)
		}
		return
	}
}

// What has come is acknowledged even if there is no receive for more: other queue pairs go on.
func TestAckWithoutReceives(t *testing.T) {
	ports, takers := openPorts(t, 2)
	a, b := ports[0], ports[1]
	b.limit(takers[1], 0)
	a.send(t, b, datagram.Header{Key: takers[1].key}, []byte("hello"), 5)
	acked := func() bool {
		a.sending.Lock()
		defer a.sending.Unlock()
		return a.flow(b.peer()).Under() == 0
	}
	b.until(t, "the datagram", func() bool { return len(takers[1].got) == 1 })
	a.until(t, "an Ack", acked)
	a.sending.Lock()
	defer a.sending.Unlock()
	if f := a.flow(b.peer()); f.credits.May(b.number(), 0) || !f.credits.May(b.number()+1, 0) {
		t.Error("the queue pair has no receives, and another one may have some")
	}
}

func TestWhatIsDamagedIsDropped(t *testing.T) {
	ports, takers := openPorts(t, 2)
	a, b, q := ports[0], ports[1], takers[1]
	h := datagram.Header{Op: datagram.Send, Key: 7, Source: a.number(), Dest: b.number(), Length: 5}
	packet := append(make([]byte, datagram.HeaderLen), "hello"...)
	h.Put(packet)
	packet[len(packet)-1] ^= 1
	a.sending.Lock()
	copy(a.sock.room(len(packet)), packet)
	a.sock.add(len(packet), b.peer(), netip.Addr{})
	a.sock.flush()
	a.sending.Unlock()
	b.until(t, "it is dropped", func() bool { return q.dropped[datagram.Corrupt] == 1 })
	if got := b.arrived(q); len(got) != 0 {
		t.Errorf("it is delivered: %+v", got)
	}
}

// Without a poll, the port's goroutine receives.
func TestThePortReceivesWhileNobodyPolls(t *testing.T) {
	ports, takers := openPorts(t, 2)
	ports[0].send(t, ports[1], datagram.Header{Key: 7}, []byte("hello"), 100)
	for began := time.Now(); ; runtime.Gosched() {
		ports[1].receiving.Lock()
		n := len(takers[1].got)
		ports[1].receiving.Unlock()
		if n == 1 {
			return
		}
		if time.Since(began) > patience {
			t.Fatal("it does not come")
		}
	}
}

func TestRoomComesWithAnswers(t *testing.T) {
	ports, takers := openPorts(t, 2)
	a, b := ports[0], ports[1]
	b.limit(takers[1], 3)
	sent := 0
	for a.send(t, b, datagram.Header{Key: 7}, []byte("hello"), 100) {
		sent++
	}
	b.until(t, "all that was sent", func() bool { return len(takers[1].got) == sent })
	more := 0
	a.until(t, "room", func() bool {
		for a.send(t, b, datagram.Header{Key: 7}, []byte("hello"), 100) {
			more++
		}
		return more > 0
	})
	if more > 3 {
		t.Errorf("%d datagrams leave for 3 receives", more)
	}
}

func TestAPortIsOfOneProcess(t *testing.T) {
	ports, _ := openPorts(t, 1)
	p := ports[0]
	if other, err := Open(p.cfg); err == nil {
		t.Error("two have the same port")
		_ = other.Close()
	}
	for _, slot := range []uint32{0, 1 << 16} {
		cfg := p.cfg
		if cfg.Slot = slot; slot != 0 {
			cfg.FirstPort = 1
		}
		if _, err := Open(cfg); err == nil {
			t.Errorf("slot %d has a port", slot)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Send(func(*Sender) {}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	p.Poll(true)
	p.Await(time.Hour) // returns at once
	if err := p.Attach(new(taker), netip.MustParseAddr("239.1.2.3")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Attach after Close: %v", err)
	}
}

func TestFlowsAreBounded(t *testing.T) {
	p := &Port{flows: make(map[Peer]*flow)}
	for i := range 3 * maxFlows {
		p.flow(netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i)))
	}
	if len(p.flows) != maxFlows {
		t.Errorf("%d peers are remembered; want %d", len(p.flows), maxFlows)
	}
}
