// Package cutnet is TCP over loopback, for tests, of which each read and write is
// cut at a random place: a system call may always do less than it was asked for.
//
// A [Network] is given to a device in place of the operating system's. Its
// connections can be used without waiting, as those of package sockio can; now and
// then they do nothing at all, as if the socket were full or empty.
package cutnet

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"net"
	"sync/atomic"

	"urnic/internal/host/listen"
	"urnic/internal/host/sockio"
)

// A Network dials and listens for connections that are cut. A seed makes its
// choices, but for what the operating system decides.
type Network struct {
	Seed uint64

	conns         atomic.Uint64
	reads, writes atomic.Int64 // calls that were cut
}

// Cut returns how many reads and writes did less than they were asked for.
func (n *Network) Cut() (reads, writes int64) { return n.reads.Load(), n.writes.Load() }

// Dial connects to a TCP address.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return n.cut(c), nil
}

// Listen listens at a TCP address.
func (n *Network) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := listen.TCP(ctx, address)
	if err != nil {
		return nil, err
	}
	return &listener{l, n}, nil
}

type listener struct {
	net.Listener
	network *Network
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.network.cut(c), nil
}

func (n *Network) cut(c net.Conn) *Conn {
	number := n.conns.Add(1)
	return &Conn{
		Conn: c, network: n, stream: sockio.New(c),
		in: rand.New(rand.NewPCG(n.Seed, 2*number)), out: rand.New(rand.NewPCG(n.Seed, 2*number+1)),
	}
}

// A Conn is a connection that is cut. It is a sockio.Stream.
type Conn struct {
	net.Conn
	network *Network
	stream  sockio.Stream
	in, out *rand.Rand // of the reader, and of the writer
}

// part chooses a number from 1 to n, small ones as likely as large ones.
func part(rng *rand.Rand, n int, cut *atomic.Int64) int {
	k := 1 + rng.IntN(1<<rng.IntN(1+bits.Len(uint(n))))
	if k < n {
		cut.Add(1)
		return k
	}
	return n
}

// nothing chooses, seldom, to do nothing.
func nothing(rng *rand.Rand) bool { return rng.IntN(8) == 0 }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) { return c.Conn.Read(p[:c.toRead(len(p))]) }

func (c *Conn) toRead(n int) int { return part(c.in, n, &c.network.reads) }

// TryRead implements sockio.Stream.
func (c *Conn) TryRead(p []byte) (int, error) {
	if nothing(c.in) {
		return 0, nil
	}
	return c.stream.TryRead(p[:c.toRead(len(p))])
}

// ReadInto implements sockio.Stream.
func (c *Conn) ReadInto(get func() []byte, unget func()) (int, error) {
	if nothing(c.in) {
		get()
		unget()
	}
	return c.stream.ReadInto(func() []byte {
		p := get()
		return p[:c.toRead(len(p))]
	}, unget)
}

// Writev implements sockio.Stream.
func (c *Conn) Writev(pieces [][]byte, wait bool) (int, error) {
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	if total == 0 {
		return c.stream.Writev(pieces, wait)
	}
	if !wait && nothing(c.out) {
		return 0, nil
	}
	left := part(c.out, total, &c.network.writes)
	var some [][]byte
	for _, p := range pieces {
		k := min(len(p), left)
		some = append(some, p[:k])
		left -= k
	}
	return c.stream.Writev(some, wait)
}

// Polls implements sockio.Stream.
func (c *Conn) Polls() bool { return c.stream.Polls() }

// MSS implements sockio.Stream.
func (c *Conn) MSS() int { return c.stream.MSS() }

// CloseWrite implements sockio.Stream.
func (c *Conn) CloseWrite() error { return c.stream.CloseWrite() }

// Close implements sockio.Stream.
func (c *Conn) Close() error { return c.stream.Close() }

// Abort implements sockio.Stream.
func (c *Conn) Abort() error { return c.stream.Abort() }
