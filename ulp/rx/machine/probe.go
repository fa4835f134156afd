package machine

// A probe is a search for the largest datagram that arrives at the peer. Packets are of
// 1444 bytes until a larger ping was answered, so a path that drops what is larger costs
// a ping and not data.
type probe struct {
	size   int    // of the ping; 0: there is none
	serial uint32 // of the ping
	due    bool
	tries  int
	at     Time // when an answer is given up
}

// worthIt is how many packets wait before a larger size is looked for.
const worthIt = 4

// begin looks for a larger size if one is possible.
func (b *probe) begin(k *Call) {
	p := k.c.peer
	if b.size != 0 || k.out.packets.end()-k.out.next < worthIt {
		return
	}
	if size := p.probe(k.c.m.now); size != 0 {
		p.probing = true
		b.size, b.due, b.tries = size, true, 1
	}
}

// sent notes that the ping was sent.
func (b *probe) sent(k *Call, serial uint32) {
	b.serial, b.due = serial, false
	b.at = k.c.m.now + k.c.peer.timeout()
}

// answered processes the answer to a ping.
func (b *probe) answered(k *Call, serial uint32) {
	if b.size != 0 && !b.due && serial == b.serial {
		k.c.peer.confirm(b.size)
		k.c.m.stats.PathsFound++
		b.end(k)
	}
}

// ring tries once more, or concludes that the size does not arrive.
func (b *probe) ring(k *Call, now Time) {
	if b.size == 0 || b.due || now < b.at {
		return
	}
	if b.tries >= probeTries {
		k.c.peer.refuse(b.size, now)
		b.end(k)
		return
	}
	b.tries++
	b.due = true
	k.c.wake()
}

// deadline is when ring must be called.
func (b *probe) deadline() Time {
	if b.size == 0 || b.due {
		return never
	}
	return b.at
}

// end ends the search.
func (b *probe) end(k *Call) {
	if b.size != 0 {
		k.c.peer.probing = false
	}
	*b = probe{}
}
