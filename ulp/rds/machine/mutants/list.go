package main

// mutants are the faults that the tests must find, in the order of the protocol.
var mutants = []mutant{
	// Sequence numbers and acknowledgements.
	{"takes-duplicates", "It delivers a message again that was sent again.", "arrive.go", "	case seen && again:\n", "	case seen && again && p.last != 0:\n"},
	{"drops-what-is-new", "It counts a new message that says it was sent again as a duplicate.", "arrive.go", "	seen := h.Sequence < p.expected\n", "	seen := h.Sequence <= p.expected && (again || h.Sequence < p.expected)\n"},
	{"keeps-quiet-about-duplicates", "It does not acknowledge a duplicate.", "arrive.go", "		if h.Flags&wire.AckRequired != 0 && p.conn.acks() {\n			p.ackDue = true\n			p.transmit()\n		}\n		return false\n", "		return false\n"},
	{"takes-low-numbers", "It takes a number again within a connection.", "arrive.go", "	if h.Sequence <= p.last {\n", "	if false {\n"},
	{"takes-old-numbers-late", "It takes an old number that does not say it is sent again, in mid-connection.", "arrive.go", "	case seen && p.last != 0:\n", "	case false:\n"},
	{"never-acknowledges", "It does not answer ACK_REQUIRED.", "arrive.go", "		if h.Flags&wire.AckRequired != 0 && p.conn.acks() {\n			p.ackDue = true\n			p.transmit()\n		}\n	}\n	if p.dispatch", "	}\n	if p.dispatch"},
	{"acknowledges-too-much", "It acknowledges the next message, which has not come.", "pull.go", "		h.Ack = p.expected - 1\n", "		h.Ack = p.expected\n"},
	{"acknowledges-before-delivery", "It acknowledges a message when its first fragment has come.", "arrive.go", "	p.in = incoming{active: true, h: *h, buf: m.cfg.Alloc(int(h.Len))}\n", "	p.in = incoming{active: true, h: *h, buf: m.cfg.Alloc(int(h.Len))}\n	if h.Kind() == wire.Data && int(h.Len) > n && h.Sequence >= p.expected {\n		p.expected = h.Sequence + 1\n		p.ackDue = true\n		p.transmit()\n	}\n"},
	{"believes-any-acknowledgement", "It takes acknowledgements of what was not sent.", "arrive.go", "	if ack > sent {\n", "	if false {\n"},
	{"believes-half-a-message", "It takes an acknowledgement of a message of which not all is sent.", "arrive.go", "		sent-- // not whole\n", ""},
	{"forgets-one-too-many", "It gives up one message more than was acknowledged.", "pull.go", "	for p.unacked.len() > 0 && p.unacked.first().h.Sequence <= sequence {\n", "	for p.unacked.len() > 0 && p.unacked.first().h.Sequence <= sequence+1 {\n"},
	{"ignores-acknowledgements", "It does not give up what was acknowledged.", "arrive.go", "	p.acknowledged(ack)\n	return true\n", "	return true\n"},
	{"sends-again-what-arrived", "It does not look at what waits to be sent again when it was acknowledged.", "pull.go", "	if p.queue.len() > 0 && p.queue.first().h.Sequence != 0 {\n", "	if false {\n"},
	{"never-asks", "It asks for no acknowledgements.", "pull.go", "		msg.h.Flags |= wire.AckRequired\n		p.unasked,", "		p.unasked,"},
	{"asks-too-seldom", "It asks for an acknowledgement twice as seldom as Linux.", "pull.go", "p.unasked > cfg.AckEvery ||", "p.unasked > 2*cfg.AckEvery ||"},
	{"begins-without-asking", "The first message of a link does not ask for an acknowledgement.", "path.go", "	p.unasked, p.unaskedBytes = m.cfg.AckEvery, 0\n", "	p.unasked, p.unaskedBytes = 0, 0\n"},

	// Reconnecting.
	{"drops-on-a-cut", "It drops what was sent and not acknowledged when a link is lost.", "path.go", "	for _, msg := range p.unacked.all() {\n		add(msg)\n	}\n", ""},
	{"drops-what-is-half-sent", "It drops a message of which some fragments are sent when a link is lost.", "path.go", "	if p.current != nil && p.current != &p.sentMap {\n		add(p.current)\n	}\n", ""},
	{"does-not-mark-retransmissions", "It sends again without saying so.", "path.go", "				msg.h.Flags |= wire.Retransmitted | wire.AckRequired\n", "				msg.h.Flags |= wire.AckRequired\n"},
	{"numbers-anew", "It gives what it sends again a new number.", "pull.go", "		if msg.h.Sequence != 0 {\n			p.conn.m.counters.Retransmitted++\n", "		if msg.h.Sequence != 0 && !p.heard {\n			p.conn.m.counters.Retransmitted++\n"},
	{"sends-again-behind", "What it sends again comes behind what is new.", "path.go", "	p.queue.replace(again)\n", "	fresh := len(again)\n	for fresh > 0 && again[fresh-1].h.Sequence == 0 {\n		fresh--\n	}\n	p.queue.replace(append(append([]*message{}, again[fresh:]...), again[:fresh]...))\n"},
	{"keeps-half-a-message", "It keeps what has come of a message when the link is lost.", "arrive.go", "		p.conn.reserve(-cost(len(p.in.buf)))\n		p.in = incoming{}\n", ""},
	{"never-reconnects", "It does not make a new link when one is lost.", "path.go", "		return\n	}\n	p.retry(why)\n", "		return\n	}\n"},
	{"never-backs-off", "It tries to reconnect at once, always.", "reconnect.go", "	m.set(p, m.now+Time(m.rng.Int64N(int64(p.bound)+1)))\n", "	m.set(p, m.now)\n"},
	{"backs-off-without-bound", "The delay between tries has no bound.", "reconnect.go", "	p.bound = min(2*p.bound, m.cfg.ReconnectMax)\n", "	p.bound = 2 * p.bound\n"},
	{"dials-out-of-order", "The node with the higher address makes connections as well.", "reconnect.go", "	if c.carrier.OrderedDial && c.lower() {\n		// The peer only knocks", "	if false {\n		// The peer only knocks"},
	{"does-not-knock", "The node with the higher address never knocks.", "reconnect.go", "	return !c.carrier.OrderedDial || c.lower() || c.busy()\n", "	return !c.carrier.OrderedDial || c.lower()\n"},
	{"does-not-knock-for-other-paths", "The node with the higher address knocks for messages of path 0 only.", "send.go", "	c.paths[0].want() // without it, there are no others\n", ""},
	{"rejects-both", "Of two requests that cross, both are rejected.", "reconnect.go", "	case p.state == Connecting && !c.carrier.OrderedDial && c.lower():\n", "	case p.state == Connecting && !c.carrier.OrderedDial:\n"},
	{"takes-old-links", "It takes segments of a link that has been replaced.", "arrive.go", "	if link != p.link || p.state != Up {\n		return nil, Dead\n", "	if p.state != Up {\n		return nil, Dead\n"},
	{"hears-of-old-links", "The end of a link that has been replaced ends the new one.", "path.go", "	if link == p.link && p.state != Down {\n		p.lost(why)\n", "	if p.state != Down {\n		p.lost(why)\n"},
	{"gives-up-silently", "Messages that were tried often enough vanish without an event.", "reconnect.go", "			m.lost(msg, &Unreachable{Peer: p.conn.key.Peer, Err: why})\n", ""},

	// Restarts.
	{"forgets-the-generation", "It does not notice that the peer has restarted.", "handshake.go", "			c.restarted(p)\n		}\n		p.told = true\n", "		}\n		p.told = true\n"},
	{"sends-again-to-another-life", "It sends what a former life of the peer may have to the new one.", "handshake.go", "		p.forget(&p.unacked)\n		p.forget(&p.queue)\n", ""},
	{"counts-on-after-a-restart", "It goes on with the numbers of the peer's former life.", "handshake.go", "		p.expected, p.last = 1, 0\n", ""},
	{"forgets-too-much", "It drops what it has not sent when the peer has restarted.", "handshake.go", "			kept = append(kept, msg)\n			continue\n", "			p.conn.m.finish(msg)\n			continue\n"},
	{"does-not-wait-for-the-probe", "It sends data before it knows whether the peer has restarted.", "handshake.go", "	return first.state != Up || !first.shaken ||", "	return first.state != Up ||"},
	{"does-not-wait-on-other-paths", "It sends data on other paths before the peer knows this life of the node.", "handshake.go", " || p.index > 0 && (!p.greeted || !c.acquainted)\n", "\n"},
	{"is-acquainted-too-early", "It takes acknowledgements that may be of its own former life.", "arrive.go", "	if !p.conn.acquainted {\n", "	if false {\n"},
	{"takes-two-generations", "It takes another generation within a connection.", "handshake.go", "		case c.generation != x.Generation && p.told:\n", "		case false:\n"},
	{"takes-former-generations", "It takes the generation of an earlier life of the peer.", "handshake.go", "		case slices.Contains(c.former, x.Generation):\n", "		case false:\n"},
	{"keeps-the-paths-of-a-former-life", "It spreads messages over the paths that the peer's former life had.", "handshake.go", "	c.agreed, c.used = 0, 0\n", ""},

	// The handshake and several paths.
	{"probes-without-generation", "Its probe tells no generation.", "handshake.go", "	x := wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: c.m.cfg.Generation}\n", "	x := wire.Extensions{}\n"},
	{"answers-no-pings", "It does not answer pings and probes.", "arrive.go", "	c.pongs++\n	msg :=", "	if h.Flags != 1<<7 {\n		return\n	}\n	c.pongs++\n	msg :="},
	{"spreads-too-early", "What is sent before it is known how many paths there are goes over the first, where what follows can overtake it.", "send.go", "		c.waiting.push(msg)\n		c.paths[0].want()\n", "		c.paths[0].queue.push(msg)\n		c.paths[0].want()\n"},
	{"hashes-by-destination", "It chooses the path by the port that a message goes to and its length.", "send.go", "	port := msg.h.SourcePort\n", "	port := msg.h.SourcePort + uint16(msg.h.Len)\n"},
	{"agrees-on-its-own", "It uses as many paths as it has, whatever the peer has.", "handshake.go", "		n = min(c.carrier.Paths, int(x.Paths))\n", "		n = c.carrier.Paths\n"},
	{"switches-paths-at-once", "When the peer names its paths late, messages go over others than those before them.", "send.go", "	if c.used < c.agreed && c.settled() {\n", "	if c.used < c.agreed {\n"},
	{"gives-up-slow-peers", "It takes a peer whose link is slow for one without a generation.", "reconnect.go", "		if !p.greeted || p.told {\n", "		if false {\n"},

	// Peers that do not tell which path a connection is for.
	{"judges-by-its-own-paths", "It judges a number by its own path, where the peer may be on another one.", "arrive.go", "		seen = data && again && h.Sequence <= c.ports.last(h.SourcePort)\n", "		seen = data && again && h.Sequence <= c.ports.last(h.SourcePort) || !data && seen\n"},
	{"waits-for-lost-links", "A new link waits for one that is lost.", "path.go", "	p.after = nil\n	p.passed()\n", "	p.after = nil\n"},
	{"lets-new-links-overtake", "It reads a new link before what has come on the others.", "anonymous.go", "	if !c.anonymous() || c.lower() || !c.inOrder {\n", "	if c.inOrder || !c.inOrder {\n"},
	{"keeps-path-0-for-its-knock", "What a peer dials that was asked to is not path 0.", "reconnect.go", "p.state == Down || p.state == Connecting && p.knock {\n", "p.state == Down {\n"},
	{"knocks-without-a-probe", "A peer that has restarted is not told that there are other paths.", "reconnect.go", "			q.probeDue = true\n			q.transmit()\n", ""},
	{"never-reconsiders", "It does not say when a request can be decided about.", "path.go", "		p.conn.m.emit(Effect{Kind: Reconsider, Path: p})\n", ""},
	{"makes-new-links-for-live-ones", "It ends a link for a new one before what came on it is read.", "reconnect.go", "	case p.state != Down && !p.knock && c.carrier.OrderedDial && !c.acks():\n", "	case p.state != Down && !p.knock && c.carrier.OrderedDial && !c.acks() && !c.anonymous():\n"},

	// Congestion.
	{"never-congested", "It does not say that a port is congested.", "socket.go", "	if !s.congested && s.queued >= s.receiveBuffer {\n", "	if false {\n"},
	{"congested-too-late", "A port is congested above its receive buffer, not at it.", "socket.go", "s.queued >= s.receiveBuffer {\n", "s.queued > s.receiveBuffer {\n"},
	{"congested-for-ever", "A port stays congested when it was read.", "socket.go", "	if s.congested && (s.closed || s.queued < s.receiveBuffer/2) {\n", "	if false {\n"},
	{"congested-after-close", "A port stays congested when its socket is closed.", "socket.go", "	s.queued = 0\n	s.relieve()\n", "	s.queued = 0\n"},
	{"keeps-the-map-to-itself", "It does not send a map that has changed.", "conn.go", "			p.mapDue = true\n			p.transmit()\n", ""},
	{"no-map-on-a-new-link", "It sends no map when a link is up.", "path.go", "	p.mapDue, p.probeDue, p.ackDue = true,", "	p.mapDue, p.probeDue, p.ackDue = false,"},
	{"sends-an-old-map", "It sends the map that it had before it changed.", "socket.go", "	m.snapshot = nil\n", ""},
	{"map-on-one-path", "It sends a changed map on the first path only, where an older one on another may overtake it.", "conn.go", "			p.mapDue = true\n			p.transmit()\n", "			p.mapDue = true\n			p.transmit()\n			return\n"},
	{"sends-to-congested-ports", "Send takes messages for a congested port.", "send.go", "	case c.remote.Congested(to.Port) && !o.IgnoreCongestion:\n", "	case false:\n"},
	{"never-wakes", "Who waits for a congested port is not told that it is free.", "conn.go", "	c.congested.wake(c.m)\n", ""},

	// Flow control.
	{"uses-the-last-credit", "It uses its last credit without giving any.", "pull.go", "	return !p.credits || p.credit > 1 ||", "	return !p.credits || p.credit > 0 ||"},
	{"sends-without-credit", "It sends without credit.", "pull.go", "	return !p.credits || p.credit > 1 ||", "	return true || p.credit > 1 ||"},
	{"gives-no-credit", "It does not tell the peer of receives that were posted again.", "pull.go", "		h.Credit = uint8(n)\n", ""},
	{"gives-too-much-credit", "It gives one credit more than it has posted receives.", "pull.go", "		h.Credit = uint8(n)\n", "		h.Credit = uint8(n)\n		if n == 1 {\n			h.Credit++\n		}\n"},
	{"gives-credit-in-each-fragment", "It gives its credits again with each fragment.", "pull.go", "		p.owed -= n\n", "		if msg := p.current; msg == nil || p.offset > 0 {\n			p.owed -= n\n		}\n"},
	{"chatters", "Two idle nodes give each other credits for ever.", "pull.go", "	return max(2, min(16, p.posted/2), p.posted/4)\n", "	return 1\n"},
	{"never-interjects", "It keeps credits to itself while it sends a long message.", "pull.go", "	if p.current == nil || p.offset == 0 || !p.credits", "	if true || p.offset == 0 || !p.credits"},
	{"lets-credits-be-overrun", "It takes more Sends than it has given credits for.", "arrive.go", "		if p.granted--; p.granted < 0 {\n", "		if p.granted--; false {\n"},

	// Operations.
	{"repeats-atomics", "It carries out an atomic again on a new link.", "operation.go", "	case op.Once || op.tries >= maxTries ||", "	case op.tries >= maxTries ||"},
	{"does-not-wait-for-answers", "It sends the message of a Read before the answer is there.", "operation.go", "func (msg *message) awaits() bool { return msg.op != nil && msg.op.Answered && !msg.op.done }", "func (msg *message) awaits() bool { return false }"},
	{"overtakes-reads", "Messages pass by one of the same pair of sockets that waits for an answer.", "operation.go", "	case line == nil && !msg.awaits():\n", "	case !msg.awaits():\n"},

	// Memory, sockets and waiting.
	{"holds-without-bound", "It holds four times as much of a peer's messages as it may.", "arrive.go", "	if len(p.after) > 0 || early || h.Kind().Sequenced() && !p.conn.room(int(h.Len)) {\n", "	if len(p.after) > 0 || early || h.Kind().Sequenced() && p.conn.held > 4*m.cfg.PeerMemory {\n"},
	{"leaks-memory", "It does not give back the memory of messages that were read.", "socket.go", "	msg.conn.reserve(-cost(len(msg.Data)))\n", ""},
	{"never-resumes", "A peer that waited for memory is not told when there is some.", "arrive.go", "			m.emit(Effect{Kind: Resume, Path: p, Link: p.link})\n", ""},
	{"loops-without-bound", "It holds whatever a node sends to itself.", "send.go", "	if !m.own.room(len(data)) {\n", "	if false {\n"},
	{"does-not-tell-of-closed-sockets", "Messages of a socket that is closed vanish without an event.", "socket.go", "		s.m.lost(msg, ErrSocketClosed)\n", ""},
	{"tells-twice", "A message that is lost is reported again.", "socket.go", "	s.leave(msg)\n	msg.socket = nil\n}\n", "	s.leave(msg)\n	msg.gone = false\n}\n"},
	{"keeps-data", "It does not give back the data of messages.", "socket.go", "		msg.free()\n", ""},
	{"delivers-backwards", "A socket reads the latest message first.", "socket.go", "	msg := s.queue.pop()\n	s.queued -=", "	all := s.queue.all()\n	last := len(all) - 1\n	all[0], all[last] = all[last], all[0]\n	msg := s.queue.pop()\n	s.queued -="},
	{"waits-for-others", "Who waits for acknowledgements does not ask for those of what is sent already.", "socket.go", "			p.hasten()\n", ""},
	{"asks-once", "It asks for acknowledgements once, whatever is sent behind the ping.", "pull.go", "		p.hastened = nil\n		p.hasten()\n", "		p.hastened = nil\n"},
	{"floods-pongs", "It queues answers to pings without bound.", "arrive.go", "	if c.pongs >= maxPongs {\n", "	if false {\n"},
	{"timers-in-the-past", "A timer that has expired stays.", "timers.go", "		m.set(p, never)\n		p.due()\n", "		p.due()\n		if p.timer == m.timers[0].timer && len(m.timers) > 1 {\n			return\n		}\n		m.set(p, never)\n"},
}
