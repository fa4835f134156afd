package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"urnic/internal/door"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
)

var (
	errCancelled = errors.New("the queue pair was modified or destroyed")
	errOvertaken = errors.New("a request of the peer came first")
	errOverdue   = errors.New("the time that the program allows is over")
)

// An attempt is a queue pair on its way to its peer, from RTR to the connection. It
// has one goroutine.
type attempt struct {
	e      *Endpoint
	peer   Peer
	tie    uint64
	ctx    context.Context
	cancel context.CancelCauseFunc
	woken  chan struct{} // has something if there is something new to look at
	over   chan struct{} // closed when it is over
	local  bool          // the peer is on this host
	late   bool          // the peer may have called in vain, as the port was closed

	// Under the matchmaker's mu.
	ready    bool
	psn      uint32
	rnrRetry uint8
	budget   time.Duration
	guesses  int  // requests with a wrong PSN
	told     bool // the log has been notified of a stranger

	// The goroutine's own.
	call  *call     // that is in progress, or nil
	early bool      // the peer wants the PSN, which comes with RTS, before it is called again
	asked bool      // somebody has asked without a PSN, so that the peer was called at once
	since time.Time // when there was first something to send, if there was
	last  error     // why the last try came to nothing, if there was one
	pause time.Duration
	begin *time.Timer // of the next call
}

// wake makes the attempt look again.
func (a *attempt) wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// run connects the queue pair: it answers the peer's request, or calls the peer,
// whichever comes first. The one that calls never goes while the other one may be
// about to answer, so that both think the same of the connection.
func (a *attempt) run() error {
	if a.isSelf() {
		return a.reflect()
	}
	a.pause = firstPause
	a.begin = time.NewTimer(patience)
	defer a.begin.Stop()
	if a.goesFirst() || a.late {
		a.begin.Reset(grace)
	}
	// The answer reports what the program says in RTS, if it does so now.
	answer := time.NewTimer(grace)
	defer answer.Stop()
	mayAnswer := false
	var clock <-chan time.Time // ticks once the time that the program gives may run
	for {
		if r := a.takeIf(mayAnswer); r != nil {
			if over, err := a.answer(r); over {
				return err
			}
			continue
		}
		select {
		case <-a.woken:
			ready, tick := a.said()
			if ready && a.call == nil && (a.last == nil && a.goesFirst() || a.early) {
				a.early = false
				a.begin.Reset(0) // all is known that the Request is to say
			}
			if ready && tick > 0 && clock == nil {
				ticker := time.NewTicker(tick)
				defer ticker.Stop()
				clock = ticker.C
			}
		case <-answer.C:
			mayAnswer = true
		case <-clock:
			if spent, overdue := a.overdue(); overdue {
				if over, err := a.hangUp(errOverdue); over {
					return err
				}
				return &UnreachableError{QPN: a.e.num, Peer: a.peer, Spent: spent, Err: a.last}
			}
		case <-a.begin.C:
			if to, ok := a.address(); ok && a.call == nil {
				a.call = a.dial(to)
			}
		case err := <-a.call.ended():
			if over, err := a.heard(err); over {
				return err
			}
		case <-a.ctx.Done():
			_, _ = a.hangUp(context.Cause(a.ctx)) // nobody wants to know
			return context.Cause(a.ctx)
		}
	}
}

// said returns whether the program has said that the queue pair is ready to send, and
// how often to look whether it has waited too long; 0 stands for never.
func (a *attempt) said() (ready bool, tick time.Duration) {
	a.e.m.mu.Lock()
	defer a.e.m.mu.Unlock()
	if !a.ready || a.budget == 0 {
		return a.ready, 0
	}
	return true, min(max(a.budget/16, 10*time.Millisecond), time.Second)
}

// overdue reports whether there has been something to send for longer than the
// program allows. Without, a queue pair waits for its peer as long as it is there.
func (a *attempt) overdue() (spent time.Duration, overdue bool) {
	a.e.m.mu.Lock()
	budget := a.budget
	a.e.m.mu.Unlock()
	if budget == 0 || door.Outstanding(a.e.qp) == 0 {
		return 0, false
	}
	if a.since.IsZero() {
		a.since = time.Now()
	}
	spent = time.Since(a.since)
	return spent, spent >= budget
}

// goesFirst reports whether this side is the one that calls. The other one does only
// if that takes too long: perhaps the way is open in its direction only.
func (a *attempt) goesFirst() bool {
	p := &a.peer
	switch {
	case SlotOf(a.e.num) == 0: // nobody can call it
		return true
	case a.e.num != p.QPN:
		return a.e.num < p.QPN
	case !p.Addr.IsValid() || !p.From.IsValid():
		return true
	}
	return p.From.WithZone("").Compare(p.Addr.WithZone("")) <= 0
}

// address returns the address of the peer's listener, or false if it has none.
func (a *attempt) address() (netip.AddrPort, bool) {
	port, ok := a.e.m.cfg.port(a.peer.QPN)
	to := a.peer.Addr
	if !to.IsValid() {
		if to = a.e.m.cfg.Address; !to.IsValid() || to.IsUnspecified() {
			to = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		} // else the peer may listen there only
	}
	return netip.AddrPortFrom(to, port), ok
}

// takeIf is take, once the program has said RTS or had the time to.
func (a *attempt) takeIf(late bool) *request {
	a.e.m.mu.Lock()
	ready := a.ready
	a.e.m.mu.Unlock()
	if !ready && !late {
		return nil
	}
	return a.take()
}

