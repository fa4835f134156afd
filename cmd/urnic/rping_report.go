package main

import (
	"time"

	"urnic/rdmap"
	"urnic/rnic"
)

// A rpingReport tells of a connection: to --json at its end, to a progress while
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
}

// begin is told when the rounds begin, end when they are over.
func (r *rpingReport) begin(p *progress) { r.started, r.progress = time.Now(), p }

func (r *rpingReport) end() {
	r.Seconds = time.Since(r.started).Seconds()
	r.progress.end()
}

// round is told after each round.
func (r *rpingReport) round(n, size int) {
	r.Rounds, r.Size = n+1, size
	r.progress.add(1)
}

// tell prints the report of a connection that is over, if it is wanted.
func (r *rpingRun) tell(report *rpingReport, qp *rnic.QP, err error) {
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
	report.Error = text(err)
	line, err := jsonLine(report)
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
