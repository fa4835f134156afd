package machine

import (
	"math/rand/v2"

	"urnic/ulp/rds/wire"
)

// A simEvent is something that may happen next.
type simEvent struct {
	kind simKind
	node *simNode
	i    int
	link *simLink
	end  *simEnd
}

type simKind uint8

const (
	simReceive simKind = iota // socket i of a node reads
	simPull                   // a node sends on path i of those that are ready
	simRequest                // the peer of who dials decides
	simUp                     // an end is told that the link is up
	simArrive                 // a segment arrives
	simRepost                 // receives are posted again
	simAcked                  // the carrier says what has arrived
	simDown                   // an end is told that the link is gone
	simAnswer                 // the answer to an operation arrives
)

// possible lists what may happen next, apart from what programs do, faults, and time.
func (s *sim) possible() []simEvent {
	s.events = s.events[:0]
	for _, n := range s.nodes {
		for i, sock := range n.sockets {
			if sock.queue.len() > 0 && !s.unread {
				s.events = append(s.events, simEvent{kind: simReceive, node: n, i: i})
			}
		}
		for i := range n.ready {
			s.events = append(s.events, simEvent{kind: simPull, node: n, i: i})
		}
	}
	kept := s.links[:0]
	for _, l := range s.links {
		before := len(s.events)
		s.ofLink(l)
		if len(s.events) > before || s.whole(l) {
			kept = append(kept, l)
		}
	}
	clear(s.links[len(kept):])
	s.links = kept
	return s.events
}

func (s *sim) whole(l *simLink) bool { return !l.cut && !l.ends[0].gone && !l.ends[1].gone }

// ofLink lists what may happen next on a link. Nothing is left of one that is cut and
// both of whose ends know.
func (s *sim) ofLink(l *simLink) {
	if peer := l.ends[1]; peer.path == nil && s.whole(l) {
		if !peer.node.deaf && s.turn(l) {
			s.events = append(s.events, simEvent{kind: simRequest, link: l})
		}
		if !s.carrier.OrderedDial {
			return
		}
		// TCP has a connection for who has dialed before the program of the other side decides about it.
		if dialler := l.ends[0]; peer.passed > 0 && dialler.up && !peer.node.away {
			s.events = append(s.events, simEvent{kind: simAcked, end: peer})
		}
	}
	for _, e := range l.ends {
		if e.path != nil && e.hung && !e.node.dead {
			s.events = append(s.events, simEvent{kind: simDown, end: e})
		}
		if e.path == nil || e.gone {
			continue
		}
		if len(e.answer) > 0 {
			s.events = append(s.events, simEvent{kind: simAnswer, end: e})
		}
		if !e.up {
			if s.whole(l) && !e.other().node.away {
				s.events = append(s.events, simEvent{kind: simUp, end: e})
			}
		} else {
			if len(e.to) > 0 && !e.waits {
				s.events = append(s.events, simEvent{kind: simArrive, end: e})
			}
			if e.used > 0 {
				s.events = append(s.events, simEvent{kind: simRepost, end: e})
			}
			if o := e.other(); e.passed > 0 && o.up && !o.gone && !l.cut {
				s.events = append(s.events, simEvent{kind: simAcked, end: e})
			}
		}
		if !s.whole(l) {
			s.events = append(s.events, simEvent{kind: simDown, end: e})
		}
	}
}

// turn reports whether a request may be decided about: a link that it replaces is read to its end before.
func (s *sim) turn(l *simLink) bool {
	p := l.ends[1].node.Replaces(l.ends[0].request())
	if p == nil {
		return true
	}
	end := l.ends[1].node.ends[p]
	return end == nil || !end.up || len(end.to) == 0
}

func (s *sim) happen(e simEvent) {
	switch e.kind {
	case simReceive:
		s.receive(e.node.sockets[e.i])
	case simPull:
		s.pull(e.node, e.i)
	case simRequest:
		s.request(e.link)
	case simUp:
		s.up(e.end)
	case simArrive:
		s.arrive(e.end)
	case simRepost:
		s.repost(e.end)
	case simAcked:
		o := e.end.other()
		o.path.Acked(s.now, o.number, e.end.passed)
		e.end.passed = 0
	case simDown:
		s.down(e.end)
	case simAnswer:
		op := e.end.answer[0]
		e.end.answer = e.end.answer[1:]
		e.end.path.Done(s.now, e.end.number, op, nil)
	}
}

