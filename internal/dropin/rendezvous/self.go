package rendezvous

import (
	"context"
	"io"
	"net"
	"net/netip"

	"urnic/mpa"
)

// A queue pair can be its own peer: InfiniBand lets programs have that, and some use it
// to make sure that memory has been written. Its connection leads to a mirror, which
// accepts, and then sends back all that comes: a Send takes a receive of the same queue
// pair, a Read is answered by its own side.

// isSelf reports whether the program has named the queue pair as its own peer.
func (a *attempt) isSelf() bool { return a.peer.QPN == a.e.num && a.local }

// reflect connects the queue pair with itself.
func (a *attempt) reflect() error {
	param, _, err := a.param(Ask)
	if err != nil {
		return err
	}
	agree := Message{Kind: Agree, From: a.e.num, To: a.e.num}
	answer, err := agree.AppendBinary(nil)
	if err != nil {
		return err
	}
	// An Initiator may send first anyway, and nobody would understand an RTR.
	param.MPA.PeerToPeer = false
	cfg := *param.MPA
	cfg.PrivateData, cfg.IRD, cfg.ORD = answer, uint16(max(param.IRD, 0)), uint16(max(param.IRD, 0))
	via := func(ctx context.Context) (net.Conn, error) {
		near, far, err := a.e.m.pipe(ctx)
		if err == nil {
			a.e.m.wg.Go(func() { a.e.m.mirror(far, cfg) })
		}
		return near, err
	}
	return a.e.qp.ConnectVia(a.ctx, via, param)
}

// pipe returns both ends of a connection of this process with itself.
func (m *Matchmaker) pipe(ctx context.Context) (near, far net.Conn, err error) {
	p, err := m.cfg.Reserve(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	l, err := p.Listen()
	if err != nil {
		_ = p.Close() // err says why
		return nil, nil, err
	}
	defer func() { _ = l.Close() }() // it has served its purpose
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	if near, err = m.cfg.Dial(ctx, netip.Addr{}, at); err != nil {
		return nil, nil, err
	}
	for {
		if far, err = l.Accept(); err != nil {
			_ = near.Close() // it is of no use
			return nil, nil, err
		}
		if far.RemoteAddr().String() == near.LocalAddr().String() {
			return near, far, nil
		}
		_ = far.Close() // somebody else has been quicker
	}
}

// mirror accepts a connection and sends back what comes, until it ends.
func (m *Matchmaker) mirror(c net.Conn, cfg mpa.Config) {
	defer func() { _ = c.Close() }() // whatever is left is of no use
	stop := context.AfterFunc(m.ctx, func() { _ = c.Close() })
	defer stop()
	r, err := mpa.ReceiveRequest(m.ctx, c, mpa.Config{})
	if err == nil {
		_, err = r.Accept(m.ctx, cfg)
	}
	if err == nil {
		_, err = io.Copy(c, c)
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		m.log.Debug("rendezvous: a connection of a queue pair with itself", "error", err)
	}
}
