//go:build !linux

package rendezvous

import (
	"context"
	"net"

	"urnic/internal/host/listen"
)

// A listeningPort listens from the beginning: the drop-in library, which wants closed
// ports, is for Linux.
type listeningPort struct{ net.Listener }

// Listen returns the listener.
func (p listeningPort) Listen() (net.Listener, error) { return p.Listener, nil }

// reserveTCP takes a port at an address.
func reserveTCP(ctx context.Context, address string) (Port, error) {
	l, err := listen.TCP(ctx, address)
	if err != nil {
		return nil, err
	}
	return listeningPort{l}, nil
}
