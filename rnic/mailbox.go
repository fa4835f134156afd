package rnic

import (
	"slices"
	"sync"

	"urnic/internal/host/pollfd"
)

// A mailbox is a queue that a consumer polls, waits for on a channel, or
// watches through a file descriptor. When it is full, it drops the oldest
// entry, and the next one that is taken has the number of lost entries.
type mailbox[T any] struct {
	limit int                  // of entries; 0 if what is put in sets one
	lost  func(v *T, n uint64) // sets in a value the number of losses before it; put needs it if there is a limit

	mu      sync.Mutex
	queue   []T
	dropped uint64
	changed chan struct{} // closed when something is put in; nil while nothing waits
	fd      *pollfd.FD    // made on request
	closed  bool          // nothing more is put in
}

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if m.limit > 0 && len(m.queue) == m.limit {
		m.pop()
		m.dropped++
	}
	m.add(v)
}

// squeeze is like put, but if the mailbox is full, it calls choose, which returns
// the index of the entry to drop; v is the last of the entries. squeeze returns the
// dropped entry. The mailbox is not closed.
func (m *mailbox[T]) squeeze(v T, choose func([]T) int) (out T, some bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit == 0 || len(m.queue) < m.limit {
		m.add(v)
		return out, false
	}
	all := append(slices.Clone(m.queue), v)
	i := choose(all)
	out = all[i]
	if i < len(m.queue) {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.add(v)
	}
	return out, true
}

// add adds an entry and notifies those that wait. The caller holds mu.
func (m *mailbox[T]) add(v T) {
	m.queue = append(m.queue, v)
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
	if m.fd != nil {
		m.fd.Set()
	}
}

func (m *mailbox[T]) take() (v T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return v, false
	}
	v = m.pop()
	if m.dropped > 0 {
		m.lost(&v, m.dropped)
		m.dropped = 0
	}
	m.settle()
	return v, true
}

// pop removes the oldest entry. The caller holds mu.
func (m *mailbox[T]) pop() T {
	v := m.queue[0]
	var zero T
	m.queue[0] = zero // slots behind the queue keep nothing alive
	m.queue = m.queue[1:]
	return v
}

// discard takes out all entries that match.
func (m *mailbox[T]) discard(match func(T) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = slices.DeleteFunc(m.queue, match)
	m.settle()
}

// settle makes the descriptor unreadable if nothing is left. Else it signals
// again, for a program that waits with EPOLLET and takes one entry each time,
// or that has read the descriptor itself. The caller holds mu.
func (m *mailbox[T]) settle() {
	switch {
	case m.fd == nil:
	case len(m.queue) == 0:
		m.fd.Clear()
	default:
		m.fd.Set()
	}
}

// wait returns a channel that is closed when something is put in.
func (m *mailbox[T]) wait() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// descriptor returns a descriptor that is readable while there are entries.
func (m *mailbox[T]) descriptor() (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return -1, ErrClosed
	}
	if m.fd == nil {
		fd, err := pollfd.New()
		if err != nil {
			return -1, err
		}
		m.fd = fd
		if len(m.queue) > 0 {
			fd.Set()
		}
	}
	return m.fd.Num(), nil
}

// close closes the descriptor. What is in the mailbox can still be taken.
func (m *mailbox[T]) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.fd == nil {
		return nil
	}
	fd := m.fd
	m.fd = nil
	return fd.Close()
}
