package carrier

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urnic/internal/dropin/datagram"
)

// A Peer is a process: an address, and the port of its slot.
type Peer = netip.AddrPort

// An Arrival is a message of a UD queue pair, or a fragment of one of a UC queue pair.
type Arrival struct {
	datagram.Header // of the first fragment
	From            Peer
	To              netip.Addr // the address to which it was sent
	Payload         []byte     // valid during the call
}

// A QueuePair takes what comes for it. All of its methods are called by one goroutine at a
// time, and must not call a Port.
type QueuePair interface {
	// Admit decides by the header whether the datagram is looked at. Its Q_Key is what it
	// looks at first.
	Admit(h *datagram.Header, from Peer) datagram.Reason
	// Deliver takes a message.
	Deliver(a *Arrival)
	// Drop counts what is dropped.
	Drop(datagram.Reason)
	// Asked is datagram.Queue.Asked.
	Asked(by Peer, sequence uint32) (room uint32)
}

// A Config says what a port is.
type Config struct {
	Address   netip.Addr // or not valid: all
	FirstPort int        // of slot 1
	Slot      uint32
	SlotOf    func(qpn uint32) uint32
	// Find returns the queue pair of a number, or nil.
	Find func(qpn uint32) QueuePair
	// Record, if it is not nil, is called with each datagram that is sent to another process, or comes from one. An
	// address may not be valid: the system has chosen it.
	Record func(from, to netip.AddrPort, b []byte)
	// Retry is called when there is room for more, after Sender.Take has said that there is none.
	Retry func()
	// Local reports whether an address is one of this host.
	Local func(netip.Addr) bool
}

// Port returns the port of the process that has a queue pair, or false if it has none.
func (c *Config) Port(qpn uint32) (uint16, bool) {
	slot := c.SlotOf(qpn)
	port := c.FirstPort + int(slot) - 1
	return uint16(port), slot != 0 && port < 1<<16
}

// A Port is the UDP port of a process. All of its methods are safe for concurrent use.
type Port struct {
	cfg    Config
	sock   *socket
	groups groups
	start  time.Time
	ctx    context.Context // ends with the port
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// Of who receives.
	receiving sync.Mutex
	each      func(*incoming)
	arrival   Arrival
	parts     datagram.Reassembly
	due       []datagram.Debt[Peer]
	opened    bool // an Ack has made room
	foreign   [datagram.Reasons]atomic.Uint64

	polls    atomic.Uint64 // so that the goroutine knows that somebody polls
	awaiting atomic.Int32  // threads in Await

	// Of who sends.
	sending sync.Mutex
	flows   map[Peer]*flow
	locals  map[Peer]netip.Addr // the address to which a process sends
	toGroup uint32              // the last sequence number of what goes to groups
	blocked bool                // somebody waits for room
	timer   *time.Timer
	sender  Sender
}

// maxFlows is how many processes a port remembers that it has sent to.
const maxFlows = 1024

// nap is how long the goroutine leaves receiving to those that poll.
const nap = time.Millisecond

// Open opens the port of a slot.
func Open(cfg Config) (*Port, error) {
	port := cfg.FirstPort + int(cfg.Slot) - 1
	if cfg.Slot == 0 || port <= 0 || port >= 1<<16 {
		return nil, errors.New("a process without a slot has no UDP port")
	}
	s, err := openSocket(cfg.Address, uint16(port))
	if err != nil {
		return nil, err
	}
	p := &Port{cfg: cfg, sock: s, start: time.Now(), flows: make(map[Peer]*flow), locals: make(map[Peer]netip.Addr)}
	p.each = p.arrive
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.timer = time.AfterFunc(time.Hour, p.expire)
	p.timer.Stop()
	p.wg.Go(func() { p.serve(p.sock) })
	return p, nil
}

