package machine

import (
	"errors"
	"slices"

	"urnic/ulp/rds/wire"
)

// A simLink is a connection of a carrier: two ends, with what is under way to each.
type simLink struct {
	ends [2]*simEnd // the first has dialed
	cut  bool
}

type simEnd struct {
	link   *simLink
	node   *simNode
	path   *Path // nil until the request is decided
	number Link
	params Params
	up     bool
	gone   bool
	hung   bool // its node has hung up, and is to be told when nothing is left
	waits  bool // for memory, or for other links

	to     []simSegment // under way to this end
	posted int          // receives
	used   int          // receives that are to be posted again
	passed uint64       // the last message to this end of which the carrier has told the sender nothing
	answer []*Operation // answers under way to this end
}

type simSegment struct {
	h    wire.Header
	data []byte
	op   *Operation
}

func (e *simEnd) other() *simEnd {
	if e.link.ends[0] == e {
		return e.link.ends[1]
	}
	return e.link.ends[0]
}

// leave is the end of an end. What is under way from it is not its sender's any more.
func (e *simEnd) leave() {
	if e.gone {
		return
	}
	e.gone = true
	for i := range e.other().to {
		seg := &e.other().to[i]
		seg.data = slices.Clone(seg.data)
	}
}

func (n *simNode) dial(p *Path, link Link) {
	s := n.sim
	end := &simEnd{node: n, path: p, number: link}
	peer := &simEnd{node: s.nodes[p.Conn().Key().Peer.As4()[3]-1]}
	l := &simLink{ends: [2]*simEnd{end, peer}}
	end.link, peer.link = l, l
	n.ends[p] = end
	s.links = append(s.links, l)
	s.say("node %d dials node %d path %d link %d", n.index, peer.node.index, p.Index(), link)
}

// request has the peer of who dials decide.
func (s *sim) request(l *simLink) {
	dialler, peer := l.ends[0], l.ends[1]
	if peer.node.away {
		s.say("nobody is at the address of node %d", peer.node.index)
		l.cut = true
		return
	}
	r := dialler.request()
	p, link, err := peer.node.Request(s.now, r)
	peer.node.do() // the link that this one replaces ends
	if err != nil {
		s.say("node %d refuses node %d: %v", peer.node.index, dialler.node.index, err)
		l.cut = true
		return
	}
	s.say("node %d accepts path %d of node %d as path %d link %d", peer.node.index, dialler.path.Index(), dialler.node.index, p.Index(), link)
	peer.path, peer.number = p, link
	peer.node.ends[p] = peer
	for _, e := range l.ends {
		e.params = Params{Granted: s.credits, Credit: s.credits}
		if s.carrier.Introduces && s.peers == urnics {
			e.params.Generation = e.other().node.cfg.Generation
		}
		e.posted = s.credits
	}
	dialler.params.Ack = p.Received(peer.params.Generation)
}

func (s *sim) up(e *simEnd) {
	e.up = true
	s.say("node %d path %d link %d is up", e.node.index, e.path.Index(), e.number)
	e.path.Up(s.now, e.number, e.params)
}

// request returns the request of an end that has dialed.
func (e *simEnd) request() Request {
	return Request{Key: Key{Peer: e.node.cfg.Addr}, Port: e.path.Index()}
}

// strip makes a segment say what the peers do.
func (n *simNode) strip(h *wire.Header) {
	x, err := wire.ParseExtensions(h.Extensions)
	if err != nil || !x.With(wire.ExtUrnic) {
		return
	}
	switch n.sim.peers {
	case urnics:
		return
	case newLinux:
		x.Has &^= 1 << wire.ExtUrnic
		x.Paths = uint16(n.cfg.Carriers[0].Paths) // Linux tells all from the first
	case linuxes:
		x = wire.Extensions{Has: 1 << wire.ExtNPaths, Paths: MaxPaths}
	}
	h.Extensions, _ = x.Encode()
}

// pull sends a segment.
func (s *sim) pull(n *simNode, i int) {
	r := n.ready[i]
	var seg Segment
	if !r.path.Pull(s.now, r.link, &seg) {
		n.ready = append(n.ready[:i], n.ready[i+1:]...)
		return
	}
	end := n.ends[r.path]
	if end == nil || end.number != r.link || !end.up {
		s.fail("node %d sends on a link that is not up", n.index)
	}
	if s.verbose {
		s.say("node %d path %d link %d: %v, %d bytes", n.index, r.path.Index(), r.link, &seg.Header, len(seg.Data))
	}
	to := end.other()
	if to.link.cut || to.gone {
		return
	}
	n.strip(&seg.Header)
	if seg.Memory != nil { // the carrier has a copy, or keeps the memory
		seg.Data = slices.Clone(seg.Data)
	}
	// TCP acknowledges what nobody reads yet. A Linux that answers on path 0 does read the other paths.
	if to.path == nil && r.path.Index() == 0 {
		to.passed = max(to.passed, seg.Header.Sequence)
	}
	to.to = append(to.to, simSegment{seg.Header, seg.Data, seg.Op})
}

// arrive passes a segment in.
func (s *sim) arrive(e *simEnd) {
	seg := &e.to[0]
	if seg.op != nil {
		s.operate(e, seg.op)
		e.to = e.to[1:]
		return
	}
	if s.credits > 0 && e.posted == 0 {
		s.fail("node %d path %d: a segment comes for which no receive is posted", e.node.index, e.path.Index())
	}
	buf, verdict := e.path.Begin(s.now, e.number, &seg.h, len(seg.data))
	switch verdict {
	case Wait:
		e.waits = true
		return
	case Dead:
		e.leave()
	case Take:
		copy(buf, seg.data)
		sock := e.node.at(seg.h.DestPort)
		before := 0
		if sock != nil {
			before = sock.queue.len()
		}
		e.path.Fill(s.now, e.number, len(seg.data))
		if sock != nil && sock.queue.len() > before {
			s.delivered(sock)
		}
		if seg.h.Kind().Sequenced() {
			e.passed = max(e.passed, seg.h.Sequence)
		}
		e.posted--
		e.used++
	}
	e.to = e.to[1:]
}

// operate carries out an operation at the end that it has reached.
func (s *sim) operate(e *simEnd, op *Operation) {
	i, _ := op.Arg.(int)
	msg := &s.messages[i]
	s.say("the operation of message %d is carried out", i)
	msg.ops++
	switch {
	case op.Once && msg.ops > 1:
		s.fail("the atomic of message %d is carried out again", i)
	case !op.Answered && msg.at != nil:
		s.fail("the memory of message %d is written after the message has said that it is done", i)
	case op.Answered && s.whole(e.link):
		e.other().answer = append(e.other().answer, op)
	}
}

// repost posts receives again.
func (s *sim) repost(e *simEnd) {
	n := e.used
	e.posted, e.used = e.posted+n, 0
	e.path.Reposted(s.now, e.number, n)
}

// cut ends a link. Of what is under way to each end, the first keep segments still arrive.
func (s *sim) cut(l *simLink, keep [2]int) {
	l.cut = true
	for i, e := range l.ends {
		e.to = e.to[:min(len(e.to), keep[i])]
		e.answer = nil
	}
	s.say("a link is cut, but for %d and %d segments", keep[0], keep[1])
}

// down tells an end that its link is gone.
func (s *sim) down(e *simEnd) {
	s.say("node %d sees the end of path %d link %d", e.node.index, e.path.Index(), e.number)
	e.leave()
	e.hung = false
	e.path.Down(s.now, e.number, errors.New("cut"))
}
