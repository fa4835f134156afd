package machine

// A queue is the messages that Receive has to return. Its slots come from the pool, and go back
// when it is empty, so that an idle connection has none.
type queue struct {
	slots []Message // a power of two, or none
	head  int
	n     int
}

// at returns the i-th oldest message, which must be there.
func (q *queue) at(i int) *Message { return &q.slots[(q.head+i)&(len(q.slots)-1)] }

// last returns the newest message, which must be there.
func (q *queue) last() *Message { return q.at(q.n - 1) }

func (q *queue) push(p *pool, msg Message) {
	if q.n == len(q.slots) {
		const least = 4
		slots := p.messages.get(max(least, 2*q.n))
		for i := range q.n {
			slots[i], *q.at(i) = *q.at(i), Message{}
		}
		p.messages.put(q.slots)
		q.slots, q.head = slots, 0
	}
	q.n++
	*q.last() = msg
}

// pop removes the oldest message, which must be there.
func (q *queue) pop(p *pool) Message {
	first := q.at(0)
	msg := *first
	*first = Message{}
	q.head = (q.head + 1) & (len(q.slots) - 1)
	if q.n--; q.n == 0 {
		p.messages.put(q.slots)
		*q = queue{}
	}
	return msg
}
