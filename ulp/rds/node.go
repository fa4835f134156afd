package rds

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"urnic/ulp/rds/machine"
)

// ErrNodeClosed says that a node is closed.
var ErrNodeClosed = errors.New("rds: the node is closed")

// A Node is one end of all connections of an address. All its methods are safe for
// concurrent use.
type Node struct {
	cfg     Config
	begun   time.Time
	ctx     context.Context // ends with the node
	cancel  context.CancelFunc
	workers sync.WaitGroup // links, and those that dial
	bytes   *bytesPool     // memory for messages that are received
	claimed []Transport
	closing sync.Once
	failure error // of Close

	mu      sync.Mutex
	m       *machine.Machine
	closed  bool
	links   map[*machine.Path]attached
	making  map[*machine.Path]attempt
	sockets map[*machine.Socket]*Socket
	dirty   []link // that have something to send
	mrs     int    // MRs of sockets
	timer   *time.Timer
	at      machine.Time // when the timer expires
	random  *mrand.Rand
}

// attached is the present link of a path.
type attached struct {
	link link
	id   machine.Link
	gone chan struct{} // closed when nothing of it is left
}

// attempt is a connection of a path that is being made.
type attempt struct {
	id     machine.Link
	cancel context.CancelFunc
}

// Open makes a node, which accepts connections until it is closed; ctx bounds the opening
// alone. The error says what of the configuration can't be used, or why a transport can't listen.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if ctx == nil {
		return nil, ErrNoContext
	}
	cfg.Addr = cfg.Addr.Unmap()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = 10 * time.Second
	}
	if cfg.OperationTimeout <= 0 {
		cfg.OperationTimeout = 10 * time.Second
	}
	if cfg.SocketMRs <= 0 {
		cfg.SocketMRs = 1024
	}
	if cfg.NodeMRs <= 0 {
		cfg.NodeMRs = 16_384
	}
	var random [12]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("rds: %w", err)
	}
	for i := 0; cfg.Generation == 0; i++ {
		cfg.Generation = binary.BigEndian.Uint32(random[:]) + uint32(i)
	}
	if err := claim(cfg.Transports); err != nil {
		return nil, err
	}
	var carriers []machine.Carrier
	for _, t := range cfg.Transports {
		carriers = append(carriers, t.carrier())
	}
	bytes := newBytes()
	m, err := machine.New(cfg.machine(carriers, binary.BigEndian.Uint64(random[4:]), bytes))
	if err != nil {
		release(cfg.Transports)
		return nil, err
	}
	n := &Node{
		cfg: cfg, claimed: cfg.Transports, begun: time.Now(), m: m, bytes: bytes,
		random: mrand.New(mrand.NewPCG(binary.BigEndian.Uint64(random[4:]), 1)),
		links:  map[*machine.Path]attached{}, making: map[*machine.Path]attempt{}, sockets: map[*machine.Socket]*Socket{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for i, t := range cfg.Transports {
		if err := t.open(ctx, n, i); err != nil {
			n.cfg.Transports = cfg.Transports[:i]
			return nil, errors.Join(fmt.Errorf("rds: transport %s: %w", t.Name(), err), n.Close())
		}
	}
	return n, nil
}

// Addr returns the node's address.
func (n *Node) Addr() netip.Addr { return n.cfg.Addr }

// Close closes the node with its sockets and connections, and waits until nothing of
// it is left. Messages that are not acknowledged are given up.
func (n *Node) Close() error {
	n.closing.Do(func() { n.failure = n.end() })
	return n.failure
}

func (n *Node) end() error {
	n.mu.Lock()
	n.closed = true
	var sockets []*Socket
	for _, s := range n.sockets {
		sockets = append(sockets, s)
	}
	for _, a := range n.links {
		a.link.abort()
	}
	if n.timer != nil {
		n.timer.Stop()
	}
	n.mu.Unlock()
	n.cancel()
	for _, s := range sockets {
		s.end(ErrNodeClosed)
	}
	var errs []error
	for _, t := range n.cfg.Transports {
		errs = append(errs, t.close())
	}
	n.workers.Wait()
	release(n.claimed)
	return errors.Join(errs...)
}

// now returns the machine's time.
func (n *Node) now() machine.Time { return time.Since(n.begun) }

// unlock gives the lock back that the caller has, after the machine's effects have been
// carried out. What they have made dirty is sent.
func (n *Node) unlock() {
	n.effects()
	dirty := n.dirty
	n.dirty = nil
	n.schedule()
	n.mu.Unlock()
	for _, l := range dirty {
		l.flush()
	}
}

// schedule sets the timer to the machine's deadline.
func (n *Node) schedule() {
	at, ok := n.m.Deadline()
	switch {
	case !ok || n.closed:
		return // what the timer finds is nothing
	case n.timer == nil:
		n.timer = time.AfterFunc(max(0, at-n.now()), n.expired)
	case n.at != at:
		n.timer.Reset(max(0, at-n.now()))
	}
	n.at = at
}

// expired is called by the timer.
func (n *Node) expired() {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	n.at = -1
	n.m.Advance(n.now())
	n.unlock()
}

// effects carries out what the machine wants. None of it waits.
func (n *Node) effects() {
	for todo := n.m.Effects(); todo != nil; todo = n.m.Effects() {
		for i := range todo {
			n.effect(&todo[i])
		}
	}
}

func (n *Node) effect(e *machine.Effect) {
	switch e.Kind {
	case machine.Dial:
		if !n.closed {
			p, id := e.Path, e.Link // e is the machine's
			ctx, made := n.begin(p, id)
			n.workers.Go(func() { n.dial(ctx, made, p, id) })
		}
	case machine.Hangup:
		if a, ok := n.links[e.Path]; ok && a.id == e.Link {
			if errors.Is(e.Err, machine.ErrReplaced) {
				a.link.replaced()
			}
			a.link.abort()
		}
		if a, ok := n.making[e.Path]; ok && a.id == e.Link {
			a.cancel()
		}
	case machine.Transmit:
		if a, ok := n.links[e.Path]; ok {
			n.dirty = append(n.dirty, a.link)
		}
	case machine.Resume:
		if a, ok := n.links[e.Path]; ok && a.id == e.Link {
			a.link.resume()
		}
	case machine.Readable:
		if s := n.sockets[e.Socket]; s != nil {
			s.readable.Wake()
		}
	case machine.Writable:
		if s := n.sockets[e.Socket]; s != nil {
			s.writable.Ring()
		}
	case machine.Settled:
		e.Op.Arg.(*Operation).settle(e.Err)
	case machine.Used:
		if s := n.sockets[e.Socket]; s != nil {
			s.unuse(e.RKey)
		}
	case machine.Report:
		n.report(&e.Event)
	}
}

// begin notes that a connection of a path is being made, until made is called. The context
// bounds that, and ends if the machine wants the connection no more. The node is locked.
func (n *Node) begin(p *machine.Path, id machine.Link) (ctx context.Context, made func()) {
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.DialTimeout)
	n.making[p] = attempt{id, cancel}
	return ctx, func() {
		cancel()
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.making[p].id == id {
			delete(n.making, p)
		}
	}
}

