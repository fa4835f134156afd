package rendezvous

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"urnic/rnic"
)

// An Endpoint is a queue pair that a matchmaker knows. All of its methods are safe
// for concurrent use.
type Endpoint struct {
	m   *Matchmaker
	num uint32
	qp  *rnic.QP

	// Under the matchmaker's mu.
	attempt *attempt // that is in progress or was last, or nil
	closed  bool
}

// A Peer is whom a program has named when it modified its queue pair to RTR.
type Peer struct {
	QPN uint32
	// Addr is the address that its GID stands for, with the zone of a link-local
	// one. If it is not valid, the peer is on this host.
	Addr netip.Addr
	// From is the address of this side by which the peer knows it, or not valid.
	From netip.Addr
	// PSN is the number of the first packet that the program expects.
	PSN uint32
	// IRD is how many Reads and atomics of the peer may be outstanding. What this
	// side may have is what the peer takes.
	IRD int
	// Heard, if not nil, is called before the queue pair is connected, with what the peer's program has
	// said in RTS of how often to send to a receiver that is not ready (0 to 7), or -1 if it has not said so yet.
	Heard func(rnrRetry int)
}

// Connect begins to connect the queue pair, which must be idle, and does not wait.
// When that is over, it
// calls done in a goroutine of its own: with nil if there is a connection, or an
// *UnreachableError, or another error if the queue pair can't be connected. It calls
// it not at all if the attempt is given up before: by Cancel, Close or another
// Connect.
//
// It returns an error if the peer can't be one: a *NumberError, or an *AddrError.
func (e *Endpoint) Connect(p Peer, done func(error)) error {
	if p.QPN > maxNumber {
		return &NumberError{p.QPN}
	}
	p.Addr, p.From = p.Addr.Unmap(), p.From.Unmap()
	if p.Addr.IsUnspecified() || p.Addr.IsMulticast() {
		return &AddrError{p.Addr}
	}
	opened, err := e.m.Listen()
	if err != nil {
		e.m.log.Warn("rendezvous: peers can't connect to this process", "error", err)
	}
	local := !p.Addr.IsValid() || e.m.cfg.Local(p.Addr.WithZone(""))
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	if e.closed {
		return rnic.ErrClosed
	}
	a := &attempt{e: e, peer: p, local: local, late: opened, tie: rand.Uint64(), woken: make(chan struct{}, 1), over: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancelCause(e.m.ctx)
	before := e.attempt
	if before != nil {
		before.cancel(errCancelled)
	}
	e.attempt = a
	e.m.wg.Go(func() {
		defer close(a.over)
		if before != nil {
			<-before.over // the queue pair is free
		}
		err := a.run()
		if a.ctx.Err() != nil {
			return
		}
		a.cancel(nil)
		e.m.log.Debug("rendezvous", "qp", e.num, "peer", p.QPN, "error", err)
		done(err)
	})
	return nil
}

// Ready reports what the program says when it modifies the queue pair to RTS: the
// number of the first packet that it will send, how often to send to a receiver that is not ready (7 stands for no
// bound), and how long to try to reach the peer once there is something to send; zero stands for no bound.
func (e *Endpoint) Ready(psn, rnrRetry uint32, budget time.Duration) {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	if a := e.attempt; a != nil {
		a.ready, a.psn, a.rnrRetry, a.budget = true, psn&maxNumber, uint8(min(rnrRetry, MaxRNRRetry)), budget
		a.wake()
	}
}

// Cancel gives up what Connect has begun, and waits until it is over: done is not
// called any more, which must not call Cancel itself. The queue pair may be connected
// then.
func (e *Endpoint) Cancel() {
	e.m.mu.Lock()
	a := e.attempt
	e.m.mu.Unlock()
	a.stop()
}

// stop gives the attempt up, if there is one, and waits until it is over.
func (a *attempt) stop() {
	if a != nil {
		a.cancel(errCancelled)
		<-a.over
	}
}

// Close makes the matchmaker forget the queue pair, with the requests for it, after
// what Cancel does.
func (e *Endpoint) Close() {
	e.m.mu.Lock()
	a := e.attempt
	e.closed = true
	if e.m.endpoints[e.num] == e {
		delete(e.m.endpoints, e.num)
	}
	dropped := e.m.held.remove(func(r *request) bool { return r.To == e.num })
	e.m.mu.Unlock()
	a.stop()
	for _, r := range dropped {
		_ = r.Close() // there is nobody to answer it
	}
}

// A NumberError says that a number can't be that of a queue pair here.
type NumberError struct{ QPN uint32 }

// Error names the number.
func (e *NumberError) Error() string {
	return fmt.Sprintf("rendezvous: 0x%x is no queue pair number, or is in use", e.QPN)
}

// An AddrError says that an address can't be that of one peer.
type AddrError struct{ Addr netip.Addr }

// Error names the address.
func (e *AddrError) Error() string {
	return fmt.Sprintf("rendezvous: GID %v names no host", e.Addr)
}
