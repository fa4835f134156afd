// Package pollfd makes file descriptors that are readable while something is
// there, so that programs can poll or select on it among other things.
package pollfd

// An FD is a descriptor that is either readable or not. Set and Clear must not
// be called at the same time, nor after Close.
type FD struct {
	num int // what the program polls
	fd
	set bool
}

// Num returns the descriptor's number.
func (f *FD) Num() int { return f.num }

// Set makes the descriptor readable.
func (f *FD) Set() {
	if !f.set {
		f.set = true
		f.signal()
	}
}

// Clear makes the descriptor unreadable.
func (f *FD) Clear() {
	if f.set {
		f.set = false
		f.drain()
	}
}