// Close closes the port. When it returns, no method of a QueuePair is called any more.
func (p *Port) Close() error {
	if p.ctx.Err() != nil {
		return nil
	}
	p.cancel()
	p.timer.Stop()
	err := errors.Join(p.sock.close(), p.groups.close())
	p.wg.Wait()
	p.receiving.Lock()
	defer p.receiving.Unlock()
	p.sending.Lock() // Retry has returned, or finds the port closed
	defer p.sending.Unlock()
	return err
}

func (p *Port) now() time.Duration { return time.Since(p.start) }

// Poll receives what has come, and does not wait. again says that the caller is likely to poll
// soon again, rather than to wait for an event.
func (p *Port) Poll(again bool) {
	if again {
		p.polls.Add(1)
	}
	if p.receiving.TryLock() {
		_, _ = p.drain(p.sock) // an error is the goroutine's to find
	}
	for _, s := range p.groups.opened() {
		if p.receiving.TryLock() {
			_, _ = p.drain(s) // likewise
		}
	}
}

// Await waits until something comes, but not for longer than so much.
func (p *Port) Await(most time.Duration) {
	p.awaiting.Add(1)
	p.sock.await(most)
	p.polls.Add(1)
	p.awaiting.Add(-1)
}

// serve receives while nobody polls.
func (p *Port) serve(s *socket) {
	seen := p.polls.Load()
	for {
		if err := s.wait(); err != nil {
			return // it is closed
		}
		for {
			n := p.polls.Load()
			if n == seen && p.awaiting.Load() == 0 {
				break
			}
			seen = n
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(nap):
			}
		}
		for {
			p.receiving.Lock()
			n, err := p.drain(s)
			if err != nil {
				return
			}
			if n < batch {
				break
			}
		}
		seen = p.polls.Load()
	}
}

// drain receives one batch, and then sends what is due for it. The caller holds receiving, and drain
// gives it back.
func (p *Port) drain(s *socket) (int, error) {
	n, err := s.receive(p.each)
	opened := p.opened
	p.opened = false
	if len(p.due) > 0 {
		p.ack(p.due)
		p.due = p.due[:0]
	}
	p.receiving.Unlock()
	if opened {
		p.retry()
	}
	return n, err
}

func (p *Port) arrive(in *incoming) {
	p.record(in)
	header, payload, err := datagram.Parse(in.data)
	a := &p.arrival
	*a = Arrival{Header: header, From: in.from, To: in.to, Payload: payload}
	h := &a.Header
	switch {
	case err != nil:
		p.foreign[datagram.Malformed].Add(1)
		return
	case h.Op == datagram.Ack:
		p.acked(in, h)
		return
	}
	if h.Dest == datagram.Multicast || in.to.IsMulticast() {
		p.arriveForGroup(a, in.data)
		return
	}
	qp := p.cfg.Find(h.Dest)
	if qp == nil {
		p.foreign[datagram.NoQueuePair].Add(1)
		return
	}
	if reason := p.check(qp, h, in.from, in.data); reason != datagram.Taken {
		p.foreign[reason].Add(1)
		qp.Drop(reason)
		return
	}
	ask, sequence := h.Flags&datagram.AskAck != 0, h.Sequence
	takes := h.TakesReceive()
	if h.OfUC() || h.Whole(len(payload)) {
		qp.Deliver(a)
	} else {
		first, message, reason, evicted := p.parts.Add(in.from, h, payload, p.now())
		p.foreign[datagram.TooMany].Add(uint64(evicted))
		switch {
		case reason != datagram.Taken:
			p.foreign[reason].Add(1)
			qp.Drop(reason)
		case first != nil:
			a.Header, a.Payload = *first, message
			qp.Deliver(a)
		}
	}
	if !ask {
		return
	}
	p.noteLocal(in)
	if !takes {
		p.due = append(p.due, datagram.Debt[Peer]{To: in.from, Sequence: sequence, Room: 1 << 16})
		return
	}
	p.due = append(p.due, datagram.Debt[Peer]{To: in.from, Sequence: sequence, Room: qp.Asked(in.from, sequence)})
}

