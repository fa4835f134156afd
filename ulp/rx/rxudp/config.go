package rxudp

import (
	"log/slog"
	"net/netip"
	"time"

	"urnic/ulp/rx"
)

// A Config says how an endpoint is opened. The zero Config is that of a client at a free
// port, which reaches IPv4 and IPv6.
type Config struct {
	// Addr is the address that the endpoint has. An address of one family means that
	// family; if it is left out, it is all addresses of both. Port 0 is a free port.
	Addr netip.AddrPort

	// Services may be called at the endpoint.
	Services []rx.Service

	// Epoch names the endpoint for its peers. 0 has one drawn.
	Epoch uint32

	// Window is the receive window of a call, in packets: 255 at most. 0 is as much as fits
	// the socket's buffer, and 32 at least.
	Window int

	// DeadTime is how long a peer may be silent before its calls fail with -1: 12 s if it
	// is 0. Services and connections may have others.
	DeadTime time.Duration

	// IdleTime is how long a client's connection is kept without a call: 700 s if it is 0.
	IdleTime time.Duration

	// MaxConns bounds the connections of clients: 65,536 if it is 0. Where one more comes,
	// the one that has been idle for longest goes.
	MaxConns int

	// Memory bounds the data that has arrived and was not read, in bytes: 256 MiB if it
	// is 0.
	Memory int

	// MaxPacket bounds the datagrams that are sent and asked for, in bytes with Rx's header:
	// 0 is what the link takes, 16,384 at most. 1444 is what OpenAFS uses on Ethernet.
	MaxPacket int

	// Answers bounds the answers to packets that could have come from anywhere, for each
	// second: 1,000 if it is 0; none if it is negative.
	Answers int

	// Buffer is the size of the socket's buffers in bytes, as far as the system grants it:
	// 4 MiB if it is 0.
	Buffer int

	// Version is what version queries are answered with, 64 bytes at most.
	Version string

	// Recorder is shown each datagram. It is called with a lock held, and must not call the
	// endpoint.
	Recorder Recorder

	// Log is notified of handlers that panic. Nil is slog.Default.
	Log *slog.Logger
}

// A Recorder is shown datagrams as they leave or arrive.
type Recorder interface {
	Datagram(from, to netip.AddrPort, pieces ...[]byte)
}

const defaultBuffer = 4 << 20
