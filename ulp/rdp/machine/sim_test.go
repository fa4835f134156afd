package machine

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/wire"
)

// A world is what all schedules of a subtest have in common.
type world struct {
	name      string
	version   uint8
	sequenced [2]bool // what each node asks for
	window    int     // 0: any from 1 to 16
	cookies   CookieMode
	numbers   bool
	keepalive bool
	sink      bool
	config    func(*Config)
	params    func(*Params)
}

var worlds = []world{
	{name: "v1-sequenced", version: 1, sequenced: [2]bool{true, true}},
	{name: "v2-sequenced", version: 2, sequenced: [2]bool{true, true}, keepalive: true},
	{name: "v1-unsequenced", version: 1, keepalive: true},
	{name: "v2-unsequenced", version: 2, numbers: true},
	{name: "v2-mixed", version: 2, sequenced: [2]bool{false, true}, keepalive: true, numbers: true},
	{name: "v2-narrow", version: 2, config: func(c *Config) { c.NarrowWindow, c.AckDelay = true, -1 }},
	{name: "v1-wide", version: 1, window: 60, sequenced: [2]bool{true, false}, config: func(c *Config) { c.Congestion = reno }},
	{name: "v2-wide", version: 2, window: 60, keepalive: true, numbers: true, config: func(c *Config) { c.Congestion = cubic }},
	{name: "v2-one", version: 2, window: 1, keepalive: true},
	{name: "v1-strict-reset", version: 1, sequenced: [2]bool{true, true}, keepalive: true, config: func(c *Config) { c.StrictReset = true }},
	{name: "v2-silent-close", version: 2, keepalive: true, config: func(c *Config) { c.SilentCloseWait, c.StrictReset = true, true }},
	{name: "v2-loose", version: 2, sequenced: [2]bool{true, true}, keepalive: true, config: func(c *Config) { c.Memory = 8000 }, params: func(p *Params) { p.Loose, p.SendQueue = true, 5 }},
	{name: "v2-ack-read", version: 2, sequenced: [2]bool{true, true}, keepalive: true, params: func(p *Params) { p.AckRead = true }},
	{name: "v1-ack-read", version: 1, keepalive: true, numbers: true, params: func(p *Params) { p.AckRead, p.SendQueue = true, 3 }},
	{name: "v2-sink", version: 2, keepalive: true, numbers: true, sink: true},
	{name: "v1-sink-ack-read", version: 1, sequenced: [2]bool{true, true}, keepalive: true, sink: true, params: func(p *Params) { p.AckRead = true }},
	{name: "v2-cookies", version: 2, cookies: CookiesAlways, keepalive: true, sequenced: [2]bool{true, false}},
	{name: "v1-cookies-if-full", version: 1, cookies: CookiesIfFull, keepalive: true, config: func(c *Config) { c.MaxHalfOpen = 1 }},
}

func reno() congestion.Controller  { return congestion.NewReno(congestion.Config{}) }
func cubic() congestion.Controller { return congestion.NewCUBIC(congestion.Config{}) }

// A sim is two endpoints and a network that loses, reorders, repeats and damages. All that
// happens follows from its seed.
type sim struct {
	*world
	seed  uint64
	rng   *rand.Rand
	now   Time
	nodes [2]*simNode
	conns []*simConn // of all lives
	net   simNet
	buf   []byte
	spare [][]byte

	verbose bool
	said    []string
}

// A simNet is what the network does.
type simNet struct {
	delay, jitter        Time
	loss, repeat, damage int // percent
	packets              []simPacket
	sent, delivered      int
	forged               bool // there was a forged segment
}

type simPacket struct {
	at     Time
	number int // in the order of sending
	from   int
	data   []byte
	broken bool
}

// A simNode is one life of a node.
type simNode struct {
	*Machine
	sim      *sim
	index    int
	listener *Listener
	conns    []*simConn
	issued   uint32
	base     uint32
}

// A simConn is a Conn and what a program knows of it.
type simConn struct {
	*Conn
	node   *simNode
	serial int
	sent   []simMessage
	read   int // messages of the peer
	link   *simConn
	cur    uint32 // RCV.CUR when last looked at
	opened bool
	ended  bool            // StateChanged has told of CLOSED
	closed bool            // by the program
	seen   map[uint32]bool // numbers that Receive has returned
}

