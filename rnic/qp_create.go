package rnic

import (
	"fmt"
	"time"

	"urnic/internal/door/policy"
	"urnic/pd"
	"urnic/rnic/internal/life"
)

// CreateQP returns a new queue pair, in state Idle. It returns an *OpError if an
// attribute is out of range or exceeds a quota.
func (p *PD) CreateQP(attr QPAttr) (*QP, error) {
	const op = "create QP"
	if !p.made() {
		return nil, notMade(op, "PD")
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail(op, err)
	}
	defer p.dev.end()
	attr.defaults(&p.dev.cfg)
	if err := attr.check(p); err != nil {
		return nil, p.fail(op, err)
	}
	if err := attr.reserve(p); err != nil {
		return nil, p.fail(op, err)
	}
	num := attr.num
	if attr.num = 0; num == 0 { // Attr makes no second queue pair of that number
		num = p.dev.lastNum.Add(1)
	}
	q := &QP{pd: p, num: num, attr: attr, sendCQ: attr.SendCQ, recvCQ: attr.RecvCQ, srq: attr.SRQ, life: life.New(attr.MaxSendWR)}
	q.stream.Store(p.dev.lastLink.Add(1))
	q.rq.ring.Init(attr.MaxRecvWR)
	q.follow(attrPolicy{orStrict(attr.policy, p.dev.cfg.policy), &q.attr})
	q.sendCQ.users.Add(1)
	q.recvCQ.users.Add(1)
	if err := q.join(); err != nil {
		q.release()
		return nil, p.fail(op, err)
	}
	p.dev.put(p.dev.qps, q)
	return q, nil
}

func (a *QPAttr) defaults(c *Config) {
	for _, d := range []struct {
		v         *int
		def, most int
	}{
		{&a.MaxSendWR, DefaultWR, c.MaxWR},
		{&a.MaxRecvWR, DefaultWR, c.MaxWR},
		{&a.MaxSGE, DefaultSGE, c.MaxSGE},
		{&a.MaxInline, DefaultInline, c.MaxInline},
	} {
		if *d.v == 0 {
			*d.v = min(d.def, d.most)
		}
	}
	if a.SRQ != nil {
		a.MaxRecvWR = 0
	}
}

func (a *QPAttr) check(p *PD) error {
	c := &p.dev.cfg
	for _, r := range []struct {
		name     string
		v, limit int
	}{
		{"MaxSendWR", a.MaxSendWR, c.MaxWR},
		{"MaxRecvWR", a.MaxRecvWR, c.MaxWR},
		{"MaxSGE", a.MaxSGE, c.MaxSGE},
		{"MaxInline", a.MaxInline, c.MaxInline},
	} {
		if r.v < 0 || r.v > r.limit {
			return fmt.Errorf("%s %d: say 0 to %d", r.name, r.v, r.limit)
		}
	}
	if a.RecvWait < 0 {
		return fmt.Errorf("RecvWait %v: say how long to wait, or 0", a.RecvWait)
	}
	for _, c := range []*CQ{a.SendCQ, a.RecvCQ} {
		switch {
		case c == nil:
			return fmt.Errorf("a completion queue is missing: give SendCQ and RecvCQ")
		case !c.made():
			return fmt.Errorf("a completion queue: %w", ErrNotMade)
		case c.dev != p.dev:
			return fmt.Errorf("CQ %d: %w", c.num, ErrForeign)
		case c.pd != nil && c.pd != p: // "MUST NOT enable sharing a CQ across ULPs" without trust: RFC 5040 §8.1.1 rule 9
			return fmt.Errorf("CQ %d is reserved for PD %d", c.num, c.pd.Num())
		}
	}
	switch {
	case a.SRQ == nil:
	case !a.SRQ.made():
		return fmt.Errorf("the shared receive queue: %w", ErrNotMade)
	case a.SRQ.pd != p:
		return fmt.Errorf("SRQ %d belongs to another protection domain", a.SRQ.num)
	}
	return nil
}

// reserve reserves what the queue pair will hold (RFC 5040 §8.1.2 rule 2).
func (a *QPAttr) reserve(p *PD) error {
	taken := 0
	amounts := a.amounts()
	for i, r := range amounts {
		if err := p.domain.Reserve(r.resource, r.n); err != nil {
			for _, back := range amounts[:taken] {
				p.domain.Release(back.resource, back.n)
			}
			return err
		}
		taken = i + 1
	}
	if a.SRQ == nil {
		return nil
	}
	if err := a.SRQ.use(); err != nil {
		for _, back := range amounts {
			p.domain.Release(back.resource, back.n)
		}
		return fmt.Errorf("SRQ %d: %w", a.SRQ.num, err)
	}
	return nil
}

func (a *QPAttr) amounts() []amount {
	return []amount{{pd.QueuePairs, 1}, {pd.SendWRs, uint64(a.MaxSendWR)}, {pd.RecvWRs, uint64(a.MaxRecvWR)}}
}

func (q *QP) release() {
	for _, r := range q.attr.amounts() {
		q.pd.domain.Release(r.resource, r.n)
	}
	if q.srq != nil {
		q.srq.unuse()
	}
	q.sendCQ.users.Add(-1)
	q.recvCQ.users.Add(-1)
}

// follow asks the policy what is asked only once.
func (q *QP) follow(p policy.Policy) {
	q.policy, q.splitReads = p, p.Allows(policy.SplitReads)
	q.life.Follow(p)
	q.rq.ring.Follow(p)
	q.rq.pairing.Follow(p)
}

// attrPolicy is the policy of a queue pair, with what its public attributes ask for.
type attrPolicy struct {
	policy.Policy
	attr *QPAttr
}

// RNR implements policy.Policy.
func (a attrPolicy) RNR() time.Duration {
	if a.attr.RecvWait > 0 {
		return a.attr.RecvWait
	}
	return a.Policy.RNR()
}

// Allows implements policy.Policy.
func (a attrPolicy) Allows(d policy.Departure) bool {
	if a.attr.SplitReads {
		d &^= policy.SplitReads
	}
	return d == 0 || a.Policy.Allows(d)
}
