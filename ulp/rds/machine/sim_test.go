package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// A sim is nodes that are joined by links which may be cut at any step. Everything that
// happens follows from its seed.
type sim struct {
	world
	rng      *rand.Rand
	now      Time
	nodes    []*simNode
	links    []*simLink
	messages []simMessage // that were accepted
	pairs    []simPair
	acked    []int // messages that were given up since the last look
	events   []simEvent

	steps  int
	plan   []simFault // what goes wrong, by step
	lazy   int        // percent of reads that do not happen
	unread bool       // programs do not read
	serial int        // of the next socket

	verbose bool
	said    []string // what has happened, for a failure
}

type simNode struct {
	*Machine
	sim     *sim
	index   int
	cfg     Config
	sockets []*simSocket
	old     []*simSocket // of this life, that are closed
	byID    []int        // messages of this life
	ready   []simReady
	ends    map[*Path]*simEnd
	pings   int // that sockets of this life have sent
	pongs   int // that they have received
	dead    bool
	deaf    bool // it accepts no connections, and its system does
	away    bool // nobody is at its address
}

type simReady struct {
	path *Path
	link Link
}

// A simSocket knows what it has received of each pair.
type simSocket struct {
	*Socket
	node   *simNode
	serial int
	pairs  []int // index of the pair of each destination
	got    []int // by pair, the number of the next message
}

// A simPair is a socket and a port that it sends to.
type simPair struct {
	messages []int
}

// A simMessage is one that Send has accepted.
type simMessage struct {
	node   *simNode
	from   *simSocket
	port   uint16
	pair   int
	number int // in the pair
	data   []byte
	loop   bool
	op     *Operation
	ops    int        // how often it was carried out
	ended  bool       // its end was told
	at     *simSocket // that it was delivered to
	blind  bool       // the sender did not know the generation of the node that it was delivered to
	lost   bool
	freed  bool
}

const (
	simPort    = 1000 // the first port of sockets
	simSockets = 3
)

func newSim(w world, seed uint64, nodes int) *sim {
	s := &sim{world: w, rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range nodes {
		n := &simNode{sim: s, index: i, cfg: Config{
			Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), Generation: uint32(100*i + 1), Carriers: []Carrier{w.carrier},
			Seed: seed + uint64(i), SendBuffer: 20_000, ReceiveBuffer: 6000, PeerMemory: 30_000,
		}}
		n.start()
		s.nodes = append(s.nodes, n)
	}
	return s
}

func (s *sim) say(format string, args ...any) {
	if s.verbose {
		s.said = append(s.said, fmt.Sprintf("%4d %v ", s.steps, s.now)+fmt.Sprintf(format, args...))
	}
}

// A simFailure is what a simulation panics with when an invariant does not hold.
type simFailure string

func (s *sim) fail(format string, args ...any) { panic(simFailure(fmt.Sprintf(format, args...))) }

func (n *simNode) start() {
	m, err := New(n.cfg)
	if err != nil {
		n.sim.fail("New: %v", err)
	}
	n.Machine = m
	n.ends = map[*Path]*simEnd{}
	n.sockets, n.old, n.byID, n.ready, n.pings, n.pongs = nil, nil, nil, nil, 0, 0
	for i := range uint16(simSockets) {
		n.sockets = append(n.sockets, n.bind(simPort+i))
	}
}

// restart ends a node and begins another life of it.
func (s *sim) restart(i int) {
	n := s.nodes[i]
	s.say("node %d restarts", i)
	for _, l := range s.links {
		for _, e := range l.ends {
			if e.node == n {
				e.leave()
			}
		}
	}
	n.dead = true
	next := &simNode{sim: s, index: i, cfg: n.cfg}
	next.cfg.Generation++
	next.cfg.First += 1 << 20
	next.cfg.Seed += 1000
	if s.carrier.Paths > 1 { // it may have others than its former life
		carrier := s.carrier
		carrier.Paths = 1 + int(next.cfg.Generation)*3%4
		next.cfg.Carriers = []Carrier{carrier}
	}
	next.start()
	s.nodes[i] = next
	for _, l := range s.links {
		if l.ends[1].node == n && l.ends[1].path == nil {
			l.ends[1].node, l.ends[1].gone = next, false // a request that the old life has not seen
		}
	}
}