// A simMessage is one that Send has accepted.
type simMessage struct {
	seq  uint32
	size int
	got  *simConn
}

// A simFailure is what a simulation panics with when an invariant does not hold.
type simFailure string

func (s *sim) fail(format string, args ...any) { panic(simFailure(fmt.Sprintf(format, args...))) }

func (s *sim) say(format string, args ...any) {
	if s.verbose {
		s.said = append(s.said, fmt.Sprintf("%12v ", s.now)+fmt.Sprintf(format, args...))
	}
}

func newSim(w *world, seed uint64) *sim {
	s := &sim{world: w, seed: seed, rng: rand.New(rand.NewPCG(seed, uint64(w.version)<<8+uint64(len(w.name)))), buf: make([]byte, 0, 2048)}
	s.net = simNet{
		delay: pick(s.rng, time.Millisecond, 5*time.Millisecond, 20*time.Millisecond), jitter: pick(s.rng, 0, time.Millisecond, 10*time.Millisecond, 40*time.Millisecond),
		loss: pick(s.rng, 0, 0, 2, 10, 20, 40), repeat: pick(s.rng, 0, 0, 5, 20), damage: pick(s.rng, 0, 0, 5),
	}
	for i := range s.nodes {
		s.nodes[i] = s.start(i)
	}
	return s
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// address is that of a node.
func address(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)}), 10908)
}

func pathTo(i int) Path { return Path{address(1 - i).Addr(), address(i)} }

// lifetime bounds how long a segment is under way.
const lifetime = 20*time.Millisecond + 40*time.Millisecond*3

// RDP ports of the simulation.
const (
	simListen = 10 // where both listen
	simActive = 20 // from which each opens, with simActive+1, to the same of the other: at once
	simClient = 30 // from which they open to the listener, with simClient+1
)

