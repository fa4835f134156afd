// Package pollfd makes file descriptors that are readable while something is
// there, so that programs can poll or select on them among other things.
//
// They behave as the event files of the kernel's RDMA drivers do: poll(2) finds
// them readable while there is an event, and each event wakes those who wait,
// with EPOLLET too. A program may set or clear O_NONBLOCK, and may even read the
// descriptor: no method waits for that.
package pollfd

// An FD is a descriptor that is either readable or not. Set and Clear must not
// be called at the same time, nor after Close.
type FD struct {
	num int // what the program polls
	source
	set bool // it may be readable
}

// A source makes the descriptor readable or not. Neither method waits.
type source interface {
	signal()
	drain()
	close() error
}

// Num returns the descriptor's number.
func (f *FD) Num() int { return f.num }

// Set makes the descriptor readable, and wakes those who wait for it, even if it
// is readable already: edge-triggered waits see each call.
func (f *FD) Set() {
	f.set = true
	f.signal()
}

// Clear makes the descriptor unreadable.
func (f *FD) Clear() {
	if f.set {
		f.set = false
		f.drain()
	}
}

// Close closes the descriptor.
func (f *FD) Close() error { return f.close() }
