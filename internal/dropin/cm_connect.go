//go:build linux

package dropin

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"urnic/mpa"
	"urnic/rnic"
)

// A ConnParam is struct urnic_conn_param.
type ConnParam struct {
	PrivateData                                        *byte
	PrivateDataLen, ResponderResources, InitiatorDepth uint32
	QP                                                 Handle
	RNRRetry, Reserved                                 uint32
}

// maxDepth stands for as much as there is: RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH.
const maxDepth = 0xff

// A connSettings is a ConnParam as package rnic wants it.
type connSettings struct {
	qp    *qp
	param rnic.ConnParam
}

// isFree reports whether the queue pair has no connection.
func (c *connSettings) isFree() bool { return c.qp.verbs.State() == rnic.Idle }

func (e *Engine) connParam(p *ConnParam) (c connSettings, _ Errno) {
	if p == nil {
		return c, syscall.EINVAL
	}
	if c.qp = e.qps.get(p.QP); c.qp == nil {
		return c, e.refuse(syscall.EINVAL, "connect or accept: there is no queue pair %d", p.QP)
	}
	if p.PrivateDataLen > 0 {
		if p.PrivateData == nil || p.PrivateDataLen > mpa.MaxPrivateData-mpa.EnhancedLen {
			return c, e.refuse(syscall.EINVAL, "connect or accept: %d bytes of private data: at most %d fit (RFC 6581 §7)",
				p.PrivateDataLen, mpa.MaxPrivateData-mpa.EnhancedLen)
		}
		c.param.PrivateData = slices.Clone(unsafe.Slice(p.PrivateData, p.PrivateDataLen))
	}
	c.qp.given.Store(false)
	c.qp.closed.Store(false)
	c.qp.noDepth.Store(p.InitiatorDepth == 0)
	c.qp.peerRetries.Store(int32(min(p.RNRRetry, retryForEver)))
	c.qp.asked.ird.Store(p.ResponderResources)
	c.qp.asked.ord.Store(p.InitiatorDepth)
	c.param.IRD, c.param.ORD = e.depthWithAck(depth(p.ResponderResources)), e.depthWithAck(depth(p.InitiatorDepth))
	return c, ok
}

// depth returns IRD or ORD as rnic.ConnParam has them.
func depth(n uint32) int {
	switch {
	case n == 0:
		return -1
	case n >= maxDepth:
		return rnic.MaxDepth
	}
	return int(n)
}

// IDConnect asks the peer for a connection, in the background. It tells
// cmEstablished, or as rdma_cm of Linux does: cmRejected, cmUnreachable or
// cmConnectError.
func (e *Engine) IDConnect(h Handle, p *ConnParam) Errno {
	c, bad := e.connParam(p)
	if bad != ok {
		return bad
	}
	return e.withID(h, func(id *cmID) Errno {
		switch {
		case id.state != cmRouteKnown || id.options.datagram:
			return id.refuse("connect")
		case !c.isFree():
			return e.refuse(syscall.EINVAL, "connect: QP 0x%x is in state %v", c.qp.num, c.qp.verbs.State())
		}
		ctx, cancel := context.WithCancel(e.ctx)
		id.state, id.cancel = cmConnecting, cancel
		id.background.Go(func() {
			defer cancel()
			err := id.connect(ctx, c)
			id.mu.Lock()
			defer id.mu.Unlock()
			switch {
			case id.gone && err == nil:
				e.wg.Go(c.qp.toError)
			case err != nil:
				id.state = cmOver
				id.tell(failure(err))
				e.log.printf(logInfo, "%v", err)
			default:
				id.established(c.qp)
			}
		})
		return ok
	})
}

// connect asks for the peer-to-peer model (RFC 6581 §9.2), as programs of
// rdma_cm may send first on either side, and without it if the peer seems not to
// know it.
func (id *cmID) connect(ctx context.Context, c connSettings) error {
	cfg := id.engine.mpa
	cfg.PeerToPeer = true
	c.param.MPA = &cfg
	err := c.qp.verbs.ConnectVia(ctx, id.dial, c.param)
	if !knowsNoPeerToPeer(err) || ctx.Err() != nil {
		return err
	}
	cfg.PeerToPeer = false
	plain := c.qp.verbs.ConnectVia(ctx, id.dial, c.param)
	if _, isRejected := errors.AsType[*mpa.RejectedError](plain); plain == nil || isRejected {
		return plain
	}
	return err // it was not that: the first try says what was
}

// knowsNoPeerToPeer reports whether an error looks like what a Responder does that
// takes only simpler Requests: it "MUST close the TCP connection" (RFC 6581 §10).
func knowsNoPeerToPeer(err error) bool {
	e, isMPA := errors.AsType[*mpa.Error](err)
	if !isMPA || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	return e.Code == mpa.CodeStartup || e.Code == mpa.CodeConnectionLost
}

// dial connects the id's socket, or another one like it for a further try: see times.refused.
func (id *cmID) dial(ctx context.Context) (net.Conn, error) {
	patient, cancel := context.WithTimeout(ctx, id.engine.times.refused)
	defer cancel()
	for pause := time.Millisecond; ; pause *= 2 {
		c, err := id.dialOnce(ctx)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return c, err
		}
		id.engine.log.printf(logDebug, "%v: trying again in %v", err, pause)
		select {
		case <-time.After(pause):
		case <-patient.Done():
			return nil, err
		}
	}
}

