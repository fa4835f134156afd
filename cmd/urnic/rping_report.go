package main

import (
	"context"
	"fmt"
	"time"

	"urnic/internal/host/plural"
	"urnic/rdmap"
	"urnic/rnic"
)

// A rpingReport describes a connection: to --json at its end, to a progress while
// it lasts.
type rpingReport struct {
	Role     string  `json:"role"`
	Peer     string  `json:"peer"`
	Rounds   int     `json:"rounds"`
	Size     int     `json:"size"`
	Seconds  float64 `json:"seconds"`
	Sent     uint64  `json:"octets_sent"`
	Received uint64  `json:"octets_received"`

	Revision        uint8  `json:"revision"`
	CRC             bool   `json:"crc"`
	Enhanced        bool   `json:"enhanced"`
	MarkersSent     bool   `json:"markers_sent"`
	MarkersReceived bool   `json:"markers_received"`
	IRD             uint16 `json:"ird"`
	ORD             uint16 `json:"ord"`

	Error string `json:"error,omitempty"`

	started  time.Time
	progress *progress

	last             time.Time // when the last round ended, or the first began
	fastest, slowest time.Duration
}

// begin is notified when the rounds begin, end when they are over.
func (r *rpingReport) begin(p *progress) {
	r.started, r.progress = time.Now(), p
	r.last = r.started
}

func (r *rpingReport) end() {
	r.Seconds = time.Since(r.started).Seconds()
	r.progress.end()
}

// round is notified after each round.
func (r *rpingReport) round(n, size int) {
	now := time.Now()
	took := now.Sub(r.last)
	if n == 0 || took < r.fastest {
		r.fastest = took
	}
	r.slowest, r.last = max(r.slowest, took), now
	r.Rounds, r.Size = n+1, size
	r.progress.add(1)
}

// sum sums up the rounds in a line, as ping does when it is interrupted.
func (r *rpingReport) sum() string {
	s := fmt.Sprintf("%s of %s in %.3f s", plural.Count(r.Rounds, "round"), plural.Count(r.Size, "byte"), r.Seconds)
	if r.Rounds == 0 {
		return s
	}
	milli := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	mean := r.last.Sub(r.started) / time.Duration(r.Rounds)
	return s + fmt.Sprintf(", min/avg/max = %.3f/%.3f/%.3f ms", milli(r.fastest), milli(mean), milli(r.slowest))
}

// tell prints the report of a connection that is over, if it is wanted.
func (r *rpingRun) tell(ctx context.Context, report *rpingReport, qp *rnic.QP, err error) {
	if !r.json {
		return
	}
	if p, there := qp.Params(); there {
		report.Revision, report.CRC, report.Enhanced = p.Revision, p.CRC, p.Enhanced
		report.MarkersSent, report.MarkersReceived = p.SendMarkers, p.RecvMarkers
		report.IRD, report.ORD = p.IRD, p.ORD
	}
	counters := qp.Counters()
	report.Sent, report.Received = octets(counters.Sent[:]), octets(counters.Received[:])
	report.Error = reason(ctx, r.ended(ctx, err))
	line, err := jsonLine("urnic-rping/1", report)
	if err != nil {
		r.err.print("urnic: " + text(err))
		return
	}
	r.out.print(line)
}

func octets(counts []rdmap.Count) (sum uint64) {
	for _, c := range counts {
		sum += c.Octets
	}
	return sum
}
