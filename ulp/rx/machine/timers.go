package machine

import "container/heap"

// An alarm is something that has a deadline.
type alarm interface {
	// ring is called at the deadline or later, and returns the next one.
	ring(now Time) Time
}

// A timer is an entry in the queue of deadlines. Its deadline may be postponed
// without updating the queue: then it rings early, and is set to the true one.
type timer struct {
	alarm alarm
	at    Time
	index int // in the queue, from 1; 0: not in it
}

// timers is a queue of deadlines, the earliest first.
type timers []*timer

func (q timers) Len() int           { return len(q) }
func (q timers) Less(i, j int) bool { return q[i].at < q[j].at }
func (q timers) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i+1, j+1
}

// Push is of heap.Interface.
func (q *timers) Push(x any) {
	t := x.(*timer)
	*q = append(*q, t)
	t.index = len(*q)
}

// Pop is of heap.Interface.
func (q *timers) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = 0
	return t
}

// set makes a timer ring at a moment or earlier.
func (q *timers) set(t *timer, at Time) {
	switch {
	case t.index != 0 && t.at <= at:
	case at == never:
	case t.index != 0:
		t.at = at
		heap.Fix(q, t.index-1)
	default:
		t.at = at
		heap.Push(q, t)
	}
}

// stop removes a timer.
func (q *timers) stop(t *timer) {
	if t.index != 0 {
		heap.Remove(q, t.index-1)
	}
}

// Deadline returns when Advance must be called next. ok is false if nothing waits for
// time to pass.
func (m *Machine) Deadline() (at Time, ok bool) {
	if len(m.timers) == 0 {
		return 0, false
	}
	return m.timers[0].at, true
}

// Advance carries out what is due by now.
func (m *Machine) Advance(now Time) {
	m.tick(now)
	for len(m.timers) > 0 && m.timers[0].at <= m.now {
		t := m.timers[0]
		at := t.alarm.ring(m.now)
		if t.index == 0 {
			continue // it was stopped
		}
		if at <= m.now {
			at = m.now + 1 // whatever an alarm says, time advances
		}
		if at == never {
			m.timers.stop(t)
			continue
		}
		t.at = at
		heap.Fix(&m.timers, t.index-1)
	}
}

// tick notes the time, which never goes back.
func (m *Machine) tick(now Time) { m.now = max(m.now, now) }
