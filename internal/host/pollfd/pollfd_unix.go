//go:build unix && !linux

package pollfd

const socketFlags = 0 // there are none on Darwin

// New returns a descriptor that is not readable, with O_NONBLOCK set.
func New() (*FD, error) { return newPair() }
