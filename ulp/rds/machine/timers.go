package machine

import "container/heap"

// timers are the paths with a deadline, the earliest first.
type timers []*Path

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].timer < t[j].timer }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

func (t *timers) Push(x any) {
	p, _ := x.(*Path)
	p.place = len(*t)
	*t = append(*t, p)
}

func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return last
}

// never is the time of a path without a deadline.
const never Time = -1

// set sets the deadline of a path; never for none.
func (m *Machine) set(p *Path, at Time) {
	was := p.timer
	if was == at {
		return
	}
	if at == never {
		heap.Remove(&m.timers, p.place)
		p.timer = never
		return
	}
	p.timer = at
	if was == never {
		heap.Push(&m.timers, p)
	} else {
		heap.Fix(&m.timers, p.place)
	}
}

// Deadline returns when Advance must be called, if at all.
func (m *Machine) Deadline() (at Time, ok bool) {
	if len(m.timers) == 0 {
		return 0, false
	}
	return m.timers[0].timer, true
}

// Advance does what is due by now.
func (m *Machine) Advance(now Time) {
	m.at(now)
	for len(m.timers) > 0 && m.timers[0].timer <= m.now {
		p := m.timers[0]
		m.set(p, never)
		p.due()
	}
}

// at notes the time. It does not go back.
func (m *Machine) at(now Time) { m.now = max(m.now, now) }
