package activenet

import "time"

// An event is something to be done, or to be done with a packet.
type event struct {
	at     time.Duration
	serial int
	do     func()
	pass   func(*Packet)
	packet *Packet
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.serial < o.serial
}

// An agenda is a heap of events: the next one is the first. Package container/heap would allocate for
// each event.
type agenda []event

func (a *agenda) push(e event) {
	h := append(*a, e)
	*a = h
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (a *agenda) pop() event {
	h := *a
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	*a = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
