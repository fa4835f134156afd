package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"urnic/conformance/wire"
)

// giveUp is how many probes in a row may stay without an answer before the run ends.
const giveUp = 3

// errLost is why the cases that are left are not run.
var errLost = errors.New("the target was lost")

// vitals watch whether the target still answers. The cases of a run share them.
type vitals struct {
	r    *Runner
	opts Options
	end  context.CancelCauseFunc // of the run

	mu         sync.Mutex
	unanswered []string // the cases after which the target did not answer, in a row
	lost       bool
	heard      time.Time // when something came last from the target
	by         string    // the case in which it came
}

// judge returns the result of a run that has ended. A failure that no bytes of the target
// show, but only that none came, stands if the target answers an ordinary start-up before
// and after the case fails in the same way again.
func (v *vitals) judge(ctx context.Context, run run, res Result) Result {
	v.hear(&res)
	if !res.unshown || res.Verdict != Fail && res.Verdict != Inconclusive {
		return res
	}
	alive, revived := v.answers(ctx, run)
	switch {
	case revived:
		res = v.r.one(ctx, v.opts, run)
		v.hear(&res)
		if res.failed && res.unshown {
			return doubt(res, "the target had to be brought back, and did not answer in this case again")
		}
		return res
	case !alive:
		return doubt(res, "the target does not answer an ordinary start-up either, so that this says nothing of the clause")
	case !res.failed:
		return res
	}
	again := v.r.one(ctx, v.opts, run)
	v.hear(&again)
	if !again.failed {
		return doubt(res, "nothing came at first that shows a failure, and the case did not fail when it was run again")
	}
	if again.unshown {
		if alive, _ := v.answers(ctx, run); !alive {
			return doubt(again, "the target does not answer an ordinary start-up any more")
		}
	}
	return again
}

// doubt makes a failure inconclusive.
func doubt(res Result, why string) Result {
	if res.Verdict == Fail {
		res.Verdict = Inconclusive
	}
	res.Reason = why + ": " + res.Reason
	return res
}

// hear notes when the target was heard last.
func (v *vitals) hear(res *Result) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if res.heard.After(v.heard) {
		v.heard, v.by = res.heard, res.Case+" ("+res.Role+")"
	}
}

// answers reports whether the target answers an ordinary start-up, or was brought back as it
// did not. It ends the run once it has not for giveUp times.
func (v *vitals) answers(ctx context.Context, run run) (alive, revived bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lost || ctx.Err() != nil {
		return false, false
	}
	began := time.Now()
	if v.probe(ctx, run.role) {
		v.unanswered = nil
		return true, false
	}
	if ctx.Err() != nil {
		return false, false
	}
	if v.opts.Revive != nil {
		if v.opts.Revive(ctx) == nil {
			v.unanswered = nil
			return false, true
		}
		v.opts.Revive = nil
	}
	if run.c.Clause != "" {
		v.unanswered = append(v.unanswered, run.c.ID()+" ("+run.role.String()+")")
	} else {
		v.unanswered = append(v.unanswered, "")
	}
	if len(v.unanswered) >= giveUp {
		v.lost = true
		v.end(errLost)
		return false, false
	}
	// What refuses connections does so at once: it may be about to come back.
	select {
	case <-time.After(v.opts.Timeout/10 - time.Since(began)):
	case <-ctx.Done():
	}
	return false, false
}

// probe reports whether the target shows life: it answers an ordinary start-up in whatever
// way, or has a test service that answers.
func (v *vitals) probe(ctx context.Context, role Roles) bool {
	opts := v.opts
	opts.PcapDir = ""
	limited, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	res := v.r.one(limited, opts, run{c: Case{Clause: "probe", Run: func(t *T) {
		if t.HasService() {
			return // it has said hello
		}
		t.Open(Setup{})
	}}, role: role})
	return res.Verdict == Pass || !res.unshown || res.closed
}

// last looks at the end of a run whether the target has survived it.
func (v *vitals) last(ctx context.Context, ran bool) {
	_, roles := v.r.Profile.Offers()
	role := Responder
	if roles&Responder == 0 { // nobody says that it connects once more
		role = Initiator
		if len(v.unanswered) == 0 {
			return
		}
	}
	if !ran {
		return
	}
	for ctx.Err() == nil && !v.lost {
		if alive, revived := v.answers(ctx, run{role: role}); alive || revived {
			return
		}
	}
}

// sentence says that the target was lost, and when; "" if it was not.
func (v *vitals) sentence() string {
	if !v.lost {
		return ""
	}
	var after []string
	for _, id := range v.unanswered {
		if id != "" {
			after = append(after, id)
		}
	}
	s := fmt.Sprintf("the target may have crashed: it did not answer %d ordinary start-ups in a row", giveUp)
	if len(after) > 0 {
		s += ", after the cases " + strings.Join(after, ", ")
	}
	if v.by != "" {
		s += "; it was last heard in " + v.by
	}
	return s
}

// withdraw makes those results inconclusive that passed as nothing came, once the target was
// not there any more to send anything.
func (v *vitals) withdraw(results []Result) {
	for i := range results {
		res := &results[i]
		if v.lost && res.Verdict == Pass && res.unshown && res.Began.Add(res.Duration).After(v.heard) {
			res.Verdict = Inconclusive
			res.Reason = "nothing came, as the clause demands, but the target may not have been there any more"
		}
	}
}

// observe keeps in the result what is known of the target's life.
func (t *T) observe() {
	at, heard := t.tape.Heard()
	t.result.heard, t.result.unshown = at, !heard
	if t.session != nil && t.session.Service() != nil {
		asked, answered, last := t.session.Service().Answered()
		if answered.After(t.result.heard) {
			t.result.heard = answered
		}
		if asked.After(t.tape.Looked()) {
			t.result.unshown = !last
		}
	}
	for _, c := range t.conns {
		if c.End() == wire.Finished {
			t.result.closed = true
		}
	}
}
