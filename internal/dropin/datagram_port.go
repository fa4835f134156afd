//go:build linux

package dropin

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"urnic/internal/capture"
	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/datagram/carrier"
	"urnic/internal/dropin/rendezvous"
)

// A datagramPort is the UDP port of the process, from its first queue pair on that has no
// reliable connection.
type datagramPort struct {
	port atomic.Pointer[carrier.Port]

	recordOnce sync.Once
	record     *capture.Writer // or nil: see recorder

	mu     sync.Mutex
	closed bool
	pairs  map[*datagramQP]bool

	retrying sync.Mutex // of waiting; taken before mu
	waiting  []*datagramQP
}

// noDatagrams says why there are no queue pairs of the types UD and UC, or "".
func (e *Engine) noDatagrams() string {
	if e.settings.strict || !e.settings.ethernet {
		return "the only type is IBV_QPT_RC: iWARP has no datagrams, no unreliable connections and no XRC"
	}
	if off := e.rendezvousOff(); off != "" {
		return off + ": there is no UDP port for datagrams"
	}
	return ""
}

// mayHaveDatagrams says whether a queue pair without a reliable connection can be made.
func (e *Engine) mayHaveDatagrams(init *QPInit) Errno {
	switch {
	case init.Type != qptUD && init.Type != qptUC:
		return e.refuse(syscall.EOPNOTSUPP, "create QP: the type must be one of IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD")
	case e.noDatagrams() != "":
		return e.refuse(syscall.EOPNOTSUPP, "create QP: %s", e.noDatagrams())
	}
	return e.openDatagrams()
}

// openDatagrams opens the port, if it is not open.
func (e *Engine) openDatagrams() Errno {
	d := &e.datagrams
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.port.Load() != nil {
		return ok
	}
	if d.closed {
		return syscall.ENODEV
	}
	e.matchmaker() // takes the slot
	slot := e.numbers.slot.Load()
	if slot == 0 {
		return e.refuse(syscall.EADDRINUSE, "create QP: datagrams: %v", rendezvous.ErrNoSlot)
	}
	p, err := carrier.Open(carrier.Config{
		Address: e.settings.rendezvous.address, FirstPort: int(e.settings.port), Slot: slot, SlotOf: rendezvous.SlotOf,
		Find: e.findDatagram, Retry: e.retryDatagrams, Record: e.recordDatagrams(),
		Local: func(a netip.Addr) bool { return e.isLocal(a.WithZone("")) },
	})
	if err != nil {
		e.log.printf(logError, "create QP: datagrams: %v: set URNIC_RENDEZVOUS_PORT", err)
		return errno(err)
	}
	d.pairs = make(map[*datagramQP]bool)
	d.port.Store(p)
	return ok
}

// recorder returns what records datagrams, or nil if there is no recording. It has a section of the file of its
// own, as the device's is the device's.
func (e *Engine) recorder() *capture.Writer {
	d := &e.datagrams
	d.recordOnce.Do(func() {
		if e.record == nil {
			return
		}
		w, err := capture.NewWriter(e.record)
		if err != nil {
			e.log.printf(logError, "%v", err)
			return
		}
		d.record = w
	})
	return d.record
}

// recordDatagrams returns a function that records datagrams, or nil.
func (e *Engine) recordDatagrams() func(from, to netip.AddrPort, b []byte) {
	w := e.recorder()
	if w == nil {
		return nil
	}
	return func(from, to netip.AddrPort, b []byte) { w.Datagram(from, to, b) }
}

func (d *datagramPort) close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	var err error
	if p := d.port.Load(); p != nil {
		err = p.Close()
	}
	d.recordOnce.Do(func() {}) // nothing begins to record any more
	if d.record != nil {
		err = errors.Join(err, d.record.Close())
	}
	return err
}

func (e *Engine) findDatagram(qpn uint32) carrier.QueuePair {
	if q := e.numbers.get(qpn); q != nil && q.datagram != nil {
		return q.datagram
	}
	return nil
}

// retryDatagrams has all queue pairs send what has waited.
func (e *Engine) retryDatagrams() {
	d := &e.datagrams
	d.retrying.Lock()
	defer d.retrying.Unlock()
	d.mu.Lock()
	for q := range d.pairs {
		if q.waits.Load() {
			d.waiting = append(d.waiting, q)
		}
	}
	d.mu.Unlock()
	for _, q := range d.waiting {
		q.sendMu.Lock()
		q.push()
		q.sendMu.Unlock()
	}
	clear(d.waiting)
	d.waiting = d.waiting[:0]
}

// qkeyViolations returns how many datagrams had a wrong Q_Key.
func (e *Engine) qkeyViolations() uint32 {
	p := e.datagrams.port.Load()
	if p == nil {
		return 0
	}
	return uint32(min(p.Dropped()[datagram.WrongKey], 1<<32-1))
}
