//go:build linux

package dropin

import (
	"errors"
	"net/netip"
	"sync"
	"syscall"

	"urnic/internal/dropin/rendezvous"
	"urnic/rdmap"
)

// A meeting is where queue pairs find peers that their programs name in
// ibv_modify_qp, without connection management.
type meeting struct {
	once sync.Once
	m    *rendezvous.Matchmaker
}

// matchmaker returns the process's matchmaker. With the first call, for the first
// queue pair, it takes a slot, as that is in the numbers of all queue pairs. The port
// stays closed until expectCalls.
func (e *Engine) matchmaker() *rendezvous.Matchmaker {
	e.meeting.once.Do(func() {
		e.meeting.m = rendezvous.New(rendezvous.Config{
			Device: e.device, Address: e.settings.rendezvous.address, FirstPort: int(e.settings.port), MPA: e.mpa,
			Local: e.isLocal, Logger: e.log.slog(),
		})
		if e.rendezvousOff() != "" {
			return
		}
		if err := e.meeting.m.Bind(e.ctx); err != nil {
			e.cantBeCalled(err)
		}
		e.numbers.slot.Store(e.meeting.m.Slot())
	})
	return e.meeting.m
}

// rendezvousOff says why queue pairs can't be connected without rdma_cm, or "".
func (e *Engine) rendezvousOff() string {
	switch {
	case e.settings.strict:
		return "iWARP hardware is connected by rdma_cm only (RFC 5044 §7)"
	case e.settings.rendezvous.off:
		return "URNIC_RENDEZVOUS is off"
	}
	return ""
}

// expectCalls opens the port, so that peers can call before this side's program says RTR.
// Programs that have made an rdma_cm id bring their queue pairs to INIT, too: they get the
// port when they name a peer in RTR.
func (e *Engine) expectCalls() {
	if e.usesCM.Load() || e.rendezvousOff() != "" {
		return
	}
	if _, err := e.matchmaker().Listen(); err != nil {
		e.cantBeCalled(err)
	}
}

func (e *Engine) cantBeCalled(err error) {
	level := uint32(logWarning)
	if e.settings.rendezvous.address.IsValid() { // somebody has asked for just that
		level = logError
	}
	e.log.printf(level, "%v: peers without rdma_cm can't connect to this process", err)
}

// close gives up all that is in progress.
func (p *meeting) close() error {
	p.once.Do(func() {}) // from now on, there is nothing to begin
	if p.m == nil {
		return nil
	}
	return p.m.Close()
}

// isLocal reports whether an address is one of this host.
func (e *Engine) isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	for _, g := range e.gids.list() {
		if netip.AddrFrom16(g.Raw).Unmap() == a {
			return true
		}
	}
	return false
}

// meet connects the queue pair with the peer that its program names on the way from
// INIT to RTR, in the background. Without a peer, the connection is for the
// connection manager to make. The caller holds mu.
func (q *qp) meet(mask uint32) Errno {
	const both = qpAV | qpDestQPN
	e := q.engine
	switch {
	case mask&both == 0:
		return ok
	case mask&both != both:
		return e.refuse(syscall.EINVAL, "modify QP 0x%x to RTR: a peer needs both IBV_QP_AV and IBV_QP_DEST_QPN", q.num)
	case e.rendezvousOff() != "":
		return e.refuse(syscall.EOPNOTSUPP, "modify QP 0x%x to RTR: %s", q.num, e.rendezvousOff())
	}
	e.log.warnOnce("ibv_modify_qp names the peer of a queue pair: iWARP hardware is connected by rdma_cm only (RFC 5044 §7)")
	p := rendezvous.Peer{
		QPN: q.attr.DestQPN, PSN: q.attr.RQPSN & 0xffffff, IRD: e.depthWithAck(int(q.attr.MaxDestReadAtomic)),
		Heard: func(retries int) { q.peerRetries.Store(int32(retries)) },
	}
	if q.attr.IsGlobal != 0 {
		table := e.portGIDs(q.ctx.device, q.attr.Port)
		if uint64(q.attr.SGIDIndex) >= uint64(len(table)) {
			return e.refuse(syscall.EINVAL, "modify QP 0x%x to RTR: there is no GID %d", q.num, q.attr.SGIDIndex)
		}
		own := table[q.attr.SGIDIndex].addr()
		p.From, p.Addr = own, netip.AddrFrom16(q.attr.DGID).Unmap()
		if p.Addr.Is6() && p.Addr.IsLinkLocalUnicast() {
			p.Addr = p.Addr.WithZone(own.Zone())
		}
	}
	q.peerRetries.Store(unknownRetries)
	q.missed.Store(false)
	q.neverMet.Store(false)
	q.met.Store(true)
	q.failure.Store(wcRetryExceeded) // if the peer does not come, or goes
	if err := q.endpoint.Connect(p, q.introduced); err != nil {
		q.met.Store(false)
		q.failure.Store(0)
		return e.fail(err)
	}
	return ok
}

// introduced is told what has come of it.
func (q *qp) introduced(err error) {
	if err == nil {
		q.linked()
		return
	}
	q.engine.log.printf(logWarning, "QP 0x%x: %v", q.num, err)
	q.neverMet.Store(true)
	q.failed(wcRetryExceeded)
	q.tell(eventQPFatal)
}

// readyToSend tells the peer's side what the program says in RTS. The caller holds
// mu.
func (q *qp) readyToSend() {
	if q.met.Load() {
		q.endpoint.Ready(q.attr.SQPSN, q.attr.RNRRetry, rendezvous.Budget(q.attr.Timeout, q.attr.RetryCount, q.engine.times.come))
	}
}

// leave gives up what meet has begun, or closes the connection that has come of it.
// What the program has seen complete still gets to the peer. The caller holds no
// lock.
func (q *qp) leave() {
	q.given.Store(true)
	if q.met.Swap(false) {
		q.stopMissing()
		q.endpoint.Cancel()
		q.failure.Store(0)
		q.settle()
		q.fire()
	}
}

// isUnexplained reports whether a connection has ended without a word that would
// blame one request: the peer, or the way to it, has gone.
func isUnexplained(err error) bool {
	var peer *rdmap.PeerError
	var ours *rdmap.Error
	switch {
	case errors.As(err, &peer):
		return false
	case errors.As(err, &ours):
		return ours.Code == rdmap.CodeStreamCatastrophic // the peer has closed while there was work
	}
	return true
}
