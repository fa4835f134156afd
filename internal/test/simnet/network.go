package simnet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// A Network joins listeners and dialers by address. Its zero value has no
// faults and is ready for use.
type Network struct {
	// Options, if set, is asked for each connection, by its number from 0.
	Options func(n int) Options
	// Polls makes all connections say that they can be polled, whatever their
	// Options say.
	Polls bool

	mu        sync.Mutex
	listeners map[string]*listener
	dialled   int
}

// Listen listens at host:port. Port 0 is replaced by a free one; an empty host
// stands for all.
func (n *Network) Listen(_ context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = make(map[string]*listener)
	}
	if port == "0" {
		for p := 49152; ; p++ {
			if port = strconv.Itoa(p); n.listeners[port] == nil {
				break
			}
		}
	}
	if n.listeners[port] != nil {
		return nil, &net.OpError{Op: "listen", Net: "sim", Err: syscall.EADDRINUSE}
	}
	a, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(hostOr(host, "192.0.2.2"), port))
	if err != nil {
		return nil, err
	}
	l := &listener{network: n, port: port, addr: a, queue: make(chan *Conn, 128), done: make(chan struct{})}
	n.listeners[port] = l
	return l, nil
}

func hostOr(host, or string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return or
	}
	return host
}

// Dial connects to host:port, whatever the host.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	l := n.listeners[port]
	number := n.dialled
	n.dialled++
	n.mu.Unlock()
	if l == nil {
		return nil, refused(address)
	}
	var o Options
	if n.Options != nil {
		o = n.Options(number)
	}
	o.Polls = o.Polls || n.Polls
	from := addr(1, 49152+number%(1<<14))
	if o.Host != nil {
		from.IP = o.Host
	}
	a, b := pipe(o, from, l.addr)
	select {
	case l.queue <- b:
		select {
		case <-l.done: // perhaps after the last look into the queue
			_ = a.Abort()
			return nil, refused(address)
		default:
			return a, nil
		}
	case <-l.done:
		return nil, refused(address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func refused(address string) error {
	return &net.OpError{Op: "dial", Net: "sim", Err: fmt.Errorf("%s: %w", address, syscall.ECONNREFUSED)}
}

type listener struct {
	network *Network
	port    string
	addr    net.Addr
	queue   chan *Conn
	once    sync.Once
	done    chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "sim", Err: net.ErrClosed}
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, l.port)
		l.network.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				_ = c.Abort() // nobody will ever accept it
			default:
				return
			}
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }
