package rds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"urnic/internal/host/listen"
	"urnic/ulp/rds/machine"
)

// TCPPort is the port of RDS over TCP (IANA).
const TCPPort = 16385

// TCP carries RDS as Linux's rds_tcp does: one connection to each peer, or up to eight if
// the peer has several paths as well. The node with the lower address dials.
type TCP struct {
	// Port is where nodes listen (TCPPort).
	Port uint16
	// Paths is how many connections to a peer there may be, 1 to 8 (8).
	Paths int

	// Listener, if it is not nil, is used in place of one at the node's address and Port.
	Listener net.Listener
	// Dial, if it is not nil, is used in place of a connection from the node's address to Port
	// of the peer's.
	Dial func(ctx context.Context, peer netip.Addr, path int) (net.Conn, error)
	// PeerOf, if it is not nil, returns a peer's address by that of its connection. Else they are the same.
	PeerOf func(remote net.Addr) (netip.Addr, error)
	// Record, if it is not nil, is called for each connection, and what it returns takes what
	// passes. dialed reports that this node has dialed. A *capture.Stream is a Recording.
	Record func(local, remote net.Addr, dialled bool) Recording

	used     atomic.Bool
	node     *Node
	index    int
	buffers  *pool[*buffer]
	listener net.Listener
	accepts  sync.WaitGroup

	mu      sync.Mutex
	waiting map[machine.Key][]request // connections that are not decided about yet, by peer, the oldest first
	waits   int                       // how many there are
}

// A request is a connection that a peer has made.
type request struct {
	machine.Request
	c net.Conn
}

// Name returns "tcp".
func (t *TCP) Name() string { return "tcp" }

func (t *TCP) paths() int {
	if t.Paths == 0 {
		return machine.MaxPaths
	}
	return t.Paths
}

func (t *TCP) port() uint16 {
	if t.Port == 0 {
		return TCPPort
	}
	return t.Port
}

func (t *TCP) carrier() machine.Carrier {
	return machine.Carrier{Name: t.Name(), Paths: t.paths(), OrderedDial: true}
}

func (t *TCP) open(ctx context.Context, n *Node, index int) error {
	t.node, t.index, t.listener, t.waiting = n, index, t.Listener, map[machine.Key][]request{}
	t.buffers = newBuffers()
	if t.listener == nil {
		l, err := listen.TCP(ctx, netip.AddrPortFrom(n.cfg.Addr, t.port()).String())
		if err != nil {
			return err
		}
		t.listener = l
	}
	t.accepts.Go(t.accept)
	return nil
}

func (t *TCP) close() error {
	if t.listener == nil {
		return nil
	}
	err := t.listener.Close()
	t.accepts.Wait()
	return err
}

func (t *TCP) memory(n int) (*buffer, error) { return t.buffers.get(n) }

// accept takes connections until the listener is closed.
func (t *TCP) accept() {
	for {
		c, err := t.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			t.node.cfg.Logger.Warn("rds: tcp: accept", "error", err)
			select {
			case <-time.After(10 * time.Millisecond): // descriptors may be free again then
			case <-t.node.ctx.Done():
				return
			}
			continue
		}
		t.accepted(c)
	}
}

// accepted has the node decide about a connection.
func (t *TCP) accepted(c net.Conn) {
	peer, port, err := t.peer(c.RemoteAddr())
	if err == nil {
		err = t.admit(request{machine.Request{Key: machine.Key{Peer: peer, Carrier: t.index}, Port: port}, c})
	}
	if err != nil {
		t.refuse(c, err)
	}
}

// How many connections may wait to be decided about, of a peer and in all.
const mostOfPeer, mostWaiting = 8, 1024

var errTooManyWait = errors.New("rds: tcp: too many connections wait for others to end")

