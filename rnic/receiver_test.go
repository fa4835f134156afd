package rnic

// Receiver tells who has the receiver's role of a connected queue pair.
func Receiver(q *QP) string {
	q.mu.Lock()
	l := q.link
	q.mu.Unlock()
	return [...]string{rxOwn: "goroutine", rxAsked: "asked", rxFree: "nobody", rxDriven: "driver"}[l.rx.role.Load()]
}
