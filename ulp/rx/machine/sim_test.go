package machine

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A sim is nodes that a bad network joins, and programs on them. Everything that happens
// follows from its seed.
type sim struct {
	rng   *rand.Rand
	now   Time
	queue simQueue
	order int
	net   simNet
	plan  simPlan
	nodes []*simNode // the first is the server
	calls map[simKey]*simCall
	open  int // calls of programs that have not ended
	done  bool
	steps int
	lives int // of all nodes

	buf     []byte
	verbose bool
	said    []string
}

// A simNet is what the network is like.
type simNet struct {
	loss, twice  float64
	delay, vary  time.Duration
	mtu          int // what is larger is lost
	link         int // what the nodes think it is
	together     time.Duration
	spoils       bool // it loses enough for a peer to seem dead
	restartsNode int  // -1: none
}

// A simPlan is what programs are like.
type simPlan struct {
	secure, reach bool
	aborts        bool
	hard, idle    time.Duration
	large         bool
}

// A simKey is how a call is known on the wire.
type simKey struct {
	epoch, cid, number uint32
}

// A simEvent is something that happens at a moment.
type simEvent struct {
	at    Time
	order int
	do    func()
	// A datagram, if do is nil.
	to, from int
	b        []byte
}

type simQueue []*simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(*simEvent)) }

// Pop is of heap.Interface.
func (q *simQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}

type simNode struct {
	*Machine
	s       *sim
	index   int
	addr    netip.AddrPort
	conns   []*Conn    // a client's
	waiting []*simCall // for a channel
	life    int
}

// A simFailure is what a simulation panics with when something does not hold.
type simFailure string

func (s *sim) fail(format string, args ...any) { panic(simFailure(fmt.Sprintf(format, args...))) }

func (s *sim) say(format string, args ...any) {
	if s.verbose {
		s.said = append(s.said, fmt.Sprintf("%12v ", s.now)+fmt.Sprintf(format, args...))
	}
}

func (s *sim) tell(t *testing.T) {
	t.Logf("%+v %+v", s.net, s.plan)
	const most = 400
	for _, line := range s.said[max(0, len(s.said)-most):] {
		t.Log(line)
	}
}

func (s *sim) chance(p float64) bool { return s.rng.Float64() < p }

// upTo returns a random duration.
func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d) + 1)) }

func (s *sim) later(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.queue, &simEvent{at: s.now + d, order: s.order, do: do})
}

// play plays a schedule. failure is empty if all that has to hold does.
func play(seed uint64, verbose bool) (failure simFailure, s *sim) {
	s = &sim{
		rng: rand.New(rand.NewPCG(seed, 17)), calls: map[simKey]*simCall{}, buf: make([]byte, MaxDatagram), verbose: verbose,
		now: time.Second,
	}
	defer func() {
		r := recover()
		if f, ok := r.(simFailure); ok {
			failure = f
		} else if r != nil {
			panic(r)
		}
	}()
	s.draw()
	for i := range 2 + s.rng.IntN(2) {
		n := &simNode{s: s, index: i, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 7000)}
		s.nodes = append(s.nodes, n)
		n.start()
	}
	for _, n := range s.nodes[1:] {
		n.program()
	}
	if s.net.restartsNode >= 0 {
		s.later(s.upTo(3*time.Second), func() { s.restart(s.nodes[min(s.net.restartsNode, len(s.nodes)-1)]) })
	}
	s.run(func() bool { return s.open == 0 })
	s.done = true
	for _, n := range s.nodes {
		for _, c := range n.conns {
			c.Close(s.now)
		}
		n.flush()
	}
	s.run(func() bool { return false })
	s.atRest()
	return "", s
}

// draw decides what the network and the programs are like.
func (s *sim) draw() {
	r := s.rng
	n := simNet{delay: time.Duration(r.IntN(20)) * time.Millisecond, mtu: 65535, restartsNode: -1}
	if s.chance(0.6) {
		n.loss = 0.3 * r.Float64()
		n.spoils = true
	}
	if s.chance(0.5) {
		n.vary = time.Duration(r.IntN(200)) * time.Millisecond
	}
	if s.chance(0.3) {
		n.twice = 0.2 * r.Float64()
	}
	if s.chance(0.3) {
		n.together = time.Millisecond
	}
	switch r.IntN(6) {
	case 0:
		n.mtu = wire.DefaultPacket
	case 1:
		n.mtu = 600 + r.IntN(800)
		n.link = n.mtu
	case 2:
		n.mtu, n.link = 3000, 9000
	case 3:
		n.link = 9000
	}
	if s.chance(0.08) {
		n.restartsNode = r.IntN(3)
	}
	s.net = n
	s.plan = simPlan{secure: s.chance(0.3), reach: s.chance(0.2), aborts: s.chance(0.3), large: s.chance(0.08)}
	if n.restartsNode >= 0 && s.chance(0.8) {
		// A server that has restarted answers pings of a call that it can't complete.
		s.plan.idle = time.Minute
	}
	if s.chance(0.1) {
		s.plan.hard = time.Second + s.upTo(10*time.Second)
	}
}