// dial makes a connection for a path, and serves it.
func (n *Node) dial(ctx context.Context, made func(), p *machine.Path, id machine.Link) {
	key := p.Conn().Key()
	n.mu.Lock()
	d := dialling{peer: key.Peer, tos: key.TOS, path: p.Index(), paths: p.Conn().Agreed()}
	n.mu.Unlock()
	n.succeed(ctx, p)
	l, err := n.cfg.Transports[key.Carrier].dial(ctx, d)
	made()
	if err != nil {
		n.mu.Lock()
		p.Down(n.now(), id, err)
		n.unlock()
		return
	}
	n.serve(l, p, id)
}

// succeed waits until nothing is left of the links that a path has had. What a peer has sent on one
// of them could else still be placed when the next is up, and when it was told what has arrived.
func (n *Node) succeed(ctx context.Context, p *machine.Path) {
	n.mu.Lock()
	a, ok := n.links[p]
	n.mu.Unlock()
	if ok {
		select {
		case <-a.gone:
		case <-ctx.Done():
		}
	}
}

// An admission is a connection that a peer has made, and that the node takes.
type admission struct {
	path *machine.Path
	id   machine.Link
	ctx  context.Context // bounds how long it takes until it is complete
	made func()          // to be called when it is, or has failed
}

// accepted decides about a connection that a peer has made. Then complete, and serve.
func (n *Node) accepted(r machine.Request) (a admission, err error) {
	n.mu.Lock()
	defer n.unlock()
	switch {
	case n.closed:
		return a, ErrNodeClosed
	case !n.cfg.allows(r.Key.Peer):
		n.report(&machine.Event{Kind: machine.Refused, Peer: r.Key.Peer, TOS: r.Key.TOS, Err: ErrNotAllowed})
		return a, ErrNotAllowed
	}
	if a.path, a.id, err = n.m.Request(n.now(), r); err != nil {
		return a, err
	}
	n.effects() // end the connection that this one replaces, even if it is still being made
	a.ctx, a.made = n.begin(a.path, a.id)
	return a, nil
}

// misconnected reports that a peer has broken a rule when a connection was set up.
func (n *Node) misconnected(peer netip.Addr, rule machine.Rule, err error) error {
	n.mu.Lock()
	defer n.unlock()
	return n.m.Misconnected(n.now(), peer, rule, err)
}

// serve runs a link until it ends.
func (n *Node) serve(l link, p *machine.Path, id machine.Link) { n.begins(l, p, id)() }

// begins makes a link that of its path. The result runs it until it ends.
func (n *Node) begins(l link, p *machine.Path, id machine.Link) (run func()) {
	gone := make(chan struct{})
	n.mu.Lock()
	l.attach(n, p, id)
	if _, present := p.State(); present == id && !n.closed {
		n.links[p] = attached{l, id, gone}
	} else {
		l.abort() // another one has taken its place meanwhile
	}
	p.Up(n.now(), id, l.params())
	n.unlock()
	return func() {
		defer close(gone)
		err := l.serve()
		n.mu.Lock()
		if n.links[p].id == id {
			delete(n.links, p)
		}
		p.Down(n.now(), id, err)
		n.unlock()
	}
}
