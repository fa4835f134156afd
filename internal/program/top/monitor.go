package top

import (
	"cmp"
	"context"
	"slices"
	"time"

	"urnic/rnic/rnicinfo"
)

// A Monitor asks processes in rounds. It is for one goroutine.
type Monitor struct {
	Dir      string        // of the sockets; "" stands for the user's own
	Patience time.Duration // that each process has to answer

	before map[string]*rnicinfo.Report // by socket
}

// A Round is what the processes have answered at a time.
type Round struct {
	Time       time.Time    `json:"time"`
	Processes  []Process    `json:"processes"`
	Unanswered []Unanswered `json:"unanswered"`
	Skipped    int          `json:"skipped"` // sockets that were too many to be asked
}

// A Process is one that has answered, with one device.
type Process struct {
	Socket string `json:"socket"`
	*rnicinfo.Report
	Rates Rates `json:"rates"`
}

// An Unanswered is a socket whose process has given no answer that makes sense.
type Unanswered struct {
	Socket string `json:"socket"`
	Error  string `json:"error"`
}

// Rates are those between two rounds. Without an earlier report, Interval is 0 and so are the rates.
type Rates struct {
	Interval float64  `json:"interval_seconds"`
	Sent     Rate     `json:"sent"` // by all queue pairs
	Received Rate     `json:"received"`
	QPs      []QPRate `json:"qps"` // in the order of the report's
	CQs      []CQRate `json:"cqs"`
	MRs      []MRRate `json:"mrs"`
}

// A Rate counts messages and their bytes per second.
type Rate struct {
	Messages float64 `json:"messages_per_second"`
	Bytes    float64 `json:"bytes_per_second"`
}

// A QPRate is that of a queue pair.
type QPRate struct {
	Num      uint32 `json:"num"`
	Sent     Rate   `json:"sent"`
	Received Rate   `json:"received"`
}

// A CQRate is that of a completion queue.
type CQRate struct {
	Num    uint32  `json:"num"`
	Polled float64 `json:"polled_per_second"`
}

// An MRRate is that of a region.
type MRRate struct {
	STag    string  `json:"stag"`
	BytesIn float64 `json:"bytes_in_per_second"`
}

// Round asks all processes. The error says that the directory can't be read or trusted.
func (m *Monitor) Round(ctx context.Context) (*Round, error) {
	answers, skipped, err := rnicinfo.Gather(ctx, m.Dir, m.Patience)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.round(time.Now(), answers, skipped), nil
}

// round makes a round of answers.
func (m *Monitor) round(now time.Time, answers []rnicinfo.Answer, skipped int) *Round {
	r := &Round{Time: now, Processes: []Process{}, Unanswered: []Unanswered{}, Skipped: skipped}
	seen := map[string]*rnicinfo.Report{}
	for _, a := range answers {
		if a.Err != nil {
			r.Unanswered = append(r.Unanswered, Unanswered{a.Path, a.Err.Error()})
			if old := m.before[a.Path]; old != nil {
				seen[a.Path] = old // it may answer later
			}
			continue
		}
		seen[a.Path] = a.Report
		r.Processes = append(r.Processes, Process{Socket: a.Path, Report: a.Report, Rates: rates(m.before[a.Path], a.Report)})
	}
	slices.SortStableFunc(r.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	m.before = seen
	return r
}

// rates returns the rates between two reports of a process; before may be nil.
func rates(before, now *rnicinfo.Report) Rates {
	r := Rates{QPs: make([]QPRate, len(now.Device.QPs)), CQs: make([]CQRate, len(now.Device.CQs)), MRs: make([]MRRate, len(now.Device.MRs))}
	if before == nil || before.PID != now.PID || before.Seconds >= now.Seconds {
		before = &rnicinfo.Report{Seconds: now.Seconds}
	}
	r.Interval = now.Seconds - before.Seconds
	per := func(before, now uint64) float64 {
		if r.Interval <= 0 || now < before {
			return 0
		}
		return float64(now-before) / r.Interval
	}
	rate := func(before, now *rnicinfo.Count) Rate {
		if before == nil || now == nil {
			return Rate{}
		}
		return Rate{per(before.Messages, now.Messages), per(before.Bytes, now.Bytes)}
	}
	sentBefore, receivedBefore := totals(before)
	sent, received := totals(now)
	r.Sent, r.Received = rate(&sentBefore, &sent), rate(&receivedBefore, &received)

	qps := byKey(before.Device.QPs, func(q *rnicinfo.QP) uint32 { return q.Num })
	for i := range now.Device.QPs {
		q := &now.Device.QPs[i]
		r.QPs[i].Num = q.Num
		if old := qps[q.Num]; old != nil {
			r.QPs[i].Sent, r.QPs[i].Received = rate(old.Sent, q.Sent), rate(old.Received, q.Received)
		}
	}
	cqs := byKey(before.Device.CQs, func(c *rnicinfo.CQ) uint32 { return c.Num })
	for i := range now.Device.CQs {
		c := &now.Device.CQs[i]
		r.CQs[i].Num = c.Num
		if old := cqs[c.Num]; old != nil && old.Polled != nil && c.Polled != nil {
			r.CQs[i].Polled = per(*old.Polled, *c.Polled)
		}
	}
	mrs := byKey(before.Device.MRs, func(m *rnicinfo.MR) string { return m.STag })
	for i := range now.Device.MRs {
		m := &now.Device.MRs[i]
		r.MRs[i].STag = m.STag
		if old := mrs[m.STag]; old != nil {
			r.MRs[i].BytesIn = per(old.BytesIn, m.BytesIn)
		}
	}
	return r
}

// byKey returns elements of a list by a key of theirs.
func byKey[E any, K comparable](list []E, key func(*E) K) map[K]*E {
	out := make(map[K]*E, len(list))
	for i := range list {
		out[key(&list[i])] = &list[i]
	}
	return out
}

// totals adds the messages of all opcodes.
func totals(r *rnicinfo.Report) (sent, received rnicinfo.Count) {
	for _, m := range r.Device.Messages {
		sent.Messages, sent.Bytes = sent.Messages+m.Sent.Messages, sent.Bytes+m.Sent.Bytes
		received.Messages, received.Bytes = received.Messages+m.Received.Messages, received.Bytes+m.Received.Bytes
	}
	return sent, received
}
