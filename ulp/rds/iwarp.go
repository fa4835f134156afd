package rds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"urnic/rnic"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// The ports of RDS over RDMA. That of IPv4 is older than the registered one, which is
// RDS over TCP's as well.
const (
	RDMAPort4 = 18634
	RDMAPort6 = 16385
)

// IWARP carries RDS over the verbs of an RNIC, as Linux's rds_rdma does over InfiniBand
// and once did over iWARP.
type IWARP struct {
	// Device is the RNIC. It stays the caller's, who closes it after the node.
	Device *rnic.Device
	// Address is where the node listens, HOST:PORT (its address, at RDMAPort4 or RDMAPort6).
	Address string
	// Listener, if it is not nil, is used in place of one at Address.
	Listener net.Listener
	// PeerAddress says where a peer listens. Nil stands for its address, and the port of the family.
	PeerAddress func(peer netip.Addr) string
	// Dial, if it is not nil, is used in place of a connection from the node's address to PeerAddress.
	Dial func(ctx context.Context, peer netip.Addr) (net.Conn, error)
	// Receives is how many receives a connection may have (256; with flow control, at least 4): how many fragments the peer may send
	// at once, if it uses flow control. It begins with 16, and has more while the peer sends much.
	Receives int
	// ReceiveMemory is how many bytes all connections together may have for more than 16
	// receives (64 MiB).
	ReceiveMemory int
	// NoCredits leaves flow control out, as Linux does by default.
	NoCredits bool
	// AnySource accepts a request that names another address than that which it comes from: of a
	// peer behind translated addresses.
	AnySource bool

	used     atomic.Bool
	node     *Node
	index    int
	regions  regions
	buffers  *pool[*buffer]
	charged  atomic.Int64 // of ReceiveMemory
	posted   atomic.Int64 // bytes of the receives of all connections
	unwanted atomic.Int64 // of mostUnwanted
	pd       *rnic.PD
	listener *rnic.Listener
	accepts  sync.WaitGroup
}

// Name returns "iwarp".
func (t *IWARP) Name() string { return "iwarp" }

func (t *IWARP) carrier() machine.Carrier {
	return machine.Carrier{Name: t.Name(), Fragment: wire.FragmentLen, Acks: true, Operations: true, Paths: 1, Introduces: true, TOS: true}
}

// minReceives is how many receives flow control needs: for two fragments of a map, an
// acknowledgement that gives credit, and the last credit, which is kept for one.
const minReceives = 4

func (t *IWARP) receives() int {
	if t.Receives <= 0 {
		return 256
	}
	return t.Receives
}

// first is how many receives a connection begins with.
func (t *IWARP) first() int { return min(16, t.receives()) }

// charge takes bytes of ReceiveMemory, or gives them back. It reports whether there are so many.
func (t *IWARP) charge(bytes int) bool {
	limit := int64(t.ReceiveMemory)
	if limit <= 0 {
		limit = 64 << 20
	}
	if t.charged.Add(int64(bytes)) > limit && bytes > 0 {
		t.charged.Add(-int64(bytes))
		return false
	}
	return true
}

func port(a netip.Addr) int {
	if a.Is4() {
		return RDMAPort4
	}
	return RDMAPort6
}

func (t *IWARP) open(ctx context.Context, n *Node, index int) (err error) {
	t.node, t.index = n, index
	if t.Device == nil {
		return errors.New("there is no RNIC: set IWARP.Device")
	}
	if t.receives() < minReceives && !t.NoCredits {
		return fmt.Errorf("a connection with %d receives can't continue: set IWARP.Receives to %d or more", t.Receives, minReceives)
	}
	if t.pd, err = t.Device.AllocPD(); err != nil {
		return err
	}
	t.regions.pd = t.pd
	t.buffers = t.regions.newBuffers()
	if t.listener, err = t.listen(ctx); err != nil {
		return errors.Join(err, t.pd.Close())
	}
	t.accepts.Go(t.accept)
	return nil
}

func (t *IWARP) listen(ctx context.Context) (*rnic.Listener, error) {
	on := t.Listener
	if on != nil {
		return t.Device.ListenOn(on)
	}
	return t.Device.Listen(ctx, t.address(t.node.cfg.Addr))
}

// address returns where the transport listens, for a node's address.
func (t *IWARP) address(node netip.Addr) string {
	if t.Address != "" {
		return t.Address
	}
	return net.JoinHostPort(node.String(), strconv.Itoa(port(node)))
}

