package rxdebug

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"urnic/ulp/rx/wire"
)

// A Recorder records datagrams.
type Recorder interface {
	Datagram(from, to netip.AddrPort, pieces ...[]byte)
}

// Config says how a server is asked. The zero Config is useful.
type Config struct {
	// Timeout is how long an answer may take, with all repetitions of its request: 10 s if
	// it is 0.
	Timeout time.Duration

	// Retry is how long the first request waits before it is sent again: 500 ms if it is 0.
	// Each repetition waits twice as long as the one before, up to 4 s.
	Retry time.Duration

	// MaxEntries bounds each list of connections and of peers: 131,072 if it is 0.
	MaxEntries int

	// Recorder is given what is sent and what comes. It may be nil.
	Recorder Recorder
}

const maxRetry = 4 * time.Second

func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Retry <= 0 {
		c.Retry = 500 * time.Millisecond
	}
	if c.MaxEntries <= 0 {
		c.MaxEntries = 1 << 17
	}
	return c
}

// A Client asks one server. Its methods may be called at the same time; they ask one after
// the other.
type Client struct {
	cfg         Config
	conn        net.Conn
	local, peer netip.AddrPort

	mu     sync.Mutex // held while an answer is waited for
	header wire.Header
	buf    [2048]byte // more than the longest answer
	letter byte       // the version of the debug protocol; 0 before it is known
}

// Dial makes a client of the server at an address. Nothing is sent.
func Dial(ctx context.Context, addr netip.AddrPort, cfg Config) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("rxdebug: %w", err)
	}
	c := newClient(conn, cfg)
	c.peer = addr
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		c.local = a.AddrPort()
	}
	return c, nil
}

// newClient makes a client that sends each request by one Write and takes each answer by
// one Read.
func newClient(conn net.Conn, cfg Config) *Client {
	return &Client{
		cfg: cfg.withDefaults(), conn: conn,
		header: wire.Header{
			Epoch: rand.Uint32() | wire.HighBit, CID: rand.Uint32() &^ (wire.Channels - 1), Call: rand.Uint32() >> 1,
			Flags: wire.FlagClient | wire.FlagLast, // as rxdebug has it
		},
	}
}

// Close closes the client's socket.
func (c *Client) Close() error { return c.conn.Close() }

// Peer is the server's address.
func (c *Client) Peer() netip.AddrPort { return c.peer }

// ask sends a request and returns the body of the answer, which is valid until the next
// call. The lock is held.
func (c *Client) ask(ctx context.Context, t wire.Type, body []byte) ([]byte, error) {
	c.header.Call++ // late answers to earlier requests are told by it
	c.header.Type = t
	request := append(c.header.Append(make([]byte, 0, wire.HeaderLen+len(body))), body...)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }) // a closed socket says so itself
	defer stop()
	end := time.Now().Add(c.cfg.Timeout)
	for wait := c.cfg.Retry; ; wait = min(2*wait, max(maxRetry, c.cfg.Retry)) {
		until := time.Now().Add(wait)
		if until.After(end) {
			until = end
		}
		answer, err := c.try(ctx, request, until)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil:
			return answer, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, err
		case !time.Now().Before(end):
			return nil, fmt.Errorf("%w within %v", ErrSilent, c.cfg.Timeout)
		}
	}
}

// try sends a request once, and waits for its answer until a moment.
func (c *Client) try(ctx context.Context, request []byte, until time.Time) ([]byte, error) {
	if err := c.conn.SetDeadline(until); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // after the deadline is set, which the context's end may have set before
		return nil, context.Cause(ctx)
	}
	if c.cfg.Recorder != nil {
		c.cfg.Recorder.Datagram(c.local, c.peer, request)
	}
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	for {
		n, err := c.conn.Read(c.buf[:])
		if err != nil {
			return nil, err
		}
		b := c.buf[:n]
		if c.cfg.Recorder != nil {
			c.cfg.Recorder.Datagram(c.peer, c.local, b)
		}
		h, err := wire.ParseHeader(b)
		if err != nil || h.FromClient() || h.Epoch != c.header.Epoch || h.CID != c.header.CID || h.Call != c.header.Call {
			continue // not the answer
		}
		switch h.Type {
		case c.header.Type:
			return b[wire.HeaderLen:], nil
		case wire.TypeAbort: // Linux
			return nil, &AbortError{wire.Code(wire.ParseAbort(b[wire.HeaderLen:]))}
		default:
		}
	}
}