// take returns a request that is to be answered now, or nil. While a call is on its
// way, that is one which wins over it; or any, if the peer can't have heard of the
// call yet, which it then never does. It refuses those that do not show that they are
// the peer's, and has the peer called instead.
func (a *attempt) take() *request {
	found, refused := a.choose()
	for _, r := range refused {
		a.e.m.refuse(r.ConnRequest, Message{From: a.e.num, To: r.From, Reason: NotShown})
	}
	return found
}

func (a *attempt) choose() (found *request, refused []*request) {
	e := a.e
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	for _, r := range e.m.held.of(e.num) {
		v := a.judge(r)
		if v == stranger || !door.Waiting(r.ConnRequest) {
			continue
		}
		if v == unproven {
			refused = append(refused, r)
			continue
		}
		if r.isSomebodyElse() && (!a.ready || a.psn == 0) {
			continue // the peer could not tell that this side is its peer
		}
		if a.call == nil || r.From < e.num || r.From == e.num && r.Tie < a.tie || a.call.giveUp() {
			found = r
			break
		}
	}
	e.m.held.remove(func(r *request) bool { return r == found || slices.Contains(refused, r) })
	if len(refused) > 0 && a.ready && a.call == nil && !a.asked {
		a.asked = true // once, so that whoever is refused can't set the pace
		a.begin.Reset(0)
	}
	return found, refused
}

// answer connects the queue pair with a peer that has asked. It reports false if the
// attempt continues.
func (a *attempt) answer(r *request) (over bool, err error) {
	if over, err := a.hangUp(errOvertaken); over {
		_ = r.Close() // there is a connection already, or will be none
		return true, err
	}
	a.hear(&r.Message)
	param, _, err := a.param(Agree)
	if err == nil {
		err = r.Accept(a.ctx, a.e.qp, param)
	}
	if err == nil || isFinal(err) {
		return true, err
	}
	a.retry(err)
	return false, nil
}

// hear tells the owner of the queue pair what the peer's program has said.
func (a *attempt) hear(m *Message) {
	if a.peer.Heard == nil {
		return
	}
	if retries := int(m.RNRRetry); m.HasPSN {
		a.peer.Heard(retries)
	} else {
		a.peer.Heard(-1)
	}
}

// hangUp ends the call that is in progress, if there is one. It reports true if that
// has led to an end of the attempt.
func (a *attempt) hangUp(why error) (over bool, err error) {
	if a.call == nil {
		return false, nil
	}
	a.call.cancel(why)
	err = <-a.call.result
	a.call = nil
	if err == nil || isFinal(err) {
		return true, err
	}
	if a.last == nil {
		a.last = err
	}
	return false, nil
}

// heard is notified how a call has ended. It reports false if the attempt continues.
func (a *attempt) heard(err error) (over bool, _ error) {
	early := a.call.early
	a.call = nil
	if err == nil || isFinal(err) {
		return true, err
	}
	var refused *RefusedError
	if early && errors.As(err, &refused) && refused.Reason == NotShown {
		a.last, a.early = err, true
		a.begin.Stop()
		a.wake() // RTS may have come meanwhile
		return false, nil
	}
	a.retry(err)
	return false, nil
}

// retry makes the next call begin after a pause.
func (a *attempt) retry(err error) {
	a.e.m.log.Debug("rendezvous: an attempt failed", "qp", a.e.num, "peer", a.peer.QPN, "error", err)
	a.last = err
	a.begin.Reset(a.pause/2 + rand.N(a.pause))
	a.pause = min(2*a.pause, lastPause)
}

// param returns what the connection is to be like. What this side may have
// outstanding at the peer is for the peer to say, whose program has named it (IRD):
// the device's most is asked for. It reports whether the program has told the PSN.
func (a *attempt) param(kind Kind) (_ rnic.ConnParam, ready bool, _ error) {
	a.e.m.mu.Lock()
	msg := Message{Kind: kind, From: a.e.num, To: a.peer.QPN, PSN: a.psn, HasPSN: a.ready, RNRRetry: a.rnrRetry}
	a.e.m.mu.Unlock()
	if kind == Ask {
		msg.Tie = a.tie
	}
	b, err := msg.AppendBinary(nil)
	cfg := a.e.m.cfg.MPA
	cfg.Revision, cfg.PeerToPeer, cfg.ReplyTimeout = mpa.Revision2, true, replyTimeout
	p := rnic.ConnParam{PrivateData: b, IRD: a.peer.IRD, ORD: a.e.m.cfg.Device.Attr().MaxORD, MPA: &cfg}
	if p.IRD == 0 {
		p.IRD = -1 // none
	}
	return p, msg.HasPSN, err
}

// isFinal reports whether another try could not succeed: it is the queue pair that
// can't be connected.
func isFinal(err error) bool {
	var limit *pd.LimitError
	var cfg *mpa.ConfigError
	return errors.Is(err, rnic.ErrNotIdle) || errors.Is(err, rnic.ErrClosed) || errors.Is(err, rnic.ErrAborted) ||
		errors.Is(err, rnic.ErrOverflow) || errors.As(err, &limit) || errors.As(err, &cfg)
}

// An UnreachableError says that the peer could not be connected in the time that the
// program gives.
type UnreachableError struct {
	QPN   uint32
	Peer  Peer
	Spent time.Duration
	Err   error // why the last try came to nothing, or nil
}

// Error says where the peer was looked for.
func (e *UnreachableError) Error() string {
	s := fmt.Sprintf("rendezvous: QP 0x%x has no answer from QP 0x%x at %v for %v: does its program run, with the queue pair in RTR?", e.QPN, e.Peer.QPN, e.Peer.Addr, e.Spent.Round(time.Millisecond))
	if e.Err != nil {
		s += " Last: " + e.Err.Error()
	}
	return s
}

// Unwrap returns why the last try came to nothing.
func (e *UnreachableError) Unwrap() error { return e.Err }