func (t *IWARP) close() error {
	if t.listener == nil {
		return nil
	}
	err := t.listener.Close()
	t.accepts.Wait()
	t.node.workers.Wait() // the links have memory of the domain
	return errors.Join(err, t.regions.close(), t.pd.Close())
}

func (t *IWARP) memory(n int) (*buffer, error) { return t.buffers.get(n) }

// private returns what this side says of itself.
func (t *IWARP) private(peer netip.Addr, tos uint8, received uint64) ([]byte, error) {
	v := wire.Private{
		Source: t.node.cfg.Addr, Dest: peer, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask,
		TOS: tos, AckSequence: received, Generation: t.node.cfg.Generation,
	}
	if !t.NoCredits {
		v.Credit = uint32(t.first())
	}
	return v.AppendTo(nil)
}

// params returns what two sides have told each other.
func (t *IWARP) params(peer *wire.Private) machine.Params {
	p := machine.Params{Generation: peer.Generation, Ack: peer.AckSequence, Credit: int(min(peer.Credit, 1<<20))}
	if !t.NoCredits {
		p.Granted = t.first()
	}
	return p
}

// conn returns how connections are made: with the peer-to-peer model, as both sides send
// as soon as the connection is there (RFC 6581 §9).
func (t *IWARP) conn(private []byte) rnic.ConnParam {
	var c rnic.Config
	m := c.MPA
	m.PeerToPeer = true
	return rnic.ConnParam{PrivateData: private, MPA: &m}
}

// accept takes requests until the listener is closed.
func (t *IWARP) accept() {
	for {
		req, err := t.listener.Accept(t.node.ctx)
		if err != nil {
			return
		}
		t.node.workers.Go(func() { t.requested(req) })
	}
}

// requested decides about a request, and serves the connection.
func (t *IWARP) requested(req *rnic.ConnRequest) {
	v, err := t.request(req)
	var a admission
	if err == nil {
		a, err = t.node.accepted(machine.Request{Key: machine.Key{Peer: v.Source, TOS: v.TOS, Carrier: t.index}, Port: -1})
	}
	if err != nil {
		t.reject(req, err)
		return
	}
	l, err := t.admit(a, req, &v)
	a.made()
	if err != nil {
		t.node.mu.Lock()
		a.path.Down(t.node.now(), a.id, err)
		t.node.unlock()
		return
	}
	l.told = t.params(&v)
	t.node.serve(l, a.path, a.id)
}

func (t *IWARP) reject(req *rnic.ConnRequest, why error) {
	ctx, cancel := context.WithTimeout(t.node.ctx, t.node.cfg.DialTimeout)
	defer cancel()
	t.node.cfg.Logger.Debug("rds: iwarp: a request is rejected", "from", req.RemoteAddr(), "error", why)
	if err := req.Reject(ctx, wire.RejectReason[:]); err != nil {
		_ = req.Close() // the peer is gone
	}
}

// admit completes the connection of a request.
func (t *IWARP) admit(a admission, req *rnic.ConnRequest, v *wire.Private) (*iwarpLink, error) {
	t.node.succeed(a.ctx, a.path)
	t.node.mu.Lock()
	received := a.path.Received(v.Generation)
	t.node.mu.Unlock()
	private, err := t.private(v.Source, v.TOS, received)
	if err != nil {
		return nil, errors.Join(err, req.Close())
	}
	l, err := newIWARPLink(t)
	if err != nil {
		return nil, errors.Join(err, req.Close())
	}
	if err := req.Accept(a.ctx, l.qp, t.conn(private)); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// request judges the private data of a request.
func (t *IWARP) request(req *rnic.ConnRequest) (wire.Private, error) {
	from, _ := req.RemoteAddr().(*net.TCPAddr)
	source := netip.Addr{} // of a network that has no such addresses
	if from != nil {
		source = from.AddrPort().Addr().Unmap()
	}
	v, err := wire.ParsePrivate(req.PrivateData(), t.node.cfg.Addr.Is6())
	if err == nil {
		_, _, err = v.Agree()
	}
	switch {
	case err != nil:
	case v.Dest != t.node.cfg.Addr:
		err = fmt.Errorf("the request is for %v, which is not the node's address", v.Dest)
	case source.IsValid() && !t.AnySource && source != v.Source:
		err = fmt.Errorf("a request that comes from %v says that it comes from %v", source, v.Source)
	}
	if err != nil && !t.node.cfg.allows(source) {
		return v, ErrNotAllowed
	}
	if err != nil {
		return v, t.node.misconnected(source, machine.RuleSetUp, err)
	}
	return v, nil
}