// leave ends a node for a while. Then nobody is at its address; or its system accepts connections, and nobody
// takes them.
func (s *sim) leave(i int, deaf bool) {
	n := s.nodes[i]
	s.say("node %d is gone; deaf: %v", i, deaf)
	for _, l := range s.links {
		for _, e := range l.ends {
			if e.node == n && e.path != nil {
				e.leave()
			}
		}
	}
	n.deaf, n.away = deaf, !deaf
}

// gather has the nodes that are gone begin a new life.
func (s *sim) gather() {
	for i, n := range s.nodes {
		if n.deaf || n.away {
			s.restart(i)
		}
	}
}

// rebind closes a socket and binds another one to its port.
func (n *simNode) rebind(i int) {
	old := n.sockets[i]
	n.sim.say("node %d:%d is closed", n.index, old.port)
	old.Close(n.sim.now)
	n.do()
	n.givesBack(old)
	n.old = append(n.old, old)
	n.sockets[i] = n.bind(old.port)
}

// givesBack verifies that a closed socket's messages are given back, whatever the network is like: but for those that
// are being sent, one on each path, and those with operations.
func (n *simNode) givesBack(old *simSocket) {
	kept, sending := 0, 0
	for i := range n.sim.messages {
		if msg := &n.sim.messages[i]; msg.from == old && !msg.freed && msg.op == nil {
			kept++
		}
	}
	for _, c := range n.order {
		for _, p := range c.paths {
			if p.current != nil && p.current.gone {
				sending++
			}
		}
	}
	if kept > sending {
		n.sim.fail("node %d: %d messages of a closed socket are kept, of which %d are being sent", n.index, kept, sending)
	}
}

func (n *simNode) bind(port uint16) *simSocket {
	s, err := n.Bind(port, 0, 0)
	if err != nil {
		n.sim.fail("Bind: %v", err)
	}
	n.sim.serial++
	sock := &simSocket{Socket: s, node: n, serial: n.sim.serial, pairs: make([]int, 4*(simSockets+1))}
	for i := range sock.pairs {
		sock.pairs[i] = -1
	}
	return sock
}

// at returns the socket of a port; nil if it is no socket's.
func (n *simNode) at(port uint16) *simSocket {
	if port < simPort || int(port-simPort) >= len(n.sockets) {
		return nil
	}
	return n.sockets[port-simPort]
}

// do carries out a node's effects.
func (n *simNode) do() {
	for effects := n.Effects(); effects != nil; effects = n.Effects() {
		for _, e := range slices.Clone(effects) {
			n.effect(&e)
		}
	}
}

func (n *simNode) effect(e *Effect) {
	s := n.sim
	switch e.Kind {
	case Dial:
		n.dial(e.Path, e.Link)
	case Hangup:
		if end := n.ends[e.Path]; end != nil && end.number == e.Link {
			s.say("node %d hangs up path %d link %d: %v", n.index, e.Path.Index(), e.Link, e.Err)
			end.leave()
			end.hung = true
		}
	case Settled:
		i, _ := e.Op.Arg.(int)
		if msg := &s.messages[i]; msg.ended {
			s.fail("the operation of message %d ends twice", i)
		} else {
			msg.ended = true
		}
	case Transmit:
		_, link := e.Path.State()
		i := slices.IndexFunc(n.ready, func(r simReady) bool { return r.path == e.Path })
		if i < 0 {
			n.ready = append(n.ready, simReady{e.Path, link})
		} else {
			n.ready[i].link = link
		}
	case Resume:
		if end := n.ends[e.Path]; end != nil && end.number == e.Link {
			end.waits = false
		}
	case Report:
		if s.verbose {
			s.say("node %d: event %d of message %d: %v", n.index, e.Event.Kind, e.Event.ID, e.Event.Err)
		}
		n.event(&e.Event)
	}
}