// settled does what follows a step.
func (s *sim) settled() {
	s.steps++
	s.do()
	s.check()
	for len(s.plan) > 0 && s.plan[0].at <= s.steps {
		f := s.plan[0]
		s.plan = s.plan[1:]
		f.strike(s)
		s.do()
	}
}

// do carries out the effects of all nodes.
func (s *sim) do() {
	for _, n := range s.nodes {
		n.do()
	}
	s.judge()
}

// step lets one thing happen, if anything can without time.
func (s *sim) step() bool {
	events := s.possible()
	if len(events) == 0 {
		return false
	}
	s.happen(events[s.rng.IntN(len(events))])
	s.settled()
	return true
}

// random lets one thing happen: of the network, of programs, or of time.
func (s *sim) random(cuts, restarts bool) {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	sock := n.sockets[s.rng.IntN(simSockets)]
	switch k := s.rng.IntN(1000); {
	case k < 200:
		s.randomSend(sock)
	case k < 220:
		s.say("node %d:%d waits", n.index, sock.port)
		sock.Hasten(s.now)
	case k < 260:
		if at, ok := s.deadline(); ok && s.rng.IntN(2) == 0 {
			s.advance(max(0, at-s.now))
		} else {
			s.advance(Time(s.rng.IntN(int(simTick))))
		}
	case k < 285 && cuts && len(s.links) > 0:
		l := s.links[s.rng.IntN(len(s.links))]
		s.cut(l, [2]int{s.rng.IntN(len(l.ends[0].to) + 1), s.rng.IntN(len(l.ends[1].to) + 1)})
	case k < 290 && restarts:
		s.restart(n.index)
	case k < 295 && restarts:
		n.rebind(s.rng.IntN(simSockets))
	case k < 298 && restarts:
		s.leave(n.index, s.rng.IntN(2) == 0)
	case k < 305 && (n.deaf || n.away):
		s.restart(n.index)
	default:
		if events := s.possible(); len(events) > 0 {
			e := events[s.rng.IntN(len(events))]
			if e.kind != simReceive || s.rng.IntN(100) >= s.lazy {
				s.happen(e)
			}
		}
	}
	s.settled()
}

func (s *sim) randomSend(from *simSocket) {
	to := s.nodes[s.rng.IntN(len(s.nodes))]
	if to == from.node && s.rng.IntN(4) > 0 {
		return
	}
	port := uint16(simPort + s.rng.IntN(simSockets))
	size := 8 + s.rng.IntN(30)
	o := Options{IgnoreCongestion: s.rng.IntN(10) == 0}
	switch s.rng.IntN(10) {
	case 0, 1, 2:
		size = 8 + s.rng.IntN(5000)
	case 3:
		port = wire.PingPort
	case 4:
		if s.carrier.Operations && to != from.node {
			o.Op = anOperation(s.rng.IntN(3))
		}
	}
	s.send(from, to, port, size, o)
}

// anOperation returns a Write, a Read or an atomic.
func anOperation(kind int) *Operation {
	return &Operation{Answered: kind > 0, Once: kind > 1}
}

// rest lets everything that is under way arrive, and time pass for what waits for it. A
// path that is short of memory looks again and again whether its handshake may
// continue.
func (s *sim) rest() {
	idle := 0
	for range 50_000 {
		if s.step() {
			idle = 0
			continue
		}
		at, ok := s.deadline()
		if idle++; !ok || idle > 20 {
			return
		}
		s.advance(max(0, at-s.now))
		s.settled()
	}
	s.fail("it does not come to rest")
}

// settle has everything come to rest that does by itself; then programs wait for their
// messages to be acknowledged.
func (s *sim) settle() {
	s.rest()
	for _, n := range s.nodes {
		for _, sock := range n.sockets {
			sock.Hasten(s.now)
		}
	}
	s.do()
	s.rest()
	s.atRest()
}

// play is a schedule that follows from a seed.
func play(w world, seed uint64, made func(*sim)) {
	s := newSim(w, seed, 2+int(seed%2))
	made(s)
	s.lazy = int(seed % 4 * 30)
	restarts := seed%3 == 2
	for range 30 + rand.New(rand.NewPCG(seed, 2)).IntN(170) {
		s.random(seed%7 > 0, restarts)
	}
	s.gather()
	s.settle()
}
