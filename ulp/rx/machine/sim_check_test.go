package machine

import "urnic/ulp/rx/wire"

// checkSent verifies what a node sends: windows, and the peer's limits.
func (n *simNode) checkSent(b []byte) {
	s := n.s
	h, err := wire.ParseHeader(b)
	if err != nil {
		s.fail("node %d sends %d bytes", n.index, len(b))
	}
	if h.FromClient() != (n.index > 0) {
		s.fail("node %d sends %v", n.index, &h)
	}
	c := n.Machine.conns[connKey{epoch: h.Epoch, id: h.ConnID(), client: n.index > 0}]
	if h.Type != wire.TypeData || c == nil {
		return
	}
	k := c.calls[h.Channel()]
	packets := 0
	p := wire.SplitData(h, b[wire.HeaderLen:])
	for {
		h, _, ok := p.Next()
		if !ok {
			break
		}
		packets++
		o := &k.out
		if at := h.Seq - o.packets.base; k.number == h.Call && !o.acked && (at >= o.peerWindow || int(at) >= int(o.soft)+o.cwnd) {
			s.fail("node %d sends packet %d; base %d, window %d, %d held in a row, cwnd %d", n.index, h.Seq, o.packets.base, o.peerWindow, o.soft, o.cwnd)
		}
	}
	if p.Err() != nil || packets > jumboLimit || packets > 1 && packets > int(c.peer.maxPackets) {
		s.fail("node %d sends a jumbogram of %d: %v", n.index, packets, p.Err())
	}
	if packets > 1 && len(b) > int(c.peer.maxMTU) {
		s.fail("node %d sends %d bytes, the peer takes %d", n.index, len(b), c.peer.maxMTU)
	}
}

// check verifies what holds at any moment.
func (n *simNode) check() {
	s, m := n.s, n.Machine
	held, suspect := 0, 0
	for _, c := range m.list {
		for _, k := range c.calls {
			if k == nil {
				continue
			}
			n.checkCall(k)
			r := &k.in.packets
			for i := range r.n {
				if p := r.at(r.base + uint32(i)); p.buf != nil {
					held += cap(p.buf)
					if p.sealed {
						suspect += cap(p.buf)
					}
				}
			}
		}
	}
	if m.memory != held || m.suspect != suspect {
		s.fail("node %d counts %d bytes, %d of them suspect; there are %d, %d", n.index, m.memory, m.suspect, held, suspect)
	}
}

func (n *simNode) checkCall(k *Call) {
	s, o, r := n.s, &k.out, &k.in
	if o.cwnd < 1 || o.cwnd > wire.MaxAcks+inflation || o.ssthresh < minSSThresh {
		s.fail("cwnd %d, ssthresh %d", o.cwnd, o.ssthresh)
	}
	if r.packets.n > max(n.cfg.Window, firstWindow) || o.packets.n > o.queueLimit()+wire.MaxAcks {
		s.fail("%d packets wait to be read, %d to be sent", r.packets.n, o.packets.n)
	}
	resends := 0
	for i := range o.packets.n {
		if p := o.packets.at(o.packets.base + uint32(i)); p.resend {
			resends++
			if p.held {
				s.fail("a packet that is held is to be sent again")
			}
		}
	}
	if resends != o.resends {
		s.fail("%d packets count as to be sent again; there are %d", o.resends, resends)
	}
	if k.err == nil && !o.acked && o.next != o.packets.base && o.timeoutAt == 0 && o.packets.base+o.soft != o.next {
		s.fail("packets are outstanding, and there is no timeout")
	}
}

// atRest verifies that nothing is left when nothing is left to happen.
func (s *sim) atRest() {
	for _, n := range s.nodes {
		m := n.Machine
		if m.memory != 0 || m.suspect != 0 || m.pool.out != 0 {
			s.fail("node %d: %d bytes, %d suspect, and %d pieces of memory are left", n.index, m.memory, m.suspect, m.pool.out)
		}
		if len(m.list)+len(m.conns)+len(m.peers)+len(m.peerList)+len(m.timers)+m.served.n+m.raw.Len() != 0 {
			s.fail("node %d: %d connections, %d peers, %d timers are left", n.index, len(m.conns), len(m.peers), len(m.timers))
		}
		st := m.stats
		if st.LiveCalls != 0 || st.ClientConns != 0 || st.ServerConns != 0 || st.Peers != 0 {
			s.fail("node %d counts %d calls, %d and %d connections, %d peers", n.index, st.LiveCalls, st.ClientConns, st.ServerConns, st.Peers)
		}
		if s.net.restartsNode < 0 && n.cfg.Window >= firstWindow && st.Drops.Window != 0 {
			s.fail("node %d was sent %d packets beyond its window", n.index, st.Drops.Window)
		}
		if st.Drops.Seal+st.Drops.Jumbo+st.Drops.NoSpace+st.Drops.Seq+st.Drops.Short != 0 {
			s.fail("node %d has dropped %+v", n.index, st.Drops)
		}
	}
}
