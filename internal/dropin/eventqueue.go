//go:build linux

package dropin

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// An eventQueue holds events for a program that waits for them with poll(2): its
// descriptor is readable while there are some. O_NONBLOCK is not set on it, because it
// is the program that chooses whether the calls which fetch an event may wait.
type eventQueue[T any] struct {
	fd int

	mu     sync.Mutex
	events []T
	closed bool
}

func newEventQueue[T any]() (*eventQueue[T], error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a descriptor for events: %w", err)
	}
	return &eventQueue[T]{fd: fd}, nil
}

// push adds an event.
func (q *eventQueue[T]) push(e T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.events = append(q.events, e); len(q.events) == 1 {
		q.signal()
	}
}

// signal makes the descriptor readable.
func (q *eventQueue[T]) signal() {
	// It can't be full: it is written to once for each time that it is read.
	for {
		if _, err := unix.Write(q.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != unix.EINTR {
			return
		}
	}
}

// next returns the oldest event, or false.
func (q *eventQueue[T]) next() (e T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return e, false
	}
	var none T
	e, q.events[0] = q.events[0], none // so that nothing is kept alive by it
	if q.events = q.events[1:]; len(q.events) == 0 {
		q.events = nil
		q.clear()
	}
	return e, true
}

// take removes the events that match, and returns them in order.
func (q *eventQueue[T]) take(match func(T) bool) (taken []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var left []T
	for _, e := range q.events {
		if match(e) {
			taken = append(taken, e)
		} else {
			left = append(left, e)
		}
	}
	if q.events = left; len(taken) > 0 && len(left) == 0 {
		q.clear()
	}
	return taken
}

// clear makes the descriptor unreadable. It must not block if the program has read it.
func (q *eventQueue[T]) clear() {
	fds := []unix.PollFd{{Fd: int32(q.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	for err == unix.EINTR { // as the runtime's own signals may have it
		n, err = unix.Poll(fds, 0)
	}
	if n != 1 || err != nil {
		return
	}
	var b [8]byte
	for {
		if _, err := unix.Read(q.fd, b[:]); err != unix.EINTR {
			return
		}
	}
}

// close gives the queue up, with the events in it.
func (q *eventQueue[T]) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed, q.events = true, nil
	return unix.Close(q.fd)
}
