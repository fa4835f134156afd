package rnic

import (
	"fmt"
	"slices"
	"time"

	"urnic/mpa"
	"urnic/pd"
)

// Streams keep buffers while they wait for their peers: for the rest of an FPDU, or
// until what was posted has been taken. What they keep is charged to pd.StreamOctets.
// When that exceeds its limit, those end whose peers have gone on with nothing for
// patience, who have for longest first; at twice the limit, for impatience.
const (
	patience   = 5 * time.Second
	impatience = time.Second
)

// keeps notes that the stream keeps so many more octets of buffers, or fewer.
func (l *link) keeps(octets int) {
	switch p := l.qp.pd; {
	case octets < 0:
		p.domain.Release(pd.StreamOctets, uint64(-octets))
	case !p.domain.Charge(pd.StreamOctets, uint64(octets)):
		p.dev.relieve()
	}
}

// relieve has a goroutine look after the limits of stream buffers. One that does so
// already looks again.
func (d *Device) relieve() {
	if d.relief.Add(1) == 1 {
		d.wg.Go(d.endStalled) // a link has charged, for which the device waits as well
	}
}

// endStalled ends streams that stall until the limits are kept. It looks at least once
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
			continue // somebody has asked since then
		}
		wait := impatience
		for _, s := range stalled {
			most, ok := s.link.mayStall()
			if !ok {
				continue
			}
			if left := most - time.Since(s.since); left > 0 {
				wait = min(wait, left)
				break // the others stall for a shorter time
			}
			s.link.reset(fmt.Errorf("%w, %v: see Limits[pd.StreamOctets]", ErrStalled, time.Since(s.since).Round(time.Millisecond)), EventLost)
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

// stalled returns the links that stall, those first that do so for longest; nil if
// all limits are kept.
func (d *Device) stalled() []stall {
	all, exceeded := []stall{}, d.manager.Exceeds(pd.StreamOctets)
	for _, q := range d.list() {
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

// mayStall returns how long a stall of this link may last, if a limit is exceeded by
// which the link is bound.
func (l *link) mayStall() (time.Duration, bool) {
	device, domain := l.qp.pd.dev.manager.Limits()
	over := max(
		excess(l.qp.pd.dev.manager.Held(pd.StreamOctets), device[pd.StreamOctets]),
		excess(l.qp.pd.domain.Held(pd.StreamOctets), domain[pd.StreamOctets]),
	)
	return patience - time.Duration(over*float64(patience-impatience)), over > 0
}

// excess returns by what part of a limit it is exceeded: 1, if by all of it or more.
func excess(held, limit uint64) float64 {
	if held <= limit {
		return 0
	}
	return min(float64(held-limit)/float64(limit), 1)
}

// StreamBuffers is how many octets of buffers one stream keeps at most while it waits
// for its peer.
const StreamBuffers = mpa.MaxBuffers
