package rnic

import (
	"fmt"
	"slices"
	"time"

	"urnic/pd"
)

// Streams keep buffers while they wait for their peers: for the rest of an FPDU, or
// until the peer has taken what was posted. These buffers are charged to
// pd.StreamOctets. When that exceeds its limit, streams end whose peers have made no
// progress for the time of patience; at twice the limit, for that of impatience.
// Those that have stalled longest end first.
const (
	patience   = 5 * time.Second
	impatience = time.Second
)

// keeps notes how many more bytes of buffers the stream keeps, or fewer.
func (l *link) keeps(octets int) {
	switch p := l.qp.pd; {
	case octets < 0:
		p.domain.Release(pd.StreamOctets, uint64(-octets))
	case !p.domain.Charge(pd.StreamOctets, uint64(octets)):
		p.dev.relieve()
	}
}

// relieve makes a goroutine check the limits of stream buffers. If one is already
// doing so, it checks again.
func (d *Device) relieve() {
	if d.relief.Add(1) == 1 {
		d.wg.Go(d.endStalled) // a link has charged, for which the device waits as well
	}
}

// endStalled ends stalled streams until no limit is exceeded. It checks at least once
// in the time of impatience.
func (d *Device) endStalled() {
	t := time.NewTimer(0)
	defer t.Stop()
	for d.ctx.Err() == nil {
		asked := d.relief.Load()
		stalled := d.stalled()
		if stalled == nil {
			if d.relief.CompareAndSwap(asked, 0) {
				return
			}
			continue // a check was requested since then
		}
		wait := impatience
		for _, s := range stalled {
			most, ok := s.link.mayStall()
			if !ok {
				continue
			}
			if left := most - time.Since(s.since); left > 0 {
				wait = min(wait, left)
				break // the others have stalled for a shorter time
			}
			s.link.lose(fmt.Errorf("%w, %v: see Limits[pd.StreamOctets]", ErrStalled, time.Since(s.since).Round(time.Millisecond)))
			<-s.link.done
		}
		t.Reset(wait)
		select {
		case <-t.C:
		case <-d.ctx.Done():
		}
	}
}

// A stall is a link that keeps buffers for its peer.
type stall struct {
	link  *link
	since time.Time
}

// stalled returns the links that stall, those that have stalled longest first; nil
// if no limit is exceeded.
func (d *Device) stalled() []stall {
	all, exceeded := []stall{}, d.manager.Exceeds(pd.StreamOctets)
	for _, q := range d.queuePairs() {
		exceeded = exceeded || q.pd.domain.Exceeds(pd.StreamOctets)
		if l := q.lastLink(); l != nil && !l.isDone() {
			if since := l.conn.Stalled(); !since.IsZero() {
				all = append(all, stall{l, since})
			}
		}
	}
	if !exceeded {
		return nil
	}
	slices.SortFunc(all, func(a, b stall) int { return a.since.Compare(b.since) })
	return all
}

// mayStall returns how long this link may stall, if one of its limits is exceeded.
func (l *link) mayStall() (time.Duration, bool) {
	device, domain := l.qp.pd.dev.manager.Limits()
	over := max(
		excess(l.qp.pd.dev.manager.Held(pd.StreamOctets), device[pd.StreamOctets]),
		excess(l.qp.pd.domain.Held(pd.StreamOctets), domain[pd.StreamOctets]),
	)
	return patience - time.Duration(over*float64(patience-impatience)), over > 0
}

// excess returns by which fraction a limit is exceeded, at most 1.
func excess(held, limit uint64) float64 {
	if held <= limit {
		return 0
	}
	return min(float64(held-limit)/float64(limit), 1)
}
