package rxflow

import (
	"container/list"
	"fmt"
	"slices"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
)

// A doubt is a broken rule, unless the capture lacks a packet of the other side, or has it
// out of order.
type doubt struct {
	rule     dissect.Rule
	from     dissect.Side
	at       capture.At
	detail   string
	still    func() bool
	since    uint32 // the serial number of the other side from which on nothing may be missing
	followed bool   // by a packet of the other side, with nothing missing between
}

// settleAfter is how long a doubt waits for packets that the capture may have out of order.
const settleAfter = 20 * time.Millisecond

// maxDoubts bounds the doubts of a direction. Of more, the first ones count.
const maxDoubts = 16

// A line is what all connections of the analysis have.
type line struct {
	a       *Analyzer
	r       *dissect.Reporter
	sum     *Summary
	place   *list.Element
	blamed  []doubt // what is reported when the packet that is looked at was shown
	aborted abortRow
}

// blame reports that a side broke a rule.
func (l *line) blame(rule dissect.Rule, from dissect.Side, at capture.At, format string, args ...any) {
	l.blamed = append(l.blamed, doubt{rule: rule, from: from, at: at, detail: fmt.Sprintf(format, args...)})
}

// tell reports what was found.
func (l *line) tell() {
	for _, d := range l.blamed {
		l.r.Violate(d.rule, d.from, d.at, "%s", d.detail)
	}
	l.blamed = l.blamed[:0]
}

// doubt reports that a side broke a rule if that is so still when more packets of the other side
// have come, and the capture lacks none of that side since a serial number. If it lacks one
// already, nothing is known.
func (c *conn) doubt(rule dissect.Rule, from dissect.Side, at capture.At, since uint32, still func() bool, format string, args ...any) {
	d := &c.dirs[1-from]
	if len(d.doubts) == maxDoubts || d.serials.missing() > since || !still() {
		return
	}
	d.doubts = append(d.doubts, doubt{rule: rule, from: from, at: at, detail: fmt.Sprintf(format, args...), still: still, since: since})
}

// settle settles the doubts of a direction with a packet that has come. It is the next one if it
// fits; else the capture lacks one, and nothing is known.
func (c *conn) settle(from dissect.Side, at capture.At, fits bool) {
	d := &c.dirs[from]
	if !fits {
		d.doubts = d.doubts[:0]
		return
	}
	d.doubts = slices.DeleteFunc(d.doubts, func(doubt doubt) bool {
		if !doubt.still() {
			return true
		}
		if at.Time.Sub(doubt.at.Time) < settleAfter {
			return false
		}
		c.blame(doubt.rule, doubt.from, doubt.at, "%s", doubt.detail)
		return true
	})
	for i := range d.doubts {
		if !at.Time.Before(d.doubts[i].at.Time) {
			d.doubts[i].followed = true
		}
	}
}

// settleAll settles the doubts that are left at the end.
func (c *conn) settleAll() {
	for side := range c.dirs {
		d := &c.dirs[side]
		if d.serials.high == 0 {
			continue // the capture has nothing of this side
		}
		for _, doubt := range d.doubts {
			switch {
			case !doubt.still() || d.serials.missing() > doubt.since:
			case doubt.followed:
				c.blame(doubt.rule, doubt.from, doubt.at, "%s", doubt.detail)
			default:
				c.r.Note(doubt.from, doubt.at, "perhaps a violation of %s, unless the capture lacks packets: %s", doubt.rule.Clause, doubt.detail)
			}
		}
	}
	c.tell()
}
