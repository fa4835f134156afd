package rnic

// Receiver tells who has the receiver's role of a connected queue pair.
func Receiver(q *QP) string {
	q.mu.Lock()
	l := q.link
	q.mu.Unlock()
	_, role := l.driver.Roles()
	return map[string]string{
		"goroutine": "goroutine", "kept": "goroutine", "asked": "asked", "free": "nobody",
		"program": "driver", "recalled": "driver", "ending": "driver",
	}[role]
}

// Transmitter tells who has the transmitter's role of a connected queue pair.
func Transmitter(q *QP) string {
	q.mu.Lock()
	l := q.link
	q.mu.Unlock()
	role, _ := l.driver.Roles()
	return map[string]string{
		"idle": "nobody", "stopped": "nobody", "busy": "somebody", "again": "somebody", "stopping": "somebody", "parked": "a program",
	}[role]
}

// Disputed reports whether a connected queue pair has taken note of the peer's Terminate.
func Disputed(q *QP) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.life.Disputed()
}
