package pd

import (
	"sync"
	"sync/atomic"
)

// An ID names a protection domain within its Manager. It is never reused, and
// no message can carry one, so a peer can't name a domain (RFC 5041 §8.2). No
// domain has ID 0.
type ID uint32

// A Manager is the privileged resource manager of one device (RFC 5042 §2.2):
// all reservations of its domains go through it.
type Manager struct {
	device ledger
	domain Limits // of each single domain
	lastID atomic.Uint32
}

// NewManager returns a Manager with these limits for the device as a whole and
// for each of its domains. Zeros in device stand for DefaultLimits, zeros in
// domain for the device's limit.
func NewManager(device, domain Limits) *Manager {
	device = device.or(DefaultLimits())
	return &Manager{device: ledger{limits: device}, domain: domain.or(device)}
}

// Limits returns the limits of the device and those of each single domain.
func (m *Manager) Limits() (device, domain Limits) { return m.device.limits, m.domain }

// Held returns how much of r the device holds.
func (m *Manager) Held(r Resource) uint64 { return m.device.holds(r) }

// Reserve reserves n of r for the device itself, not for a domain. It returns a
// *LimitError if the device would hold too much.
func (m *Manager) Reserve(r Resource, n uint64) error { return m.device.reserve(0, r, n) }

// Release releases n of r that were reserved.
func (m *Manager) Release(r Resource, n uint64) { m.device.release(r, n) }

// Exceeds reports whether the device holds more of r than its limit, because of
// Charge.
func (m *Manager) Exceeds(r Resource) bool { return m.device.exceeds(r) }

// NewDomain returns a new protection domain. It returns a *LimitError if there
// are too many.
func (m *Manager) NewDomain() (*Domain, error) {
	if err := m.Reserve(Domains, 1); err != nil {
		return nil, err
	}
	return &Domain{id: ID(m.lastID.Add(1)), manager: m, own: ledger{limits: m.domain}}, nil
}

// A Domain is a protection domain, with an account of what is held on its
// behalf.
type Domain struct {
	id      ID
	manager *Manager
	own     ledger

	mu     sync.RWMutex // held for writing only by Close, so that nothing is reserved behind it
	closed bool
}

// ID returns the domain's ID.
func (d *Domain) ID() ID { return d.id }

// Held returns how much of r the domain holds.
func (d *Domain) Held(r Resource) uint64 { return d.own.holds(r) }

// Reserve reserves n of r for the domain. It returns a *LimitError if the
// domain or the device would hold too much, a *ClosedError after Close.
func (d *Domain) Reserve(r Resource, n uint64) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return &ClosedError{d.id}
	}
	if err := d.own.reserve(d.id, r, n); err != nil {
		return err
	}
	if err := d.manager.Reserve(r, n); err != nil {
		d.own.release(r, n)
		return err
	}
	return nil
}

// Charge adds n of r to what the domain holds, regardless of limits: it is for what
// already exists and can't be refused. It reports whether the domain and the device
// are within their limits. If they are not, the caller must make sure that something
// is released.
func (d *Domain) Charge(r Resource, n uint64) bool {
	own, device := d.own.charge(r, n), d.manager.device.charge(r, n)
	return own && device
}

// Exceeds reports whether the domain holds more of r than its limit, because of
// Charge.
func (d *Domain) Exceeds(r Resource) bool { return d.own.exceeds(r) }

// Release releases n of r that were reserved or charged.
func (d *Domain) Release(r Resource, n uint64) {
	d.manager.Release(r, n)
	d.own.release(r, n)
}

// Close ends the domain. It returns a *BusyError while something is held on
// its behalf, and nil if it is closed already.
func (d *Domain) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	for r := range Resource(NumResources) {
		if held := d.Held(r); held != 0 {
			return &BusyError{d.id, r, held}
		}
	}
	d.closed = true
	d.manager.Release(Domains, 1)
	return nil
}

// A ledger counts what is held against limits. For a number that is no
// Resource, nothing is held, and nothing can be reserved.
type ledger struct {
	limits Limits
	held   [NumResources]atomic.Uint64
}

func (l *ledger) holds(r Resource) uint64 {
	if !r.known() {
		return 0
	}
	return l.held[r].Load()
}

func (l *ledger) reserve(id ID, r Resource, n uint64) error {
	if !r.known() {
		return &LimitError{Resource: r, Domain: id, Wanted: n}
	}
	for {
		held := l.held[r].Load()
		if n > l.limits[r] || held > l.limits[r]-n {
			return &LimitError{Resource: r, Domain: id, Limit: l.limits[r], Held: held, Wanted: n}
		}
		if l.held[r].CompareAndSwap(held, held+n) {
			return nil
		}
	}
}

func (l *ledger) charge(r Resource, n uint64) bool {
	return r.known() && l.held[r].Add(n) <= l.limits[r]
}

func (l *ledger) exceeds(r Resource) bool { return r.known() && l.holds(r) > l.limits[r] }

func (l *ledger) release(r Resource, n uint64) {
	if r.known() {
		l.held[r].Add(-n)
	}
}
