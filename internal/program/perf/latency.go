package perf

import (
	"context"
	"time"

	"urnic/rnic"
)

// signalPing is every how many messages of a ping-pong one asks for a
// completion, so that its place in the send queue is known to be free.
const signalPing = 32

// A player is one side of a latency test, in which one message is outstanding at
// a time.
type player struct {
	*end
	quiet, loud [1]rnic.SendWR
	n           uint64 // messages that were sent
	came        uint64 // messages that have arrived here
	place       int    // of the last one
	owes        bool   // a receive is to be posted
	spin        *spinner
}

func newPlayer(g *group) *player {
	p := &player{end: g.ends[0], spin: newSpinner()}
	p.quiet[0], p.loud[0] = p.request(rnic.FlagUnsignaled), p.request(0)
	return p
}

// play takes the times of round trips: of a message there and the answer, or of
// a Read or an atomic.
func (p *player) play(ctx context.Context, r round, h *histogram) (count uint64, err error) {
	p.n, p.came = 0, 0
	start := time.Now()
	last, deadline := start, start.Add(r.Duration)
	for r.Iterations == 0 || count < r.Iterations {
		if err := p.trip(ctx); err != nil {
			return count, err
		}
		now := time.Now()
		h.record(now.Sub(last))
		last = now
		count++
		if r.Iterations == 0 && !now.Before(deadline) {
			break
		}
	}
	if err := p.tell(noteEnd, count, idEnd); err != nil {
		return count, err
	}
	kind, n, err := p.next(ctx)
	if err == nil && (kind != noteAck || n != count) {
		err = errProtocol
	}
	return count, err
}

// trip makes one round trip.
func (p *player) trip(ctx context.Context) error {
	if !p.g.pingPong() {
		p.aim(&p.loud[0], p.n)
		p.n++
		if err := p.qp.PostSend(p.loud[:]...); err != nil {
			return err
		}
		for {
			wcs, err := p.poll(ctx, p.spin)
			if err != nil {
				return err
			}
			for i := range wcs {
				if wcs[i].Status != rnic.StatusSuccess {
					return p.why(&wcs[i])
				}
				if wcs[i].Op != rnic.OpImmediate { // of the round before
					return p.fetched()
				}
			}
		}
	}
	if err := p.send(); err != nil {
		return err
	}
	kind, _, err := p.next(ctx)
	if err == nil && kind != noteData {
		err = errProtocol
	}
	return err
}

func (p *player) send() error {
	wrs := p.quiet[:]
	if (p.n+1)%signalPing == 0 {
		wrs = p.loud[:]
	}
	p.aim(&wrs[0], p.n)
	p.n++
	return p.qp.PostSend(wrs...)
}

// arrive counts the next message, if it is where it has to arrive.
func (p *player) arrive(place int) error {
	p.place = place
	if !p.g.arrived(p.i, place, p.came) {
		return &MissingError{QP: p.i, Message: p.came, Came: p.came, Of: p.came + 1}
	}
	p.came++
	return nil
}

// fetched counts a message that this side has fetched; atomics fetch none.
func (p *player) fetched() error {
	if p.g.Op == OpAtomic {
		return nil
	}
	return p.arrive(p.g.places.of(p.came))
}

// next returns the next message of the other side. Its receive is posted anew when
// the answer is on its way; there are others for what comes until then.
func (p *player) next(ctx context.Context) (kind byte, n uint64, err error) {
	if p.owes {
		if err := p.repost(); err != nil {
			return 0, 0, err
		}
	}
	for {
		wcs, err := p.poll(ctx, p.spin)
		if err != nil {
			return 0, 0, err
		}
		there := false
		for i := range wcs {
			wc := &wcs[i]
			if wc.Status != rnic.StatusSuccess {
				return 0, 0, p.why(wc)
			}
			switch wc.Op {
			case rnic.OpRecv:
				there = true
			case rnic.OpRecvImmediate:
				there = true
				kind, n = unpackNote(wc.Immediate)
			default: // something of this side is out
			}
		}
		if there && kind == noteData {
			p.owes = true
			return kind, n, p.arrive(0)
		}
		if there {
			return kind, n, p.repost()
		}
	}
}

// repost posts the receive of the last message anew.
func (p *player) repost() error {
	p.owes = false
	return p.qp.PostRecv(p.recvs[:1]...)
}

// answer sends each message back until the other side says that it was the
// last.
func (p *player) answer(ctx context.Context) error {
	p.n, p.came = 0, 0
	if p.g.Rated {
		return p.answerAll(ctx)
	}
	for {
		kind, n, err := p.next(ctx)
		switch {
		case err != nil:
			return err
		case kind == noteData:
			err = p.send()
		case kind == noteEnd:
			return p.tell(noteAck, n, 0)
		default:
			err = errProtocol
		}
		if err != nil {
			return err
		}
	}
}
