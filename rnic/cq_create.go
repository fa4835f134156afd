package rnic

import (
	"fmt"

	"urnic/internal/door/policy"
	"urnic/pd"
)

// CQAttr has the attributes of a completion queue.
type CQAttr struct {
	// Entries is how many completions the queue holds; 0 stands for 256. It
	// must have a slot for each completion of its work queues that is not yet
	// polled. A queue that overflows fails. The queue pairs that use it fail
	// too, connected or not, and can't connect again.
	Entries int
	Channel *CompletionChannel // notified when the queue fires, if not nil
	// PD, if not nil, reserves the queue for the queue pairs of this domain,
	// and counts it against the domain's quotas. Else any queue pair of the
	// device may use it.
	PD *PD

	policy policy.Policy // nil stands for the device's
}

// CreateCQ returns a new completion queue. It returns an *OpError if the size
// is out of range or exceeds a quota.
func (d *Device) CreateCQ(attr CQAttr) (*CQ, error) {
	const op = "create CQ"
	if !d.made() {
		return nil, notMade(op, "device")
	}
	if attr.Entries == 0 {
		attr.Entries = min(256, d.cfg.MaxCQE)
	}
	switch {
	case attr.Entries < 1 || attr.Entries > d.cfg.MaxCQE:
		return nil, d.fail(op, fmt.Errorf("%d entries: say 1 to %d", attr.Entries, d.cfg.MaxCQE))
	case attr.Channel != nil && !attr.Channel.made():
		return nil, d.fail(op, fmt.Errorf("the completion channel: %w", ErrNotMade))
	case attr.PD != nil && !attr.PD.made():
		return nil, d.fail(op, fmt.Errorf("the PD: %w", ErrNotMade))
	case attr.Channel != nil && attr.Channel.dev != d, attr.PD != nil && attr.PD.dev != d:
		return nil, d.fail(op, ErrForeign)
	case attr.Channel != nil && attr.Channel.isClosed():
		return nil, d.fail(op, fmt.Errorf("the completion channel: %w", ErrClosed))
	}
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.end()
	var q quota = d.manager
	if attr.PD != nil {
		q = attr.PD.domain
	}
	// "The Privileged Resource Manager MUST control the allocation of CQ
	// entries": RFC 5040 §8.1.2 rule 5.
	if err := q.Reserve(pd.CompletionQueues, 1); err != nil {
		return nil, d.fail(op, ofDomain(err))
	}
	if err := q.Reserve(pd.CQEntries, uint64(attr.Entries)); err != nil {
		q.Release(pd.CompletionQueues, 1)
		return nil, d.fail(op, ofDomain(err))
	}
	c := &CQ{
		dev: d, num: d.lastNum.Add(1), pd: attr.PD, quota: q, fired: make(signal, 1),
	}
	if attr.Channel != nil {
		c.channel = attr.Channel
	}
	c.overflowed = func() { d.overflowed(c) }
	by := orStrict(attr.policy, d.cfg.policy)
	c.fireForQueued, c.notifyEach = by.Allows(policy.FireForQueued), by.Allows(policy.NotifyEach)
	c.queue.Init(attr.Entries)
	c.programs.Init(&c.mu)
	d.put(d.cqs, c)
	return c, nil
}
