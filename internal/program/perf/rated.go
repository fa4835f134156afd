package perf

import (
	"context"
	"time"

	"urnic/rnic"
)

// MaxRate is how many messages a second can be asked for.
const MaxRate = 1e9

// A schedule says when the messages of a round are to be sent, whatever became of those
// before: whoever waits for an answer first sends nothing while the other side is stalled,
// and so leaves out just the messages that would have had to wait (coordinated omission).
type schedule struct {
	start    time.Time
	interval float64 // nanoseconds
}

// at returns the intended start of message n.
func (s *schedule) at(n uint64) time.Time {
	return s.start.Add(time.Duration(float64(n) * s.interval))
}

// messagesIn returns how many messages a round has at a rate: one at least.
func (r *round) messagesIn(rate float64) uint64 {
	if r.Iterations > 0 {
		return r.Iterations
	}
	return max(1, uint64(rate*r.Duration.Seconds()))
}

// doze is how long before a message is due the client stops sleeping: timers are late by
// up to a millisecond.
const doze = 2 * time.Millisecond

// playRated sends messages by a schedule, as many at a time as the depth allows, and takes
// the time of each from its intended start until its answer is here (h), and from when it
// was really sent (service). It polls, whatever the case says, so as not to miss a start.
func (p *player) playRated(ctx context.Context, r round, rate float64, h, service *histogram) (count uint64, err error) {
	p.n, p.came = 0, 0
	count = r.messagesIn(rate)
	sent := make([]time.Time, p.g.Depth) // of those outstanding
	depth := uint64(p.g.Depth)
	plan := schedule{time.Now(), float64(time.Second) / rate}
	for done := uint64(0); done < count; {
		for now := time.Now(); p.n < count && p.n-done < depth && !now.Before(plan.at(p.n)); now = time.Now() {
			sent[p.n%depth] = now
			if err := p.sendRated(); err != nil {
				return done, err
			}
		}
		n := p.cq.Poll(p.wcs)
		if n == 0 {
			if err := p.rest(ctx, plan.at(p.n), p.n == done); err != nil {
				return done, err
			}
			continue
		}
		answers, err := p.answers(p.wcs[:n])
		if err != nil {
			return done, err
		}
		now := time.Now()
		for range answers {
			h.record(now.Sub(plan.at(done)))
			service.record(now.Sub(sent[done%depth]))
			done++
		}
	}
	if err := p.tell(noteEnd, count, idEnd); err != nil {
		return count, err
	}
	return count, p.acknowledged(ctx, count)
}

// sendRated sends the next message: one that fetches asks for a completion, which is its
// answer.
func (p *player) sendRated() error {
	if p.g.pingPong() {
		return p.send()
	}
	p.aim(&p.loud[0], p.n)
	p.n++
	return p.qp.PostSend(p.loud[:]...)
}

// rest waits for a moment, or sleeps if nothing is outstanding and the next message is not
// due for long.
func (p *player) rest(ctx context.Context, next time.Time, idle bool) error {
	d := time.Until(next) - doze
	if !idle || d <= 0 {
		return p.spin.pause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answers counts the answers among completions.
func (p *player) answers(wcs []rnic.WC) (n int, err error) {
	for i := range wcs {
		wc := &wcs[i]
		switch {
		case wc.Status != rnic.StatusSuccess:
			return n, p.why(wc)
		case wc.Op == rnic.OpRecv || wc.Op == rnic.OpRecvImmediate:
			kind, _, err := p.taken(wc)
			if err == nil && kind != noteData {
				err = errProtocol
			}
			if err != nil {
				return n, err
			}
			n++
		case !p.g.pingPong() && wc.Op != rnic.OpImmediate: // which is of the round before
			if err := p.fetched(); err != nil {
				return n, err
			}
			n++
		}
	}
	if p.owed > 0 {
		return n, p.end.repost()
	}
	return n, nil
}

// taken looks at what has taken a receive.
func (p *player) taken(wc *rnic.WC) (kind byte, n uint64, err error) {
	place := p.take()
	if wc.Op == rnic.OpRecvImmediate {
		kind, n = unpackNote(wc.Immediate)
	}
	if kind != noteData {
		return kind, n, nil
	}
	if p.g.Op != OpSend {
		place = p.g.places.of(p.came)
	} else if p.g.places.count == 1 { // the next one may be written there just now
		p.came, p.place = p.came+1, place
		return kind, n, nil
	}
	return kind, n, p.arrive(place)
}

// acknowledged waits until the other side has said that all is here.
func (p *player) acknowledged(ctx context.Context, count uint64) error {
	for {
		wcs, err := p.poll(ctx, p.spin)
		if err != nil {
			return err
		}
		for i := range wcs {
			wc := &wcs[i]
			if wc.Status != rnic.StatusSuccess {
				return p.why(wc)
			}
			if wc.Op != rnic.OpRecvImmediate {
				continue
			}
			kind, n, err := p.taken(wc)
			if err == nil {
				err = p.end.repost()
			}
			if err == nil && (kind != noteAck || n != count) {
				err = errProtocol
			}
			return err
		}
	}
}

// answerAll answers the messages of a schedule, of which several may be outstanding.
func (p *player) answerAll(ctx context.Context) error {
	for {
		wcs, err := p.poll(ctx, p.spin)
		if err != nil {
			return err
		}
		var last uint64
		ended := false
		for i := range wcs {
			wc := &wcs[i]
			if wc.Status != rnic.StatusSuccess {
				return p.why(wc)
			}
			if wc.Op != rnic.OpRecv && wc.Op != rnic.OpRecvImmediate {
				continue
			}
			kind, n, err := p.taken(wc)
			switch {
			case err != nil:
				return err
			case kind == noteData:
				err = p.send()
			case kind == noteEnd:
				ended, last = true, n
			default:
				err = errProtocol
			}
			if err != nil {
				return err
			}
		}
		if p.owed > 0 {
			if err := p.end.repost(); err != nil {
				return err
			}
		}
		if ended {
			return p.tell(noteAck, last, 0)
		}
	}
}
