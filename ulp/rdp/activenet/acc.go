package activenet

import (
	"time"

	"urnic/ulp/rdp/congestion"
)

// ACC is Active Congestion Control, after Faber (IEEE Network 12(3), 1998). A node that is
// congested does not wait until the sender notices. From what the packet says of its sender, it
// works out the window that the sender would have if it knew. It reports that window, and until
// the report is there it edits the flow: it drops what a sender with that window would not have
// sent.
//
// A sender that reduces its window in proportion (RFC 6937) sends less often, instead of pausing.
// So the packets to drop are spread over a window, and those between them show the receiver the
// gaps.
//
// Each flow is cut at most once for each window of its packets that passes.
type ACC struct {
	// Threshold is the length of the queue at which the link counts as congested. 0: when it is
	// full.
	Threshold int

	// ReportOnly leaves out the edit: packets are dropped only where there is no room.
	ReportOnly bool

	// Patience is for how long the node waits to see that a sender has taken its report, before
	// it cuts the flow again. 0: 1 s.
	Patience time.Duration

	Stats ACCStats

	flows map[*Flow]*accFlow
}

// ACCStats counts what the program has done.
type ACCStats struct {
	Cuts   int // windows cut and reported
	Edited int // packets dropped in the name of their sender
}

// An accFlow is what the node knows of a flow that it has cut.
type accFlow struct {
	window int           // that the sender is to have
	had    int           // that it had
	excess int           // packets that are still to be dropped: sent before it knew
	turn   int           // counts up to had by window: then a packet passes
	passed int           // packets since it is seen to know
	known  bool          // the sender is seen to know
	at     time.Duration // when it was cut
}

const defaultPatience = time.Second

// Arrive implements [Program].
func (a *ACC) Arrive(l *Link, p *Packet) Action {
	if p.Flow == nil || !p.Data || !p.Forward {
		return Pass
	}
	if f := a.flows[p.Flow]; f != nil {
		if drop, done := a.edit(l, f, p); drop {
			a.Stats.Edited++
			return Action{Drop: true}
		} else if !done {
			return Pass
		}
		delete(a.flows, p.Flow)
	}
	if !a.congested(l) {
		return Pass
	}
	return a.cut(l, p)
}

func (a *ACC) congested(l *Link) bool {
	limit := l.cfg.Queue
	if a.Threshold > 0 {
		limit = min(limit, a.Threshold)
	}
	return l.busy && len(l.queue) >= limit
}

// edit treats a packet of a flow that was cut. done reports that the cut is over.
func (a *ACC) edit(l *Link, f *accFlow, p *Packet) (drop, done bool) {
	if !f.known && p.State.Window > f.window { // the sender did not know yet
		if f.excess == 0 {
			return false, l.Now()-f.at > a.patience()
		}
		if f.turn += f.window; f.turn < f.had {
			f.excess--
			return true, false
		}
		f.turn -= f.had
		return false, false
	}
	f.known = true
	f.passed++
	return false, f.passed > f.window
}

func (a *ACC) patience() time.Duration {
	if a.Patience <= 0 {
		return defaultPatience
	}
	return a.Patience
}

// cut reports a flow's new window, and begins to hold the flow to it.
func (a *ACC) cut(l *Link, p *Packet) Action {
	had := min(p.State.Window, p.State.InFlight)
	window := max(1, int(backoff(p.State.Control)*float64(had)))
	if window >= had {
		return Pass // one segment at a time: there is nothing left to cut
	}
	f := &accFlow{window: window, had: had, at: l.Now()}
	r := congestion.Report{Window: window}
	if a.ReportOnly {
		r.Marks = 1
	} else {
		r.Drops = had - window
		f.excess = r.Drops - 1
	}
	if !l.Report(p.Flow, r) {
		return Pass // the sender can't be told: it has to notice itself
	}
	if a.flows == nil {
		a.flows = map[*Flow]*accFlow{}
	}
	a.flows[p.Flow] = f
	a.Stats.Cuts++
	if a.ReportOnly {
		return Pass
	}
	a.Stats.Edited++
	return Action{Drop: true}
}

// backoff is what remains of a sender's window when it notices a loss.
func backoff(control string) float64 {
	if control == congestion.NameCUBIC {
		return 0.7 // RFC 9438 §4.6
	}
	return 0.5 // RFC 5681 §3.1
}