// check decides whether a datagram is taken. The Q_Key comes first.
func (p *Port) check(qp QueuePair, h *datagram.Header, from Peer, b []byte) datagram.Reason {
	if reason := qp.Admit(h, from); reason != datagram.Taken {
		return reason
	}
	if port, some := p.cfg.Port(h.Source); !some || port != from.Port() {
		return datagram.WrongSource
	}
	if !datagram.Intact(b) {
		return datagram.Corrupt
	}
	return datagram.Taken
}

// acked notes that a process has room for more.
func (p *Port) acked(in *incoming, h *datagram.Header) {
	if !datagram.Intact(in.data) {
		p.foreign[datagram.Corrupt].Add(1)
		return
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	f := p.flows[in.from]
	if f == nil {
		p.foreign[datagram.WrongSource].Add(1)
		return
	}
	came, room := f.Ack(h.Sequence), f.credits.Ack(h.Sequence, h.Length)
	p.opened = p.opened || p.blocked && (came || room)
}

// Owe sends Acks that were due.
func (p *Port) Owe(due []datagram.Debt[Peer]) {
	if len(due) > 0 {
		p.ack(due)
	}
}

func (p *Port) ack(due []datagram.Debt[Peer]) {
	p.sending.Lock()
	defer p.sending.Unlock()
	for _, d := range due {
		h := datagram.Header{Op: datagram.Ack, Sequence: d.Sequence, Length: d.Room}
		h.Put(p.sock.room(datagram.HeaderLen))
		p.add(datagram.HeaderLen, d.To, p.locals[d.To]) // which the process knows as ours
	}
	p.sock.flush()
}

// Forget removes what is there for a queue pair that is no more. When it returns, no method of it is
// called any more, if Find does not find it.
func (p *Port) Forget(qpn uint32) {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	p.parts.Forget(qpn)
}

// Dropped returns how many datagrams were dropped, by reason.
func (p *Port) Dropped() (all [datagram.Reasons]uint64) {
	for i := range all {
		all[i] = p.foreign[i].Load()
	}
	return all
}

// expire looks whether a process has not answered for too long.
func (p *Port) expire() {
	p.sending.Lock()
	next := time.Duration(0)
	for _, f := range p.flows {
		left, waits := f.Wait(p.now())
		if rest, some := f.credits.Wait(p.now()); some && (!waits || rest < left) {
			left, waits = rest, true
		}
		if own := f.since + ownerPatience - p.now(); f.owner != 0 && own <= 0 {
			f.owner = 0
		} else if f.owner != 0 && (!waits || own < left) {
			left, waits = own, true
		}
		if waits && (next == 0 || left < next) {
			next = left
		}
	}
	if next > 0 && p.ctx.Err() == nil {
		p.timer.Reset(next)
	}
	p.sending.Unlock()
	p.retry()
}

func (p *Port) retry() {
	p.sending.Lock()
	p.blocked = false
	p.sending.Unlock()
	if p.ctx.Err() == nil {
		p.cfg.Retry()
	}
}

// Send has f send, and sends all that it has added when it returns. Errors of the network are not
// told: it may lose what it likes. It returns net.ErrClosed once the port is closed.
func (p *Port) Send(f func(*Sender)) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	if p.ctx.Err() != nil {
		return net.ErrClosed
	}
	p.sender = Sender{p: p, now: p.now()}
	f(&p.sender)
	p.sock.flush()
	return nil
}

// A Sender adds datagrams.
type Sender struct {
	p    *Port
	now  time.Duration
	n    int
	to   Peer
	from netip.Addr
}

// Take returns memory for the payload of a datagram of n bytes, of which the header is filled in but for
// Sequence and AskAck, or nil if there is no room for it now: Retry is called when there is.
// Put has to follow.
func (s *Sender) Take(h *datagram.Header, n int, to Peer, from netip.Addr) []byte {
	size := h.Len() + n
	if h.Dest == datagram.Multicast {
		s.p.toGroup++
		h.Sequence = s.p.toGroup
	} else {
		sequence, ask, ok := s.p.take(s.p.flow(to), h, n, s.now)
		if !ok {
			if !s.p.blocked {
				s.p.blocked = true
				s.p.timer.Reset(patienceStep)
			}
			return nil
		}
		h.Sequence = sequence
		if h.Flags &^= datagram.AskAck; ask {
			h.Flags |= datagram.AskAck
		}
	}
	s.n, s.to, s.from = size, to, from
	return s.p.sock.room(size)[h.Len():]
}

