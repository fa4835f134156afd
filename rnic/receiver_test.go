package rnic

// Receiver tells who has the receiver's role of a connected queue pair.
func Receiver(q *QP) string {
	q.mu.Lock()
	l := q.link
	q.mu.Unlock()
	return [...]string{rxOwn: "goroutine", rxAsked: "asked", rxFree: "nobody", rxDriven: "driver"}[l.rx.role.Load()]
}

// Transmitter tells who has the transmitter's role of a connected queue pair.
func Transmitter(q *QP) string {
	q.mu.Lock()
	l := q.link
	q.mu.Unlock()
	return [...]string{txIdle: "nobody", txBusy: "somebody", txAgain: "somebody", txParked: "a program"}[l.tx.Load()]
}

// Disputed reports whether a connected queue pair has taken note of the peer's Terminate.
func Disputed(q *QP) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.link.disputed.Load()
}
