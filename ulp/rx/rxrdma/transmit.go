package rxrdma

import (
	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/rx/rxrdma/machine"
	"urnic/ulp/rx/rxrdma/wire"
)

const (
	// inlineLen is how long a message may be that is copied when it is posted.
	inlineLen = 256
	// signalEvery is how many requests without memory share a completion.
	signalEvery = 16
)

// Buffer is machine.Host's.
func (l *link) Buffer() *machine.Buffer { return l.e.buffers.get() }

// Release is machine.Host's.
func (l *link) Release(b *machine.Buffer) { l.e.buffers.put(b) }

// Free is machine.Host's.
func (l *link) Free(slot int) {
	if !l.dead {
		l.free = append(l.free, rnic.RecvWR{ID: recvID | uint64(slot), SGL: l.slots[slot : slot+1]})
	}
}

// flush posts what there is to send. If somebody posts already, that one looks again.
func (l *link) flush() {
	l.dirty.Store(true)
	for l.dirty.Load() && l.tx.TryLock() {
		l.dirty.Store(false)
		for l.fill() {
			if err := l.qp.PostSendAll(l.wrs...); err != nil {
				l.cancel() // the completions say why
			}
		}
		l.tx.Unlock()
	}
}

// fill makes requests of what there is to send, as far as there is room in the send queue.
func (l *link) fill() bool {
	l.wrs = l.wrs[:0]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	if n := len(l.free); n > 0 {
		if err := l.qp.PostRecv(l.free...); err != nil {
			l.cancel()
			return false
		}
		l.free = l.free[:0]
		l.mc.Posted(n)
	}
	now := l.now()
	holds := false
	var o machine.Out
	// Two requests of the list may be one message.
	for len(l.wrs) < atOnce && int(l.head-l.done) < sendSlots-1 && l.mc.Pull(now, &o) {
		if o.Place != nil {
			l.write(o.Place)
		}
		holds = l.send(&o) || holds
	}
	if n := len(l.wrs); n > 0 && (holds || l.head/signalEvery != (l.head-uint64(n))/signalEvery) {
		l.wrs[n-1].Flags &^= rnic.FlagUnsignaled
	}
	return len(l.wrs) > 0
}

// add adds a request.
func (l *link) add(wr rnic.SendWR, o op) {
	l.head++
	l.ops[l.head%sendSlots] = o
	wr.ID = l.head
	l.wrs = append(l.wrs, wr)
}

// write adds the RDMA Write of a place.
func (l *link) write(p *machine.Place) {
	mr, _ := p.Ref.(*rnic.MR)
	sges := l.sges[len(l.wrs):][:1:1]
	sges[0] = mr.SGE(0, p.Len)
	l.counts.writes++
	l.counts.writeBytes += uint64(p.Len)
	l.add(rnic.SendWR{Op: rnic.OpWrite, SGL: sges, Remote: rnic.Remote{STag: stag.STag(p.STag), TO: p.TO}}, op{place: p})
}

// send adds the Send of a message, and reports whether it holds memory until it is over.
func (l *link) send(o *machine.Out) bool {
	l.counts.sends++
	wr := rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled}
	switch b := o.Buffer; {
	case b == nil:
		room := l.inline[len(l.wrs)*inlineLen:][:wire.MaxFixed]
		wr.Flags |= rnic.FlagInline
		wr.Inline = room[:o.Msg.Put(room)]
		l.add(wr, op{})
	case o.Len <= inlineLen:
		room := l.inline[len(l.wrs)*inlineLen:][:o.Len]
		copy(room, b.Mem)
		wr.Flags |= rnic.FlagInline
		wr.Inline = room
		l.add(wr, op{})
		l.e.buffers.put(b)
	default:
		sges := l.sges[len(l.wrs):][:1:1]
		sges[0] = region(b).SGE(0, o.Len)
		wr.SGL = sges
		l.add(wr, op{buffer: b})
		return true
	}
	return false
}
