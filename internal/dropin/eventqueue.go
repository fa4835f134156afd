//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"urnic/internal/host/pollfd"
)

// An eventQueue holds events for a program that waits for them with poll(2): its
// descriptor is readable while there are some. O_NONBLOCK is not set on it, because it
// is the program that chooses whether the calls which fetch an event may wait.
type eventQueue[T any] struct {
	num int // of the descriptor

	mu     sync.Mutex
	fd     *pollfd.FD
	events []T
	closed bool
}

func newEventQueue[T any]() (*eventQueue[T], error) {
	fd, err := pollfd.New()
	if err != nil {
		return nil, fmt.Errorf("a descriptor for events: %w", err)
	}
	if err := unix.SetNonblock(fd.Num(), false); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), fd.Close())
	}
	return &eventQueue[T]{num: fd.Num(), fd: fd}, nil
}

// push adds an event.
func (q *eventQueue[T]) push(e T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.events = append(q.events, e)
	q.fd.Set()
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
	q.events = q.events[1:]
	q.settle()
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
	if len(taken) > 0 {
		q.events = left
		q.settle()
	}
	return taken
}

// settle makes the descriptor what the queue is, after events were removed. If some are
// left, it signals again: for a program that waits with EPOLLET and fetches one event each
// time, or has read the descriptor itself. The caller holds mu.
func (q *eventQueue[T]) settle() {
	if len(q.events) > 0 {
		q.fd.Set()
		return
	}
	q.events = nil
	q.fd.Clear()
}

// close gives the queue up, with the events in it.
func (q *eventQueue[T]) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed, q.events = true, nil
	return q.fd.Close()
}
