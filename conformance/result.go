package conformance

import (
	"time"

	"urnic/conformance/wire"
)

// A Result is the result of one case.
type Result struct {
	Case    string   `json:"case"`    // its ID
	Role    string   `json:"role"`    // the target's role in the connection: responder or initiator
	Group   string   `json:"group"`   // such as start-up
	Title   string   `json:"title"`   // what is done, and what must come of it
	Clauses []string `json:"clauses"` // IDs of the clauses that it tests, the one that it is named by first
	Level   string   `json:"level"`   // of that clause
	Cite    string   `json:"cite"`    // that clause's place: RFC 5041 §7.1
	Clause  string   `json:"clause"`  // that clause's summary

	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"` // of a verdict that is not pass, in a sentence

	// What was sent, what had to come and what came: of failed and inconclusive
	// cases.
	Sent     string `json:"sent,omitempty"`
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`

	// Exchange is what passed, decoded, in order.
	Exchange []wire.Event `json:"exchange,omitempty"`

	Began    time.Time     `json:"began"`
	Duration time.Duration `json:"duration_ns"`
	Pcap     string        `json:"pcap,omitempty"` // the file with the recording, if there is one

	heard   time.Time // when something came last from the target
	failed  bool      // the case failed, whatever became of the verdict
	unshown bool      // the verdict rests on what did not come, not on bytes of the target
	closed  bool      // the target has ended a connection by FIN
}

// A Report is the outcome of a run.
type Report struct {
	Tool     string        `json:"tool"` // "urnic", with its version
	Target   string        `json:"target"`
	Profile  string        `json:"profile"`
	LLP      LLP           `json:"llp"` // what DDP ran on: tcp or rdp
	Strict   bool          `json:"strict"`
	Began    time.Time     `json:"began"`
	Duration time.Duration `json:"duration_ns"`
	Totals   Totals        `json:"totals"`
	Coverage []Coverage    `json:"coverage"` // RFC by RFC
	Clauses  []ClauseState `json:"clauses"`  // all of the catalogue, in its order
	Results  []Result      `json:"results"`  // in the order of the cases

	// Lost says that the target could not be reached any more, and since when, if the
	// run ended for that. Interrupted says that the run was stopped: its context ended.
	Lost        string `json:"lost,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
}

// Totals counts results by verdict.
type Totals struct {
	Pass         int `json:"pass"`
	Fail         int `json:"fail"`
	Inconclusive int `json:"inconclusive"`
	Skipped      int `json:"skipped"`
}

// Add counts one result.
func (t *Totals) Add(v Verdict) {
	switch v {
	case Pass:
		t.Pass++
	case Fail:
		t.Fail++
	case Inconclusive:
		t.Inconclusive++
	case Skipped:
		t.Skipped++
	}
}

// All returns how many results are counted.
func (t Totals) All() int { return t.Pass + t.Fail + t.Inconclusive + t.Skipped }
