package rnic

import (
	"fmt"

	"urnic/pd"
)

// A PD is a protection domain: queue pairs, memory and shared receive queues
// work together only within one domain.
type PD struct {
	dev    *Device
	domain *pd.Domain
}

// AllocPD returns a new protection domain. It returns an *OpError that wraps a
// *pd.LimitError if there are too many.
func (d *Device) AllocPD() (*PD, error) {
	const op = "allocate PD"
	if !d.made() {
		return nil, notMade(op, "device")
	}
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.end()
	domain, err := d.manager.NewDomain()
	if err != nil {
		return nil, d.fail(op, err)
	}
	p := &PD{dev: d, domain: domain}
	d.put(d.pds, p)
	return p, nil
}

// made reports whether AllocPD has made the domain.
func (p *PD) made() bool { return p != nil && p.dev != nil }

// Device returns the device that the domain belongs to.
func (p *PD) Device() *Device {
	if !p.made() {
		return nil
	}
	return p.dev
}

// Num returns the number of the domain.
func (p *PD) Num() uint32 {
	if !p.made() {
		return 0
	}
	return uint32(p.domain.ID())
}

func (p *PD) fail(op string, err error) error {
	return &OpError{Op: op, Object: fmt.Sprintf("PD %d", p.Num()), Err: ofDomain(err)}
}

// Close releases the domain. It returns an *OpError that wraps ErrBusy and a
// *pd.BusyError while the domain has objects.
func (p *PD) Close() error {
	if !p.made() {
		return notMade("close", "PD")
	}
	if err := p.domain.Close(); err != nil {
		return p.fail("close", err)
	}
	p.dev.remove(p.dev.pds, p)
	return nil
}