func (n *simNode) event(e *Event) {
	switch e.Kind {
	case PeerViolation:
		n.sim.fail("node %d: %v", n.index, e.Err)
	case MessageLost:
		if e.ID == 0 || e.ID > uint64(len(n.byID)) {
			n.sim.fail("node %d: message %d is reported as lost, and was never sent", n.index, e.ID)
		}
		if msg := &n.sim.messages[n.byID[e.ID-1]]; msg.lost {
			n.sim.fail("node %d: message %d is reported as lost twice", n.index, e.ID)
		} else {
			msg.lost = true
		}
	}
}

func (s *sim) advance(by Time) {
	s.now += by
	for _, n := range s.nodes {
		n.Advance(s.now)
		if at, ok := n.Deadline(); ok && at <= s.now {
			s.fail("node %d has the deadline %v after Advance", n.index, at)
		}
	}
}

// deadline returns the earliest of the nodes.
func (s *sim) deadline() (first Time, ok bool) {
	for _, n := range s.nodes {
		if at, is := n.Deadline(); is && (!ok || at < first) {
			first, ok = at, true
		}
	}
	return first, ok
}

// mark puts the number of a message into its data.
func mark(data []byte, i uint32) {
	for at := 0; at+4 <= len(data); at += 512 {
		binary.BigEndian.PutUint32(data[at:], i^uint32(at))
	}
}

// send sends a message; port 0 is a ping.
func (s *sim) send(from *simSocket, to *simNode, port uint16, size int, o Options) {
	n := from.node
	i := len(s.messages)
	var data []byte
	slot := 4*to.index + simSockets
	if port != wire.PingPort {
		data = make([]byte, size)
		mark(data, uint32(i))
		slot = 4*to.index + int(port-simPort)
	}
	pair := from.pairs[slot]
	if pair < 0 {
		pair = len(s.pairs)
		from.pairs[slot] = pair
		s.pairs = append(s.pairs, simPair{})
	}
	s.messages = append(s.messages, simMessage{
		node: n, from: from, port: port, pair: pair, number: len(s.pairs[pair].messages), data: data, loop: to == n, op: o.Op,
	})
	if o.Op != nil {
		o.Op.Arg = i
	}
	o.Free, o.Memory = func() { s.freed(i) }, simMemory{}
	before := 0
	if to == n && port != wire.PingPort {
		before = to.at(port).queue.len()
	}
	id, err := from.Send(s.now, Endpoint{to.cfg.Addr, port}, data, o)
	if err != nil {
		if !errors.Is(err, ErrCongested) && !errors.Is(err, ErrBufferFull) {
			s.fail("Send: %v", err)
		}
		s.messages = s.messages[:i]
		return
	}
	s.say("node %d:%d sends %d to node %d:%d, message %d of %d bytes", n.index, from.port, i, to.index, port, id, len(data))
	if n.byID = append(n.byID, i); id != uint64(len(n.byID)) {
		s.fail("the message has the number %d; want %d", id, len(n.byID))
	}
	s.pairs[pair].messages = append(s.pairs[pair].messages, i)
	switch {
	case port == wire.PingPort:
		n.pings++
	case to == n && to.at(port).queue.len() > before:
		s.delivered(to.at(port))
	}
}

// replayed runs a simulation, and again with a log if an invariant does not hold.
func replayed(t *testing.T, what string, play func(made func(*sim))) {
	t.Helper()
	attempt := func(verbose bool) (failure simFailure, last *sim) {
		defer func() {
			r := recover()
			if f, ok := r.(simFailure); ok {
				failure = f
			} else if r != nil {
				panic(r)
			}
		}()
		play(func(s *sim) { s.verbose, last = verbose, s })
		return "", last
	}
	failure, _ := attempt(false)
	if failure == "" {
		return
	}
	again, s := attempt(true)
	t.Log(strings.Join(s.said[max(0, len(s.said)-150):], "\n"))
	if again != failure {
		t.Logf("the second time: %s", again)
	}
	t.Fatalf("%s: %s", what, failure)
}

// simMemory is the memory of a message.
type simMemory struct{}

func (simMemory) Use() {}

const simTick = 5 * time.Millisecond