const simIdle = 100 * time.Second

// start begins a life of a node.
func (n *simNode) start() {
	s := n.s
	s.lives++
	n.life = s.lives
	cfg := Config{
		Rand: rand.New(rand.NewPCG(uint64(n.life), s.rng.Uint64())), IdleTime: simIdle, Window: 8 << s.rng.IntN(5),
		Epoch: uint32(n.life)<<8 | 1,
	}
	if s.chance(0.8) {
		cfg.Epoch |= wire.HighBit
	}
	if s.net.link != 0 {
		cfg.Link = func(netip.AddrPort) int { return s.net.link }
	}
	n.Machine = New(cfg)
	n.conns, n.waiting = nil, nil
	if n.index == 0 {
		service := Service{ID: testService, Reach: s.plan.reach, HardDead: s.plan.hard}
		if s.plan.secure {
			service.Security = []secure.Server{fakeServer{}}
		}
		if err := n.Serve(service); err != nil {
			s.fail("Serve: %v", err)
		}
	}
}

// restart ends a node with all that its programs do, and begins another life of it.
func (s *sim) restart(n *simNode) {
	if s.done {
		return
	}
	s.say("node %d restarts", n.index)
	for _, k := range s.calls {
		if k.from == n && !k.ended && k.life == n.life {
			k.ended = true
			s.open--
		}
		k.restarted = true
	}
	s.open -= len(n.waiting)
	n.start()
	if n.index > 0 {
		n.program()
	}
}

// run plays until a condition holds or nothing is left to happen.
func (s *sim) run(until func() bool) {
	const most = 300_000
	for !until() {
		if s.steps++; s.steps > most {
			s.fail("there is no end: %d calls are open", s.open)
		}
		var first *simNode
		at := never
		for _, n := range s.nodes {
			if d, ok := n.Deadline(); ok && d < at {
				first, at = n, d
			}
		}
		if len(s.queue) > 0 && s.queue[0].at <= at {
			e := heap.Pop(&s.queue).(*simEvent)
			s.now = max(s.now, e.at)
			s.happen(e)
			continue
		}
		if first == nil {
			break
		}
		s.now = max(s.now, at)
		first.Advance(s.now)
		if at, ok := first.Deadline(); ok && at <= s.now {
			s.fail("node %d has the deadline %v after Advance", first.index, at)
		}
		first.flush()
	}
	if !until() && s.open > 0 {
		s.fail("%d calls never end, and nothing is left to happen", s.open)
	}
}

// happen carries out an event. Datagrams that come at about the same time come together.
func (s *sim) happen(e *simEvent) {
	if e.do != nil {
		e.do()
		return
	}
	n := s.nodes[e.to]
	for {
		n.arrive(e)
		if len(s.queue) == 0 || s.queue[0].do != nil || s.queue[0].to != e.to || s.queue[0].at > s.now+s.net.together {
			break
		}
		e = heap.Pop(&s.queue).(*simEvent)
	}
	n.flush()
}

// arrive gives a node a datagram.
func (n *simNode) arrive(e *simEvent) {
	s := n.s
	h, err := wire.ParseHeader(e.b)
	if err != nil {
		s.fail("a datagram of %d bytes is sent", len(e.b))
	}
	if k := s.calls[simKey{h.Epoch, h.CID, h.Call}]; k != nil {
		switch {
		case e.to > 0 && k.Err() == nil:
			k.heard[1] = s.now
		case e.to == 0 && (k.served == nil || k.served.Err() == nil):
			k.heard[0] = s.now
		}
	}
	n.Receive(s.now, s.nodes[e.from].addr, e.b)
}

// flush carries out a node's effects, and takes what it sends.
func (n *simNode) flush() {
	s := n.s
	for i := 0; ; i++ {
		for effects := n.Effects(); effects != nil; effects = n.Effects() {
			for _, e := range append([]Effect(nil), effects...) {
				n.effect(&e)
			}
		}
		size, to, ok := n.Pull(s.now, s.buf)
		if !ok {
			break
		}
		if i > 2000 {
			s.fail("node %d sends without end", n.index)
		}
		n.send(s.buf[:size], to)
	}
	n.check()
}

// send puts a datagram into the network.
func (n *simNode) send(b []byte, to netip.AddrPort) {
	s := n.s
	n.checkSent(b)
	i := int(to.Addr().As4()[3]) - 1
	if s.verbose {
		h, _ := wire.ParseHeader(b)
		what := h.String()
		if a, err := wire.ParseAck(b[wire.HeaderLen:]); err == nil && h.Type == wire.TypeAck {
			what += " " + a.String()
		}
		s.say("%d>%d %d bytes: %s", n.index, i, len(b), what)
	}
	copies := 1
	switch {
	case len(b) > s.net.mtu || s.chance(s.net.loss):
		s.say("lost")
		return
	case s.chance(s.net.twice):
		copies = 2
	}
	for range copies {
		s.order++
		heap.Push(&s.queue, &simEvent{
			at: s.now + s.net.delay + s.upTo(s.net.vary), order: s.order, to: i, from: n.index, b: append([]byte(nil), b...),
		})
	}
}
