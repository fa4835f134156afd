package rdp

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"urnic/internal/wake"
)

// Faults say what a Network does to segments. Probabilities are from 0 to 1.
type Faults struct {
	Delay     time.Duration // how long each segment takes
	Jitter    time.Duration // up to how much longer, by chance: segments overtake each other
	Loss      float64
	Duplicate float64
	Corrupt   float64 // one bit is turned
	Reorder   float64 // a segment passes those that have arrived and that the endpoint has not taken yet
}

// A Network carries segments in memory, for tests: with faults, which its seed makes repeatable as far as the order of
// sending is. It uses the timers of package time, so that it runs under a fake clock as well.
type Network struct {
	mu       sync.Mutex
	faults   Faults
	random   *rand.Rand
	carriers map[netip.AddrPort]*memoryCarrier
	sent     uint64
	ports    uint16 // that were chosen
	underway underway
	flights  uint64 // that were ever in transit
}

// NewNetwork returns a network without endpoints.
func NewNetwork(seed uint64, f Faults) *Network {
	return &Network{faults: f, random: rand.New(rand.NewPCG(seed, 908)), carriers: map[netip.AddrPort]*memoryCarrier{}}
}

// SetFaults changes what becomes of the segments that are sent from now on.
func (n *Network) SetFaults(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
}

// Sent returns how many segments endpoints have sent.
func (n *Network) Sent() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent
}

// Carrier returns the network's carrier at an address, which must not have one yet. Any address will do, as it is but a
// name here; a port of 0 is replaced by a free one.
func (n *Network) Carrier(addr netip.AddrPort) (Carrier, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	chosen := false
	if !addr.Addr().IsValid() {
		addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr.Port())
	}
	for addr.Port() == 0 || n.carriers[addr] != nil && chosen {
		n.ports++
		chosen = true
		addr = netip.AddrPortFrom(addr.Addr(), 49151+n.ports)
	}
	if n.carriers[addr] != nil {
		return nil, fmt.Errorf("rdp: the network has an endpoint at %v already", addr)
	}
	c := &memoryCarrier{n: n, addr: addr, ready: wake.NewOne(), done: make(chan struct{})}
	n.carriers[addr] = c
	return c, nil
}

// inboxLimit is how many segments an endpoint in memory may be behind. More are lost.
const inboxLimit = 4096

// memoryCarrier is an endpoint's end of a Network.
type memoryCarrier struct {
	n     *Network
	addr  netip.AddrPort
	ready wake.One
	done  chan struct{}
	ended sync.Once

	mu   sync.Mutex
	in   []memorySegment
	lost []memorySegment // sent to where nobody is; from is the destination
}

type memorySegment struct {
	from netip.AddrPort
	data []byte
}

func (c *memoryCarrier) LocalAddr() netip.AddrPort { return c.addr }

func (c *memoryCarrier) MaxSegment() int { return udpLargest + ipHeader }

func (c *memoryCarrier) local() netip.Addr { return c.addr.Addr() }

func (*memoryCarrier) buffer() int { return 0 }

func (*memoryCarrier) mtu(netip.AddrPort) int { return 0 }

func (*memoryCarrier) headers(netip.AddrPort) int { return ipHeader }

func (c *memoryCarrier) path(host netip.AddrPort) (netip.AddrPort, error) { return host, nil }

func (c *memoryCarrier) receive(each func(netip.AddrPort, []byte), unreachable func(netip.AddrPort, []byte)) error {
	for {
		c.mu.Lock()
		in, lost := c.in, c.lost
		c.in, c.lost = nil, nil
		c.mu.Unlock()
		for _, a := range lost {
			unreachable(a.from, a.data)
		}
		for _, s := range in {
			each(s.from, s.data)
		}
		if len(in) > 0 {
			return nil
		}
		select {
		case <-c.ready:
		case <-c.done:
			return net.ErrClosed
		}
	}
}

func (c *memoryCarrier) close() error {
	c.ended.Do(func() {
		close(c.done)
		c.n.mu.Lock()
		defer c.n.mu.Unlock()
		delete(c.n.carriers, c.addr)
	})
	return nil
}

func (c *memoryCarrier) newBatch() batch { return &plainBatch{one: c.send} }

func (c *memoryCarrier) freeBatch(b batch) { b.(*plainBatch).free() }

// send does to a segment what the network's faults say.
func (c *memoryCarrier) send(segment []byte, to netip.AddrPort) {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent++
	copies := 1
	if n.random.Float64() < n.faults.Duplicate {
		copies = 2
	}
	for range copies {
		if n.random.Float64() < n.faults.Loss {
			continue
		}
		data := append([]byte(nil), segment...)
		if n.random.Float64() < n.faults.Corrupt {
			bit := n.random.IntN(8 * len(data))
			data[bit/8] ^= 1 << (bit % 8)
		}
		delay := n.faults.Delay
		if n.faults.Jitter > 0 {
			delay += time.Duration(n.random.Int64N(int64(n.faults.Jitter)))
		}
		if delay == 0 {
			n.deliver(c.addr, to, data)
			continue
		}
		n.flights++
		heap.Push(&n.underway, flight{time.Now().Add(delay), n.flights, c.addr, to, data})
		time.AfterFunc(delay, n.land)
	}
}

// land delivers the segment that is due first. Each segment has a timer, and timers of one moment fire in any
// order: with a timer for a segment of its own, segments would overtake each other without Jitter.
func (n *Network) land() {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := heap.Pop(&n.underway).(flight)
	n.deliver(f.from, f.to, f.data)
}

// A flight is a segment that is delayed.
type flight struct {
	due      time.Time
	number   uint64 // in the order of sending
	from, to netip.AddrPort
	data     []byte
}

// underway are the segments that are delayed, as a heap: that first which is due first.
type underway []flight

func (u underway) Len() int      { return len(u) }
func (u underway) Swap(i, j int) { u[i], u[j] = u[j], u[i] }
func (u underway) Less(i, j int) bool {
	return cmp.Or(u[i].due.Compare(u[j].due), cmp.Compare(u[i].number, u[j].number)) < 0
}

// Push is of heap.Interface.
func (u *underway) Push(x any) { *u = append(*u, x.(flight)) }

// Pop is of heap.Interface.
func (u *underway) Pop() any {
	last := len(*u) - 1
	f := (*u)[last]
	(*u)[last] = flight{}
	*u = (*u)[:last]
	return f
}

// deliver puts a segment into the inbox of its destination, or tells its sender that there is none. It is called with the network's lock held.
func (n *Network) deliver(from, to netip.AddrPort, data []byte) {
	c := n.carriers[to]
	if c == nil {
		if c = n.carriers[from]; c != nil {
			c.mu.Lock()
			c.lost = append(c.lost, memorySegment{to, data})
			c.mu.Unlock()
			c.ready.Wake()
		}
		return
	}
	c.mu.Lock()
	if len(c.in) < inboxLimit {
		at := len(c.in)
		if n.random.Float64() < n.faults.Reorder {
			at = n.random.IntN(at + 1)
		}
		c.in = slices.Insert(c.in, at, memorySegment{from, data})
	}
	c.mu.Unlock()
	c.ready.Wake()
}
