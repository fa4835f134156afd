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
	shared   net.Listener // of this transport and another one
	listener net.Listener
	accepts  sync.WaitGroup

	mu      sync.Mutex                // locked before the node
	waiting map[machine.Key][]request // what is not decided about yet, by peer, the oldest first
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
	if t.shared != nil {
		t.listener, t.shared = t.shared, nil
	}
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
	peer, path, err := t.peer(c.RemoteAddr())
	if err == nil {
		err = t.admit(request{machine.Request{Key: machine.Key{Peer: peer, Carrier: t.index}, Path: path}, c})
	}
	if err != nil {
		t.refuse(c, err)
	}
}

// How many connections may wait until it can be decided about them, of a peer and in all.
const mostOfPeer, mostWaiting = 4 * machine.MaxPaths, 1024

// admit serves a connection, if the node takes it. It waits its turn if one has to end first: the peer takes
// for delivered what it has sent on that, and on those that wait before it.
func (t *TCP) admit(r request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue, wait := t.waiting[r.Key]
	var later chan struct{}
	if !wait {
		var err error
		if later, err = t.decide(r); later == nil {
			return err
		}
	}
	if len(queue) == mostOfPeer || t.waits == mostWaiting {
		return errTooManyWait
	}
	t.waiting[r.Key] = append(queue, r)
	t.waits++
	if !wait {
		t.node.workers.Go(func() { t.attend(r.Key, later) })
	}
	return nil
}

var errTooManyWait = errors.New("rds: tcp: too many connections wait for others to end")

// decide has the node decide about a connection, and serves it if the node takes it. If it is too early, the
// result is closed when it is worth asking again.
func (t *TCP) decide(r request) (later chan struct{}, err error) {
	a, err := t.node.accepted(r.Request)
	if err == nil {
		a.made()
		t.node.workers.Go(func() { t.node.serve(t.recorded(newTCPLink(r.c), r.c, false), a.path, a.id) })
	}
	return a.later, err
}

// attend decides about the waiting connections of a peer, one after the other, until none is left.
func (t *TCP) attend(peer machine.Key, later chan struct{}) {
	for later != nil {
		select {
		case <-later:
		case <-t.node.ctx.Done():
		}
		later = t.next(peer)
	}
}

// next decides about those that need not wait any longer. The result is closed when it is worth continuing; nil if none is left.
func (t *TCP) next(peer machine.Key) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	for queue := t.waiting[peer]; len(queue) > 0; queue = t.waiting[peer] {
		later, err := t.decide(queue[0])
		if later != nil && t.node.ctx.Err() == nil {
			return later
		}
		if err != nil {
			t.refuse(queue[0].c, err)
		}
		t.waiting[peer] = queue[1:]
		t.waits--
	}
	delete(t.waiting, peer)
	return nil
}

// refuse ends a connection that is not admitted.
func (t *TCP) refuse(c net.Conn, err error) {
	t.node.cfg.Logger.Debug("rds: tcp: a connection is not accepted", "from", c.RemoteAddr(), "error", err)
	reset(c)
}

// peer returns the address of a connection's peer, and the path that it is for. A node of
// urnic dials from a port that tells; Linux 6.1 does not.
func (t *TCP) peer(remote net.Addr) (netip.Addr, int, error) {
	path := -1
	a, ok := remote.(*net.TCPAddr)
	if ok {
		path = a.Port % machine.MaxPaths
	}
	if t.PeerOf != nil {
		peer, err := t.PeerOf(remote)
		return peer.Unmap(), path, err
	}
	if !ok {
		return netip.Addr{}, 0, fmt.Errorf("rds: %v is no address of TCP", remote)
	}
	return a.AddrPort().Addr().Unmap(), path, nil
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
		// Of the ports that nobody has, one in eight is of this path.
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: t.node.cfg.Addr.AsSlice(), Port: t.localPort(d.path)}}
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

// localPort returns a port of which the peer can tell the path.
func (t *TCP) localPort(path int) int {
	const first, n = 32768, 28232 / machine.MaxPaths
	t.node.mu.Lock()
	defer t.node.mu.Unlock()
	return first + machine.MaxPaths*t.node.random.IntN(n) + path
}

// reset ends a connection that is not accepted.
func reset(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // at worst it ends with a FIN
	}
	_ = c.Close()
}
