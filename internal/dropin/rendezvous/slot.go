package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// A queue pair number has 24 bits: slot<<IndexBits | index. The slot says at which
// port the process listens, and is 0 if it does at none; the index says which queue
// pair of the process it is, from 1 on.
const (
	IndexBits   = 14
	Slots       = 1<<(24-IndexBits) - 1 // 1 to 1023
	DefaultPort = 21000                 // of slot 1
	// HighestPort is the highest that slot 1 can have.
	HighestPort = 1<<16 - Slots
)

// ErrNoSlot says that all ports of rendezvous listeners are taken.
var ErrNoSlot = errors.New("all rendezvous ports are in use, by programs under urnic or by others: set URNIC_RENDEZVOUS_PORT")

// SlotOf returns the slot that a queue pair number names.
func SlotOf(qpn uint32) uint32 { return qpn >> IndexBits }

// port returns the port of the listener that a queue pair number names, or false if
// it names none.
func (c *Config) port(qpn uint32) (uint16, bool) {
	slot := SlotOf(qpn)
	return uint16(c.FirstPort + int(slot) - 1), slot != 0 && slot <= Slots
}

// bind takes the first free port of the slots, at the address that is set.
func (c *Config) bind(ctx context.Context) (Port, uint32, error) {
	host := ""
	if c.Address.IsValid() {
		host = c.Address.String()
	}
	for slot := 1; slot <= Slots; slot++ {
		p, err := c.Reserve(ctx, net.JoinHostPort(host, strconv.Itoa(c.FirstPort+slot-1)))
		switch {
		case err == nil:
			return p, uint32(slot), nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, 0, fmt.Errorf("a port for rendezvous: %w", err)
		}
	}
	return nil, 0, fmt.Errorf("ports %d to %d: %w", c.FirstPort, c.FirstPort+Slots-1, ErrNoSlot)
}