// admit has a connection decided about behind those that the peer has made before it: what has come on those
// is read first.
func (t *TCP) admit(r request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue, attended := t.waiting[r.Key]
	if len(queue) == mostOfPeer || t.waits == mostWaiting {
		return errTooManyWait
	}
	t.waiting[r.Key] = append(queue, r)
	t.waits++
	if !attended {
		t.node.workers.Go(func() { t.attend(r.Key) })
	}
	return nil
}

// attend decides about the waiting connections of a peer, one after the other, until none is left.
func (t *TCP) attend(peer machine.Key) {
	for {
		t.mu.Lock()
		queue := t.waiting[peer]
		if len(queue) == 0 {
			delete(t.waiting, peer)
			t.mu.Unlock()
			return
		}
		t.waiting[peer] = queue[1:]
		t.waits--
		t.mu.Unlock()
		t.decide(queue[0])
	}
}

// decide has the node decide about a connection, and serves it if the node takes it.
func (t *TCP) decide(r request) {
	if gone := t.conclude(r.Request); gone != nil {
		select {
		case <-gone:
		case <-t.node.ctx.Done():
		}
	}
	a, err := t.node.accepted(r.Request)
	if err != nil {
		t.refuse(r.c, err)
		return
	}
	a.made()
	// The next connection of the peer finds the link: what comes on this one is read first.
	t.node.workers.Go(t.node.begins(t.recorded(newTCPLink(r.c), r.c, false), a.path, a.id))
}

// conclude ends the connection that a new one replaces, when what has come on it is read: a peer that knows TCP's
// acknowledgements only takes that for delivered. The result is closed when nothing of the connection is left; nil
// if there is none.
func (t *TCP) conclude(r machine.Request) <-chan struct{} {
	n := t.node
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.m.Replaces(r)
	if p == nil {
		return nil
	}
	a, ok := n.links[p]
	if !ok {
		return nil
	}
	a.link.(*tcpLink).conclude()
	return a.gone
}

// refuse ends a connection that is not admitted.
func (t *TCP) refuse(c net.Conn, err error) {
	t.node.cfg.Logger.Debug("rds: tcp: a connection is not accepted", "from", c.RemoteAddr(), "error", err)
	reset(c)
}

// peer returns the address of a connection's peer, and the port from which it has connected, which tells the path.
func (t *TCP) peer(remote net.Addr) (netip.Addr, int, error) {
	port := -1
	a, ok := remote.(*net.TCPAddr)
	if ok {
		port = a.Port
	}
	if t.PeerOf != nil {
		peer, err := t.PeerOf(remote)
		return peer.Unmap(), port, err
	}
	if !ok {
		return netip.Addr{}, 0, fmt.Errorf("rds: %v is no address of TCP", remote)
	}
	return a.AddrPort().Addr().Unmap(), port, nil
}

func (t *TCP) dial(ctx context.Context, d dialling) (link, error) {
	if t.Dial != nil {
		c, err := t.Dial(ctx, d.peer, d.path)
		if err != nil {
			return nil, err
		}
		return t.recorded(newTCPLink(c), c, true), nil
	}
	to := netip.AddrPortFrom(d.peer, t.port()).String()
	var err error
	for range 16 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: t.node.cfg.Addr.AsSlice(), Port: t.localPort(d)}}
		var c net.Conn
		if c, err = dialer.DialContext(ctx, "tcp", to); err == nil {
			return t.recorded(newTCPLink(c), c, true), nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return nil, err
		}
	}
	return nil, err
}

// localPort returns a port of which the peer can tell the path: modulo the number of paths, and modulo 8.
func (t *TCP) localPort(d dialling) int {
	const first, n = 32768, 28232
	step := machine.MaxPaths
	for step%d.paths != 0 {
		step += machine.MaxPaths
	}
	start := (first + step - 1) / step * step
	t.node.mu.Lock()
	defer t.node.mu.Unlock()
	return start + step*t.node.random.IntN(n/step) + d.path
}

// reset ends a connection that is not accepted.
func reset(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // at worst it ends with a FIN
	}
	_ = c.Close()
}
