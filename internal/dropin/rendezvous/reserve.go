package rendezvous

import "net"

// A Port is one that a process holds, so that nobody else gets it, but that is closed
// until Listen.
type Port interface {
	// Listen opens the port. If it succeeds, the listener has taken it over.
	Listen() (net.Listener, error)
	// Close gives the port back.
	Close() error
}