// Deaf reports whether a process to which something was sent does not answer.
func (p *Port) Deaf() bool {
	p.sending.Lock()
	defer p.sending.Unlock()
	for _, f := range p.flows {
		if f.Deaf() {
			return true
		}
	}
	return false
}

// A flow is what goes to one process.
type flow struct {
	datagram.Flow
	credits datagram.Credits
	// owner is the number of the queue pair that has begun a message, and not ended it: its fragments have successive
	// numbers, and all others wait. 0 stands for none.
	owner uint32
	since time.Duration // of its last fragment
}

// ownerPatience is how long the next fragment of a message may take, before others are let go.
const ownerPatience = 250 * time.Millisecond

// take takes a number for a datagram with n bytes of payload. The caller holds sending.
func (p *Port) take(f *flow, h *datagram.Header, n int, now time.Duration) (sequence uint32, ask, ok bool) {
	if f.owner != 0 && f.owner != h.Source {
		return 0, false, false
	}
	first, last := h.Offset == 0, h.Offset+uint32(n) == h.Length
	if h.TakesReceive() && first && !f.credits.May(h.Dest, now) {
		return 0, false, false
	}
	if sequence, ask, ok = f.Take(h.Len()+n, now); !ok {
		return 0, false, false
	}
	if h.TakesReceive() {
		ask = f.credits.Sent(sequence, h.Dest, first, last, ask)
	}
	switch {
	case h.Offset+uint32(n) < h.Length:
		f.owner, f.since = h.Source, now
	case f.owner != 0:
		if f.owner = 0; p.blocked {
			p.timer.Reset(0) // they can continue
		}
	}
	return sequence, ask, true
}

// patienceStep is when the first look is taken at whether a process answers.
const patienceStep = 50 * time.Millisecond

// Put adds the datagram whose payload is where Take has said.
func (s *Sender) Put(h *datagram.Header) {
	h.Put(s.p.sock.room(s.n))
	s.p.add(s.n, s.to, s.from)
}

// add adds what was put into the socket's room. The caller holds sending.
func (p *Port) add(n int, to Peer, from netip.Addr) {
	if p.cfg.Record != nil {
		p.cfg.Record(netip.AddrPortFrom(from, p.own()), to, p.sock.room(n))
	}
	p.sock.add(n, to, from)
}

// own returns the number of the UDP port.
func (p *Port) own() uint16 { return uint16(p.cfg.FirstPort + int(p.cfg.Slot) - 1) }

// record records what comes from another process: what a process sends to itself was recorded then.
func (p *Port) record(in *incoming) {
	if p.cfg.Record == nil || in.from.Port() == p.own() && (in.from.Addr() == in.to || in.to.IsMulticast() && p.cfg.Local(in.from.Addr())) {
		return
	}
	to := netip.AddrPortFrom(in.to, p.own())
	if in.to.IsMulticast() {
		to = netip.AddrPortFrom(in.to, uint16(p.cfg.FirstPort-1))
	}
	p.cfg.Record(in.from, to, in.data)
}

// noteLocal notes to which address a process sends: from there it expects Acks.
func (p *Port) noteLocal(in *incoming) {
	p.sending.Lock()
	defer p.sending.Unlock()
	if len(p.locals) >= maxFlows {
		clear(p.locals)
	}
	p.locals[in.from] = in.to
}

// flow returns what is known of a process. The caller holds sending.
func (p *Port) flow(to Peer) *flow {
	f := p.flows[to]
	if f == nil {
		if len(p.flows) >= maxFlows {
			for other := range p.flows { // one of them: it begins anew
				delete(p.flows, other)
				break
			}
		}
		f = new(flow)
		p.flows[to] = f
	}
	return f
}
