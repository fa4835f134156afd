package rds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"urnic/mpa"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

func (t *IWARP) dial(ctx context.Context, d dialling) (link, error) {
	private, err := t.private(d.peer, d.tos, 0) // what was received may be of an earlier life of the peer
	if err != nil {
		return nil, err
	}
	l, err := newIWARPLink(t)
	if err != nil {
		return nil, err
	}
	connect := func(patient context.Context) error {
		open := func(dialling context.Context) (net.Conn, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			// From here on only patient ends it: the peer may have the stream before the node does.
			return t.reach(dialling, d.peer)
		}
		return l.qp.ConnectVia(patient, open, t.conn(private))
	}
	if err := t.patiently(ctx, l, connect); err != nil {
		if _, ok := errors.AsType[*mpa.RejectedError](err); ok {
			err = fmt.Errorf("%w: %w", machine.ErrRejected, err)
		}
		return nil, err
	}
	v, err := t.reply(l, d)
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	l.told = t.params(&v)
	return l, nil
}

// reach opens the stream to a peer.
func (t *IWARP) reach(ctx context.Context, peer netip.Addr) (net.Conn, error) {
	if t.Dial != nil {
		return t.Dial(ctx, peer)
	}
	to := net.JoinHostPort(peer.String(), strconv.Itoa(port(peer)))
	if t.PeerAddress != nil {
		to = t.PeerAddress(peer)
	}
	// Peers tell nodes by their addresses: the node's own is the source.
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: t.node.cfg.Addr.AsSlice()}}
	return dialer.DialContext(ctx, "tcp", to)
}

// mostUnwanted is how many connections may wait for the answers of peers that have made one themselves.
const mostUnwanted = 64

// patiently connects a link, or releases it. If ctx is canceled, as the peer has made a connection itself, it
// returns, but a stream that is open or opens by then stays so until the peer has answered: siw closes its listener
// if an initiator leaves before siw has taken its stream.
func (t *IWARP) patiently(ctx context.Context, l *iwarpLink, connect func(patient context.Context) error) error {
	deadline, _ := ctx.Deadline()
	patient, end := context.WithDeadline(t.node.ctx, deadline)
	connected, left := make(chan error), make(chan struct{})
	t.node.workers.Go(func() {
		defer end()
		err := connect(patient)
		if err != nil {
			err = errors.Join(err, l.release())
		}
		select {
		case connected <- err:
			return
		case <-left:
		}
		if err == nil {
			err = l.release()
		}
		t.unwanted.Add(-1)
		t.node.cfg.Logger.Debug("rds: iwarp: a connection that is not wanted any more has ended", "error", err)
	})
	select {
	case err := <-connected:
		return err
	case <-ctx.Done():
	}
	if t.node.ctx.Err() != nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return <-connected // patient is over as well, and the error says more
	}
	if t.unwanted.Add(1) > mostUnwanted {
		end()
	}
	close(left)
	return ctx.Err()
}

// reply looks at what the peer has said when it accepted.
func (t *IWARP) reply(l *iwarpLink, d dialling) (wire.Private, error) {
	params, _ := l.qp.Params()
	v, err := wire.ParsePrivate(params.PrivateData, d.peer.Is6())
	if err == nil {
		_, _, err = v.Agree()
	}
	if err == nil && (v.Source != d.peer || v.Dest != t.node.cfg.Addr) {
		err = fmt.Errorf("it answers as %v, for %v", v.Source, v.Dest)
	}
	if err != nil {
		return v, t.node.misconnected(d.peer, machine.RuleSetUp, err)
	}
	return v, nil
}