func (id *cmID) dialOnce(ctx context.Context) (net.Conn, error) {
	id.mu.Lock()
	socket, local, peer, o := id.socket, id.local, id.peer, id.options
	id.socket = nil
	id.mu.Unlock()
	if socket == nil {
		var err error
		if socket, _, err = bindSocket(local, o); err != nil {
			return nil, err
		}
	}
	return connectSocket(ctx, socket, peer, id.engine.times.connect)
}

// failure returns the event for a connection that has not come about, by the rules
// of cma_iw_handler in Linux.
func failure(err error) CMEvent {
	ev := CMEvent{Type: cmConnectError}
	if r, isRejected := errors.AsType[*mpa.RejectedError](err); isRejected {
		ev.Type, ev.Status = cmRejected, -int32(syscall.ECONNREFUSED)
		ev.setPrivateData(r.PrivateData)
		return ev
	}
	number := connErrno(err)
	switch number {
	case syscall.ECONNREFUSED, syscall.ECONNRESET:
		ev.Type = cmRejected
	case syscall.ETIMEDOUT:
		ev.Type = cmUnreachable
	default: // is all the same to a program
	}
	ev.Status = -int32(number)
	return ev
}

// connErrno returns the number for why a start-up has failed.
func connErrno(err error) Errno {
	var number Errno
	e, isMPA := errors.AsType[*mpa.Error](err)
	switch {
	case errors.As(err, &number):
		return number
	case errors.Is(err, os.ErrDeadlineExceeded):
		return syscall.ETIMEDOUT
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return syscall.ECONNRESET
	case isMPA && e.Code == mpa.CodeConnectionLost:
		return syscall.ECONNRESET
	case isMPA:
		return syscall.EPROTO
	}
	return errno(err)
}

// established reports that there is a connection, and waits for its end. The caller
// holds mu.
func (id *cmID) established(q *qp) {
	id.state, id.qp = cmConnected, q
	q.own(&connectionOwner{event: func(rnic.Event) bool { return true }}) // watch tells it
	q.setTimeout(id.ackTimeout)
	q.connected()
	family := id.local.family()
	if a := q.verbs.LocalAddr(); a != nil {
		id.local, id.peer = endpointAt(a, family), endpointAt(q.verbs.RemoteAddr(), family)
	}
	ev := CMEvent{Type: cmEstablished}
	if p, some := q.verbs.Params(); some {
		// What the recipient is asked for, and may do itself: rdma_get_cm_event(3).
		ev.ResponderResources, ev.InitiatorDepth = q.told(uint32(p.IRD), q.asked.ird.Load()), q.told(uint32(p.ORD), q.asked.ord.Load())
		if p.Role == mpa.Initiator {
			ev.setPrivateData(p.PrivateData)
		}
	}
	id.tell(ev)
	done := q.verbs.Done()
	id.engine.wg.Go(func() { id.watch(q, done) })
	if id.disconnect {
		id.beginDisconnect()
	}
}

// watch tells the end of a connection, which comes when the queue pair is closed
// at the latest.
func (id *cmID) watch(q *qp, done <-chan struct{}) {
	<-done
	if q.verbs.State() == rnic.Idle {
		q.toError() // what is posted from now on is flushed, as rdma_cm has it
	}
	id.letFetch(q)
	id.mu.Lock()
	defer id.mu.Unlock()
	id.state = cmOver
	id.tell(CMEvent{Type: cmDisconnected})
}

// IDDisconnect closes a connection gracefully, in the background: requests that
// are posted complete first, receives are flushed, and cmDisconnected is told. Of
// a connection that is still being made, it does so then.
func (e *Engine) IDDisconnect(h Handle) Errno {
	return e.withID(h, func(id *cmID) Errno {
		if id.options.datagram { // there is no connection
			return id.refuse("disconnect")
		}
		switch id.state {
		case cmConnected:
			id.beginDisconnect()
		case cmConnecting:
			id.disconnect = true
		case cmAsked, cmDisconnecting, cmOver: // there is nothing to close
		default:
			return id.refuse("disconnect")
		}
		return ok
	})
}

func (id *cmID) beginDisconnect() {
	id.state = cmDisconnecting
	q := id.qp
	id.engine.wg.Go(func() { q.disconnect(q.engine.times.disconnect) })
}

// disconnect closes the connection of a queue pair gracefully, if it has one, and
// resets it if that takes longer than patience.
func (q *qp) disconnect(patience time.Duration) {
	ctx, cancel := context.WithTimeout(q.engine.ctx, patience)
	defer cancel()
	q.given.Store(true)
	q.lastRead()
	if err := q.verbs.Disconnect(ctx); err != nil {
		q.engine.log.printf(logDebug, "%v", err)
	}
}

// settle closes the connection of a queue pair that is to be given up. To reset it
// would take away from the peer what is still on its way, though the program
// has seen it complete: devices of InfiniBand complete what has arrived.
func (q *qp) settle() {
	switch q.verbs.State() {
	case rnic.RTS, rnic.Closing:
		q.disconnect(q.engine.times.release)
	default:
	}
}
