package rnic

// A signal makes a goroutine that waits for a token look again, or do so when it next
// waits. It is made with a slot for one token. Nothing waits for a nil signal.
type signal chan struct{}

// raise puts a token in, unless there is one. It may be called from anywhere.
func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}