// start begins a life of a node.
func (s *sim) start(i int) *simNode {
	cfg := Config{
		Secret: fmt.Appendf(nil, "%d %d %d", s.seed, i, s.now), MaxConns: 12, MaxHalfOpen: 4, Cookies: s.cookies,
		CloseWait: 2 * lifetime, RTOInitial: 100 * time.Millisecond, RTOMin: 20 * time.Millisecond, RTOMax: time.Second,
		SYNTries: 12, Tries: 25, Stall: 30 * time.Second, Doubt: 50 * time.Millisecond, AckDelay: 5 * time.Millisecond,
	}
	if s.config != nil {
		s.config(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		s.fail("New: %v", err)
	}
	n := &simNode{Machine: m, sim: s, index: i, base: -uint32(s.rng.IntN(40)) - uint32(s.rng.IntN(3))*isApart}
	if s.nodes[i] != nil || s.rng.IntN(2) == 0 { // the numbers of another life are others
		n.base = s.rng.Uint32()
	}
	m.tick(s.now)
	m.cookieTime = 300 * time.Millisecond
	m.iss = func(Name) uint32 { n.issued++; return n.base + n.issued*isApart }
	s.listen(n)
	return n
}

// isApart is how far apart initial numbers are.
const isApart = 1<<17 + 29

func (s *sim) listen(n *simNode) {
	l, err := n.Listen(ListenConfig{Port: simListen, Backlog: 3, Params: s.paramsOf(n.index)})
	if err != nil {
		s.fail("Listen: %v", err)
	}
	n.listener = l
}

// paramsOf draws the parameters of an open.
func (s *sim) paramsOf(i int) Params {
	p := Params{
		MaxSegment: pick(s.rng, 60, 100, 300), Window: s.window, Sequenced: s.sequenced[i], Keepalive: -1, Numbers: s.numbers,
	}
	if p.Window == 0 {
		p.Window = pick(s.rng, 1, 2, 3, 5, 8, 16)
	}
	if s.cookies != CookiesNever { // they round down
		p.MaxSegment = pick(s.rng, 128, 300)
	}
	if s.keepalive {
		p.Keepalive = 500 * time.Millisecond
	}
	if s.sink {
		p.Sink = s.take
	}
	if s.params != nil {
		s.params(&p)
	}
	return p
}

// transmit puts what a node has to send on its way.
func (s *sim) transmit(n *simNode) {
	for i := 0; ; i++ {
		if i > 5000 {
			s.fail("node %d sends without end", n.index)
		}
		b, to, ok := n.Pull(s.now, s.buf)
		if !ok {
			return
		}
		if to.Remote != address(1-n.index) || to.Local != address(n.index).Addr() {
			s.fail("node %d sends to %v", n.index, to)
		}
		s.sent(n, b)
	}
}

// sent puts a segment on its way, if it is not lost.
func (s *sim) sent(n *simNode, b []byte) {
	if s.verbose {
		var h wire.Header
		data, err := h.Parse(b, nil)
		s.say("node %d sends %v, %d bytes, %v", n.index, &h, len(data), err)
	}
	copies := 1
	if s.rng.IntN(100) < s.net.loss {
		s.say("  lost")
		copies = 0
	}
	if s.rng.IntN(100) < s.net.repeat {
		copies++
	}
	for range copies {
		s.fly(n.index, b)
	}
}

// fly delivers a segment later.
func (s *sim) fly(from int, b []byte) {
	s.net.sent++
	p := simPacket{at: s.now + s.net.delay, number: s.net.sent, from: from}
	if s.net.jitter > 0 {
		p.at += time.Duration(s.rng.Int64N(int64(s.net.jitter)))
	}
	if k := len(s.spare); k > 0 {
		p.data, s.spare = append(s.spare[k-1][:0], b...), s.spare[:k-1]
	} else {
		p.data = append(make([]byte, 0, 320), b...)
	}
	if s.rng.IntN(100) < s.net.damage {
		p.data[s.rng.IntN(len(p.data))] ^= 1 << s.rng.IntN(8)
		var h wire.Header
		_, err := h.Parse(p.data, nil)
		if p.broken = err != nil; !p.broken {
			return // by chance, it is another one of the right form
		}
	}
	s.net.packets = append(s.net.packets, p)
}

// first returns the index of the segment that arrives next; -1 if there is none.
func (s *sim) first() int {
	best := -1
	for i := range s.net.packets {
		if best >= 0 {
			if p, q := &s.net.packets[i], &s.net.packets[best]; p.at > q.at || p.at == q.at && p.number > q.number {
				continue
			}
		}
		best = i
	}
	return best
}

// run lets time pass until a moment.
func (s *sim) run(until Time) {
	for {
		next, i := until, s.first()
		if i >= 0 {
			next = min(next, s.net.packets[i].at)
		}
		for _, n := range s.nodes {
			if at, ok := n.Deadline(); ok {
				next = min(next, at)
			}
		}
		s.now = max(s.now, next)
		if i >= 0 && s.net.packets[i].at <= s.now {
			s.arrive(i)
			continue
		}
		idle := true
		for _, n := range s.nodes {
			if at, ok := n.Deadline(); ok && at <= s.now {
				n.Advance(s.now)
				if at, ok := n.Deadline(); ok && at <= s.now {
					s.fail("node %d has the deadline %v after Advance", n.index, at)
				}
				s.after(n)
				idle = false
			}
		}
		if idle {
			return
		}
	}
}

// arrive delivers a segment.
func (s *sim) arrive(i int) {
	p := s.net.packets[i]
	last := len(s.net.packets) - 1
	s.net.packets[i] = s.net.packets[last]
	s.net.packets = s.net.packets[:last]
	n := s.nodes[1-p.from]
	s.net.delivered++
	before := n.snapshot(p.broken)
	n.Receive(s.now, pathTo(p.from), p.data)
	if p.broken && n.snapshot(true) != before {
		s.fail("node %d: a damaged segment has changed something (I17)", n.index)
	}
	clear(p.data) // the machine must not keep it
	s.spare = append(s.spare, p.data)
	s.after(n)
}

// after carries out what a node wants after a call, and looks at it.
func (s *sim) after(n *simNode) {
	s.events(n)
	// A node that is busy takes in several segments before it answers.
	if s.rng.IntN(8) > 0 || len(s.net.packets) == 0 {
		s.transmit(n)
		s.events(n)
	}
	s.check(n)
}
