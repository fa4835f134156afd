package rxrdma

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma/wire"
)

// A Config says how an endpoint is opened. The zero Config is that of a client.
type Config struct {
	// Addr is where the endpoint listens, if it has services. An address of one family means
	// that family; if it is left out, it is all addresses of both. Port 0 is a free port.
	Addr netip.AddrPort

	// Services may be called at the endpoint.
	Services []rx.Service

	// Receive is how long a message may be, in bytes: 32 KiB if it is 0.
	Receive int

	// Window is how many messages of a call may have come that were not read: 8 if it is 0. A
	// connection has receives for the windows of all of its channels, and a third more.
	Window int

	// Channels is how many calls a connection can have at once: 4 if it is 0, 64 at most. The
	// smaller number of both sides counts. There are 4 at most with a security class.
	Channels int

	// Bulk is how many bytes may be moved by one RDMA Write: 4 MiB if it is 0. Negative
	// numbers have everything moved by Sends.
	Bulk int

	// LeastBulk is how long a Read or Write must be to be worth an RDMA Write: 64 KiB if it
	// is 0.
	LeastBulk int

	// IdleTime is how long a client's connection is kept without a call: 700 s if it is 0.
	IdleTime time.Duration

	// SetUpTime bounds the set-up of a connection: 10 s if it is 0.
	SetUpTime time.Duration

	// MaxConns bounds the connections of clients, those that are being set up among them:
	// 1,024 if it is 0. One more is refused with -100.
	MaxConns int

	// Memory bounds the receives of all connections of clients, in bytes: 2 GiB if it is 0.
	// A connection for which there is not enough is refused with -100.
	Memory int64

	// Report, if it is not nil, is notified of peers that break a rule. It must not wait.
	Report func(Violation)

	// Log is notified of handlers that panic, and of peers that break a rule. Nil is
	// slog.Default.
	Log *slog.Logger
}

// Defaults of a Config.
const (
	defaultReceive  = 32 << 10
	defaultWindow   = 8
	defaultChannels = 4
	defaultBulk     = 4 << 20
	defaultLeast    = 64 << 10
	defaultIdle     = 700 * time.Second
	defaultSetUp    = 10 * time.Second
	defaultMaxConns = 1024
	defaultMemory   = 2 << 30

	// securityChannels is how many channels a connection with a security class has:
	// secure.Calls has so many, and rxkad's checksums tell no more apart.
	securityChannels = 4
	restarting       = -100
)

// withDefaults returns the configuration with its defaults, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	for _, n := range []struct {
		name  string
		value *int
		def   int
		least int
		most  int
	}{
		{"Receive", &c.Receive, defaultReceive, wire.MinReceive, wire.MaxReceive},
		{"Window", &c.Window, defaultWindow, 1, 1024},
		{"Channels", &c.Channels, defaultChannels, 1, wire.MaxChannels},
		{"Bulk", &c.Bulk, defaultBulk, -1 << 31, wire.MaxBulk},
		{"LeastBulk", &c.LeastBulk, defaultLeast, 1, wire.MaxBulk},
		{"MaxConns", &c.MaxConns, defaultMaxConns, 1, 1 << 24},
	} {
		if *n.value == 0 {
			*n.value = n.def
		}
		if *n.value < n.least || *n.value > n.most {
			return c, fmt.Errorf("rxrdma: %s is %d: it must be from %d to %d", n.name, *n.value, n.least, n.most)
		}
	}
	if c.credits(c.Channels) > maxReceives {
		return c, fmt.Errorf("rxrdma: %d channels with a window of %d need %d receives: there are %d at most", c.Channels, c.Window, c.credits(c.Channels), maxReceives)
	}
	c.Bulk = max(c.Bulk, 0)
	if c.IdleTime <= 0 {
		c.IdleTime = defaultIdle
	}
	if c.SetUpTime <= 0 {
		c.SetUpTime = defaultSetUp
	}
	if c.Memory <= 0 {
		c.Memory = defaultMemory
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	var err error
	c.Services, err = rx.CheckServices(c.Services)
	return c, err
}

// maxReceives is how many receives a connection can have.
const maxReceives = 1 << 14

// credits is how many receives a connection has: for the windows of its channels, and a
// third more beside 8 for what is no part of a stream, which is posted again at once.
func (c *Config) credits(channels int) int {
	parts := channels * c.Window
	return parts + parts/3 + 8
}

// private is what this side says of itself.
func (c *Config) private(channels int) wire.Private {
	p := wire.Private{
		Channels: uint8(channels), Credits: uint16(c.credits(channels)), Window: uint16(c.Window),
		Receive: uint32(c.Receive), Bulk: uint32(c.Bulk),
	}
	if c.Bulk > 0 {
		p.Features = wire.FeatureOffer | wire.FeaturePlace
	}
	return p
}
